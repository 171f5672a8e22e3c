"""Networks, against the command, numpy and libsonata."""

import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import h5py
import libsonata
import numpy as np
import pyarrow
import pytest
import thalweg


@pytest.fixture
def network(tmp_path):
    """Neurons in a ring, each with an edge to the next, and edges of weights to the one after it."""
    network = thalweg.create_network(tmp_path / "network")
    ids = np.arange(10)
    with network.transaction() as change:
        change.add_vertices("Neuron", ids, {"layer": ids % 3, "name": [f"n{id}" for id in ids]})
        change.add_edges("gap", np.stack([ids, (ids + 1) % 10], 1), between=("Neuron", "Neuron"))
        pairs = [(id, (id + 2) % 10) for id in range(10)]
        weights = {"weight": ids / 4, "synapse": ids.astype("i2")}
        change.add_edges("chemical", pairs, weights, between=("Neuron", "Neuron"), directed=True, several=True)
    return network


def printed(command, *args):
    lines = [line.split("\t") for line in command("graph", *args).splitlines() if not line.startswith("#")]
    assert lines
    return {int(vertex): [int(id) for id in ids.split()] for vertex, _, ids in lines}


def test_neighbors_are_those_of_the_command(files, command):
    network = thalweg.open(files / "network")
    assert network.types["Astrocyte"] == 50
    for of, to in [("Astrocyte", "Neuron"), ("Astrocyte", None), ("Neuron", "Astrocyte")]:
        expected = printed(command, "neighbors", files / "network", "--from", of, *(["--to", to] if to else []))
        ids = np.array(list(expected))
        found = network.neighbors(of, ids, to)
        assert len(found) == len(ids) == len(found.offsets) - 1
        assert [list_.tolist() for list_ in found] == list(expected.values())
        assert found[-1].tolist() == found[len(ids) - 1].tolist() and found[1:3][1].tolist() == found[2].tolist()
        degree = network.degree(of, ids, to)
        assert degree.tolist() == [len(list_) for list_ in found] == np.diff(found.offsets).tolist()
        assert not found.ids.flags.writeable
    with pytest.raises(IndexError):
        found[len(ids)]


def test_a_vertex_that_does_not_exist_has_no_neighbors(files):
    found = thalweg.open(files / "network").neighbors("Astrocyte", [10**9, 0])
    assert found[0].size == 0 and found[1].size > 0


def test_ids_may_be_anything_with_whole_numbers(files):
    network = thalweg.open(files / "network")
    expected = network.neighbors("Astrocyte", [3, 1, 3], "Neuron")
    assert expected[0].tolist() == expected[2].tolist() != expected[1].tolist()
    for ids in [
        (3, 1, 3),
        iter([3, 1, 3]),
        np.array([3, 1, 3], "u1"),
        np.array([3, 1, 3], ">i8"),
        np.array([3, 9, 1, 9, 3, 9])[::2],
        pyarrow.array([3, 1, 3], pyarrow.uint64()),
        [np.int32(3), np.uint64(1), 3],
    ]:
        found = network.neighbors("Astrocyte", ids, "Neuron")
        assert np.array_equal(found.ids, expected.ids) and np.array_equal(found.offsets, expected.offsets)
    for ids in [range(0), [], np.array([])]:
        assert len(network.neighbors("Astrocyte", ids)) == 0
    assert network.has_vertices("Astrocyte", range(48, 52)).tolist() == [True, True, False, False]
    assert network.has_vertices("Astrocyte", [2**64 - 1, 2**63, 1]).tolist() == [False, False, True]
    for wrong in [[-1], [1.5], ["1"], np.array([-1]), np.array([1.5]), np.array([[1]]), [2**64], range(-2, 2), [None]]:
        with pytest.raises(thalweg.UsageError, match="ids"):
            network.degree("Astrocyte", wrong)


