//! Where the peers are. `make peers` puts them beside the program; others may say where with THALWEG_PEERS.

use std::path::{Path, PathBuf};

use thalweg_gauge::suite::Peer;

/// The programs of a peers' folder, by the names that suites use.
const PROGRAMS: [(&str, &str); 3] = [("slow5lib", "slow5_peer"), ("cat", "cat_peer"), ("raw", "raw_peer")];

/// Looks a peer up by its name in suites.
pub(super) fn find(name: &str) -> Peer {
    // <repository>/target/release/thalweg
    let exe = std::env::current_exe().ok();
    let target = exe.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned);
    let found = |program: &Path| program.is_file().then(|| program.to_string_lossy().into_owned());
    if let Some((_, program)) = PROGRAMS.iter().find(|(known, _)| *known == name) {
        let folder = std::env::var_os("THALWEG_PEERS").map(PathBuf::from);
        let folder = folder.or_else(|| Some(target.as_ref()?.join("peers")));
        return match folder.and_then(|folder| found(&folder.join(program))) {
            Some(program) => Peer::Found(vec![program]),
            None => Peer::Absent(format!("the peer {name} is not built (`make peers` builds it)")),
        };
    }
    if name == "pyslow5" {
        let repository = target.as_deref().and_then(Path::parent);
        let there = repository.and_then(|root| {
            Some(vec![found(&root.join(".venv/bin/python"))?, found(&root.join("peers/pyslow5/peer.py"))?])
        });
        return there
            .map_or_else(|| Peer::Absent("pyslow5 is not installed (`make peers` installs it)".into()), Peer::Found);
    }
    Peer::Unknown(PROGRAMS.iter().map(|(name, _)| (*name).to_owned()).chain(["pyslow5".to_owned()]).collect())
}
