"""What the Python peers for arrays of HDF5 files share: arguments, the digest of docs/method.md, and one JSON line.

    peer.py FILE [PATH..] [--threads N]     the datasets at the paths, whole, as arrays in memory

With --settle BYTES_A_SECOND, of a disc that is held to so much, the file is read past the page cache before the clock starts,
until it comes no faster: the kernel gives a group credit for the time in which the interpreter starts and reads nothing.

In a path, `*` and `?` stand for any letters and any one within a name: '/entry/*/event_id'. Without paths, every numeric
dataset is read.

The clock runs from before the file is opened until every value of every array was summed; the interpreter's start and the
imports lie outside and are reported beside it, and so does the digest. --digest prints rows instead, as `thalweg read` does.
"""

import argparse
import fnmatch
import hashlib
import importlib.metadata
import json
import mmap
import os
import sys
import time

import numpy
from python_peer import MASK, build

# words that are weighted together: they stay in the cache
WORDS = 1 << 14
ODD = 2 * numpy.arange(WORDS, dtype="<u8") + 1


def words(values: numpy.ndarray) -> tuple[numpy.ndarray, int]:
    """An array's bytes as 64-bit words, and the last one if it is not full."""
    dtype = values.dtype.newbyteorder("<")
    raw = numpy.ascontiguousarray(values if dtype == values.dtype else values.astype(dtype)).reshape(-1).view("u1")
    full = len(raw) // 8 * 8
    return raw[:full].view("<u8"), int.from_bytes(raw[full:].tobytes(), "little")


def total(values: numpy.ndarray) -> int:
    """What the consumer makes of an array: the sum of its words."""
    full, rest = words(values)
    return (int(full.sum(dtype="u8")) + rest) & MASK


def checksum(values: numpy.ndarray, first: int = 0) -> int:
    """The sum of the words, each times twice its place plus one, as docs/method.md defines it. `first` is the place of the first
    word, for a part of an array."""
    full, rest = words(values)
    result = rest * (2 * (first + len(full)) + 1)
    for at in range(0, len(full), WORDS):
        part = full[at : at + WORDS]
        result += int(numpy.dot(part, ODD[: len(part)])) + 2 * (first + at) * int(part.sum(dtype="u8"))
    return result & MASK


def digest(checksums: list[int]) -> str:
    """That of several arrays."""
    result = 0
    for one in checksums:
        result = (result * 0x9E3779B97F4A7C15 + one) & MASK
    return f"{result:016x}"


def expand(paths: list[str], names, is_group) -> list[str]:
    """What paths and patterns stand for, those of each in their order. `names` gives the names in a group."""
    found = []
    for path in paths:
        level = [""]
        for part in filter(None, path.split("/")):
            if any(letter in part for letter in "*?"):
                level = [f"{group}/{name}" for group in level if is_group(group) for name in sorted(names(group)) if fnmatch.fnmatchcase(name, part)]
            else:
                level = [f"{group}/{part}" for group in level if is_group(group) and part in names(group)]
        # What is no dataset is for the reader to refuse: pyfive would read an index to tell.
        if not level:
            sys.exit(f"error: no dataset at {path}")
        found += level
    return found


def in_file(file, paths: list[str]) -> list[str]:
    """`expand` for what looks like an h5py.File."""

    def at(name):
        return file[name or "/"]

    def below(group):
        return [name for child in at(group) for name in (below(f"{group}/{child}") if is_group(f"{group}/{child}") else [f"{group}/{child}"])]

    def is_group(name):
        return hasattr(at(name), "keys")

    if not paths:
        return sorted(name for name in below("") if at(name).dtype.kind in "biuf")
    return expand(paths, lambda group: list(at(group)), is_group)


def stored_bytes(file: str, paths: list[str]) -> int:
    """What the datasets take in the file. Asked after the clock has stopped."""
    import h5py

    with h5py.File(file, "r") as opened:
        return sum(opened[path].id.get_storage_size() for path in in_file(opened, paths))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--digest", action="store_true")
    parser.add_argument("--settle", type=int, metavar="BYTES_A_SECOND")
    args = parser.parse_args()
    if args.threads < 1:
        parser.error("--threads wants a whole number from 1")
    return args


# No disc is known to give credit for longer.
SETTLE_S = 600


def settle(path: str, bytes_a_second: int) -> int:
    """Reads a file past the page cache until no credit is left. Returns how many bytes it took."""
    end = time.perf_counter() + SETTLE_S
    size, once, read = 1 << 20, 32, 0
    room = mmap.mmap(-1, size)
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    blocks = max(os.fstat(file).st_size // size, 1)
    while True:
        begin, before = time.perf_counter(), read
        for _ in range(once):
            read += os.preadv(file, [room], read // size % blocks * size)
        if time.perf_counter() - begin > 0.9 * (read - before) / bytes_a_second:
            os.close(file)
            return read
        if time.perf_counter() > end:
            sys.exit(f"{path}: it is still read faster than {bytes_a_second} bytes a second after {SETTLE_S} s; is it throttled?")


def row(path: str, values: numpy.ndarray) -> str:
    dtype = values.dtype.newbyteorder("<")
    values = values.astype(dtype, copy=False)
    return f"{path}\t{'x'.join(map(str, values.shape))}\t{dtype.str}\t{hashlib.sha256(values.tobytes()).hexdigest()}"


def version(package: str) -> str:
    """A package of a distribution may not be registered."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return sys.modules[package].__version__


def report(package: str, flags: str, **more) -> None:
    """The line of JSON."""
    result = {
        "workload": f"{package}-arrays",
        "version": f"{package} {version(package)}",
        "build": build(flags),
        **more,
    }
    print(json.dumps(result, separators=(",", ":")))


def main(package: str, begin_import: float, arrays, flags: str, threads=lambda args: args.threads) -> None:
    """Reads the datasets by `arrays`, which opens the file and gives pairs of path and array, in the order of `expand`."""
    import_s = time.perf_counter() - begin_import
    args = parse()
    held, sums = [], 0
    settled = {"settle_bytes": settle(args.file, args.settle)} if args.settle else {}

    begin, cpu = time.perf_counter(), time.process_time()
    for path, values in arrays(args):
        sums += total(values)
        held.append((path, values))
    open_to_last_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu

    if args.digest:
        for path, values in held:
            print(row(path, values))
        return
    report(
        package,
        flags,
        open_to_last_s=open_to_last_s,
        cpu_s=cpu_s,
        datasets=len(held),
        bytes_decoded=sum(values.nbytes for _, values in held),
        sum=sums & MASK,
        # after the clock has stopped, as in `thalweg read --arrays`
        digest=digest([checksum(values) for _, values in held]),
        threads=threads(args),
        stages={},
        import_s=import_s,
        **settled,
        # of an object, only its server could tell
        needed_bytes=None if "://" in args.file else stored_bytes(args.file, args.paths),
    )
