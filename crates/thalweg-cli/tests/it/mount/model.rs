//! Random operations on a mount and on a local folder, which must end the same.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::XattrFlags;
use thalweg_io::random::hash01;
use thalweg_testing::http_server::{Answer, Asked, ObjectServer};
use thalweg_testing::one_of;

use super::mounted::{MIB, Mounted, bytes, can_mount};

/// Numbers that look random, and are the same each time.
struct Choices {
    seed: u64,
    number: u64,
}

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.number += 1;
        (hash01(self.seed, 3, self.number) * end as f64) as usize
    }

    /// The path of a file or a folder. There are few, so that they meet.
    fn path(&mut self) -> PathBuf {
        let names = ["a", "b", "c d", "é"];
        let mut path = PathBuf::new();
        for _ in 0..1 + self.below(3) {
            path.push(names[self.below(names.len())]);
        }
        path
    }

    /// A number of bytes: mostly few, sometimes more than two parts of an upload.
    fn len(&mut self) -> usize {
        match self.below(40) {
            0 => 17 * MIB + self.below(9 * MIB),
            1..=4 => self.below(3 * MIB),
            _ => self.below(5000),
        }
    }
}

/// An operation on a path.
#[derive(Debug, Clone)]
enum Step {
    Create(PathBuf, usize, u64),
    Append(PathBuf, usize, u64),
    WriteAt(PathBuf, usize, usize, u64),
    SetLen(PathBuf, usize),
    Remove(PathBuf),
    MakeFolder(PathBuf),
    RemoveFolder(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, String),
    SetMode(PathBuf, u32),
    SetTime(PathBuf, u64),
    SetXattr(PathBuf, u8),
    Stat(PathBuf),
    Read(PathBuf),
    List(PathBuf),
    /// Opens a file for writing and keeps it open.
    Open(PathBuf, bool),
    /// Writes to a file that is open.
    WriteOpen(usize, usize, usize, u64),
    SetLenOpen(usize, usize),
    ReadOpen(usize),
    Sync(usize),
    Close(usize),
}

impl Step {
    fn choose(choices: &mut Choices) -> Self {
        let path = choices.path();
        let seed = choices.number;
        match choices.below(44) {
            0..=5 => Self::Create(path, choices.len(), seed),
            6 | 7 => Self::Append(path, choices.len(), seed),
            8 | 9 => Self::WriteAt(path, choices.len(), choices.len(), seed),
            10 => Self::SetLen(path, choices.len()),
            11..=13 => Self::Remove(path),
            14..=16 => Self::MakeFolder(path),
            17 => Self::RemoveFolder(path),
            18..=22 => Self::Rename(path, choices.path()),
            23 => Self::Link(path, format!("to/{seed}")),
            24 => Self::SetMode(path, if seed.is_multiple_of(2) { 0o640 } else { 0o755 }),
            25 => Self::SetTime(path, seed),
            26 => Self::SetXattr(path, seed as u8),
            27..=29 => Self::Stat(path),
            30..=32 => Self::Read(path),
            33 | 34 => Self::List(path),
            35 | 36 => Self::Open(path, seed.is_multiple_of(2)),
            37..=39 => Self::WriteOpen(choices.below(4), choices.len(), choices.len(), seed),
            40 => Self::SetLenOpen(choices.below(4), choices.len()),
            41 => Self::ReadOpen(choices.below(4)),
            42 => Self::Sync(choices.below(4)),
            _ => Self::Close(choices.below(4)),
        }
    }
}

/// A folder in which steps are done.
struct Side {
    root: PathBuf,
    open: Vec<Option<File>>,
}

/// What a step gives: what is found, or the number of an error.
type Outcome = Result<String, i32>;

fn sum(bytes: &[u8]) -> String {
    let mut hasher = std::hash::DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{} bytes, {:016x}", bytes.len(), hasher.finish())
}

impl Side {
    fn new(root: PathBuf) -> Self {
        Self { root, open: (0..4).map(|_| None).collect() }
    }

    fn done(&mut self, step: &Step) -> Outcome {
        self.try_done(step).map_err(|error| error.raw_os_error().unwrap_or(-1))
    }