def test_neighbors_are_arrow_data_without_a_copy(files):
    found = thalweg.open(files / "network").neighbors("Astrocyte", range(50), "Neuron")
    lists = pyarrow.array(found)
    assert lists.type == pyarrow.large_list(pyarrow.field("item", pyarrow.uint64(), nullable=False))
    assert lists.to_pylist() == [ids.tolist() for ids in found]
    assert lists.values.buffers()[1].address == found.ids.__array_interface__["data"][0]
    assert lists.buffers()[1].address == found.offsets.__array_interface__["data"][0]
    del found
    assert sum(map(len, lists.to_pylist())) == len(lists.values) > 0


@pytest.mark.parametrize("direction", ["out", "in", "both", "auto"])
def test_direction_and_population(network, command, direction):
    path = network._network.name
    for of, to in [("Neuron", "Neuron")]:
        asked = ["--from", of, "--to", to, "--direction", direction]
        expected = printed(command, "neighbors", path, *asked)
        found = network.neighbors(of, range(10), to, direction=direction)
        assert [ids.tolist() for ids in found] == [expected[id] for id in range(10)]
        assert network.degree(of, range(10), to, direction=direction).tolist() == list(map(len, expected.values()))
    chemical = network.neighbors("Neuron", range(10), population="chemical", direction=direction)
    ways = {"out": [2], "auto": [2], "in": [-2], "both": [2, -2]}[direction]
    assert [sorted(ids.tolist()) for ids in chemical] == [sorted((id + way) % 10 for way in ways) for id in range(10)]


def test_what_leads_nowhere_is_an_error(network):
    with network.transaction() as change:
        change.add_vertices("Glia", [0])
    for query in [{"to": "Glia"}, {"direction": "sideways"}]:
        with pytest.raises(thalweg.UsageError, match=r"gap \(Neuron -- Neuron\)|sideways"):
            network.neighbors("Neuron", [0], **query)
    with pytest.raises(thalweg.NotFoundError, match="Neuron, Glia"):
        network.neighbors("Nerve", [0])
    with pytest.raises(KeyError, match="gap, chemical"):
        network.neighbors("Neuron", [0], population="electric")


def test_conditions_are_those_of_the_command(network, command):
    path = network._network.name
    where = "to.layer == 1 or from == 3"
    expected = printed(command, "neighbors", path, "--from", "Neuron", "--to", "Neuron", "--where", where)
    found = network.neighbors("Neuron", range(10), where=where)
    assert [ids.tolist() for ids in found] == [expected[id] for id in range(10)] and len(found.ids) > 3
    # In any order, and with repetitions.
    again = network.neighbors("Neuron", [7, 3, 7, 99], where=where)
    assert [ids.tolist() for ids in again] == [expected[7], expected[3], expected[7], []]
    heavy = network.neighbors("Neuron", range(10), population="chemical", where="weight > 1")
    assert [ids.tolist() for ids in heavy] == [[(id + 2) % 10] if id / 4 > 1 else [] for id in range(10)]
    with pytest.raises(thalweg.UsageError, match="nothing"):
        network.neighbors("Neuron", [1], where="nothing == 1")


