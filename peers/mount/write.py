#!/usr/bin/env python3
"""Writes through a mount of a bucket that versitygw has on this machine, and measures one job:

    write.py VERSITYGW FOLDER ARM JOB SOURCE [COUNT]

FOLDER is where the objects, mounts and staged bytes of the trial are; it is removed after it. ARM is one of

    local            a folder beside, without a server
    upload           rclone copyto, for the job `copy`: what sending alone takes
    thalweg          thalweg mount
    thalweg-wb       the same with --write-back
    thalweg-staged   with --close staged
    thalweg-small    with room for 4 GiB of staged bytes
    rclone-tuned     rclone mount with a cache of what is written
    s3fs             with parts of 16 MiB, 8 at a time
    mountpoint       Mountpoint for S3 as it comes, but that it may remove and replace objects

JOB is one of

    copy             SOURCE, in order, 1 MiB at a time
    gunzip           what `gunzip -c SOURCE` writes
    many             the files of the folder SOURCE, one after the other
    writers          SOURCE, by COUNT threads at the same time, each into a file of its own
    large            SOURCE five times into each of COUNT files, one after the other
    append           SOURCE, and then a line at its end
    rename           SOURCE, and then another name for it
    random           SOURCE, and then COUNT writes of 4 KiB anywhere in it
    in-place         SOURCE, and then `gunzip` of it, which removes it

It prints a line of JSON: seconds until the last file was closed (`closed_s`), and until the store has all of it (`stored_s`: the mount is unmounted and its program has ended), processor seconds and peak
memory of the daemon, the most bytes that were staged, and whether the objects have the bytes. If the mount refuses the job, the line has
why, as `cannot`.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "peers/mountpoint"))
import mountpoint  # noqa: E402
from versitygw import served, until  # noqa: E402

TARGET = ROOT / "target"
THALWEG = os.environ.get("THALWEG", str(TARGET / "release/thalweg"))
RCLONE = os.environ.get("RCLONE", str(TARGET / "peers/go/bin/rclone"))
MIB = 1 << 20
ROOM = "4GiB"
# versitygw has the list of an object's parts in an extended attribute, which is too small for those of 10 GB.
TIMES = 5


LINE = b"a line more\n"
BLOCK = 4096


def digest(path: pathlib.Path, times: int = 1) -> str:
    found = hashlib.md5()
    for _ in range(times):
        with open(path, "rb") as file:
            while piece := file.read(MIB):
                found.update(piece)
    return found.hexdigest()


def copy(source: pathlib.Path, target: pathlib.Path, times: int = 1) -> None:
    with open(target, "wb", buffering=0) as out:
        for _ in range(times):
            with open(source, "rb", buffering=0) as file:
                while piece := file.read(MIB):
                    out.write(piece)


def scatter(path: pathlib.Path, count: int) -> None:
    """So many writes anywhere in a file, the same ones each time."""
    chance = random.Random(1)
    blocks = path.stat().st_size // BLOCK
    with open(path, "r+b", buffering=0) as file:
        for _ in range(count):
            os.pwrite(file.fileno(), chance.randbytes(BLOCK), chance.randrange(blocks) * BLOCK)


def job(name: str, source: pathlib.Path, folder: pathlib.Path, count: int) -> None:
    match name:
        case "copy":
            copy(source, folder / "copy")
        case "large":
            for number in range(count):
                copy(source, folder / f"large{number}", TIMES)
        case "gunzip":
            with open(folder / "plain", "wb") as out:
                subprocess.run(["gunzip", "-c", str(source)], stdout=out, check=True)
        case "many":
            (folder / "many").mkdir()
            for file in sorted(source.iterdir()):
                copy(file, folder / "many" / file.name)
        case "writers":
            threads = [threading.Thread(target=copy, args=(source, folder / f"w{number}")) for number in range(count)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        case "append":
            copy(source, folder / "grown")
            with open(folder / "grown", "ab") as file:
                file.write(LINE)
        case "rename":
            copy(source, folder / "first")
            (folder / "first").rename(folder / "second")
        case "random":
            copy(source, folder / "changed")
            scatter(folder / "changed", count)
        case "in-place":
            copy(source, folder / "plain.gz")
            subprocess.run(["gunzip", str(folder / "plain.gz")], check=True)
        case _:
            sys.exit(f"error: no job is called {name}")


def is_right(name: str, source: pathlib.Path, folder: pathlib.Path, count: int) -> bool:
    """Whether the files of a folder, which versitygw has as they are, are what was written."""
    try:
        return has_bytes(name, source, folder, count)
    except FileNotFoundError:
        return False


def has_bytes(name: str, source: pathlib.Path, folder: pathlib.Path, count: int) -> bool:
    match name:
        case "copy":
            return digest(folder / "copy") == digest(source)
        case "large":
            expected = digest(source, TIMES)
            return all(digest(folder / f"large{number}") == expected for number in range(count))
        case "append":
            return (folder / "grown").read_bytes() == source.read_bytes() + LINE
        case "rename":
            return not (folder / "first").exists() and digest(folder / "second") == digest(source)
        case "random":
            copy(source, folder / "expected")
            scatter(folder / "expected", count)
            return digest(folder / "changed") == digest(folder / "expected")
        case "gunzip" | "in-place":
            if (folder / "plain.gz").exists():
                return False
            plain = subprocess.run(f"gunzip -c {source} | md5sum", shell=True, stdout=subprocess.PIPE, text=True, check=True)
            return digest(folder / "plain") == plain.stdout.split()[0]
        case "many":
            return all(digest(folder / "many" / file.name) == digest(file) for file in source.iterdir())
        case _:
            return all(digest(folder / f"w{number}") == digest(source) for number in range(count))


def command(arm: str, base: str, mount: str, folder: pathlib.Path) -> list[str]:
    if arm.startswith("thalweg"):
        room = ROOM if arm == "thalweg-small" else "off"
        staging = f"{room},free=0,folder={folder / 'staging'}"
        close = "staged" if arm == "thalweg-staged" else "durable"
        options = ["--write-back"] if arm == "thalweg-wb" else []
        return [THALWEG, "mount", "s3://bucket", mount, "--foreground", "--staging", staging, "--close", close, *options]
    if arm == "rclone-tuned":
        remote = f":s3,provider=Other,endpoint='{base}',access_key_id=key,secret_access_key=secret,force_path_style=true,no_check_bucket=true:bucket"
        return [RCLONE, "mount", "--config", "", remote, mount, "--vfs-cache-mode", "writes", "--cache-dir", str(folder / "cache"),
                "--vfs-write-back", "0s", "--s3-upload-concurrency", "8", "--s3-chunk-size", "16M"]
    if arm == "s3fs":
        password = folder / "password"
        password.write_text("key:secret")
        password.chmod(0o600)
        options = f"url={base},use_path_request_style,passwd_file={password},parallel_count=8,multipart_size=16,use_cache={folder / 'cache'}"
        return ["s3fs", "bucket", mount, "-f", "-o", options]
    if arm == "mountpoint":
        return mountpoint.command(base, "bucket", mount, "--allow-delete", "--allow-overwrite")
    sys.exit(f"error: no arm is called {arm}")


def of_process(pid: int) -> dict[str, float]:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return {"daemon_cpu_s": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), "daemon_peak_bytes": int(peak.split()[1]) * 1024}


class Staged:
    """The most bytes below a folder, looked at while something is written."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder, self.most, self.is_over = folder, 0, False
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self) -> None:
        while not self.is_over:
            blocks = 0
            for path in self.folder.rglob("*"):
                try:
                    blocks += path.stat().st_blocks
                except OSError:
                    pass
            self.most = max(self.most, blocks * 512)
            time.sleep(0.2)

    def end(self) -> int:
        self.is_over = True
        self.thread.join()
        return self.most


