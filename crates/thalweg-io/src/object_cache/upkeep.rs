//! What is in the cache, checking it, and taking it out.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::ObjectCache;
use super::around::range;
use super::header::{BLOCK, BYTES, ObjectId, TABLE};
use super::room::{Found, remove, sections};
use super::section::{Section, Wait};
use crate::control::Control;
use crate::error::{Error, Fault, InFile, Result};
use crate::pool;

/// One version of an object in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedObject {
    /// The URL, without what may be secret.
    pub url: Arc<str>,
    /// The tag of the version.
    pub tag: Arc<str>,
    /// Bytes of the object.
    pub size: u64,
    /// Bytes of it that are in the cache.
    pub cached: u64,
    /// Bytes that these take on the disc.
    pub taken: u64,
    /// When it was read or fetched last, by the clock of the file system.
    pub last_used: Option<SystemTime>,
}

/// What is in the cache.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    /// The objects, in the order of their URLs.
    pub objects: Vec<CachedObject>,
    /// Bytes on the disc, those of damaged files included.
    pub taken: u64,
    /// Files that are damaged as a whole.
    pub damaged: usize,
}

/// What was taken out of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cleared {
    /// Objects, of which one of over 64 GiB counts once for each of these.
    pub files: usize,
    /// Bytes on the disc.
    pub bytes: u64,
}

/// What a check of the cache found.
#[derive(Debug, Default)]
pub struct Verified {
    /// Blocks that were read.
    pub blocks: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// What was damaged, and is removed now.
    pub damage: Vec<Error>,
}

impl ObjectCache {
    /// What is in the cache.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be listed; [`Error::Cancelled`].
    pub fn contents(&self, control: &Control) -> Result<Contents> {
        let mut contents = Contents::default();
        let mut objects = BTreeMap::new();
        for (found, section) in self.sections()? {
            control.check()?;
            contents.taken += found.taken;
            let Ok(section) = section else {
                contents.damaged += 1;
                continue;
            };
            let ObjectId { url, tag, size, hash } = section.header.id.clone();
            let object = objects.entry((url.clone(), hash)).or_insert_with(|| CachedObject {
                url,
                tag,
                size,
                cached: 0,
                taken: 0,
                last_used: None,
            });
            object.cached += present(&section).map(|(block, _)| len(size, block)).sum::<u64>();
            object.taken += found.taken;
            let changed = section.table.metadata().and_then(|meta| meta.modified()).ok();
            object.last_used = object.last_used.max(changed);
        }
        contents.objects = objects.into_values().collect();
        Ok(contents)
    }

    /// Takes out the objects whose URL, without what may be secret, is `wanted`.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be removed; [`Error::Cancelled`].
    pub fn clear(&self, wanted: impl Fn(&str) -> bool, control: &Control) -> Result<Cleared> {
        self.remove_if(control, |section| {
            section.as_ref().is_ok_and(|section| wanted(&section.header.id.url))
        })
    }

    /// Takes out everything, damaged files included.
    ///
    /// # Errors
    /// Those of [`ObjectCache::clear`].
    pub fn clear_all(&self, control: &Control) -> Result<Cleared> {
        self.remove_if(control, |_| true)
    }

    fn remove_if(
        &self,
        control: &Control,
        is_wanted: impl Fn(&Result<Section>) -> bool,
    ) -> Result<Cleared> {
        let mut cleared = Cleared::default();
        for (found, section) in self.sections()? {
            control.check()?;
            if is_wanted(&section) {
                remove(&found.path).map_err(|e| Error::io(&name(&found.path), "removing", e))?;
                cleared.files += 1;
                cleared.bytes += found.taken;
            }
        }
        Ok(cleared)
    }

    /// Reads all blocks, on some threads, and takes out those that are damaged. `control` counts
    /// the bytes that were read; [`Contents::objects`] have how many there are.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be listed or changed; [`Error::Cancelled`].
    pub fn verify(&self, threads: usize, control: &Control) -> Result<Verified> {
        let parts = pool::try_map(threads, self.found()?, |found| match open(&found) {
            Some(Ok(section)) => verify(&found, &section, control),
            Some(Err(error)) => {
                remove(&found.path).map_err(|e| Error::io(&name(&found.path), "removing", e))?;
                Ok(Verified { damage: vec![error], ..Verified::default() })
            }
            None => Ok(Verified::default()),
        })?;
        let mut all = Verified::default();
        for part in parts {
            all.blocks += part.blocks;
            all.bytes += part.bytes;
            all.damage.extend(part.damage);
        }
        Ok(all)
    }

    /// The files of the cache.
    fn found(&self) -> Result<Vec<Found>> {
        sections(self.folder()).map_err(|e| Error::io(&name(self.folder()), "listing", e))
    }

    /// The files of the cache, each opened when it has its turn.
    fn sections(&self) -> Result<impl Iterator<Item = (Found, Result<Section>)>> {
        let opened = |found: Found| open(&found).map(|section| (found, section));
        Ok(self.found()?.into_iter().filter_map(opened))
    }
}

fn name(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

/// Opens a section. `None` if another process has removed both of its files.
fn open(found: &Found) -> Option<Result<Section>> {
    let is_there = || [TABLE, BYTES].iter().any(|file| found.path.with_extension(file).exists());
    match Section::at(&found.path) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound && !is_there() => {
            None
        }
        section => Some(section),
    }
}

/// The numbers and checksums of the blocks that a section has.
fn present(section: &Section) -> impl Iterator<Item = (u64, u64)> {
    let blocks = section.header.blocks();
    let sums = section.sums(blocks.clone(), Wait::Yes);
    blocks.zip(sums).filter(|(_, sum)| *sum != 0)
}

fn len(size: u64, block: u64) -> u64 {
    let range = range(size, block);
    range.end - range.start
}

/// Reads the blocks of a section, and takes out those that are damaged.
fn verify(found: &Found, section: &Section, control: &Control) -> Result<Verified> {
    let mut done = Verified::default();
    let name = name(&found.path);
    let id = &section.header.id;
    for (block, sum) in present(section) {
        control.check()?;
        let mut bytes = vec![0; len(id.size, block) as usize];
        let is_damaged = section.read(block, &mut bytes, &[sum], Wait::Yes).next().is_some();
        done.blocks += 1;
        done.bytes += bytes.len() as u64;
        control.add_fetched(bytes.len() as u64);
        if is_damaged {
            section.remove(block).map_err(|e| Error::io(&name, "removing a block of", e))?;
            let what = format!("bytes {} of {}", block * BLOCK, id.url);
            let fault = Fault::new(0, "other bytes", "those of the checksum");
            let bytes = self::name(&found.path.with_extension(BYTES));
            done.damage.push(fault.in_file(&bytes, section.place(block), what));
        }
    }
    Ok(done)
}