    fn try_done(&mut self, step: &Step) -> io::Result<String> {
        let at = |path: &Path| self.root.join(path);
        let none = || Ok(String::new());
        match step {
            Step::Create(path, len, seed) => {
                let mut file = File::create(at(path))?;
                file.write_all(&bytes(*seed, *len))?;
            }
            Step::Append(path, len, seed) => {
                let mut file = File::options().append(true).open(at(path))?;
                file.write_all(&bytes(*seed, *len))?;
            }
            Step::WriteAt(path, offset, len, seed) => {
                let file = File::options().write(true).open(at(path))?;
                file.write_all_at(&bytes(*seed, *len), *offset as u64)?;
            }
            Step::SetLen(path, len) => {
                File::options().write(true).open(at(path))?.set_len(*len as u64)?;
            }
            Step::Remove(path) => fs::remove_file(at(path))?,
            Step::MakeFolder(path) => fs::create_dir(at(path))?,
            Step::RemoveFolder(path) => fs::remove_dir(at(path))?,
            Step::Rename(from, to) => fs::rename(at(from), at(to))?,
            Step::Link(path, target) => symlink(target, at(path))?,
            Step::SetMode(path, mode) => {
                // A link may lead nowhere, and a folder keeps no permissions.
                if !fs::symlink_metadata(at(path))?.is_file() {
                    return none();
                }
                fs::set_permissions(at(path), fs::Permissions::from_mode(*mode))?;
            }
            Step::SetTime(path, seconds) => {
                if !fs::symlink_metadata(at(path))?.is_file() {
                    return none();
                }
                let time = SystemTime::UNIX_EPOCH + Duration::new(*seconds, 7);
                File::open(at(path))?.set_modified(time)?;
                return Ok(format!("{:?}", fs::metadata(at(path))?.modified()?));
            }
            Step::SetXattr(path, value) => {
                if !fs::symlink_metadata(at(path))?.is_file() {
                    return none();
                }
                let (flags, name) = (XattrFlags::empty(), "user.sample");
                rustix::fs::setxattr(at(path), name, &[*value], flags)?;
            }
            Step::Stat(path) => return told(&at(path)),
            Step::Read(path) => {
                if fs::symlink_metadata(at(path))?.is_symlink() {
                    return Ok(fs::read_link(at(path))?.display().to_string());
                }
                return Ok(sum(&fs::read(at(path))?));
            }
            Step::List(path) => {
                let entries = fs::read_dir(at(path))?;
                let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>();
                let mut names: Vec<_> = names?;
                names.sort();
                return Ok(format!("{names:?}"));
            }
            Step::Open(path, creates) => {
                let mut options = File::options();
                let file = options.read(true).write(true).create(*creates).open(at(path))?;
                let free = self.open.iter().position(Option::is_none).unwrap_or(0);
                self.open[free] = Some(file);
            }
            Step::WriteOpen(number, offset, len, seed) => {
                let Some(file) = &self.open[*number] else { return none() };
                file.write_all_at(&bytes(*seed, *len), *offset as u64)?;
            }
            Step::SetLenOpen(number, len) => {
                let Some(file) = &self.open[*number] else { return none() };
                file.set_len(*len as u64)?;
            }
            Step::ReadOpen(number) => {
                let Some(file) = &self.open[*number] else { return none() };
                let mut read = vec![0; file.metadata()?.len() as usize];
                file.read_exact_at(&mut read, 0)?;
                return Ok(sum(&read));
            }
            Step::Sync(number) => {
                let Some(file) = &self.open[*number] else { return none() };
                file.sync_all()?;
            }
            Step::Close(number) => self.open[*number] = None,
        }
        none()
    }
}

/// What is known of a path.
fn told(path: &Path) -> io::Result<String> {
    let meta = fs::symlink_metadata(path)?;
    if !meta.is_file() {
        return Ok(format!("{:?}", meta.file_type()));
    }
    let mut value = [0; 16];
    let xattr = match rustix::fs::getxattr(path, "user.sample", &mut value) {
        Ok(len) => Some(value[..len].to_vec()),
        Err(_) => None,
    };
    Ok(format!("{} bytes, mode {:o}, {xattr:?}", meta.len(), meta.mode() & 0o7777))
}

/// All that is below a folder.
fn tree(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let mut what = told(&path).unwrap();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                folders.push(path.clone());
            } else if kind.is_symlink() {
                what = fs::read_link(&path).unwrap().display().to_string();
            } else {
                what += &sum(&fs::read(&path).unwrap());
            }
            found.insert(path.strip_prefix(root).unwrap().to_owned(), what);
        }
    }
    found
}

/// The files below a folder, and the objects that they are.
fn check_objects(server: &ObjectServer, root: &Path, step: usize) {
    let mut paths = server.objects();
    paths.retain(|path| !path.ends_with('/'));
    paths.sort();
    let mut expected = Vec::new();
    for path in tree(root).keys() {
        let local = root.join(path);
        let kind = fs::symlink_metadata(&local).unwrap().file_type();
        if kind.is_dir() {
            continue;
        }
        let (end, content) = match kind.is_symlink() {
            true => {
                let target = fs::read_link(&local).unwrap();
                (".rclonelink", target.to_str().unwrap().as_bytes().to_vec())
            }
            false => ("", fs::read(&local).unwrap()),
        };
        let path = format!("/bucket/{}{end}", path.display());
        assert!(server.object(&path).as_ref() == Some(&content), "{path} at step {step}");
        expected.push(path);
    }
    expected.sort();
    assert_eq!(paths, expected, "at step {step}");
}

