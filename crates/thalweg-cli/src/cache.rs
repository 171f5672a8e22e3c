//! `thalweg cache`: the blocks of objects at URLs that are kept on disc; and the option that keeps
//! them.

use std::io::Write;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use serde_json::json;
use thalweg::engine::default_threads;
use thalweg::text::escaped;
use thalweg_gauge::units::{binary_bytes, decimal_bytes, unix_s};
use thalweg_io::object_cache::{CachedObject, Contents, ObjectCache};
use thalweg_io::urls::shown;

use crate::common::{
    Failure, VerbResult, complain, counted, ended, output, parse_bytes, print_json,
};
use crate::explain::age;
use crate::progress::FetchProgress;
use crate::signals::cancel_on_signal;

/// Look at, empty or check the cache of objects at URLs
///
/// `--cache 20GB` or the variable THALWEG_CACHE=20GB keeps what is read from URLs on disc, up to
/// that size, for all processes.
///
/// Example: thalweg cache info
#[derive(Debug, Args)]
pub(crate) struct CacheVerbArgs {
    #[command(subcommand)]
    verb: CacheVerb,
}

#[derive(Debug, Subcommand)]
enum CacheVerb {
    /// Show what is kept: objects, how much of each, and when it was used last
    ///
    /// Example: thalweg cache info --json
    Info(OfCache),
    /// Remove what is kept: all, or the objects at and below some URLs
    ///
    /// Example: thalweg cache clear s3://bucket/runs
    Clear {
        /// Objects to remove, and prefixes of objects (default: all)
        #[arg(value_name = "URL")]
        urls: Vec<String>,
        #[command(flatten)]
        of: OfCache,
    },
    /// Read all that is kept, and remove what is damaged
    ///
    /// Fails if something was damaged. It would have been fetched again.
    ///
    /// Example: thalweg cache verify
    Verify(OfCache),
}

#[derive(Debug, Args)]
struct OfCache {
    #[command(flatten)]
    cache: CacheArgs,
    /// Print one JSON line
    #[arg(long)]
    json: bool,
}

/// The option of verbs that read URLs.
#[derive(Debug, Clone, Args)]
pub(crate) struct CacheArgs {
    /// Keep what is read from URLs on disc, up to SIZE, as in 20GB, or in
    /// 20GB,free=50GB,folder=/scratch/objects to leave 50 GB free there (default: off)
    #[arg(long, value_name = "SIZE", env = "THALWEG_CACHE", overrides_with = "cache")]
    #[arg(hide_env = true)]
    cache: Option<CacheChoice>,
}

/// A value of `--cache`. Without a limit the cache is off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct CacheChoice {
    limit: Option<u64>,
    free: Option<u64>,
    folder: Option<PathBuf>,
}

/// The least size of a cache. Whoever gives less forgot the unit: no cache of so few blocks of 64
/// KiB saves a read anything.
const LEAST_LIMIT: u64 = 1 << 20;

impl FromStr for CacheChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (size, mut rest) = text.split_once(',').unwrap_or((text, ""));
        let mut choice = Self::default();
        if !matches!(size, "" | "off") {
            let limit = parse_bytes(size)?;
            if limit < LEAST_LIMIT {
                let least = binary_bytes(LEAST_LIMIT as f64);
                return Err(format!("{size:?} is {limit} bytes: give {least} or more, as in 20GB"));
            }
            choice.limit = Some(limit);
        }
        while !rest.is_empty() {
            if let Some(folder) = rest.strip_prefix("folder=").filter(|path| !path.is_empty()) {
                choice.folder = Some(folder.into());
                break;
            }
            let (part, after) = rest.split_once(',').unwrap_or((rest, ""));
            let size = part.strip_prefix("free=").ok_or_else(|| {
                format!("{part:?} is neither free=SIZE nor, as the last part, folder=PATH")
            })?;
            choice.free = Some(parse_bytes(size)?);
            rest = after;
        }
        Ok(choice)
    }
}

impl CacheArgs {
    /// The cache, if it is on.
    pub(crate) fn cache(&self) -> Option<ObjectCache> {
        let choice = self.cache.as_ref()?;
        choice.open(choice.limit?)
    }

    /// The cache to look at, on or off, and its limit.
    fn to_manage(&self) -> Result<(ObjectCache, Option<u64>), Failure> {
        let choice = self.cache.clone().unwrap_or_default();
        let unknown =
            "there is no cache folder: set HOME, or name one with --cache off,folder=PATH";
        let cache = choice.open(choice.limit.unwrap_or(0));
        Ok((cache.ok_or_else(|| Failure::Usage(unknown.into()))?, choice.limit))
    }
}

impl CacheChoice {
    fn open(&self, limit: u64) -> Option<ObjectCache> {
        let folder = self.folder.clone().or_else(ObjectCache::usual_folder)?;
        Some(ObjectCache::with(&folder, limit, self.free, |text| complain(&text)))
    }
}

pub(crate) fn run(args: &CacheVerbArgs) -> VerbResult {
    match &args.verb {
        CacheVerb::Info(of) => info(of),
        CacheVerb::Clear { urls, of } => clear(urls, of),
        CacheVerb::Verify(of) => verify(of),
    }
}

