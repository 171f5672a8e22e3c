"""`thalweg graph` against h5py, numpy and libsonata: the same neighbours and attributes, through changes, damage and crashes."""

import fcntl
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import time

import h5py
import libsonata
import numpy as np
import pyarrow.parquet
import pytest

from nanopore import ONE_OF, SHARED
from sonata_files import NGV, SONATA, Edges, attributes_of, edges_of, network_of

GRAPHS = SHARED.parent / "graph"


@pytest.fixture
def graph(thalweg):
    def call(verb, *arguments, **options):
        return thalweg("graph", verb, *arguments, **options)

    return call


def rows(result):
    """Of `neighbors`: vertex, count and what stands for the neighbours."""
    return [tuple(line.split("\t")) for line in result.stdout.splitlines()]


def row(vertex, ids):
    digest = hashlib.sha256(np.sort(ids).astype("<u8").tobytes()).hexdigest()
    return str(vertex), str(len(ids)), digest


def same_neighbours(graph, store, network, directions=("auto", "out", "in", "both")):
    """Every pair of types, every direction."""
    asked = 0
    for source in network.types:
        for target in network.types:
            for direction in directions:
                lists = network.neighbours(source, target, direction)
                done = graph("neighbors", store, "--from", source, "--to", target, "--direction", direction, "--digest", check=False)
                if lists is None:
                    assert done.returncode == 2 and "no population connects" in done.stderr
                    continue
                assert done.returncode == 0 and done.stderr == "", done.stderr
                assert rows(done) == [row(vertex, ids) for vertex, ids in lists.items()], (source, target, direction)
                asked += 1
    assert asked >= 2


@pytest.fixture(scope="module", params=[*NGV, *SONATA])
def real(request):
    path = GRAPHS / request.param
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return path


@pytest.mark.parametrize("ids", ["packed", "raw"])
def test_neighbours_are_those_of_h5py(graph, tmp_path, real, ids):
    done = json.loads(graph("import", real, tmp_path / "s", "--json", "--ids", ids).stdout)
    network = network_of(real)
    assert done["edges"] == sum(len(edges.sources) for edges in network.edges)
    assert done["vertices"] == sum(map(len, network.types.values()))
    info = json.loads(graph("info", tmp_path / "s", "--json").stdout)
    assert {kind["name"]: kind["vertices"] for kind in info["types"]} == {name: len(ids) for name, ids in network.types.items()}
    assert {edges["name"]: edges["edges"] for edges in info["populations"]} == {edges.name: len(edges.sources) for edges in network.edges}
    same_neighbours(graph, tmp_path / "s", network)
    assert "whole" in graph("check", tmp_path / "s").stdout
    # Not mapped, and on one thread, it is the same.
    one = graph("neighbors", tmp_path / "s", "--from", network.edges[0].source)
    assert graph("neighbors", tmp_path / "s", "--from", network.edges[0].source, "--no-map", "--threads", 1).stdout == one.stdout


@pytest.mark.parametrize("name", SONATA)
def test_neighbours_are_those_of_libsonata(graph, tmp_path, name):
    path = GRAPHS / name
    graph("import", path, tmp_path / "s")
    storage = libsonata.EdgeStorage(str(path))
    for edges in edges_of(path):
        out = tmp_path / f"{edges.name}.parquet"
        told = graph("export", tmp_path / "s", out, "--edges", edges.name, "--force").stderr
        assert told.startswith(f"exported {len(edges.sources)} edges and 0 vertices -> {out}, ")
        table = pyarrow.parquet.read_table(out)
        sources, targets = table["source"].to_numpy(), table["target"].to_numpy()
        if len(edges.sources) == 0:
            # libsonata opens no population that has only a name.
            assert len(table) == 0 and table.column_names == ["source", "target"]
            continue
        population = storage.open_population(edges.name)
        every = population.select_all()
        ends = population.source_nodes(every), population.target_nodes(every)
        order = np.lexsort(ends[::-1])
        assert np.array_equal(sources, ends[0][order]) and np.array_equal(targets, ends[1][order])
        if not is_indexed(path, edges):
            continue
        for vertex in np.unique(np.append(sources, targets)).tolist():
            after = population.target_nodes(population.efferent_edges([vertex])) if vertex in edges.sources else []
            before = population.source_nodes(population.afferent_edges([vertex])) if vertex in edges.targets else []
            assert np.array_equal(targets[sources == vertex], np.sort(after))
            assert np.array_equal(np.sort(sources[targets == vertex]), np.sort(before))


