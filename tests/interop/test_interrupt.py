"""Ctrl-C ends every verb on every hostile file, and no verb takes more memory than its budget and some.

The rule is a second. The bound of these tests is wider: they run on busy machines. A process whose verb does not stop ends itself
after five seconds, and says so: that is a failure here. So is a temporary file or a process that is left.
"""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import time

import pytest

from conftest import required
from nanopore import ONE_OF, SHARED

HOSTILE = SHARED.parent / "hostile"
STORE = "store_hugerange"

# Seconds that a verb runs before the signal, and seconds that it has to end.
BEFORE, BOUND = 1.0, 15.0
# What a process says that ends itself because its verb did not stop.
DEAF = "did not stop"
# The default budget, and what the process takes beside it: 192 + 256 MiB.
MOST_KIB = (192 + 256) << 10
# Address space: a bound for what goes wrong before the resident memory is looked at.
ADDRESS_SPACE = 12 << 30


def files() -> list[str]:
    """Names of the hostile files. Never empty, so that a missing folder is a skipped test, not silence."""
    found = HOSTILE.rglob("*") if HOSTILE.exists() else []
    names = (str(p.relative_to(HOSTILE)) for p in found if p.is_file() and p.suffix != ".md" and STORE not in p.parts)
    return sorted(names) or ["bomb_contig.h5"]


def verbs(file: pathlib.Path, out: pathlib.Path) -> list[list]:
    """All verbs that open a file. `probe`, `synth` and `bench` open none."""
    condition = ["--where", "samples > 0"]
    return [
        ["read", file],
        ["read", file, "--digest"],
        ["read", file, "--digest", "--memory", "4MiB"],
        ["read", file, "--explain"],
        ["read", file, "--events"],
        ["read", file, "--events", "--out", out / "events.csv"],
        ["read", file, "--events", "--out", out / "events.parquet"],
        ["read", file, "--events", "--out", out / "events.npy"],
        ["read", file, "--logs"],
        ["read", file, "--logs", "--out", out / "logs.csv"],
        ["read", file, "--ranks", "2"],
        ["read", file, "--slices", "3"],
        ["read", file, "--out", out / "arrays.npy"],
        ["read", file, "--out", out / "reads.arrow"],
        ["convert", file, out / "converted.blow5"],
        ["convert", file, out / "repacked.h5", "--repack"],
        ["convert", file, out / "verified.h5", "--repack", "--verify"],
        ["check", file],
        ["check", file, "--salvage", out / "salvaged.blow5"],
        ["index", file, "-o", out / "index.idx"],
        ["index", file, "--kerchunk", out / "references.json"],
        ["info", file],
        ["info", file, "--json"],
        ["doctor", file],
        ["doctor", file, "--measure"],
        ["scan", file],
        ["filter", file, *condition, "--out", out / "filtered.blow5"],
        ["merge", file, "--out", out / "merged.blow5"],
        ["split", file, "--reads", "1", "--out", out / "parts"],
        ["plot", file, "--out", out / "plot.html"],
        ["evict", file],
        ["compare", file],
        ["graph", "import", file, out / "imported"],
    ]


def store_verbs(store: pathlib.Path, out: pathlib.Path) -> list[list]:
    ids = ["--from", "default"]
    return [
        ["graph", "info", store],
        ["graph", "check", store],
        ["graph", "check", store, "--repair", out / "repaired"],
        ["graph", "neighbors", store, *ids],
        ["graph", "neighbors", store, *ids, "--measured"],
        ["graph", "neighbors", store, *ids, "--hops", "1000"],
        ["graph", "neighbors", store, "--from", "default:0-18446744073709551615"],
        ["graph", "degree", store, *ids],
        ["graph", "export", store, out / "network.h5"],
        ["graph", "export", store, out / "edges.csv", "--edges", "default"],
        ["graph", "export", store, out / "vertices.parquet", "--vertices", "default"],
        ["graph", "insert", store, "--edges", "2000000"],
        ["graph", "add", store, "--vertices", "default:7"],
        ["graph", "remove", store, "--vertices", "default:1"],
        ["graph", "compact", store],
    ]


