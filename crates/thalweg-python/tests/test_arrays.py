"""Arrays of HDF5 files, against h5py."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import thalweg

h5py = pytest.importorskip("h5py")
BANK = "/entry/bank1_events/event_id"


def test_arrays_are_those_of_h5py(files):
    ours = thalweg.open(files / "run.nxs")
    with h5py.File(files / "run.nxs") as theirs:
        for path, values in ours.read().items():
            other = theirs[path]
            assert values.shape == other.shape, path
            assert np.array_equal(values, other[()]), path
            assert ours[path].chunks == other.chunks, path
        assert len(ours.find("/entry/bank*_events/event_id")) == 4
        array = ours[BANK]
        assert array.dtype == theirs[BANK].dtype and array.nbytes == theirs[BANK].nbytes
        units = "/entry/bank1_events/event_time_offset"
        assert ours[units].attrs["units"] == theirs[units].attrs["units"].decode()


@pytest.mark.parametrize(
    "key",
    [
        slice(10, 20),
        slice(None, None, 7),
        slice(-5, None),
        3,
        -1,
        Ellipsis,
        slice(5, 5),
        (slice(2, 90, 4),),
        [3, 5, 900, 901],
        np.array([7]),
        [],
    ],
)
def test_slices_are_those_of_h5py(files, key):
    with h5py.File(files / "run.nxs") as theirs:
        expected = theirs[BANK][key]
        found = thalweg.open(files / "run.nxs")[BANK][key]
        assert np.array_equal(found, expected) and np.shape(found) == np.shape(expected)


def test_slices_of_more_dimensions(tmp_path):
    values = np.arange(2 * 30 * 17, dtype=">i4").reshape(2, 30, 17)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(1, 8, 5), compression="gzip")
        file["one"] = 3.5
        file["text"] = "a word"
        file["g/link"] = h5py.SoftLink("/a")
        file["odd"] = file["a"].ref
    file = thalweg.open(tmp_path / "a.h5")
    for key in [(1, slice(3, 25, 4)), (Ellipsis, 2), (slice(None), -1, slice(1, 16, 5)), (0, 0, 0), (0, Ellipsis)]:
        assert np.array_equal(file["a"][key], values[key]), key
    assert file["one"][()] == 3.5
    assert np.asarray(file["a"]).sum() == values.sum()
    for key in [(0, 0, 0, 0), 2, (Ellipsis, Ellipsis), (0, [30]), (0, np.zeros(29, bool))]:
        with pytest.raises(IndexError):
            file["a"][key]
    for key in ["word", 1.5, ([0], [0]), (0, [1.5]), None]:
        with pytest.raises((TypeError, ValueError)):
            file["a"][key]
    assert file["text"][()] == b"a word" and file["text"].asstr()[()] == "a word"
    with pytest.raises(thalweg.UnsupportedError, match="/odd"):
        file["odd"][()]
    assert "not read" in repr(file["odd"])
    with pytest.warns(UserWarning, match="odd"):
        assert sorted(file.read()) == ["/a", "/one", "/text"]
    with pytest.raises(KeyError):
        file["none"]
    assert "a" in file and "none" not in file
    assert file["g/link"] == file["a"] and list(file["g"]) == ["link"]


LISTS = [
    (0, [1, 4, 8], slice(None)),
    (slice(None), slice(2, 30, 9), [0, 1, 16]),
    ([1], 3, 4),
    (1, 2, [3, 4, 9]),
    (slice(None), np.arange(30) % 7 == 2),
    (Ellipsis, np.arange(17) > 20),
]


@pytest.mark.parametrize("chunks", [None, (1, 8, 5), (2, 30, 17)])
def test_lists_and_masks_are_those_of_h5py(tmp_path, chunks, monkeypatch):
    values = np.random.default_rng(1).integers(0, 1000, (2, 30, 17), "i4")
    mask = values % 3 == 0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=chunks)
        file.create_dataset("flat", data=values.reshape(-1), chunks=None if chunks is None else (50,))
        file["text"] = np.array([f"{n}" for n in range(30)], object).reshape(5, 6)
    for most in [1 << 20, 0]:
        # Without points, all of it is read in bands.
        monkeypatch.setattr("thalweg._selection._MOST_POINTS", most)
        monkeypatch.setattr("thalweg._selection._BATCH", 1000 if most else 1 << 20)
        file = thalweg.open(tmp_path / "a.h5")
        with h5py.File(tmp_path / "a.h5") as theirs:
            for key in LISTS:
                expected = theirs["a"][key]
                found = file["a"][key]
                assert found.shape == expected.shape and np.array_equal(found, expected), key
            assert np.array_equal(file["a"][mask], theirs["a"][mask])
            flat = mask.reshape(-1)
            assert np.array_equal(file["flat"][flat], theirs["flat"][flat])
            for key in [(slice(1, 4), [0, 3]), (slice(None), slice(1, 6, 2)), 3, (2, 2), (Ellipsis, [1, 4, 5])]:
                assert np.array_equal(file["text"][key], theirs["text"][key]), key
    # Beyond h5py: any order, and twice.
    for index in [[5, 2, 2, 29], [-1, 0, 17]]:
        assert np.array_equal(file["a"][:, index, 1:9], values[:, index, 1:9])
    index = np.random.default_rng(2).integers(0, values.size, 500)
    assert np.array_equal(file["flat"][index], values.reshape(-1)[index])


def test_read_direct_is_that_of_h5py(tmp_path):
    values = np.arange(60, dtype="<f4").reshape(6, 10)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(2, 3))
        file["text"] = ["a", "b"]
    array = thalweg.open(tmp_path / "a.h5")["a"]
    cases = [
        (np.zeros((6, 10), "<f4"), None, None),
        (np.zeros((8, 10), "<f4"), np.s_[1:4], np.s_[2:5]),
        (np.zeros((6, 10), "<f8"), np.s_[::2], np.s_[:3]),
        (np.zeros((6, 20), "<f4"), np.s_[:, ::3], np.s_[:, 1:5]),
        (np.zeros((10, 6), "<f4"), np.s_[3], np.s_[:, 2]),
        (np.zeros((6, 10), ">i2"), np.s_[5:5], np.s_[:0]),
    ]
    with h5py.File(tmp_path / "a.h5") as theirs:
        for dest, source, to in cases:
            expected = dest.copy(order="K")
            theirs["a"].read_direct(expected, source, to)
            array.read_direct(dest, source, to)
            assert np.array_equal(dest, expected), (source, to)
    # Beyond h5py: as many elements in another shape, and memory in another order.
    dest = np.zeros(60, "<f4")
    array.read_direct(dest, np.s_[2:4], np.s_[:20])
    assert np.array_equal(dest[:20], values[2:4].reshape(-1))
    dest = np.zeros((6, 10), "<f4", order="F")
    array.read_direct(dest)
    assert np.array_equal(dest, values)
    with pytest.raises(thalweg.UsageError):
        array.read_direct(np.zeros(5, "<f4"))
    dest = np.zeros((6, 10), "<f4")
    dest.flags.writeable = False
    with pytest.raises(thalweg.UsageError):
        array.read_direct(dest)


def test_read_direct_needs_no_copy(tmp_path, monkeypatch):
    values = np.arange(1000, dtype="<i8")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("a", data=values, chunks=(64,), compression="gzip")
    array = thalweg.open(tmp_path / "a.h5")["a"]
    monkeypatch.setattr(type(array), "_values", None)
    dest = np.zeros(1000, "<i8")
    array.read_direct(dest, np.s_[100:300], np.s_[1:201])
    assert np.array_equal(dest[1:201], values[100:300]) and dest[0] == dest[201] == 0


def test_properties_are_those_of_h5py(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("gzip", (4, 5), "f4", maxshape=(None, 9), compression="gzip", shuffle=True, fillvalue=-1)
        file.create_dataset("lzf", (4, 5), "i2", chunks=(2, 2), compression="lzf", fletcher32=True)
        file.create_dataset("plain", data=[1, 2])
        file.create_dataset("big", (3,), ">f8", fillvalue=2.5)
        file.create_dataset("text", (3,), h5py.string_dtype())
    ours = thalweg.open(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as theirs:
        for name, other in theirs.items():
            array = ours[name]
            for what in [
                *("maxshape", "chunks", "compression", "compression_opts", "shuffle", "fletcher32"),
                *("shape", "ndim", "size", "fillvalue", "nbytes", "scaleoffset"),
            ]:
                assert getattr(array, what) == getattr(other, what), (name, what)
            assert array.dtype == other.dtype.newbyteorder("<")
            assert np.array_equal(array[...], other[...])
    assert [each.number for each in ours["gzip"].filters] == [2, 1]


def test_types_of_elements_are_those_of_h5py(tmp_path):
    record = np.dtype([("a", "<i2"), ("b", ">f8", (2,)), ("c", "S3")])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["record"] = np.array([(1, [2.5, 3], b"ab"), (4, [5, 6], b"xyz")], record)
        file["bool"] = [True, False]
        file["complex"] = [1 + 2j]
        file["enum"] = np.array([1, 2], h5py.enum_dtype({"one": 1, "two": 2}, "<i2"))
        file.create_dataset("array", (2, 2), np.dtype(("<i4", (3,))))[...] = np.arange(12).reshape(2, 2, 3)
        lists = file.create_dataset("lists", (2,), h5py.vlen_dtype("<f4"))
        lists[0], lists[1] = [1, 2, 3], [4]
        file["fixed"] = np.array([b"ab", b"c"])
        file["nothing"] = h5py.Empty("f4")
    ours = thalweg.open(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as theirs:
        for name in ["record", "bool", "complex", "enum", "array", "fixed"]:
            found, expected = ours[name][...], theirs[name][...]
            assert found.shape == expected.shape and np.array_equal(found, expected), name
            assert ours[name].shape == theirs[name].shape, name
            assert ours[name].dtype == theirs[name].dtype.newbyteorder("<"), name
        assert h5py.check_enum_dtype(ours["enum"].dtype) == {"one": 1, "two": 2}
        assert np.array_equal(ours["record"]["b", 1], theirs["record"]["b", 1])
        assert np.array_equal(ours["array"][1, [0, 1]], theirs["array"][1, [0, 1]])
        for found, expected in zip(ours["lists"][...], theirs["lists"][...]):
            assert found.dtype == expected.dtype and np.array_equal(found, expected)
    assert repr(ours["nothing"][()]) == "Empty(dtype='<f4')"


def test_strings_beyond_the_memory_are_an_error(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("many", (1 << 40,), h5py.string_dtype(), chunks=(1 << 16,))
        file.create_dataset("lists", (1 << 40,), h5py.vlen_dtype("i4"), chunks=(1 << 16,))
    ours = thalweg.open(tmp_path / "a.h5")
    for name in ["many", "lists"]:
        for part in [slice(None), slice(1 << 39)]:
            with pytest.raises(thalweg.Error, match=r"a\.h5.*making room for the selected strings"):
                ours[name][part]
        assert len(ours[name][5:7]) == 2


def test_attributes_have_all_their_values(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        attrs = file.create_group("g").attrs
        attrs["number"] = np.float32(2.5)
        attrs["numbers"] = np.arange(6, dtype=">i2").reshape(2, 3)
        attrs["text"] = "größer"
        attrs["texts"] = ["a", "bc"]
        attrs["fixed"] = np.bytes_("abc")
        attrs.create("enum", 2, dtype=h5py.enum_dtype({"one": 1, "two": 2}))
        attrs["yes"] = True
        attrs["path"] = file["g"].ref
        attrs.create("paths", [file["g"].ref, file.ref], dtype=h5py.ref_dtype)
        attrs["nothing"] = h5py.Empty("f4")
        attrs.create("lists", np.array([np.arange(2), np.arange(3)], object), dtype=h5py.vlen_dtype("i8"))
    attrs = thalweg.open(tmp_path / "a.h5")["g"].attrs
    assert len(attrs) == 11 and "text" in attrs and "none" not in attrs
    assert attrs["number"] == 2.5 and attrs["number"].dtype == "f4"
    assert np.array_equal(attrs["numbers"], [[0, 1, 2], [3, 4, 5]])
    assert attrs["text"] == "größer" and attrs["texts"].tolist() == ["a", "bc"] and attrs["fixed"] == "abc"
    assert attrs["enum"] == "two" and attrs["yes"] == True  # noqa: E712
    assert attrs["path"] == "/g" and attrs["paths"].tolist() == ["/g", "/"] and attrs["nothing"] is None
    assert [each.tolist() for each in attrs["lists"]] == [[0, 1], [0, 1, 2]]
    with pytest.raises(KeyError):
        attrs["none"]


def test_groups_are_those_of_h5py(files):
    ours = thalweg.open(files / "run.nxs")
    with h5py.File(files / "run.nxs") as theirs:
        group, other = ours["/entry"], theirs["/entry"]
        assert list(group) == list(other) and len(group) == len(other)
        assert group.attrs["NX_class"] == "NXentry"
        assert {name: one.name for name, one in group.items()} == {name: one.name for name, one in other.items()}
        assert "bank1_events/event_id" in group and group.get("none", 5) == 5
        assert group["bank1_events"]["event_id"] == ours[BANK] == group[BANK]
        names, expected = [], []
        group.visit(names.append)
        other.visit(expected.append)
        assert names == expected
        assert group.visititems(lambda name, one: name if "event_id" in name else None) == "bank1_events/event_id"


def test_many_arrays_are_read_in_one_pass(files):
    ours = thalweg.open(files / "run.nxs")
    paths = [BANK, "/entry/bank2_events/event_id"]
    one, other = ours.read(*paths), ours.read(paths)
    assert list(one) == list(other) == paths
    assert all(np.array_equal(one[path], other[path]) for path in paths)


def test_plans_are_those_of_the_command(files, command):
    run = files / "run.nxs"
    plan = thalweg.open(run, threads=2, memory="100MB").plan("/entry/bank*_events/event_id")
    options = ["--explain", "--json", "--threads", 2, "--memory", "100MB"]
    said = json.loads(command("read", run, "/entry/bank*_events/event_id", *options))
    names = "arrays requests fetched_bytes wanted_bytes jumps rounds depth block_bytes threads"
    for name in names.split():
        assert getattr(plan, name) == said[name], name
    assert plan.requests + plan.requests_before == said["all_requests"]
    # Each measures the processor for itself.
    assert plan.predicted_s > 0
    part = thalweg.open(run)[BANK].plan(np.s_[:10])
    assert 0 < part.wanted_bytes < plan.wanted_bytes and part.arrays == 1


def test_the_doctor_says_what_the_command_says(files, command):
    found = thalweg.open(files / "run.nxs", threads=2).doctor()
    said = json.loads(command("doctor", files / "run.nxs", "--json", "--threads", 2))
    names = "datasets bytes bytes_stored chunks in_order small_share wanted_bytes datasets_left_out"
    for name in names.split():
        assert found[name] == said[name], name
    assert [each["kind"] for each in found["findings"]] == [each["kind"] for each in said["findings"]]
    assert found["libhdf5"]["requests"] == said["libhdf5"]["requests"]
    assert set(found["thalweg"]) <= set(said["thalweg"])


def test_other_libraries_take_arrays_by_dlpack(files):
    array = thalweg.open(files / "run.nxs")[BANK]
    values = array[...]
    # What torch.from_dlpack and jax do with an array of numpy, without a copy.
    taken = np.from_dlpack(values)
    assert np.shares_memory(taken, values)
    assert np.array_equal(np.from_dlpack(array), values)


def test_arrays_belong_to_the_caller(files):
    values = thalweg.open(files / "run.nxs")[BANK][...]
    values[:] = 1
    assert values.sum() == values.size


def test_files_are_shared_by_threads_and_processes(files):
    file = thalweg.open(files / "run.nxs")
    expected = file[BANK][...]
    with ThreadPoolExecutor(8) as pool:
        for start, found in enumerate(pool.map(lambda start: file[BANK][start::16], range(16))):
            assert np.array_equal(found, expected[start::16])
    again = pickle.loads(pickle.dumps(file[BANK]))
    assert np.array_equal(again[...], expected)
    file.close()
    with pytest.raises(ValueError, match="closed"):
        file[BANK]
