//! Where the peers are. `make peers` puts them beside the program; others may say where with THALWEG_PEERS.

use std::path::{Path, PathBuf};

/// The peers that were found, and what is said of those that were not.
#[derive(Debug, Default)]
pub(super) struct Peers {
    pub(super) slow5lib: Option<PathBuf>,
    /// An interpreter that has pyslow5, and the program to run with it.
    pub(super) pyslow5: Option<(PathBuf, PathBuf)>,
    pub(super) absent: Vec<String>,
}

pub(super) fn find() -> Peers {
    let mut peers = Peers::default();
    // <repository>/target/release/thalweg
    let exe = std::env::current_exe().ok();
    let target = exe.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned);
    let folder = std::env::var_os("THALWEG_PEERS").map(PathBuf::from).or_else(|| Some(target.as_ref()?.join("peers")));
    peers.slow5lib = folder.map(|folder| folder.join("slow5_peer")).filter(|path| path.is_file());
    if peers.slow5lib.is_none() {
        peers.absent.push("slow5lib's benchmark programs are not built".into());
    }
    let repository = target.as_deref().and_then(Path::parent);
    peers.pyslow5 = repository
        .map(|root| (root.join(".venv/bin/python"), root.join("peers/pyslow5/peer.py")))
        .filter(|(python, program)| python.is_file() && program.is_file());
    if peers.pyslow5.is_none() {
        peers.absent.push("pyslow5 is not installed".into());
    }
    peers
}