def test_vertices_and_edges_are_tables(network, command, tmp_path):
    table = network.vertices("Neuron")
    assert table.columns == ["id", "layer", "name"] and len(table) == 10
    assert table["id"].tolist() == list(range(10)) and table["layer"].dtype == np.int64
    assert table["name"] == [f"n{id}" for id in range(10)]
    some = network.vertices("Neuron", [7, 99, 7, 0], columns=["name", "layer"])
    assert some["name"] == ["n7", None, "n7", "n0"]
    assert some["layer"].tolist() == [1, None, 1, 0]
    assert pyarrow.record_batch(some).to_pydict() == {"name": ["n7", None, "n7", "n0"], "layer": [1, None, 1, 0]}
    assert network.vertices("Neuron", where="layer == 2")["id"].tolist() == [2, 5, 8]
    assert network.vertices("Neuron", [5, 6, 2], where="layer == 2")["id"].tolist() == [5, 2]
    with pytest.raises(thalweg.UsageError, match="id, layer, name"):
        network.vertices("Neuron", columns=["nothing"])
    edges = network.edges("chemical")
    command("graph", "export", network._network.name, tmp_path / "e.arrow", "--edges", "chemical")
    exported = pyarrow.ipc.open_file(tmp_path / "e.arrow").read_all()
    assert pyarrow.table(pyarrow.record_batch(edges)).to_pydict() == exported.to_pydict()
    assert dict(edges)["synapse"].dtype == np.int16
    part = network.edges("chemical", sources=[9, 1, 1, 5], targets=[3, 1], where="weight > 0.5", columns=["weight"])
    assert part.columns == ["weight"] and part["weight"].tolist() == [9 / 4]
    assert network.columns("Neuron") == {"id": "uint64", "layer": "int64", "name": "string"}
    schema = pyarrow.record_batch(edges).schema
    for name, kind in network.columns(population="chemical").items():
        assert pyarrow.type_for_alias(kind) == schema.field(name).type
    assert network.populations["chemical"] == ("chemical", "Neuron", "Neuron", True, True, 10)
    told = json.loads(command("graph", "info", network._network.name, "--json"))
    assert {each["name"]: each["edges"] for each in told["populations"]} == {
        name: population.edges for name, population in network.populations.items()
    }


def test_steps_and_subgraphs(network, command):
    found = network.khop("Neuron", [0], 2, population="gap")
    assert found.tolist() == [1, 2, 8, 9]
    asked = ["--from", "Neuron:0", "--to", "Neuron", "--hops", "2"]
    expected = printed(command, "neighbors", network._network.name, *asked)
    assert network.khop("Neuron", [0], 2).tolist() == expected[0]
    part = network.subgraph({"Neuron": [4, 2, 3]})
    assert {name: list(zip(edges["source"].tolist(), edges["target"].tolist())) for name, edges in part.items()} == {
        "gap": [(2, 3), (3, 4)],
        "chemical": [(2, 4)],
    }
    with pytest.raises(thalweg.UsageError, match="Nerve"):
        network.subgraph({"Nerve": [1]})
    assert network.has_edges("gap", [(2, 3), (3, 2), (2, 4)]).tolist() == [True, True, False]
    assert network.has_edges("chemical", np.array([[2, 4], [4, 2]])).tolist() == [True, False]


def test_a_transaction_is_durable_at_its_end(network, command):
    path = network._network.name
    other = thalweg.open(path)
    with network.transaction() as change:
        change.add_vertices("Neuron", [100])
        change.add_edges("gap", [(100, 101), (0, 1)])
        change.remove_edges("gap", [(0, 9), (5, 7)])
        change.remove_vertices("Neuron", [5, 1234])
        assert change.done is None
        assert not network.has_vertices("Neuron", [100])[0]
    # Vertex 5 has four edges; 0-1 was there.
    assert change.done == thalweg.Changed(vertices_added=2, vertices_removed=1, edges_added=1, edges_removed=5)
    assert network.has_vertices("Neuron", [100, 101, 5]).tolist() == [True, True, False]
    assert json.loads(command("graph", "info", path, "--json"))["types"][0]["vertices"] == 11
    assert other.has_vertices("Neuron", [100, 5]).tolist() == [False, True]
    other.refresh()
    assert other.has_vertices("Neuron", [100, 5]).tolist() == [True, False]
    with pytest.raises(thalweg.UsageError, match="block"):
        change.add_vertices("Neuron", [1])
    with network.transaction() as change:
        change.remove_vertices("Neuron", None)
    assert network.types == {"Neuron": 0} and network.populations["chemical"].edges == 0


