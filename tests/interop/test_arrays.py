"""Arrays of HDF5 files: thalweg reads what h5py reads, whatever the type, layout and filters."""

import json
import pathlib
import re

import h5py
import hdf5plugin
import numpy as np
import pytest

from hdf5_rows import rows
from nanopore import SHARED

HDF5 = SHARED.parent / "hdf5"
# Malformed on purpose, and what h5py cannot open either.
MALFORMED = ("cve", "fuzz")
# Still open for writing, by a flag: h5py refuses it, libhdf5 2 does not.
IN_WRITING = "test_byteshuffle_compressed_datasets_latest.hdf5"
# numpy's own types in opaque bytes.
TAGGED = "opaque_datasets_earliest.hdf5"

FILES = sorted(path for path in HDF5.rglob("*") if path.is_file() and path.suffix != ".md") if HDF5.exists() else []
SOUND = [path for path in FILES if not set(MALFORMED) & set(path.parts) and path.name not in (IN_WRITING, TAGGED)]

CODED = {
    "gzip": {"compression": "gzip"},
    "shuffle-gzip": {"compression": "gzip", "shuffle": True},
    "fletcher32": {"fletcher32": True},
    "gzip-fletcher32": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "shuffle-lzf": {"compression": "lzf", "shuffle": True},
    "lz4": hdf5plugin.LZ4(),
    "lz4-blocks": hdf5plugin.LZ4(nbytes=64),
    "zstd": hdf5plugin.Zstd(),
    "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
    "bitshuffle-lz4": hdf5plugin.Bitshuffle(cname="lz4"),
    "bitshuffle-zstd": hdf5plugin.Bitshuffle(cname="zstd"),
    "bitshuffle-lz4-blocks": hdf5plugin.Bitshuffle(nelems=64, cname="lz4"),
}
for compressor in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
    for name, shuffle in (("", 0), ("-shuffle", 1), ("-bitshuffle", 2)):
        CODED[f"blosc-{compressor}{name}"] = hdf5plugin.Blosc(cname=compressor, clevel=5, shuffle=shuffle)

TYPES = ["<u1", "<i2", ">i2", "<u4", ">f4", "<i8", "<f8", ">f8", "<c16", "?", "S7"]
# Shapes and chunks: even, with edges, of one chunk, of more dimensions.
SHAPES = [((1000,), (1000,)), ((1000,), (96,)), ((20_011,), (4096,)), ((37, 53), (16, 53)), ((37, 53), (7, 11)), ((5, 6, 70), (2, 6, 64))]


def values(dtype: str, shape, seed=0) -> np.ndarray:
    """Noise below 1,000 in runs, so that compressors find something."""
    noise = np.random.default_rng(seed).integers(0, 1000, int(np.prod(shape)))
    noise[::3] = noise[:1]
    return noise.astype(np.dtype(dtype)).reshape(shape)


def same(thalweg, path: pathlib.Path):
    expected, others = rows(path)
    result = thalweg("read", path, "--digest")
    assert result.stdout.splitlines() == expected
    for name in others:
        assert f"{name}: not read: " in result.stderr
    return expected


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_real_files(thalweg, shared, path):
    """Filters that the installed h5py has no plugin for come with `hdf5plugin`."""
    same(thalweg, path)


def test_the_real_files_are_there(shared):
    assert len(SOUND) > 80


@pytest.mark.parametrize("name", CODED)
def test_filters(thalweg, tmp_path, name):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for dtype in TYPES:
            for number, (shape, chunks) in enumerate(SHAPES):
                file.create_dataset(f"{dtype.strip('<>?')}{dtype[0] == '>'}/{number}", data=values(dtype, shape), chunks=chunks, **CODED[name])
    assert len(same(thalweg, path)) == len(TYPES) * len(SHAPES)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("userblock", [0, 512, 4096])
def test_layouts(thalweg, tmp_path, libver, userblock):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=userblock) as file:
        for dtype in TYPES:
            group = file.create_group(f"{dtype.strip('<>?')}{dtype[0] == '>'}")
            group["scalar"] = values(dtype, ())
            group["contiguous"] = values(dtype, (300, 7))
            group["empty"] = values(dtype, (0, 7))
            # Several indexes of chunks: a single one, a fixed array, an extensible one, a tree.
            for number, most in enumerate([(1000, 40), (None, 40), (None, None)]):
                data = values(dtype, (100, 40), number)
                group.create_dataset(f"grown{number}", data=data, maxshape=most, chunks=(16, 40 - 9 * number))
            # Some chunks are never written.
            sparse = group.create_dataset("sparse", (1000,), dtype, chunks=(64,), fillvalue=values(dtype, ())[()])
            sparse[200:300] = values(dtype, (100,), 5)
            group.create_dataset("nowhere", (100,), dtype)
            group.create_dataset("filled", (100, 3), dtype, fillvalue=values(dtype, ())[()])
    assert len(same(thalweg, path)) > len(TYPES) * 8


