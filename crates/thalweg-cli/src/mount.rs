//! `thalweg mount`: the objects below a URL as files of a folder.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use rustix::mount::UnmountFlags;
use rustix::process::setsid;
use rustix::stdio::{dup2_stderr, dup2_stdout};
use sd_notify::NotifyState;
use thalweg::Options;
use thalweg::control::Control;
use thalweg::text::Shown;
use thalweg_io::object_cache::CacheChoice;
use thalweg_io::urls::shown;
use thalweg_mount::{
    Close, ENDED, FLUSH, METRICS, Mount, MountOptions, NotRecovered, STATUS, WriteOptions,
};

use crate::cache::CacheArgs;
use crate::common::{Failure, VerbResult, complain, output, parse_bytes, shown_path};
use crate::open::TimeoutArgs;
use crate::signals::{cancel_on_signal, stop_on_signal};

/// Show the objects of a bucket as files of a folder
///
/// Any program can read and write the files. With --cache, what was read is kept on disc; files
/// that are complete there are as fast as local ones. The command returns once the folder is
/// mounted. `umount DIR` ends it, or `fusermount3 -u DIR` for who is not root.
///
/// A file is one version of an object. Reading on in one whose object was replaced fails (ESTALE);
/// who opens it again gets the new version.
///
/// What is written waits in a folder of this machine (--staging) until the store has it. With
/// --close durable, closing a file waits for the store. If the mount is killed, the next mount of
/// the same URL stores what was closed; --recover does the same without mounting.
///
/// Example: thalweg mount s3://bucket/runs /mnt/runs --cache 100GB
///
/// Example: thalweg mount s3://bucket/work /mnt/work --close staged --staging 200GB
///
/// Example: thalweg mount --unmount /mnt/work
#[derive(Debug, Args)]
pub(crate) struct MountArgs {
    /// A bucket or a prefix in it: s3://, gs:// or az://. s3:// alone mounts all buckets
    #[arg(value_name = "URL")]
    #[arg(required_unless_present_any = ["status", "flush", "unmount", "recover"])]
    #[arg(requires = "folder")]
    source: Option<String>,
    /// The folder to mount it on
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Show what the mount on DIR does: one JSON line
    #[arg(long, value_name = "DIR", conflicts_with_all = ["source", "folder"])]
    status: Option<PathBuf>,
    /// Bring all that was written in the mount on DIR to the store
    #[arg(long, value_name = "DIR", conflicts_with_all = ["source", "folder", "status"])]
    flush: Option<PathBuf>,
    /// Bring all that was written in the mount on DIR to the store, and unmount it. If something
    /// cannot be stored, or is open, it stays mounted
    #[arg(long, value_name = "DIR", conflicts_with_all = ["source", "folder", "status", "flush"])]
    unmount: Option<PathBuf>,
    /// Bring to the store what mounts of URL have left that were killed
    #[arg(long, value_name = "URL")]
    #[arg(conflicts_with_all = ["source", "folder", "status", "flush", "unmount"])]
    recover: Option<String>,
    /// What is promised when a program closes a file that it wrote: `durable`, that the object is
    /// visible; `staged`, that its bytes are on this machine's disc (then fsync and --flush wait
    /// for the store)
    #[arg(long, value_name = "WHEN", default_value = "durable", conflicts_with = "read_only")]
    close: ClosePromise,
    /// Where bytes wait until the store has them: the most of them, as in 200GB, or in
    /// 200GB,free=50GB,folder=/scratch/staging to leave 50 GB free there (default: any number, with
    /// a twentieth of the file system left free, in ~/.local/state/thalweg/staging)
    #[arg(long, value_name = "SIZE", conflicts_with = "read_only", env = "THALWEG_STAGING")]
    #[arg(hide_env = true, value_parser = staging)]
    staging: Option<CacheChoice>,
    /// Mount it so that nothing can be changed
    #[arg(long)]
    read_only: bool,
    /// Ask for the permissions, times and extended attributes of each file that is looked up, which
    /// are in the metadata of its object: a request for each file
    #[arg(long, conflicts_with = "read_only")]
    attributes: bool,
    /// --status: in the text format of Prometheus
    #[arg(long, requires = "status")]
    prometheus: bool,
    /// Stay in the foreground; Ctrl-C unmounts
    #[arg(long)]
    foreground: bool,
    /// Memory for what is fetched ahead, over all files (default: 1 GiB, or less on small machines)
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// Seconds for which names, sizes and lists are taken for right
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    ttl: Duration,
    /// Take them for right for good: nothing in the bucket changes
    #[arg(long, conflicts_with = "ttl")]
    immutable: bool,
    /// Let other users use the files, too, as their permissions say
    #[arg(long)]
    allow_other: bool,
    /// The owner of the files, as a number (default: yours)
    #[arg(long, value_parser = number)]
    uid: Option<u32>,
    /// The group of the files, as a number (default: yours)
    #[arg(long, value_parser = number)]
    gid: Option<u32>,
    /// Permissions that nobody has, in octal digits
    #[arg(long, value_name = "DIGITS", default_value = "022", value_parser = octal)]
    umask: u32,
    /// Have this program read files that are complete in the cache, and not the kernel alone
    #[arg(long)]
    no_passthrough: bool,
    /// Have the kernel collect what programs write, so that they need not wait for this program at
    /// each write. One that fails is told by close or fsync. Turns off FUSE passthrough
    #[arg(long, conflicts_with = "read_only")]
    write_back: bool,
    /// Write errors of operations to a file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The process that answers the kernel.
    #[arg(long, hide = true)]
    daemon: bool,
    #[command(flatten)]
    cache: CacheArgs,
    #[command(flatten)]
    timeout: TimeoutArgs,
}