def trial(versitygw: str, folder: pathlib.Path, arm: str, name: str, source: pathlib.Path, count: int) -> dict[str, object]:
    objects, mount = folder / "objects" / "bucket", folder / "mount"
    objects.mkdir(parents=True)
    mount.mkdir()
    # What was read before is in the page cache of all arms alike.
    os.sync()
    if arm == "local":
        start = time.perf_counter()
        job(name, source, mount, count)
        seconds = time.perf_counter() - start
        return {"closed_s": seconds, "stored_s": seconds, "is_right": is_right(name, source, mount, count)}
    with contextlib.ExitStack() as at_end:
        env = at_end.enter_context(served(versitygw, folder))
        at_end.callback(subprocess.run, ["umount", "-l", str(mount)], check=False, stderr=subprocess.DEVNULL)
        base = env["AWS_ENDPOINT_URL"]
        if arm == "upload":
            remote = command("rclone-tuned", base, str(mount), folder)[4]
            start = time.perf_counter()
            subprocess.run([RCLONE, "copyto", "--config", "", str(source), f"{remote}/copy", "--s3-upload-concurrency", "8", "--s3-chunk-size", "16M",
                            "--s3-upload-cutoff", "16M"], check=True)
            seconds = time.perf_counter() - start
            return {"closed_s": seconds, "stored_s": seconds, "is_right": is_right("copy", source, objects, count)}
        daemon = subprocess.Popen(command(arm, base, str(mount), folder), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: os.path.ismount(mount), f"{arm} mounted nothing")
        staged = Staged(folder / ("staging" if arm.startswith("thalweg") else "cache"))
        start = time.perf_counter()
        refused = {}
        try:
            job(name, source, mount, count)
        except (OSError, subprocess.CalledProcessError) as why:
            refused = {"cannot": str(why)}
        closed = time.perf_counter() - start
        measured = of_process(daemon.pid)
        subprocess.run(["umount", str(mount)], check=True)
        daemon.wait(timeout=600)
        stored = time.perf_counter() - start
        most = staged.end()
        if refused:
            return refused
        return {"closed_s": closed, "stored_s": stored, **measured, "most_staged_bytes": most, "is_right": is_right(name, source, objects, count)}


def main(versitygw: str, above: str, arm: str, name: str, source: str, count: str = "1") -> None:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-write-", dir=above))
    try:
        print(json.dumps({"arm": arm, "job": name, **trial(versitygw, folder, arm, name, pathlib.Path(source), int(count))}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
