"""Arrays of HDF5 files, against h5py."""

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
    "key", [slice(10, 20), slice(None, None, 7), slice(-5, None), 3, -1, Ellipsis, slice(5, 5), (slice(2, 90, 4),)]
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
    file = thalweg.open(tmp_path / "a.h5")
    for key in [(1, slice(3, 25, 4)), (Ellipsis, 2), (slice(None), -1, slice(1, 16, 5)), (0, 0, 0), (0, Ellipsis)]:
        assert np.array_equal(file["a"][key], values[key]), key
    assert file["one"][()] == 3.5
    assert np.asarray(file["a"]).sum() == values.sum()
    for key in [(0, 0, 0, 0), 2, (Ellipsis, Ellipsis)]:
        with pytest.raises(IndexError):
            file["a"][key]
    with pytest.raises(thalweg.UnsupportedError):
        file["text"][()]
    assert "not read" in repr(file["text"])
    with pytest.warns(UserWarning, match="text"):
        assert sorted(file.read()) == ["/a", "/one"]
    with pytest.raises(TypeError):
        file["a"][np.array([1, 2])]
    with pytest.raises(KeyError):
        file["none"]
    assert "a" in file and "none" not in file


def test_arrays_belong_to_the_caller(files):
    values = thalweg.open(files / "run.nxs")[BANK][...]
    values[:] = 1
    assert values.sum() == values.size