/// [`Close`] as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ClosePromise {
    Durable,
    Staged,
}

impl From<ClosePromise> for Close {
    fn from(promise: ClosePromise) -> Self {
        match promise {
            ClosePromise::Durable => Self::Durable,
            ClosePromise::Staged => Self::Staged,
        }
    }
}

/// Names and sizes that never change.
const FOR_GOOD: Duration = Duration::from_secs(365 * 24 * 3600);
/// What the daemon says once the folder is mounted.
const READY: &str = "ready";

/// The least memory: each read of the kernel has up to 1 MiB, and some come at the same time.
const LEAST_MEMORY: u64 = 16 << 20;

fn memory(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes(text)?;
    if bytes >= LEAST_MEMORY { Ok(bytes) } else { Err("give 16 MiB or more".into()) }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "give seconds, as in 5 or 0.5")?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn octal(text: &str) -> Result<u32, String> {
    let mask = u32::from_str_radix(text, 8).map_err(|_| "give octal digits, as in 022")?;
    if mask <= 0o777 { Ok(mask) } else { Err("no more than 777".into()) }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "give a number, as `id` shows it".into())
}

fn staging(text: &str) -> Result<CacheChoice, String> {
    // Without a size, any number of bytes may wait.
    let has_size = !["folder=", "free="].iter().any(|option| text.starts_with(option));
    if has_size { text.parse() } else { format!(",{text}").parse() }
}

pub(crate) fn run(args: &MountArgs) -> VerbResult {
    if let Some(folder) = &args.status {
        return status(&top_of(folder), args.prometheus);
    }
    if let Some(folder) = &args.flush {
        return flush(&top_of(folder));
    }
    if let Some(folder) = &args.unmount {
        return unmount(&top_of(folder));
    }
    if let Some(source) = &args.recover {
        return recover(args, source);
    }
    let (Some(source), Some(folder)) = (&args.source, &args.folder) else {
        return Err(Failure::Usage("give a URL and a folder".into()));
    };
    if folder.to_string_lossy().contains("://") && !source.contains("://") {
        return Err(Failure::Usage("give the URL first, and then the folder".into()));
    }
    // The daemon that a command starts comes here, too.
    if getxattr(folder, STATUS, &mut [0; 0]).is_ok() {
        let why = "a bucket is mounted here already: unmount it before (umount)";
        return Err(Failure::Said(format!("{}: {why}", shown_path(folder))));
    }
    if args.foreground || args.daemon { serve(args, source, folder) } else { start_daemon() }
}