def test_an_exception_undoes_all(network):
    before = network.edges("gap"), network.vertices("Neuron"), network.populations, network.types
    for error in [RuntimeError, KeyboardInterrupt]:
        with pytest.raises(error), network.transaction() as change:
            change.add_vertices("Glia", [1, 2], {"radius": [0.5, 1.5]})
            change.add_edges("new", [(1, 2)], between=("Glia", "Neuron"))
            change.remove_vertices("Neuron", [1, 2, 3])
            change.remove_edges("gap", None)
            raise error
    for _ in range(2):
        assert pyarrow.record_batch(network.edges("gap")) == pyarrow.record_batch(before[0])
        assert pyarrow.record_batch(network.vertices("Neuron")) == pyarrow.record_batch(before[1])
        assert (network.populations, network.types) == before[2:]
        network.refresh()
    # What is wrong is refused at its line, and nothing of the block is made.
    for wrong, message in [
        (lambda change: change.add_edges("nothing", [(1, 2)]), "gap, chemical"),
        (lambda change: change.remove_vertices("Nerve", [1]), "Neuron"),
        (lambda change: change.add_edges("chemical", [(1, 2)], {"weight": [1.0]}), "synapse"),
        (lambda change: change.add_edges("chemical", [(1, 2)], {"weight": ["x"], "synapse": [1]}), "weight"),
        (lambda change: change.add_edges("chemical", [(1, 2)], {"weight": [1.0], "synapse": [1 << 20]}), "synapse"),
        (lambda change: change.add_vertices("Neuron", [1, 2], {"layer": [1], "name": ["a"]}), r"\(2,\)"),
        (lambda change: change.add_vertices("New", [1], {"x": [1j]}), "complex|<c16"),
        (lambda change: change.add_vertices("New", [1], {"x": [None]}), "'x': found missing values"),
        (lambda change: change.add_vertices("New", [1], {"x": np.ma.masked_array([7], True)}), "found missing values"),
        (lambda change: change.add_vertices("Neuron", [1], {"layer": [None], "name": ["a"]}), "found missing values"),
        (lambda change: change.add_vertices("Neuron", [1], {"layer": [1.5], "name": ["a"]}), "float64, expected int64"),
        (lambda change: change.add_edges("gap", [(1, 2)], between=("Neuron", "Glia")), "which is not"),
        (lambda change: change.add_edges("gap", [(1, 2, 3)]), "pairs"),
        (lambda change: change.add_edges("gap", [(1, -2)]), "pairs"),
        (lambda change: change.add_edges("gap", [(1, 2)], directed=True), "between"),
        (lambda change: change.add_edges("chemical", [(1, 2)]), "attributes"),
    ]:
        with pytest.raises(thalweg.Error, match=message), network.transaction() as change:
            change.add_vertices("Neuron", [1000])
            wrong(change)
        assert not network.has_vertices("Neuron", [1000])[0]
    assert not network.check().defects


def test_attributes_are_set_and_kept(network):
    with network.transaction() as change:
        change.set_vertices("neuron", [3, 50], {"name": ["three", "fifty"], "layer": np.array([7, 8], "i4")})
        change.add_vertices("Neuron", [4, 51], {"layer": [9, 9], "name": ["no", "fifty-one"]})
        change.add_vertices("Glia", [1], {"big": [True], "radius": np.array([0.5], "f4")})
        change.add_vertices("Glia", [2])
    rows = network.vertices("Neuron", [3, 4, 50, 51])
    assert rows["name"] == ["three", "n4", "fifty", "fifty-one"] and rows["layer"].tolist() == [7, 1, 8, 9]
    glia = network.vertices("Glia")
    assert glia["big"].tolist() == [True, None] and glia["radius"].tolist() == [0.5, None]
    for large in [1e39, -1e300]:
        with pytest.raises(thalweg.UsageError, match=r"'radius': found -?1e\+\d+, expected numbers that float32"):
            with network.transaction() as change:
                change.set_vertices("Glia", [1], {"big": [True], "radius": [large]})
    with network.transaction() as change:
        change.set_vertices("Glia", [1], {"big": [True], "radius": np.ma.masked_array([np.inf])})
    assert network.vertices("Glia", [1])["radius"].tolist() == [np.inf]
    with network.transaction() as change:
        change.add_edges("chemical", [(1, 2), (1, 2)], {"synapse": [5, 6], "weight": [1, 2]})
    assert network.edges("chemical", sources=[1], targets=[2])["synapse"].tolist() == [5, 6]


