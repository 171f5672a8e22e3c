"""libsonata as a benchmark peer for graphs: a SONATA edges file with its indices, a population for the synapses and one for the
neurons, astrocytes as sources. The edges are sorted by astrocyte, so that those of one are one range: its best case (files as they
are found are sorted by neuron). Arguments and output: ../common/graph_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import h5py  # noqa: E402
import libsonata  # noqa: E402
import numpy  # noqa: E402
from graph_peer import Refused, main  # noqa: E402

# The index from the targets has 16 bytes for each id up to the largest. With more ids than this to an edge it is left out.
SPARSE = 4


class Store:
    def __init__(self, path, mode, args):
        if mode == "write":
            raise Refused("libsonata writes no edges")
        self.path = path
        self.sources, self.ids = {"synapse": [], "neuron": []}, {"synapse": [], "neuron": []}
        if mode == "read":
            self.file = libsonata.EdgeStorage(path)
            self.populations = {}

    def put(self, what, first, offsets, ids):
        counts = numpy.diff(offsets).astype("i8")
        self.sources[what].append(numpy.repeat(numpy.arange(first, first + len(counts), dtype="u8"), counts))
        self.ids[what].append(ids)

    def durable(self):
        sparse = []
        with h5py.File(self.path, "w") as file:
            for what in self.ids:
                sources, targets = numpy.concatenate(self.sources[what]), numpy.concatenate(self.ids[what])
                group = file.create_group(f"edges/{what}")
                for end, nodes, name in (("source", sources, "astrocyte"), ("target", targets, what)):
                    group.create_dataset(f"{end}_node_id", data=nodes).attrs["node_population"] = name
                group.create_dataset("edge_type_id", data=numpy.full(len(targets), -1, "i4"))
                group.create_group("0")
                if int(targets.max(initial=0)) >= SPARSE * len(targets):
                    sparse.append(what)
                    ends = numpy.cumsum(numpy.bincount(sources.astype("i8"))).astype("u8")
                    lists = numpy.arange(len(ends) + 1, dtype="u8")
                    index = group.create_group("indices/source_to_target")
                    index["node_id_to_ranges"] = numpy.stack([lists[:-1], lists[1:]], 1)
                    index["range_to_edge_id"] = numpy.stack([numpy.append(numpy.uint64(0), ends[:-1]), ends], 1)
                self.sources[what], self.ids[what] = (int(sources.max(initial=0)) + 1, int(targets.max(initial=0)) + 1), None
        for what, (sources, targets) in self.sources.items():
            if what not in sparse:
                libsonata.EdgePopulation.write_indices(self.path, what, sources, targets)
        for name in (self.path, os.path.dirname(os.path.abspath(self.path))):
            handle = os.open(name, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
        self.file, self.populations = libsonata.EdgeStorage(self.path), {}

    def settle(self):
        pass

    def _read(self, of, to, vertices):
        what = to if of == "astrocyte" else of
        population = self.populations.get(what)
        if population is None:
            population = self.populations[what] = self.file.open_population(what)
        try:
            if of == "astrocyte":
                return population.target_nodes(population.efferent_edges(vertices))
            return population.source_nodes(population.afferent_edges(vertices))
        except libsonata.SonataError as error:
            raise Refused(error) from error

    def sum(self, of, to, vertices):
        ids = self._read(of, to, vertices)
        return len(ids), int(ids.sum(dtype="u8"))

    def lists(self, of, to, vertices):
        for vertex in vertices:
            yield self._read(of, to, [int(vertex)])

    def needed(self, of, to, vertices):
        return 8 * self.sum(of, to, vertices)[0]

    def close(self):
        pass


if __name__ == "__main__":
    main("libsonata", f"libsonata {libsonata.version}", begin_import, Store, "as published")
