#!/usr/bin/env python3
"""Runs the published pipeline of seven steps on a FASTQ file, on a mount of a bucket that versitygw has on this machine:

    pipeline.py STEP ARM FASTQ_GZ FASTQ RECOMPRESSED

FASTQ_GZ is the file, FASTQ its text, and RECOMPRESSED what `gzip --fast` makes of that: for steps that read them. STEP is one of

    read1, read2    dd iflag=direct bs=1M of FASTQ_GZ. Before read2, the same was read once
    check           md5sum -c
    uncompress      gunzip -c
    count           grep -c '^+$' of the text, to the end
    compress        gzip --fast -c
    compare         zcmp of FASTQ_GZ and RECOMPRESSED
    chain           all of them, one after the other, each on what the one before has made. Caches carry over

ARM is one of

    memory          a folder in memory: what the programs themselves take
    local           the folder itself. What was written counts when it is on the disc (sync)
    thalweg         thalweg mount as it comes
    thalweg-cache   with a cache on disc
    thalweg-wb      with --write-back
    thalweg-staged  with --write-back --close staged
    rclone          rclone mount as it comes
    rclone-tuned    with 16 streams of 4 MiB, and its cache on disc
    s3fs            with its cache on disc, parts of 16 MiB, 8 at a time
    mountpoint      Mountpoint for S3 as it comes, but that it may remove and replace objects
    mountpoint-cache    with its cache on disc
    direct          without a mount: thalweg reads and writes objects. It has no step for read1 and read2
    one-pass        chain only: one `thalweg convert --verify --md5` in place of all steps

Each trial has a server, a mount and caches of its own, which are empty, and ends when what was written is visible in the bucket with all its bytes: after the program has closed it, by looking. It prints
a line of JSON: seconds until then (`open_to_last_s`) and until the last program has ended (`closed_s`), a digest of the results, processor seconds of the programs, of the daemon and of the server,
the daemon's peak memory, and what the server was asked for. A chain has its steps as `stages`.
"""

import collections
import contextlib
import hashlib
import json
import os
import pathlib
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from write import RCLONE, THALWEG, command, of_process, served, until  # noqa: E402

VERSITYGW = os.environ.get("VERSITYGW", str(pathlib.Path(__file__).resolve().parent.parent.parent / "target/servers/bin/versitygw"))
IN, TEXT, NEW = "reads.fastq.gz", "reads.fastq", "new.fastq.gz"
READ = f"dd if={IN} of=/dev/null iflag=direct bs=1M status=none"
STEPS = {
    "read1": READ,
    "read2": READ,
    "check": f"md5sum -c {IN}.md5",
    "uncompress": f"gunzip -c {IN} > {TEXT}",
    "count": f"grep -c '^+$' {TEXT}",
    "compress": f"gzip --fast -c {TEXT} > {NEW}",
    "compare": f"zcmp {IN} {NEW}",
}
# What thalweg does in their place without a mount. The sum is in IN.md5, the object beside it.
DIRECT = {
    "check": "{thalweg} check {url}/" + IN,
    "uncompress": "{thalweg} convert {url}/" + IN + " {url}/" + TEXT,
    "count": "{thalweg} info {url}/" + TEXT + " --count --json",
    "compress": "{thalweg} convert {url}/" + TEXT + " {url}/" + NEW + " --level 1",
    "compare": "cmp <({thalweg} convert {url}/" + IN + " -) <({thalweg} convert {url}/" + NEW + " -)",
}
ONE_PASS = "{thalweg} convert {url}/" + IN + " {url}/" + NEW + " --level 1 --verify --md5 --json"
# What each step reads that is not made by the step before, and what it writes.
READS = {"read1": [IN], "read2": [IN], "check": [IN], "uncompress": [IN], "count": [TEXT], "compress": [TEXT], "compare": [IN, NEW], "chain": [IN]}
WRITES = {"uncompress": [TEXT], "compress": [NEW], "chain": [TEXT, NEW]}


def mount_command(arm: str, base: str, mount: pathlib.Path, folder: pathlib.Path) -> list[str]:
    cache = folder / "cache"
    if arm.startswith("thalweg"):
        made = command(arm, base, str(mount), folder)
        cached = ["--cache", f"40GB,free=0,folder={cache}"] if arm == "thalweg-cache" else []
        return [*made, *cached, *(["--write-back"] if arm in ("thalweg-wb", "thalweg-staged") else [])]
    if arm in ("s3fs", "mountpoint"):
        return command(arm, base, str(mount), folder)
    if arm == "mountpoint-cache":
        cache.mkdir()
        return [*command("mountpoint", base, str(mount), folder), "--cache", str(cache)]
    remote = command("rclone-tuned", base, str(mount), folder)[4]
    plain = [RCLONE, "mount", "--config", "", remote, str(mount)]
    if arm == "rclone":
        return plain
    if arm == "rclone-tuned":
        return [*plain, "--vfs-cache-mode", "full", "--cache-dir", str(cache), "--vfs-write-back", "0s", "--vfs-read-chunk-streams", "16", "--vfs-read-chunk-size", "4M",
                "--s3-upload-concurrency", "8", "--s3-chunk-size", "16M"]
    sys.exit(f"error: no arm is called {arm}")


def tag(path: pathlib.Path) -> None:
    """Gives a file that was put in the place of an object the ETag that objects have: Mountpoint opens none without. It is no MD5, as
    that of an object in parts."""
    identity = f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}"
    os.setxattr(path, "user.etag", f'"{hashlib.md5(identity.encode()).hexdigest()}-1"'.encode())


