//! Mounts a bucket with the library of Mountpoint for S3, in the foreground, until it is unmounted or SIGTERM comes.
//!
//! Threads, sizes of parts, memory, times to live and checksums are the defaults of Mountpoint's own command (`mount-s3` 1.24), and
//! options have its names. Other than it, this one addresses buckets by path, and never asks whether it runs on EC2: the bandwidth
//! that it aims for is the one that `mount-s3` takes elsewhere, 10 Gb/s. Keys come from the environment.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use mountpoint_s3_client::config::{AddressingStyle, S3ClientAuthConfig};
use mountpoint_s3_client::user_agent::UserAgent;
use mountpoint_s3_fs::data_cache::{
    CacheLimit, DataCacheConfig, DiskDataCacheConfig, ManagedCacheDir,
};
use mountpoint_s3_fs::fs::{CacheConfig, TimeToLive};
use mountpoint_s3_fs::fuse::config::{FuseOptions, FuseSessionConfig, MountPoint};
use mountpoint_s3_fs::fuse::session::FuseSession;
use mountpoint_s3_fs::logging::{LoggingConfig, init_logging};
use mountpoint_s3_fs::memory::{
    CandidateSize, MINIMUM_MEM_LIMIT, PagedPool, effective_total_memory,
};
use mountpoint_s3_fs::s3::config::{
    ClientConfig, MemoryLimitSetting, PartConfig, Region, TargetThroughputSetting,
};
use mountpoint_s3_fs::s3::{Bucket, Prefix, S3Path};
use mountpoint_s3_fs::{
    MountpointConfig, Runtime, S3FilesystemConfig, Superblock, SuperblockConfig, metrics,
};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Settings of jemalloc in `mount-s3`. It reads them from this symbol when it starts.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static SETTINGS: &[u8] = b"background_thread:true,narenas:32\0";

const THREADS: usize = 16;
const PART: usize = 8 << 20;
const CACHE_BLOCK: usize = 1 << 20;
const CACHED_METADATA: Duration = Duration::from_secs(60);
const POOL_UPKEEP: Duration = Duration::from_secs(60);

/// Mounts a bucket with the library of Mountpoint for S3.
#[derive(Parser)]
struct Arguments {
    bucket: String,
    folder: PathBuf,
    /// Address of the service
    #[arg(long)]
    endpoint_url: Option<String>,
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// Show only keys that begin so; ends in `/`
    #[arg(long, default_value = "")]
    prefix: String,
    /// Keep what is read in this folder, and names for a minute
    #[arg(long)]
    cache: Option<PathBuf>,
    #[arg(long)]
    read_only: bool,
    #[arg(long)]
    allow_delete: bool,
    #[arg(long)]
    allow_overwrite: bool,
    /// Sign no request
    #[arg(long)]
    no_sign_request: bool,
}

impl Arguments {
    fn client(&self, memory: MemoryLimitSetting) -> anyhow::Result<ClientConfig> {
        Ok(ClientConfig {
            region: Region::new_user_specified(self.region.clone()),
            endpoint_url: self.endpoint_url.clone(),
            addressing_style: AddressingStyle::Path,
            dual_stack: false,
            transfer_acceleration: false,
            auth_config: match self.no_sign_request {
                true => S3ClientAuthConfig::NoSigning,
                false => S3ClientAuthConfig::Default,
            },
            requester_pays: false,
            expected_bucket_owner: None,
            throughput_target: TargetThroughputSetting::Default,
            bind: None,
            part_config: PartConfig::with_part_size(PART).validate(memory)?,
            user_agent: UserAgent::new(Some("thalweg-mountpoint-peer".to_owned())),
            tls_config: None,
        })
    }

    fn file_system(&self) -> S3FilesystemConfig {
        let lives = match self.cache {
            Some(_) => TimeToLive::Duration(CACHED_METADATA),
            None => TimeToLive::Minimal,
        };
        S3FilesystemConfig {
            cache_config: CacheConfig::new(lives),
            allow_delete: self.allow_delete,
            allow_overwrite: self.allow_overwrite,
            read_only: self.read_only,
            ..S3FilesystemConfig::default()
        }
    }

    fn session(&self) -> anyhow::Result<FuseSessionConfig> {
        let options = FuseOptions { read_only: self.read_only, ..FuseOptions::default() };
        FuseSessionConfig::new(MountPoint::new(&self.folder)?, options, THREADS)
    }

    /// Where what is read is kept. The folder is emptied now, and when the second value is dropped.
    fn data_cache(&self) -> anyhow::Result<(DataCacheConfig, Option<ManagedCacheDir>)> {
        let Some(above) = &self.cache else {
            return Ok((DataCacheConfig::default(), None));
        };
        let folder = ManagedCacheDir::new_from_parent_with_cache_key(above, None, true)?;
        let disc = DiskDataCacheConfig {
            cache_directory: folder.as_path_buf(),
            block_size: CACHE_BLOCK as u64,
            limit: CacheLimit::default(),
        };
        let config = DataCacheConfig { disk_cache_config: Some(disc), express_cache_config: None };
        Ok((config, Some(folder)))
    }

    fn mount(&self) -> anyhow::Result<FuseSession> {
        // 95 % of what the control group allows.
        let memory = (effective_total_memory() as f64 * 0.95) as usize;
        let memory = MemoryLimitSetting::Default(memory.max(MINIMUM_MEM_LIMIT));
        let client = self.client(memory)?;
        let pool = PagedPool::config()
            .with_candidate_sizes([
                CandidateSize::prunable(CACHE_BLOCK),
                CandidateSize::prunable(client.part_config.read_size_bytes),
                CandidateSize::new(client.part_config.write_size_bytes),
            ])
            .with_memory_limit(memory.bytes())
            .with_maintenance_interval(POOL_UPKEEP)
            .build();
        let path = S3Path::new(Bucket::new(self.bucket.as_str())?, Prefix::new(&self.prefix)?);
        let client = client.create_client(pool.clone(), Some(&path))?;
        let runtime = Runtime::new(client.event_loop_group());
        let file_system = self.file_system();
        let names = SuperblockConfig {
            cache_config: file_system.cache_config.clone(),
            s3_personality: file_system.s3_personality,
        };
        let names = Superblock::new(client.clone(), path, names);
        let (cache, cache_folder) = self.data_cache()?;
        let mut session = MountpointConfig::new(self.session()?, file_system, cache)?
            .create_fuse_session(names, client, runtime, pool)?;
        session.run_on_close(Box::new(move || drop(cache_folder)));
        Ok(session)
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let _logging = init_logging(LoggingConfig {
        log_file: None,
        log_to_stdout: true,
        default_filter: "error,awscrt=off".to_owned(),
    })?;
    let _metrics = metrics::install(None)?;
    let session = arguments.mount().context("cannot mount")?;
    session.join()
}
