"""The module thalweg.h5, against h5py."""

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import thalweg
from thalweg import h5

h5py = pytest.importorskip("h5py")
SHARED = Path(os.environ.get("THALWEG_SHARED", Path(__file__).parents[4] / "shared")) / "data/hdf5"
# Some files have datasets of gigabytes that nobody wrote.
MOST_BYTES = 1 << 28


def same(ours, theirs, where):
    """Whether two values are equal, with their types but for the order of bytes."""
    if isinstance(theirs, h5py.Empty):
        assert isinstance(ours, h5.Empty) and ours.dtype == theirs.dtype.newbyteorder("<"), where
    elif isinstance(theirs, h5py.Reference):
        assert isinstance(ours, h5.Reference) and bool(ours) == bool(theirs), where
    elif isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray) and ours.shape == theirs.shape, where
        assert ours.dtype == theirs.dtype.newbyteorder("<"), where
        if theirs.dtype.hasobject:
            if theirs.dtype.names:
                for name in theirs.dtype.names:
                    same(ours[name], theirs[name], where)
            else:
                for one, other in zip(ours.flat, theirs.flat):
                    same(one, other, where)
        else:
            # Bit by bit, so that NaN equals NaN.
            little = theirs.astype(ours.dtype)
            assert ours.tobytes() == little.tobytes() or np.array_equal(ours, little), where
    else:
        assert type(ours) is type(theirs), (where, type(ours), type(theirs))
        equal = ours == theirs or (ours != ours and theirs != theirs)
        assert np.all(equal), (where, ours, theirs)


def compare(ours, theirs, unread):
    """Compares all that two files hold, and counts the datasets; `unread` takes what thalweg does not read."""
    count = 0
    names = []
    theirs.visit(names.append)
    found = []
    ours.visit(found.append)
    assert found == names
    # A thousand small datasets take long, and show nothing more.
    for name in ["/", *names[:100]]:
        one, other = ours[name], theirs[name]
        assert one.name == other.name and one.parent == ours[other.parent.name]
        same_attributes(one, other, unread)
        if isinstance(other, h5py.Group):
            assert isinstance(one, h5.Group) and list(one) == list(other), name
        elif isinstance(other, h5py.Dataset):
            count += 1
            same_dataset(one, other, unread)
    return count


def same_attributes(one, other, unread):
    assert sorted(one.attrs) == sorted(other.attrs), other.name
    for key in one.attrs:
        try:
            value = one.attrs[key]
        except thalweg.UnsupportedError as error:
            unread.append(str(error))
            continue
        try:
            expected = other.attrs[key]
        except (TypeError, OSError, KeyError):
            # h5py does not read it.
            continue
        same(value, expected, (other.name, key))


