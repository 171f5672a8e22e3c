//! Lists of objects.

use thalweg_io::control::Control;
use thalweg_io::urls::{Depth, Entry, Listed};
use thalweg_io::{Error, Result};

use crate::address::Place;
use crate::lister::Page;
use crate::object::Object;
use crate::retries::Patience;

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
        Error::Io { source, .. } => Error::io(&shown, "listing", source),
        other => other,
    };
    let asked = format!("{bucket}{prefix}");
    let requests = Object::unopened(shown.clone(), service, control, patience);
    let mut token: Option<String> = None;
    loop {
        let ask = || lister.page(&prefix, depth, token.as_deref());
        let Page { entries, next } = requests.ask(ask).map_err(listing)?;
        for entry in entries {
            let entry = match entry {
                Entry::Object(Listed { url: key, size, version }) => {
                    Entry::Object(Listed { url: format!("{bucket}{key}"), size, version })
                }
                Entry::Folder(key) => Entry::Folder(format!("{bucket}{key}")),
            };
            // What was not asked for must not lead elsewhere.
            let (Entry::Object(Listed { url, .. }) | Entry::Folder(url)) = &entry;
            if url.starts_with(&asked) && !found(entry)? {
                return Ok(());
            }
        }
        match next {
            None => return Ok(()),
            Some(next) if token.as_ref() == Some(&next) => {
                let again = "the server gives the same part of the list again";
                return Err(Error::io(&shown, "listing", std::io::Error::other(again)));
            }
            next => token = next,
        }
    }
}
