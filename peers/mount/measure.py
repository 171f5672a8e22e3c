#!/usr/bin/env python3
"""Mounts a bucket of a server on this machine, and measures one job on it:

    measure.py SHAPE FOLDER ARM JOB

SHAPE is one of ../remote/run.py. FOLDER is the bucket: a folder of files, made before. ARM is one of

    local                   the folder itself, without a server
    raw                     the client that only receives, for the jobs `cat` and `direct` (as many connections as the best)
    thalweg                 thalweg mount, with a cache on disc
    thalweg-no-cache        the same without one
    thalweg-copied          with a cache, but without the kernel's passthrough
    rclone                  rclone mount as it comes
    rclone-tuned            with 16 streams of 4 MiB, and its cache on disc
    s3fs
    mountpoint              Mountpoint for S3 as it comes
    mountpoint-cache        with its cache on disc

JOB is one of

    cat FILE                read in order, 1 MiB at a time, through the page cache
    direct FILE             the same past the page cache (dd iflag=direct bs=1M)
    again FILE              read in order a second time, after the page cache was dropped
    random FILE COUNT       so many aligned reads of 256 KiB past the page cache, one after the other
    random16 FILE COUNT     the same by 16 threads
    tar FOLDER              all files of a folder, in the order of tar
    ls FOLDER               names and sizes of all files, recursively

The page cache is dropped before the jobs `again` and those of `local`, if this is root; a new mount has nothing there. It prints a line of JSON: seconds, bytes that were read and a digest of them,
seconds of processor time and peak memory of the daemon, and what the server counted.
"""

import concurrent.futures
import contextlib
import hashlib
import json
import mmap
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

for beside in ["../remote", "../mountpoint"]:
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), beside))
import mountpoint  # noqa: E402
import run as remote  # noqa: E402

MIB = 1 << 20
READ = 256 << 10


def drop_caches() -> bool:
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3")
        return True
    except OSError:
        return False


class Digest:
    """Of everything that was read, in order: the sum of all 8-byte words takes no time beside reading."""

    def __init__(self) -> None:
        self.bytes = 0
        self.ends = hashlib.sha256()

    def add(self, data) -> None:
        self.bytes += len(data)
        # The ends of each read: a checksum of everything would be what is measured.
        self.ends.update(data[:64])
        self.ends.update(data[-64:])


def cat(path: str, digest: Digest, flags: int = 0) -> None:
    """Reads a file in order. The digest does not depend on how many bytes come at a time."""
    file = os.open(path, os.O_RDONLY | flags)
    buffer = mmap.mmap(-1, MIB)
    view = memoryview(buffer)
    size = os.fstat(file).st_size
    for at in range(0, size, MIB):
        wanted = min(MIB, size - at)
        filled = 0
        while filled < wanted:
            # past the page cache, addresses and lengths are multiples of a page
            got = os.preadv(file, [view[filled:]], at + filled)
            if got == 0:
                sys.exit(f"error: {path} ends at byte {at + filled}")
            filled += got
        digest.add(view[:wanted])
    os.close(file)


def scattered(path: str, count: int, digest: Digest, threads: int) -> None:
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    blocks = os.fstat(file).st_size // READ
    chance = random.Random(1)
    places = [chance.randrange(blocks) * READ for _ in range(count)]
    ends: list[Digest] = [Digest() for _ in places]

    def read(first: int) -> None:
        view = memoryview(mmap.mmap(-1, READ))
        for at in range(first, count, threads):
            got = os.preadv(file, [view], places[at])
            ends[at].add(view[:got])

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, range(threads)))
    for one in ends:
        digest.bytes += one.bytes
        digest.ends.update(one.ends.digest())
    os.close(file)


def files(folder: str) -> list[str]:
    return sorted(os.path.join(above, name) for above, _, names in os.walk(folder) for name in names)


def tar(folder: str, digest: Digest) -> None:
    # as tar does: names in the order of the folder, each looked at, opened and read
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(above, name)
            os.lstat(path)
            with open(path, "rb", buffering=0) as file:
                digest.add(file.read())


def ls(folder: str, digest: Digest) -> None:
    for above, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(above, name)
            digest.add(f"{os.path.relpath(path, folder)} {os.lstat(path).st_size}".encode())


def job(name: str, path: str, count: int) -> Digest:
    digest = Digest()
    match name:
        case "cat" | "again":
            cat(path, digest)
        case "direct":
            cat(path, digest, os.O_DIRECT)
        case "random":
            scattered(path, count, digest, 1)
        case "random16":
            scattered(path, count, digest, 16)
        case "tar":
            tar(path, digest)
        case "ls":
            ls(path, digest)
        case _:
            sys.exit(f"error: no job is called {name}")
    return digest


