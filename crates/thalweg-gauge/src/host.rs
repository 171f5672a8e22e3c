//! The machine and the mount that a result belongs to: a figure without them is not worth keeping.
//!
//! Whatever this system doesn't tell is none. The host's name is left out on purpose: results get published.

pub mod place;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use place::{Block, Place, is_remote, place};

/// One cache of the first CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCache {
    /// 1, 2, 3, ...
    pub level: u32,
    /// "Data", "Instruction" or "Unified".
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    /// CPUs that share it, as in "0-3".
    pub shared_by: String,
}

/// What the machine is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The CPU's name for itself.
    pub cpu_model: Option<String>,
    /// Architecture that this program was built for.
    pub architecture: String,
    /// CPUs that are switched on.
    pub cpus_online: Option<usize>,
    /// CPUs that this process may use.
    pub cpus_usable: Option<usize>,
    /// Caches of the first CPU.
    pub cpu_caches: Vec<CpuCache>,
    /// Frequency governor of the first CPU.
    pub governor: Option<String>,
    /// Kernel release.
    pub kernel: String,
    /// Distribution.
    pub distribution: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory limit of our control group, in bytes.
    pub cgroup_memory_bytes: Option<u64>,
    /// CPU limit of our control group, in CPUs.
    pub cgroup_cpus: Option<f64>,
    /// What hints at a container, as in "/.dockerenv".
    pub container: Option<String>,
    /// Whether the CPU says that a hypervisor runs beneath: its caches are then out of sight.
    pub virtual_machine: bool,
}

/// Describes this machine.
pub fn host() -> Host {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let usable = rustix::thread::sched_getaffinity(None).ok().map(|set| set.count() as usize);
    let uname = rustix::system::uname();
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Host {
        // x86 says "model name", POWER "cpu"; ARM often nothing at all
        cpu_model: cpuinfo_field(&cpuinfo, "model name").or_else(|| cpuinfo_field(&cpuinfo, "cpu")),
        architecture: std::env::consts::ARCH.into(),
        cpus_online: text("/sys/devices/system/cpu/online").and_then(|s| cpu_list_len(&s)),
        cpus_usable: usable,
        cpu_caches: cpu_caches(),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        kernel: uname.release().to_string_lossy().into_owned(),
        distribution: fs::read_to_string("/etc/os-release").ok().and_then(|s| {
            s.lines().find_map(|l| l.strip_prefix("PRETTY_NAME=")).map(|v| v.trim_matches('"').to_owned())
        }),
        memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|s| crate::proc::status_field(&s, "MemTotal")),
        cgroup_memory_bytes: cgroup_memory(&cgroup),
        cgroup_cpus: cgroup_cpus(&cgroup),
        container: container(&cgroup),
        virtual_machine: cpuinfo_field(&cpuinfo, "flags").is_some_and(|f| f.split(' ').any(|w| w == "hypervisor")),
    }
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned()).filter(|s| !s.is_empty())
}

fn cpuinfo_field(cpuinfo: &str, name: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Counts the CPUs of a list such as "0-3,8".
fn cpu_list_len(list: &str) -> Option<usize> {
    list.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            last.checked_sub(first).map(|n| n + 1)
        })
        .sum()
}

fn cpu_caches() -> Vec<CpuCache> {
    (0..8)
        .map_while(|i| {
            let at = format!("/sys/devices/system/cpu/cpu0/cache/index{i}");
            Some(CpuCache {
                level: text(format!("{at}/level"))?.parse().ok()?,
                kind: text(format!("{at}/type"))?,
                bytes: text(format!("{at}/size"))?.strip_suffix('K')?.parse::<u64>().ok()? << 10,
                shared_by: text(format!("{at}/shared_cpu_list")).unwrap_or_default(),
            })
        })
        .collect()
}

/// Our folder in a version 1 hierarchy, or (with an empty controller) in the version 2 one.
fn cgroup_path(cgroup: &str, controller: &str) -> Option<String> {
    cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        controllers.split(',').any(|c| c == controller).then(|| fields.next().map(str::to_owned))?
    })
}

/// A limit may stand at any level above us; the smallest one rules.
fn smallest<T: PartialOrd>(root: &str, path: &str, read: impl Fn(&Path) -> Option<T>) -> Option<T> {
    let full = Path::new(root).join(path.trim_start_matches('/'));
    let root = Path::new(root);
    full.ancestors().take_while(|p| p.starts_with(root)).filter_map(read).reduce(|a, b| if b < a { b } else { a })
}

fn cgroup_memory(cgroup: &str) -> Option<u64> {
    let number = |file: &'static str| move |dir: &Path| text(dir.join(file))?.parse::<u64>().ok();
    let v2 = cgroup_path(cgroup, "").and_then(|p| smallest("/sys/fs/cgroup", &p, number("memory.max")));
    let v1 = cgroup_path(cgroup, "memory")
        .and_then(|p| smallest("/sys/fs/cgroup/memory", &p, number("memory.limit_in_bytes")))
        // Version 1 writes "no limit" as the largest whole number of pages.
        .filter(|&n| n < 1 << 60);
    v2.or(v1)
}

fn cgroup_cpus(cgroup: &str) -> Option<f64> {
    let v2 = cgroup_path(cgroup, "").and_then(|p| {
        smallest("/sys/fs/cgroup", &p, |dir| {
            let text = text(dir.join("cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
        })
    });
    let v1 = cgroup_path(cgroup, "cpu").and_then(|p| {
        smallest("/sys/fs/cgroup/cpu", &p, |dir| {
            let quota: f64 = text(dir.join("cpu.cfs_quota_us"))?.parse().ok()?;
            let period: f64 = text(dir.join("cpu.cfs_period_us"))?.parse().ok()?;
            (quota > 0.0).then_some(quota / period) // -1 means none
        })
    });
    v2.or(v1)
}

fn container(cgroup: &str) -> Option<String> {
    let files = ["/.dockerenv", "/run/.containerenv", "/singularity", "/.singularity.d"];
    if let Some(file) = files.into_iter().find(|f| Path::new(f).exists()) {
        return Some(file.into());
    }
    ["docker", "kubepods", "containerd", "lxc", "libpod"]
        .into_iter()
        .find(|word| cgroup.contains(word))
        .map(|word| format!("control group names {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_counted() {
        assert_eq!(cpu_list_len("0-3,8"), Some(5));
        assert_eq!(cpu_list_len("0"), Some(1));
        assert_eq!(cpu_list_len("3-0"), None);
        assert_eq!(cpu_list_len("x"), None);
    }

    #[test]
    fn both_kinds_of_control_group_are_found() {
        let cgroup = "4:memory:/job/7\n2:cpu,cpuacct:/a:b\n0::/user.slice\n";
        assert_eq!(cgroup_path(cgroup, "memory").as_deref(), Some("/job/7"));
        assert_eq!(cgroup_path(cgroup, "cpu").as_deref(), Some("/a:b"));
        assert_eq!(cgroup_path(cgroup, "").as_deref(), Some("/user.slice"));
        assert_eq!(cgroup_path(cgroup, "pids"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let host = host();
        assert!(!host.kernel.is_empty());
        assert!(host.cpus_usable.is_some_and(|n| n > 0));
        assert!(serde_json::to_string(&host).is_ok_and(|s| s.contains("kernel")));
    }
}
