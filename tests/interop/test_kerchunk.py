"""A kerchunk reference set opens an HDF5 file as a Zarr store, with the values that h5py reads."""

import json
import pathlib
import zlib

import h5py
import hdf5plugin
import numpy as np
import pytest

from hdf5_rows import datasets, has_arrays
from test_arrays import HUGE, SOUND, TYPES, values

# There are none for Python before 3.11.
fsspec, zarr = pytest.importorskip("fsspec"), pytest.importorskip("zarr")


def opened(thalweg, path: pathlib.Path, folder: pathlib.Path):
    """The store, and what was left out, by path."""
    out = folder / "references.json"
    result = thalweg("index", path, "--kerchunk", out)
    filesystem = fsspec.filesystem("reference", fo=json.loads(out.read_text()), remote_protocol="file", asynchronous=True)
    left_out = {}
    *lines, done = result.stderr.splitlines()
    assert f" -> {out}, " in done, done
    for line in lines:
        assert line.startswith("thalweg: left out: "), line
        name, _, why = line.removeprefix("thalweg: left out: ").partition(": ")
        left_out.setdefault(name, []).append(why)
    store = zarr.storage.FsspecStore(filesystem, read_only=True, path="")
    return zarr.open_group(store, mode="r", zarr_format=2), left_out


def compare(thalweg, path: pathlib.Path, folder: pathlib.Path) -> tuple[int, dict]:
    """Each dataset is there with h5py's values, or among those that are left out."""
    group, left_out = opened(thalweg, path, folder)
    read = 0
    with h5py.File(path) as file:
        for name, dataset in datasets(file):
            if name.strip("/") not in group:
                assert any("attribute" not in why for why in left_out[name]), name
                continue
            assert has_arrays(dataset), name
            array = group[name.strip("/")]
            part = slice(-1_000_000, None) if path.name == HUGE else ()
            expected = np.asarray(dataset[part])
            found = np.asarray(array[part])
            assert found.shape == expected.shape, name
            if expected.dtype.kind == "V" or expected.dtype.kind == "S":
                assert np.array_equal(found.astype(f"V{expected.itemsize}").tobytes(), expected.tobytes()) or np.array_equal(found, expected), name
            else:
                assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("="), name
                assert np.array_equal(found, expected, equal_nan=expected.dtype.kind in "fc"), name
            read += 1
    return read, left_out


@pytest.mark.long
@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_real_files(thalweg, shared, tmp_path, path):
    compare(thalweg, path, tmp_path)


@pytest.mark.parametrize("coded", ["none", "gzip", "fletcher", "zstd", "blosc", "bzip2"])
def test_layouts(thalweg, tmp_path, coded):
    how = {
        "none": {},
        "gzip": {"compression": "gzip", "shuffle": True},
        "fletcher": {"compression": "gzip", "fletcher32": True},
        "zstd": hdf5plugin.Zstd(),
        "blosc": hdf5plugin.Blosc(cname="zstd"),
        "bzip2": hdf5plugin.BZip2(),
    }[coded]
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for dtype in TYPES:
            group = file.create_group(f"{dtype.strip('<>?')}{dtype[0] == '>'}")
            group["scalar"] = values(dtype, ())
            group["contiguous"] = values(dtype, (300, 7))
            group["empty"] = values(dtype, (0, 7))
            group.create_dataset("edges", data=values(dtype, (37, 53, 3)), chunks=(7, 11, 2), **how)
            sparse = group.create_dataset("sparse", (1000,), dtype, chunks=(64,), fillvalue=values(dtype, ())[()], **how)
            sparse[200:300] = values(dtype, (100,), 5)
            group.create_dataset("nowhere", (100,), dtype)
            group.create_dataset("filled", (100, 3), dtype, fillvalue=values(dtype, (7,))[-1])
        file.create_dataset("not a number", (10,), "f8", fillvalue=np.nan)
    read, left_out = compare(thalweg, path, tmp_path)
    # Blosc leaves chunks that it makes no smaller as they are, which Zarr has no word for.
    assert set(sum(left_out.values(), [])) <= ({"chunks that skipped filters"} if coded == "blosc" else set())
    assert read == len(TYPES) * 7 + 1 - len(left_out) and read > len(TYPES) * 6


def test_attributes_and_dimensions(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "grün"
        data = file.create_dataset("group/data", data=values("<f4", (4, 6)))
        data.attrs.update({"units": "K", "count": 3, "scale": 0.5, "many": [1, 2]})
        for number, (name, length) in enumerate((("y", 4), ("x", 6))):
            scale = file.create_dataset(f"group/{name}", data=np.arange(length))
            scale.make_scale(name)
            data.dims[number].attach_scale(scale)
        file["words"] = "any length"
        file.create_dataset("lzf", data=np.arange(100), compression="lzf", chunks=(10,))
    group, left_out = opened(thalweg, path, tmp_path)
    assert dict(group.attrs) == {"title": "grün"}
    assert dict(group["group/data"].attrs) == {"units": "K", "count": 3, "scale": 0.5, "_ARRAY_DIMENSIONS": ["y", "x"]}
    assert dict(group["group/x"].attrs) == {"_ARRAY_DIMENSIONS": ["x"]}
    assert left_out == {
        "/group/data": ['the attribute "many": an array'],
        "/lzf": ["the filter lzf, which numcodecs does not have"],
        "/words": ["strings of any length"],
    }


def test_values_in_another_file(thalweg, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "f.h5"
    (tmp_path / "raw").write_bytes(b"head" + np.arange(1000, dtype="<i4").tobytes())
    with h5py.File(path, "w") as file:
        file.create_dataset("other", (1000,), "<i4", external=[("raw", 4, 4000)])
    assert compare(thalweg, path, tmp_path) == (1, {})


def test_only_files_of_arrays(thalweg, tmp_path):
    path = tmp_path / "f.txt"
    path.write_text("text")
    assert thalweg("index", path, "--kerchunk", tmp_path / "out.json", check=False).returncode == 2


def test_a_chunk_that_ends_with_the_dataset_is_left_out(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        short = file.create_dataset("short", (10,), "<i2", chunks=(100,), compression="gzip", maxshape=(None,))
        short.id.write_direct_chunk((0,), zlib.compress(np.arange(10, dtype="<i2").tobytes()))
        file.create_dataset("whole", data=np.arange(10, dtype="<i2"), chunks=(100,), compression="gzip", maxshape=(None,))
    read, left_out = compare(thalweg, path, tmp_path)
    assert read == 1 and left_out == {"/short": ["a chunk that ends with the dataset, before its own end"]}
