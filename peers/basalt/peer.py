"""basalt as a benchmark peer for graphs, its C++ library: basalt_store.cpp. Arguments and output: ../common/graph_peer.py;
--arm shipped (its default options as they come out) or repaired."""

import os
import sys
import time

begin_import = time.perf_counter()
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../common"))
import h5py  # noqa: E402, F401
from graph_peer import Native, Refused, main  # noqa: E402

BUILT = os.path.join(here, "../../target/peers/basalt")


def open_store(path, mode, args):
    # basalt would make one
    if mode != "create" and not os.path.isdir(path):
        raise Refused(f"{path}: no such store")
    return Native(os.path.join(BUILT, "libbasalt_store.so"), path, mode, args.arm)


if __name__ == "__main__":
    with open(os.path.join(BUILT, "version"), encoding="utf-8") as version:
        main("basalt", version.read().strip(), begin_import, open_store, "-O3 -std=c++17", ["shipped", "repaired"])