def test_one_process_changes_a_network_at_a_time(network):
    path = network._network.name
    program = f"""
        import thalweg
        network = thalweg.open({path!r})
        print(network.has_vertices("Neuron", [77])[0])
        try:
            with network.transaction() as change:
                change.add_vertices("Neuron", [88])
        except thalweg.UsageError as error:
            print("refused:", error)
        """
    run = [sys.executable, "-c", textwrap.dedent(program)]
    with network.transaction() as change:
        change.add_vertices("Neuron", [77])
        during = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
        with pytest.raises(thalweg.UsageError, match="only one"), thalweg.open(path).transaction():
            raise AssertionError
    assert during[0] == "False" and during[1].startswith("refused:") and "only one can at a time" in during[1]
    after = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert after == "True\n"
    # A transaction begins with what others changed.
    with network.transaction():
        assert network.has_vertices("Neuron", [88])[0]


def test_threads_read_while_another_changes(network):
    failed = []
    done = threading.Event()

    def read():
        try:
            while not done.is_set():
                found = network.neighbors("Neuron", range(10), population="gap")
                # Each transaction adds one neighbour to every vertex of the ring.
                assert len({len(ids) for ids in found}) == 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(20):
        with network.transaction() as change:
            change.add_edges("gap", [(id, 100 + turn) for id in range(10)])
    done.set()
    for thread in threads:
        thread.join()
    assert not failed
    assert network.degree("Neuron", [0], population="gap").tolist() == [22]


