#!/usr/bin/env python3
"""Runs a command on an object of a server on this machine, which has the delays and rates of an object store:

    run.py SHAPE FILE COMMAND..     SHAPE: loopback, near, far, faulty

FILE may be a folder, whose files are objects under one prefix. COMMAND may contain URL (its http:// URL), S3 (its s3:// URL), and after
one of these words PATH (a local path):

    downloaded COMMAND..            a copy that rclone fetches first. The copy's time is a part of the command's
    rclone-mount COMMAND..          below a mount by rclone, which is made before the command's time begins
    s3fs-mount COMMAND..            the same by the tool s3fs (s3fs alone is a library of Python)
    mountpoint-mount COMMAND..      the same by Mountpoint for S3

These words come before a command, too:

    indexed COMMAND..               thalweg makes its index of the object first
    cold-cache COMMAND..            thalweg has a cache on disc, which is empty
    warm-cache COMMAND..            the command has run before with that cache

The command raw is the client that only receives, and each the one that makes a request for each read. ros3 or the name of a library runs
./peer.py with it, and pod5 runs ../pod5_python/peer.py. What the server counted is added to the command's line of
JSON as `served`: requests (gets, heads, lists), bytes of bodies, connections.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../mountpoint"))
import mountpoint  # noqa: E402

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
go_programs = os.path.join(root, "target/peers/go/bin")


class Server:
    """The server of the folder above a file's."""

    def __init__(self, shape: str, file: str):
        folder, self.name = os.path.split(os.path.realpath(file))
        above, self.bucket = os.path.split(folder)
        seed = os.environ.get("SEED", "1")
        command = [os.path.join(programs, "object-server"), above, "--seed", seed, *SHAPES[shape]]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.base = self.process.stdout.readline().strip()
        self.env = os.environ | {
            "AWS_ENDPOINT_URL": self.base,
            "AWS_SKIP_SIGNATURE": "true",
            "AWS_REGION": "us-east-1",
            "NO_PROXY": "127.0.0.1",
        }

    def url(self) -> str:
        return f"{self.base}/{self.bucket}/{self.name}"

    def s3(self) -> str:
        return f"s3://{self.bucket}/{self.name}"

    def asked(self, question: str) -> bytes:
        with urllib.request.urlopen(f"{self.base}/-/{question}") as answer:
            return answer.read()


