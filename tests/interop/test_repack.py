"""`thalweg convert --repack`: another file with the same in it, in the eyes of h5py and h5diff."""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import time

import h5py
import hdf5plugin
import numpy as np
import pytest

from hdf5_rows import h5pys_library
from hdf5_same import same
from nanopore import SHARED
from test_arrays import FILES, HUGE, SOUND, sz3_and_gzip, values

WISHES = {
    "order": [],
    "none": ["--chunk", "64Ki", "--filter", "none"],
    "gzip": ["--chunk", "4Ki", "--filter", "shuffle+gzip:4"],
    "zstd": ["--filter", "zstd:3+fletcher32"],
    "lz4": ["--filter", "shuffle+lz4", "--libver", "v110"],
}
# For every dataset, however small: `/` names all.
EVERY = {name: [f"/={word}" if wish[i - 1] in ("--chunk", "--filter") else word for i, word in enumerate(wish)] for name, wish in WISHES.items()}


@pytest.fixture(scope="session")
def h5diff():
    found = shutil.which("h5diff")
    if not found:
        if os.environ.get("CI"):
            pytest.fail("h5diff is missing (Debian: hdf5-tools)")
        pytest.skip("h5diff is missing (Debian: hdf5-tools)")

    def call(a, b):
        # It reads neither all that libhdf5 1.12 and newer make, nor through filters without their plugins: such a file differs from
        # its copy, too.
        copy = f"{b}.copy"
        shutil.copyfile(a, copy)
        baseline = subprocess.run([found, "-q", a, copy], capture_output=True).returncode
        os.remove(copy)
        if baseline != 0:
            return False
        result = subprocess.run([found, "-q", a, b], capture_output=True, text=True)
        assert result.returncode == 0, (result.returncode, result.stdout, result.stderr)
        return True

    return call


def repack(thalweg, path, out, *arguments, **options):
    return json.loads(thalweg("convert", "--force", "--repack", path, out, "--json", *arguments, **options).stdout)


# libhdf5 2 refuses its heap of 104 bytes, and so does thalweg.
REFUSED = "var-length-strings-reused.hdf5"
REAL = [path for path in SOUND if path.name not in (REFUSED, HUGE)]


@pytest.mark.long
@pytest.mark.parametrize("wish", EVERY)
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files(thalweg, shared, tmp_path, path, wish):
    out = tmp_path / "out.h5"
    report = repack(thalweg, path, out, "--verify", *EVERY[wish])
    assert same(path, out) == report["objects"] or report["objects"] > 0
    assert os.listdir(tmp_path) == ["out.h5"]


def test_other_files_stay_as_they_are(thalweg, tmp_path):
    """libhdf5 would open external files and files that references name by itself, for writing even."""
    (tmp_path / "home").mkdir()
    victim = tmp_path / "victim"
    victim.write_bytes(b"A" * 64)
    path = tmp_path / "home/f.h5"
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(3)
        outside = [(str(victim), 0, 64)]
        file.create_dataset("references", (8,), h5py.ref_dtype, external=outside)
        file.create_dataset("compound", (2,), np.dtype([("r", h5py.ref_dtype), ("s", "S24")]), external=outside)
        file.create_dataset("strings", (4,), h5py.string_dtype(), external=outside)
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_external(*(str(victim).encode(), 0, 64))
        early.set_fill_value(np.array(7, "<i4"))
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        h5py.h5d.create(file.id, b"early", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((16,)), early)
    victim.write_bytes(b"A" * 64)
    for arguments in ([], ["--chunk", "/=contiguous"], ["--filter", "/=gzip"]):
        thalweg("convert", "--force", "--repack", path, path.with_name("o.h5"), *arguments, check=False)
        assert victim.read_bytes() == b"A" * 64, arguments
    assert sorted(os.listdir(tmp_path)) == ["home", "victim"]


