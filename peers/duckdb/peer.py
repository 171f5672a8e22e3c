"""DuckDB over Parquet as a benchmark peer for graphs: a table of pairs each for synapses and neurons, sorted by astrocyte, and
once more by the other end. On its own threads. Arguments and output: ../common/graph_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import duckdb  # noqa: E402
import h5py  # noqa: E402, F401
import numpy  # noqa: E402
import pyarrow  # noqa: E402
from graph_peer import Refused, main  # noqa: E402


class Store:
    def __init__(self, path, mode, args):
        if mode == "write":
            raise Refused("Parquet files take no inserts")
        self.path = path
        if mode == "create":
            os.makedirs(path)
        self.database = duckdb.connect()
        self.threads = len(os.sched_getaffinity(0))
        self.database.execute(f"SET threads = {self.threads}")
        self.columns = {"synapse": ([], []), "neuron": ([], [])}

    def _table(self, what, by):
        return os.path.join(self.path, f"{what}-by-{by}.parquet").replace("'", "''")

    def put(self, what, first, offsets, ids):
        counts = numpy.diff(offsets).astype("i8")
        astrocytes, others = self.columns[what]
        astrocytes.append(numpy.repeat(numpy.arange(first, first + len(counts), dtype="u8"), counts))
        others.append(ids)

    def durable(self):
        for what, columns in self.columns.items():
            pairs = pyarrow.table({"astrocyte": numpy.concatenate(columns[0]), what: numpy.concatenate(columns[1])})
            self.database.register("pairs", pairs)
            self.database.execute(f"COPY pairs TO '{self._table(what, 'astrocyte')}' (FORMAT parquet)")
            self.database.execute(f"COPY (SELECT * FROM pairs ORDER BY {what}) TO '{self._table(what, what)}' (FORMAT parquet)")
            self.database.unregister("pairs")
        for name in [os.path.join(self.path, name) for name in os.listdir(self.path)] + [self.path]:
            handle = os.open(name, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)

    def settle(self):
        pass

    def _pairs(self, of, to, vertices, order=""):
        """The columns of all pairs of the vertices."""
        what = to if of == "astrocyte" else of
        low, high = int(vertices[0]), int(vertices[-1])
        chosen = f"{of} BETWEEN {low} AND {high}"
        if high - low + 1 != len(vertices):
            self.database.register("vertices", pyarrow.table({"id": vertices}))
            chosen += f" AND {of} IN (SELECT id FROM vertices)"
        return self.database.execute(f"SELECT {of}, {to} FROM '{self._table(what, of)}' WHERE {chosen} {order}").fetchnumpy()

    def sum(self, of, to, vertices):
        pairs = self._pairs(of, to, vertices)
        # the vertices are part of what the consumer gets: without them nobody knows whose neighbours these are
        return len(pairs[to]), int(pairs[to].sum(dtype="u8"))

    def lists(self, of, to, vertices):
        pairs = self._pairs(of, to, vertices, f"ORDER BY {of}")
        bounds = numpy.searchsorted(pairs[of], vertices, "left"), numpy.searchsorted(pairs[of], vertices, "right")
        for begin, end in zip(*bounds, strict=True):
            yield pairs[to][begin:end]

    def needed(self, of, to, vertices):
        """The columns' chunks whose range has one of the vertices."""
        what = to if of == "astrocyte" else of
        columns = "SELECT row_group_id, path_in_schema, stats_min_value::UBIGINT low, stats_max_value::UBIGINT high, total_compressed_size bytes"
        chunks = self.database.execute(f"{columns} FROM parquet_metadata('{self._table(what, of)}')").fetchall()
        ranges = {group: (low, high) for group, column, low, high, _ in chunks if column == of}
        hit = {g for g, (low, high) in ranges.items() if numpy.searchsorted(vertices, low, "left") < numpy.searchsorted(vertices, high, "right")}
        return sum(size for group, _, _, _, size in chunks if group in hit)

    def close(self):
        self.database.close()


if __name__ == "__main__":
    main("duckdb", f"DuckDB {duckdb.__version__}", begin_import, Store, "as published, pairs in Parquet")
