"""A server of objects for programs that try mounts: versitygw, whose buckets are folders."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time


def until(holds, why):
    """Waits until something holds, for half a minute at most."""
    end = time.monotonic() + 30
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"error: {why}")
        time.sleep(0.01)


@contextlib.contextmanager
def served(program, folder: pathlib.Path, *options: str):
    """Serves the folders in FOLDER/objects as buckets. Gives the environment for programs that use them and keep what they
    stage in FOLDER/state."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    env = os.environ | {
        "ROOT_ACCESS_KEY": "key", "ROOT_SECRET_KEY": "secret",
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "XDG_STATE_HOME": str(folder / "state"),
    }
    server = subprocess.Popen([program, "--port", f"127.0.0.1:{port}", *options, "posix", str(folder / "objects")],
                              env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, "versitygw did not start in 30 s")
        yield env
    finally:
        server.kill()
        server.wait()
