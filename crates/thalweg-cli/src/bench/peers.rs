//! Finds the programs of peers. `make peers` puts them beside the program; THALWEG_PEERS names
//! another folder.

use std::path::{Path, PathBuf};

use thalweg_gauge::suite::Peer;

/// The programs of a peers' folder, by the names that suites use.
const PROGRAMS: [(&str, &str); 11] = [
    ("slow5lib", "slow5_peer"),
    ("slow5-tools", "slow5_tools"),
    ("pod5-c", "pod5_peer"),
    ("cat", "cat_peer"),
    ("raw", "raw_peer"),
    ("lmdb", "lmdb_peer"),
    ("rocksdb", "rocksdb_peer"),
    ("basalt", "basalt_peer"),
    ("rust-hdf5", "rust_hdf5_peer"),
    ("hdf5-reader", "hdf5_reader_peer"),
    ("mountpoint", "mountpoint_peer"),
];

/// Peers that `make peers` does not build, and the commands that do.
const APART: [(&str, &str); 5] = [
    ("rocksdb", "make rocksdb"),
    ("basalt", "make basalt"),
    ("rust-hdf5", "make rust-readers"),
    ("hdf5-reader", "make rust-readers"),
    ("mountpoint", "make mountpoint"),
];

/// Scripts that the repository's own Python runs: a benchmark of a library, or an installed tool. A
/// script that ends in `.sh` runs without Python.
const SCRIPTS: [(&str, &str); 24] = [
    ("pyslow5", "peers/pyslow5/peer.py"),
    ("pod5", "peers/pod5_python/peer.py"),
    ("escapepod", "peers/escapepod/peer.py"),
    ("h5py", "peers/fast5/peer.py"),
    ("h5py-arrays", "peers/h5py/peer.py"),
    ("h5py-groups", "peers/h5py_groups/peer.py"),
    ("h5py-mpi", "peers/h5py_mpi/peer.py"),
    ("hidefix", "peers/hidefix/peer.py"),
    ("pyfive", "peers/pyfive/peer.py"),
    ("h5coro", "peers/h5coro/peer.py"),
    ("h5py-graph", "peers/graph_h5py/peer.py"),
    ("libsonata", "peers/libsonata/peer.py"),
    ("duckdb", "peers/duckdb/peer.py"),
    ("remote", "peers/remote/run.py"),
    ("pipeline", "peers/mount/pipeline.py"),
    ("throttled", "peers/throttled/run.sh"),
    ("thalweg-mpi", "peers/mpi/run.sh"),
    ("thalweg-python", "peers/thalweg_python/reads.py"),
    ("thalweg-python-arrays", "peers/thalweg_python/arrays.py"),
    ("thalweg-python-graph", "peers/thalweg_python/graph.py"),
    ("thalweg-python-workers", "peers/thalweg_python/workers.py"),
    ("xarray", "peers/thalweg_python/slices.py"),
    ("blue-crab", ".venv/bin/blue-crab"),
    ("pod5-tools", ".venv/bin/pod5"),
];

/// Tools that the user may have installed.
const TOOLS: [&str; 3] = ["slow5tools", "h5repack", "h5diff"];

/// Looks a peer up by its name in suites.
pub(super) fn find(name: &str) -> Peer {
    // The program is <repository>/target/release/thalweg.
    let exe = std::env::current_exe().ok();
    let target = exe.as_deref().and_then(Path::parent).and_then(Path::parent).map(Path::to_owned);
    let found = |program: &Path| program.is_file().then(|| program.to_string_lossy().into_owned());
    let named = |(known, _): &&(&str, &str)| *known == name;
    if let Some((_, program)) = PROGRAMS.iter().find(named) {
        let folder = std::env::var_os("THALWEG_PEERS").map(PathBuf::from);
        let folder = folder.or_else(|| Some(target.as_ref()?.join("peers")));
        return match folder.and_then(|folder| found(&folder.join(program))) {
            Some(program) => Peer::Found(vec![program]),
            None => {
                let made = APART
                    .iter()
                    .find(|(apart, _)| *apart == name)
                    .map_or("make peers", |(_, made)| made);
                Peer::Absent(format!("the peer {name} is not built (`{made}` builds it)"))
            }
        };
    }
    if let Some((_, script)) = SCRIPTS.iter().find(named) {
        let repository = target.as_deref().and_then(Path::parent);
        let there = repository.and_then(|root| {
            let program = found(&root.join(script))?;
            if script.ends_with(".sh") {
                return Some(vec![program]);
            }
            Some(vec![found(&root.join(".venv/bin/python"))?, program])
        });
        return match there {
            Some(command) => Peer::Found(command),
            None => Peer::Absent(format!("{name} is not installed (`make peers` installs it)")),
        };
    }
    if TOOLS.contains(&name) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let there = std::env::split_paths(&path).find_map(|folder| found(&folder.join(name)));
        return match there {
            Some(program) => Peer::Found(vec![program]),
            None => Peer::Absent(format!("{name} is not installed")),
        };
    }
    Peer::Unknown(
        PROGRAMS
            .iter()
            .chain(&SCRIPTS)
            .map(|(name, _)| *name)
            .chain(TOOLS)
            .map(str::to_owned)
            .collect(),
    )
}