@contextlib.contextmanager
def scratch():
    """A folder for a copy or a mount."""
    folder = tempfile.mkdtemp(prefix="thalweg-remote-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def mount_command(tool: str, server: Server, folder: str) -> list[str]:
    if tool == "mountpoint-mount":
        return mountpoint.command(server.base, server.bucket, folder, "--read-only", "--no-sign-request")
    if tool == "s3fs-mount":
        return ["s3fs", server.bucket, folder, "-o", f"url={server.base},use_path_request_style,public_bucket=1,ro"]
    # rclone's documentation has 16 streams of 4 MiB for S3, and the cache for readers that seek
    streams = ["--vfs-read-chunk-streams", "16", "--vfs-read-chunk-size", "4M"]
    cache = ["--vfs-cache-mode", "full", "--cache-dir", server.env["TMPDIR"]]
    return [*rclone("mount", server, server.bucket), folder, "--read-only", "--daemon", *streams, *cache]


@contextlib.contextmanager
def mounted(tool: str, server: Server):
    """The bucket as a folder."""
    folder = tempfile.mkdtemp(prefix="thalweg-remote-")
    with contextlib.ExitStack() as at_end:
        # Never what is still mounted.
        at_end.callback(os.rmdir, folder)
        program = subprocess.Popen(mount_command(tool, server, folder), env=server.env, stdout=sys.stderr)
        if tool == "mountpoint-mount":
            # It stays in the foreground.
            at_end.callback(program.wait)
            at_end.callback(program.terminate)
        elif program.wait() != 0:
            sys.exit(f"error: {tool} ended with exit code {program.returncode}")
        at_end.callback(subprocess.run, ["umount", folder], check=False)
        deadline = time.monotonic() + 10
        while not os.path.ismount(folder):
            if time.monotonic() > deadline:
                sys.exit(f"error: {tool} mounted nothing within 10 s")
            time.sleep(0.01)
        yield os.path.join(folder, server.name)


def rclone(verb: str, server: Server, path: str) -> list[str]:
    """A verb of rclone on a path in the server."""
    remote = f':s3,provider=Other,env_auth=false,endpoint="{server.base}":{path}'
    return [os.path.join(go_programs, "rclone"), verb, "--config", "", remote]


def download(server: Server, file: str, folder: str) -> float:
    """Copies the object, or all objects of a folder. Returns seconds."""
    start = time.perf_counter()
    verb = "copy" if os.path.isdir(file) else "copyto"
    command = rclone(verb, server, f"{server.bucket}/{server.name}")
    streams = ["--multi-thread-streams", "16", "--transfers", "16"]
    subprocess.run([*command, os.path.join(folder, server.name), *streams], stdout=sys.stderr, check=True)
    return time.perf_counter() - start


def program(first: str) -> list[str]:
    """What the first word of a command stands for."""
    peer = os.path.join(root, "peers/remote/peer.py")
    if first == "raw":
        return [os.path.join(programs, "ranged-client")]
    if first == "each":
        return [os.path.join(programs, "get-each")]
    if first == "ros3":
        # no package of PyPI has this driver; Debian's python3-h5py does
        return ["/usr/bin/python3", peer, "ros3"]
    if first == "pod5":
        return [os.path.join(root, ".venv/bin/python"), os.path.join(root, "peers/pod5_python/peer.py")]
    if first in LIBRARIES:
        return [os.path.join(root, ".venv/remote/bin/python"), peer, first]
    return [first]


def words(first: str, rest: list[str], places: dict[str, str]) -> list[str]:
    """The command, with its object in place."""
    command = program(first) + [places.get(word, word) for word in rest]
    if shutil.which(command[0]) is None:
        sys.exit(f"error: {command[0]} is not there: `make remote` builds it")
    return command


def main(shape: str, file: str, *command: str) -> int:
    server = Server(shape, file)
    with contextlib.ExitStack() as at_end:
        at_end.callback(server.process.wait)
        at_end.callback(server.process.kill)
        first, *rest = command
        places = {"URL": server.url(), "S3": server.s3()}
        download_s = 0.0
        if first == "indexed":
            first, *rest = rest
            subprocess.run([first, "index", server.url()], env=server.env, stdout=subprocess.DEVNULL, check=True)
            server.asked("reset")
        elif first == "downloaded":
            first, *rest = rest
            folder = at_end.enter_context(scratch())
            download_s = download(server, file, folder)
            places["PATH"] = os.path.join(folder, server.name)
        elif first in ["cold-cache", "warm-cache"]:
            is_warm = first == "warm-cache"
            first, *rest = rest
            server.env |= {"XDG_CACHE_HOME": at_end.enter_context(scratch()), "THALWEG_CACHE": "16GB"}
            if is_warm:
                subprocess.run(words(first, rest, places), env=server.env, stdout=subprocess.DEVNULL, check=True)
                server.asked("reset")
        elif first in ["rclone-mount", "s3fs-mount", "mountpoint-mount"]:
            server.env["TMPDIR"] = at_end.enter_context(scratch())
            places["PATH"] = at_end.enter_context(mounted(first, server))
            first, *rest = rest
            server.asked("reset")
        ran = subprocess.run(words(first, rest, places), env=server.env, stdout=subprocess.PIPE, text=True)
        *before, last = ran.stdout.splitlines() or [""]
        served = json.loads(server.asked("counts"))
    print(*before, sep="\n", end="\n" if before else "")
    if last.startswith("{"):
        report = json.loads(last) | {"served": served}
        if download_s:
            report |= {"download_s": download_s, "open_to_last_s": download_s + report["open_to_last_s"]}
        last = json.dumps(report)
    print(last)
    return ran.returncode


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
