//! Limits of the control group that this process is in, of either version.

use std::path::Path;

use super::text;

/// The folder of this process's group in the version 1 hierarchy of `controller`. An empty
/// `controller` selects the version 2 hierarchy.
fn path_of(cgroup: &str, controller: &str) -> Option<String> {
    cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        controllers.split(',').any(|c| c == controller).then(|| fields.next().map(str::to_owned))?
    })
}

/// A limit may be set at any level above this process; the smallest one applies.
fn smallest<T: PartialOrd>(root: &str, path: &str, read: impl Fn(&Path) -> Option<T>) -> Option<T> {
    let full = Path::new(root).join(path.trim_start_matches('/'));
    let root = Path::new(root);
    full.ancestors()
        .take_while(|p| p.starts_with(root))
        .filter_map(read)
        .reduce(|a, b| if b < a { b } else { a })
}

/// Memory limit in bytes.
pub(super) fn memory(cgroup: &str) -> Option<u64> {
    let number = |file: &'static str| move |dir: &Path| text(dir.join(file))?.parse::<u64>().ok();
    let v2 = path_of(cgroup, "").and_then(|p| smallest("/sys/fs/cgroup", &p, number("memory.max")));
    let v1 = path_of(cgroup, "memory")
        .and_then(|p| smallest("/sys/fs/cgroup/memory", &p, number("memory.limit_in_bytes")))
        // Version 1 writes "no limit" as the largest whole number of pages.
        .filter(|&n| n < 1 << 60);
    v2.or(v1)
}

/// CPU limit in CPUs.
pub(super) fn cpus(cgroup: &str) -> Option<f64> {
    let v2 = path_of(cgroup, "").and_then(|p| {
        smallest("/sys/fs/cgroup", &p, |dir| {
            let text = text(dir.join("cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
        })
    });
    let v1 = path_of(cgroup, "cpu").and_then(|p| {
        smallest("/sys/fs/cgroup/cpu", &p, |dir| {
            let quota: f64 = text(dir.join("cpu.cfs_quota_us"))?.parse().ok()?;
            let period: f64 = text(dir.join("cpu.cfs_period_us"))?.parse().ok()?;
            (quota > 0.0).then_some(quota / period) // -1 means no limit
        })
    });
    v2.or(v1)
}

/// Limits on block devices, from the folder of this process towards the root: "major:minor" and the
/// limited quantities.
pub(super) fn io(cgroup: &str) -> Option<String> {
    let collect = |root: &str, path: String, files: &[&str]| {
        let full = Path::new(root).join(path.trim_start_matches('/'));
        let folders = full.ancestors().take_while(|p| p.starts_with(root));
        let lines: Vec<String> = folders
            .flat_map(|folder| {
                files.iter().map(|file| (*file, folder.join(file))).collect::<Vec<_>>()
            })
            .filter_map(|(file, path)| Some(format!("{file}: {}", text(path)?.replace('\n', ", "))))
            .collect();
        (!lines.is_empty()).then(|| lines.join("; "))
    };
    const V1: [&str; 4] = [
        "blkio.throttle.read_bps_device",
        "blkio.throttle.read_iops_device",
        "blkio.throttle.write_bps_device",
        "blkio.throttle.write_iops_device",
    ];
    let v2 = path_of(cgroup, "").and_then(|p| collect("/sys/fs/cgroup", p, &["io.max"]));
    v2.or_else(|| path_of(cgroup, "blkio").and_then(|p| collect("/sys/fs/cgroup/blkio", p, &V1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_control_group_are_found() {
        let cgroup = "4:memory:/job/7\n2:cpu,cpuacct:/a:b\n0::/user.slice\n";
        assert_eq!(path_of(cgroup, "memory").as_deref(), Some("/job/7"));
        assert_eq!(path_of(cgroup, "cpu").as_deref(), Some("/a:b"));
        assert_eq!(path_of(cgroup, "").as_deref(), Some("/user.slice"));
        assert_eq!(path_of(cgroup, "pids"), None);
    }
}