def command(arm: str, server: remote.Server, folder: str, cache: str) -> list[str]:
    if arm.startswith("thalweg"):
        program = [os.path.join(remote.programs, "thalweg"), "mount", f"s3://{server.bucket}", folder, "--foreground"]
        kept = [] if arm == "thalweg-no-cache" else ["--cache", f"100GB,free=0,folder={cache}"]
        copied = ["--no-passthrough"] if arm == "thalweg-copied" else []
        return [*program, *kept, *copied]
    if arm.startswith("rclone"):
        tuned = ["--vfs-read-chunk-streams", "16", "--vfs-read-chunk-size", "4M", "--vfs-cache-mode", "full", "--cache-dir", cache]
        return [*remote.rclone("mount", server, server.bucket), folder, "--read-only", *(tuned if arm == "rclone-tuned" else [])]
    if arm == "s3fs":
        options = f"url={server.base},use_path_request_style,public_bucket=1,ro"
        return ["s3fs", server.bucket, folder, "-f", "-o", options]
    if arm.startswith("mountpoint"):
        kept = ["--cache", cache] if arm == "mountpoint-cache" else []
        return mountpoint.command(server.base, server.bucket, folder, "--read-only", "--no-sign-request", *kept)
    sys.exit(f"error: no arm is called {arm}")


@contextlib.contextmanager
def mounted(arm: str, server: remote.Server, cache: str):
    folder = tempfile.mkdtemp(prefix="thalweg-mount-")
    daemon = subprocess.Popen(command(arm, server, folder, cache), env=server.env | {"TMPDIR": cache}, stdout=sys.stderr)
    try:
        deadline = time.monotonic() + 20
        while not os.path.ismount(folder):
            if time.monotonic() > deadline or daemon.poll() is not None:
                sys.exit(f"error: {arm} mounted nothing")
            time.sleep(0.01)
        yield folder, daemon.pid
    finally:
        if subprocess.run(["umount", folder], check=False).returncode != 0:
            subprocess.run(["umount", "--lazy", folder], check=False)
        try:
            daemon.wait(timeout=30)
        except subprocess.TimeoutExpired:
            daemon.kill()
        # Never what is still mounted.
        os.rmdir(folder)


def processor_s(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("VmHWM")).split()[1]) * 1024


def timed(name: str, path: str, count: int, is_dropped: bool) -> dict[str, object]:
    # The files of a new mount are in no page cache; the programs of the peers are, and stay there.
    is_cold = is_dropped and drop_caches()
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    digest = job(name, path, count)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"s": seconds, "bytes": digest.bytes, "digest": digest.ends.hexdigest()[:16], "cpu_s": cpu, "page_cache_dropped": is_cold}


def main(shape: str, folder: str, arm: str, name: str, target: str, count: str = "400") -> None:
    if arm == "local":
        print(json.dumps({"arm": arm, "job": name} | timed(name, os.path.join(folder, target), int(count), True)))
        return
    server = remote.Server(shape, os.path.join(folder, target.split("/")[0]))
    with contextlib.ExitStack() as at_end:
        at_end.callback(server.process.wait)
        at_end.callback(server.process.kill)
        if arm == "raw":
            url = f"{server.base}/{server.bucket}/{target}"
            ran = subprocess.run([*remote.program("raw"), url, os.environ.get("CONNECTIONS", "32")], stdout=subprocess.PIPE, text=True)
            seconds = json.loads(ran.stdout.splitlines()[-1])["open_to_last_s"]
            served = {"served": json.loads(server.asked("counts")), "server_cpu_s": processor_s(server.process.pid)}
            cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
            print(json.dumps({"arm": arm, "job": name, "s": seconds, "cpu_s": cpu.ru_utime + cpu.ru_stime} | served))
            return
        cache = tempfile.mkdtemp(prefix="thalweg-mount-cache-", dir=os.environ.get("CACHES"))
        at_end.callback(shutil.rmtree, cache, ignore_errors=True)
        mount, pid = at_end.enter_context(mounted(arm, server, cache))
        path = os.path.join(mount, target)
        if name == "again":
            job("cat", path, 0)
            # a cache may be finished after the file is closed
            time.sleep(1)
        server.asked("reset")
        before, server_before = processor_s(pid), processor_s(server.process.pid)
        found = timed(name, path, int(count), name == "again")
        served = json.loads(server.asked("counts"))
        daemon = {"daemon_cpu_s": round(processor_s(pid) - before, 2), "daemon_peak_bytes": peak_bytes(pid)}
        served = {"served": served, "server_cpu_s": round(processor_s(server.process.pid) - server_before, 2)}
        print(json.dumps({"arm": arm, "job": name} | found | daemon | served))


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
