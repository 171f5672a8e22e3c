"""h5coro as a benchmark peer for arrays: HDF5 in Python alone, made for object stores; here with its driver for local files and
a thread a dataset, as it chooses. Arguments and output: ../common/array_peer.py. Patterns are expanded by h5py, within the time."""

import os
import sys
import time

begin_import = time.perf_counter()
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../common"))
# apart from the other packages: for object stores it depends on dozens of them, none of which files need
sys.path.append(os.path.join(sys.prefix, "apart"))
import h5py  # noqa: E402
from array_peer import in_file, main  # noqa: E402
from h5coro import filedriver, h5coro  # noqa: E402


def arrays(args):
    with h5py.File(args.file, "r") as file:
        paths = in_file(file, args.paths)
    opened = h5coro.H5Coro(args.file, filedriver.FileDriver)
    read = opened.readDatasets(paths, block=True)
    for path in paths:
        yield path, read[path]


if __name__ == "__main__":
    main("h5coro", begin_import, arrays, flags="as published")
