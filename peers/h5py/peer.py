"""h5py as a benchmark peer for arrays: libhdf5 reads and decodes, chunk after chunk, on one thread. Arguments and output:
../common/array_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import h5py  # noqa: E402
import hdf5plugin  # noqa: E402, F401 # registers filters
from array_peer import in_file, main  # noqa: E402


def arrays(args):
    with h5py.File(args.file, "r") as file:
        for path in in_file(file, args.paths):
            yield path, file[path][()]


if __name__ == "__main__":
    main("h5py", begin_import, arrays, flags=f"as published, HDF5 {h5py.version.hdf5_version}", threads=lambda _: 1)
