//! The stripes of a file on Lustre.

use std::path::Path;

/// The stripes of a file on Lustre.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stripes {
    /// How many servers the file is spread over.
    pub(super) count: u64,
    /// Bytes of a stripe.
    pub(super) bytes: u64,
}

/// Asks Lustre's own tool; `None` on other file systems.
pub(super) fn stripes(path: &Path) -> Option<Stripes> {
    const LUSTRE: u64 = 0x0bd0_0bd0;
    let stat = rustix::fs::statfs(path).ok()?;
    if stat.f_type as u64 & 0xffff_ffff != LUSTRE {
        return None;
    }
    let ask = |option: &str| {
        let out = std::process::Command::new("lfs")
            .args(["getstripe", option])
            .arg(path)
            .output()
            .ok()?;
        String::from_utf8_lossy(&out.stdout).trim().parse::<u64>().ok()
    };
    Some(Stripes { count: ask("-c")?, bytes: ask("-S")? })
}

impl Stripes {
    /// A command that spreads a file of `size` bytes over more servers, if that is worth it.
    pub(super) fn advice(self, size: u64) -> Option<String> {
        // One server for each 256 MiB, up to eight, which is what a client can use.
        let good = (size >> 28).clamp(1, 8);
        (self.count < good).then(|| {
            format!("lfs migrate -c {good} -S 4M FILE, or lfs setstripe on its folder beforehand")
        })
    }
}
