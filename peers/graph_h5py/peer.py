"""h5py as a benchmark peer for graphs: straight from the neuroglial HDF5, by slices. STORE is the HDF5; nothing is imported.
Arguments and output: ../common/graph_peer.py; --arm batch takes vertices that lie side by side in one slice, `one` each by itself."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import h5py  # noqa: E402
import numpy  # noqa: E402
from graph_peer import Refused, main  # noqa: E402

# ids that a slice has at most, one list aside
SLICE = 1 << 20


class Store:
    def __init__(self, path, mode, args):
        if mode != "read":
            raise Refused("h5py only reads, and what it reads is the HDF5")
        self.file = h5py.File(path, "r")
        self.batch = args.arm == "batch"

    def _lists(self, of, to):
        """Offsets and ids."""
        if of == "synapse":
            raise Refused("the file has no lists of synapses")
        offsets = self.file[f"{of.capitalize()}/offsets"][:].astype("u8", copy=False)
        if of == "astrocyte":
            offsets = offsets[:, ["synapse", "neuron"].index(to)]
        return offsets, self.file[f"{of.capitalize()}/{to}"]

    def _slices(self, of, to, vertices):
        """Runs of lists: where those of each run begin and end, and the ids of all of them."""
        offsets, ids = self._lists(of, to)
        begins, ends = offsets[vertices], offsets[vertices + numpy.uint64(1)]
        first = 0
        while first < len(vertices):
            end = first + 1
            if self.batch:
                while end < len(vertices) and begins[end] == ends[end - 1] and ends[end] - begins[first] <= SLICE:
                    end += 1
            bounds = numpy.append(begins[first:end], ends[end - 1]) - begins[first]
            yield bounds, ids[int(begins[first]) : int(ends[end - 1])]
            first = end

    def sum(self, of, to, vertices):
        links = total = 0
        for _, ids in self._slices(of, to, vertices):
            links, total = links + len(ids), total + int(ids.sum(dtype="u8"))
        return links, total % 2**64

    def lists(self, of, to, vertices):
        for bounds, ids in self._slices(of, to, vertices):
            yield from numpy.split(ids, bounds[1:-1].astype("i8"))

    def needed(self, of, to, vertices):
        offsets, ids = self._lists(of, to)
        return int((offsets[vertices + numpy.uint64(1)] - offsets[vertices]).sum()) * ids.dtype.itemsize if ids.chunks is None else None

    def close(self):
        self.file.close()


if __name__ == "__main__":
    main("h5py", f"h5py {h5py.version.version}", begin_import, Store, f"as published, HDF5 {h5py.version.hdf5_version}", ["batch", "one"])
