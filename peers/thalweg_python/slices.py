"""One hundredth of an array in small pieces, through xarray and Dask: what a notebook does.

    slices.py ENGINE FILE GROUP NAME [--pieces N] [--threads N]

ENGINE is a backend of xarray: thalweg, h5netcdf or netcdf4. The pieces are spread evenly over the array. The clock runs from
before the file is opened until all pieces were summed; the interpreter's start and the imports lie outside.
"""

import argparse
import json
import os
import sys
import time

begin_import = time.perf_counter()
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [
    os.path.join(here, "../common"),
    os.path.join(here, "../../target/peers/thalweg_python"),
    os.path.join(here, "../../target/python/libraries"),
]
import dask  # noqa: E402
import numpy  # noqa: E402
import xarray  # noqa: E402
from python_peer import build  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine")
    parser.add_argument("file")
    parser.add_argument("group")
    parser.add_argument("name")
    parser.add_argument("--pieces", type=int, default=100)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    import_s = time.perf_counter() - begin_import
    more = {} if args.engine == "netcdf4" else {"phony_dims": "access"}

    begin = time.perf_counter()
    data = xarray.open_dataset(args.file, engine=args.engine, group=args.group, chunks={}, decode_cf=False, **more)
    array = data[args.name]
    length = array.shape[0] // 100 // args.pieces
    starts = numpy.linspace(0, array.shape[0] - length, args.pieces).astype(int)
    pieces = [array[start : start + length].astype("u8").sum() for start in starts]
    with dask.config.set(scheduler="threads", num_workers=args.threads):
        sums = dask.compute(*pieces)
    open_to_last_s = time.perf_counter() - begin

    total = int(sum(int(one) for one in sums))
    result = {
        "workload": f"slices-{args.engine}",
        "version": f"xarray {xarray.__version__}",
        "build": build(args.engine),
        "open_to_last_s": open_to_last_s,
        "bytes_decoded": length * args.pieces * array.dtype.itemsize,
        "digest": f"{total & (1 << 64) - 1:016x}",
        "threads": args.threads,
        "stages": {},
        "import_s": import_s,
    }
    print(json.dumps(result, separators=(",", ":")))


if __name__ == "__main__":
    main()
