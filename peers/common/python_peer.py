"""What the Python peers for reads share: arguments, the digest of docs/method.md, and one JSON line.

    peer.py seq  FILE [--threads N] [--batch N]              every read in file order
    peer.py get  FILE --ids LIST [--threads N] [--batch N]   reads by id, in list order
    peer.py get1 FILE --ids LIST                             reads by id, one at a time, with latencies
    peer.py pa   FILE [--ids LIST] [--threads N] [--batch N] in picoampere: every read, or reads by id in list order

The clock runs from before the file is opened to the sum of the last read; the interpreter's start and the imports
lie outside and are reported beside it. --tsv and --digest print rows instead, as slow5_peer does.
"""

import argparse
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import sys
import time
from typing import NamedTuple

import numpy

MASK = (1 << 64) - 1


class Row(NamedTuple):
    """What the consumer makes of a read."""

    read_id: str
    samples: int
    sum: int
    sha256: str | None
    metadata: tuple[int | str, ...] = ()


def consume(read_id: str, signal: numpy.ndarray, args: argparse.Namespace, *metadata: int | str | None) -> Row:
    """Sums every sample. The metadata are those of `struct metadata` in digest.h, in its order."""
    total = int(signal.sum(dtype=numpy.int64))
    sha256 = hashlib.sha256(signal.astype("<i2").tobytes()).hexdigest() if args.digest else None
    return Row(read_id, len(signal), total, sha256, tuple("." if one in (None, "") else one for one in metadata))


def consume_pa(read_id: str, signal: numpy.ndarray, args: argparse.Namespace) -> Row:
    """Sums every sample in picoampere. The libraries round differently, so that the sum is not in the row: a sum that is no
    number ends the run."""
    if not math.isfinite(float(signal.sum(dtype=numpy.float64))):
        sys.exit(f"error: {args.file}: {read_id} has samples that are no numbers")
    return Row(read_id, len(signal), len(signal), None)


def read_hash(row: Row) -> int:
    """FNV-1a 64, as docs/method.md defines it."""
    value = 0xCBF29CE484222325
    for byte in "\t".join(map(str, (row.read_id, row.samples, row.sum, *row.metadata))).encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def windows(items: list, size: int) -> list[list]:
    return [items[at : at + size] for at in range(0, len(items), size)]


def in_list_order(ids: list[str], rows: list[Row]) -> list[Row]:
    """Rows in the order of the ids, for libraries that deliver in their own."""
    by_id = {row.read_id: row for row in rows}
    return [by_id[read_id] for read_id in ids]


def parse(modes: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=modes)
    parser.add_argument("file")
    parser.add_argument("--ids", help="a file with one read id a line")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--metadata", action="store_true", help="seq: take the metadata of each read, too")
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument("--tsv", action="store_true")
    rows.add_argument("--digest", action="store_true")
    args = parser.parse_args()
    if args.mode != "pa" and (args.mode != "seq") != (args.ids is not None):
        parser.error("--ids goes with get and get1, which need it, and with pa")
    if args.metadata and (args.mode != "seq" or args.tsv or args.digest):
        parser.error("--metadata goes with seq, and without rows")
    if args.threads < 1 or args.batch < 1:
        parser.error("--threads and --batch want a whole number from 1")
    if args.ids is not None:
        with open(args.ids, encoding="utf-8") as lines:
            args.ids = [line.strip() for line in lines if line.strip()]
        if not args.ids:
            parser.error("no read ids in the list")
    return args


def latency(seconds: list[float]) -> dict[str, float]:
    """Percentiles by nearest rank, in microseconds."""
    ordered = sorted(seconds)

    def rank(percent: int) -> float:
        return ordered[(len(ordered) * percent + 99) // 100 - 1] * 1e6

    return {"mean": sum(ordered) / len(ordered) * 1e6, "p50": rank(50), "p99": rank(99), "max": ordered[-1] * 1e6}


def build(flags: str) -> dict[str, str]:
    """How what runs was built."""
    return {
        "interpreter": f"{platform.python_implementation()} {platform.python_version()}",
        "interpreter_compiler": platform.python_compiler(),
        "flags": flags,
        "allocator": f"{' '.join(platform.libc_ver())} malloc, and the interpreter's own for objects".strip(),
        "numpy": numpy.__version__,
    }


def main(package: str, begin_import: float, modes: dict, flags: str, needed_bytes=None, extra=lambda _: {}) -> None:
    """Runs one of the modes.

    `seq` and `get` give rows, in file and list order. `get1` opens the file and gives a function from an id to a row.
    `needed_bytes` says how many stored bytes the wanted reads take, and is asked after the clock has stopped.
    `extra` gives more for the JSON line, and is asked before the clock starts.
    """
    import_s = time.perf_counter() - begin_import
    args = parse(list(modes))
    added = extra(args)
    rows, latencies = [], []

    begin = time.perf_counter()
    if args.mode == "get1":
        get = modes["get1"](args)
        for read_id in args.ids:
            asked = time.perf_counter()
            rows.append(get(read_id))
            latencies.append(time.perf_counter() - asked)
    else:
        rows.extend(modes[args.mode](args))
    open_to_last_s = time.perf_counter() - begin

    if args.ids is not None and [row.read_id for row in rows] != args.ids:
        sys.exit(f"error: {args.file}: asked for {len(args.ids)} reads, got {len(rows)}, or others")
    if args.tsv or args.digest:
        for row in rows:
            print(*row[: 4 if args.digest else 3], sep="\t")
        return
    result = {
        "workload": f"{package}-{args.mode}",
        "version": f"{package} {importlib.metadata.version(package)}",
        "build": build(flags),
        "open_to_last_s": open_to_last_s,
        "reads": len(rows),
        "samples": sum(row.samples for row in rows),
        "sum": sum(row.sum for row in rows),
        "bytes_decoded": 2 * sum(row.samples for row in rows),
        # after the clock has stopped: hashing in Python would cost more than decoding in C
        "digest": f"{sum(map(read_hash, rows)) & MASK:016x}",
        "threads": 1 if args.mode == "get1" else args.threads,
        "batch": 1 if args.mode == "get1" else args.batch,
        "stages": {},
        "import_s": import_s,
        **added,
    }
    if needed_bytes is not None and args.ids is not None:
        result["needed_bytes"] = needed_bytes(args)
    if latencies:
        result["latency_us"] = latency(latencies)
    print(json.dumps(result, separators=(",", ":")))
