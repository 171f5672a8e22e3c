#!/usr/bin/env python3
"""Runs a command on an object of a server on this machine, which has the delays and rates of an object store:

    run.py SHAPE FILE COMMAND..     SHAPE: loopback, near, far, faulty; in COMMAND, URL stands for the file's URL, S3 for its s3:// one

With the word indexed first, thalweg makes its index of the object beforehand. A command that begins with raw or each is the raw client or the one that makes a request for each read; one that begins with ros3
or the name of a library is ./peer.py with it. What the server counted is added to the command's line of JSON as `served`: requests
(gets, heads, lists), bytes of bodies, connections.
"""

import json
import os
import subprocess
import sys
import urllib.request

# Near is a service in the same region as the program, far is one on another continent, faulty is near and refuses one of twenty
# requests, and tears one body of a hundred. The ports are fixed, because thalweg keeps indexes of objects by their URLs.
SHAPES = {
    "loopback": ["--port", "47101"],
    "near": ["--port", "47102", "--latency-ms", "30,200", "--connection", "80e6", "--total", "1e9"],
    "faulty": ["--port", "47104", "--latency-ms", "30,200", "--connection", "80e6", "--total", "1e9", "--refused", "0.05", "--torn", "0.01"],
    "far": ["--port", "47103", "--latency-ms", "150,1000", "--connection", "10e6", "--total", "1e9"],
}
LIBRARIES = ["fsspec", "s3fs", "remfile", "h5coro", "virtualizarr"]

root = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
programs = os.environ.get("THALWEG_SERVERS", os.path.join(root, "target/release"))


def main(shape: str, file: str, *command: str) -> int:
    folder, name = os.path.split(os.path.realpath(file))
    above, bucket = os.path.split(folder)
    peer = os.path.join(root, "peers/remote/peer.py")
    first, *rest = command
    is_indexed = first == "indexed"
    if is_indexed:
        first, *rest = rest
    if first == "raw":
        first = os.path.join(programs, "ranged-client")
    elif first == "each":
        first = os.path.join(programs, "get-each")
    elif first == "ros3":
        # no package of PyPI has this driver; Debian's python3-h5py does
        first, rest = "/usr/bin/python3", [peer, "ros3", *rest]
    elif first in LIBRARIES:
        first, rest = os.path.join(root, ".venv/remote/bin/python"), [peer, first, *rest]
    seed = os.environ.get("SEED", "1")
    server = subprocess.Popen(
        [os.path.join(programs, "object-server"), above, "--seed", seed, *SHAPES[shape]], stdout=subprocess.PIPE, text=True
    )
    try:
        base = server.stdout.readline().strip()
        places = {"URL": f"{base}/{bucket}/{name}", "S3": f"s3://{bucket}/{name}"}
        words = [places.get(word, word) for word in [first, *rest]]
        env = os.environ | {"AWS_ENDPOINT_URL": base, "AWS_SKIP_SIGNATURE": "true", "AWS_REGION": "us-east-1", "NO_PROXY": "127.0.0.1"}
        if is_indexed:
            subprocess.run([first, "index", places["URL"]], env=env, stdout=subprocess.DEVNULL, check=True)
            urllib.request.urlopen(f"{base}/-/reset").close()
        ran = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True)
        *before, last = ran.stdout.splitlines() or [""]
        with urllib.request.urlopen(f"{base}/-/counts") as counts:
            served = json.load(counts)
    finally:
        server.kill()
        server.wait()
    print(*before, sep="\n", end="\n" if before else "")
    print(json.dumps(json.loads(last) | {"served": served}) if last.startswith("{") else last)
    return ran.returncode


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
