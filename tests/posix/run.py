#!/usr/bin/env python3
"""Runs pjdfstest and fsx on a mount whose objects versitygw has.

Usage: run.py PJDFSTEST FSX VERSITYGW THALWEG

Needs root, /dev/fuse, and the users nobody, daemon and bin. pjdfstest is held against exceptions.txt.
"""

import contextlib
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from versitygw import served  # noqa: E402

SEEDS = range(1, 5)
OPERATIONS = 3000
CONFIGURATION = """[dummy_auth]
entries = [["nobody", "nogroup"], ["daemon", "daemon"], ["bin", "bin"]]
"""


def expected():
    """The patterns of tests that fail."""
    lines = (HERE / "exceptions.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def unexpected(output):
    """What is wrong with the results of pjdfstest."""
    results = dict(re.findall(r"^(\S+::\S+)\s+(ok|FAILED|skipped)$", output, re.MULTILINE))
    if not any(result == "ok" for result in results.values()):
        return ["pjdfstest ran no test:", output[-2000:]]
    failed = {name for name, result in results.items() if result == "FAILED"}
    wrong = []
    for name in sorted(failed):
        if not any(fnmatch.fnmatch(name, pattern) for pattern in expected()):
            wrong.append(f"{name} fails, and is not in exceptions.txt")
    for pattern in expected():
        if not any(fnmatch.fnmatch(name, pattern) for name in failed):
            wrong.append(f"{pattern} is in exceptions.txt, and nothing of it fails")
    passed = sum(result == "ok" for result in results.values())
    skipped = sum(result == "skipped" for result in results.values())
    print(f"pjdfstest: {passed} passed, {len(failed)} failed, {skipped} were skipped")
    return wrong


def main():
    pjdfstest, fsx, versitygw, thalweg = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:])
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        sys.exit("posix: root and /dev/fuse are needed")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="thalweg-posix-"))
    # The tests act as other users, too.
    folder.chmod(0o755)
    mount = folder / "mount"
    mount.mkdir()
    (folder / "objects" / "posix").mkdir(parents=True)
    (folder / "pjdfstest.toml").write_text(CONFIGURATION)
    wrong = []
    with contextlib.ExitStack() as at_end:
        env = at_end.enter_context(served(versitygw, folder))
        at_end.callback(subprocess.run, ["umount", "-l", str(mount)], stderr=subprocess.DEVNULL)
        subprocess.run([thalweg, "mount", "s3://posix", str(mount), "--allow-other"], env=env, check=True)
        ran = subprocess.run(
            [pjdfstest, "-c", str(folder / "pjdfstest.toml"), "-p", str(mount)],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
        wrong += unexpected(ran.stdout)
        for seed in SEEDS:
            ran = subprocess.run(
                [fsx, "-q", "-N", str(OPERATIONS), "-S", str(seed), "-P", str(folder), str(mount / f"fsx{seed}")],
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
            if ran.returncode != 0:
                wrong.append(f"fsx fails with seed {seed}: {ran.stdout[-2000:]}")
        print(f"fsx: {len(SEEDS)} times {OPERATIONS:,} operations")
        subprocess.run(["umount", str(mount)], check=True)
    shutil.rmtree(folder, ignore_errors=True)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
