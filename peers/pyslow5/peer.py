"""pyslow5 as a benchmark peer: what a Python user of slow5lib gets. Prints one JSON line.

    peer.py seq FILE [--threads N] [--batch N]              seq_reads_multi
    peer.py get FILE --ids LIST [--threads N] [--batch N]   get_read_list_multi, in list order

The clock runs from before the file is opened to the sum of the last read; the interpreter's start and the imports
lie outside and are reported beside it. --tsv and --digest print rows instead, as slow5_peer does.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import time

begin_import = time.perf_counter()
import numpy  # noqa: E402
import pyslow5  # noqa: E402

IMPORT_S = time.perf_counter() - begin_import
MASK = (1 << 64) - 1


def read_hash(read_id: str, samples: int, total: int) -> int:
    """FNV-1a 64, as docs/method.md defines it."""
    value = 0xCBF29CE484222325
    for byte in f"{read_id}\t{samples}\t{total}".encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["seq", "get"])
    parser.add_argument("file")
    parser.add_argument("--ids", help="a file with one read id a line")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch", type=int, default=1000)
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument("--tsv", action="store_true")
    rows.add_argument("--digest", action="store_true")
    args = parser.parse_args()
    if (args.mode == "get") != (args.ids is not None):
        parser.error("--ids goes with get, and only with it")
    if args.threads < 1 or args.batch < 1:
        parser.error("--threads and --batch want a whole number from 1")
    return args


def print_row(read: dict, total: int, with_sha256: bool) -> None:
    row = [read["read_id"], str(len(read["signal"])), str(total)]
    if with_sha256:
        row.append(hashlib.sha256(read["signal"].astype("<i2").tobytes()).hexdigest())
    print("\t".join(row))


def main() -> None:
    args = arguments()
    ids = None
    if args.ids is not None:
        with open(args.ids, encoding="utf-8") as lines:
            ids = [line.strip() for line in lines if line.strip()]
    index_was_there = os.path.exists(args.file + ".idx")
    delivered = []

    begin = time.perf_counter()
    file = pyslow5.Open(args.file, "r")
    if ids is None:
        reads = file.seq_reads_multi(threads=args.threads, batchsize=args.batch)
    else:
        reads = file.get_read_list_multi(ids, threads=args.threads, batchsize=args.batch)
    for read in reads:
        total = int(read["signal"].sum(dtype=numpy.int64))
        delivered.append((read["read_id"], len(read["signal"]), total))
        if args.tsv or args.digest:
            print_row(read, total, args.digest)
    open_to_last_s = time.perf_counter() - begin

    if args.tsv or args.digest:
        return
    if ids is not None and len(delivered) != len(ids):
        sys.exit(f"error: {args.file}: asked for {len(ids)} reads, got {len(delivered)}")
    result = {
        "workload": f"pyslow5-{args.mode}",
        "version": f"pyslow5 {importlib.metadata.version('pyslow5')}",
        "build": {
            "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
            "interpreter_compiler": platform.python_compiler(),
            "flags": "-O2, as its package builds it",
            "allocator": f"{' '.join(platform.libc_ver())} malloc, and the interpreter's own for objects".strip(),
            "numpy": numpy.__version__,
        },
        "open_to_last_s": open_to_last_s,
        "reads": len(delivered),
        "samples": sum(samples for _, samples, _ in delivered),
        "sum": sum(total for _, _, total in delivered),
        "bytes_decoded": 2 * sum(samples for _, samples, _ in delivered),
        # after the clock has stopped: hashing in Python would cost more than slow5lib's decoding
        "digest": f"{sum(read_hash(*row) for row in delivered) & MASK:016x}",
        "threads": args.threads,
        "batch": args.batch,
        "stages": {},
        "import_s": IMPORT_S,
    }
    if ids is not None:
        result["index_was_there"] = index_was_there
    print(json.dumps(result, separators=(",", ":")))


if __name__ == "__main__":
    main()
