"""h5py with the VBZ filter as a benchmark peer for FAST5. libhdf5 decodes one chunk at a time in a process, so it is
given as many processes as threads are asked for, each with its own share of the reads. Arguments and output:
../common/python_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import multiprocessing  # noqa: E402

import h5py  # noqa: E402
import vbz_h5py_plugin  # noqa: E402, F401 # registers the filter
from python_peer import consume, main, windows  # noqa: E402

# reads a task
CALL = 50
worker = {}


def open_file(args):
    worker.update(file=h5py.File(args.file, "r"), args=args)


def signal(name):
    """The dataset of a read: `name` is its group."""
    return worker["file"][name + "/Signal" if name.startswith("Raw/") else name + "/Raw/Signal"]


def read_id(name):
    return worker["file"][name].attrs["read_id"].decode() if name.startswith("Raw/") else name.removeprefix("read_")


def groups(file):
    """Of multi-read files, or of single-read ones."""
    with h5py.File(file, "r") as opened:
        return [f"Raw/Reads/{name}" for name in opened["Raw/Reads"]] if "Raw" in opened else list(opened)


def some(names):
    return [consume(read_id(name), signal(name)[()], worker["args"]) for name in names]


def rows(names, args):
    # forked, so that the modules are there already
    with multiprocessing.get_context("fork").Pool(args.threads, open_file, (args,)) as pool:
        for part in pool.imap(some, windows(names, CALL)):
            yield from part


def seq(args):
    return rows(groups(args.file), args)


def get(args):
    return rows([f"read_{wanted}" for wanted in args.ids], args)


def get1(args):
    open_file(args)
    return lambda wanted: some([f"read_{wanted}"])[0]


def needed_bytes(args):
    open_file(args)
    return sum(signal(f"read_{wanted}").id.get_storage_size() for wanted in set(args.ids))


if __name__ == "__main__":
    main(
        "h5py",
        begin_import,
        {"seq": seq, "get": get, "get1": get1},
        flags=f"as published, HDF5 {h5py.version.hdf5_version}, vbz-h5py-plugin",
        needed_bytes=needed_bytes,
    )
