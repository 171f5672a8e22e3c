"""`thalweg graph import` of lists of edges: what pandas, pyarrow and csv write comes out as it went in."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

COUNT = 70_000


@pytest.fixture
def graph(thalweg):
    def call(verb, *arguments, **options):
        return thalweg("graph", verb, *arguments, **options)

    return call


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(5)
    sources, targets = random.integers(0, 300, COUNT), random.integers(0, 5000, COUNT)
    names = [None if i % 7 == 0 else f'"{i}", a\nline ü' if i % 11 == 0 else str(i) + "x" for i in range(COUNT)]
    return pa.table(
        {
            "weight": random.normal(size=COUNT),
            "target": targets.astype("u8"),
            "count": pa.array([None if i % 5 == 0 else i - 9 for i in range(COUNT)], pa.int64()),
            "source": sources.astype("u8"),
            "is_on": sources % 2 == 0,
            "name": names,
        }
    )


def written(table, path):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=9000)
    else:
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerow(table.column_names)
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                writer.writerow(["" if v is None else repr(v) if isinstance(v, float) else str(v) for v in row])


def ordered(table):
    """As the export has it: by the ends, and edges with the same ends as they came."""
    order = np.lexsort((table["target"].to_numpy(), table["source"].to_numpy()))
    names = ["source", "target", *(name for name in table.column_names if name not in ("source", "target"))]
    return table.take(order).select(names)


def exported(graph, store, path, population):
    graph("export", store, path, "--edges", population, "--force")
    return pq.read_table(path)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_edges_and_attributes(graph, tmp_path, table, ending):
    path, store = tmp_path / f"pairs.{ending}", tmp_path / "s"
    small = table.slice(0, 3000)
    written(small, path)
    told = json.loads(graph("import", path, store, "--several", "--json", "--memory", "8MiB").stdout)
    assert told["links"] == told["edges"] == 3000
    info = json.loads(graph("info", store, "--json").stdout)
    (population,) = info["populations"]
    assert (population["name"], population["from"], population["to"]) == ("pairs", "vertex", "vertex")
    assert population["directed"] and population["several_edges"]
    out = exported(graph, store, tmp_path / "out.parquet", "pairs")
    expected = ordered(small)
    assert out.column_names == expected.column_names
    for name in expected.column_names:
        assert out[name].to_pylist() == expected[name].to_pylist(), name
    # What is exported is brought in again as it was.
    graph("export", store, tmp_path / "out.csv", "--edges", "pairs")
    for again in ("out.csv", "out.parquet"):
        graph("import", tmp_path / again, tmp_path / f"{again}.s", "--population", "pairs", "--several")
        assert exported(graph, tmp_path / f"{again}.s", tmp_path / "again.parquet", "pairs").to_pydict() == out.to_pydict()
    graph("check", store)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_types_directions_and_edges_that_come_twice(graph, tmp_path, table, ending):
    path, store = tmp_path / f"pairs.{ending}", tmp_path / "s"
    written(table.select(["source", "target"]), path)
    graph("import", path, store, "--population", "syn", "--from-type", "Astrocyte", "--to-type", "Neuron", "--undirected")
    pairs = np.unique(np.stack([table["source"].to_numpy(), table["target"].to_numpy()]), axis=1)
    found = {}
    for line in graph("neighbors", store, "--from", "Astrocyte", "--to", "Neuron").stdout.splitlines():
        vertex, _, ids = line.split("\t")
        found[int(vertex)] = [int(i) for i in ids.split()]
    assert found == {int(v): pairs[1, pairs[0] == v].tolist() for v in np.unique(pairs[0])}
    back = graph("neighbors", store, "--from", "Neuron:17", "--to", "Astrocyte").stdout.split("\t")[2].split()
    assert [int(v) for v in back] == pairs[0, pairs[1] == 17].tolist()
    # Only those of the first sources.
    graph("import", path, tmp_path / "t", "--max-sources", 3, "--directed")
    degrees = graph("degree", tmp_path / "t", "--from", "vertex:0-2", "--direction", "out").stdout.split()
    assert [int(n) for n in degrees[1::2]] == [len(found[v]) for v in range(3)]


def test_columns_without_names_and_other_numbers(graph, tmp_path):
    (tmp_path / "a.csv").write_text("3,4\n1,2\n")
    graph("import", tmp_path / "a.csv", tmp_path / "s")
    pq.write_table(pa.table({"x": pa.array([5, 6], pa.int8()), "y": pa.array([7, 8], pa.uint16()), "z": pa.array(["p", "q"]).dictionary_encode()}), tmp_path / "b.parquet")
    graph("import", tmp_path / "b.parquet", tmp_path / "s")
    found = graph("neighbors", tmp_path / "s", "--from", "vertex").stdout.splitlines()
    assert found == ["1\t1\t2", "2\t0\t", "3\t1\t4", "4\t0\t", "5\t1\t7", "6\t1\t8", "7\t0\t", "8\t0\t"]
    assert exported(graph, tmp_path / "s", tmp_path / "o.parquet", "b")["z"].to_pylist() == ["p", "q"]


def test_defects_of_edge_lists_are_named(graph, tmp_path):
    cases = {
        "line.csv": (b"source,target\n1,2\n1,x\n", "line 3"),
        "few.csv": (b"source,target,w\n1,2,3\n1,2\n", "line 3"),
        "empty.csv": (b"", "line 1"),
        "empty.parquet": (b"", "Parquet"),
        "no.parquet": (b"PAR1" + bytes(40) + b"PAR1", "Parquet"),
    }
    for name, (data, words) in cases.items():
        (tmp_path / name).write_bytes(data)
    tables = {
        "minus.parquet": (pa.table({"source": [1, -1], "target": [1, 2]}), "row 2"),
        "none.parquet": (pa.table({"source": [1, 3], "target": pa.array([1, None], pa.int64())}), "row 2"),
        "float.parquet": (pa.table({"source": [1.0], "target": [2]}), "source"),
        "nested.parquet": (pa.table({"source": [1], "target": [2], "of": [[1, 2]]}), "of"),
        "one.parquet": (pa.table({"source": [1]}), "1 columns"),
    }
    for name, (made, words) in tables.items():
        pq.write_table(made, tmp_path / name)
        cases[name] = (b"", words)
    for name, (_, words) in cases.items():
        store = tmp_path / f"{name}.store"
        done = graph("import", tmp_path / name, store, check=False)
        assert done.returncode == 1 and words in done.stderr and str(tmp_path / name) in done.stderr, done.stderr
        assert "panicked" not in done.stderr
        # What shows before an edge is brought in leaves no store; what shows later, an empty one.
        if store.exists():
            assert name in ("minus.parquet", "none.parquet")
            assert [edges["edges"] for edges in json.loads(graph("info", store, "--json").stdout)["populations"]] == []


def test_damaged_parquet(graph, tmp_path, table):
    path = tmp_path / "d.parquet"
    written(table.slice(0, 500), path)
    data = path.read_bytes()
    for number, at in enumerate(range(4, len(data), len(data) // 60)):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        done = graph("import", path, tmp_path / f"s{number}", check=False)
        assert done.returncode in (0, 1) and "panicked" not in done.stderr, (at, done.stderr)
