"""What the peers for graphs share: arguments, lists from a neuroglial HDF5 file, the digest of docs/method.md, and one JSON line.

    peer.py import HDF5 STORE [--max-astrocytes N]           synapses and neurons of the first N astrocytes, both directions
    peer.py read STORE --what synapse|neuron --vertices V [--reverse] [--repeat R]
                                                             neighbours of the astrocytes of V; with --reverse, the astrocytes of
                                                             the synapses or neurons of V
    peer.py insert STORE --edges N [--batch B] [--into COPY] new synapses of astrocytes, each durable before the next, or B at a time;
                                                             into a copy, which is made and on the disc before the clock starts
    peer.py digest STORE --what .. --vertices V              reads, not timed

V is a number, for the first so many ids, or a file with one id a line. --arm chooses among a store's options.

`import` runs from before the HDF5 is opened until all is durable; what the store does in the background after that is waited for,
and reported apart (`settle_s`). `read` runs from before the store is opened until every value was summed in an array, list by list;
`open_s` is its first part. With --repeat the store is open already, everything was read once, and the median of R times counts.
The interpreter's start and the imports lie outside, and so does the digest.
"""

import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import resource
import shutil
import statistics
import sys
import time

import numpy
from python_peer import MASK, build, latency

TYPES = {"astrocyte": 1, "synapse": 2, "neuron": 3}
# ids that are taken from the HDF5 at a time
BLOCK = 1 << 22
# where no synapse is: they are inserted from here on
NEW = 1 << 40
# a file in the store's folder that says how many there are
ASTROCYTES = "astrocytes"


class Refused(Exception):
    """What a store can't do, or is not asked to."""


def first_lists(file, count: int | None):
    """Blocks of lists of the first `count` astrocytes: what, first astrocyte, offsets (one more than lists), ids."""
    columns = file["Astrocyte/offsets"][:] if count is None else file["Astrocyte/offsets"][: count + 1]
    astrocytes = len(columns) - 1
    if count is not None and astrocytes < count:
        raise Refused(f"{astrocytes} astrocytes in the file, {count} wanted")
    columns = numpy.ascontiguousarray(columns.T, dtype="u8")
    first = 0
    while first < astrocytes:
        end = int(numpy.searchsorted(columns[0], columns[0][first] + BLOCK, "right")) - 1
        end = min(max(end, first + 1), astrocytes)
        for what, offsets in zip(("synapse", "neuron"), columns, strict=True):
            offsets = offsets[first : end + 1]
            yield what, first, offsets, file[f"Astrocyte/{what}"][int(offsets[0]) : int(offsets[-1])].astype("u8", copy=False)
        first = end


def vertices_of(text: str) -> numpy.ndarray:
    if text.isdecimal():
        return numpy.arange(int(text), dtype="u8")
    with open(text, encoding="utf-8") as lines:
        return numpy.array([int(line) for line in lines if line.strip()], dtype="u8")


def digest(lists) -> str:
    """SHA-256 over the ascending ids of each vertex, 8 bytes each, least significant first. `lists` come by ascending vertex."""
    sha256 = hashlib.sha256()
    for ids in lists:
        sha256.update(numpy.sort(ids).astype("<u8", copy=False))
    return sha256.hexdigest()


def new_edges(count: int, astrocytes: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """The edges that `insert` adds, the same for every store: a new synapse each, its astrocyte somewhere."""
    i = numpy.arange(count, dtype="u8")
    return i * numpy.uint64(2654435761) % numpy.uint64(astrocytes), i + numpy.uint64(NEW)


def stored_bytes(store: str) -> int:
    """Of a file, or of all files in a folder."""
    path = pathlib.Path(store)
    return path.stat().st_size if path.is_file() else sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def address(array: numpy.ndarray):
    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_uint64))


