//! Lists of objects.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use thalweg_io::control::Control;
use thalweg_io::urls::{Depth, Entry, Listed};
use thalweg_io::{Error, Result};

use crate::address::{Account, Place};
use crate::lister::{Page, buckets};
use crate::object::Object;
use crate::refusal::Refusal;
use crate::retries::Patience;
use crate::upload::refusal;

/// Calls `found` with what has a URL that begins with `prefix`, page by page, in the order of the
/// service, until it returns `false`. No more than a page is held.
///
/// # Errors
/// [`Error::Usage`] for a URL of no bucket, and where the environment does not fit;
/// [`Error::Unsupported`] for servers without lists; [`Error::Io`] if the service refuses it or
/// does not answer; [`Error::Cancelled`]; the errors of `found`.
pub fn list(
    prefix: &str,
    depth: Depth,
    control: &Control,
    patience: Patience,
    found: &mut dyn FnMut(Entry) -> Result<bool>,
) -> Result<()> {
    let Place { lister, service, bucket, prefix, shown } = Place::parse(prefix)?;
    let listing = |error| match error {
        Error::Io { source, .. } => {
            Error::Io { file: shown.clone(), doing: "listing", offset: None, source }
        }
        other => other,
    };
    let asked = format!("{bucket}{prefix}");
    let requests = Object::unopened(shown.clone(), service, control, patience);
    if lock(&ANSWERED).contains(&bucket) {
        requests.is_answered();
    }
    let mut token: Option<String> = None;
    let mut pages = Pages::default();
    loop {
        let ask = || lister.page(&prefix, depth, token.as_deref());
        let Page { entries, next } = requests.ask(ask).map_err(listing)?;
        if token.is_none() {
            lock(&ANSWERED).insert(bucket.clone());
        }
        let count = entries.len();
        for entry in entries {
            let entry = match entry {
                Entry::Object(Listed { url: key, size, version, modified }) => {
                    let url = format!("{bucket}{key}");
                    Entry::Object(Listed { url, size, version, modified })
                }
                Entry::Folder(key) => Entry::Folder(format!("{bucket}{key}")),
            };
            // What was not asked for must not lead elsewhere.
            let (Entry::Object(Listed { url, .. }) | Entry::Folder(url)) = &entry;
            if url.starts_with(&asked) && !found(entry)? {
                return Ok(());
            }
        }
        let Some(next) = next else { return Ok(()) };
        pages
            .check(&next, count)
            .map_err(|why| Error::io(&shown, "listing", std::io::Error::other(why)))?;
        token = Some(next);
    }
}

/// The names of the buckets that a service of S3 has for who asks, whose URL is `s3://`. `None` if
/// these credentials may not ask.
///
/// # Errors
/// [`Error::Usage`] for another URL, and where the environment does not fit; [`Error::Io`] if the
/// service refuses it or does not answer; [`Error::Cancelled`].
pub fn list_buckets(
    url: &str,
    control: &Control,
    patience: Patience,
) -> Result<Option<Vec<String>>> {
    let Account { client, url, service, shown } = Account::parse(url)?;
    let requests = Object::unopened(shown.clone(), service, control, patience);
    match requests.ask(|| buckets(&client, &url)) {
        Ok(names) => Ok(Some(names)),
        Err(Error::Io { source, .. }) if refusal(&source).is_some_and(Refusal::is_silence) => {
            Ok(None)
        }
        Err(Error::Io { source, .. }) => {
            Err(Error::Io { file: shown, doing: "listing buckets of", offset: None, source })
        }
        Err(other) => Err(other),
    }
}

/// Whether there is a bucket, whose URL ends with `/`.
///
/// # Errors
/// Those of [`list`].
pub fn has_bucket(url: &str, control: &Control, patience: Patience) -> Result<bool> {
    match list(url, Depth::One, control, patience, &mut |_| Ok(false)) {
        Ok(()) => Ok(true),
        Err(Error::Io { source, .. }) if refusal(&source).is_some_and(Refusal::is_of_bucket) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Buckets that were listed before: they are not given up after a few tries.
static ANSWERED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Pages with fewer names bring hardly anything.
const FEW: usize = 10;
/// The most such pages in a row.
const MOST_OF_FEW: usize = 1000;

/// The pages of a list, which might never end.
#[derive(Debug, Default)]
struct Pages {
    count: u64,
    /// The token of the page whose number was the last power of two. A list that goes round in
    /// circles comes to it again (Brent, BIT 20, 1980).
    noted: Option<String>,
    of_few: usize,
}

impl Pages {
    /// Fails if a list does not end: `next` is the token that a page of `names` names gives.
    fn check(&mut self, next: &str, names: usize) -> std::result::Result<(), &'static str> {
        if self.noted.as_deref() == Some(next) {
            return Err("the server gives the same part of the list again");
        }
        self.count += 1;
        if self.count.is_power_of_two() {
            self.noted = Some(next.to_owned());
        }
        self.of_few = if names < FEW { self.of_few + 1 } else { 0 };
        if self.of_few == MOST_OF_FEW {
            return Err("the server gives a thousand pages in a row with hardly a name");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_OF_FEW, Pages};

    #[test]
    fn a_list_that_does_not_end_is_told() {
        let pages = |token: fn(usize) -> usize, names| {
            let mut pages = Pages::default();
            (0..100_000).position(|page| pages.check(&token(page).to_string(), names).is_err())
        };
        assert_eq!(pages(|_| 7, 1000), Some(1));
        assert!(pages(|page| page % 2, 1000).is_some_and(|page| page < 6));
        assert!(pages(|page| page.min(5) + page % 300, 1000).is_some_and(|page| page < 1500));
        assert_eq!(pages(|page| page, 0), Some(MOST_OF_FEW - 1));
        assert_eq!(pages(|page| page, 1000), None);
    }
}
