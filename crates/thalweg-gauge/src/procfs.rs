//! Reads `/proc`: the memory and I/O of processes, and the load of the machine. Absent values are
//! `None`.

use std::fs;
use std::os::unix::fs::FileExt;

/// Memory of one process or of a tree of them, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ProcessMemory {
    pub(crate) anon: u64,
    pub(crate) file: u64,
    pub(crate) peak: u64,
}

/// A field such as `RssAnon:     1234 kB` of `/proc/PID/status`, in bytes.
pub(crate) fn status_field(status: &str, name: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// A field such as `read_bytes: 17` of `/proc/PID/io`.
pub(crate) fn io_field(io: &str, name: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim().parse().ok()
}

/// Memory of `pid` and all its descendants; `None` once the root process is gone or a zombie.
pub(crate) fn tree_memory(pid: u32) -> Option<ProcessMemory> {
    let mut sum = ProcessMemory::default();
    let mut seen_root = false;
    let mut todo = vec![pid];
    while let Some(pid) = todo.pop() {
        let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
        // A zombie has no address space, hence none of these lines.
        if let (Some(anon), Some(file)) =
            (status_field(&status, "RssAnon"), status_field(&status, "RssFile"))
        {
            sum.anon += anon;
            // Shared memory is neither private nor a cached file. It counts as private, because the
            // process asked for it.
            sum.anon += status_field(&status, "RssShmem").unwrap_or(0);
            sum.file += file;
            sum.peak += status_field(&status, "VmHWM").unwrap_or(anon + file);
            seen_root = true;
        }
        // Any thread may have forked. The kernel may be built without this file; then only the root
        // is seen.
        for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            todo.extend(children.split_whitespace().filter_map(|s| s.parse::<u32>().ok()));
        }
    }
    seen_root.then_some(sum)
}

/// The I/O figures of a process, held open. The file of a zombie belongs to root, but can be read
/// through a descriptor that was opened while the process ran.
pub(crate) struct Accounts(fs::File);

impl Accounts {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        fs::File::open(format!("/proc/{pid}/io")).ok().map(Self)
    }

    /// Bytes that it and its reaped children read from block devices or file servers. Works until
    /// the process is reaped.
    pub(crate) fn device_bytes(&self) -> Option<u64> {
        let mut text = [0; 1024]; // seven short lines
        let len = self.0.read_at(&mut text, 0).ok()?;
        io_field(std::str::from_utf8(text.get(..len)?).ok()?, "read_bytes")
    }
}

/// Bytes that this process and its reaped children read from block devices or file servers.
pub(crate) fn own_device_bytes() -> Option<u64> {
    io_field(&fs::read_to_string("/proc/self/io").ok()?, "read_bytes")
}

/// Microseconds that some task waited for `resource` ("cpu", "io", "memory"), since boot.
pub(crate) fn pressure_us(resource: &str) -> Option<u64> {
    pressure_total(&fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?)
}

/// Share of the last ten seconds in which some task waited for `resource`.
pub(crate) fn recent_pressure(resource: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/pressure/{resource}")).ok()?;
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let percent: f64 =
        some.split_whitespace().find_map(|f| f.strip_prefix("avg10="))?.parse().ok()?;
    Some(percent / 100.0)
}

fn pressure_total(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace().find_map(|f| f.strip_prefix("total="))?.parse().ok()
}

/// The one-minute load average.
pub(crate) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// CPU seconds that the whole machine worked, and CPU seconds that a hypervisor took away, since
/// boot.
pub(crate) fn machine_cpu_s() -> Option<(f64, f64)> {
    busy_and_stolen(&fs::read_to_string("/proc/stat").ok()?)
        // USER_HZ is 100 on every architecture that Rust supports except alpha.
        .map(|(busy, stolen)| (busy as f64 / 100.0, stolen as f64 / 100.0))
}

fn busy_and_stolen(stat: &str) -> Option<(u64, u64)> {
    // cpu user nice system idle iowait irq softirq steal (proc_stat(5)); idle and iowait are not
    // work
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let n: Vec<u64> = line.split_whitespace().map_while(|f| f.parse().ok()).collect();
    let at = |i: usize| n.get(i).copied().unwrap_or(0);
    Some((at(0) + at(1) + at(2) + at(5) + at(6), at(7)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "VmHWM:\t    2048 kB\nRssAnon:\t     12 kB\nRssFile:\t  3 kB\n";
        assert_eq!(status_field(status, "RssAnon"), Some(12 << 10));
        assert_eq!(status_field(status, "VmHWM"), Some(2 << 20));
        assert_eq!(status_field(status, "Rss"), None);
        assert_eq!(io_field("rchar: 9\nread_bytes: 4096\n", "read_bytes"), Some(4096));
        assert_eq!(io_field("", "read_bytes"), None);
    }

    #[test]
    fn pressure_and_stat_parse() {
        assert_eq!(
            pressure_total("some avg10=15.31 avg60=4.00 avg300=1.14 total=9617657\nfull total=0"),
            Some(9_617_657)
        );
        assert_eq!(busy_and_stolen("cpu  1 2 3 100 50 4 5 6 0 0\ncpu0 1"), Some((15, 6)));
    }

    #[test]
    fn this_process_has_memory() {
        assert!(tree_memory(std::process::id()).is_some_and(|m| m.anon > 0 && m.peak >= m.anon));
        assert_eq!(tree_memory(u32::MAX), None);
    }
}