def run(text: str, folder: pathlib.Path, env: dict[str, str]) -> tuple[str, float]:
    """Runs a command. Gives what it prints, and its seconds."""
    start = time.perf_counter()
    done = subprocess.run(["bash", "-o", "pipefail", "-c", text], cwd=folder, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {text}: exit code {done.returncode}")
    return done.stdout.strip(), time.perf_counter() - start


def said(text: str) -> dict:
    return json.loads(text.splitlines()[-1])


def result_of(step: str, told: str, is_direct: bool) -> str:
    """What a step has found, alike for all arms."""
    if step == "count":
        return str(said(told)["reads"]) if is_direct else told
    return "ok"


def text_sum(path: pathlib.Path) -> str:
    """The MD5 of the text of a file."""
    program = f"gunzip -c {shlex.quote(str(path))}" if path.suffix == ".gz" else f"cat {shlex.quote(str(path))}"
    return subprocess.run(f"{program} | md5sum", shell=True, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[0]


def asked(log: pathlib.Path) -> dict[str, int]:
    """How often the server was asked for what, by its log."""
    counts: collections.Counter[str] = collections.Counter()
    with contextlib.suppress(OSError):
        for line in log.read_text().splitlines():
            for operation in ("GetObject", "HeadObject", "ListObjects", "PutObject", "UploadPart", "CompleteMultipartUpload", "CreateMultipartUpload", "CopyObject", "DeleteObject"):
                if operation in line:
                    counts[operation] += 1
                    break
    return dict(counts)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def trial(step: str, arm: str, files: dict[str, pathlib.Path], folder: pathlib.Path) -> dict:
    objects, mount = folder / "objects" / "bucket", folder / "mount"
    if arm == "memory":
        objects = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-pipeline-", dir="/dev/shm"))
    objects.mkdir(parents=True, exist_ok=True)
    mount.mkdir()
    place = shutil.copyfile if arm == "memory" else os.link
    for name in READS[step]:
        place(files[name], objects / name)
    if step in ("check", "chain"):
        (objects / f"{IN}.md5").write_text(f"{hashlib.file_digest(open(files[IN], 'rb'), 'md5').hexdigest()}  {IN}\n")
        # The sum was taken of the file, which is in memory now.
        if arm != "memory":
            with open(files[IN], "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    is_direct = arm in ("direct", "one-pass")
    is_mounted = arm not in ("memory", "local") and not is_direct
    steps = [name for name in STEPS if name in DIRECT or not is_direct] if step == "chain" else [step]
    with contextlib.ExitStack() as at_end:
        if arm == "memory":
            at_end.callback(shutil.rmtree, objects)
        env, daemon, where = dict(os.environ), None, objects
        if arm not in ("memory", "local"):
            for path in objects.iterdir():
                tag(path)
            env = at_end.enter_context(served(VERSITYGW, folder, "--access-log", str(folder / "log")))
            if is_mounted:
                at_end.callback(subprocess.run, ["umount", "-l", str(mount)], check=False, stderr=subprocess.DEVNULL)
                daemon = subprocess.Popen(mount_command(arm, env["AWS_ENDPOINT_URL"], mount, folder), env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                until(lambda: os.path.ismount(mount), f"{arm} mounted nothing")
                where = mount
        if step == "read2":
            run(READ, where, env)
        stages, told, before, start = {}, [], cpu(), time.perf_counter()
        for name in ["one-pass"] if arm == "one-pass" else steps:
            text = ONE_PASS if arm == "one-pass" else DIRECT[name] if is_direct else STEPS[name]
            out, stages[name] = run(text.format(thalweg=THALWEG, url="s3://bucket"), where, env)
            told.append(out if arm == "one-pass" else result_of(name, out, is_direct))
        closed = time.perf_counter() - start
        made = [name for name in WRITES.get(step, []) if arm != "one-pass" or name == NEW]
        if arm == "local":
            for name in made:
                run(f"sync {name}", where, env)
        else:
            sizes = {name: (where / name).stat().st_size for name in made if not is_direct}
            if arm == "thalweg-staged":
                run(f"{THALWEG} mount --flush {mount}", where, env)
            for name in made:
                until(lambda: (objects / name).exists() and (objects / name).stat().st_size == sizes.get(name, (objects / name).stat().st_size), f"{name} did not come to the bucket")
        seconds = time.perf_counter() - start
        measured: dict = {"cpu_s": cpu() - before}
        if daemon:
            measured |= of_process(daemon.pid)
            subprocess.run(["umount", str(mount)], check=True)
            daemon.wait(timeout=600)
        sums = [text_sum(objects / name) for name in made if name == NEW or arm != "one-pass"]
    if step == "chain":
        # The text itself is no result of the pass.
        told = [sums[-1]]
    else:
        told += sums
    stored = files[READS[step][0]].stat().st_size
    report = {"workload": f"pipeline {arm}", "open_to_last_s": seconds, "bytes_stored": stored, "closed_s": closed, "digest": hashlib.md5(" ".join(told).encode()).hexdigest(), **measured}
    if step == "chain":
        report["stages"] = {name: {"busy_s": took, "exposed_s": took} for name, took in stages.items()}
    served_by = asked(folder / "log")
    return report | ({"served": served_by} if served_by else {})


def main(step: str, arm: str, fastq_gz: str, fastq: str, recompressed: str) -> None:
    files = {IN: pathlib.Path(fastq_gz), TEXT: pathlib.Path(fastq), NEW: pathlib.Path(recompressed)}
    folder = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-pipeline-", dir=files[IN].parent))
    try:
        print(json.dumps(trial(step, arm, files, folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