def test_references_of_libhdf5_1_12(thalweg, tmp_path):
    """h5py does not know them (`H5T_STD_REF`). Those into another file are refused."""
    library = h5pys_library()
    number = ctypes.c_int64
    for name in ("H5Dcreate2", "H5Dopen2", "H5Ropen_object", "H5Ropen_region", "H5Ropen_attr"):
        getattr(library, name).restype = number
    kind = number(number.in_dll(library, "H5T_STD_REF_g").value)
    none, size = number(0), 64
    buffer = (ctypes.c_uint8 * (4 * size))()
    with h5py.File(tmp_path / "other.h5", "w", libver="latest") as file:
        file["x"] = np.arange(4)
    before = (tmp_path / "other.h5").read_bytes()
    for name in ("own", "other"):
        path, out = tmp_path / f"of_{name}.h5", tmp_path / "o.h5"
        with h5py.File(path, "w") as file, h5py.File(tmp_path / "other.h5") as other:
            file["a"], file["x"] = np.arange(3), np.arange(5)
            file["x"].attrs["unit"] = "K"
            target = number((file if name == "own" else other).id.id)
            region = h5py.h5s.create_simple((5,))
            region.select_hyperslab((1,), (2,), (2,))
            at = [ctypes.byref(buffer, size * i) for i in range(4)]
            assert library.H5Rcreate_object(target, b"/x", none, at[0]) >= 0
            assert library.H5Rcreate_region(target, b"/x", number(region.id), none, at[1]) >= 0
            assert library.H5Rcreate_attr(target, b"/x", b"unit", none, at[2]) >= 0
            space = h5py.h5s.create_simple((4,))
            made = number(library.H5Dcreate2(number(file.id.id), b"r", kind, number(space.id), none, none, none))
            assert library.H5Dwrite(made, kind, none, none, none, buffer) >= 0
            for one in at[:3]:
                library.H5Rdestroy(one)
            library.H5Dclose(made)
        result = thalweg("convert", "--repack", path, out, check=False)
        if name == "other":
            assert result.returncode == 1 and "/r" in result.stderr and "a reference into another file is not copied" in result.stderr
            continue
        assert result.returncode == 0, result.stderr
        with h5py.File(out) as file:
            opened = number(library.H5Dopen2(number(file.id.id), b"r", none))
            assert library.H5Dread(opened, kind, none, none, none, buffer) >= 0
            found = number(library.H5Ropen_object(at[0], none, none))
            assert h5py.Dataset(h5py.h5d.DatasetID(found.value)).shape == (5,)
            region = h5py.h5s.SpaceID(library.H5Ropen_region(at[1], none, none))
            assert region.get_select_npoints() == 2 and region.get_select_bounds() == ((1,), (3,))
            attribute = h5py.h5a.AttrID(library.H5Ropen_attr(at[2], none, none))
            assert attribute.name == b"unit"
            assert bytes(buffer[3 * size :]) == bytes(size), "a null reference"
            for one in at[:3]:
                library.H5Rdestroy(one)
            library.H5Dclose(opened)
        out.unlink()
    assert (tmp_path / "other.h5").read_bytes() == before


def test_a_damaged_file_is_refused_with_every_layout(thalweg, tmp_path, shared):
    """Its first dataset can be copied with another chunk only. The next one has damaged attributes, which made libhdf5 crash."""
    path = tmp_path / "f.h5"
    shutil.copyfile(SHARED.parent / "hostile/segv_repack_kerchunk.nc", path)
    with h5py.File(path, "r+") as file:
        file.create_dataset("!a", (40_000,), "i4", chunks=(20_000,))
    data = path.read_bytes()
    pattern = np.array([20_000, 4], "<u4").tobytes()
    assert data.count(pattern) == 1
    path.write_bytes(data.replace(pattern, np.array([50_000, 4], "<u4").tobytes()))
    for arguments in ([], ["--chunk", "1000"], ["--chunk", "/=1000"]):
        result = thalweg("convert", "--force", "--repack", path, tmp_path / "o.h5", *arguments, check=False)
        where = "/lat, byte 22132" if arguments else "/!a"
        assert result.returncode == 1 and where in result.stderr, (result.returncode, result.stderr)
    assert os.listdir(tmp_path) == ["f.h5"]