@pytest.mark.filterwarnings("ignore:.*left out")
def test_new_networks_and_imports(files, command, tmp_path):
    command("graph", "export", files / "network", tmp_path / "circuit.h5")
    for file in [files / "circuit.h5", tmp_path / "circuit.h5"]:
        network = thalweg.import_network(file, tmp_path / file.parent.name / "deep" / "network")
        expected = thalweg.open(files / "network")
        assert network.types == expected.types
        counts = [{name: edges.edges for name, edges in each.populations.items()} for each in (network, expected)]
        assert counts[0] == counts[1]
        found = [each.neighbors("Astrocyte", range(50), "Neuron") for each in (network, expected)]
        assert np.array_equal(found[0].ids, found[1].ids) and np.array_equal(found[0].offsets, found[1].offsets)
    # Importing SONATA twice doubles its edges, and says so.
    with pytest.warns(UserWarning, match="twice"):
        thalweg.import_network(tmp_path / "circuit.h5", tmp_path / tmp_path.name / "deep" / "network")
    # After an error nothing is left, not even the folders.
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = [1, 2]
    with pytest.raises(thalweg.UnsupportedError):
        thalweg.import_network(tmp_path / "other.h5", tmp_path / "a" / "b")
    with h5py.File(tmp_path / "bad.h5", "w") as file:
        edges = file.create_group("edges/e")
        edges["source_node_id"], edges["target_node_id"] = [1, -2], [1, 2]
    with pytest.raises(thalweg.FormatError):
        thalweg.import_network(tmp_path / "bad.h5", tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    with pytest.raises(thalweg.ExistsError):
        thalweg.create_network(files / "network")
    with pytest.raises(thalweg.UsageError, match="other file"):
        thalweg.create_network(files)
    with pytest.raises(thalweg.NotFoundError):
        thalweg.open_network(tmp_path / "nothing")
    assert thalweg.create_network(tmp_path / "empty").types == {}
    assert thalweg.open_network(tmp_path / "empty", threads=1, memory="64MB", mapped=False).populations == {}


def test_networks_are_compacted_and_checked(network):
    before = network.edges("chemical")
    for id in range(1000, 1003):
        with network.transaction() as change:
            change.add_vertices("Neuron", [id])
    assert network.storage.changes_in_log > 0
    network.compact(raw=True)
    assert network.storage.segments == 1 and network.storage.changes_in_log == 0 and network.storage.bytes > 0
    assert pyarrow.record_batch(network.edges("chemical")) == pyarrow.record_batch(before)
    checked = network.check()
    assert checked.pages > 0 and checked.lists > 0 and not checked.defects


def test_a_check_names_the_damage(network):
    network.compact()
    (segment,) = Path(network._network.name).glob("*.seg")
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    defects = thalweg.open(network._network.name).check().defects
    assert defects and isinstance(defects[0], thalweg.FormatError) and segment.name in str(defects[0])


# Node sets.


@pytest.fixture(scope="module")
def circuit(tmp_path_factory):
    """SONATA nodes of two populations, as libsonata and thalweg have them."""
    folder = tmp_path_factory.mktemp("sonata")
    with h5py.File(folder / "nodes.h5", "w") as file:
        cells = file.create_group("nodes/cells")
        cells["node_type_id"] = np.full(40, -1)
        group = cells.create_group("0")
        group["layer"] = np.arange(40) % 6 + 1
        group["x"] = np.linspace(-3, 3, 40)
        group["radius"] = np.linspace(0, 1, 40, dtype="f4")
        group["depth"] = (np.arange(40) * 7 % 40).astype("u2")
        names = ["L%d_%s" % (id % 6 + 1, ["PC", "MC", "BTC"][id % 3]) for id in range(40)]
        group.create_dataset("mtype", data=names, dtype=h5py.string_dtype())
        group["etype"] = np.arange(40, dtype="u4") % 3
        group.create_dataset("@library/etype", data=["cAC", "bAC", "cNAC"], dtype=h5py.string_dtype())
        group["excitatory"] = (np.arange(40) % 2).astype("i1")
        other = file.create_group("nodes/thalamus")
        other["node_type_id"] = np.full(5, -1)
        other["0/layer"] = np.arange(5)
    with pytest.warns(UserWarning, match="left out"):
        network = thalweg.import_network(folder / "nodes.h5", folder / "network")
    return folder, network, libsonata.NodeStorage(str(folder / "nodes.h5"))


SETS = {
    "one": {"layer": 1},
    "some": {"layer": [2, 3, 99]},
    "none": {"layer": []},
    "above": {"layer": {"$gt": 4}},
    "from": {"layer": {"$gte": 4}},
    "below": {"x": {"$lt": -1.25}},
    "to": {"x": {"$lte": 0}},
    "real": {"radius": {"$gt": 0.5}},
    "whole": {"depth": [7, 39], "layer": {"$lt": 5}},
    "text": {"mtype": "L1_PC"},
    "texts": {"mtype": ["L1_PC", "L2_MC", "L9_XX"]},
    "begins": {"mtype": {"$regex": "^L[12]_"}},
    "ends": {"mtype": {"$regex": "C$"}},
    "within": {"mtype": {"$regex": "T"}},
    "code": {"etype": "cNAC"},
    "codes": {"etype": {"$regex": "^c.*AC"}},
    "ids": {"node_id": [5, 1, 1, 7, 4000]},
    "id": {"node_id": 3},
    "few": {"node_id": [1, 2, 3, 4, 7, 8], "layer": [2, 3], "mtype": {"$regex": "MC|PC"}},
    "bits": {"excitatory": 1},
    "here": {"population": "cells"},
    "both": {"population": ["cells", "thalamus"], "layer": 2},
    "there": {"population": "thalamus"},
    "union": ["one", "text", "ids"],
    "deep": ["union", "begins", "there"],
    "empty": [],
    "twice": ["one", "one"],
}


def test_node_sets_are_those_of_libsonata(circuit):
    folder, network, storage = circuit
    (folder / "sets.json").write_text(json.dumps(SETS))
    peer = libsonata.NodeSets.from_file(str(folder / "sets.json"))
    cells = storage.open_population("cells")
    sizes = set()
    for name in SETS:
        expected = np.sort(peer.materialize(name, cells).flatten())
        found = network.node_set(folder / "sets.json", name, "cells")
        assert np.array_equal(found, expected), name
        sizes.add(len(found))
    assert len(sizes) > 8
    thalamus = storage.open_population("thalamus")
    for name in ["one", "some", "above", "ids", "here", "both", "there"]:
        expected = np.sort(peer.materialize(name, thalamus).flatten())
        assert np.array_equal(network.node_set(folder / "sets.json", name, "thalamus"), expected), name
    # They are ids for other questions.
    layers = network.vertices("cells", network.node_set(folder / "sets.json", "above", "cells"))["layer"]
    assert set(layers.tolist()) == {5, 6}


@pytest.mark.parametrize(
    ("sets", "error", "message"),
    [
        ({"a": {"nope": 1}}, thalweg.NotFoundError, "excitatory"),
        ({"b": {"layer": 1}}, thalweg.NotFoundError, "there are b"),
        ({"a": ["nope"]}, thalweg.NotFoundError, "nope"),
        ({"a": ["b"], "b": ["a"]}, thalweg.FormatError, "a -> b -> a"),
        ({"a": {"layer": "1"}}, thalweg.FormatError, "text"),
        ({"a": {"mtype": 1}}, thalweg.FormatError, "numbers"),
        ({"a": {"mtype": {"$gt": 1}}}, thalweg.FormatError, "numbers"),
        ({"a": {"layer": {"$regex": "1"}}}, thalweg.FormatError, "text"),
        ({"a": {"etype": 0}}, thalweg.FormatError, "numbers"),
        ({"a": {"layer": {"$gte": 2, "$lt": 4}}}, thalweg.FormatError, "one operator"),
        ({"a": {"layer": {"$ne": 2}}}, thalweg.FormatError, "one operator"),
        ({"a": {"layer": None}}, thalweg.FormatError, "a number, or a text"),
        ({"a": {"mtype": ["L1_PC", 1]}}, thalweg.FormatError, "a number, or a text"),
        ({"a": {"mtype": {"$regex": "["}}}, thalweg.FormatError, "pattern"),
        ({"a": {"node_id": [-1]}}, thalweg.FormatError, "an id"),
        ({"a": {}}, thalweg.FormatError, "a part"),
        ({"a": 1}, thalweg.FormatError, "a rule"),
        ([1], thalweg.FormatError, "JSON object"),
    ],
)
def test_node_sets_that_libsonata_refuses_too(circuit, tmp_path, sets, error, message):
    _, network, storage = circuit
    (tmp_path / "sets.json").write_text(json.dumps(sets))
    with pytest.raises((libsonata.SonataError, RuntimeError)):
        libsonata.NodeSets.from_file(str(tmp_path / "sets.json")).materialize("a", storage.open_population("cells"))
    with pytest.raises(error, match=message):
        network.node_set(tmp_path / "sets.json", "a", "cells")


def test_types_are_defined_with_the_changes_or_not(tmp_path):
    network = thalweg.create_network(tmp_path / "network")
    with network.transaction() as change:
        change.add_vertices("N", [1, 2, 3])
        change.add_edges("e", [(1, 2)], {"w": [1.0]}, between=("N", "N"))
    with pytest.raises(thalweg.UsageError), network.transaction() as change:
        change.add_vertices("Glia", [7])
        change.add_edges("new", [(7, 1)], between=("Glia", "N"))
        change.add_edges("e", [(1, 3)])
    for state in [network, thalweg.open(tmp_path / "network")]:
        assert list(state.types) == ["N"] and list(state.populations) == ["e"]
    with network.transaction() as change:
        change.add_vertices("Glia", [7])
        change.add_edges("new", [(7, 1)], between=("Glia", "N"))
    assert thalweg.open(tmp_path / "network").neighbors("Glia", [7], "N").ids.tolist() == [1]
