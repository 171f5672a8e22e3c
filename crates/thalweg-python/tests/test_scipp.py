"""Events as scipp's binned data, against scippnexus."""

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
    data = thalweg.scipp.events(tmp_path / "a.nxs")
    assert data["a"].sizes == {"event_time_zero": 0} and data["b"].bins.size().values.tolist() == [2]
