"""pyfive as a benchmark peer for arrays: HDF5 in Python alone, the index of chunks read when a dataset is opened. Arguments and
output: ../common/array_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import pyfive  # noqa: E402
from array_peer import in_file, main  # noqa: E402


def arrays(args):
    with pyfive.File(args.file) as file:
        for path in in_file(file, args.paths):
            yield path, file[path][()]


if __name__ == "__main__":
    main("pyfive", begin_import, arrays, flags="as published", threads=lambda _: 1)
