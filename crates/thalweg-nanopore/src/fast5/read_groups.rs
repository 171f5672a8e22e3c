//! The groups of a read, and their parser.

use std::ops::Range;

use thalweg_hdf5::arrays::ArrayFile;
use thalweg_hdf5::metadata as meta;
use thalweg_hdf5::metadata::{ByteSource, Link, Object, Reader, Refused, Superblock, Target, now};
use thalweg_hdf5::types::{SampleDataset, Storage, Value};
use thalweg_io::Fault;

/// Whether an HDF5 file has the groups of FAST5.
///
/// # Errors
/// [`Error::Malformed`](thalweg_io::Error::Malformed).
pub fn has_reads(file: &ArrayFile) -> thalweg_io::Result<bool> {
    let root = file.metadata().root();
    if root.links()?.iter().any(|link| link.name.starts_with(PREFIX)) {
        return Ok(true);
    }
    let raw = root.child("Raw")?;
    Ok(raw.map_or(Ok(None), |raw| raw.child("Reads"))?.is_some())
}

/// The prefix of a read's group in a multi-read file, before the read id.
pub(super) const PREFIX: &str = "read_";

/// Attributes by name.
pub(super) type Attributes = Vec<(String, Value)>;

/// Everything that a file holds of one read.
#[derive(Debug, PartialEq)]
pub struct FoundRead {
    /// The group, for messages.
    pub(super) path: String,
    /// The id in the group's name.
    pub(super) named: Option<String>,
    /// Attributes of the read's own group.
    pub(super) own: Attributes,
    pub(super) raw: Attributes,
    pub(super) channel: Attributes,
    /// The addresses of the groups that a run's reads share.
    pub(super) shared: SharedGroups,
    /// Unknown groups, in words.
    pub(super) others: Vec<String>,
    pub(super) signal: SampleDataset,
}

/// Addresses of groups that several reads share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct SharedGroups {
    pub(super) tracking_id: Option<u64>,
    pub(super) context_tags: Option<u64>,
}

impl FoundRead {
    /// Whether its id is that in the name of its group, as it should be.
    pub(crate) fn is_named_rightly(&self) -> bool {
        let id = self.raw.iter().find(|(name, _)| name == "read_id").map(|(_, value)| value);
        self.named.is_some()
            && id.is_none_or(|id| matches!(id, Value::Text(id) if Some(id) == self.named.as_ref()))
    }

    /// The range of the file that the signal lies in. It may contain other bytes.
    pub fn signal(&self) -> Range<u64> {
        match &self.signal.storage {
            Storage::Inline(_) | Storage::Contiguous(None) => 0..0,
            Storage::Contiguous(Some(at)) => {
                *at..at.saturating_add(self.signal.len.saturating_mul(2))
            }
            Storage::Chunked(_, chunks) => {
                let start = chunks.iter().map(|chunk| chunk.offset).min().unwrap_or(0);
                start..chunks.iter().map(|chunk| chunk.offset + chunk.size).max().unwrap_or(0)
            }
        }
    }
}

impl SharedGroups {
    /// Takes the address of a group. Returns whether it is a shared one.
    pub(super) fn take(&mut self, name: &str, at: u64) -> bool {
        match name {
            "tracking_id" => self.tracking_id = Some(at),
            "context_tags" => self.context_tags = Some(at),
            _ => return false,
        }
        true
    }

    /// The groups, with their names.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        [("tracking_id", self.tracking_id), ("context_tags", self.context_tags)]
            .into_iter()
            .filter_map(|(name, at)| Some((name, at?)))
    }
}

/// The group of a read: its address, and the id in its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadAddress {
    /// Address of the group's header.
    pub at: u64,
    /// The id.
    pub id: Box<str>,
}

/// A file's root group.
#[derive(Debug)]
pub struct Root {
    pub(super) superblock: Superblock,
    pub(super) attributes: Attributes,
    pub(super) reads: Reads,
    /// Unknown groups, in words.
    pub(super) others: Vec<String>,
}

/// The groups of the reads.
#[derive(Debug)]
pub(super) enum Reads {
    /// A group for each read, in the order of their addresses.
    Multi(Vec<ReadAddress>),
    /// Groups below `Raw/Reads`, and the groups that all of them share.
    Single { reads: Vec<ReadAddress>, channel_id: Option<u64>, shared: SharedGroups },
}

/// The largest size of one read's metadata, in bytes.
const MOST_OF_READ: u64 = 16 << 20;

