"""h5py as a benchmark peer for finding what is in a file.

    peer.py make OUT --libver earliest|latest     writes 10,000 groups with 5 attributes each, as recorders of trials do
    peer.py visit FILE [--attributes]             visits every object; with --attributes, reads every attribute

The clock of `visit` runs from before the file is opened until the last object was visited; the interpreter's start and the imports
lie outside and are reported beside it.
"""

import argparse
import importlib.metadata
import json
import os
import sys
import time

begin_import = time.perf_counter()
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import h5py  # noqa: E402
import numpy  # noqa: E402
from python_peer import build  # noqa: E402

UNITS, TRIALS = 100, 100


def make(args) -> None:
    with h5py.File(args.out, "w", libver=args.libver) as file:
        for unit in range(UNITS):
            for trial in range(TRIALS):
                group = file.create_group(f"processing/unit_{unit:03}/trial_{trial:03}")
                group.attrs["neurodata_type"] = "ElectricalSeries"
                group.attrs["namespace"] = "core"
                group.attrs["rate"] = 30_000.0
                group.attrs["starting_time"] = unit + trial / TRIALS
                group.attrs["channels"] = numpy.arange(4, dtype="<i4")


def visit(args) -> None:
    import_s = time.perf_counter() - begin_import
    objects = attributes = 0

    def one(_, found):
        nonlocal objects, attributes
        objects += 1
        if args.attributes:
            attributes += len(dict(found.attrs))

    begin, cpu = time.perf_counter(), time.process_time()
    with h5py.File(args.file, "r") as file:
        file.visititems(one)
    open_to_last_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu
    result = {
        "workload": "h5py-groups",
        "version": f"h5py {importlib.metadata.version('h5py')}",
        "build": build(f"as published, HDF5 {h5py.version.hdf5_version}"),
        "open_to_last_s": open_to_last_s,
        "cpu_s": cpu_s,
        "objects": objects,
        "attributes": attributes,
        "threads": 1,
        "stages": {},
        "import_s": import_s,
    }
    print(json.dumps(result, separators=(",", ":")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    making = verbs.add_parser("make")
    making.add_argument("out")
    making.add_argument("--libver", choices=["earliest", "latest"], default="earliest")
    making.set_defaults(run=make)
    visiting = verbs.add_parser("visit")
    visiting.add_argument("file")
    visiting.add_argument("--attributes", action="store_true")
    visiting.set_defaults(run=visit)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
