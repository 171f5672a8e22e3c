"""hidefix as a benchmark peer for arrays: libhdf5 indexes the chunks, and a pool of threads reads and decodes them. Arguments and
output: ../common/array_peer.py. It knows datasets by their paths, not which there are: h5py tells, within the time."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
# its pool is made at the first call, from this
if "--threads" in sys.argv:
    os.environ["RAYON_NUM_THREADS"] = sys.argv[sys.argv.index("--threads") + 1]
import h5py  # noqa: E402
import hidefix  # noqa: E402
from array_peer import in_file, main  # noqa: E402


def arrays(args):
    if not args.paths or any(letter in path for path in args.paths for letter in "*?"):
        with h5py.File(args.file, "r") as file:
            paths = in_file(file, args.paths)
    else:
        paths = ["/" + path.strip("/") for path in args.paths]
    index = hidefix.Index(args.file)
    for path in paths:
        dataset = index.dataset(path)
        yield path, dataset[tuple(slice(None) for _ in dataset.shape())]


if __name__ == "__main__":
    main("hidefix", begin_import, arrays, flags="as published")
