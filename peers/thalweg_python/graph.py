"""The Python package of thalweg as a benchmark arm for networks: neighbours as Arrow lists. Arguments and output:
../common/graph_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../common"), os.path.join(here, "../../target/peers/thalweg_python")]
import pyarrow  # noqa: E402
import thalweg  # noqa: E402
from graph_peer import Refused, main  # noqa: E402


class Store:
    def __init__(self, path, mode, args):
        if mode != "read":
            raise Refused("this arm only reads")
        self.threads = len(os.sched_getaffinity(0))
        self.network = thalweg.open(path, threads=self.threads)

    def _lists(self, of, to, vertices):
        return pyarrow.array(self.network.neighbors(of.capitalize(), vertices, to.capitalize()))

    def sum(self, of, to, vertices):
        ids = self._lists(of, to, vertices).flatten().to_numpy()
        return len(ids), int(ids.sum(dtype="u8"))

    def lists(self, of, to, vertices):
        for ids in self._lists(of, to, vertices):
            yield ids.values.to_numpy()

    def needed(self, of, to, vertices):
        return None

    def close(self):
        pass


if __name__ == "__main__":
    main("thalweg-python", f"thalweg {thalweg.__version__}", begin_import, Store, "the wheel of `make wheel`")
