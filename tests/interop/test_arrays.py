"""Arrays of HDF5 files: thalweg reads what h5py reads, whatever the type, layout and filters."""

import ctypes
import hashlib
import json
import os
import pathlib
import re

import h5py
import hdf5plugin
import numpy as np
import pyarrow
import pytest

from hdf5_rows import h5pys_library, row, rows
from nanopore import ONE_OF, SHARED, run

HDF5 = SHARED.parent / "hdf5"
# The program under test cannot repack (`make without-libhdf5`).
WITHOUT_LIBHDF5 = os.environ.get("WITHOUT_LIBHDF5") == "1"
# Malformed on purpose, and what h5py cannot open either.
MALFORMED = ("cve", "fuzz")
# Still open for writing, by a flag: h5py refuses it, libhdf5 2 does not.
IN_WRITING = "test_byteshuffle_compressed_datasets_latest.hdf5"

FILES = sorted(path for path in HDF5.rglob("*") if path.is_file() and path.suffix != ".md") if HDF5.exists() else []
SOUND = [path for path in FILES if not set(MALFORMED) & set(path.parts) and path.name != IN_WRITING]
# 2,000 million elements, nearly none of them stored: to read them all once is enough.
HUGE = "tiny_huge_1d_over_maxint.hdf5"

CODED = {
    "gzip": {"compression": "gzip"},
    "shuffle-gzip": {"compression": "gzip", "shuffle": True},
    "fletcher32": {"fletcher32": True},
    "gzip-fletcher32": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "lzf": {"compression": "lzf"},
    "shuffle-lzf": {"compression": "lzf", "shuffle": True},
    "bzip2": hdf5plugin.BZip2(),
    "lz4": hdf5plugin.LZ4(),
    "lz4-blocks": hdf5plugin.LZ4(nbytes=64),
    "zstd": hdf5plugin.Zstd(),
    "bitshuffle": hdf5plugin.Bitshuffle(cname="none"),
    "bitshuffle-lz4": hdf5plugin.Bitshuffle(cname="lz4"),
    "bitshuffle-zstd": hdf5plugin.Bitshuffle(cname="zstd"),
    "bitshuffle-lz4-blocks": hdf5plugin.Bitshuffle(nelems=64, cname="lz4"),
}
for compressor in ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"):
    for name, shuffle in (("", 0), ("-shuffle", 1), ("-bitshuffle", 2)):
        CODED[f"blosc-{compressor}{name}"] = hdf5plugin.Blosc(cname=compressor, clevel=5, shuffle=shuffle)
for compressor in ("blosclz", "lz4", "lz4hc", "zlib", "zstd"):
    for name, filters in (("", 0), ("-shuffle", 1), ("-bitshuffle", 2), ("-delta", 3)):
        CODED[f"blosc2-{compressor}{name}"] = hdf5plugin.Blosc2(cname=compressor, clevel=5, filters=filters)

TYPES = ["<u1", "<i2", ">i2", "<u4", ">f4", "<i8", "<f8", ">f8", "<c16", "?", "S7"]
# Shapes and chunks: even, with edges, of one chunk, of more dimensions.
SHAPES = [((1000,), (1000,)), ((1000,), (96,)), ((20_011,), (4096,)), ((37, 53), (16, 53)), ((37, 53), (7, 11)), ((5, 6, 70), (2, 6, 64))]


def values(dtype: str, shape, seed=0) -> np.ndarray:
    """Noise below 1,000 in runs, so that compressors find something."""
    noise = np.random.default_rng(seed).integers(0, 1000, int(np.prod(shape)))
    noise[::3] = noise[:1]
    return noise.astype(np.dtype(dtype)).reshape(shape)


def same(thalweg, path: pathlib.Path, **options):
    expected, others = rows(path)
    result = thalweg("read", path, "--digest", **options)
    assert result.stdout.splitlines() == expected
    for name in others:
        assert f"{name}: not read: " in result.stderr
    return expected


@pytest.mark.parametrize("path", SOUND, ids=lambda path: path.name)
def test_real_files(thalweg, shared, path):
    """Filters that the installed h5py has no plugin for come with `hdf5plugin`."""
    if path.name == HUGE and ONE_OF > 1:
        pytest.skip("h5py takes half a minute for it: THOROUGH=1")
    same(thalweg, path)


def test_the_real_files_are_there(shared):
    assert len(SOUND) > 80


def test_list_of_fallbacks(thalweg, shared):
    """What of the real files is no array: printed (pytest -s), and nothing that was forgotten. libhdf5 is needed for none."""
    reasons = {}
    for path in SOUND:
        for row in json.loads(thalweg("info", path, "--json").stdout)["datasets"]:
            assert "dtype" not in row or not row["not_read"], (path, row)
            if why := row.get("not_read"):
                reasons.setdefault(why, []).append(f"{path.name}:{row['path']}")
    for why, where in sorted(reasons.items()):
        print(f"{why}: {len(where)} datasets, as {where[0]}")
    known = ("strings of any length", "lists of any length", "without values", "references")
    assert [why for why in reasons if not any(word in why for word in known)] == []


@pytest.mark.parametrize("name", CODED)
def test_filters(thalweg, tmp_path, name):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for dtype in TYPES:
            for number, (shape, chunks) in enumerate(SHAPES):
                file.create_dataset(f"{dtype.strip('<>?')}{dtype[0] == '>'}/{number}", data=values(dtype, shape), chunks=chunks, **CODED[name])
    assert len(same(thalweg, path)) == len(TYPES) * len(SHAPES)


@pytest.mark.parametrize("how", [{}, {"rate": 8}, {"precision": 12}, {"accuracy": 0.5}, {"reversible": True}], ids=str)
def test_zfp(thalweg, tmp_path, how):
    path = tmp_path / "f.h5"
    dtypes = ("<f4", "<f8") if "accuracy" in how else ("<f4", "<f8", "<i4", "<i8")
    shapes = [*SHAPES, ((3, 4, 5, 6), (2, 3, 4, 5)), ((50, 1, 20), (10, 1, 5))]
    with h5py.File(path, "w") as file:
        for dtype in dtypes:
            for number, (shape, chunks) in enumerate(shapes):
                file.create_dataset(f"{dtype[1:]}/{number}", data=values(dtype, shape), chunks=chunks, **hdf5plugin.Zfp(**how))
    assert len(same(thalweg, path)) == len(dtypes) * len(shapes)


