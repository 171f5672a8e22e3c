//! Settings of the kernel that affect measurements.

use std::collections::BTreeMap;

use super::text;

/// The paths of the settings. Their names in results leave out the root, and have dots in place of
/// slashes.
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

/// The settings that this kernel has. For a choice such as `always [madvise] never`, the value in
/// brackets.
pub(super) fn settings() -> BTreeMap<String, String> {
    let files = FILES
        .iter()
        .flat_map(|(root, files)| files.iter().map(move |file| (*file, format!("{root}/{file}"))));
    files
        .filter_map(|(file, path)| Some((file.replace('/', "."), super::chosen(&text(path)?))))
        .collect()
}