def is_indexed(path, edges):
    """Whether a file's own index is of all edges: some were cut down from larger files, and kept what was theirs."""
    with h5py.File(path) as file:
        indices = file["edges"][edges.name].get("indices", {})
        found = [int(np.diff(side["range_to_edge_id"][()].astype("i8")).sum()) for side in indices.values()]
    assert found or "no-index" in path.name
    return found == [len(edges.sources)] * 2


@pytest.mark.parametrize("name", [*SONATA, "archngv/glia_nodes.h5", "libsonata/nodes1.h5", "snap/nodes.h5"])
def test_attributes_are_the_same_bits(graph, tmp_path, name):
    path = GRAPHS / name
    graph("import", path, tmp_path / "s")
    for kind, population, ids, expected in attributes_of(path):
        table_path, text_path = tmp_path / f"{population}.parquet", tmp_path / f"{population}.csv"
        for out in (table_path, text_path):
            graph("export", tmp_path / "s", out, f"--{kind}", population, "--force")
        table = pyarrow.parquet.read_table(table_path)
        assert table.column_names == [*ids, *expected]
        text = [line.split(",") for line in text_path.read_text().splitlines()]
        assert text[0] == table.column_names and len(text) == len(table) + 1
        for number, (name, values) in enumerate({**ids, **expected}.items()):
            found = table[name].to_pylist() if values.dtype == object else table[name].to_numpy()
            written = [line[number] for line in text[1:]]
            if values.dtype == object:
                assert found == list(values)
                assert written == ["" if value is None else value for value in values]
            else:
                assert found.dtype == values.dtype and found.tobytes() == values.tobytes()
                assert np.array(written).astype(values.dtype).tobytes() == values.tobytes()


