"""Where chunks lie, as `thalweg index` saves it: the same values with it and without, and never those of another file."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest

from hdf5_rows import rows
from nanopore import SHARED
from test_arrays import CODED, HUGE, SHAPES, SOUND, values
from test_hostile_arrays import SMALL, WRITER


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def digests(thalweg, path, *options):
    result = thalweg("read", path, "--digest", *options)
    return result.stdout.splitlines(), result.stderr


def index_of(path: pathlib.Path) -> pathlib.Path:
    return path.with_name(path.name + ".idx")


@pytest.mark.long
@pytest.mark.parametrize("path", [path for path in SOUND if path.name != HUGE], ids=lambda path: path.name)
def test_real_files(thalweg, shared, tmp_path, path):
    copy = tmp_path / path.name
    # What it keeps in other files lies beside it.
    for other in path.parent.iterdir():
        if other.is_file() and other.stat().st_size < 64 << 20:
            shutil.copy(other, tmp_path / other.name)
    before = digests(thalweg, copy)
    thalweg("index", copy)
    assert index_of(copy).exists()
    assert digests(thalweg, copy) == before
    assert json.loads(thalweg("info", copy, "--json").stdout)["index"] == str(index_of(copy))


def made(path: pathlib.Path, **options):
    with h5py.File(path, "w", **options) as file:
        for number, (shape, chunks) in enumerate(SHAPES):
            for name, coded in {"none": {}, "gzip": CODED["gzip"], "blosc": CODED["blosc-lz4"]}.items():
                file.create_dataset(f"{name}/{number}", data=values("<i4", shape), chunks=chunks, maxshape=(None,) * len(shape), **coded)
        sparse = file.create_dataset("sparse", (100_000,), "<f8", chunks=(64,), fillvalue=7.5)
        sparse[70_000:70_300] = values("<f8", (300,))
        sparse[200:500] = values("<f8", (300,))
        file["pairs"] = np.zeros(50, np.dtype(("<i2", (2, 3))))
        file.create_dataset("vectors", data=np.arange(700, dtype="<i2").reshape(100, 7)[:, :6].reshape(100, 2, 3), chunks=(9, 2, 3))
        kind = h5py.h5t.array_create(h5py.h5t.STD_I16LE, (2, 3))
        space = h5py.h5s.create_simple((100,), (h5py.h5s.UNLIMITED,))
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_chunk((9,))
        h5py.h5d.create(file.id, b"arrays", kind, space, how).write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(600, dtype="<i2").reshape(100, 2, 3), kind)


@pytest.mark.parametrize("options", [{}, {"libver": "latest"}, {"libver": "v108"}, {"userblock_size": 1024}], ids=str)
def test_every_kind_of_index(thalweg, tmp_path, options):
    path = tmp_path / "f.h5"
    made(path, **options)
    expected, _ = rows(path)
    assert digests(thalweg, path) == (expected, "")
    thalweg("index", path)
    assert digests(thalweg, path) == (expected, "")
    # They are not looked for any more: what now stands in their own indexes does not matter.
    if "libver" not in options:
        data = bytearray(path.read_bytes())
        times = path.stat()
        nodes = 0
        at = data.find(b"TREE\x01")
        while at >= 0:
            if at > 4096:
                data[at : at + 4] = b"LOST"
                nodes += 1
            at = data.find(b"TREE\x01", at + 1)
        path.write_bytes(data)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert nodes > 3
        assert digests(thalweg, path) == (expected, "")
        assert digests(thalweg, path, "--trusted") == (expected, "")
        assert thalweg("read", path, "--digest", "--no-index", check=False).returncode == 1
        # Made anew, it is of what the file says.
        assert thalweg("index", path, check=False).returncode == 1


def test_a_file_that_has_grown(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    made(path)
    thalweg("index", path)
    with h5py.File(path, "r+") as file:
        file["sparse"][5000:6000] = 3
        file["none/0"].resize((1500,))
        file["none/0"][1000:] = 9
    found, said = digests(thalweg, path)
    assert found == rows(path)[0]
    assert "is not used: the file has changed since" in said
    thalweg("index", path)
    assert digests(thalweg, path) == (rows(path)[0], "")


def test_a_chunk_that_moved_while_size_and_time_stayed(thalweg, tmp_path):
    """Rewritten in place within the same file size, and with its time put back: the start of the file tells, or nothing can."""
    one, two = tmp_path / "one.h5", tmp_path / "two.h5"
    for path, chunk in ((one, 100), (two, 50)):
        with h5py.File(path, "w") as file:
            file.create_dataset("a", data=np.arange(1000), chunks=(chunk,))
            file.create_dataset("b", data=np.arange(1000), chunks=(100,))
    size = max(one.stat().st_size, two.stat().st_size)
    for path in (one, two):
        os.truncate(path, size)
        os.utime(path, ns=(10**18, 10**18 + 1))
    thalweg("index", one)
    shutil.copy2(index_of(one), index_of(two))
    found, said = digests(thalweg, two)
    assert found == rows(two)[0] and "has changed since" in said


@pytest.mark.parametrize("how", ["swmr", "flushed"])
def test_files_that_are_being_written(thalweg, tmp_path, how):
    """There is no index of what may change at any time, and one of the file as it was before is not used."""
    path = tmp_path / "f.h5"
    environment = os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"}
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path, how], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert writer.stdout.readline() == "written\n"
        result = thalweg("index", path, check=False)
        assert result.returncode == 1 and "being written" in result.stderr and not index_of(path).exists()
        # As if one had been saved while it was closed.
        other = tmp_path / "g.h5"
        made(other)
        thalweg("index", other)
        shutil.copy2(index_of(other), index_of(path))
        result = thalweg("read", path, "--digest", check=False)
        assert "being written" in result.stderr
        if how == "swmr":
            assert [row.split("\t")[:2] for row in result.stdout.splitlines()] == [["/fixed", "1000"], ["/grown", "3000"]]
    finally:
        writer.kill()
        writer.wait()


def test_a_folder_that_cannot_be_written(thalweg, thalweg_binary, tmp_path, cache):
    folder = tmp_path / "data"
    folder.mkdir()
    path = folder / "f.h5"
    made(path)
    expected, _ = rows(path)
    # Nobody may write to it; root may all the same, unless it gives up what makes it root.
    bound = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    folder.chmod(0o555)
    try:
        done = subprocess.run([*bound, thalweg_binary, "index", path], capture_output=True, text=True, check=True)
        saved = list(cache.rglob("*.idx"))
        assert len(saved) == 1 and str(saved[0]) in done.stderr and not index_of(path).exists()
        assert digests(thalweg, path) == (expected, "")
        assert json.loads(thalweg("info", path, "--json").stdout)["index"] == str(saved[0])
    finally:
        folder.chmod(0o755)


def test_ranks_and_repack(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    made(path)
    thalweg("index", path)
    total = json.loads(thalweg("read", path, "--json", "--no-index").stdout)["digest"]
    assert json.loads(thalweg("read", path, "--json").stdout)["digest"] == total
    assert json.loads(thalweg("read", path, "--json", "--ranks", "2").stdout)["digest"] == total
    thalweg("convert", "--repack", path, tmp_path / "g.h5", "--verify")
    assert digests(thalweg, tmp_path / "g.h5") == digests(thalweg, path)


def test_mutants_with_the_index_of_the_original(thalweg, tmp_path):
    """An index that is believed though it should not be still makes nothing worse than wrong values or an error."""
    for number, path in enumerate(SMALL):
        place = tmp_path / f"{number}.h5"
        data = bytearray(path.read_bytes())
        place.write_bytes(data)
        if thalweg("index", place, check=False).returncode:
            continue
        times = place.stat()
        for at in range(4096 + 97 * (number % 7), len(data), 1511):
            data[at] ^= 0x41
        place.write_bytes(data)
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
        result = thalweg("read", place, "--digest", check=False)
        assert result.returncode in (0, 1) and "panicked" not in result.stderr, (path, result.stderr[-500:])
        assert "has changed" not in result.stderr


def test_an_indexed_file_is_opened_in_one_round(thalweg, tmp_path):
    """The index holds names, types, shapes and attributes, old and new groups, and what is in heaps."""
    for libver in ("earliest", "latest"):
        path = tmp_path / f"{libver}.h5"
        with h5py.File(path, "w", libver=libver) as file:
            for group in range(20):
                for name in range(20):
                    made = file.create_dataset(f"g{group}/below/d{name}", data=np.arange(1000) + name, chunks=(100,), compression="gzip")
                    for n in range(12):
                        made.attrs[f"attribute {n}"] = f"text {n}"
        digests = thalweg("read", path, "--digest").stdout
        before = thalweg("read", path, "/g7/below/d3", "--explain", "--throttle", "latency=1ms").stdout
        thalweg("index", path)
        after = thalweg("read", path, "/g7/below/d3", "--explain", "--throttle", "latency=1ms").stdout
        rounds = [int(re.search(r"finding +(\d+) rounds?", text)[1]) for text in (before, after)]
        assert rounds[0] > 1 and rounds[1] == 1, rounds
        assert thalweg("read", path, "--digest").stdout == digests
        assert len(digests.splitlines()) == 400
