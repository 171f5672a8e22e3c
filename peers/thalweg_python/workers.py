"""Arrays or events of a file through Dask: by worker processes, by threads of one process, or without Dask.

    workers.py processes|threads|read arrays FILE PATTERN [--workers N]
    workers.py processes|threads|read events FILE PATTERN [--workers N]

The clock runs from before the file is opened until every array, or the pixels of all events of the banks, were summed. Workers have started before: who has a cluster has it for
more than one read.
"""

import argparse
import json
import os
import sys
import time

begin_import = time.perf_counter()
here = os.path.dirname(os.path.abspath(__file__))
PACKAGES = [os.path.join(here, "../../target/peers/thalweg_python"), os.path.join(here, "../../target/python/libraries")]
sys.path[:0] = [os.path.join(here, "../common"), *PACKAGES]
import dask.array  # noqa: E402
import thalweg  # noqa: E402
import thalweg.dask  # noqa: E402
from python_peer import MASK, build  # noqa: E402

# A pixel and a time of flight, as in the files of `thalweg synth`.
EVENT_BYTES = 8


def arrays_by_dask(args, scheduler):
    arrays = thalweg.dask.arrays(args.file, args.pattern).values()
    sums = dask.compute(*(array.astype("u8").sum() for array in arrays), **scheduler)
    return sum(map(int, sums)), sum(array.nbytes for array in arrays)


def arrays_by_read(args):
    arrays = thalweg.open(args.file, threads=args.workers).read(args.pattern).values()
    return sum(int(array.sum(dtype="u8")) for array in arrays), sum(array.nbytes for array in arrays)


def events_by_dask(args, scheduler):
    frame = thalweg.dask.events(args.file, args.pattern, partitions=2 * args.workers)
    total, events = dask.compute(frame["event_id"].sum(), frame["event_id"].size, **scheduler)
    return int(total), int(events) * EVENT_BYTES


def events_by_read(args):
    batches = thalweg.open(args.file, threads=args.workers).events.batches(args.pattern, in_file_order=True)
    total = events = 0
    for batch in batches:
        total += int(batch.event_id.sum(dtype="u8"))
        events += len(batch)
    return total, events * EVENT_BYTES


def timed(job, *args):
    begin = time.perf_counter()
    return *job(*args), time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("by", choices=["processes", "threads", "read"])
    parser.add_argument("what", choices=["arrays", "events"])
    parser.add_argument("file")
    parser.add_argument("pattern")
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    import_s = time.perf_counter() - begin_import
    by_dask, by_read = (arrays_by_dask, arrays_by_read) if args.what == "arrays" else (events_by_dask, events_by_read)

    if args.by == "processes":
        from distributed import Client, LocalCluster

        # Workers find the packages by it.
        os.environ["PYTHONPATH"] = os.pathsep.join(PACKAGES)
        with LocalCluster(n_workers=args.workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            client.run(__import__, "thalweg.dask")
            total, decoded, seconds = timed(by_dask, args, {})
    elif args.by == "threads":
        total, decoded, seconds = timed(by_dask, args, {"scheduler": "threads", "num_workers": args.workers})
    else:
        total, decoded, seconds = timed(by_read, args)

    result = {
        "workload": f"workers-{args.what}-{args.by}",
        "version": f"thalweg {thalweg.__version__}",
        "build": build("the wheel of `make wheel`"),
        "open_to_last_s": seconds,
        "bytes_decoded": decoded,
        "digest": f"{total & MASK:016x}",
        "threads": args.workers,
        "stages": {},
        "import_s": import_s,
    }
    print(json.dumps(result, separators=(",", ":")))


if __name__ == "__main__":
    main()
