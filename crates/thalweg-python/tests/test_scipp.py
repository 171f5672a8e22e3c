"""Events as scipp's binned data, against scippnexus."""

import warnings

import numpy as np
import pytest
import thalweg

sc = pytest.importorskip("scipp")
snx = pytest.importorskip("scippnexus")
import thalweg.scipp


def test_events_are_those_of_scippnexus(files):
    ours = thalweg.scipp.events(files / "run.nxs")
    with snx.File(files / "run.nxs") as theirs:
        assert list(ours) == [bank.name for bank in thalweg.open(files / "run.nxs").events.banks]
        for name, data in ours.items():
            expected = theirs[f"entry/{name}"][...]
            # scippnexus cuts what is below a nanosecond off; thalweg rounds.
            late = data.coords["event_time_zero"] - expected.coords["event_time_zero"]
            assert set(late.values.tolist()) <= {0, 1}, name
            expected.coords["event_time_zero"] = data.coords["event_time_zero"]
            # scippnexus makes int32 of uint32, in which large numbers are negative.
            expected.bins.coords["event_id"] = expected.bins.coords["event_id"].to(dtype="int64")
            assert sc.identical(data, expected), name


@pytest.mark.parametrize("pulses", [(2, 7), (None, 3), (5, None), (4, 4), (100, 200)])
def test_some_pulses_are_a_slice(files, pulses):
    whole = thalweg.scipp.events(files / "run.nxs")
    some = thalweg.scipp.events(thalweg.open(files / "run.nxs"), "bank[13]_*", pulses=pulses)
    assert list(some) == ["bank1_events", "bank3_events"]
    for name, data in some.items():
        assert sc.identical(data, whole[name]["event_time_zero", slice(*pulses)].copy()), name


def test_weights_are_the_data(files, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.nxs", "w") as file:
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        bank = entry.create_group("b")
        bank.attrs["NX_class"] = "NXevent_data"
        bank["event_id"] = np.array([3, 1, 2], "u4")
        bank["event_time_offset"] = np.array([10, 20, 30], "f4")
        bank["event_time_offset"].attrs["units"] = "ns"
        bank["event_weight"] = np.array([0.5, 2, 1], "f4")
        bank["event_time_zero"] = np.array([0.0, 1.0, 2.0])
        bank["event_time_zero"].attrs.update({"units": "s", "offset": "2024-05-14T08:00:00Z"})
        bank["event_index"] = np.array([0, 2, 2], "u8")
    data = thalweg.scipp.events(tmp_path / "a.nxs")["b"]
    assert data.bins.size().values.tolist() == [2, 0, 1]
    assert data.bins.sum().values.tolist() == [2.5, 0, 1]
    assert data.bins.coords["event_time_offset"].unit == "ns"
    with snx.File(tmp_path / "a.nxs") as theirs:
        expected = theirs["entry/b"][...].coords["event_time_zero"]
        assert data.coords["event_time_zero"].values.tolist() == expected.values.tolist()


@pytest.mark.parametrize(("stored", "shown"), [("u4", "int64"), ("i4", "int32"), ("u2", "int32"), ("u8", "int64")])
def test_whole_numbers_get_types_that_hold_them(tmp_path, stored, shown):
    """Files of the ESS have uint32 of both."""
    values = np.array([0, 7, np.iinfo(stored).max if stored != "u8" else 2**63 - 1], stored)
    path = bank_of(tmp_path, values, [0, 1])
    data = thalweg.scipp.events(path)["b"].bins.concat("event_time_zero").value
    for name in ["event_id", "event_time_offset"]:
        assert data.coords[name].dtype == shown and data.coords[name].values.tolist() == values.tolist()


def test_events_without_a_pulse_are_warned_of(tmp_path):
    path = bank_of(tmp_path, np.arange(1000, dtype="i4"), [990, 995])
    with pytest.warns(UserWarning, match="/entry/b: 990 events belong to no pulse and are left out"):
        data = thalweg.scipp.events(path)["b"]
    assert data.bins.size().values.tolist() == [5, 5]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "left out")
        thalweg.scipp.events(path, pulses=(1, 2))
    with pytest.warns(UserWarning, match="belong to no pulse"):
        (bank,) = thalweg.open(path).events.read()
    assert len(bank.event_id) == 1000


def bank_of(tmp_path, values, index):
    """A file with a bank whose ids and times of flight are these numbers."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "b.nxs", "w") as file:
        bank = file.create_group("entry/b")
        bank.attrs["NX_class"] = "NXevent_data"
        bank["event_id"] = bank["event_time_offset"] = values
        bank["event_time_zero"] = np.arange(float(len(index)))
        bank["event_index"] = np.array(index, "u8")
        for name, units in [("event_time_offset", "ns"), ("event_time_zero", "s")]:
            bank[name].attrs["units"] = units
    return tmp_path / "b.nxs"


def test_a_bank_may_have_no_pulses(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.nxs", "w") as file:
        for name in ["a", "b"]:
            bank = file.create_group(f"entry/{name}")
            bank.attrs["NX_class"] = "NXevent_data"
            bank["event_id"] = np.array([3, 1], "u4")
            bank["event_index"] = np.array([0] if name == "b" else [], "u8")
            bank["event_time_zero"] = np.array([1.0] if name == "b" else [], "f8")
            bank["event_time_zero"].attrs["units"] = "s"
    with pytest.warns(UserWarning, match="/entry/a: 2 events belong to no pulse"):
        data = thalweg.scipp.events(tmp_path / "a.nxs")
    assert data["a"].sizes == {"event_time_zero": 0} and data["b"].bins.size().values.tolist() == [2]
