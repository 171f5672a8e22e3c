"""The peers for graphs: each reads, from whatever it made of a neuroglial file, what plain h5py and numpy find in that file."""

import hashlib
import json
import os
import sys

import h5py
import numpy as np
import pytest

from nanopore import REPOSITORY, SHARED, run

PYTHON = {"libsonata": "libsonata", "duckdb": "duckdb", "h5py": "graph_h5py"}
# RocksDB and basalt are not among what `make peers` builds.
PEERS = [("lmdb",), ("rocksdb", "--arm", "shipped"), ("rocksdb", "--arm", "repaired"), ("basalt", "--arm", "shipped"), ("basalt", "--arm", "repaired")]
MUTABLE = [*PEERS]
PEERS += [("libsonata",), ("duckdb",)]
NEW = 1 << 40


def peer(name, *arguments, **options):
    if name in PYTHON:
        program = [sys.executable, REPOSITORY / f"peers/{PYTHON[name]}/peer.py"]
    else:
        program = [REPOSITORY / f"target/peers/{name}_peer"]
        if not program[0].exists():
            if name == "lmdb" and os.environ.get("CI"):
                pytest.fail("make peers did not build lmdb_peer")
            pytest.skip(f"{name}_peer is not built")
    return run(*program, *arguments, **options)


def told(result):
    return json.loads(result.stdout.splitlines()[-1])


class Network:
    """A neuroglial file and its lists, found without any of the peers' code."""

    def __init__(self, path):
        self.path = path
        with h5py.File(path) as file:
            columns = file["Astrocyte/offsets"][:].astype("u8")
            ids = {what: file[f"Astrocyte/{what}"][:].astype("u8") for what in ("synapse", "neuron")}
        self.astrocytes = len(columns) - 1
        self.forward = {what: [ids[what][a:b] for a, b in zip(columns[:-1, i], columns[1:, i], strict=True)] for i, what in enumerate(ids)}

    def lists(self, what, vertices, reverse=False, first=None):
        """Of the first so many astrocytes."""
        forward = self.forward[what][:first]
        if not reverse:
            return [np.sort(forward[v]) for v in vertices]
        pairs = np.array(sorted((int(i), a) for a, ids in enumerate(forward) for i in ids), "u8").reshape(-1, 2)
        return [pairs[pairs[:, 0] == v, 1] for v in vertices]

    @staticmethod
    def digest(lists):
        return hashlib.sha256(b"".join(ids.astype("<u8").tobytes() for ids in lists)).hexdigest()