@pytest.mark.parametrize("how", ["nn", "ec"])
@pytest.mark.parametrize("block", [4, 8, 16, 32])
def test_szip(thalweg, tmp_path, how, block):
    """Noise, ramps, runs of zeros that are as long as several segments, and rare values among zeros: every way to code a block."""
    path = tmp_path / "f.h5"
    noise = np.random.default_rng(block)
    with h5py.File(path, "w") as file:
        for dtype in ("<u1", "<i2", ">i2", "<u4", ">f4", "<i8", "<f8", ">f8"):
            for number, (shape, chunks) in enumerate(SHAPES):
                count = int(np.prod(shape))
                kinds = {
                    "noise": noise.integers(0, 250, count),
                    "full": np.frombuffer(noise.bytes(8 * count), "<u8") % np.uint64(1 << 62),
                    "ramp": np.arange(count) // 3 % 200,
                    "zeros": np.zeros(count),
                    "rare": np.where(noise.random(count) < 0.02, 1 + noise.integers(0, 3, count), 0),
                    "bursts": np.where(np.arange(count) % 5000 < 400, noise.integers(0, 100, count), 7),
                }
                for kind, data in kinds.items():
                    name = f"{kind}/{dtype.strip('<>')}{dtype[0] == '>'}/{number}"
                    data = data.astype(dtype).reshape(shape)
                    file.create_dataset(name, data=data, chunks=chunks, compression="szip", compression_opts=(how, block))
        file.create_dataset("shuffled", data=values("<i4", (1000,)), chunks=(100,), compression="szip", shuffle=True, fletcher32=True)
    assert len(same(thalweg, path)) == 6 * 8 * len(SHAPES) + 1


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
            # Any dimension may be the one that grows, and the others may be longer one day.
            for number, most in enumerate([(100, None), (160, None), (None, 90)]):
                group.create_dataset(f"turned{number}", data=values(dtype, (100, 40), number), maxshape=most, chunks=(16, 7))
            for grows in range(3):
                most = [9, 30, 70]
                most[grows] = None
                cube = group.create_dataset(f"cube{grows}", (5, 30, 70), dtype, chunks=(2, 7, 64), maxshape=tuple(most), fillvalue=values(dtype, ())[()])
                cube[1:4, 3:29, 10:] = values(dtype, (3, 26, 60), grows)
            # Some chunks are never written.
            sparse = group.create_dataset("sparse", (1000,), dtype, chunks=(64,), fillvalue=values(dtype, ())[()])
            sparse[200:300] = values(dtype, (100,), 5)
            group.create_dataset("nowhere", (100,), dtype)
            group.create_dataset("filled", (100, 3), dtype, fillvalue=values(dtype, ())[()])
    assert len(same(thalweg, path)) > len(TYPES) * 8
    thalweg("index", path)
    same(thalweg, path)


def test_chunks_at_the_edge_that_skip_the_filters(thalweg, tmp_path):
    """An option of libhdf5's that h5py has no name for (`H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`)."""
    libhdf5 = h5pys_library()
    libhdf5.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    path, repacked = tmp_path / "f.h5", tmp_path / "repacked.h5"
    with h5py.File(path, "w", libver="latest") as file:
        for index, most in enumerate([(37, 53), (None, 53), (37, None), (None, None)]):
            for name in ("shuffle", "gzip", "fletcher32", "all"):
                how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                how.set_chunk((16, 16))
                for filter, add in {"shuffle": how.set_shuffle, "gzip": lambda how=how: how.set_deflate(4), "fletcher32": how.set_fletcher32}.items():
                    if name in (filter, "all"):
                        add()
                assert libhdf5.H5Pset_chunk_opts(how.id, 2) >= 0
                space = h5py.h5s.create_simple((37, 53), tuple(h5py.h5s.UNLIMITED if length is None else length for length in most))
                made = h5py.h5d.create(file.id, f"{name}{index}".encode(), h5py.h5t.STD_I32LE, space, how)
                h5py.Dataset(made)[...] = values("<i4", (37, 53), index)
    assert len(same(thalweg, path)) == 16
    if WITHOUT_LIBHDF5:
        return
    for wish in ([], ["--chunk", "/=16x20"], ["--filter", "/=shuffle+gzip:1"], ["--chunk", "/=32x16", "--filter", "/=none"]):
        thalweg("convert", "--repack", path, repacked, *wish)
        assert same(thalweg, repacked) == rows(path)[0], wish
        with h5py.File(repacked, "r+") as file:
            for name, index in (("all1", 1), ("all3", 3)):
                file[name].resize((60, 53))
                assert (file[name][:37] == values("<i4", (37, 53), index)).all() and (file[name][37:] == 0).all(), (wish, name)
        repacked.unlink()


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
    """They are converted to the integers of their size, and unpacked where a filter has packed their bits."""
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        kind = h5py.h5t.STD_U16LE.copy()
        kind.set_precision(12)
        space = h5py.h5s.create_simple((1000,))
        h5py.h5d.create(file.id, b"twelve", kind, space).write(h5py.h5s.ALL, h5py.h5s.ALL, values("<u2", (1000,)))
        file.create_dataset("scaled", data=values("<i4", (1000, 3)), chunks=(100, 3), scaleoffset=0)
        file.create_dataset("scaled big", data=values(">i4", (1000,)), chunks=(100,), scaleoffset=0)
        for dtype in ("i1", "u1", "<i2", ">u2", "<u4", "<i8", ">u8", "<f4", ">f8"):
            data = (values("<i4", (1000,)) % 97).astype(dtype)
            for name, how in {"free": {}, "filled": {"fillvalue": 7}, "tight": {"scaleoffset": 3}}.items():
                made = file.create_dataset(f"{name} {dtype.strip('<>')}{dtype[0]}", (1100,), dtype, chunks=(100,), **{"scaleoffset": 2 if "f" in dtype else 0, **how})
                made[:1000] = data
    same(thalweg, path)


def test_integers_of_some_bits(thalweg, tmp_path):
    """numpy has no type for some of them, and so h5py; libhdf5 converts them to the next larger one."""
    path = tmp_path / "f.h5"
    wanted = []
    kinds = [("U16LE", 2, 12, 0), ("I16BE", 2, 9, 3), ("I32LE", 4, 17, 5), ("U64BE", 8, 40, 11), ("I32BE", 3, 24, 0), ("U64LE", 6, 33, 2)]
    with h5py.File(path, "w") as file:
        for number, (stored, size, bits, at) in enumerate(kinds):
            kind = getattr(h5py.h5t, f"STD_{stored}").copy()
            kind.set_precision(min(bits, 8 * size))
            kind.set_size(size)
            kind.set_offset(at)
            data = values("<i4", (1000, 3), number) >> 8
            for how in ("contiguous", "chunked", "nbit", "nbit shuffle gzip", "compact", "unwritten"):
                make = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                shape = (20, 3) if how == "compact" else (1000, 3)
                if how == "compact":
                    make.set_layout(h5py.h5d.COMPACT)
                elif how != "contiguous":
                    make.set_chunk((70, 2))
                if "nbit" in how:
                    make.set_filter(h5py.h5z.FILTER_NBIT, h5py.h5z.FLAG_MANDATORY, ())
                if "gzip" in how:
                    make.set_shuffle()
                    make.set_deflate(4)
                if how == "unwritten":
                    make.set_fill_value(np.array(77, "<i4"))
                made = h5py.h5d.create(file.id, f"{number} {how}".encode(), kind, h5py.h5s.create_simple(shape), make)
                if how != "unwritten":
                    made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data[: shape[0]]))
                dtype = f"<{stored[0].lower()}{1 << (size - 1).bit_length()}"
                found = np.zeros(shape, dtype)
                made.read(h5py.h5s.ALL, h5py.h5s.ALL, found)
                wanted.append(row(f"/{number} {how}", found))
    assert thalweg("read", path, "--digest").stdout.splitlines() == sorted(wanted)


