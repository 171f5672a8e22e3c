#!/usr/bin/env python3
"""Runs workflows whose work folder is on a mount, beside the same in a folder of this machine, and compares the results.

Usage: run.py SNAKEMAKE VERSITYGW THALWEG

Snakemake runs a workflow, is killed on the way, and goes on. For Nextflow, task.sh takes the steps of a task.
"""

import contextlib
import gzip
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from versitygw import served, until  # noqa: E402

READS = 3000


def fill(raw):
    raw.mkdir(parents=True)
    draw = random.Random(1)
    for number in range(8):
        with gzip.GzipFile(raw / f"s{number}.fastq.gz", "wb", mtime=0) as file:
            for read in range(READS + number):
                bases = "".join(draw.choices("ACGT", k=100))
                file.write(f"@s{number}.{draw.random()}\n{bases}\n+\n{'I' * 100}\n".encode())


def snakemake(program, work, home, dies):
    """Runs the workflow. If it dies, it is killed as soon as there is a result."""
    command = [program, "--snakefile", str(HERE / "Snakefile"), "--directory", str(work), "--cores", "2",
               "--quiet", "all", "--rerun-incomplete", "--nolock", "--latency-wait", "20"]
    env = os.environ | {"HOME": str(home), "XDG_CACHE_HOME": str(home)}
    process = subprocess.Popen(command, env=env, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while dies and process.poll() is None and not list((work / "results").glob("*.gz")):
        time.sleep(0.05)
    if dies and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    said, _ = process.communicate(timeout=900)
    if not dies and process.returncode != 0:
        sys.exit(f"recipes: snakemake failed in {work}:\n{said}")


def tasks(work, raw):
    """Takes the steps of two tasks, of which one fails."""
    script = "gzip -dc *.fastq.gz > plain; sort plain > sorted; wc -l < sorted; mkdir -p out; mv sorted out/"
    subprocess.run([str(HERE / "task.sh"), str(work), "0a1b2c", str(raw / "s0.fastq.gz"), script],
                   check=True, stdout=subprocess.DEVNULL, timeout=300)
    failed = subprocess.run([str(HERE / "task.sh"), str(work), "0affff", str(raw / "s1.fastq.gz"), "exit 7"], timeout=300)
    if failed.returncode != 7:
        sys.exit("recipes: a task that fails ended with another code")


def contents(folder):
    """The files of a folder, but for what Snakemake keeps for itself."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".snakemake" not in path.parts:
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def main():
    program, versitygw, thalweg = (str(pathlib.Path(path).absolute()) for path in sys.argv[1:])
    if not os.path.exists("/dev/fuse"):
        sys.exit("recipes: /dev/fuse is needed")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-recipes-"))
    for name in ["mount", "local", "home", "objects/recipes"]:
        (folder / name).mkdir(parents=True)
    mount = folder / "mount"
    with contextlib.ExitStack() as at_end:
        env = at_end.enter_context(served(versitygw, folder))
        at_end.callback(subprocess.run, ["umount", "-l", str(mount)], stderr=subprocess.DEVNULL)
        for close in ["durable", "staged"]:
            subprocess.run([thalweg, "mount", "s3://recipes", str(mount), "--close", close], env=env, check=True)
            for place in [mount / close, folder / "local" / close]:
                fill(place / "raw")
                snakemake(program, place, folder / "home", dies=True)
                snakemake(program, place, folder / "home", dies=False)
                tasks(place / "work", place / "raw")
            subprocess.run(["umount", str(mount)], check=True)
            # What the store has is what programs see that use no mount.
            until(lambda: not os.path.ismount(mount), "the folder is still mounted")
            subprocess.run([thalweg, "mount", "--recover", "s3://recipes"], env=env, check=True)
            stored, local = contents(folder / "objects" / "recipes" / close), contents(folder / "local" / close)
            # Links are objects of their own.
            stored = {name: found for name, found in stored.items() if not name.endswith(".rclonelink")}
            local = {name: found for name, found in local.items() if not (folder / "local" / close / name).is_symlink()}
            differ = {name for name in stored.keys() | local.keys() if stored.get(name) != local.get(name)}
            if differ:
                sys.exit(f"recipes: {close}: these differ: {sorted(differ)}")
            print(f"recipes: {close}: {len(local)} files are as in a folder of this machine")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