fn info(args: &OfCache) -> VerbResult {
    let (cache, limit) = args.cache.to_manage()?;
    let contents = cache.contents(&cancel_on_signal())?;
    if args.json {
        let objects: Vec<_> = contents.objects.iter().map(object_in_json).collect();
        return print_json(&json!({
            "schema": "thalweg.cache/1",
            "folder": cache.folder().display().to_string(),
            "limit_bytes": limit,
            "taken_bytes": contents.taken,
            "damaged_files": contents.damaged,
            "objects": objects,
        }));
    }
    let mut out = output();
    let limit = match limit {
        Some(limit) => format!("at most {}", decimal_bytes(limit as f64)),
        None => "off: --cache SIZE or THALWEG_CACHE=SIZE turns it on".into(),
    };
    let Contents { objects, taken, damaged } = &contents;
    writeln!(out, "folder   {}", escaped(&cache.folder().to_string_lossy()))?;
    writeln!(out, "limit    {limit}")?;
    writeln!(
        out,
        "taken    {} by {}",
        decimal_bytes(*taken as f64),
        counted(objects.len() as u64, "object")
    )?;
    if *damaged > 0 {
        let files = counted(*damaged as u64, "file");
        writeln!(out, "damaged  {files}: `thalweg cache verify` names and removes them")?;
    }
    for object in objects {
        writeln!(out, "{}", object_in_words(object))?;
    }
    out.flush()?;
    Ok(())
}

fn share(object: &CachedObject) -> f64 {
    object.cached as f64 / object.size.max(1) as f64
}

fn object_in_words(object: &CachedObject) -> String {
    let used = object
        .last_used
        .map_or_else(String::new, |time| format!(", used {} ago", age(unix_s(time) as u64)));
    format!(
        "{}  {} of {} ({:.0} %){used}",
        escaped(&object.url),
        decimal_bytes(object.cached as f64),
        decimal_bytes(object.size as f64),
        share(object) * 100.0,
    )
}

fn object_in_json(object: &CachedObject) -> serde_json::Value {
    json!({
        "url": &*object.url,
        "tag": &*object.tag,
        "bytes": object.size,
        "cached_bytes": object.cached,
        "share": share(object),
        "taken_bytes": object.taken,
        "used_at_unix_s": object.last_used.map(|time| unix_s(time) as u64),
    })
}

/// Whether a URL is that of one of the objects, or below it.
fn is_below(url: &str, above: &str) -> bool {
    let rest = url.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || above.ends_with('/'))
}

fn clear(urls: &[String], args: &OfCache) -> VerbResult {
    let (cache, _) = args.cache.to_manage()?;
    let control = cancel_on_signal();
    let wanted: Vec<String> = urls.iter().map(|url| shown(url)).collect();
    let cleared = if wanted.is_empty() {
        cache.clear_all(&control)?
    } else {
        cache.clear(|url| wanted.iter().any(|above| is_below(url, above)), &control)?
    };
    if args.json {
        return print_json(&json!({
            "schema": "thalweg.cache-clear/1",
            "folder": cache.folder().display().to_string(),
            "files": cleared.files,
            "bytes": cleared.bytes,
        }));
    }
    let mut out = output();
    let files = counted(cleared.files as u64, "file");
    writeln!(out, "removed {files}, {}", decimal_bytes(cleared.bytes as f64))?;
    out.flush()?;
    Ok(())
}

fn verify(args: &OfCache) -> VerbResult {
    let (cache, _) = args.cache.to_manage()?;
    let control = cancel_on_signal();
    let total = cache.contents(&control)?.objects.iter().map(|object| object.cached).sum();
    let progress = FetchProgress::watch(&control, total);
    let verified = cache.verify(default_threads(), &control)?;
    drop(progress);
    verified.damage.iter().for_each(|damage| complain(damage));
    if args.json {
        let damage: Vec<String> = verified.damage.iter().map(ToString::to_string).collect();
        print_json(&json!({
            "schema": "thalweg.cache-verify/1",
            "folder": cache.folder().display().to_string(),
            "blocks": verified.blocks,
            "bytes": verified.bytes,
            "damage": damage,
        }))?;
    } else {
        let mut out = output();
        let blocks = counted(verified.blocks, "block");
        let bytes = decimal_bytes(verified.bytes as f64);
        let damaged = match verified.damage.len() {
            0 => "nothing is damaged".to_owned(),
            count => format!("{count} damaged, and removed"),
        };
        writeln!(out, "{blocks}, {bytes}: {damaged}")?;
        out.flush()?;
    }
    ended(!verified.damage.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_a_size_and_more() {
        let parse = |text: &str| text.parse::<CacheChoice>();
        let choice = |limit, free, folder: Option<&str>| {
            Ok(CacheChoice { limit, free, folder: folder.map(PathBuf::from) })
        };
        assert_eq!(parse("20GB"), choice(Some(20_000_000_000), None, None));
        assert_eq!(parse("1MiB,free=2MiB"), choice(Some(1 << 20), Some(2 << 20), None));
        let least = Some(LEAST_LIMIT);
        assert_eq!(parse("1Mi,folder=/a,b=c"), choice(least, None, Some("/a,b=c")));
        assert_eq!(parse("1Mi,free=1,folder=x"), choice(least, Some(1), Some("x")));
        assert_eq!(parse("off,folder=x"), choice(None, None, Some("x")));
        assert_eq!(parse("off"), choice(None, None, None));
        assert_eq!(parse(""), choice(None, None, None));
        for wrong in ["x", "1Mi,x", "1Mi,free", "1Mi,folder=", "1Mi,folder", "-7"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let told = parse("10").unwrap_err();
        assert!(told.contains("10 bytes") && told.contains("as in 20GB"), "{told}");
    }

    #[test]
    fn a_prefix_ends_where_a_folder_does() {
        for (url, above, is) in [
            ("s3://b/run1/a", "s3://b/run1", true),
            ("s3://b/run1/a", "s3://b/run1/", true),
            ("s3://b/run1/a", "s3://b/run1/a", true),
            ("s3://b/run10/a", "s3://b/run1", false),
            ("s3://b/run1/a", "s3://b/run1/a/b", false),
            ("s3://b/a", "s3://b", true),
        ] {
            assert_eq!(is_below(url, above), is, "{url} {above}");
        }
    }
}
