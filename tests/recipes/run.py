#!/usr/bin/env python3
"""Runs workflows whose work folder is on a mount, beside the same in a folder of this machine, and compares the results.

Usage: run.py SNAKEMAKE NEXTFLOW VERSITYGW THALWEG

Snakemake and Nextflow each run a workflow, are killed on the way, and go on. Nextflow goes on once more after the bucket was mounted
anew, and must find that all is done. NEXTFLOW is a folder with its Java archives; without them it is left out. task.sh takes the steps
of its wrapper by hand: what these leave is compared byte for byte.
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
# Of pipeline.nf: two for each file, and one that merges.
TASKS = 17
# Nextflow stores what tasks have done by reflection. Java 17 forbids that for its own classes, and then nothing can be resumed.
OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in ("lang", "util", "io")]


def fill(raw):
    raw.mkdir(parents=True)
    draw = random.Random(1)
    for number in range(8):
        with gzip.GzipFile(raw / f"s{number}.fastq.gz", "wb", mtime=0) as file:
            for read in range(READS + number):
                bases = "".join(draw.choices("ACGT", k=100))
                file.write(f"@s{number}.{draw.random()}\n{bases}\n+\n{'I' * 100}\n".encode())


def run(command, work, env, dies):
    """Runs a workflow. If it dies, it is killed as soon as there is a result."""
    process = subprocess.Popen(command, cwd=work, env=os.environ | env, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while dies and process.poll() is None and not list((work / "results").glob("*.gz")):
        time.sleep(0.05)
    if dies and process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    said, _ = process.communicate(timeout=900)
    if not dies and process.returncode != 0:
        sys.exit(f"recipes: {command[0]} failed in {work}:\n{said}")


def snakemake(program, work, home, dies):
    command = [str(program), "--snakefile", str(HERE / "Snakefile"), "--directory", str(work), "--cores", "2",
               "--quiet", "all", "--rerun-incomplete", "--nolock", "--latency-wait", "20"]
    run(command, work, {"HOME": str(home), "XDG_CACHE_HOME": str(home)}, dies)


def nextflow(jars, work, home, *options, dies=False):
    """Nextflow keeps what it knows in the folder where it starts, so that is on the mount, too. Another mount has other times
    for the files, so only names and sizes tell Nextflow that they are the same (lenient)."""
    work.mkdir(exist_ok=True)
    command = ["java", *OPENED, "-cp", f"{jars}/*", "nextflow.cli.Launcher", "run", str(HERE / "pipeline.nf"),
               "--raw", str(work.parent / "raw"), "-process.cache", "lenient", "-ansi-log", "false", *options]
    run(command, work, {"HOME": str(home), "NXF_HOME": str(home), "NXF_OFFLINE": "true", "TMPDIR": str(home)}, dies)


def goes_on(jars, work, home):
    """Starts Nextflow once more. It must find that all tasks are done."""
    nextflow(jars, work, home, "-resume", "-with-trace", "again.txt")
    heads, *rows = [line.split("\t") for line in (work / "again.txt").read_text().splitlines()]
    wrong = [row for row in rows if row[heads.index("status")] != "CACHED"]
    if wrong or len(rows) != TASKS:
        sys.exit(f"recipes: in {work}, {len(rows) - len(wrong)} of {TASKS} tasks were found to be done")
    print(f"recipes: {work.parent.name}: Nextflow finds its {TASKS} tasks done on another mount")


def tasks(work, raw):
    """Takes the steps of two tasks, of which one fails."""
    script = "gzip -dc *.fastq.gz > plain; sort plain > sorted; wc -l < sorted; mkdir -p out; mv sorted out/"
    subprocess.run([str(HERE / "task.sh"), str(work), "0a1b2c", str(raw / "s0.fastq.gz"), script],
                   check=True, stdout=subprocess.DEVNULL, timeout=300)
    failed = subprocess.run([str(HERE / "task.sh"), str(work), "0affff", str(raw / "s1.fastq.gz"), "exit 7"], timeout=300)
    if failed.returncode != 7:
        sys.exit("recipes: a task that fails ended with another code")


def contents(folder):
    """The files of a folder, but for links, which are objects of their own, and what the programs keep for themselves."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_kept = ".snakemake" in name.parts or (name.parts[0] == "nextflow" and "results" not in name.parts)
        if path.is_file() and not path.is_symlink() and path.suffix != ".rclonelink" and not is_kept:
            found[str(name)] = path.read_bytes()
    return found


@contextlib.contextmanager
def mounted(thalweg, mount, close, env):
    subprocess.run([thalweg, "mount", "s3://recipes", str(mount), "--close", close], env=env, check=True)
    yield
    subprocess.run(["umount", str(mount)], check=True)
    # What the store has is what programs see that use no mount.
    until(lambda: not os.path.ismount(mount), "the folder is still mounted")
    subprocess.run([thalweg, "mount", "--recover", "s3://recipes"], env=env, check=True)


def main():
    program, jars, versitygw, thalweg = (pathlib.Path(path).absolute() for path in sys.argv[1:])
    if not os.path.exists("/dev/fuse"):
        sys.exit("recipes: /dev/fuse is needed")
    has_nextflow = bool(list(jars.glob("nextflow-*.jar")))
    if not has_nextflow:
        print("recipes: Nextflow is left out")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-recipes-"))
    for name in ["mount", "local", "home", "objects/recipes"]:
        (folder / name).mkdir(parents=True)
    mount, home = folder / "mount", folder / "home"
    with contextlib.ExitStack() as at_end:
        env = at_end.enter_context(served(versitygw, folder))
        at_end.callback(subprocess.run, ["umount", "-l", str(mount)], stderr=subprocess.DEVNULL)
        for close in ["durable", "staged"]:
            with mounted(thalweg, mount, close, env):
                for place in [mount / close, folder / "local" / close]:
                    fill(place / "raw")
                    snakemake(program, place, home, dies=True)
                    snakemake(program, place, home, dies=False)
                    tasks(place / "work", place / "raw")
                    if has_nextflow:
                        nextflow(jars, place / "nextflow", home, dies=True)
                        nextflow(jars, place / "nextflow", home, "-resume")
            if has_nextflow:
                with mounted(thalweg, mount, close, env):
                    goes_on(jars, mount / close / "nextflow", home)
            stored, local = contents(folder / "objects" / "recipes" / close), contents(folder / "local" / close)
            differ = {name for name in stored.keys() | local.keys() if stored.get(name) != local.get(name)}
            if differ:
                sys.exit(f"recipes: {close}: these differ: {sorted(differ)}")
            print(f"recipes: {close}: {len(local)} files are as in a folder of this machine")
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
