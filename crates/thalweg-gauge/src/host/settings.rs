//! Settings of the kernel without which a figure can't be judged.

use std::collections::BTreeMap;

use super::text;

/// Where each lies. The name in the results leaves out the root and has dots for slashes.
const FILES: [(&str, &[&str]); 3] = [
    (
        "/proc/sys",
        &[
            "vm/swappiness",
            "vm/dirty_ratio",
            "vm/dirty_background_ratio",
            "vm/dirty_bytes",
            "vm/dirty_background_bytes",
            "vm/dirty_expire_centisecs",
            "vm/vfs_cache_pressure",
            "vm/overcommit_memory",
            "vm/zone_reclaim_mode",
            "kernel/numa_balancing",
        ],
    ),
    (
        "/sys/kernel/mm",
        &[
            "transparent_hugepage/enabled",
            "transparent_hugepage/defrag",
            "transparent_hugepage/shmem_enabled",
        ],
    ),
    (
        "/sys/devices/system/cpu",
        &["smt/active", "cpufreq/boost", "intel_pstate/no_turbo", "cpu0/cpufreq/scaling_driver"],
    ),
];

/// Those that this kernel has. Of a choice, "always [madvise] never", the one in force.
pub(super) fn settings() -> BTreeMap<String, String> {
    let files = FILES
        .iter()
        .flat_map(|(root, files)| files.iter().map(move |file| (*file, format!("{root}/{file}"))));
    files
        .filter_map(|(file, path)| Some((file.replace('/', "."), super::chosen(&text(path)?))))
        .collect()
}
