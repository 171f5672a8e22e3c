"""Ranks that read the same arrays together: MPI's, processes of thalweg's own, and slices for other launchers."""

import json
import os
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest

from nanopore import REPOSITORY, run

MPI = REPOSITORY / "target/mpi/dev/thalweg"
MPIEXEC = os.path.join(os.path.dirname(sys.executable), "mpiexec")
IDS = "/entry/bank*_events/event_id"


@pytest.fixture(scope="module")
def file(thalweg_binary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    path = folder / "live.nxs"
    run(thalweg_binary, "synth", path, "--kind", "nexus-live", "--size", "40MB", "--banks", 5, "--chunk", 2048)
    with h5py.File(path, "r+") as f:
        # Bytes that fill no word, and chunks that divide both dimensions.
        f["entry/odd"] = np.arange(100_003, dtype="u1")
        f.create_dataset("entry/image", data=np.arange(700 * 90, dtype="i2").reshape(700, 90), chunks=(64, 37))
        f.create_dataset("entry/none", shape=(0, 4), dtype="f8")
    return path


@pytest.fixture(scope="module")
def whole(thalweg_binary, file):
    return told(run(thalweg_binary, "read", file, "--json"))


def mpiexec(ranks, *command, check=True):
    """MPI's launcher with processes. It sometimes dies of SIGPIPE itself when the processes end before it has written to them."""
    for _ in range(5):
        done = run(MPIEXEC, "-n", ranks, *command, check=False, timeout=6000, stdin=subprocess.DEVNULL)
        if done.returncode != -signal.SIGPIPE:
            break
    assert not check or done.returncode == 0, done
    return done


def told(result):
    return json.loads(result.stdout.splitlines()[-1])


def same(report, whole, ranks):
    assert report["ranks"] == ranks
    for key in ("digest", "datasets", "bytes_decoded"):
        assert report[key] == whole[key], key


@pytest.mark.parametrize("options", ["", "--arrays", "--threads 1"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_of_mpi(file, whole, ranks, options):
    result = mpiexec(ranks, MPI, "read", file, "--json", *options.split())
    assert len(result.stdout.splitlines()) == 1, "one of them says it"
    same(told(result), whole, ranks)


@pytest.mark.parametrize("options", ["", "--arrays --trusted", "--throttle bandwidth=200MB/s"])
@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_processes(thalweg_binary, file, whole, ranks, options):
    same(told(run(thalweg_binary, "read", file, "--json", "--ranks", ranks, *options.split())), whole, ranks)


def test_processes_stay_in_the_folder(thalweg_binary, tmp_path):
    """They read values of files elsewhere only with `--trusted`, as one process does."""
    (tmp_path / "home").mkdir()
    (tmp_path / "secret").write_bytes(b"x" * 4000)
    path = tmp_path / "home/f.h5"
    with h5py.File(path, "w") as f:
        f["own"] = np.arange(1000)
        f.create_dataset("outside", (1000,), "<i4", external=[(str(tmp_path / "secret"), 0, 4000)])
    for options, datasets in [([], 1), (["--trusted"], 2)]:
        for ranks in ([], ["--ranks", 2]):
            assert told(run(thalweg_binary, "read", path, "--json", *options, *ranks))["datasets"] == datasets


def test_slices_are_the_arrays(thalweg_binary, file, whole):
    for count in (1, 4):
        lines = run(thalweg_binary, "read", file, "--slices", count).stdout.splitlines()
        slices = [json.loads(line)["shares"] for line in lines]
        assert len(slices) == count
        ends = {}
        for share in (share for slice in slices for share in slice):
            assert share["elements"]["start"] == ends.get(share["path"], 0)
            ends[share["path"]] = share["elements"]["end"]
        with h5py.File(file) as f:
            assert all(end == f[path].size for path, end in ends.items())
            sizes = [sum((s["elements"]["end"] - s["elements"]["start"]) * f[s["path"]].dtype.itemsize for s in slice) for slice in slices]
            assert sum(sizes) == whole["bytes_decoded"]
            assert max(sizes) < 1.1 * sum(sizes) / count, "about as many bytes each"


def test_a_slice_by_itself(thalweg_binary, file, whole):
    parts = [told(run(thalweg_binary, "read", file, "--json", "--slice", f"{rank}/3")) for rank in range(3)]
    assert sum(part["bytes_decoded"] for part in parts) == whole["bytes_decoded"]
    assert sum(part["bytes_stored"] for part in parts) == whole["bytes_stored"]
    for wrong in ("3/3", "x", "1"):
        assert run(thalweg_binary, "read", file, "--slice", wrong, check=False).returncode == 2


def test_one_failure_ends_all(thalweg_binary, file):
    for command in ([MPIEXEC, "-n", "2", MPI], [thalweg_binary]):
        more = ["--ranks", "2"] if len(command) == 1 else []
        done = run(*command, "read", file, "/entry/nowhere", "--json", *more, check=False, timeout=600)
        assert done.returncode != 0
        assert "/entry/nowhere not found" in done.stderr


def test_verbs_that_ranks_cannot_share_are_refused(thalweg_binary, file, tmp_path):
    """Else each rank would do it anew, and all would write the same file."""
    for binary in (thalweg_binary, MPI):
        for words in (["read", file, "--events"], ["read", file, "--out", tmp_path / "out.parquet"], ["convert", "--repack", file, tmp_path / "out.nxs"], ["bench", "neutron"]):
            done = mpiexec(2, binary, *words, check=False)
            assert done.returncode != 0 and "MPI has started 2 processes, and each would do all of this" in done.stderr
    done = mpiexec(2, MPI, "read", file, IDS, "--select", "0:10", check=False)
    assert done.returncode != 0 and "each would do all of this" in done.stderr
    assert os.listdir(tmp_path) == []


def test_without_mpi_it_says_so(thalweg_binary, file):
    done = mpiexec(2, thalweg_binary, "read", file, "--json", check=False)
    assert done.returncode != 0
    assert "built without MPI" in done.stderr


def test_what_is_not_read_is_said_once_and_fails(thalweg_binary, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file["a"] = np.arange(10)
        file.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
    done = subprocess.run([thalweg_binary, "read", path, "/a", "/lists", "--ranks", "2"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.startswith("1 dataset, ")
    assert done.stderr == "thalweg: /lists: not read: lists of any length\n"
