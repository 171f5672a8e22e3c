"""The Python package of thalweg as a benchmark arm for arrays: all in one pass. Arguments and output: ../common/array_peer.py."""

import os
import sys
import time

begin_import = time.perf_counter()
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../common"), os.path.join(here, "../../target/peers/thalweg_python")]
import thalweg  # noqa: E402
from array_peer import main  # noqa: E402


def arrays(args):
    yield from thalweg.open(args.file, threads=args.threads).read(*args.paths).items()


if __name__ == "__main__":
    main("thalweg", begin_import, arrays, flags="the wheel of `make wheel`")