@pytest.fixture(scope="module", params=["real", "made"])
def network(request, tmp_path_factory):
    if request.param == "real":
        path = SHARED.parent / "graph/basalt/neuroglial_connectivity.h5"
        if not path.exists():
            (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{path} is missing")
        return Network(path)
    # Some astrocytes have nothing, ids are far apart, and lists are longer than a block of LMDB's.
    random = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("network") / "n.h5"
    counts = np.array([0, 5000, 1, 300, 0, 700, 40, 0])
    synapses = [np.sort(random.choice(1 << 27, n, replace=False)).astype("u8") for n in counts]
    neurons = [np.sort(random.choice(2000, n // 5, replace=False)).astype("u8") for n in counts]
    with h5py.File(path, "w") as file:
        offsets = np.stack([np.append(0, np.cumsum([len(ids) for ids in lists])) for lists in (synapses, neurons)], 1)
        file["Astrocyte/offsets"] = offsets.astype("u8")
        file["Astrocyte/synapse"], file["Astrocyte/neuron"] = np.concatenate(synapses), np.concatenate(neurons)
        whose = np.repeat(np.arange(len(counts), dtype="u8"), [len(ids) for ids in neurons])
        order = np.argsort(np.concatenate(neurons), kind="stable")
        file["Neuron/astrocyte"] = whose[order]
        file["Neuron/offsets"] = np.append(0, np.cumsum(np.bincount(np.concatenate(neurons).astype("i8"), minlength=2000))).astype("u8")
    return Network(path)


def some(network, what, tmp_path):
    """Vertices to ask for: all astrocytes, or a list of ids in no order; and those that are the other ends."""
    ids = np.unique(np.concatenate(network.forward[what]))
    chosen = ids[:: max(1, len(ids) // 50)]
    path = tmp_path / f"{what}.txt"
    path.write_text("\n".join(map(str, chosen[::-1])) + "\n\n")
    return path, chosen


@pytest.mark.long
@pytest.mark.parametrize("name", PEERS, ids=" ".join)
@pytest.mark.parametrize("first", [None, 3])
def test_imported_edges_are_read(network, tmp_path, name, first):
    name, *arm = name
    store = tmp_path / "store"
    limit = [] if first is None else ["--max-astrocytes", first]
    made = told(peer(name, "import", network.path, store, *limit, *arm))
    all_ = range(first or network.astrocytes)
    assert made["digest"] == network.digest(network.lists("synapse", all_) + network.lists("neuron", all_))
    assert made["astrocytes"] == len(all_) and 0 < made["open_to_last_s"] < 60 and made["cpu_s"] > 0
    files = [store] if store.is_file() else [f for f in store.rglob("*") if f.is_file()]
    stored = sum(f.stat().st_size for f in files)
    # basalt writes the end of its log while the process ends.
    assert made["bytes_stored"] <= stored if name == "basalt" else made["bytes_stored"] == stored
    chosen = tmp_path / "chosen"
    chosen.write_text("2\n1\n2\n")
    for what in ("synapse", "neuron"):
        for asked, vertices, repeat in ((chosen, [1, 2], []), (len(all_), all_, ["--repeat", 2])):
            lists = network.lists(what, vertices)
            read = told(peer(name, "read", store, "--what", what, "--vertices", asked, *repeat, *arm))
            assert read["digest"] == network.digest(lists)
            assert (read["links"], read["vertices"]) == (sum(map(len, lists)), len(vertices))
            assert read["sum"] == sum(int(ids.sum()) for ids in lists)
            assert read["bytes_decoded"] == 8 * read["links"] and read["open_s"] > 0
        path, ends = some(network, what, tmp_path)
        back = peer(name, "read", store, "--what", what, "--vertices", path, "--reverse", *arm, check=False)
        if name == "libsonata" and back.returncode != 0:
            # Synapses that are few and far between have no index, and libsonata refuses ids that are beyond the last.
            assert "error: " in back.stderr
        else:
            assert told(back)["digest"] == network.digest(network.lists(what, ends, True, first))


def test_h5py_reads_the_file_itself(network, tmp_path):
    for arm in ("batch", "one"):
        for what in ("synapse", "neuron"):
            read = told(peer("h5py", "read", network.path, "--what", what, "--vertices", network.astrocytes, "--arm", arm))
            assert read["digest"] == network.digest(network.lists(what, range(network.astrocytes)))
    assert peer("h5py", "import", network.path, tmp_path / "none", check=False).returncode == 1


@pytest.mark.long
@pytest.mark.parametrize("name", MUTABLE, ids=" ".join)
@pytest.mark.parametrize("batch", [1, 7])
def test_inserted_edges_are_read(network, tmp_path, name, batch):
    name, *arm = name
    store, copy = tmp_path / "store", tmp_path / "copy"
    before = told(peer(name, "import", network.path, store, *arm))["digest"]
    done = told(peer(name, "insert", store, "--into", copy, "--edges", 40, "--batch", batch, *arm))
    assert done["latency_us"]["n"] == -(-40 // batch) and done["seconds_an_insert"]["p50"] > 0
    edges = [(i * 2654435761 % network.astrocytes, NEW + i) for i in range(40)]
    everybody = range(network.astrocytes)
    lists = [np.append(ids, np.array([s for b, s in edges if b == a], "u8")) for a, ids in zip(everybody, network.lists("synapse", everybody), strict=True)]
    read = told(peer(name, "read", copy, "--vertices", network.astrocytes, *arm))
    assert read["digest"] == network.digest(lists)
    new = tmp_path / "new"
    new.write_text("".join(f"{s}\n" for _, s in edges))
    back = told(peer(name, "read", copy, "--what", "synapse", "--reverse", "--vertices", new, *arm))
    assert back["digest"] == network.digest([np.array([a], "u8") for a, _ in edges])
    again = [told(peer(name, "read", store, "--what", what, "--vertices", network.astrocytes, *arm))["links"] for what in ("synapse", "neuron")]
    assert sum(again) == sum(len(ids) for lists in network.forward.values() for ids in lists), f"the store itself is as it was: {before}"


@pytest.mark.long
@pytest.mark.parametrize("name", [*PEERS, ("h5py",)], ids=" ".join)
def test_a_failure_is_a_failure(network, tmp_path, name):
    name, *arm = name
    (tmp_path / "there").mkdir()
    verbs = [("read", tmp_path / "none", "--vertices", 1), ("insert", tmp_path / "none", "--edges", 1)]
    verbs += [("import", tmp_path / "none.h5", tmp_path / "a"), ("import", network.path, tmp_path / "there")]
    verbs += [("import", network.path, tmp_path / "b", "--max-astrocytes", 10**6), ("read", tmp_path / "none")]
    for arguments in verbs:
        done = peer(name, *arguments, *arm, check=False)
        assert done.returncode in (1, 2) and done.stderr and not done.stdout, arguments
