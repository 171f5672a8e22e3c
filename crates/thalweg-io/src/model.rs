//! The store model: four numbers that tell what a store is good at.
//!
//! It starts from a prior by kind of file system and is replaced by what a probe measured, when the
//! user asked for that. The planner ([`plan`](crate::plan)) derives gaps, depths and
//! predicted times from it.

pub mod saved;

use std::fs::File;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// How a model came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The caller gave it.
    Given,
    /// A probe of this device measured it, that many seconds after 1970 began.
    Measured(u64),
    /// Assumed, by kind of file system.
    Prior,
}

/// What a store can do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StoreModel {
    /// Seconds from a request on an idle store to its first byte.
    pub latency_s: f64,
    /// Bytes a second, with [`StoreModel::depth`] requests of [`StoreModel::block`] bytes in
    /// flight.
    pub bandwidth: f64,
    /// Small requests answered a second, with many in flight.
    pub request_rate: f64,
    /// Requests in flight that reach the bandwidth.
    pub depth: usize,
    /// Bytes a request at which they do.
    pub block: usize,
}

impl StoreModel {
    /// A local solid-state disc, until it is measured: the slower half of what such discs do. Two
    /// requests are enough where the kernel reads ahead, and cost the decoders least; a run that
    /// starves goes deeper by itself.
    pub const LOCAL: Self =
        Self { latency_s: 100e-6, bandwidth: 1.5e9, request_rate: 75e3, depth: 2, block: 1 << 20 };
    /// A network file system with one server (NFS, SMB).
    pub const NETWORK: Self =
        Self { latency_s: 1e-3, bandwidth: 0.5e9, request_rate: 5e3, depth: 8, block: 1 << 20 };
    /// A parallel file system (Lustre, GPFS, BeeGFS, Ceph).
    pub const PARALLEL: Self =
        Self { latency_s: 0.5e-3, bandwidth: 2e9, request_rate: 10e3, depth: 16, block: 4 << 20 };
    /// A file system in user space (FUSE): mounted object stores, sshfs.
    pub const FUSE: Self =
        Self { latency_s: 5e-3, bandwidth: 0.3e9, request_rate: 1e3, depth: 16, block: 4 << 20 };
    /// A hard disc of 7,200 turns a minute: half a turn and a seek are 12 ms, and such discs carry
    /// 150 to 250 MB/s (data sheets of Seagate's Exos and Western Digital's Ultrastar). More
    /// requests in flight make it little faster.
    pub const HDD: Self =
        Self { latency_s: 12e-3, bandwidth: 180e6, request_rate: 120.0, depth: 2, block: 4 << 20 };
    /// A solid-state disc behind SATA, whose link carries 530 to 560 MB/s.
    pub const SSD: Self =
        Self { latency_s: 120e-6, bandwidth: 530e6, request_rate: 80e3, depth: 4, block: 1 << 20 };
    /// A solid-state disc behind four lanes of PCIe 3 or 4: the slower of them carry 3 GB/s.
    pub const NVME: Self =
        Self { latency_s: 80e-6, bandwidth: 3e9, request_rate: 300e3, depth: 8, block: 1 << 20 };
    /// Amazon's S3 in its own region: 5,500 GETs a second of a prefix, 85 to 90 MB/s a connection,
    /// a first byte after 30 ms and more (its performance guidelines), behind a link of 10 Gb/s.
    pub const S3: Self =
        Self { latency_s: 30e-3, bandwidth: 1.1e9, request_rate: 2e3, depth: 32, block: 8 << 20 };
    /// Memory: tmpfs, ramfs.
    pub const MEMORY: Self =
        Self { latency_s: 2e-6, bandwidth: 8e9, request_rate: 500e3, depth: 2, block: 1 << 20 };

    /// Names of priors, and what they are.
    pub const NAMED: [(&'static str, Self); 6] = [
        ("hdd", Self::HDD),
        ("ssd", Self::SSD),
        ("nvme", Self::NVME),
        ("nfs", Self::NETWORK),
        ("lustre", Self::PARALLEL),
        ("s3", Self::S3),
    ];

    /// The prior for the file system that `file` lies on.
    pub fn prior(file: &File) -> Self {
        rustix::fs::fstatfs(file).map_or(Self::LOCAL, |stat| Self::of_magic(stat.f_type as u64))
    }

    /// What is known best of the file system that `file` lies on: a model that was measured there
    /// and still counts, else the prior.
    pub fn known(file: &File) -> (Self, Origin) {
        let measured = || saved::load(&saved::folder()?, &saved::device(file)?, SystemTime::now());
        measured().map_or_else(
            || (Self::prior(file), Origin::Prior),
            |saved| (saved.model, Origin::Measured(saved.measured_at_unix_s)),
        )
    }

    /// File system magic numbers of statfs(2) and linux/magic.h.
    fn of_magic(magic: u64) -> Self {
        match magic & 0xffff_ffff {
            0x6969 | 0x517b | 0xff53_4d42 | 0xfe53_4d42 => Self::NETWORK,
            0x0bd0_0bd0 | 0x4750_4653 | 0x1983_0326 | 0x00c3_6400 => Self::PARALLEL,
            0x6573_5546 => Self::FUSE,
            0x0102_1994 | 0x8584_58f6 => Self::MEMORY,
            _ => Self::LOCAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_differ_by_file_system() {
        assert_eq!(StoreModel::of_magic(0x6969), StoreModel::NETWORK);
        assert_eq!(StoreModel::of_magic(0xef53), StoreModel::LOCAL);
        assert_eq!(StoreModel::of_magic(0x0bd0_0bd0), StoreModel::PARALLEL);
    }
}