def same_dataset(one, other, unread):
    for what in ["shape", "maxshape", "chunks", "compression", "compression_opts", "shuffle", "fletcher32"]:
        assert getattr(one, what) == getattr(other, what), (other.name, what)
    if other.shape is None:
        assert (one.nbytes, one.fillvalue) == (other.nbytes, other.fillvalue), other.name
    if other.nbytes > MOST_BYTES:
        return
    try:
        expected = other[()]
    except (OSError, TypeError):
        # A filter or type that h5py does not have.
        return
    try:
        values = one[()]
    except thalweg.UnsupportedError as error:
        unread.append(str(error))
        return
    same(values, expected, other.name)
    if other.shape and other.shape[0] > 1 and isinstance(values, np.ndarray):
        same(one[1:], other[1:], other.name)
        same(one[-1], other[-1], other.name)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A file with all types of values."""
    path = tmp_path_factory.mktemp("h5") / "all.h5"
    record = np.dtype([("a", "<i2"), ("b", ">f8", (2,)), ("c", "S3"), ("d", [("e", "u1")])])
    with h5py.File(path, "w") as file:
        group = file.create_group("numbers")
        for kind in ["i1", ">i2", "<u4", ">u8", "f2", "f4", ">f8", "c8", "c16", "bool", "S5", "V4", "<M8[us]"]:
            values = np.arange(12).astype("i1" if kind == "V4" else kind if "M8" not in kind else "i8")
            stored = np.frombuffer(np.arange(12, dtype="i4").tobytes(), "V4") if kind == "V4" else values
            if "M8" in kind:
                group.create_dataset("time", data=values.astype(kind).astype(h5py.opaque_dtype(kind)))
                continue
            group[kind.strip("<>")] = stored.reshape(3, 4)
            group.attrs[kind] = stored.reshape(3, 4)
        for name, options in {
            "gzip": {"compression": "gzip", "compression_opts": 7, "shuffle": True},
            "lzf": {"compression": "lzf", "fletcher32": True},
            "chunks": {"chunks": (2, 3), "maxshape": (None, 30)},
            "szip": {"compression": "szip"} if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP) else {},
        }.items():
            file.create_dataset(f"stored/{name}", data=np.arange(42).reshape(7, 6), **options)
        file.create_dataset("stored/empty", (0, 3), "f4", maxshape=(None, 3))
        file.create_dataset("stored/unwritten", (5, 3), "f4", fillvalue=2.5)
        file["records"] = np.zeros(3, record)
        file["text/words"] = ["a", "bc", "größer"]
        file["text/word"] = "one"
        file["text/fixed"] = np.array([b"a", b"bcd"])
        file["text/utf8"] = np.array(["größe".encode()], h5py.string_dtype("utf-8", 8))
        file["text/ascii"] = np.array([b"x", b"yz"], h5py.string_dtype("ascii"))
        lists = file.create_dataset("lists", (2,), h5py.vlen_dtype("<i4"))
        lists[0], lists[1] = [1, 2, 3], [4]
        file["enum"] = np.array([[1, 2]], h5py.enum_dtype({"one": 1, "two": 2}, "<i2"))
        file.create_dataset("array", (2, 2), np.dtype(("<i4", (3,))))[...] = np.arange(12).reshape(2, 2, 3)
        file["nothing"], file["no_text"] = h5py.Empty("f4"), h5py.Empty("S3")
        file["type"] = np.dtype("<i4")
        file["links/soft"] = h5py.SoftLink("/text/word")
        file["links/hard"] = file["enum"]
        file["links/broken"] = h5py.SoftLink("/none")
        tracked = file.create_group("tracked", track_order=True)
        for name in "zebra", "ape", "mole":
            tracked[name] = name
            tracked.attrs[name] = name
        attrs = file.attrs
        attrs["number"], attrs["text"], attrs["bytes"] = 5, "größer", np.bytes_("ab")
        attrs["texts"], attrs["fixed"] = ["a", "b"], np.array([b"ab", b"c"])
        attrs["one"] = np.array([7])
        attrs["empty"] = h5py.Empty("S1")
        attrs["enum"] = np.array([1, 2], h5py.enum_dtype({"one": 1, "two": 2}))
        attrs.create("code", 1, dtype=h5py.enum_dtype({"one": 1, "two": 2}))
        attrs["yes"] = True
        attrs["path"] = file["enum"].ref
        attrs.create("paths", [file["enum"].ref, file.ref], dtype=h5py.ref_dtype)
        attrs.create("lists", np.array([np.arange(2), np.arange(3)], object), dtype=h5py.vlen_dtype("i8"))
        attrs["record"] = np.zeros(2, record)
        attrs["long"] = np.arange(5000)
        scale = file["numbers/i1"]
        scale.make_scale("x")
        file["stored/gzip"].dims[0].attach_scale(scale)
    return path


def test_all_that_h5py_wrote_is_equal(written):
    unread = []
    with h5.File(written) as ours, h5py.File(written) as theirs:
        assert compare(ours, theirs, unread) > 25
    assert unread == []


@pytest.mark.parametrize("latest", [False, True])
def test_both_generations_of_the_format_are_read(tmp_path, latest):
    with h5py.File(tmp_path / "a.h5", "w", libver="latest" if latest else "earliest") as file:
        for number in range(40):
            file[f"g/{number}"] = np.arange(number)
            file["g"].attrs[f"{number}"] = [number] * number
    unread = []
    with h5.File(tmp_path / "a.h5") as ours, h5py.File(tmp_path / "a.h5") as theirs:
        assert compare(ours, theirs, unread) == 40
    assert unread == []


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"there are no files of other programs at {SHARED}")
def test_files_of_other_programs_are_equal():
    unread = []
    count = files = 0
    for path in sorted(SHARED.rglob("*")):
        if path.suffix not in (".h5", ".hdf5", ".nc", ".nc4", ".nxs") or "cve" in path.parts:
            continue
        try:
            theirs = h5py.File(path)
        except OSError:
            continue
        with theirs, h5.File(path) as ours:
            files += 1
            count += compare(ours, theirs, unread)
    assert files > 30 and count > 100
    # What is not read says so.
    assert all("not read" in each for each in unread)


def test_groups_are_mappings(written):
    with h5.File(written) as ours, h5py.File(written) as theirs:
        for name in ["/", "numbers", "tracked", "links"]:
            assert list(ours[name].keys()) == list(theirs[name].keys())
            assert len(ours[name]) == len(theirs[name])
            assert ("soft" in ours[name]) == ("soft" in theirs[name])
        assert [one.name for one in ours["text"].values()] == [one.name for one in theirs["text"].values()]
        assert ours.get("none") is None and ours.get("none", 3) == 3
        assert ours["/links/soft"][()] == theirs["/links/soft"][()]
        assert ours["text"]["/enum"] == ours["enum"] == ours["links/hard"]
        assert ours["enum"].file.filename == theirs.filename and ours["enum"].file.mode == "r"
        assert ours[ours.attrs["path"]].name in ("/enum", "/links/hard")
        assert list(ours["tracked"].attrs) == list(theirs["tracked"].attrs)
        for missing in ["none", "text/none", "enum/none", "links/broken"]:
            with pytest.raises(KeyError):
                ours[missing]
            assert missing not in ours
        with pytest.raises(KeyError):
            ours.attrs["none"]


@pytest.mark.parametrize(
    "selection", [None, np.s_[1:5, 2:6], np.s_[3, :], np.s_[2:2, :], np.s_[:8, :], np.s_[1:3], (0, 0, 0)]
)
def test_chunks_are_those_of_h5py(written, selection):
    with h5.File(written) as ours, h5py.File(written) as theirs:
        one, other = ours["stored/chunks"], theirs["stored/chunks"]
        try:
            expected = list(other.iter_chunks(selection))
        except ValueError:
            with pytest.raises(ValueError, match=r"expected a part of the shape \(7, 6\)"):
                one.iter_chunks(selection)
        else:
            assert list(one.iter_chunks(selection)) == expected
        for either in (ours, theirs):
            with pytest.raises(TypeError):
                either["enum"].iter_chunks()
            with pytest.raises(TypeError):
                either["text/word"].len()
        assert one.len() == other.len() == 7


def test_arguments_of_h5py_are_taken(written):
    arguments = {"libver": "latest", "rdcc_nbytes": 1 << 20, "rdcc_nslots": 7, "rdcc_w0": 0.5, "locking": False}
    with h5.File(written, "r", None, swmr=False, **arguments) as ours, h5py.File(written, "r", **arguments) as theirs:
        for path in ["text", "enum", "type", "none"]:
            found, expected = ours.get(path, getclass=True), theirs.get(path, getclass=True)
            assert getattr(found, "__name__", None) == getattr(expected, "__name__", None)
        assert ours.get("none", 3, getclass=True) == 3 == ours.get("none", default=3)
        with pytest.raises(thalweg.UnsupportedError, match="links"):
            ours.get("text", getlink=True)
    with pytest.raises(thalweg.UnsupportedError, match="driver='core'"):
        h5.File(written, driver="core")


def test_open_files_are_read(written, files):
    with io.BytesIO(written.read_bytes()) as memory, open(written, "rb") as file, h5py.File(written) as theirs:
        for name in [memory, file, os.fsencode(written), str(written)]:
            with h5.File(name) as ours:
                assert np.array_equal(ours["stored/gzip"][1:3], theirs["stored/gzip"][1:3])
        assert pickle.loads(pickle.dumps(h5.File(file)["enum"])).name == "/enum"
    with io.BytesIO((files / "reads.pod5").read_bytes()) as reads:
        with pytest.raises(thalweg.UnsupportedError, match="found a file of reads"):
            h5.File(reads)
    with pytest.raises(thalweg.UsageError, match="expected a path, a URL, or an open file"):
        h5.File(5)


def test_files_are_known_by_their_signature(written, tmp_path):
    with h5py.File(tmp_path / "behind.h5", "w", userblock_size=2048) as file:
        file["a"] = 1
    (tmp_path / "text.h5").write_text("none" * 999)
    for path in [written, str(written), os.fsencode(written), tmp_path / "behind.h5", tmp_path / "text.h5", tmp_path]:
        assert h5.is_hdf5(path) == h5py.is_hdf5(path)
    assert h5.is_hdf5(tmp_path / "behind.h5") and not h5.is_hdf5(tmp_path / "none.h5")


def test_datasets_are_iterated_and_converted(written):
    with h5.File(written) as ours, h5py.File(written) as theirs:
        one, other = ours["stored/gzip"], theirs["stored/gzip"]
        assert len(one) == len(other)
        assert all(np.array_equal(row, expected) for row, expected in zip(one, other))
        assert np.array_equal(one.astype("f4")[2:4], other.astype("f4")[2:4])
        words = ours["text/words"]
        assert words.asstr()[:].tolist() == theirs["text/words"].asstr()[:].tolist()
        assert words.asstr()[1] == "bc" and ours["text/word"].asstr()[()] == "one"
        assert h5py.check_string_dtype(words.dtype) == h5py.check_string_dtype(theirs["text/words"].dtype)
        assert np.array_equal(ours["records"]["a"], theirs["records"]["a"])
        dest = np.zeros((7, 6), "i8")
        one.read_direct(dest, np.s_[2:], np.s_[:5])
        assert np.array_equal(dest[:5], other[2:])
        with pytest.raises(TypeError):
            one.asstr()


def test_nothing_is_written(written):
    with pytest.raises(thalweg.UnsupportedError, match="h5py"):
        h5.File(written, "a")
    with h5.File(written) as ours:
        for write in [
            lambda: ours.create_group("x"),
            lambda: ours.create_dataset("x", data=[1]),
            lambda: ours.__setitem__("x", 1),
            lambda: ours["enum"].__setitem__(0, 1),
            lambda: ours.attrs.__setitem__("x", 1),
            lambda: ours["enum"].resize((1, 1)),
        ]:
            with pytest.raises(thalweg.UnsupportedError, match="write"):
                write()


def test_files_close_and_travel(written):
    file = h5.File(written, threads=2)
    again = pickle.loads(pickle.dumps(file["enum"]))
    dataset = file["enum"]
    assert np.array_equal(again[()], dataset[()]) and again.file["enum"] == dataset
    assert file and dataset
    file.close()
    assert not file and not dataset
    with pytest.raises(ValueError, match="closed"):
        dataset[()]
    with pytest.raises(FileNotFoundError):
        h5.File("none.h5")
    with pytest.raises(thalweg.FormatError):
        h5.File(__file__)


def test_objects_are_read_again_and_again(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for number in range(1000):
            file[f"g/{number}"] = number
        file["text"] = ["a", "b"]
        file.create_dataset("chunks", data=np.arange(2000), chunks=(1,))
        file.attrs["values"] = np.arange(1000)
    with h5.File(tmp_path / "a.h5") as file:
        # The bytes of metadata that may be read are limited, to be safe from damaged files.
        assert sum(file[f"g/{number}"][()] for number in range(1000)) == 499500
        for _ in range(300):
            assert file["text"][1] == b"b" and file["chunks"][1999] == 1999 and file.attrs["values"][9] == 9