def copy(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """A writable copy: what is shared is read-only."""
    shutil.copytree(source, target, symlinks=True)
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o600)
    return target


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def children(pid: int) -> list[str]:
    """The processes that a process has started and not waited for."""
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def runs(pid: str) -> bool:
    """Whether a process runs. One that has ended, but that nobody waited for, has no command line."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


def interrupted(command: list, errors: pathlib.Path, out: pathlib.Path) -> str | None:
    """Runs a command, with Ctrl-C if it is still at it after a moment. Returns what is wrong, if anything is."""
    with errors.open("wb") as stderr:
        child = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, preexec_fn=limit
        )
    started, sent, started_processes = time.monotonic(), None, []
    while True:
        ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        now = time.monotonic()
        if ended:
            # The process is gone: `Popen` need not look for it.
            child.returncode = os.waitstatus_to_exitcode(status)
            break
        if sent is None and now - started > BEFORE:
            started_processes = children(child.pid)
            child.send_signal(signal.SIGINT)
            sent = now
        elif sent is not None and now - sent > BOUND:
            child.kill()
            child.wait()
            return f"still running {BOUND} s after SIGINT"
        time.sleep(0.01)
    # A signal that comes before the program waits for it ends the process.
    if child.returncode not in (0, 1, 2, 3, 130, -signal.SIGINT):
        return f"exit code {child.returncode}: {errors.read_text(errors='replace')[-300:]}"
    if DEAF in errors.read_text(errors="replace"):
        return "it ended itself: its verb did not stop"
    if any(map(runs, started_processes)):
        return "a process that it started goes on"
    if left := [path.name for path in out.rglob(".thalweg-*")]:
        return f"{left} is left"
    # The system counts the memory of this process, too: the child was a copy of it at first.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if usage.ru_maxrss > max(MOST_KIB, own):
        return f"{usage.ru_maxrss >> 10} MiB of memory"
    return None


def complaints(binary: pathlib.Path, commands: list[list], folder: pathlib.Path) -> list[str]:
    found = ((words, interrupted([binary, *words], folder / "stderr", folder / "out")) for words in commands)
    return [f"{' '.join(map(str, words))}: {what}" for words, what in found if what]


@pytest.mark.parametrize("name", files())
def test_ctrl_c_ends_every_verb_on_a_hostile_file(thalweg_binary, tmp_path, name):
    required(HOSTILE, "the folder of hostile files (THALWEG_SHARED overrides its place)")
    # Some files name others beside them.
    source = (HOSTILE / name).parent
    if source == HOSTILE:
        folder = tmp_path / "files"
        folder.mkdir()
        shutil.copy(HOSTILE / name, folder)
        folder.joinpath(name).chmod(0o600)
    else:
        folder = copy(source, tmp_path / "files")
    (tmp_path / "out").mkdir()
    # Each verb has its turn with some file.
    commands = verbs(folder / pathlib.Path(name).name, tmp_path / "out")[files().index(name) % ONE_OF :: ONE_OF]
    assert complaints(thalweg_binary, commands, tmp_path) == []


def test_ctrl_c_ends_every_verb_on_a_hostile_network(thalweg_binary, tmp_path):
    required(HOSTILE, "the folder of hostile files (THALWEG_SHARED overrides its place)")
    (tmp_path / "out").mkdir()
    # Some verbs change the store.
    count = len(store_verbs(tmp_path, tmp_path))
    stores = [copy(HOSTILE / STORE, tmp_path / f"store{number}") for number in range(count)]
    commands = [store_verbs(store, tmp_path / "out")[number] for number, store in enumerate(stores)]
    assert complaints(thalweg_binary, commands, tmp_path) == []


def test_networks_that_claim_more_than_they_hold_are_refused(thalweg, tmp_path):
    """A column of consecutive ids takes no bytes: what it claims is compared with the manifest."""
    required(HOSTILE, "the folder of hostile files (THALWEG_SHARED overrides its place)")
    store = copy(HOSTILE / STORE, tmp_path / "store")
    for verb in (["check"], ["compact"], ["neighbors", "--from", "default"], ["export", tmp_path / "x.h5"]):
        result = thalweg("graph", verb[0], store, *verb[1:], check=False)
        assert result.returncode == 1, (verb, result.stdout)
        assert "00000002.seg" in result.stderr and "18446744073709551614 vertices" in result.stderr, result.stderr
        assert "`manifest` counts 3" in result.stderr, result.stderr