class Native:
    """A store behind graph_store.h. One call of C reads all the lists."""

    def __init__(self, library: str, folder: str, mode: str, arm: str):
        self.c = ctypes.CDLL(library)
        pointer, number, handle = ctypes.POINTER(ctypes.c_uint64), ctypes.c_uint64, ctypes.c_void_p
        for name, result, arguments in [
            ("store_error", ctypes.c_char_p, []),
            ("store_open", handle, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]),
            ("store_close", None, [handle]),
            ("store_put", ctypes.c_int, [handle, ctypes.c_int, number, number, pointer, pointer]),
            ("store_durable", ctypes.c_int, [handle]),
            ("store_settle", ctypes.c_int, [handle]),
            ("store_sum", ctypes.c_int, [handle, ctypes.c_int, ctypes.c_int, pointer, number, pointer]),
            ("store_list", ctypes.c_int64, [handle, ctypes.c_int, ctypes.c_int, number, pointer, number]),
            ("store_insert", ctypes.c_int, [handle, ctypes.c_int, pointer, pointer, number]),
            ("store_needed", number, [handle, ctypes.c_int, ctypes.c_int, pointer, number]),
        ]:
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments
        if mode == "create":
            os.makedirs(folder)
        self.store = self.c.store_open(os.fsencode(folder), arm.encode(), ["create", "read", "write"].index(mode))
        if not self.store:
            raise Refused(f"{folder}: {self.c.store_error().decode()}")

    def _checked(self, result: int) -> int:
        if result < 0:
            raise Refused(self.c.store_error().decode())
        return result

    def put(self, what, first, offsets, ids):
        self._checked(self.c.store_put(self.store, TYPES[what], first, len(offsets) - 1, address(offsets), address(ids)))

    def durable(self):
        self._checked(self.c.store_durable(self.store))

    def settle(self):
        self._checked(self.c.store_settle(self.store))

    def sum(self, of, to, vertices):
        out = numpy.zeros(2, "u8")
        self._checked(self.c.store_sum(self.store, TYPES[of], TYPES[to], address(vertices), len(vertices), address(out)))
        return int(out[0]), int(out[1])

    def lists(self, of, to, vertices):
        buffer = numpy.empty(1 << 16, "u8")
        for vertex in vertices:
            ask = lambda into: self._checked(self.c.store_list(self.store, TYPES[of], TYPES[to], int(vertex), address(into), len(into)))
            if (count := ask(buffer)) > len(buffer):
                buffer = numpy.empty(2 * count, "u8")
                ask(buffer)
            yield buffer[:count]

    def insert(self, astrocytes, synapses):
        self._checked(self.c.store_insert(self.store, TYPES["synapse"], address(astrocytes), address(synapses), len(synapses)))

    def needed(self, of, to, vertices):
        return self.c.store_needed(self.store, TYPES[of], TYPES[to], address(vertices), len(vertices)) or None

    def close(self):
        self.c.store_close(self.store)


