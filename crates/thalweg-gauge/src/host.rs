//! Describes the machine and the mount that a result belongs to.
//!
//! Facts that the system does not report are `None`. The host's name is left out, because results
//! are published.

mod cgroup;
pub mod mount;
mod settings;
mod stripe;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use mount::is_remote;
pub use mount::{BlockDevice, StoragePlace, place};
pub use stripe::Stripe;

/// One cache of the first CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuCache {
    /// The level of the cache: 1, 2, 3, ...
    pub level: u32,
    /// The kind of cache: "Data", "Instruction" or "Unified".
    pub kind: String,
    /// Size in bytes.
    pub bytes: u64,
    /// CPUs that share it, as in "0-3".
    pub shared_by: String,
}

/// Description of a machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The model name that the CPU reports.
    pub cpu_model: Option<String>,
    /// Architecture that this program was built for.
    pub architecture: String,
    /// The number of CPUs that are online.
    pub cpus_online: Option<usize>,
    /// The number of CPUs that this process may use.
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
    /// Memory limit of the control group of this process, in bytes.
    pub cgroup_memory_bytes: Option<u64>,
    /// CPU limit of the control group of this process, in CPUs.
    pub cgroup_cpus: Option<f64>,
    /// Limits on block devices of the control group of this process, in the format of the kernel.
    pub cgroup_io: Option<String>,
    /// Swap space in bytes.
    pub swap_bytes: Option<u64>,
    /// Free swap space in bytes.
    pub swap_free_bytes: Option<u64>,
    /// Settings of the kernel that affect reading and computing, by their names below `/proc/sys`
    /// (as in "vm.swappiness") or `/sys/kernel/mm` ("transparent_hugepage.enabled").
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// C library of this process. Other programs may use another one.
    pub c_library: Option<String>,
    /// Evidence of a container, as in "/.dockerenv".
    pub container: Option<String>,
    /// Whether the CPU reports a hypervisor, whose caches are not visible from here.
    pub virtual_machine: bool,
}

/// Describes this machine.
pub fn host() -> Host {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let usable = rustix::thread::sched_getaffinity(None).ok().map(|set| set.count() as usize);
    let uname = rustix::system::uname();
    let cgroup = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = |field| crate::procfs::status_field(&meminfo, field);
    Host {
        // x86 has "model name", POWER has "cpu", and ARM often has neither.
        cpu_model: cpuinfo_field(&cpuinfo, "model name").or_else(|| cpuinfo_field(&cpuinfo, "cpu")),
        architecture: std::env::consts::ARCH.into(),
        cpus_online: text("/sys/devices/system/cpu/online").and_then(|s| cpu_list_len(&s)),
        cpus_usable: usable,
        cpu_caches: cpu_caches(),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        kernel: uname.release().to_string_lossy().into_owned(),
        distribution: fs::read_to_string("/etc/os-release").ok().and_then(|s| {
            s.lines()
                .find_map(|l| l.strip_prefix("PRETTY_NAME="))
                .map(|v| v.trim_matches('"').to_owned())
        }),
        memory_bytes: memory("MemTotal"),
        swap_bytes: memory("SwapTotal"),
        swap_free_bytes: memory("SwapFree"),
        cgroup_memory_bytes: cgroup::memory(&cgroup),
        cgroup_cpus: cgroup::cpus(&cgroup),
        cgroup_io: cgroup::io(&cgroup),
        settings: settings::settings(),
        c_library: crate::syscalls::glibc_version().map(|version| format!("glibc {version}")),
        container: container(&cgroup),
        virtual_machine: cpuinfo_field(&cpuinfo, "flags")
            .is_some_and(|f| f.split(' ').any(|w| w == "hypervisor")),
    }
}

/// The allocator of this process: the C library's own, unless another one is preloaded or tuned.
pub fn allocator() -> String {
    let library = crate::syscalls::glibc_version()
        .map_or("the C library's".into(), |v| format!("glibc {v} malloc"));
    // Variables of programs need not be UTF-8.
    let variables: Vec<(String, String)> = std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .collect();
    let preloaded = variables.iter().find(|(k, v)| k == "LD_PRELOAD" && !v.is_empty());
    // Folders are left out, because they may contain names of people and machines.
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let preloaded =
        preloaded.map(|(_, list)| list.split([':', ' ']).map(name).collect::<Vec<_>>().join(" "));
    let tuned = variables.iter().filter(|(k, _)| k.starts_with("MALLOC_") || k == "GLIBC_TUNABLES");
    let mut words = vec![library];
    words.extend(preloaded.map(|names| format!("LD_PRELOAD {names}")));
    words.extend(tuned.map(|(k, v)| format!("{k}={v}")));
    words.join(", ")
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned()).filter(|s| !s.is_empty())
}

/// The choice in brackets, as in "[mq-deadline] none". A text without brackets is returned whole.
fn chosen(choices: &str) -> String {
    let inside =
        choices.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
    inside.unwrap_or(choices).to_owned()
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
            let (first, last): (usize, usize) =
                (first.trim().parse().ok()?, last.trim().parse().ok()?);
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

/// The numbers of the CPUs that this process may use; empty if the system does not report them.
pub fn usable_cpus() -> Vec<usize> {
    let set = rustix::thread::sched_getaffinity(None).ok();
    set.map(|set| (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
        .unwrap_or_default()
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
    fn the_choice_in_force_stands_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_cpu() {
        let host = host();
        assert!(!host.kernel.is_empty());
        assert!(host.cpus_usable.is_some_and(|n| n > 0));
        assert!(host.settings.contains_key("vm.swappiness"), "{:?}", host.settings);
        assert!(!allocator().is_empty());
        assert!(serde_json::to_string(&host).is_ok_and(|s| s.contains("kernel")));
    }
}