@pytest.fixture(scope="module")
def made(thalweg_binary, tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "n.h5"
    command = [thalweg_binary, "synth", path, "--kind", "neuroglial", "--astrocytes", "40", "--neurons", "700"]
    subprocess.run(command, check=True, capture_output=True)
    return path


def test_a_made_network(graph, tmp_path, made):
    store = tmp_path / "s"
    graph("import", made, store)
    same_neighbours(graph, store, network_of(made), ["auto"])
    with h5py.File(made) as file:
        back, ids = file["Neuron/offsets"][()], file["Neuron/astrocyte"][()]
        degrees = np.diff(file["Astrocyte/offsets"][:, 0])
    # As the file has them from the other side.
    found = rows(graph("neighbors", store, "--from", "neuron", "--to", "astrocyte", "--digest"))
    assert found == [row(vertex, ids[a:b]) for vertex, (a, b) in enumerate(zip(back[:-1], back[1:], strict=True))]
    degree = graph("degree", store, "--from", "Astrocyte", "--to", "Synapse").stdout
    assert degree == "".join(f"{vertex}\t{n}\n" for vertex, n in enumerate(degrees))
    summary = json.loads(graph("degree", store, "--from", "Astrocyte:0-9", "--to", "Synapse", "--summary", "--json").stdout)
    first = degrees[:10]
    assert summary.pop("schema") == "thalweg.graph-degrees/1"
    assert summary == {"vertices": 10, "edges": first.sum(), "least": first.min(), "mean": first.sum() / 10, "greatest": first.max()}
    lists = network_of(made).neighbours("Astrocyte", "Synapse", "auto")
    measured = json.loads(graph("neighbors", store, "--from", "Astrocyte:3-7,1", "--to", "Synapse", "--measured", "--digest").stdout)
    wanted = np.concatenate([np.sort(lists[vertex]) for vertex in (1, 3, 4, 5, 6, 7)]).astype("<u8")
    assert measured["digest"] == hashlib.sha256(wanted.tobytes()).hexdigest()
    assert (measured["links"], measured["sum"]) == (len(wanted), int(wanted.sum()))
    # Again, and in pieces of bounded memory, it is the same store.
    again = json.loads(graph("import", made, store, "--json", "--memory", "4MiB").stdout)
    assert again["edges"] == again["vertices"] == 0
    graph("import", made, tmp_path / "t", "--memory", "4MiB")
    for other in (store, tmp_path / "t"):
        assert rows(graph("neighbors", other, "--from", "neuron", "--to", "astrocyte", "--digest")) == found
        graph("check", other)


def test_the_first_astrocytes(graph, tmp_path, made):
    graph("import", made, tmp_path / "s", "--max-astrocytes", 7)
    whole = network_of(made)
    for kind in ("Synapse", "Neuron"):
        lists = whole.neighbours("Astrocyte", kind, "auto")
        assert rows(graph("neighbors", tmp_path / "s", "--from", "Astrocyte", "--to", kind, "--digest")) == [row(v, lists[v]) for v in range(7)]


def test_part_of_a_network(graph, tmp_path, made):
    graph("import", made, tmp_path / "s")
    graph("export", tmp_path / "s", tmp_path / "p.csv", "--edges", "Astrocyte-Neuron", "--between", "Astrocyte:0-9", "--and", "Neuron:0-299")
    edges = next(edges for edges in network_of(made).edges if edges.name == "Astrocyte-Neuron")
    kept = (edges.sources < 10) & (edges.targets < 300)
    expected = sorted(zip(edges.sources[kept].tolist(), edges.targets[kept].tolist(), strict=True))
    found = [tuple(map(int, line.split(","))) for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    assert found == expected and found


def changed(result):
    """Vertices that are new and gone, edges that are new and gone."""
    told = json.loads(result.stdout)
    return [told[f"{what}_{how}"] for what in ("vertices", "edges") for how in ("added", "removed")]


def test_inserted_and_deleted_edges_are_seen(graph, tmp_path, made):
    store = tmp_path / "s"
    graph("import", made, store, "--max-astrocytes", 6)
    network = network_of(made, 6)
    neurons = next(edges for edges in network.edges if edges.name == "Astrocyte-Neuron")
    pairs = set(zip(neurons.sources.tolist(), neurons.targets.tolist(), strict=True))
    # Added: a new neuron, one that is there, and an edge that is there already.
    there = min(pairs)
    missing = next(n for n in range(700) if (5, n) not in pairs)
    added = [(5, missing), (0, 1 << 50), there]
    done = graph("add", store, "--edges", "Astrocyte-Neuron:" + ",".join(f"{a}-{b}" for a, b in added), "--vertices", "Neuron:30000", "--json")
    known = network.types["Neuron"]
    network.types["Neuron"] = np.union1d(known, np.array([missing, 30_000, 1 << 50], "u8"))
    assert changed(done) == [len(network.types["Neuron"]) - len(known), 0, 2, 0]
    pairs |= set(added)
    # Removed: edges, and a vertex with all that lead to it.
    gone = sorted(pairs)[3:9]
    (tmp_path / "gone.txt").write_text("".join(f"{a} {b}\n" for a, b in gone))
    assert changed(graph("remove", store, "--edges", f"Astrocyte-Neuron:{tmp_path / 'gone.txt'}", "--json")) == [0, 0, 0, 6]
    pairs -= set(gone)
    victim = max(pairs - {(0, 1 << 50)})[1]
    arriving = {pair for pair in pairs if pair[1] == victim}
    assert changed(graph("remove", store, "--vertices", f"Neuron:{victim}", "--json")) == [0, 1, 0, len(arriving)]
    pairs -= arriving
    network.types["Neuron"] = network.types["Neuron"][network.types["Neuron"] != victim]
    neurons.sources, neurons.targets = np.array(sorted(pairs), "u8").T
    same_neighbours(graph, store, network, ["auto"])
    degree = graph("degree", store, "--from", "Astrocyte", "--to", "Neuron").stdout.splitlines()
    assert [int(line.split("\t")[1]) for line in degree] == np.bincount(neurons.sources.astype(int), minlength=6).tolist()
    asked = graph("neighbors", store, "--from", f"Neuron:{victim}", "--to", "Astrocyte", check=False)
    assert asked.returncode == 1 and "not there" in asked.stderr
    # Compacted, and with the ids kept otherwise.
    for ids in ("packed", "raw"):
        done = json.loads(graph("compact", store, "--ids", ids, "--json").stdout)
        assert done["after"]["segments"] == 1 and done["after"]["changes_in_log"] == 0
        same_neighbours(graph, store, network, ["auto"])
        checked = json.loads(graph("check", store, "--json").stdout)
        assert checked["defects"] == []
    # All edges of a population, then all vertices of a type.
    assert changed(graph("remove", store, "--edges", "Astrocyte-Neuron", "--json")) == [0, 0, 0, len(pairs)]
    neurons.sources = neurons.targets = np.zeros(0, "u8")
    same_neighbours(graph, store, network, ["auto"])
    synapses = next(edges for edges in network.edges if edges.name == "Astrocyte-Synapse")
    assert changed(graph("remove", store, "--vertices", "Synapse", "--json")) == [0, len(network.types["Synapse"]), 0, len(synapses.sources)]
    network.types["Synapse"] = synapses.sources = synapses.targets = np.zeros(0, "u8")
    same_neighbours(graph, store, network, ["auto"])
    graph("compact", store)
    same_neighbours(graph, store, network, ["auto"])
    graph("check", store)


def test_a_store_without_a_file(graph, tmp_path):
    """Networks of one type: undirected edges are seen from either end, several edges count, and hops go on."""
    store = tmp_path / "s"
    graph("add", store, "--edges", "gap:2-1,2-3,3-4,4-4,9-8", "--between", "Neuron,Neuron")
    graph("add", store, "--edges", "chem:1-2,1-2,2-4,4-1", "--between", "Neuron,Neuron", "--directed", "--several")
    either = {1: [2], 2: [1, 3], 3: [2, 4], 4: [3, 4], 8: [9], 9: [8]}
    after, before = {1: [2, 2], 2: [4], 4: [1]}, {2: [1, 1], 4: [2], 1: [4]}

    def lines(*options):
        return [(int(v), [int(n) for n in ids.split()]) for v, _, ids in rows(graph("neighbors", store, "--from", "neuron", *options))]

    def both(*parts):
        return [(v, sorted(sum((part.get(v, []) for part in parts), []))) for v in either]

    for compacted in (False, True):
        assert lines() == lines("--direction", "out") == both(either, after), compacted
        assert lines("--direction", "in") == both(either, before)
        assert lines("--direction", "both") == both(either, after, before)
        assert lines("--unique") == [(v, sorted(set(ids))) for v, ids in both(either, after)]
        for hops in (1, 2, 3, 9):
            steps = dict(both(either, after))
            reached = []
            for start in either:
                front = seen = {start}
                for _ in range(hops):
                    front = {n for v in front for n in steps[v]} - seen
                    seen = seen | front
                reached.append((start, sorted(seen - {start})))
            assert lines("--hops", hops) == reached, hops
        graph("check", store)
        graph("compact", store)
    graph("remove", store, "--edges", "gap:1-2")
    assert lines("--direction", "in")[0] == (1, [4])
    graph("add", store, "--edges", "odd:1-2", "--between", "Neuron,Glia")
    done = graph("neighbors", store, "--from", "Glia", "--to", "Neuron", "--hops", 2, check=False)
    assert done.returncode != 0 and "goes no further" in done.stderr


def test_only_one_writes(graph, tmp_path, made):
    store = tmp_path / "s"
    graph("add", store, "--edges", "gap:1-2", "--between", "Neuron,Neuron")
    with open(store / "lock", "r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for verb in (["add", store, "--edges", "gap:5-6"], ["remove", store, "--edges", "gap"], ["compact", store], ["import", made, store]):
            done = graph(*verb, check=False)
            assert done.returncode in (1, 2) and "another process writes to it; only one can at a time" in done.stderr
        # Who reads may.
        assert graph("neighbors", store, "--from", "Neuron:1").stdout == "1\t1\t2\n"
        graph("check", store)
    graph("add", store, "--edges", "gap:5-6")


def test_damage_is_found(graph, tmp_path, made):
    store = tmp_path / "s"
    graph("import", made, store, "--max-astrocytes", 3)
    ways = [("Astrocyte", "Synapse"), ("Synapse", "Astrocyte"), ("Astrocyte", "Neuron"), ("Neuron", "Astrocyte")]

    def answers():
        return [graph("neighbors", store, "--from", a, "--to", b, "--digest", check=False) for a, b in ways]

    sound = [answer.stdout for answer in answers()]
    segment = max((path for path in store.iterdir() if path.suffix == ".seg"), key=lambda path: path.stat().st_size)
    data = segment.read_bytes()
    failures = 0
    for at in range(100, len(data), len(data) // 9):
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        segment.write_bytes(damaged)
        done = graph("check", store, check=False)
        assert done.returncode == 1 and str(segment) in done.stderr and "byte" in done.stderr, (at, done.stderr)
        told = json.loads(graph("check", store, "--json", check=False).stdout or "null")
        assert told is None or told["defects"]
        for answer, before in zip(answers(), sound, strict=True):
            failures += answer.returncode
            assert answer.returncode in (0, 1) and "panicked" not in answer.stderr
            assert before == answer.stdout if answer.returncode == 0 else before.startswith(answer.stdout) and str(segment) in answer.stderr
    assert failures >= 3
    segment.write_bytes(data[: len(data) // 2])
    for verb in (["check", store], ["neighbors", store, "--from", "Astrocyte"], ["compact", store], ["info", store]):
        done = graph(*verb, check=False)
        assert done.returncode == 1 and str(segment) in done.stderr
    segment.write_bytes(data)
    assert [answer.stdout for answer in answers()] == sound


def test_damage_is_mended(graph, tmp_path, made):
    store = tmp_path / "s"
    graph("import", made, store, "--max-astrocytes", 5)
    graph("add", store, "--edges", "Astrocyte-Neuron:0-1048576,4-1048577")
    network = network_of(made, 5)
    neurons = next(edges for edges in network.edges if edges.name == "Astrocyte-Neuron")
    neurons.sources = np.append(neurons.sources, np.array([0, 4], "u8"))
    neurons.targets = np.append(neurons.targets, np.array([1 << 20, 1 + (1 << 20)], "u8"))
    network.types["Neuron"] = np.union1d(network.types["Neuron"], neurons.targets)
    # Any byte of a segment or of the manifest: nothing is lost.
    for number, at in enumerate([0.1, 0.3, 0.5, 0.7, 0.99, 1]):
        for path in sorted(path for path in store.iterdir() if path.suffix == ".seg" or path.name == "manifest"):
            data = path.read_bytes()
            damaged = bytearray(data)
            damaged[int(at * (len(data) - 1))] ^= 0x20
            path.write_bytes(damaged)
            out = tmp_path / f"{path.stem}-{number}"
            before = {p.name: p.read_bytes() for p in store.iterdir()}
            told = json.loads(graph("check", store, "--repair", out, "--json").stdout)
            assert told["complete"] and {p.name: p.read_bytes() for p in store.iterdir()} == before
            assert told["defects"] and {p["name"]: p["kept"] for p in told["populations"]} == {e.name: len(e.sources) for e in network.edges}
            same_neighbours(graph, out, network, ["auto"])
            assert "whole" in graph("check", out).stdout
            path.write_bytes(data)
    # The log's only change.
    log = next(path for path in store.iterdir() if path.suffix == ".log")
    data = log.read_bytes()
    log.write_bytes(data[:-3] + b"!" + data[-2:])
    done = graph("check", store, "--repair", tmp_path / "l", check=False)
    assert done.returncode == 1 and "not all is there" in done.stdout and str(log) in done.stderr
    assert graph("neighbors", tmp_path / "l", "--from", "Neuron:1048576", "--to", "Astrocyte", check=False).returncode == 1
    assert "whole" in graph("check", tmp_path / "l").stdout
    log.write_bytes(data)
    # The lists of both sides: what is lost is counted, and the rest is there.
    segment = max((path for path in store.iterdir() if path.suffix == ".seg"), key=lambda path: path.stat().st_size)
    data = segment.read_bytes()
    segment.write_bytes(bytes(byte ^ (number % 8192 == 0) for number, byte in enumerate(data)))
    told = json.loads(graph("check", store, "--repair", tmp_path / "b", "--json", check=False).stdout)
    assert not told["complete"]
    for edges in told["populations"]:
        assert edges["kept"] + sum(lost["count"] for lost in edges["lost"]) == edges["expected"]
    assert "whole" in graph("check", tmp_path / "b").stdout
    for kind in ("Synapse", "Neuron"):
        lists = network.neighbours("Astrocyte", kind, "auto")
        for line in graph("neighbors", tmp_path / "b", "--from", "Astrocyte", "--to", kind).stdout.splitlines():
            vertex, _, ids = line.split("\t")
            assert set(map(int, ids.split())) <= set(lists[int(vertex)].tolist())
    # What is there is not written over, and where there is nothing to go by, it says so.
    done = graph("check", store, "--repair", tmp_path / "b", check=False)
    assert done.returncode == 2 and "there is something already" in done.stderr
    for name in ("manifest", "manifest.copy"):
        (store / name).write_bytes(b"?")
    done = graph("check", store, "--repair", tmp_path / "none", check=False)
    assert done.returncode == 1 and "nowhere else" in done.stderr and not (tmp_path / "none" / "manifest").exists()


def test_an_import_that_is_killed(graph, thalweg, thalweg_binary, tmp_path):
    store, more = tmp_path / "s", tmp_path / "more.h5"
    thalweg("synth", more, "--kind", "neuroglial", "--astrocytes", 300, "--neurons", 6000)
    graph("import", more, store, "--max-astrocytes", 2)

    def state():
        lists = [graph("neighbors", store, "--from", "Neuron", "--to", kind, "--digest").stdout for kind in ["Astrocyte"]]
        return lists, graph("info", store, "--json").stdout

    before, files = state(), set(store.iterdir())
    for wait in (0.0, 0.2, 0.6)[::-ONE_OF]:
        child = subprocess.Popen([thalweg_binary, "graph", "import", more, store, "--memory", "8MiB"], stdout=subprocess.DEVNULL)
        while child.poll() is None and set(store.iterdir()) == files:
            time.sleep(0.005)
        time.sleep(wait)
        child.send_signal(signal.SIGKILL)
        if child.wait() == 0:
            pytest.skip("this machine imports before it can be stopped")
        assert state() == before
        graph("check", store)
    # Nothing of them is left behind once somebody writes.
    assert json.loads(graph("import", more, store, "--json").stdout)["edges"] > 0
    graph("check", store)
    found = rows(graph("neighbors", store, "--from", "Astrocyte", "--to", "Synapse", "--digest"))
    assert found == [row(vertex, ids) for vertex, ids in network_of(more).neighbours("Astrocyte", "Synapse", "auto").items()]
    names = {path.name for path in store.iterdir()}
    assert not any(name.endswith(".tmp") for name in names) and len(names) <= len(files) + 2, names


def test_an_import_that_goes_on(graph, thalweg, thalweg_binary, tmp_path):
    store, more = tmp_path / "s", tmp_path / "more.h5"
    thalweg("synth", more, "--kind", "neuroglial", "--astrocytes", 300, "--neurons", 6000)
    command = [thalweg_binary, "graph", "import", more, store, "--keep-every", "0"]
    for _ in range(10):
        child = subprocess.Popen([*command, "--anew"], stdout=subprocess.DEVNULL)
        while child.poll() is None and not ((store / "manifest").exists() and b"unfinished_import" in (store / "manifest").read_bytes()):
            time.sleep(0.001)
        child.send_signal(signal.SIGKILL)
        if child.wait() != 0:
            break
        for path in store.iterdir():
            path.unlink()
    else:
        pytest.skip("this machine imports before it can be stopped")
    # Nothing shows of it, and it goes on with the same file only.
    info = json.loads(graph("info", store, "--json").stdout)
    assert info["types"] == info["populations"] == [] and "whole" in graph("check", store).stdout
    meta = more.stat()
    more.touch()
    done = graph("import", more, store, check=False)
    assert done.returncode != 0 and "--anew" in done.stderr and "1 of its 2 populations" in done.stderr
    os.utime(more, ns=(meta.st_atime_ns, meta.st_mtime_ns))
    done = json.loads(graph("import", more, store, "--json").stdout)
    network = network_of(more)
    assert done["populations_resumed"] == 1 and done["edges"] == sum(len(edges.sources) for edges in network.edges)
    for kind in ("Synapse", "Neuron"):
        found = rows(graph("neighbors", store, "--from", "Astrocyte", "--to", kind, "--digest"))
        assert found == [row(vertex, ids) for vertex, ids in network.neighbours("Astrocyte", kind, "auto").items()]
    assert "whole" in graph("check", store).stdout
    segments = json.loads(graph("info", store, "--json").stdout)["segments"]
    assert sorted(path.suffix or path.name for path in store.iterdir()) == [".copy", ".log", *[".seg"] * segments, "lock", "manifest"]
    # Once it is there, it is read again, and nothing is new.
    again = json.loads(graph("import", more, store, "--json").stdout)
    assert (again["edges"], again["vertices"], again["populations_resumed"], again["links"]) == (0, 0, 0, done["links"])


def test_senseless_commands_are_refused(graph, tmp_path, made):
    store = tmp_path / "s"
    done = graph("info", tmp_path / "none", check=False)
    assert done.returncode == 1 and "none" in done.stderr and not (tmp_path / "none").exists()
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["numbers"] = np.arange(5)
    done = graph("import", tmp_path / "other.h5", store, check=False)
    assert done.returncode == 1 and "without edges or vertices" in done.stderr
    graph("import", made, store, "--max-astrocytes", 1)
    for verb, words in (
        (["neighbors", store, "--from", "Nobody"], "there are "),
        (["neighbors", store, "--from", "Astrocyte:x"], "x"),
        (["export", store, tmp_path / "a.xyz", "--edges", "Astrocyte-Neuron"], ".parquet"),
        (["export", store, tmp_path / "a.csv", "--edges", "Nothing"], "Astrocyte-Neuron"),
        (["add", store, "--edges", "New:1-2"], "New"),
        (["remove", store, "--edges", "Astrocyte-Neuron:1-2-3"], "1-2-3"),
    ):
        done = graph(*verb, check=False)
        assert done.returncode in (1, 2) and words in done.stderr and "panicked" not in done.stderr
    assert not list(tmp_path.glob("a.*"))
