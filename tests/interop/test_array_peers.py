"""The peers for arrays: what they read is right, and every arm of a comparison prints the same digest."""

import functools
import json
import os
import pathlib
import platform
import subprocess
import sys

import h5py
import numpy as np
import pytest

from hdf5_rows import rows
from nanopore import REPOSITORY, run

sys.path.insert(0, str(REPOSITORY / "peers/common"))
import array_peer  # noqa: E402

# hidefix is not installed on Linux on ARM.
HAS_HIDEFIX = (sys.platform, platform.machine()) != ("linux", "aarch64")
PEERS = ["h5py", *(["hidefix"] if HAS_HIDEFIX else []), "pyfive", "h5coro"]
THROTTLED = REPOSITORY / "peers/throttled/run.sh"
IDS = "/entry/bank*_events/event_id"


def peer(name, *arguments, **options):
    return run(sys.executable, REPOSITORY / f"peers/{name}/peer.py", *arguments, **options)


def told(result):
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def file(thalweg_binary, tmp_path_factory):
    def make(*options):
        path = tmp_path_factory.mktemp("events") / "e.nxs"
        run(thalweg_binary, "synth", path, "--kind", "nexus-live", "--size", "40MB", "--banks", 3, *options)
        return path

    return functools.cache(make)


def checksum(values: np.ndarray) -> int:
    """The definition, word by word."""
    raw = values.astype(values.dtype.newbyteorder("<")).tobytes()
    raw += bytes(-len(raw) % 8)
    words = [int.from_bytes(raw[at : at + 8], "little") for at in range(0, len(raw), 8)]
    return sum(word * (2 * i + 1) for i, word in enumerate(words)) % 2**64


@pytest.mark.parametrize("dtype", ["u1", "<i2", ">u4", "<f4", ">f8", "<u8"])
@pytest.mark.parametrize("count", [0, 1, 7, 1000, 20_001])
def test_the_checksum_is_what_the_page_says(dtype, count):
    values = np.random.default_rng(count).integers(0, 200, count).astype(dtype)
    assert array_peer.checksum(values) == checksum(values)
    # Parts of whole words add up.
    cut = count // 16 * 8
    parts = array_peer.checksum(values[:cut]) + array_peer.checksum(values[cut:], cut * values.itemsize // 8)
    assert parts % 2**64 == checksum(values)
    two_dimensions = np.asfortranarray(values[: count // 2 * 2].reshape(2, -1))
    assert array_peer.checksum(two_dimensions) == checksum(np.ascontiguousarray(two_dimensions))


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--chunk", "contiguous"), ("--chunk", "64Ki", "--filter", "shuffle+gzip", "--libver", "latest")])
@pytest.mark.parametrize("paths", [[IDS], ["/entry/bank2_events/event_time_offset", "entry/bank1_events/event_id"]])
def test_all_arms_agree(thalweg, file, options, paths):
    path = file(*options)
    # The readers in Python refuse what libhdf5 1.10 brought.
    peers = PEERS[:-2] if "latest" in options else PEERS
    results = [told(peer(name, path, *paths)) for name in peers]
    results += [told(peer("h5py_mpi", path, *paths, "--ranks", ranks)) for ranks in (1, 2)]
    results += [told(thalweg("read", path, *paths, "--json", *more)) for more in ((), ("--arrays",))]
    with h5py.File(path) as opened:
        chosen = array_peer.in_file(opened, paths)
        arrays = [opened[name][()] for name in chosen]
        stored = sum(opened[name].id.get_storage_size() for name in chosen)
    expected = 0
    for values in arrays:
        expected = (expected * 0x9E3779B97F4A7C15 + array_peer.checksum(values)) % 2**64
    for result in results:
        assert result["digest"] == f"{expected:016x}", result["workload"]
        assert result["bytes_decoded"] == sum(values.nbytes for values in arrays)
        assert result["datasets"] == len(arrays)
        assert 0 < result["open_to_last_s"] < 60 and result["cpu_s"] > 0
    for result in results[:-2]:
        assert result["needed_bytes"] == stored
        assert result["sum"] == sum(array_peer.total(values) for values in arrays) % 2**64


@pytest.mark.parametrize("name", PEERS)
def test_rows_are_those_of_h5py(file, name):
    path = file()
    assert peer(name, path, "/entry/*/event_index", "--digest").stdout.splitlines() == [row for row in rows(path)[0] if "/event_index\t" in row]


def test_without_paths_every_number_is_read(thalweg, file):
    results = [told(peer("h5py", file())), told(peer("pyfive", file()))]
    assert results[0]["digest"] == results[1]["digest"] and results[0]["datasets"] == 3 * 5 + 4


@pytest.mark.parametrize("name", [*PEERS, "h5py_mpi"])
def test_a_failure_is_a_failure(file, tmp_path, name):
    ranks = ["--ranks", 1] if name == "h5py_mpi" else []
    for arguments in ((tmp_path / "none.nxs", "/a"), (file(), "/entry/tank*/event_id"), (file(), "/entry/none")):
        done = peer(name, *arguments, *ranks, check=False)
        assert done.returncode != 0 and done.stderr and not done.stdout


def may_throttle() -> bool:
    """Where control groups for devices can be made."""
    return os.geteuid() == 0 and subprocess.run([THROTTLED, "1000000000", "100000", __file__, "/bin/true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not may_throttle(), reason="no control group for devices can be made here")
def test_a_throttled_program_reads_no_faster_than_it_may(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(os.urandom(30_000_000))
    os.sync()
    groups = set(pathlib.Path("/sys/fs/cgroup").glob("**/thalweg-*"))
    read = ["/bin/dd", f"if={path}", "of=/dev/null", "iflag=direct"]
    clock = "import sys, time, subprocess; b = time.time(); c = subprocess.call(sys.argv[1:]); print(time.time() - b); sys.exit(c)"
    seconds = lambda *limits, block: float(run(THROTTLED, *limits, path, sys.executable, "-c", clock, *read, f"bs={block}").stdout)
    assert seconds(20_000_000, 100_000, block="1M") > 1.0
    assert seconds(10**10, 1000, block="16k") > 1.2
    done = run(THROTTLED, 10**9, 10**6, path, "/bin/sh", "-c", "exit 7", check=False)
    assert done.returncode == 7, "the program's own"
    assert set(pathlib.Path("/sys/fs/cgroup").glob("**/thalweg-*")) == groups, "no group is left"
