//! What the peers share: arguments, the digest of docs/method.md, and one JSON line, as in
//! ../common/array_peer.py.
//!
//!     peer FILE [PATH..] [--threads N]     the datasets at the paths, whole, as arrays in memory
//!
//! In a path, `*` stands for a whole name. The clock runs from before the file is opened until
//! every value of every array was summed.

use std::time::Instant;

use rust_hdf5::H5File;

/// What is asked for.
pub struct Asked {
    pub file: String,
    pub paths: Vec<String>,
    pub threads: usize,
}

/// The datasets of a file, by their paths without the first slash.
pub fn names(file: &H5File) -> Vec<String> {
    let mut names: Vec<String> = file
        .dataset_names()
        .into_iter()
        .map(|name| name.trim_start_matches('/').to_owned())
        .collect();
    names.sort();
    names
}

/// The paths that patterns stand for, out of all names of a file, in their order.
pub fn expanded(patterns: &[String], names: impl FnOnce() -> Vec<String>) -> Vec<String> {
    if patterns.iter().all(|pattern| !pattern.contains('*')) {
        return patterns.iter().map(|path| path.trim_matches('/').to_owned()).collect();
    }
    let names = names();
    let fits = |pattern: &str, name: &str| {
        let (pattern, name): (Vec<_>, Vec<_>) =
            (pattern.trim_matches('/').split('/').collect(), name.split('/').collect());
        pattern.len() == name.len()
            && pattern.iter().zip(name).all(|(part, name)| *part == "*" || *part == name)
    };
    patterns
        .iter()
        .flat_map(|pattern| {
            names.iter().filter(|name| fits(pattern, name)).cloned().collect::<Vec<_>>()
        })
        .collect()
}

/// Runs a reader: `read` opens the file and gives each array's bytes, little-endian, in order.
pub fn run<B: AsRef<[u8]>>(
    package: &str,
    version: &str,
    flags: &str,
    read: impl FnOnce(&Asked) -> Vec<B>,
) {
    let mut words = std::env::args().skip(1);
    let mut asked = Asked {
        file: words.next().expect("a file"),
        paths: Vec::new(),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
    };
    while let Some(word) = words.next() {
        if word == "--threads" {
            asked.threads = words.next().and_then(|n| n.parse().ok()).expect("a number of threads");
        } else {
            asked.paths.push(word);
        }
    }
    assert!(!asked.paths.is_empty(), "paths of datasets");
    rayon::ThreadPoolBuilder::new().num_threads(asked.threads).build_global().expect("threads");
    let (begin, cpu) = (Instant::now(), cpu_s());
    let arrays = read(&asked);
    let sum = arrays.iter().fold(0u64, |sum, bytes| sum.wrapping_add(sum_of(bytes.as_ref())));
    let (open_to_last_s, cpu_s) = (begin.elapsed().as_secs_f64(), cpu_s() - cpu);
    let digest = arrays.iter().fold(0u64, |digest, bytes| {
        digest.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(checksum(bytes.as_ref()))
    });
    let decoded: usize = arrays.iter().map(|bytes| bytes.as_ref().len()).sum();
    println!(
        "{{\"workload\":\"{package}-arrays\",\"version\":\"{package} {version}\",\"build\":{{\"compiler\":\"rustc\",\
         \"flags\":\"release, thin LTO; {flags}\",\"allocator\":\"system malloc\"}},\
         \"open_to_last_s\":{open_to_last_s},\"cpu_s\":{cpu_s},\"datasets\":{},\"bytes_decoded\":{decoded},\
         \"sum\":{sum},\"digest\":\"{digest:016x}\",\"threads\":{},\"stages\":{{}},\"needed_bytes\":{}}}",
        arrays.len(),
        asked.threads,
        stored_bytes(&asked),
    );
}

/// Processor time of all threads, in seconds, from the kernel's count in ticks of 10 ms.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |at: usize| fields.get(at).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    })
}

fn sum_of(bytes: &[u8]) -> u64 {
    let (full, rest) = bytes.as_chunks::<8>();
    full.iter()
        .fold(words(rest).sum(), |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

fn checksum(bytes: &[u8]) -> u64 {
    (0..)
        .zip(words(bytes))
        .fold(0, |sum: u64, (at, word): (u64, u64)| sum.wrapping_add(word.wrapping_mul(2 * at + 1)))
}

/// What the datasets take in the file. Asked after the clock has stopped.
fn stored_bytes(asked: &Asked) -> u64 {
    let file = H5File::open(&asked.file).expect("the file again");
    let mut sum = 0;
    for path in expanded(&asked.paths, || names(&file)) {
        let dataset = file.dataset(&path).expect("the dataset again");
        let Some(chunk) = dataset.chunk_dims() else {
            sum += (dataset.total_elements() * dataset.element_size()) as u64;
            continue;
        };
        let counts: Vec<usize> = dataset
            .shape()
            .iter()
            .zip(&chunk)
            .map(|(length, part)| length.div_ceil(*part))
            .collect();
        for number in 0..counts.iter().product() {
            let mut left: usize = number;
            let mut at = vec![0; counts.len()];
            for (at, count) in at.iter_mut().zip(&counts).rev() {
                (*at, left) = (left % count, left / count);
            }
            sum += dataset.read_chunk_raw_at(&at).map_or(0, |(bytes, _)| bytes.len() as u64);
        }
    }
    sum
}
