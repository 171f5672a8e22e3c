//! `thalweg cache`: the blocks of objects at URLs that are kept on disc; and the option that keeps
//! them.

use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::json;
use thalweg::engine::default_threads;
use thalweg::text::escaped;
use thalweg_gauge::units::{decimal_bytes, unix_s};
use thalweg_io::object_cache::{CacheChoice, CachedObject, Contents, ObjectCache};
use thalweg_io::urls::shown;

use crate::common::{Failure, VerbResult, complain, counted, ended, output, print_json};
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

fn warn(text: &str) {
    complain(&text);
}

impl CacheArgs {
    /// The cache, if it is on.
    pub(crate) fn cache(&self) -> Option<ObjectCache> {
        self.cache.as_ref()?.cache(warn)
    }

    /// The cache to look at, on or off, and its limit.
    fn to_manage(&self) -> Result<(ObjectCache, Option<u64>), Failure> {
        let choice = self.cache.clone().unwrap_or_default();
        let unknown =
            "there is no cache folder: set HOME, or name one with --cache off,folder=PATH";
        let cache = choice.folder(warn).ok_or_else(|| Failure::Usage(unknown.into()))?;
        Ok((cache, choice.limit))
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
    let objects = counted(cleared.files as u64, "object");
    writeln!(out, "removed {objects}, {}", decimal_bytes(cleared.bytes as f64))?;
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
