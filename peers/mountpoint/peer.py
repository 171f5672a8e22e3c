#!/usr/bin/env python3
"""Runs a script of the mounts, `pipeline` or `remote`, with the arguments that follow. Only target/peers/mountpoint_peer runs this, which
is there once Mountpoint is built. So suites leave out its arms where it is not."""

import pathlib
import runpy
import sys

SCRIPTS = {"pipeline": "mount/pipeline.py", "remote": "remote/run.py"}

if __name__ == "__main__":
    script = pathlib.Path(__file__).resolve().parent.parent / SCRIPTS[sys.argv[1]]
    sys.argv = [str(script), *sys.argv[2:]]
    runpy.run_path(str(script), run_name="__main__")