def test_virtual_datasets_in_another_folder(thalweg, tmp_path):
    """The copy would look for the sources beside itself, and show fill values."""
    home, far = tmp_path / "home", tmp_path / "far"
    home.mkdir(), far.mkdir()
    with h5py.File(home / "source.h5", "w") as file:
        file["x"] = np.arange(10)
    with h5py.File(home / "f.h5", "w") as file:
        layout = h5py.VirtualLayout((10,), "i8")
        layout[:] = h5py.VirtualSource("source.h5", "x", (10,))
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    result = thalweg("convert", "--repack", home / "f.h5", far / "f.h5", check=False)
    assert result.returncode == 1 and "/v, whose values are in source.h5 beside the original" in result.stderr
    assert os.listdir(far) == []
    report = repack(thalweg, home / "f.h5", home / "copy.h5", "--verify")
    assert report["datasets_compared"] == 1
    with h5py.File(home / "copy.h5") as file:
        assert (file["v"][()] == np.arange(10)).all()


def test_many_elements_that_are_not_stored(thalweg, tmp_path):
    """Only stored chunks are copied."""
    path, out = tmp_path / "f.h5", tmp_path / "o.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("strings", (1 << 40,), h5py.string_dtype(), chunks=(1000,))
        made[5_000_500:5_000_502] = ["a", "b"]
        file.create_dataset("none", (1 << 40,), h5py.string_dtype(), chunks=(1000,))
        numbers = file.create_dataset("numbers", (1 << 40,), "u1", chunks=(1000,))
        numbers[5_000_500] = 7
    # --verify does not count through fill values.
    assert repack(thalweg, path, out, "--verify")["datasets_compared"] == 0
    with h5py.File(out) as file:
        assert list(file["strings"][5_000_499:5_000_503]) == [b"", b"a", b"b", b""]
        assert file["strings"].shape == file["none"].shape == (1 << 40,)
        assert list(file["numbers"][5_000_499:5_000_502]) == [0, 7, 0]
    assert out.stat().st_size < 1 << 20


def test_filters_of_strings_are_applied_again(thalweg, tmp_path):
    path, out = tmp_path / "f.h5", tmp_path / "o.h5"
    texts = [f"text {n}" for n in range(100_000)]
    with h5py.File(path, "w") as file:
        # A chunk of 1.6 MB is written in two pieces.
        for name, coded in {"gzip": {"compression": "gzip", "shuffle": True}, "zstd": dict(hdf5plugin.Zstd()), "lzf": {"compression": "lzf"}}.items():
            file.create_dataset(name, data=texts, dtype=h5py.string_dtype(), chunks=(100_000,), **coded)
    assert repack(thalweg, path, out, "--verify")["datasets_compared"] == 3
    with h5py.File(out) as file:
        for name in file:
            assert list(file[name].asstr()[()]) == texts
            chunk = file[name].id.get_chunk_info(0)
            # libhdf5 does not know the size of elements for shuffle, so h5py's chunk skips it. LZF is only undone here.
            assert chunk.filter_mask == (1 if name == "lzf" else 0), name
            assert (chunk.size < 1_600_000) == (name != "lzf")


def test_chunks_with_an_unknown_filter_are_copied(thalweg, tmp_path):
    path, out = tmp_path / "f.h5", tmp_path / "o.h5"
    sz3_and_gzip(path)
    report = repack(thalweg, path, out, "--filter", "/=gzip")
    assert ["/sz3"] == [row["path"] if isinstance(row, dict) else row[0] for row in report["kept"]]
    with h5py.File(path) as before, h5py.File(out) as after:
        assert all((after[name][()] == before[name][()]).all() for name in ("sz3", "other"))


def test_sparse_files_stay_small(thalweg, shared, tmp_path):
    for path in (path for path in SOUND if path.name == HUGE):
        report = repack(thalweg, path, tmp_path / "out.h5")
        assert report["bytes_after"] < 2 * report["bytes_before"] + 65536


