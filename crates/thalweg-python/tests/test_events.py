"""Events and logs of NeXus files, against h5py and the command."""

import datetime
import gc
import time
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import thalweg

h5py = pytest.importorskip("h5py")


@pytest.fixture(scope="module")
def events(files):
    return thalweg.open(files / "run.nxs").events


def test_banks_are_those_of_h5py(files, events):
    with h5py.File(files / "run.nxs") as theirs:
        groups = [group for group in theirs["entry"].values() if group.attrs.get("NX_class") == b"NXevent_data"]
        assert [bank.path for bank in events.banks] == [group.name for group in groups]
        for bank, group in zip(events.banks, groups):
            assert bank.events == len(group["event_id"]) and bank.pulses == len(group["event_time_zero"])
            assert (bank.units, group["event_time_offset"].attrs["units"]) == ("us", b"microsecond")
    assert len(events) == sum(bank.events for bank in events.banks) > 0


def test_events_are_those_of_h5py(files, events):
    read = events.read()
    assert [found.bank for found in read] == events.banks
    with h5py.File(files / "run.nxs") as theirs:
        for found in read:
            group = theirs[found.bank.path]
            assert np.array_equal(found.event_id, group["event_id"])
            assert np.array_equal(found.event_time_offset, group["event_time_offset"])
            assert found.event_weight is None
            index = group["event_index"][...].astype("i8")
            pulses = np.repeat(np.arange(len(index)), np.diff(np.append(index, len(group["event_id"]))))
            assert np.array_equal(found.pulse, pulses)
            zero = group["event_time_zero"]
            start = np.datetime64(zero.attrs["offset"].decode().rstrip("Z"), "ns")
            expected = start + np.round(zero[...][pulses] * 1e9).astype("timedelta64[ns]")
            assert np.abs((found.pulse_time - expected).astype("i8")).max() <= 1


def test_selected_events_are_those_of_the_command(files, command, events, tmp_path):
    start = events.read()[0].pulse_time[0]
    moments = (start + np.timedelta64(20, "ms"), start + np.timedelta64(120, "ms"))
    for kwargs, arguments in [
        ({"banks": "bank[12]_*"}, ["--bank", "bank[12]_*"]),
        ({"banks": ["bank3_events", "/entry/bank1_events"]}, ["--bank", "bank3_events", "--bank", "/entry/bank1_events"]),
        ({"pulses": (2, 5)}, ["--pulses", "2..5"]),
        ({"pulses": (None, 3)}, ["--pulses", "..3"]),
        ({"time": (0.05, 0.15)}, ["--time", "0.05..0.15"]),
        ({"time": moments}, ["--time", "..".join(f"{np.datetime_as_string(m)}Z" for m in moments)]),
        ({"tof": (1000, 5000)}, ["--tof", "1000..5000"]),
        ({"tof": (None, 2000.5), "banks": "bank4_events"}, ["--tof", "..2000.5", "--bank", "bank4_events"]),
    ]:
        table = tmp_path / "events.parquet"
        command("read", files / "run.nxs", "--events", "--out", table, "--force", *arguments)
        expected = pyarrow.parquet.read_table(table)
        found = events.read(**kwargs)
        assert sum(len(bank.pulse) for bank in found) == expected.num_rows > 0, kwargs
        for name in ["event_id", "event_time_offset", "pulse"]:
            values = np.concatenate([getattr(bank, name) for bank in found])
            assert np.array_equal(values, expected.column(name).to_numpy()), (name, kwargs)
        batches = pyarrow.table(events.batches(**kwargs))
        assert batches.drop_columns("bank") == expected.drop_columns("bank").cast(batches.drop_columns("bank").schema)
        assert batches.column("bank").to_pylist() == expected.column("bank").to_pylist()


def test_batches_have_the_columns_of_one_bank(events):
    collected = {bank.name: [] for bank in events.banks}
    for batch in events.batches(in_file_order=True):
        assert pyarrow.record_batch(batch).num_rows == len(batch) == len(batch.pulse_time)
        collected[batch.bank.name].append((batch.event_id, batch.event_time_offset, batch.pulse))
    gc.collect()
    for bank in events.read():
        parts = zip(*collected[bank.bank.name])
        for whole, part in zip([bank.event_id, bank.event_time_offset, bank.pulse], parts):
            assert np.array_equal(whole, np.concatenate(part))


def threads():
    """The names of the threads of this process."""
    return [(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()]


def test_a_stream_that_is_dropped_ends(events):
    for _ in range(20):
        with events.batches() as batches:
            next(iter(batches))
        iter(events.batches())
    gc.collect()
    deadline = time.monotonic() + 60
    while {"thalweg-events", "thalweg-python"}.intersection(threads()):
        assert time.monotonic() < deadline, "threads of streams that were dropped go on"
        time.sleep(0.05)
    assert len(events.read("bank1_events")[0].event_id) == events.banks[0].events


def test_logs_are_those_of_h5py(files, events):
    with h5py.File(files / "run.nxs") as theirs:
        for path, log in events.logs.items():
            group = theirs[path]
            assert np.array_equal(log.value, group["value"]) and len(log.time) == len(group["time"])
            assert log.units == group["value"].attrs["units"].decode()
            start = np.datetime64(group["time"].attrs["start"].decode().rstrip("Z"), "ns")
            seconds = (log.time - start).astype("i8") / 1e9
            assert np.allclose(seconds, group["time"], atol=1e-9)
    assert events.logs


def test_wrong_selections_are_errors(events):
    with pytest.raises(KeyError, match="its banks are bank1_events"):
        events.read("bank9_events")
    with pytest.raises(ValueError, match="no time"):
        events.read(time=("soon", None))
    with pytest.raises(ValueError, match="before its start"):
        events.read(time=(datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 1)))
    with pytest.raises(ValueError, match="pair"):
        events.read(tof=5)


def test_a_file_without_events_has_none(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = [1, 2]
    events = thalweg.open(tmp_path / "a.h5").events
    assert not events and len(events) == 0 and events.read() == [] and events.logs == {}


def test_an_empty_list_of_banks_is_not_all_of_them(files, events):
    for call in [events.read, events.find, events.batches]:
        with pytest.raises(thalweg.UsageError, match="found an empty list"):
            call([])
    with pytest.raises(thalweg.UsageError, match="found an empty list"):
        thalweg.open(files / "run.nxs").read([])
    for wrong in [{"pulses": (5, 2)}, {"tof": (5, 2)}, {"tof": (float("nan"), None)}]:
        with pytest.raises(thalweg.UsageError, match="expected an end that is not before the start"):
            events.read(**wrong)
