"""`thalweg graph export` to SONATA against h5py and libsonata, and conditions on edges against numpy."""

import json

import h5py
import libsonata
import numpy as np
import pyarrow.parquet
import pytest

from sonata_files import NGV, SONATA, attributes_of, edges_of, network_of
from test_graph import GRAPHS, graph, row, rows, same_neighbours  # noqa: F401 (a fixture)

NODES = ["archngv/glia_nodes.h5", "libsonata/nodes1.h5", "snap/nodes.h5"]


def same_values(found, expected):
    if expected.dtype == object:
        return list(found) == list(expected)
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", [*SONATA, *NODES])
def test_others_read_what_was_exported(graph, tmp_path, name):  # noqa: F811
    path, out = GRAPHS / name, tmp_path / "out.h5"
    graph("import", path, tmp_path / "s")
    told = json.loads(graph("export", tmp_path / "s", out, "--json").stdout)
    with h5py.File(out) as file:
        lengths = {kind: sum(len(one[f"{kind}_type_id"]) for one in file.get(f"{kind}s", {}).values()) for kind in ("edge", "node")}
    assert (told["edges"], told["vertices"], told["bytes"]) == (lengths["edge"], lengths["node"], out.stat().st_size)
    written = {(kind, population): (ids, columns) for kind, population, ids, columns in attributes_of(out)}
    for kind, population, ids, columns in attributes_of(path):
        found_ids, found = written[kind, population]
        for expected, values in ((ids, found_ids), (columns, found)):
            assert set(values) == set(expected), (kind, population)
            assert all(same_values(values[name], expected[name]) for name in expected)
    if name in NODES:
        return
    storage = libsonata.EdgeStorage(str(out))
    for edges in edges_of(path):
        if len(edges.sources) == 0:
            continue
        population = storage.open_population(edges.name)
        assert (population.source, population.target) == (edges.source, edges.target)
        every = population.select_all()
        order = np.lexsort((edges.targets, edges.sources))
        sources, targets = edges.sources[order], edges.targets[order]
        assert np.array_equal(population.source_nodes(every), sources)
        assert np.array_equal(population.target_nodes(every), targets)
        for vertex in np.unique(np.append(sources, targets)).tolist():
            after = population.efferent_edges([vertex]) if vertex <= sources.max() else libsonata.Selection([])
            before = population.afferent_edges([vertex]) if vertex <= targets.max() else libsonata.Selection([])
            assert np.array_equal(after.flatten(), np.flatnonzero(sources == vertex))
            assert np.array_equal(np.sort(before.flatten()), np.flatnonzero(targets == vertex))


@pytest.mark.parametrize("name", [*SONATA, *NGV])
def test_exported_networks_round_trip(graph, tmp_path, name):  # noqa: F811
    path, out = GRAPHS / name, tmp_path / "out.h5"
    graph("import", path, tmp_path / "s")
    graph("export", tmp_path / "s", out)
    graph("import", out, tmp_path / "again")
    network = network_of(path)
    for edges in network.edges:
        # SONATA's edges have a direction.
        edges.directed = True
    same_neighbours(graph, tmp_path / "again", network)


def test_edges_for_which_a_condition_holds(graph, tmp_path):  # noqa: F811
    path = GRAPHS / "snap/edges.h5"
    graph("import", path, tmp_path / "s")
    asked = 0
    for kind, population, ids, columns in attributes_of(path):
        numbers = {name: values for name, values in columns.items() if values.dtype.kind == "f" and len(np.unique(values)) > 1}
        if kind != "edges" or not numbers:
            continue
        name, values = next(iter(numbers.items()))
        least = float(np.median(values))
        last = int(ids["target"][np.argmin(values)])
        kept = (values >= least) | (ids["target"] == last)
        assert 0 < kept.sum() < len(kept)
        condition, out = f"{name} >= {least!r} or to == {last}", tmp_path / "kept.parquet"
        graph("export", tmp_path / "s", out, "--edges", population, "--where", condition, "--force")
        table = pyarrow.parquet.read_table(out)
        assert np.array_equal(table["source"].to_numpy(), ids["source"][kept])
        assert table[name].to_numpy().tobytes() == values[kept].tobytes()
        ends = {edges.name: (edges.source, edges.target) for edges in edges_of(path)}
        source, target = ends[population]
        # Populations between the same types are asked together.
        sources, targets = [], []
        for other, name_of_other, other_ids, other_columns in attributes_of(path):
            if other == "edges" and ends[name_of_other] == (source, target):
                held = (other_columns[name] >= least) | (other_ids["target"] == last)
                sources.append(other_ids["source"][held])
                targets.append(other_ids["target"][held])
        sources, targets = np.concatenate(sources), np.concatenate(targets)
        done = graph("neighbors", tmp_path / "s", "--from", source, "--to", target, "--direction", "out", "--where", condition, "--digest")
        assert rows(done) == [row(vertex, targets[sources == vertex]) for vertex in network_of(path).types[source].tolist()]
        wrong = graph("neighbors", tmp_path / "s", "--from", source, "--where", "nothing == 1", check=False)
        assert wrong.returncode == 2 and "nothing" in wrong.stderr
        asked += 1
    assert asked > 0