/// The last steps that a failure shows.
const SHOWN: usize = 4000;
/// Steps between two times that all is closed, compared and mounted again.
const BETWEEN: usize = 250;

fn same(seed: u64, steps: usize, args: &[&str], behaviour: fn(&Asked) -> Answer, is_bad: bool) {
    let server = ObjectServer::start([], behaviour);
    let mut mounted = Mounted::writing(&server, args);
    let local = mounted.folder.path("local");
    fs::create_dir(&local).unwrap();
    let mut choices = Choices { seed, number: 0 };
    let (mut one, mut other) = (Side::new(mounted.path("")), Side::new(local.clone()));
    let mut last = Vec::new();
    for number in 0..steps {
        let step = Step::choose(&mut choices);
        let (found, expected) = (one.done(&step), other.done(&step));
        last.push(format!("{number}: {step:?}: {found:?}"));
        last.drain(..last.len().saturating_sub(SHOWN));
        let is_same = match (&step, &found, &expected) {
            // Folders of a mount cannot be opened to be written either, but say so later.
            (_, Err(_), Err(_)) => found == expected || is_as_good(&step, &found, &expected),
            // Who has an object open that is removed cannot read on.
            (Step::ReadOpen(_), Err(_), Ok(_)) => true,
            _ => found == expected,
        };
        assert!(
            is_same,
            "seed {seed}, {args:?}: {found:?}, and not {expected:?}:\n{}",
            last.join("\n")
        );
        if number % BETWEEN != BETWEEN - 1 {
            continue;
        }
        (one.open, other.open) = (Side::new("".into()).open, Side::new("".into()).open);
        if tree(&one.root) != tree(&local) {
            panic!("seed {seed}: {:#?}\n{:#?}\n{}", tree(&one.root), tree(&local), last.join("\n"));
        }
        mounted.folder.ok(&["mount", "--flush", "m"]);
        check_objects(&server, &local, number);
        // The answer to the beginning of an upload may be lost.
        assert!(is_bad || server.unfinished() == 0, "at step {number}");
        server.forget();
        match (number / BETWEEN) % 3 {
            0 => {}
            1 => {
                assert!(mounted.end().success());
                mounted = mounted.again(&server, args);
            }
            _ => {
                mounted.kill();
                mounted = mounted.again(&server, args);
            }
        }
        one.root = mounted.path("");
        assert_eq!(tree(&one.root), tree(&local), "seed {seed}, at step {number}");
    }
}

/// Whether two errors are as good for a program.
fn is_as_good(step: &Step, found: &Outcome, expected: &Outcome) -> bool {
    use rustix::io::Errno;
    let is = |outcome: &Outcome, errno: Errno| *outcome == Err(errno.raw_os_error());
    match step {
        // A folder that is not empty is one thing, and that it is moved below itself another.
        Step::Rename(..) => {
            let either = [Errno::NOTEMPTY, Errno::EXIST, Errno::INVAL];
            either.iter().any(|errno| is(found, *errno))
                && either.iter().any(|errno| is(expected, *errno))
        }
        _ => false,
    }
}

/// Bad answers to some requests of every kind.
fn often_bad(asked: &Asked) -> Answer {
    let is_read = matches!(&*asked.method, "GET" | "HEAD");
    match asked.number % 29 {
        9 if !is_read => Answer::Closed,
        3 => Answer::Refused(503, "SlowDown"),
        5 | 19 => Answer::Torn(0.4),
        7 => Answer::Lost,
        9 => Answer::Reset(0.7),
        11 => Answer::Late(Duration::from_millis(5)),
        _ => Answer::Right,
    }
}

fn steps() -> usize {
    let given = std::env::var("MODEL_STEPS").ok().and_then(|steps| steps.parse().ok());
    given.unwrap_or(7000 / one_of())
}

#[test]
fn random_operations_are_those_of_a_folder() {
    if can_mount() {
        same(1, steps(), &["--attributes"], |_| Answer::Right, false);
    }
}

#[test]
fn random_operations_outlive_bad_answers() {
    if can_mount() {
        same(2, steps(), &["--attributes"], often_bad, true);
    }
}

#[test]
fn random_operations_are_staged() {
    if can_mount() {
        same(3, steps(), &["--attributes", "--close", "staged"], often_bad, true);
    }
}

#[test]
fn random_operations_are_written_back() {
    if can_mount() {
        same(4, steps(), &["--attributes", "--write-back"], often_bad, true);
    }
}