def test_floating_point_numbers_of_other_forms(thalweg, tmp_path):
    """What fits into IEEE 754's numbers of the same size is converted; other numbers are not read."""
    path = tmp_path / "f.h5"
    small = h5py.h5t.IEEE_F32LE.copy()
    small.set_fields(31, 24, 7, 0, 23)
    small.set_ebias(63)
    halved = h5py.h5t.IEEE_F32BE.copy()
    halved.set_ebias(126)
    far = h5py.h5t.IEEE_F64LE.copy()
    far.set_ebias(1000)
    half = h5py.h5t.IEEE_F16LE.copy()
    half.set_ebias(14)
    bare = h5py.h5t.IEEE_F32LE.copy()
    bare.set_norm(h5py.h5t.NORM_NONE)
    with h5py.File(path, "w") as file:
        for name, kind in {"small": small, "halved": halved, "far": far, "half": half, "bare": bare}.items():
            made = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((4,)))
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(4.0))
    result = thalweg("read", path, "--digest")
    values = np.arange(4, dtype="<f4").tobytes()
    assert result.stdout.split() == ["/small", "4", "<f4", hashlib.sha256(values).hexdigest()]
    assert all(f"/{name}: not read: floating-point numbers" in result.stderr for name in ["halved", "far", "half", "bare"])
    assert "bias 126" in result.stderr and "bias 1000" in result.stderr and "bias 14" in result.stderr and "mantissa" in result.stderr


def test_numpys_own_types(thalweg, tmp_path):
    """h5py keeps what HDF5 has no type for as opaque bytes, with numpy's name beside them."""
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for number, dtype in enumerate(["<M8[us]", ">M8[ns]", "<m8[D]", "<M8[10s]"]):
            data = np.arange(100).astype(dtype)
            file[f"contiguous{number}"] = data.astype(h5py.opaque_dtype(data.dtype))
            file.create_dataset(f"chunked{number}", data=data.astype(h5py.opaque_dtype(data.dtype)), chunks=(16,), compression="gzip")
    assert len(same(thalweg, path)) == 8