def test_only_existing_chunks_take_room(thalweg, tmp_path):
    """The index that libhdf5 1.10 makes for a dataset of limited length has an entry for each chunk that there may ever be."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("far", data=np.arange(10.0), chunks=(1,), maxshape=(10**11,))
        file.create_dataset("near", data=np.arange(10.0), chunks=(1,), maxshape=(100,))
        file.create_dataset("words", data=["one", "two"], chunks=(1,), maxshape=(10**11,))
    for wish in ([], ["--chunk", "/=4", "--filter", "/=gzip:1"]):
        report = repack(thalweg, tmp_path / "a.h5", tmp_path / "b.h5", "--libver", "v110", "--verify", *wish)
        assert report["bytes_after"] < 65536
        assert same(tmp_path / "a.h5", tmp_path / "b.h5") == report["objects"]
        assert b"FAHD" in (tmp_path / "b.h5").read_bytes()
        (tmp_path / "b.h5").unlink()


@pytest.mark.parametrize("wish", [[], ["--chunk", "/=64"], ["--filter", "/=gzip:1"]], ids=["order", "chunk", "filter"])
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_indexes_are_of_the_version_that_is_asked_for(thalweg, tmp_path, libver, wish):
    """A B-tree of version 1 before libhdf5 1.10; else a fixed array where lengths are limited, an extensible one where one is not."""
    with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
        for name, most in ("fixed", (1000,)), ("grows", (None,)):
            file.create_dataset(name, data=np.arange(1000), chunks=(16,), maxshape=most)
        file.create_dataset("words", data=[str(i) for i in range(100)], chunks=(16,), maxshape=(1000,))
    for asked in "earliest", "v110", "keep":
        out = tmp_path / f"{asked}.h5"
        repack(thalweg, tmp_path / "a.h5", out, "--libver", asked, *wish)
        arrays = {mark for mark in (b"FAHD", b"EAHD") if mark in out.read_bytes()}
        is_new = asked == "v110" or (asked, libver) == ("keep", "latest")
        assert arrays == ({b"FAHD", b"EAHD"} if is_new else set()), asked
        with h5py.File(tmp_path / "a.h5") as old, h5py.File(out) as new:
            for name in old:
                assert (old[name][()] == new[name][()]).all() and old[name].maxshape == new[name].maxshape, (asked, name)


@pytest.mark.long
@pytest.mark.parametrize("path", [p for p in REAL if p.stat().st_size < 1 << 20], ids=lambda path: path.name)
def test_h5diff_finds_no_difference(thalweg, shared, tmp_path, h5diff, path):
    for wish in ("order", "gzip"):
        out = tmp_path / f"{wish}.h5"
        repack(thalweg, path, out, *EVERY[wish])
        if not h5diff(path, out):
            pytest.skip("h5diff finds this file different from its copy")


def live(path, banks=8, chunk=512, rounds=40, seed=1, **coded):
    """A file as a run writes it: chunks of many banks in the order of their arrival."""
    noise = np.random.default_rng(seed)
    with h5py.File(path, "w", libver="earliest", rdcc_nbytes=0) as file:
        sets = []
        for bank in range(banks):
            group = file.create_group(f"entry/bank{bank}_events", track_order=bank % 2 == 0)
            group.attrs["NX_class"] = "NXevent_data"
            for name, dtype in (("event_id", "u4"), ("event_time_offset", "f4")):
                sets.append(group.create_dataset(name, (0,), dtype, maxshape=(None,), chunks=(chunk,), **coded))
        for _ in range(rounds):
            for which in noise.permutation(len(sets)):
                data = sets[which]
                more = int(noise.integers(1, 2 * chunk))
                at = len(data)
                data.resize((at + more,))
                data[at:] = noise.integers(0, 1000, more).astype(data.dtype)
    return path


@pytest.mark.parametrize("coded", [{}, {"compression": "gzip"}, {"compression": "lzf", "shuffle": True, "fletcher32": True}])
@pytest.mark.parametrize("wish", WISHES)
def test_live_files(thalweg, tmp_path, h5diff, coded, wish):
    path, out = live(tmp_path / "live.h5", **coded), tmp_path / "out.h5"
    report = repack(thalweg, path, out, "--verify", *EVERY[wish])
    same(path, out)
    if wish in ("order", "none", "gzip") and coded.get("compression") != "lzf":
        assert h5diff(path, out)
    info = json.loads(thalweg("info", out, "--json").stdout)
    for row in info["datasets"]:
        # Between chunks of a dataset there may be a part of an index, not a chunk of another.
        assert row["in_order"] is None or (1 - row["in_order"]) * (row["chunks"] - 1) < max(1.01, row["chunks"] / 10), row
    assert report["datasets_compared"] == 16
    with h5py.File(out, "r+") as file:
        data = file["entry/bank0_events/event_id"]
        before = data[()]
        data.resize((len(before) + 100,))
        assert (data[: len(before)] == before).all() and (data[len(before) :] == 0).all()


def test_shapes_fills_and_gaps(thalweg, tmp_path, h5diff):
    """Chunks that were never written stay so where they can, and read as the fill value where they cannot."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        for number, (shape, chunk) in enumerate([((1000,), (96,)), ((37, 53), (7, 11)), ((5, 6, 70), (2, 6, 64)), ((200, 9), (10, 9))]):
            for fill in (0, 7):
                data = file.create_dataset(f"{number}/{fill}", shape, "<i4", chunks=chunk, maxshape=(None,) * len(shape), fillvalue=fill)
                data[shape[0] // 2 :] = values("<i4", (shape[0] - shape[0] // 2, *shape[1:]))
            file[f"{number}/run"] = values(">f8", shape)
        file.create_dataset("nothing", (10, 10), chunks=(5, 5), fillvalue=3.5)
        file.create_dataset("unwritten", (1 << 40,), "u1", fillvalue=3)
        file.create_dataset("hardly", (1 << 40,), "u1", chunks=(1 << 16,))[1 << 39] = 1
    for wish in (["--chunk", "/=64"], ["--chunk", "/1=5x13", "--filter", "/1=gzip"], ["--chunk", "/2=4x5x7"], ["--filter", "/=shuffle+zstd"]):
        out = tmp_path / "out.h5"
        repack(thalweg, path, out, *wish, "--memory", "8MiB")
        with h5py.File(path) as a, h5py.File(out) as b:
            for name in [f"{i}/{j}" for i in range(4) for j in (0, 7, "run")] + ["nothing"]:
                assert a[name][()].tobytes() == b[name][()].tobytes(), (wish, name)
            assert b["hardly"].id.get_num_chunks() == 1 and b["hardly"][1 << 39] == 1
    with h5py.File(out, "r+") as file:
        # What is beyond the edge of a chunk is the fill value once it can be seen.
        file["1/7"].resize((40, 60))
        assert (file["1/7"][37:] == 7).all() and (file["1/7"][:, 53:] == 7).all()


def test_short_addresses_are_refused(thalweg, tmp_path):
    """libhdf5 2 goes round in circles, or gives up, with new chunks in such files."""
    path = tmp_path / "in.h5"
    sizes = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    sizes.set_sizes(4, 4)
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, sizes)) as file:
        file.create_dataset("d", data=values("<i4", (300, 50)), chunks=(3, 7), maxshape=(None, None))
    result = thalweg("convert", "--force", "--repack", path, tmp_path / "out.h5", "--chunk", "/=16x16", check=False, timeout=600)
    assert result.returncode == 1 and "addresses of 4 bytes" in result.stderr
    assert os.listdir(tmp_path) == ["in.h5"]