def cpu_s() -> float:
    """Of all threads of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def parse(arms: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["import", "read", "insert", "digest"])
    parser.add_argument("paths", nargs="+", metavar="PATH", help="HDF5 STORE for import, else STORE")
    parser.add_argument("--max-astrocytes", type=int)
    parser.add_argument("--what", choices=["synapse", "neuron"], default="synapse")
    parser.add_argument("--vertices")
    parser.add_argument("--reverse", action="store_true")
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--edges", type=int)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--into")
    parser.add_argument("--arm", choices=arms, default=arms[0])
    args = parser.parse_args()
    if len(args.paths) != (2 if args.verb == "import" else 1):
        parser.error("import wants HDF5 and STORE, the others STORE")
    if args.verb in ("read", "digest") and not args.vertices:
        parser.error(f"{args.verb} wants --vertices")
    if args.verb == "insert" and not args.edges:
        parser.error("insert wants --edges")
    if any(number is not None and number < 1 for number in (args.max_astrocytes, args.repeat, args.edges, args.batch)):
        parser.error("numbers are from 1")
    args.store = args.paths[-1]
    args.of, args.to = (args.what, "astrocyte") if args.reverse else ("astrocyte", args.what)
    if args.vertices:
        # ascending, each once: the digest is over them in this order
        args.vertices = numpy.unique(vertices_of(args.vertices))
    return args


def imported(open_store, args) -> dict:
    import h5py

    if os.path.exists(args.store):
        raise Refused(f"{args.store} is there already")
    begin, cpu = time.perf_counter(), cpu_s()
    links, astrocytes = 0, 0
    with h5py.File(args.paths[0], "r") as file:
        store = open_store(args.store, "create", args)
        for what, first, offsets, ids in first_lists(file, args.max_astrocytes):
            store.put(what, first, offsets, ids)
            links, astrocytes = links + len(ids), first + len(offsets) - 1
        store.durable()
        seconds, cpu = time.perf_counter() - begin, cpu_s() - cpu
        begin, settling = time.perf_counter(), cpu_s()
        store.settle()
        after = {"settle_s": time.perf_counter() - begin, "settle_cpu_s": cpu_s() - settling}
    if os.path.isdir(args.store):
        with open(os.path.join(args.store, ASTROCYTES), "w", encoding="ascii") as note:
            print(astrocytes, file=note)
    every = numpy.arange(astrocytes, dtype="u8")
    found = digest(ids for what in ("synapse", "neuron") for ids in store.lists("astrocyte", what, every))
    store.close()
    return {
        "open_to_last_s": seconds,
        "cpu_s": cpu,
        **after,
        "links": links,
        "astrocytes": astrocytes,
        "bytes_decoded": 8 * links,
        "bytes_stored": stored_bytes(args.store),
        "digest": found,
    }


def read(open_store, args) -> dict:
    begin, cpu = time.perf_counter(), cpu_s()
    store = open_store(args.store, "read", args)
    open_s = time.perf_counter() - begin
    links, total = store.sum(args.of, args.to, args.vertices)
    seconds, cpu = time.perf_counter() - begin, cpu_s() - cpu
    more = {}
    if args.repeat is not None:
        times, cpu = [], cpu_s()
        for _ in range(args.repeat):
            begin = time.perf_counter()
            again = store.sum(args.of, args.to, args.vertices)
            times.append(time.perf_counter() - begin)
            if again != (links, total):
                raise Refused(f"{again} now, {(links, total)} before")
        seconds, cpu = statistics.median(times), (cpu_s() - cpu) / args.repeat
        more = {"repeats": args.repeat, "fastest_s": min(times), "slowest_s": max(times)}
    counted, summed = 0, 0

    def checked(lists):
        nonlocal counted, summed
        for ids in lists:
            counted, summed = counted + len(ids), (summed + int(ids.sum(dtype="u8"))) & MASK
            yield ids

    found = digest(checked(store.lists(args.of, args.to, args.vertices)))
    if (counted, summed) != (links, total & MASK):
        raise Refused(f"{(links, total & MASK)} in the timed part, {(counted, summed)} after it")
    needed = store.needed(args.of, args.to, args.vertices)
    store.close()
    return {
        "threads": getattr(store, "threads", 1),
        "open_to_last_s": seconds,
        "open_s": open_s,
        "cpu_s": cpu,
        **more,
        "vertices": len(args.vertices),
        "links": links,
        "sum": total & MASK,
        "bytes_decoded": 8 * links,
        "bytes_stored": stored_bytes(args.store),
        **({} if needed is None else {"needed_bytes": needed}),
        "digest": found,
    }


def inserted(open_store, args) -> dict:
    if args.into:
        shutil.copytree(args.store, args.into)
        os.sync()
        args.store = args.into
    with open(os.path.join(args.store, ASTROCYTES), encoding="ascii") as note:
        astrocytes, synapses = new_edges(args.edges, int(note.read()))
    store = open_store(args.store, "write", args)
    times = []
    begin, cpu = time.perf_counter(), cpu_s()
    for at in range(0, args.edges, args.batch):
        part = slice(at, at + args.batch)
        asked = time.perf_counter()
        store.insert(astrocytes[part], synapses[part])
        times.append((time.perf_counter() - asked) / len(synapses[part]))
    seconds, cpu = time.perf_counter() - begin, cpu_s() - cpu
    touched = numpy.unique(astrocytes)
    found = digest(store.lists("astrocyte", "synapse", touched))
    store.close()
    return {
        "open_to_last_s": seconds,
        "cpu_s": cpu,
        "edges": args.edges,
        "batch": args.batch,
        "seconds_an_insert": {"p50": statistics.median(times), "p99": sorted(times)[(len(times) * 99 + 99) // 100 - 1]},
        "latency_us": {"n": len(times), **latency(times)},
        "bytes_stored": stored_bytes(args.store),
        "digest": found,
    }


def main(package: str, version: str, begin_import: float, open_store, flags: str, arms=("plain",)) -> None:
    """Runs a verb on what `open_store` gives for a path, a mode (create, read, write) and the arguments."""
    import_s = time.perf_counter() - begin_import
    args = parse(list(arms))
    try:
        if args.verb == "digest":
            store = open_store(args.store, "read", args)
            print(digest(store.lists(args.of, args.to, args.vertices)))
            return
        done = {"import": imported, "read": read, "insert": inserted}[args.verb](open_store, args)
    except (Refused, OSError, ValueError, IndexError, KeyError) as error:
        sys.exit(f"error: {error}")
    arm = {} if len(arms) == 1 else {"arm": args.arm}
    result = {"workload": f"{package}-{args.verb}", "version": version, "build": build(flags), **arm, **done}
    print(json.dumps({"threads": 1, **result, "stages": {}, "import_s": import_s}, separators=(",", ":")))