/// The folder that is mounted which a path is in, or the path if there is none.
fn top_of(path: &Path) -> PathBuf {
    let Ok(path) = path.canonicalize() else { return path.to_owned() };
    let is_top = |folder: &&Path| getxattr(*folder, STATUS, &mut [0; 0]).is_ok();
    path.ancestors().find(is_top).unwrap_or(&path).to_owned()
}

/// Shows the status of a mount, which its root has as an extended attribute.
fn status(folder: &Path, as_metrics: bool) -> VerbResult {
    let text = status_of(folder, if as_metrics { METRICS } else { STATUS })?;
    let mut out = output();
    out.write_all(text.trim_ascii_end())?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// The status that the root of a mount has as an extended attribute.
fn status_of(folder: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let mut text = vec![0; 64 << 10];
    let len = getxattr(folder, name, &mut text).map_err(|error| {
        let why = match error {
            rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP => {
                "nothing is mounted here by thalweg: name the folder that was given to \
                 `thalweg mount`"
                    .to_owned()
            }
            rustix::io::Errno::NOTCONN => ENDED.to_owned(),
            error => io::Error::from(error).to_string(),
        };
        Failure::Said(format!("{}: {why}", shown_path(folder)))
    })?;
    text.truncate(len);
    Ok(text)
}

/// Has a mount bring to the store what was written.
fn flush(folder: &Path) -> VerbResult {
    // Another file system would take the attribute for one of its own.
    status_of(folder, STATUS)?;
    let flushed = setxattr(folder, FLUSH, b"", XattrFlags::empty());
    if flushed == Err(rustix::io::Errno::ROFS) {
        // Nothing was written in a mount that can only be read.
        return Ok(());
    }
    flushed.map_err(|error| {
        let why = match error {
            rustix::io::Errno::IO => {
                let failures = failures_of(folder);
                failures.iter().for_each(|failure| complain(failure));
                match failures.len() {
                    1 => "a file could not be stored".to_owned(),
                    _ => "some files could not be stored: see --status".to_owned(),
                }
            }
            error => io::Error::from(error).to_string(),
        };
        Failure::Said(format!("{}: {why}", shown_path(folder)))
    })
}

/// Has a mount bring to the store what was written, and unmounts it.
fn unmount(folder: &Path) -> VerbResult {
    flush(folder)?;
    let failed = |error: io::Error| Failure::Said(format!("{}: {error}", shown_path(folder)));
    match rustix::mount::unmount(folder, UnmountFlags::empty()) {
        // Who is not root asks a program that may.
        Err(rustix::io::Errno::PERM) => {
            let status = Command::new("fusermount3").arg("-u").arg("--").arg(folder).status();
            match status.map_err(failed)?.success() {
                true => Ok(()),
                false => Err(Failure::Said(format!("{}: not unmounted", shown_path(folder)))),
            }
        }
        unmounted => unmounted.map_err(|error| failed(error.into())),
    }
}

/// Why files of a mount could not be stored.
fn failures_of(folder: &Path) -> Vec<String> {
    let status = status_of(folder, STATUS).ok();
    let status = status.and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    let errors = status.and_then(|status| Some(status["unstored_errors"].as_array()?.clone()));
    let text = |error: serde_json::Value| error.as_str().map(str::to_owned);
    errors.unwrap_or_default().into_iter().filter_map(text).collect()
}

/// Brings to the store what killed mounts have left.
fn recover(args: &MountArgs, source: &str) -> VerbResult {
    let control = cancel_on_signal();
    let NotRecovered { failed, living } = thalweg_mount::recover(
        source,
        read_options(args, control),
        &write_options(args),
        complain_of,
    )
    .map_err(Failure::of_argument)?;
    if failed == 0 && living > 0 {
        let why = "what mounts have that have not ended is not recovered: wait until they end";
        return Err(Failure::Said(format!("{}: {why}", shown(source))));
    }
    if failed == 0 {
        return Ok(());
    }
    let files = if failed == 1 { "file" } else { "files" };
    Err(Failure::Said(format!(
        "{failed} {files} could not be stored, and stay in the folder for staging"
    )))
}

fn complain_of(text: &str) {
    complain(&text);
}

/// Writes a line of a log, which several mounts may share.
fn log_line(text: &str) {
    let (time, process) = (Timestamp::now(), std::process::id());
    let _ = writeln!(io::stderr(), "{time:.3} [{process}] {}", Shown(&text));
}

fn read_options(args: &MountArgs, control: Control) -> Options {
    let (cache, timeout) = (args.cache.cache(), args.timeout.timeout());
    Options { control, cache, timeout, ..Options::default() }
}

fn write_options(args: &MountArgs) -> WriteOptions {
    let CacheChoice { limit, free, folder } = args.staging.clone().unwrap_or_default();
    WriteOptions { close: args.close.into(), staging: folder, limit, free }
}

/// Starts this command once more as a daemon, and waits until it is ready.
fn start_daemon() -> VerbResult {
    let started = |error: io::Error| Failure::Said(format!("starting the daemon: {error}"));
    let mut daemon = Command::new(std::env::current_exe().map_err(started)?)
        .args(std::env::args_os().skip(1))
        .arg("--daemon")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(started)?;
    let mut line = String::new();
    if let Some(said) = daemon.stdout.take() {
        // A daemon that ends says why itself.
        let _ = BufReader::new(said).read_line(&mut line);
    }
    if line.trim() == READY {
        return Ok(());
    }
    let status = daemon.wait().map_err(started)?;
    std::process::exit(status.code().unwrap_or(1));
}

/// Mounts, and answers the kernel until the folder is unmounted.
fn serve(args: &MountArgs, source: &str, folder: &Path) -> VerbResult {
    let log = args.log.as_ref().map(|path| {
        let opened = File::options().create(true).append(true).open(path);
        opened.map_err(|error| Failure::Said(format!("{}: {error}", shown_path(path))))
    });
    let log = log.transpose()?;
    let mut mount = Mount::new(MountOptions {
        source: source.to_owned(),
        folder: folder.to_owned(),
        read: read_options(args, Control::new()),
        write: (!args.read_only).then(|| write_options(args)),
        asks: args.attributes,
        memory: args.memory,
        ttl: if args.immutable { FOR_GOOD } else { args.ttl },
        allow_other: args.allow_other,
        uid: args.uid,
        gid: args.gid,
        umask: args.umask,
        passes_through: !args.no_passthrough,
        writes_back: args.write_back,
        warn: if args.log.is_some() { log_line } else { complain_of },
    })
    .map_err(Failure::of_argument)?;
    let mut unmounter = mount.unmounter();
    let name = shown_path(folder);
    stop_on_signal(move |again| {
        if again {
            return complain(&format!(
                "{name}: this daemon ends once all that was written is stored, or stays in the \
                 folder for staging"
            ));
        }
        // Only a service manager that waits for it gets this.
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        match unmounter.unmount() {
            Ok(false) => {}
            Ok(true) => complain(&format!(
                "programs have files in {name} open: it is unmounted, and this daemon ends once \
                 they have closed them"
            )),
            Err(error) => complain(&format!("unmounting {name}: {error}")),
        }
    });
    let is_daemon = args.daemon;
    let mounted = format!("{} is mounted on {}", shown(source), shown_path(folder));
    mount.run(move || {
        if is_daemon {
            detach(log);
        } else {
            complain(&mounted);
            let _ = sd_notify::notify(&[NotifyState::Ready]);
            let _ = log.map(dup2_stderr);
        }
    })?;
    Ok(())
}

/// Tells the command that started this daemon that it is ready, and leaves its terminal.
fn detach(log: Option<File>) {
    let _ = writeln!(io::stdout(), "{READY}");
    let _ = io::stdout().flush();
    let _ = setsid();
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = dup2_stdout(&null);
        let _ = dup2_stderr(log.as_ref().unwrap_or(&null));
    }
}