impl Root {
    /// Parses a file's superblock and root group, reading at most `limit` bytes.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn parse(source: &dyn ByteSource, limit: u64) -> meta::Result<Self> {
        now(async {
            let reader = &Reader::open(source, limit).await?;
            let root = Object::read(reader, reader.superblock().root).await?;
            Self::of(reader, &root).await
        })
    }

    async fn of(reader: &Reader<'_>, root: &Object) -> meta::Result<Self> {
        let superblock = reader.superblock().clone();
        let mut reads = Vec::new();
        let mut others = Vec::new();
        let mut raw = None;
        let mut key = None;
        for (name, at) in children(root.links(reader).await?) {
            if let Some(id) = name.strip_prefix(PREFIX.as_bytes()) {
                let id = std::str::from_utf8(id)
                    .map_err(|_| Refused::Foreign("a read id that is no UTF-8".into()))?;
                reads.push(ReadAddress { at, id: id.into() });
                continue;
            }
            match &name[..] {
                b"Raw" => raw = Some(at),
                b"UniqueGlobalKey" => key = Some(at),
                _ => {}
            }
            others.push(format!("the group {}", String::from_utf8_lossy(&name)));
        }
        let attributes = root.values(reader).await?;
        let single = match raw {
            Some(raw) => Object::read(reader, raw).await?.child(reader, "Reads").await?,
            None => None,
        };
        let Some(single) = single else {
            reads.sort_by_key(|place| place.at);
            return Ok(Self { superblock, attributes, reads: Reads::Multi(reads), others });
        };
        others.extend(reads.drain(..).map(|place| format!("the group {PREFIX}{}", place.id)));
        others.retain(|group| {
            !["the group Raw", "the group UniqueGlobalKey"].contains(&group.as_str())
        });
        for (name, at) in children(Object::read(reader, single).await?.links(reader).await?) {
            reads.push(ReadAddress { at, id: String::from_utf8_lossy(&name).into() });
        }
        reads.sort_by_key(|place| place.at);
        let mut channel_id = None;
        let mut shared = SharedGroups::default();
        if let Some(key) = key {
            for (name, at) in children(Object::read(reader, key).await?.links(reader).await?) {
                let name = String::from_utf8_lossy(&name);
                if !shared.take(&name, at) && name == "channel_id" {
                    channel_id = Some(at);
                }
            }
        }
        let reads = Reads::Single { reads, channel_id, shared };
        Ok(Self { superblock, attributes, reads, others })
    }

    /// The offset of the file's superblock.
    pub(super) fn base(&self) -> u64 {
        self.superblock.base
    }

    /// The number of reads.
    pub fn len(&self) -> usize {
        match &self.reads {
            Reads::Multi(reads) | Reads::Single { reads, .. } => reads.len(),
        }
    }

    /// The groups of a multi-read file; empty for a single-read file.
    pub fn places(&self) -> &[ReadAddress] {
        match &self.reads {
            Reads::Multi(reads) => reads,
            Reads::Single { .. } => &[],
        }
    }

    /// Whether there are no reads.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Parses the groups of the read with this number.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn read(&self, source: &dyn ByteSource, number: usize) -> meta::Result<FoundRead> {
        let reader = &Reader::new(source, self.superblock.clone(), MOST_OF_READ);
        let none = || Refused::Foreign("a read number beyond the last read".into());
        match &self.reads {
            Reads::Multi(reads) => {
                let place = reads.get(number).ok_or_else(none)?;
                now(group(reader, place.at, Some(&place.id)))
            }
            Reads::Single { reads, channel_id, shared } => {
                let place = reads.get(number).ok_or_else(none)?;
                now(async {
                    let raw = Object::read(reader, place.at).await?;
                    Ok(FoundRead {
                        path: format!("/Raw/Reads/{}", place.id),
                        named: None,
                        own: Vec::new(),
                        raw: raw.values(reader).await?,
                        channel: attributes(reader, *channel_id).await?,
                        shared: *shared,
                        others: Vec::new(),
                        signal: signal(reader, &raw).await?,
                    })
                })
            }
        }
    }

    /// Parses the attributes of a shared group.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn attributes_at(
        source: &dyn ByteSource,
        superblock: &Superblock,
        at: u64,
    ) -> meta::Result<Attributes> {
        now(attributes(&Reader::new(source, superblock.clone(), MOST_OF_READ), Some(at)))
    }
}

/// The names of hard links, and the addresses that they lead to.
fn children(links: Vec<Link>) -> impl Iterator<Item = (Vec<u8>, u64)> {
    links.into_iter().filter_map(|link| match link.target {
        Target::Object(at) => Some((link.name, at)),
        _ => None,
    })
}

/// Parses the group of a read.
async fn group(reader: &Reader<'_>, at: u64, id: Option<&str>) -> meta::Result<FoundRead> {
    let read = Object::read(reader, at).await?;
    let mut raw = None;
    let mut channel_id = None;
    let mut shared = SharedGroups::default();
    let mut others = Vec::new();
    for (name, at) in children(read.links(reader).await?) {
        match &name[..] {
            b"Raw" => raw = Some(at),
            b"channel_id" => channel_id = Some(at),
            name => {
                let name = String::from_utf8_lossy(name);
                if !shared.take(&name, at) {
                    others.push(format!("the group {name}"));
                }
            }
        }
    }
    let Some(raw) = raw else {
        return Err(without(at, "a read", "a group Raw"));
    };
    let raw = Object::read(reader, raw).await?;
    Ok(FoundRead {
        path: id.map(|id| format!("/{PREFIX}{id}")).unwrap_or_default(),
        named: id.map(str::to_owned),
        own: read.values(reader).await?,
        raw: raw.values(reader).await?,
        channel: attributes(reader, channel_id).await?,
        shared,
        others,
        signal: signal(reader, &raw).await?,
    })
}

/// The error for a group at an address that lacks a part.
fn without(at: u64, group: &str, part: &str) -> Refused {
    Refused::Damaged(Fault {
        at,
        found: format!("{group} without {part}").into(),
        expected: part.to_owned().into(),
    })
}

async fn signal(reader: &Reader<'_>, raw: &Object) -> meta::Result<SampleDataset> {
    let Some(signal) = raw.child(reader, "Signal").await? else {
        return Err(without(raw.address, "a group Raw", "a dataset Signal"));
    };
    Object::read(reader, signal).await?.samples(reader).await
}

async fn attributes(reader: &Reader<'_>, at: Option<u64>) -> meta::Result<Attributes> {
    match at {
        Some(at) => Object::read(reader, at).await?.values(reader).await,
        None => Ok(Vec::new()),
    }
}