def test_contiguous(thalweg, tmp_path):
    path, out = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("a", data=values("<u4", (100_000,)), chunks=(1000,), compression="gzip")
        file.create_dataset("b", data=values("<u4", (300, 200)), chunks=(30, 30))
        file.create_dataset("grows", data=values("<u4", (100_000,)), chunks=(1000,), maxshape=(None,))
    report = repack(thalweg, path, out, "--chunk", "contiguous", "--verify")
    same(path, out)
    assert [kept["path"] for kept in report["kept"]] == ["/grows"]
    with h5py.File(out) as file:
        assert file["a"].chunks is None and file["b"].chunks is None and file["grows"].chunks == (1000,)
    result = thalweg("convert", "--force", "--repack", path, out, "--chunk", "grows=contiguous", check=False)
    assert result.returncode == 2 and "/grows" in result.stderr


def test_everything_else_is_kept(thalweg, tmp_path, h5diff):
    path, out = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(path, "w", libver="latest", userblock_size=1024, track_order=True) as file:
        file["type"] = np.dtype([("a", "<i4"), ("b", "S3")])
        file["z"] = np.arange(20.0).reshape(4, 5)
        file["a"] = h5py.SoftLink("/nowhere")
        file["m"] = h5py.ExternalLink("other.h5", "/x")
        group = file.create_group("g", track_order=True)
        for name in ("c", "a", "b"):
            group.attrs[name] = name
        group["loop"] = file["/"]
        group["z again"] = file["z"]
        named = file["type"]
        file.create_dataset("named", (3,), named)[:] = [(1, b"a"), (2, b"bc"), (3, b"def")]
        file["g"].attrs.create("named", np.array([(5, b"x")], named.dtype), dtype=named)
        file["words"] = ["any", "length", ""]
        file.create_dataset("lists", (3,), h5py.vlen_dtype("i4"))[1] = [1, 2, 3]
        file.create_dataset("refs", data=[file["z"].ref, file["g"].ref], dtype=h5py.ref_dtype)
        file.create_dataset("regions", (1,), h5py.regionref_dtype)[0] = file["z"].regionref[1:3, 2]
        file.create_dataset("ref lists", (2,), h5py.vlen_dtype(h5py.ref_dtype))[0] = np.array([file["z"].ref, file["named"].ref], h5py.ref_dtype)
        for name in ("x", "y"):
            file[name] = np.arange(4 if name == "x" else 5)
            file[name].make_scale(name)
        file["z"].dims[0].attach_scale(file["x"])
        file["z"].dims[1].attach_scale(file["y"])
        file["z"].dims[0].label = "along"
        file["z"].attrs["empty"] = h5py.Empty("f4")
        file["z"].attrs["π"] = "ß"
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32BE, h5py.h5s.create_simple((4,)), compact).write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(4, dtype="<i4"))
        layout = h5py.VirtualLayout((4,), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "v", shape=(4,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("blosc", data=values("<i4", (1000,)), chunks=(100,), **hdf5plugin.Blosc())
        # Another order than the datasets were made in, beyond what stays in a header.
        for i in range(40):
            file.create_group(f"many/{(i * 7) % 40}").attrs["i"] = i
    with open(path, "r+b") as file:
        file.write(b"the user's own words")
    report = repack(thalweg, path, out, "--verify", "--filter", "/=gzip")
    same(path, out)
    h5diff(path, out)
    assert report["references_cleared"] == 0
    # All but references, regions and lists of references.
    assert report["datasets_compared"] == 9
    with h5py.File(out) as file:
        assert file["z"].dims[0][0] == file["x"] and file["z"].dims[1]["y"] == file["y"]
        assert file["refs"][0] and file[file["refs"][0]] == file["z"] and file[file["refs"][1]] == file["g"]
        assert file[file["ref lists"][0][1]] == file["named"]
        assert file[file["regions"][0]][file["regions"][0]].ravel().tolist() == [7, 12]
        assert file["x"].attrs["REFERENCE_LIST"][0][0] and file[file["x"].attrs["REFERENCE_LIST"][0][0]] == file["z"]
        assert file["virtual"].virtual_sources()[0].dset_name == "v"


def test_how_objects_are_stored_is_kept(thalweg, tmp_path):
    """Properties of the file, of groups and of datasets that h5py's interface has no names for."""
    path, out = tmp_path / "in.h5", tmp_path / "out.h5"
    make = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    make.set_file_space_strategy(h5py.h5f.FSPACE_STRATEGY_PAGE, True, 10)
    make.set_file_space_page_size(8192)
    make.set_attr_phase_change(3, 2)
    library = h5pys_library()
    number = ctypes.c_int64
    # Types of 40 bytes and more, and fill values, are shared.
    assert library.H5Pset_sym_k(number(make.id), 7, 9) >= 0 and library.H5Pset_istore_k(number(make.id), 21) >= 0
    assert library.H5Pset_shared_mesg_nindexes(number(make.id), 2) >= 0
    assert library.H5Pset_shared_mesg_index(number(make.id), 0, 1 << 3, 40) >= 0
    assert library.H5Pset_shared_mesg_index(number(make.id), 1, 1 << 5, 10) >= 0
    assert library.H5Pset_shared_mesg_phase_change(number(make.id), 20, 10) >= 0
    record = np.dtype([(f"field {n}", "<f8") for n in range(6)])
    with h5py.File(h5py.h5f.create(bytes(path), h5py.h5f.ACC_TRUNC, make)) as file:
        group = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
        group.set_obj_track_times(False)
        group.set_attr_phase_change(5, 1)
        assert library.H5Pset_link_phase_change(number(group.id), 2, 1) >= 0
        group.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED)
        made = h5py.Group(h5py.h5g.create(file.id, b"group", gcpl=group))
        for name in ("c", "a", "b"):
            made.create_dataset(name, data=np.zeros(3, record))
        h5py.h5o.set_comment(made.id, b"a comment")
        h5py.h5o.set_comment(file["group/a"].id, b"another")
        file.create_dataset("text", (5,), h5py.string_dtype(), fillvalue="none")
        file["text"][2] = "some"
        file["lists"] = np.arange(4)
        file.create_dataset("regions", (3,), h5py.regionref_dtype)
        grid = file.create_dataset("grid", data=np.arange(60).reshape(6, 10))
        file["regions"][0] = grid.regionref[[1, 3, 4], 2:5]
        points = grid.id.get_space()
        points.select_elements([(5, 5), (0, 9), (2, 2)])
        file["regions"][1] = h5py.h5r.create(grid.id, b".", h5py.h5r.DATASET_REGION, points)
        for alloc, fill in (("EARLY", "ALLOC"), ("LATE", "NEVER"), ("INCR", "IFSET")):
            create = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            create.set_alloc_time(getattr(h5py.h5d, f"ALLOC_TIME_{alloc}"))
            create.set_fill_time(getattr(h5py.h5d, f"FILL_TIME_{fill}"))
            create.set_fill_value(np.array(7, "<i4"))
            create.set_obj_track_times(True)
            h5py.h5d.create(file.id, f"filled {alloc}".encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple((100,)), create)
        undefined = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        assert library.H5Pset_fill_value(number(undefined.id), number(h5py.h5t.STD_I32LE.id), None) >= 0
        h5py.h5d.create(file.id, b"undefined", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((100,)), undefined)
    repack(thalweg, path, out, "--verify")
    same(path, out)
    with h5py.File(path) as a, h5py.File(out) as b:
        before, after = (file.id.get_create_plist() for file in (a, b))
        assert after.get_file_space_strategy() == before.get_file_space_strategy()
        assert after.get_file_space_page_size() == before.get_file_space_page_size() == 8192
        assert b["/"].id.get_create_plist().get_attr_phase_change() == (3, 2)
        one, two = ctypes.c_uint(), ctypes.c_uint()
        for name, expected in {"H5Pget_sym_k": (7, 9), "H5Pget_shared_mesg_phase_change": (20, 10)}.items():
            assert getattr(library, name)(number(after.id), ctypes.byref(one), ctypes.byref(two)) >= 0
            assert (one.value, two.value) == expected, name
        for index, expected in enumerate([(1 << 3, 40), (1 << 5, 10)]):
            assert library.H5Pget_shared_mesg_index(number(after.id), index, ctypes.byref(one), ctypes.byref(two)) >= 0
            assert (one.value, two.value) == expected
        before, after = (file["group"].id.get_create_plist() for file in (a, b))
        assert after.get_attr_phase_change() == before.get_attr_phase_change() == (5, 1) and not after.get_obj_track_times()
        assert after.get_link_creation_order() == before.get_link_creation_order()
        assert library.H5Pget_link_phase_change(number(after.id), ctypes.byref(one), ctypes.byref(two)) >= 0 and (one.value, two.value) == (2, 1)
        for name, comment in {"group": b"a comment", "group/a": b"another", "grid": b""}.items():
            text = ctypes.create_string_buffer(20)
            assert library.H5Oget_comment(number(b[name].id.id), text, number(20)) >= 0 and text.value == comment
        assert list(b["text"].asstr()) == ["none", "none", "some", "none", "none"]
        for number_of, reference in enumerate(a["regions"][:2]):
            old, new = (h5py.h5r.get_region(file["regions"][number_of], file.id) for file in (a, b))
            kind = "get_select_elem_pointlist" if number_of else "get_select_hyper_blocklist"
            assert (getattr(old, kind)() == getattr(new, kind)()).all()
        for name in ("filled EARLY", "filled LATE", "filled INCR"):
            before, after = (file[name].id.get_create_plist() for file in (a, b))
            assert (after.get_alloc_time(), after.get_fill_time()) == (before.get_alloc_time(), before.get_fill_time()), name


def test_memory_changes_the_number_of_passes_not_the_values(thalweg, tmp_path):
    path = live(tmp_path / "live.h5", banks=20, chunk=2048, rounds=30)
    outs = []
    for memory in ("4MiB", "192MiB"):
        outs.append(tmp_path / f"{memory}.h5")
        report = repack(thalweg, path, outs[-1], "--chunk", "/=64Ki", "--filter", "/=gzip:1", "--memory", memory, "--verify")
        assert (report["passes"] > 1) == (memory == "4MiB"), report["passes"]
    same(*outs)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_bytes(thalweg, tmp_path, threads):
    """But for the times that objects keep."""
    path = live(tmp_path / "live.h5")
    outs = [tmp_path / f"{i}.h5" for i in range(2)]
    for out in outs:
        repack(thalweg, path, out, "--chunk", "/=4Ki", "--filter", "/=gzip", "--threads", threads)
    a, b = (np.fromfile(out, "u1") for out in outs)
    assert a.size == b.size


def test_usage(thalweg, tmp_path):
    path, out = live(tmp_path / "live.h5", banks=1, rounds=2), tmp_path / "out.h5"
    for arguments in (["--chunk", "x"], ["--filter", "szip"], ["--chunk", "/entry/bank0_events/event_id=2x2"]):
        result = thalweg("convert", "--force", "--repack", path, out, *arguments, check=False)
        assert result.returncode == 2, result.stderr
    assert thalweg("convert", "--repack", path, path, check=False).returncode == 2
    assert thalweg("convert", "--force", "--repack", tmp_path / "none.h5", out, check=False).returncode == 1
    assert sorted(os.listdir(tmp_path)) == ["live.h5"]


def test_hostile_files_end_in_errors(thalweg, shared, tmp_path):
    for path in (path for path in FILES if "cve" in path.parts or "fuzz" in path.parts):
        result = thalweg("convert", "--force", "--repack", path, tmp_path / "out.h5", check=False)
        assert result.returncode in (0, 1), (path, result.returncode, result.stderr)
        if result.returncode:
            assert str(path) in result.stderr, result.stderr
            assert not any("out.h5" in name for name in os.listdir(tmp_path) if name != "out.h5")


@pytest.mark.parametrize("seed", range(3))
def test_damage_ends_in_errors(thalweg, tmp_path, seed):
    noise = np.random.default_rng(seed)
    path = live(tmp_path / "live.h5", banks=2, rounds=5, compression="gzip", fletcher32=True)
    sound = path.read_bytes()
    for _ in range(20):
        damaged = bytearray(sound)
        for at in noise.integers(0, len(sound), 3):
            damaged[at] ^= 1 << int(noise.integers(8))
        path.write_bytes(damaged[: int(noise.integers(len(sound) // 2, len(sound) + 1))])
        result = thalweg("convert", "--force", "--repack", path, tmp_path / "out.h5", "--filter", "/=none", check=False)
        assert result.returncode in (0, 1), (result.returncode, result.stderr)


def test_an_interrupted_repack_leaves_nothing(thalweg_binary, tmp_path):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=values("<u4", (4 << 20,)), chunks=(4096,))
    process = subprocess.Popen(
        [thalweg_binary, "convert", "--force", "--repack", path, tmp_path / "out.h5", "--filter", "gzip:9", "--throttle", "bandwidth=2MB/s"],
        stderr=subprocess.DEVNULL,
    )
    # Once something is written; the throttle leaves eight seconds for that.
    while len(os.listdir(tmp_path)) == 1 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(600) == 130
    assert os.listdir(tmp_path) == ["in.h5"]


def test_large_files_are_written_in_slots(thalweg, h5diff, tmp_path):
    """More than is left to the page cache, of datasets that lie scattered, with ends that fill no slot."""
    path, out = live(tmp_path / "live.h5", banks=9, chunk=2048, rounds=550), tmp_path / "out.h5"
    assert path.stat().st_size > 64 << 20
    for memory in ("192MiB", "4MiB"):
        subprocess.run(["sync", path], check=True)
        thalweg("evict", path, check=False)
        repack(thalweg, path, out, "--chunk", "64Ki", "--memory", memory, "--verify")
        assert same(path, out) and h5diff(path, out)