def test_scale_offset_beside_other_filters(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for name, coded in (("gzip", {"compression": "gzip"}), ("lzf", {"compression": "lzf"}), ("szip", {"compression": "szip"})):
            file.create_dataset(name, data=values("<i4", (1000, 3)), chunks=(100, 3), scaleoffset=0, shuffle=True, **coded)
    assert len(same(thalweg, path)) == 3


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A folder for the file, one below it and one beside it. h5py looks for values in other files where it stands, thalweg beside
    the file."""
    for name in ("home/below", "far"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path


def test_values_in_other_files(thalweg, folders):
    path = folders / "home/f.h5"
    with h5py.File(path, "w") as file:
        for number, dtype in enumerate(TYPES):
            data = values(dtype, (1000, 3), number)
            (folders / f"home/{number}.raw").write_bytes(b"head" + data.tobytes())
            file.create_dataset(f"one{number}", data.shape, dtype, external=[(f"{number}.raw", 4, h5py.h5f.UNLIMITED)])
        data = values("<f8", (5000,)).tobytes()
        (folders / "home/first").write_bytes(data[:12_345])
        (folders / "home/below/second").write_bytes(b"." * 100 + data[12_345:])
        pieces = [("first", 0, 12_345), ("below/second", 100, 20_000), ("below/second", 20_100, 1 << 20)]
        file.create_dataset("pieces", (5000,), "<f8", external=pieces)
        # The file ends before its values do: the rest are zeros.
        file.create_dataset("short", (20_000,), "<u2", external=[("first", 0, h5py.h5f.UNLIMITED)])
        file["plain"] = values("<u2", (100,))
    expected = same(thalweg, path, cwd=folders / "far")
    assert len(expected) == len(TYPES) + 3
    few = thalweg("read", path, "--digest", "--store", "mmap", "--memory", "8MiB").stdout
    assert few.splitlines() == expected


def test_values_in_other_files_do_not_lead_out_of_the_folder(thalweg, folders):
    path, secret = folders / "home/f.h5", folders / "far/secret"
    secret.write_bytes(b"x" * 100)
    (folders / "home/link").symlink_to(secret)
    (folders / "home/folder").mkdir()
    named = {"absolute": str(secret), "up": "../far/secret", "link": "link", "missing": "none", "folder": "folder"}
    with h5py.File(path, "w") as file:
        file["good"] = np.arange(3)
        for name, other in named.items():
            file.create_dataset(name, (100,), "u1", external=[(other, 0, 100)])
    result = thalweg("read", path, "--digest")
    assert [row.split("\t")[0] for row in result.stdout.splitlines()] == ["/good"]
    for name in ("absolute", "up", "link"):
        assert re.search(f"/{name}: not read: .*{secret}.*outside the folder.*--trusted", result.stderr), result.stderr
    assert "/missing: not read: values in another file, none, that is not there" in result.stderr
    assert "/folder: not read: " in result.stderr
    trusted = thalweg("read", path, "--digest", "--trusted").stdout
    assert len(trusted.splitlines()) == 4


@pytest.mark.parametrize("coded", ["none", "gzip", "bitshuffle", "blosc"])
def test_virtual_datasets(thalweg, folders, coded):
    """Sources beside the file, below it and in it; where there is none, the fill value."""
    path = folders / "home/f.h5"
    how = {"none": {}, "gzip": {"compression": "gzip", "shuffle": True}, "bitshuffle": hdf5plugin.Bitshuffle(), "blosc": hdf5plugin.Blosc()}[coded]
    for number, name in enumerate(["a.h5", "below/b.h5"]):
        with h5py.File(folders / "home" / name, "w") as file:
            file.create_dataset("data", data=values("<i4", (20, 30, 50), number), chunks=(5, 30, 50), **how)
    layout = h5py.VirtualLayout((5, 20, 30, 50), "<i4")
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("own", data=values("<i4", (20, 30, 50), 7), chunks=(7, 9, 11), **how)
        for number, name in enumerate(["a.h5", "below/b.h5", ".", "none.h5"]):
            layout[number] = h5py.VirtualSource(name, "own" if name == "." else "data", (20, 30, 50))
        file.create_virtual_dataset("all", layout, fillvalue=-9)
        # As wide as its sources are.
        growing = h5py.VirtualLayout((40, 30), "<i4", maxshape=(None, 30))
        source = h5py.VirtualSource("a.h5", "data", (20, 30, 50), maxshape=(None, 30, 50))
        growing[:20] = source[:, :, 3]
        file.create_virtual_dataset("part", growing)
    assert len(same(thalweg, path, cwd=folders / "far")) == 3
    mappings = {row["path"]: row["mappings"] for row in json.loads(thalweg("info", path, "--json").stdout)["datasets"]}
    assert mappings == {"/own": None, "/all": 4, "/part": 1}


def space(shape, slab=None, most=None):
    """A dataspace of this shape; of it, a hyperslab (start, count, step, block) is selected."""
    made = h5py.h5s.create_simple(shape, most or shape)
    if slab:
        made.select_hyperslab(*slab)
    return made


def virtual(file, name, dtype, whole, *mappings, fill=None):
    """Makes a virtual dataset; a mapping is (space, file, path, space of the source)."""
    make = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    for target, source, path, chosen in mappings:
        make.set_virtual(target, source.encode(), path.encode(), chosen)
    if fill is not None:
        make.set_fill_value(np.array(fill, dtype))
    h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype), logical=True), whole, make)


@pytest.mark.parametrize("version", ["latest", "v110", "v200"])
def test_mappings_of_every_kind(thalweg, folders, version):
    """Strides, blocks, other shapes and types, sources that are virtual, numbered sources, sources that grow."""
    unlimited = h5py.h5s.UNLIMITED
    with h5py.File(folders / "home/a.h5", "w", libver="latest") as file:
        file.create_dataset("cube", data=values("<i4", (20, 30, 50)), chunks=(3, 30, 7), compression="gzip")
        file["flat"] = values("<i4", (5000,))
        file.create_dataset("grows", data=values("<i4", (17, 6)), chunks=(4, 6), maxshape=(None, 6))
        # C leaves open which integer becomes of what is no number.
        file["real"] = np.array([1.5, -2.5, 300.0, -70000.0, -np.inf, np.inf, 1e300])
        file["not a number"] = np.array([np.nan])
        file["small"] = values("<i2", (40, 3))
        file["names"] = np.array([f"name {n}".encode() for n in range(9)])
    for number in range(4):
        with h5py.File(folders / f"home/part{number}.h5", "w") as file:
            file["x"] = values("<i4", (2, 5), number)
    path = folders / "home/f.h5"
    try:
        made = h5py.File(path, "w", libver=version)
    except ValueError:
        pytest.skip(f"h5py has no {version}")
    with made as file:
        cube, flat = (20, 30, 50), (5000,)
        virtual(file, "strides", "<i4", space((11, 12, 13)), (space((11, 12, 13), ((1, 0, 2), (3, 4, 2), (3, 3, 5), (2, 1, 4))), "a.h5", "cube", space(cube, ((0, 5, 1), (2, 2, 4), (9, 4, 12), (3, 2, 2)))), fill=-1)
        virtual(file, "flat", "<i4", space((30000,)), (space((30000,)), "a.h5", "cube", space(cube)))
        virtual(file, "other shape", "<i4", space((50, 100)), (space((50, 100), ((3, 0), (40, 100))), "a.h5", "flat", space(flat, ((7,), (4000,)))), fill=3)
        virtual(file, "cut", "<i4", space((7, 11)), (space((7, 11)), "a.h5", "cube", space(cube, ((2, 3, 4), (1, 7, 11)))))
        virtual(file, "rows of another", "<i4", space((60, 100)), (space((60, 100)), "a.h5", "cube", space(cube, ((5, 0, 0), (4, 30, 50)))))
        blocks = space((12, 10))
        blocks.select_hyperslab((0, 0), (2, 3))
        blocks.select_hyperslab((1, 1), (3, 4), op=h5py.h5s.SELECT_OR)
        blocks.select_hyperslab((9, 7), (1, 2), op=h5py.h5s.SELECT_OR)
        count = blocks.get_select_npoints()
        virtual(file, "blocks", "<i4", space((12, 10)), (blocks, "a.h5", "flat", space(flat, ((100,), (count,)))), fill=-4)
        virtual(file, "row of blocks", "<i4", space((40,)), (space((40,), ((5,), (count,))), ".", "blocks", blocks))
        virtual(file, "blocks of blocks", "<i4", space((12, 10)), (blocks, ".", "blocks", blocks))
        virtual(file, "over each other", "<i4", space((9,)), (space((9,), ((0,), (6,))), "a.h5", "flat", space(flat, ((0,), (6,)))), (space((9,), ((3,), (6,))), "a.h5", "flat", space(flat, ((50,), (6,)))))
        virtual(file, "virtual again", "<i4", space((7, 11)), (space((7, 11)), ".", "cut", space((7, 11))))
        virtual(file, "missing", "<i4", space((4,)), (space((4,)), "none.h5", "x", space((4,))), fill=6)
        virtual(file, "missing path", "<i4", space((4,)), (space((4,)), "a.h5", "none", space((4,))), fill=7)
        for kind in ("i1", "u1", "<i2", ">u4", "<i8", "<f4", "<f8"):
            virtual(file, f"real as {kind[-2:]}", kind, space((7,)), (space((7,)), "a.h5", "real", space((7,))))
            virtual(file, f"small as {kind[-2:]}", kind, space((40, 3)), (space((40, 3)), "a.h5", "small", space((40, 3))))
        virtual(file, "not a number", "<f4", space((1,)), (space((1,)), "a.h5", "not a number", space((1,))))
        virtual(file, "names", "S6", space((12,)), (space((12,), ((2,), (9,))), "a.h5", "names", space((9,))))
        growing = space((17, 6), ((0, 0), (unlimited, 6)), most=(unlimited, 6))
        virtual(file, "grows", "<i4", space((3, 6), most=(unlimited, 6)), (growing, "a.h5", "grows", space((17, 6), ((0, 0), (unlimited, 6)), most=(unlimited, 6))))
        every = space((34, 6), ((1, 0), (unlimited, 6), (2, 1), (1, 1)), most=(unlimited, 6))
        virtual(file, "grows in steps", "<i4", space((3, 6), most=(unlimited, 6)), (every, "a.h5", "grows", space((17, 6), ((0, 0), (unlimited, 6)), most=(unlimited, 6))), fill=2)
        numbered = space((2, 5), ((1, 0), (unlimited, 1), (3, 1), (2, 5)), most=(unlimited, 5))
        virtual(file, "numbered", "<i4", space((2, 5), most=(unlimited, 5)), (numbered, "part%b.h5", "x", space((2, 5))), fill=1)
        virtual(file, "array", np.dtype(("<i4", (1,))).base, space((3,)))
    with h5py.File(path) as file:
        assert file["numbered"].shape == (12, 5) and file["grows"].shape == (17, 6)
    assert len(same(thalweg, path, cwd=folders / "far")) >= 30
    few = thalweg("read", path, "--digest", "--memory", "4MiB", "--threads", "1").stdout
    assert few.splitlines() == rows(path)[0]
    if WITHOUT_LIBHDF5:
        return
    # A copy has the same mappings.
    thalweg("convert", "--repack", "--verify", path, folders / "home/copy.h5")
    assert rows(folders / "home/copy.h5") == rows(path)
    with h5py.File(path) as file, h5py.File(folders / "home/copy.h5") as copy:
        sources = [[(one.file_name, one.dset_name) for name in it if it[name].is_virtual for one in it[name].virtual_sources()] for it in (file, copy)]
        assert sources[0] == sources[1]
    with h5py.File(path) as file:
        cut = thalweg("read", path, "/flat", "--select", "100:29000:7", "--out", folders / "cut.npy", check=False)
        if cut.returncode == 0:
            assert (np.load(folders / "cut.npy") == file["flat"][100:29000:7]).all()


def test_virtual_datasets_that_show_themselves(thalweg, folders):
    with h5py.File(folders / "home/f.h5", "w", libver="latest") as file:
        for name, source in (("one", "two"), ("two", "one"), ("self", "self")):
            virtual(file, name, "<i4", space((4,)), (space((4,)), ".", source, space((4,))))
    result = thalweg("read", folders / "home/f.h5", "--digest")
    assert result.stdout == "" and "virtual datasets in more than 8 levels" in result.stderr


def test_a_source_that_cannot_be_read_does_not_grow(thalweg, folders):
    """The shape of the virtual dataset would depend on what thalweg can read."""
    most = h5py.h5s.UNLIMITED
    with h5py.File(folders / "home/f.h5", "w", libver="latest") as file:
        kind = h5py.h5t.STD_I64LE.copy()
        kind.set_size(16)
        source = space((7, 2), ((0, 0), (most, 2)), most=(most, 2))
        make = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        make.set_chunk((4, 2))
        h5py.h5d.create(file.id, b"wide", kind, space((7, 2), most=(most, 2)), make)
        virtual(file, "v", "<i4", space((3, 2), most=(most, 2)), (source, ".", "wide", source))
    result = thalweg("read", folders / "home/f.h5", "/v", "--digest", check=False)
    assert result.returncode == 1 and "which shows /wide" in result.stderr


def test_virtual_datasets_that_show_more_with_every_level(thalweg, folders):
    """A tile reads whole rows: each level multiplies the mappings that a row needs."""
    with h5py.File(folders / "home/f.h5", "w", libver="latest") as file:
        file["level0"] = np.arange(100, dtype="<i4").reshape(1, 100)
        for level in range(1, 8):
            element = lambda x: space((1, 100), ((0, x), (1, 1)))
            virtual(file, f"level{level}", "<i4", space((1, 100)), *((element(x), ".", f"level{level - 1}", element(99 - x)) for x in range(100)))
    digest = hashlib.sha256(np.arange(100, dtype="<i4").tobytes()).hexdigest()
    assert digest in thalweg("read", folders / "home/f.h5", "/level2", "--digest").stdout
    result = thalweg("read", folders / "home/f.h5", "/level7", "--digest", check=False)
    assert result.returncode == 1 and "of which a few elements need many mappings" in result.stderr


def test_strings_of_virtual_datasets(thalweg, folders):
    path = folders / "home/f.h5"
    names = [f"{n} µm" * (n % 4) for n in range(100)]
    with h5py.File(folders / "home/a.h5", "w") as file:
        file.create_dataset("names", data=names, dtype=h5py.string_dtype(), chunks=(7,))
    with h5py.File(path, "w", libver="latest") as file:
        layout = h5py.VirtualLayout((120,), h5py.string_dtype())
        layout[10:110] = h5py.VirtualSource("a.h5", "names", (100,))
        file.create_virtual_dataset("names", layout)
    out = folders / "out.arrow"
    thalweg("read", path, "/names", "--out", out, "--force")
    assert pyarrow.ipc.open_file(out).read_all()["names"].to_pylist() == [""] * 10 + names + [""] * 10
    shown = json.loads(thalweg("info", path, "--json").stdout)["datasets"][0]
    assert shown["shape"] == [120] and shown["strings"][:8] == [""] * 8


def test_sources_of_virtual_datasets_name_no_external_files(thalweg, folders):
    """They would be read past our checks, wherever they lie."""
    secret = folders / "far/secret"
    secret.write_bytes(bytes(range(32)))
    with h5py.File(folders / "home/source.h5", "w") as file:
        file.create_dataset("data", (32,), "u1", external=[(str(secret), 0, 32)])
    with h5py.File(folders / "home/near.h5", "w") as file:
        file["data"] = np.arange(32, dtype="u1")
    for name, source, of in (("direct", "source.h5", "data"), ("indirect", "direct.h5", "virtual"), ("harmless", "near.h5", "data")):
        with h5py.File(folders / f"home/{name}.h5", "w", libver="latest") as file:
            layout = h5py.VirtualLayout((32,), "u1")
            layout[:] = h5py.VirtualSource(source, of, (32,))
            file.create_virtual_dataset("virtual", layout)
    for name in ("direct", "indirect"):
        path = folders / f"home/{name}.h5"
        refused = thalweg("read", path, "/virtual", "--digest", check=False)
        assert refused.returncode == 1 and not refused.stdout
        assert "/virtual, which shows " in refused.stderr and "outside the folder" in refused.stderr and "--trusted" in refused.stderr
        assert len(thalweg("read", path, "--digest", "--trusted").stdout.splitlines()) == 1
    assert len(same(thalweg, folders / "home/harmless.h5")) == 1


def test_virtual_datasets_do_not_lead_out_of_the_folder(thalweg, folders):
    with h5py.File(folders / "far/a.h5", "w") as file:
        file["data"] = np.arange(10)
    for name, source in (("up", "../far/a.h5"), ("absolute", str(folders / "far/a.h5"))):
        path = folders / f"home/{name}.h5"
        with h5py.File(path, "w", libver="latest") as file:
            layout = h5py.VirtualLayout((10,), "<i8")
            layout[:] = h5py.VirtualSource(source, "data", (10,))
            file.create_virtual_dataset("virtual", layout)
        result = thalweg("read", path, "--digest")
        assert result.stdout == "" and "/virtual: not read: a virtual dataset; " in result.stderr
        assert f"{folders / 'far/a.h5'}, outside the folder" in result.stderr
        assert thalweg("read", path, "--digest", "--trusted").stdout.splitlines() == rows(path)[0]


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


def test_patterns_select(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for name in ("e/bank10/id", "e/bank2/id", "e/bank2/time", "e/log/id", "e/none/x", "e/b[1]/id", "id"):
            file[name] = np.arange(10)
    paths = lambda *named: [row.split("\t")[0] for row in thalweg("read", path, *named, "--digest").stdout.splitlines()]
    assert paths("/e/bank*/id") == ["/e/bank10/id", "/e/bank2/id"]
    assert paths("e/bank?") == ["/e/bank2/id", "/e/bank2/time"]
    assert paths("*/*/id") == ["/e/b[1]/id", "/e/bank10/id", "/e/bank2/id", "/e/log/id"]
    # What is there is taken for itself.
    assert paths("/e/b[1]/id") == ["/e/b[1]/id"]
    for wrong, code in (("/e/tank*/id", 1), ("/*/id/x", 1), ("/e/***", 2)):
        result = thalweg("read", path, wrong, "--digest", check=False)
        assert result.returncode == code and wrong in result.stderr


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
def test_damage_is_reported(thalweg, tmp_path, damage):
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


def test_info_reports_the_layout(thalweg, tmp_path):
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
    assert rows["/scaled"]["filters"] == ["scale-offset"] and rows["/scaled"]["not_read"] is None
    assert rows["/words"]["not_read"] == "strings of any length"
    words = thalweg("info", path).stdout
    assert "/group/chunked: 1000 <u4, 10 chunks of 100, 100 % in order, shuffle + deflate" in words
    assert "/one: one <f8" in words


def test_info_shows_strings(thalweg, shared, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file["scalar"] = "grün"
        file["empty"] = ""
        file.create_dataset("many", data=[f"string {i}" * (i % 7) for i in range(6000)], dtype=h5py.string_dtype(), compression="gzip")
        file.create_dataset("square", data=np.array([["a", "bb"], ["", "c"]], object), dtype=h5py.string_dtype())
        lists = file.create_dataset("lists", (3,), h5py.vlen_dtype(">i4"))
        lists[:] = [np.arange(n) for n in (0, 3, 5)]
        file.create_dataset("reference", data=file["scalar"].ref)
        file.create_dataset("region", data=lists.regionref[1:])
    seen = 0
    for each in [path, *(path for path in SOUND if "string" in path.name or "vlen" in path.name)]:
        for row in json.loads(thalweg("info", each, "--json").stdout)["datasets"]:
            with h5py.File(each) as file:
                dataset = file[row["path"]]
                if h5py.check_string_dtype(dataset.dtype) and dataset.dtype.hasobject and dataset.shape is not None:
                    try:
                        strings = [text.decode() for text in np.ravel(dataset[()])[:8]]
                    except OSError as refused:
                        assert row["refused"], refused
                        continue
                    assert row["strings"] == strings and row["shape"] == list(dataset.shape), row
                    seen += 1
    assert seen >= 9
    rows = {row["path"]: row for row in json.loads(thalweg("info", path, "--json").stdout)["datasets"]}
    assert rows["/lists"]["items"] == "<i4" and rows["/lists"]["shape"] == [3]
    assert (rows["/reference"]["not_read"], rows["/region"]["not_read"]) == ("references to objects", "references to regions")
    assert '/square: 2x2 strings of any length: "a", "bb", "", "c"' in thalweg("info", path).stdout


def test_an_extensible_array_with_pages(thalweg, tmp_path):
    """Beyond 131,060 chunks, the blocks of the index have pages, and the bits of their pages are packed over blocks."""
    path = tmp_path / "f.h5"
    values = np.arange(300_000, dtype="<u4").astype("u1")
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("whole", data=values, chunks=(1,), maxshape=(None,))
        some = file.create_dataset("some", (300_000,), "u1", chunks=(1,), maxshape=(None,), fillvalue=7)
        for start in (5, 131_500, 133_500, 150_000, 262_200, 299_990):
            some[start : start + 9] = values[start : start + 9]
    same(thalweg, path)


def test_addresses_and_lengths_of_four_bytes(thalweg, tmp_path):
    """Heads in global heaps are padded to eight bytes."""
    path = tmp_path / "f.h5"
    how = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    how.set_sizes(4, 4)
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, how)) as file:
        file["texts"] = ["one", "", "drei"]
        file["texts"].attrs["units"] = "µm"
        file.create_dataset("lists", (2,), h5py.vlen_dtype("<i2"))[:] = [np.arange(3), np.arange(5)]
        file.create_dataset("chunks", data=np.arange(100), chunks=(7,), compression="gzip")
    same(thalweg, path)
    rows = {row["path"]: row for row in json.loads(thalweg("info", path, "--json").stdout)["datasets"]}
    assert rows["/texts"]["strings"] == ["one", "", "drei"] and rows["/lists"]["shape"] == [2]


def test_fill_values_whose_parts_differ(thalweg, tmp_path):
    """An element of an array type that is not stored has the parts of the fill value."""
    libhdf5 = h5pys_library()
    libhdf5.H5Pset_fill_value.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]

    def filled(kind, values):
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        assert libhdf5.H5Pset_fill_value(how.id, kind.id, np.array(values).ctypes.data_as(ctypes.c_void_p)) >= 0
        return how

    path = tmp_path / "f.h5"
    three = h5py.h5t.array_create(h5py.h5t.STD_I32LE, (3,))
    six = h5py.h5t.array_create(h5py.h5t.STD_I16BE, (2, 3))
    with h5py.File(path, "w") as file:
        chunks = filled(three, np.array([1, 2, 3], "<i4"))
        chunks.set_chunk((2,))
        h5py.h5d.create(file.id, b"parts", three, h5py.h5s.create_simple((5,)), chunks)
        late = filled(six, np.arange(6, dtype=">i2"))
        h5py.h5d.create(file.id, b"square", six, h5py.h5s.create_simple((4,)), late)
        h5py.h5d.create(file.id, b"single", six, h5py.h5s.create(h5py.h5s.SCALAR), late)
        late.set_chunk((3,))
        h5py.h5d.create(file.id, b"chunked", six, h5py.h5s.create_simple((7,)), late)
        mapped = filled(three, np.array([4, 5, 6], "<i4"))
        target, source = h5py.h5s.create_simple((6,)), h5py.h5s.create_simple((5,))
        target.select_hyperslab((0,), (2,))
        source.select_hyperslab((1,), (2,))
        mapped.set_virtual(target, b".", b"/parts", source)
        h5py.h5d.create(file.id, b"virtual", three, target, mapped)
    same(thalweg, path)
    rows = {row.split("\t")[0]: row.split("\t")[3] for row in thalweg("read", path, "--digest").stdout.splitlines()}
    of = lambda values, dtype: hashlib.sha256(np.array(values, dtype).tobytes()).hexdigest()
    assert rows["/parts"] == of([1, 2, 3] * 5, "<i4")
    assert rows["/square"] == of(np.tile(np.arange(6), 4), "<i2")
    assert rows["/single"] == of(range(6), "<i2")
    assert rows["/chunked"] == of(np.tile(np.arange(6), 7), "<i2")
    assert rows["/virtual"] == of([1, 2, 3] * 2 + [4, 5, 6] * 4, "<i4")
    for name, selection, expected in [
        ("/chunked", "2:5,1,::2", np.tile([3, 5], 3)),
        ("/chunked", "5,:,1", [1, 4]),
        ("/single", "1,1:", [4, 5]),
        ("/virtual", "1:4,1:", [2, 3, 5, 6, 5, 6]),
    ]:
        (row,) = thalweg("read", path, name, "--select", selection, "--digest").stdout.splitlines()
        assert row.split("\t")[3] == of(expected, "<i4" if name == "/virtual" else "<i2"), selection
    assert "parts differ" in thalweg("index", path, "--kerchunk", tmp_path / "k.json").stderr


@pytest.mark.parametrize("place", ["beyond the end", "twice", "out of order"])
def test_damaged_coordinates_of_chunks(thalweg, tmp_path, place):
    """A version 1 B-tree has no checksum: damage shows only in the coordinates."""
    path = tmp_path / "f.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file.create_dataset("x", data=np.arange(4000, dtype="i4"), chunks=(1000,))
    good = path.read_bytes()
    key = lambda at: np.array([4000, 0, at, 0, 0, 0], "<u4").tobytes()
    assert all(good.count(key(at)) == 1 for at in (1000, 2000, 3000))
    changed = {"beyond the end": 9000, "twice": 1000, "out of order": 0}[place]
    path.write_bytes(good.replace(key(2000), key(changed)))
    result = thalweg("read", path, "--digest", check=False)
    assert result.returncode == 1 and result.stdout == "" and "a chunk at the place" in result.stderr


def sz3_and_gzip(path):
    data = np.arange(10_000, dtype="<f4")
    with h5py.File(path, "w") as file:
        file.create_dataset("sz3", data=data, chunks=(1000,), **hdf5plugin.SZ3(absolute=0.001))
        file.create_dataset("other", data=data, chunks=(1000,), compression="gzip")


def test_filters_that_are_not_known(thalweg, tmp_path):
    """They are named, and everything else is read."""
    path = tmp_path / "f.h5"
    sz3_and_gzip(path)
    result = thalweg("read", path, "--digest")
    assert result.stdout.startswith("/other\t") and len(result.stdout.splitlines()) == 1
    assert "/sz3: not read: the HDF5 filter 32024" in result.stderr
    info = {row["path"]: row for row in json.loads(thalweg("info", path, "--json").stdout)["datasets"]}
    sz3, other = info["/sz3"], info["/other"]
    assert (sz3["shape"], sz3["dtype"], sz3["chunk"], sz3["chunks"]) == ([10_000], "<f4", [1000], 10)
    assert sz3["bytes_stored"] > 0 and "32024" in sz3["not_read"] and other["not_read"] is None
    assert "1 more left out: virtual, or with a part that cannot be read" in thalweg("doctor", path).stdout
    for arguments in (["--digest"], ["--out", tmp_path / "x.npy"], ["--select", "0:5", "--digest"]):
        result = thalweg("read", path, "/sz3", *arguments, check=False)
        assert result.returncode == 1 and "/sz3" in result.stderr and "32024" in result.stderr, arguments
    result = thalweg("read", path, "/sz3", "/other", "--digest", check=False)
    assert result.returncode == 1 and result.stdout.startswith("/other\t")
    assert not (tmp_path / "x.npy").exists()


@pytest.mark.parametrize("checksums", [False, True])
def test_groups_whose_links_are_compressed(thalweg, tmp_path, checksums):
    """One direct block, many, and links that are too long for blocks; those are in a tree of their own."""
    path = tmp_path / "f.h5"
    library = h5pys_library()
    properties = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
    assert library.H5Pset_deflate(ctypes.c_int64(properties.id), 6) >= 0
    if checksums:
        assert library.H5Pset_fletcher32(ctypes.c_int64(properties.id)) >= 0
    with h5py.File(path, "w", libver="latest") as file:
        for name, count, width in (("one block", 20, 10), ("many blocks", 3000, 40), ("large", 30, 6000)):
            group = h5py.Group(h5py.h5g.create(file.id, name.encode(), gcpl=properties))
            for number in range(count):
                group[f"{number:0{width}}"] = np.arange(number % 5)
    assert path.read_bytes().count(b"FRHP") == 3
    assert len(same(thalweg, path)) == 3050
    damaged = bytearray(path.read_bytes())
    # In the first zlib stream, which is that of a block.
    damaged[damaged.index(b"\x78\x9c") + 9] ^= 0xFF
    path.write_bytes(damaged)
    result = thalweg("read", path, "--digest", check=False)
    assert result.returncode == 1 and "/many blocks, byte " in result.stderr and len(result.stdout.splitlines()) == 50


def test_links(thalweg, tmp_path):
    """Symbolic links are followed on the way to a path. Links to other files are named, and refused on the way to a path."""
    path = tmp_path / "f.h5"
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = np.arange(3)
    with h5py.File(path, "w") as file:
        file["group/values"] = np.arange(5)
        file["group/soft"] = h5py.SoftLink("values")
        file["whole"] = h5py.SoftLink("/group")
        file["circle"] = h5py.SoftLink("/circle")
        file["nowhere"] = h5py.SoftLink("/none")
        file["out"] = h5py.ExternalLink("other.h5", "/x")
    result = thalweg("read", path, "--digest")
    assert [row.split("\t")[:2] for row in result.stdout.splitlines()] == [["/group/values", "5"]]
    assert "/out: a link to /x of other.h5, which is not followed" in result.stderr
    for within in ("/group/soft", "/whole/values", "/whole/soft"):
        (row,) = thalweg("read", path, within, "--digest").stdout.splitlines()
        assert row.split("\t")[:2] == [within, "5"]
    for within, said in (("/nowhere", "not found"), ("/circle", "16 symbolic links"), ("/out", "a link to another file, other.h5")):
        result = thalweg("read", path, within, check=False)
        assert result.returncode == 1 and said in result.stderr, result.stderr


@pytest.mark.parametrize("verb", ["read", "info"])
def test_files_that_crash_libhdf5_are_errors(thalweg, shared, verb):
    for path in (path for path in FILES if "cve" in path.parts or "fuzz" in path.parts):
        result = thalweg(verb, path, check=False)
        assert result.returncode in (0, 1), (path, result.returncode, result.stderr)
    crash = next(path for path in FILES if path.name == "vds_nentries_mult_overflow.h5")
    result = thalweg(verb, crash, check=False)
    assert result.returncode == 1 and str(crash) in result.stderr


@pytest.mark.parametrize(
    "select",
    ["3:40:7", ":", "5", "::2,3", "4:900,1:3", "0,0,0", "10:10", "1:,2:4,::3", "2,1;0,0;2,1", "7;0;7;19"],
)
def test_selections_are_h5pys(thalweg_binary, tmp_path, select):
    path = tmp_path / "s.h5"
    random = np.random.default_rng(5)
    with h5py.File(path, "w") as f:
        for rank, shape in enumerate([(20,), (40, 5), (9, 7, 11)]):
            values = random.integers(0, 60_000, shape).astype(">u2")
            for name, options in {
                "contiguous": {},
                "chunks": {"chunks": tuple(max(1, n // 3) for n in shape)},
                "gzip": {"chunks": (4, *shape[1:]), "compression": "gzip", "shuffle": True},
                "resized": {"chunks": tuple(n + 2 for n in shape), "maxshape": (None,) * len(shape)},
            }.items():
                f.create_dataset(f"{rank}/{name}", data=values, **options)
            f.create_dataset(f"{rank}/holes", shape=shape, dtype="i4", chunks=(3,) * len(shape), fillvalue=7)
            f[f"{rank}/holes"][2] = 5
    with h5py.File(path) as f:
        points = [tuple(map(int, point.split(","))) for point in select.split(";")] if ";" in select else None
        place = lambda part: slice(*(int(x) if x else None for x in part.split(":"))) if ":" in part else int(part)  # noqa: E731
        axes = [place(part) for part in select.split(",")] if points is None else None
        for rank in range(3):
            if (len(points[0]) != rank + 1) if points else (len(axes) > rank + 1):
                assert run(thalweg_binary, "read", path, f"/{rank}", "--select", select, check=False).returncode == 2
                continue
            told = {}
            for row in run(thalweg_binary, "read", path, f"/{rank}", "--select", select, "--digest").stdout.splitlines():
                name, *rest = row.split("\t")
                told[name] = rest
            assert len(told) == 5
            for name, dataset in f[str(rank)].items():
                whole = dataset[()]
                values = np.array([whole[point] for point in points], whole.dtype) if points else whole[tuple(axes)]
                values = np.asarray(values).astype(whole.dtype.newbyteorder("<"))
                expected = ["x".join(map(str, values.shape)), values.dtype.str, hashlib.sha256(values.tobytes()).hexdigest()]
                assert told[f"/{rank}/{name}"] == expected, name


@pytest.mark.parametrize(
    ("select", "says"),
    [
        ("18446744073709551615", "18446744073709551615 is beyond dimension 0, which has 20"),
        ("0,18446744073709551615", "18446744073709551615 is beyond dimension 1, which has 5"),
        ("0,999", "999 is beyond dimension 1, which has 5"),
        ("0,5;", "5 is beyond dimension 1, which has 5"),
        ("-1,:", "counted from 0"),
    ],
)
def test_selections_that_do_not_fit(thalweg, tmp_path, select, says):
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as f:
        f["a"] = np.zeros((20, 5))
    result = thalweg("read", path, "--select", select, "--digest", check=False)
    assert result.returncode == 2 and says in result.stderr and "Slab" not in result.stderr and not result.stdout


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("base", [0, 1024])
def test_nodes_of_an_index_that_are_fetched_together(thalweg, tmp_path, base, libver):
    """On a store that takes its time, the children of inner nodes are fetched before libhdf5 asks: in fewer requests' time, the same."""
    path = tmp_path / "f.h5"
    with h5py.File(path, "w", userblock_size=base, libver=libver) as file:
        grown = [file.create_dataset(name, (0,), "<i4", maxshape=(None,), chunks=(16,)) for name in "abc"]
        grown.append(file.create_dataset("d", (0, 5), "<i4", maxshape=(None, 5), chunks=(8, 2), compression="gzip"))
        # More than a level of version-2 B-trees, where these are used.
        for name, coded in ("e", {}), ("f", {"compression": "gzip"}):
            grown.append(file.create_dataset(name, (0, 9), "<i4", maxshape=(None, None), chunks=(4, 1), **coded))
        for step in range(100):
            for dataset in grown:
                dataset.resize((step + 1) * 64, 0)
                dataset[step * 64 :] = step
    expected, _ = rows(path)
    for slow in ([], ["--throttle", "latency=1ms"]):
        assert thalweg("read", path, "--digest", *slow).stdout.splitlines() == expected


def test_types_that_numpy_has_no_name_for(thalweg, tmp_path):
    """bfloat16 and x86's long double in 12 bytes as h5py reads them, integers of other sizes as the next larger."""
    from h5py import h5s, h5t

    path = tmp_path / "f.h5"
    brain = h5t.IEEE_F16LE.copy()
    brain.set_fields(15, 7, 8, 0, 7)
    brain.set_ebias(127)
    long = h5t.NATIVE_LDOUBLE.copy()
    long.set_size(12)
    kinds = {
        "bfloat16": (brain, np.array([1.5, -3.14159, 1e30, np.inf, np.nan, 0], "<f4"), "<f4"),
        "long": (long, np.array([1.5, -3.14159, 1e300], np.longdouble), "<f16"),
    }
    for size, wide in ((3, 4), (5, 8), (6, 8), (7, 8)):
        for sign, base in (("i", f"STD_I{8 * wide}LE"), ("u", f"STD_U{8 * wide}BE")):
            kind = getattr(h5t, base).copy()
            kind.set_precision(8 * size)
            kind.set_size(size)
            kinds[f"{sign}{8 * size}"] = (kind, np.array([1, 7 if sign == "u" else -5, 2**22], f"<{sign}{wide}"), f"<{sign}{wide}")
    expected = {}
    with h5py.File(path, "w", libver="latest") as file:
        for name, (kind, data, dtype) in kinds.items():
            made = h5py.h5d.create(file.id, name.encode(), kind, h5s.create_simple(data.shape))
            made.write(h5s.ALL, h5s.ALL, data)
            read = np.zeros_like(data)
            made.read(h5s.ALL, h5s.ALL, read)
            expected[f"/{name}"] = [str(len(data)), dtype, hashlib.sha256(read.tobytes()).hexdigest()]
        pairs = np.array([[1, -2], [3, 4], [-5, 6]], "<i4")
        made = h5py.h5d.create(file.id, b"pairs", h5t.array_create(kinds["i24"][0], (2,)), h5s.create_simple((3,)))
        made.write(h5s.ALL, h5s.ALL, pairs, h5t.array_create(h5t.STD_I32LE, (2,)))
        expected["/pairs"] = ["3x2", "<i4", hashlib.sha256(pairs.tobytes()).hexdigest()]
        # These were read as they are stored, without their signs.
        twelve = h5t.STD_I16LE.copy()
        twelve.set_precision(12)
        made = h5py.h5d.create(file.id, b"twelve", h5t.array_create(twelve, (2,)), h5s.create_simple((3,)))
        made.write(h5s.ALL, h5s.ALL, pairs.astype("<i2"), h5t.array_create(h5t.STD_I16LE, (2,)))
        expected["/twelve"] = ["3x2", "<i2", hashlib.sha256(pairs.astype("<i2").tobytes()).hexdigest()]
    with h5py.File(path) as file:
        assert (file["bfloat16"].dtype, file["long"].dtype) == (np.dtype("<f4"), np.dtype(np.longdouble))
    found = [line.split("\t") for line in thalweg("read", path, "--digest").stdout.splitlines()]
    assert {row[0]: row[1:] for row in found} == expected


@pytest.mark.skipif(not hasattr(h5py.h5t, "COMPLEX_IEEE_F32LE"), reason="h5py with HDF5 2")
def test_complex_numbers_of_hdf5_2(thalweg, tmp_path):
    from h5py import h5s, h5t

    path = tmp_path / "f.h5"
    expected = {}
    with h5py.File(path, "w", libver="latest") as file:
        for size, order in (("F32", "LE"), ("F32", "BE"), ("F64", "LE"), ("F64", "BE")):
            native = h5t.NATIVE_FLOAT_COMPLEX if size == "F32" else h5t.NATIVE_DOUBLE_COMPLEX
            data = np.array([1 + 2j, -3.5 + 0.25j, 1e20 - 1j], "<c8" if size == "F32" else "<c16")
            for chunks in (None, (2,)):
                layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                if chunks:
                    layout.set_chunk(chunks)
                    layout.set_deflate(4)
                name = f"{size}{order}{'' if chunks is None else 'z'}"
                made = h5py.h5d.create(file.id, name.encode(), getattr(h5t, f"COMPLEX_IEEE_{size}{order}"), h5s.create_simple((3,)), layout)
                made.write(h5s.ALL, h5s.ALL, data, native)
                expected[f"/{name}"] = ["3", data.dtype.str, hashlib.sha256(data.tobytes()).hexdigest()]
    found = [line.split("\t") for line in thalweg("read", path, "--digest").stdout.splitlines()]
    assert {row[0]: row[1:] for row in found} == expected


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_an_object_that_cannot_be_read_does_not_hide_the_others(thalweg, tmp_path, libver):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for name in ("a", "group/bad", "group/z", "worse/x"):
            file[name] = np.arange(10)
        places = [h5py.h5o.get_info(file[name].id).addr for name in ("group/bad", "worse")]
    stored = bytearray(path.read_bytes())
    for place in places:
        stored[place : place + 8] = b"\xff" * 8
    path.write_bytes(stored)
    digest = hashlib.sha256(np.arange(10).tobytes()).hexdigest()
    for verb in ("read", "info", "doctor"):
        done = thalweg(verb, path, *(["--digest"] if verb == "read" else []), check=False)
        assert done.returncode == 1, (verb, done.stderr)
        assert "/group/bad" in done.stderr and "/worse" in done.stderr, (verb, done.stderr)
        assert "/a" in done.stdout and "/group/z" in done.stdout, (verb, done.stdout)
    assert thalweg("read", path, "/group/z", "/a", "--digest").stdout == f"/group/z\t10\t<i8\t{digest}\n/a\t10\t<i8\t{digest}\n"
    for bad in ("/group/bad", "/group", "/worse/x", "/g*/bad"):
        assert thalweg("read", path, bad, "--digest", check=False).returncode == 1, bad
    out = tmp_path / "out.npy"
    done = thalweg("read", path, "--out", out, check=False)
    assert done.returncode == 1 and (np.load(out / "a.npy") == np.arange(10)).all()


def test_a_dataset_that_is_asked_for_and_not_read_is_a_failure(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file["group/number"] = 1
        file.create_dataset("group/lists", (3,), h5py.vlen_dtype("<i4"))
    for verb in (["--digest"], ["--json"], []):
        done = thalweg("read", path, "/group/lists", *verb, check=False)
        assert done.returncode == 1 and "/group/lists: not read: lists" in done.stderr
    # What lies beside it in the file is no failure.
    assert "not read" in thalweg("read", path, "--digest").stderr


def test_unlimited_virtual_datasets(thalweg, tmp_path):
    """How long they are, their sources say: in other files, or not at all."""
    with h5py.File(tmp_path / "source.h5", "w") as file:
        data = np.arange(12, dtype="<i4").reshape(3, 4)
        file.create_dataset("d", data=data, maxshape=(None, 4), chunks=(2, 4))
    path, out = tmp_path / "f.h5", tmp_path / "out.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("own", data=np.arange(50), chunks=(7,))
        layout = h5py.VirtualLayout((3, 4), "<i4", maxshape=(None, 4))
        source = h5py.VirtualSource("source.h5", "d", (3, 4), maxshape=(None, 4))
        layout[0 : h5py.h5s.UNLIMITED, :] = source[0 : h5py.h5s.UNLIMITED, :]
        file.create_virtual_dataset("v", layout)
    wanted = same(thalweg, path)
    assert len(wanted) == 2
    if not WITHOUT_LIBHDF5:
        thalweg("convert", "--repack", path, out, "--verify")
        assert same(thalweg, out) == wanted
    thalweg("index", path)
    assert same(thalweg, path) == wanted and "chunks from" in thalweg("info", path).stdout