def test_compound_array_and_enumerated_types(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    noise = np.random.default_rng(1)
    packed = np.dtype([("a", "<u1"), ("b", ">f8"), ("c", "S5"), ("d", ">i2", (3, 2))])
    aligned = np.dtype([("a", "<u1"), ("b", "<f8"), ("c", [("x", "<i4"), ("y", "<u2")])], align=True)
    with h5py.File(path, "w") as file:
        for name, dtype in (("packed", packed), ("aligned", aligned)):
            data = np.frombuffer(noise.bytes(dtype.itemsize * 500), dtype)
            file[f"{name}/contiguous"] = data
            file.create_dataset(f"{name}/chunked", data=data, chunks=(64,), compression="gzip", shuffle=True)
        file["enum"] = np.arange(5, dtype="i2").astype(h5py.enum_dtype({"x": 0, "y": 300}, "i2"))
        # An array type: its dimensions come after the dataset's.
        kind = h5py.h5t.array_create(h5py.h5t.STD_I32BE, (2, 3))
        space = h5py.h5s.create_simple((4,))
        h5py.h5d.create(file.id, b"array", kind, space).write(h5py.h5s.ALL, h5py.h5s.ALL, values("<i4", (4, 2, 3)), h5py.h5t.array_create(h5py.h5t.STD_I32LE, (2, 3)))
    same(thalweg, path)


def test_numbers_that_do_not_fill_their_bytes(thalweg, tmp_path):
    """libhdf5 converts them; a filter of its own that is not undone here (scale-offset) it undoes."""
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        kind = h5py.h5t.STD_U16LE.copy()
        kind.set_precision(12)
        space = h5py.h5s.create_simple((1000,))
        h5py.h5d.create(file.id, b"twelve", kind, space).write(h5py.h5s.ALL, h5py.h5s.ALL, values("<u2", (1000,)))
        file.create_dataset("scaled", data=values("<i4", (1000, 3)), chunks=(100, 3), scaleoffset=0)
        file.create_dataset("scaled big", data=values(">i4", (1000,)), chunks=(100,), scaleoffset=0)
    same(thalweg, path)


def test_paths_select(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for name in ("a/x", "a/b/y", "z"):
            file[name] = np.arange(10)
        file["link"] = file["z"]
    paths = lambda *named: [row.split("\t")[0] for row in thalweg("read", path, *named, "--digest").stdout.splitlines()]
    assert paths() == ["/a/b/y", "/a/x", "/link"]
    assert paths("/a") == ["/a/b/y", "/a/x"]
    assert paths("z", "a/x") == ["/z", "/a/x"]
    result = thalweg("read", path, "/a/none", "--digest", check=False)
    assert result.returncode == 1 and "/a/none" in result.stderr


def test_memory_is_bounded_by_the_budget(thalweg, tmp_path):
    """Digests do not depend on how much fits into a window."""
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for number, chunks in enumerate([(1 << 16,), (1 << 12,), None]):
            file.create_dataset(f"d{number}", data=values("<i8", (1 << 21,), number), chunks=chunks)
        file.create_dataset("wide", data=values("<u2", (3000, 2000)), chunks=(300, 1000), compression="lzf")
    few = thalweg("read", path, "--digest", "--memory", "8MiB", "--threads", 1).stdout
    assert few == thalweg("read", path, "--digest").stdout
    assert few.splitlines() == rows(path)[0]


@pytest.mark.parametrize("damage", ["stored", "checksum", "short"])
def test_damage_is_told(thalweg, tmp_path, damage):
    path = tmp_path / "f.h5"
    coded = {"fletcher32": True} if damage == "checksum" else {"compression": "gzip"}
    with h5py.File(path, "w") as file:
        data = file.create_dataset("group/data", data=values("<i4", (1000,)), chunks=(100,), **coded)
        chunk = data.id.get_chunk_info(3)
    bytes = bytearray(path.read_bytes())
    if damage == "short":
        bytes = bytes[: chunk.byte_offset + 5]
    else:
        bytes[chunk.byte_offset + 20] ^= 0xFF
    path.write_bytes(bytes)
    result = thalweg("read", path, "--digest", check=False)
    assert result.returncode == 1 and str(path) in result.stderr, result.stderr
    if damage != "short":
        at = int(re.search(r"chunk 3 of /group/data, byte (\d+)", result.stderr)[1])
        assert 0 <= at - chunk.byte_offset < chunk.size


def test_info_says_how_it_lies(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("group/chunked", data=values("<u4", (1000,)), chunks=(100,), compression="gzip", shuffle=True)
        file.create_dataset("scaled", data=values("<i4", (1000,)), chunks=(100,), scaleoffset=0)
        file["words"] = "any length"
        file["one"] = 1.5
    info = json.loads(thalweg("info", path, "--json").stdout)
    rows = {row["path"]: row for row in info["datasets"]}
    chunked = rows["/group/chunked"]
    assert (chunked["shape"], chunked["dtype"], chunked["chunk"], chunked["chunks"]) == ([1000], "<u4", [100], 10)
    assert (chunked["bytes"], chunked["filters"], chunked["in_order"]) == (4000, ["shuffle", "deflate"], 1.0)
    with h5py.File(path) as file:
        assert chunked["bytes_stored"] == file["group/chunked"].id.get_storage_size()
    assert "scale" in rows["/scaled"]["read_by_libhdf5"] or "6" in rows["/scaled"]["read_by_libhdf5"]
    assert rows["/words"]["not_read"] == "strings of any length"
    words = thalweg("info", path).stdout
    assert "/group/chunked: 1000 <u4, 10 chunks of 100, 100 % in order, shuffle + deflate" in words
    assert "/one: one <f8" in words


@pytest.mark.parametrize("verb", ["read", "info"])
def test_what_takes_libhdf5_down_is_an_error(thalweg, shared, verb):
    for path in (path for path in FILES if "cve" in path.parts or "fuzz" in path.parts):
        result = thalweg(verb, path, check=False)
        assert result.returncode in (0, 1), (path, result.returncode, result.stderr)
    crash = next(path for path in FILES if path.name == "vds_nentries_mult_overflow.h5")
    result = thalweg(verb, crash, check=False)
    assert result.returncode == 1 and str(crash) in result.stderr