def test_attributes_that_sonata_has_not_are_refused(graph, tmp_path):  # noqa: F811
    (tmp_path / "e.csv").write_text("source,target,weight\n1,2,0.5\n1,3,\n")
    graph("import", tmp_path / "e.csv", tmp_path / "s")
    done = graph("export", tmp_path / "s", tmp_path / "out.h5", check=False)
    assert done.returncode != 0 and "weight" in done.stderr and not (tmp_path / "out.h5").exists()
    assert not [left for left in tmp_path.iterdir() if left.name.startswith("out.h5")]
    with pytest.raises(OSError):
        h5py.File(tmp_path / "out.h5")


def test_what_an_import_leaves_out_is_said(graph, tmp_path):  # noqa: F811
    path = tmp_path / "nodes.h5"
    colours = h5py.enum_dtype({"red": 0, "blue": 1}, basetype="u1")
    with h5py.File(path, "w") as file:
        nodes = file.create_group("nodes/cells")
        nodes["node_type_id"] = np.zeros(4, "<i8")
        nodes["0/colour"] = np.array([0, 1, 1, 0], "u1").astype(colours)
        nodes["0/kind"] = np.array([0, 1, 7, 1], "<u4")
        nodes.create_dataset("0/@library/kind", data=["first", "second"], dtype=h5py.string_dtype())
        nodes["0/fixed"] = np.array([1, 0, 0, 1], "<u4")
        nodes["0/@library/fixed"] = np.array([b"no", b"yes"])
        nodes["0/coded"] = np.array([1, 0, 0, 1], "<u4")
        nodes["0/@library/coded"] = np.array([1.5, 2.5])
        nodes["0/latin"] = np.array([b"caf\xe9", b"the", b"\xfc", b"x"])
        nodes.create_dataset("0/layer", data=[b"L1", b"\xff", b"L2", b"L3"], dtype=h5py.string_dtype())
        nodes["0/matrix"] = np.zeros((4, 3))
        # All attributes of this population are in another group.
        other = file.create_group("nodes/others")
        other["node_type_id"] = np.zeros(2, "<i8")
        other["1/x"] = np.zeros(2)
    told = graph("import", path, tmp_path / "s", "-q").stderr
    for what in (
        "0/colour: the names of an enumeration", "0/kind: 1 codes without a name", "0/coded: the names", "0/matrix", "others/1",
        "0/latin: 2 strings that are not UTF-8", "0/layer: 1 strings that are not UTF-8",
    ):
        assert what in told, told
    again = json.loads(graph("import", path, tmp_path / "t", "--json").stdout)
    assert len(again["left_out"]) == len(told.splitlines())
    out = tmp_path / "out.csv"
    graph("export", tmp_path / "s", out, "--vertices", "cells")
    found = [line.split(",") for line in out.read_text().splitlines()]
    columns = dict(zip(found[0], zip(*found[1:], strict=True), strict=True))
    assert columns["kind"] == ("first", "second", "", "second") and columns["fixed"] == ("yes", "no", "no", "yes")
    assert columns["latin"] == ("caf\ufffd", "the", "\ufffd", "x") and columns["layer"] == ("L1", "\ufffd", "L2", "L3")
    assert columns["colour"] == ("0", "1", "1", "0") and columns["coded"] == ("1", "0", "0", "1")


def test_an_index_of_sparse_ids_is_small_and_libsonata_reads_it(graph, tmp_path):  # noqa: F811
    # Two clusters of targets, far apart, so that most chunks of the index have no edges.
    count = 20_000
    sources = np.arange(count) // 7
    targets = np.random.default_rng(3).permutation(count) * 2 + np.where(np.arange(count) < count // 2, 0, 200_000)
    np.savetxt(tmp_path / "e.csv", np.stack([sources, targets], 1), "%d", ",", header="source,target", comments="")
    graph("import", tmp_path / "e.csv", tmp_path / "s", "--from-type", "A", "--to-type", "B")
    graph("export", tmp_path / "s", tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        nodes = file["edges/e/indices/target_to_source/node_id_to_ranges"]
        assert len(nodes) == targets.max() + 1
        assert nodes.id.get_storage_size() < 16 * len(nodes) // 2
    population = libsonata.EdgeStorage(str(tmp_path / "out.h5")).open_population("e")
    order = np.lexsort((targets, sources))
    for place in range(0, count, 97):
        target = int(targets[order][place])
        assert population.afferent_edges([target]).flatten().tolist() == [place]
        assert population.afferent_edges([target ^ 1]).flatten().size == 0
    assert population.afferent_edges([100_000]).flatten().size == 0
    assert sorted(population.afferent_edges(sorted(targets.tolist())).flatten().tolist()) == list(range(count))
