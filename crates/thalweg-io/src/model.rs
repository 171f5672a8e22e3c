//! The store model: numbers that describe the performance of a store.
//!
//! The first model of a store is a prior, chosen by the kind of file system. A probe, which the
//! user starts, replaces it by measured numbers. The planner ([`plan`](crate::plan)) derives gaps,
//! depths and predicted times from it.

pub mod saved;
mod slowest;

use std::fs::File;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// The origin of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The caller gave it.
    Given,
    /// A probe of this device measured it, at this Unix time in seconds.
    Measured(u64),
    /// It is assumed from the kind of file system.
    Prior,
    /// It is that of the disc which has nearly all of an object at a URL in a cache.
    Cache,
}

/// The performance of a store.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StoreModel {
    /// Seconds from a request on an idle store to its first byte. If latencies vary much, the
    /// median.
    pub latency_s: f64,
    /// Seconds within which 99 of 100 requests have their first byte, if latencies vary much. Slow
    /// requests are made a second time, and the first answer counts.
    #[serde(default)]
    pub latency_p99_s: Option<f64>,
    /// Bytes per second, with [`StoreModel::depth`] requests of [`StoreModel::block`] bytes in
    /// flight.
    pub bandwidth: f64,
    /// Bytes per second of one connection, if there is one for each request in flight.
    #[serde(default)]
    pub connection: Option<f64>,
    /// Small requests answered per second, with many in flight.
    pub request_rate: f64,
    /// Requests in flight at which the store reaches the bandwidth.
    pub depth: usize,
    /// Bytes per request at which the store reaches the bandwidth.
    pub block: usize,
}

impl StoreModel {
    /// A local solid-state disc that has not been measured. The numbers describe the slower half of
    /// such discs. Two requests in flight are enough where the kernel reads ahead, and take the
    /// least processor time from decoding; a run whose workers starve raises the depth.
    pub const LOCAL: Self = Self {
        latency_s: 100e-6,
        latency_p99_s: None,
        bandwidth: 1.5e9,
        connection: None,
        request_rate: 75e3,
        depth: 2,
        block: 1 << 20,
    };
    /// A network file system with one server (NFS, SMB).
    pub const NETWORK: Self = Self {
        latency_s: 1e-3,
        bandwidth: 0.5e9,
        request_rate: 5e3,
        depth: 8,
        block: 1 << 20,
        ..Self::LOCAL
    };
    /// A parallel file system (Lustre, GPFS, BeeGFS, Ceph).
    pub const PARALLEL: Self = Self {
        latency_s: 0.5e-3,
        bandwidth: 2e9,
        request_rate: 10e3,
        depth: 16,
        block: 4 << 20,
        ..Self::LOCAL
    };
    /// A file system in user space (FUSE): mounted object stores, sshfs.
    pub const FUSE: Self = Self {
        latency_s: 5e-3,
        bandwidth: 0.3e9,
        request_rate: 1e3,
        depth: 16,
        block: 4 << 20,
        ..Self::LOCAL
    };
    /// A hard disc at 7,200 revolutions per minute. Half a revolution plus a seek takes 12 ms; such
    /// discs transfer 150 to 250 MB/s (data sheets of Seagate's Exos and Western Digital's
    /// Ultrastar). More requests in flight gain little.
    pub const HDD: Self = Self {
        latency_s: 12e-3,
        bandwidth: 180e6,
        request_rate: 120.0,
        depth: 2,
        block: 4 << 20,
        ..Self::LOCAL
    };
    /// A solid-state disc on SATA, whose link transfers 530 to 560 MB/s.
    pub const SSD: Self = Self {
        latency_s: 120e-6,
        bandwidth: 530e6,
        request_rate: 80e3,
        depth: 4,
        block: 1 << 20,
        ..Self::LOCAL
    };
    /// A solid-state disc on four lanes of PCIe 3 or 4. The slower of these discs transfer 3 GB/s.
    pub const NVME: Self = Self {
        latency_s: 80e-6,
        bandwidth: 3e9,
        request_rate: 300e3,
        depth: 8,
        block: 1 << 20,
        ..Self::LOCAL
    };
    /// Amazon's S3, read from its own region over a link of 10 Gb/s: 5,500 GETs per second and
    /// prefix, 85 to 90 MB/s per connection, and at least 30 ms to the first byte (S3 performance
    /// guidelines). 99 of 100 first bytes come within 140 ms; without second requests, within
    /// 200 ms.
    pub const S3: Self = Self {
        latency_s: 30e-3,
        latency_p99_s: Some(140e-3),
        bandwidth: 1.1e9,
        connection: Some(85e6),
        request_rate: 5.5e3,
        depth: 32,
        block: 8 << 20,
    };
    /// Memory: tmpfs, ramfs.
    pub const MEMORY: Self = Self {
        latency_s: 2e-6,
        bandwidth: 8e9,
        request_rate: 500e3,
        depth: 2,
        block: 1 << 20,
        ..Self::LOCAL
    };

    /// Priors that the user can select by name.
    pub const NAMED: [(&'static str, Self); 6] = [
        ("hdd", Self::HDD),
        ("ssd", Self::SSD),
        ("nvme", Self::NVME),
        ("nfs", Self::NETWORK),
        ("lustre", Self::PARALLEL),
        ("s3", Self::S3),
    ];

    /// The prior for the file system that holds `file`.
    pub fn prior(file: &File) -> Self {
        rustix::fs::fstatfs(file).map_or(Self::LOCAL, |stat| Self::of_magic(stat.f_type as u64))
    }

    /// The best known model of the file system that holds `file`: a measured model that has not
    /// expired, else the prior.
    pub fn known(file: &File) -> (Self, Origin) {
        let measured = || saved::load(&saved::folder()?, &saved::device(file)?, SystemTime::now());
        measured().map_or_else(
            || (Self::prior(file), Origin::Prior),
            |saved| (saved.model, Origin::Measured(saved.measured_at_unix_s)),
        )
    }

    /// The prior for a file system magic number of statfs(2) and linux/magic.h.
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
