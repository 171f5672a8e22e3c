"""Events and logs of NeXus files: thalweg finds what h5py and numpy find, and tells what is wrong with indexes."""

import csv
import json
import re
import xml.etree.ElementTree

import h5py
import numpy as np
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from nanopore import SHARED
from nexus_files import EPOCH, STARTED, Bank, ess, nanoseconds, rows, scattered, sns, times

HDF5 = SHARED.parent / "hdf5"
STREAMER = HDF5 / "ess-dmsc+NeXus-Streamer/data"
COLUMNS = ["bank", "event_id", "event_time_offset", "pulse_time", "pulse"]

BANKS = {f"bank{number}_events": Bank(events, pulses, number) for number, (events, pulses) in enumerate([(5000, 300), (0, 10), (777, 300), (12_345, 50)], 1)}
STORAGE = {
    "contiguous": {},
    "chunked": {"chunks": (256,), "maxshape": (None,)},
    "gzip": {"chunks": (1000,), "maxshape": (None,), "compression": "gzip", "shuffle": True},
}


def write(style, path, banks=BANKS, **options):
    (sns if style == "sns" else ess)(path, {name.removesuffix("" if style == "sns" else "_events"): bank for name, bank in banks.items()}, **options)
    return path


def expected(style, name, where=lambda pulse, time, flight: pulse >= 0):
    bank = BANKS[name]
    if style == "sns":
        return rows(name, bank, bank.flights.astype("<f4"), bank.ids.astype("<u4"), where)
    return rows(name, bank, nanoseconds(bank), bank.ids.astype("<i4"), where)


def table(path) -> dict[str, np.ndarray]:
    if path.suffix == ".arrow":
        read = pyarrow.ipc.open_file(path).read_all()
    else:
        read = pyarrow.parquet.read_table(path)
    assert read.column_names == COLUMNS
    assert pyarrow.types.is_timestamp(read.schema.field("pulse_time").type)
    columns = {name: read[name].to_numpy(zero_copy_only=False) for name in COLUMNS}
    # Nulls make floating-point numbers of pulses.
    columns["pulse"] = read["pulse"].fill_null(-1).to_numpy()
    columns["bank"] = np.array(read["bank"].to_pylist(), dtype=str)
    return columns


def same(columns: dict[str, np.ndarray], banks) -> None:
    for name in COLUMNS:
        wanted = np.concatenate([getattr(bank, name) for bank in banks])
        assert np.array_equal(columns[name], wanted), name
        if name in ("event_id", "event_time_offset"):
            assert columns[name].dtype == wanted.dtype, name


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("style", ["sns", "ess"])
def test_all_events(thalweg, tmp_path, style, libver, storage):
    path = write(style, tmp_path / "run.nxs", libver=libver, **STORAGE[storage])
    for kind in ("arrow", "parquet"):
        out = tmp_path / f"out.{kind}"
        said = json.loads(thalweg("read", path, "--events", "--out", out, "--json").stdout)
        same(table(out), [expected(style, name) for name in BANKS])
        assert said["events"] == sum(len(bank.ids) for bank in BANKS.values())
        assert [(bank["bank"], bank["events"]) for bank in said["banks"]] == [(name, len(bank.ids)) for name, bank in BANKS.items()]
        assert said["findings"] == []
    assert pyarrow.ipc.open_file(tmp_path / "out.arrow").schema.field("event_time_offset").metadata == {b"units": b"us" if style == "sns" else b"ns"}


@pytest.mark.parametrize("style", ["sns", "ess"])
def test_events_as_arrays(thalweg, tmp_path, style):
    path = write(style, tmp_path / "run.nxs")
    out = tmp_path / "out.npy"
    thalweg("read", path, "--events", "--out", out, "--force")
    assert sorted(folder.name for folder in out.iterdir()) == sorted(BANKS)
    for name in BANKS:
        wanted = expected(style, name)
        for column in COLUMNS[1:]:
            read = np.load(out / name / f"{column}.npy", allow_pickle=False)
            own = getattr(wanted, column)
            assert read.dtype == own.dtype and np.array_equal(read, own), (name, column)
    again = thalweg("read", path, "--events", "--out", out, "--force", check=False)
    assert again.returncode == 1 and "remove it first" in again.stderr


def test_events_as_text(thalweg, tmp_path):
    path, out = write("ess", tmp_path / "run.nxs"), tmp_path / "out.csv"
    thalweg("read", path, "--events", "--bank", "bank3*", "--out", out, "--force")
    with out.open() as text:
        read = list(csv.DictReader(text))
    wanted = expected("ess", "bank3_events")
    assert [int(row["event_id"]) for row in read] == wanted.event_id.tolist()
    assert [int(row["pulse"]) for row in read] == wanted.pulse.tolist()
    assert np.array_equal(np.array([row["pulse_time"].removesuffix("Z") for row in read], "M8[ns]"), wanted.pulse_time)


SELECTIONS = {
    "pulses": (["--pulses", "10..200"], lambda pulse, time, flight: (pulse >= 10) & (pulse < 200)),
    "from a pulse on": (["--pulses", "40.."], lambda pulse, time, flight: pulse >= 40),
    "seconds": (["--time", "0.2..0.5"], lambda pulse, time, flight: (time >= 0.2) & (time < 0.5)),
    "seconds to a time": (["--time", "0.2..2026-03-01T12:30:01.25-05:00"], lambda pulse, time, flight: (time >= 0.2) & (time < 1)),
    "before a time": (["--time", "..2026-03-01T17:30:02"], lambda pulse, time, flight: time < 1.75),
    "flight": (["--tof", "5000..9ms"], lambda pulse, time, flight: (flight >= 5000) & (flight < 9000)),
    "flight in ns": (["--tof", "..2500000ns"], lambda pulse, time, flight: flight < 2500),
    "all": (["--pulses", "5..250", "--time", "0.1..8", "--tof", "1ms.."], lambda pulse, time, flight: (pulse >= 5) & (pulse < 250) & (time >= 0.1) & (time < 8) & (flight >= 1000)),
    "nothing": (["--pulses", "5..5"], lambda pulse, time, flight: pulse < 0),
    "before a time far away": (["--time", "0.5..1e10"], lambda pulse, time, flight: time >= 0.5),
    "between times far away": (["--time", "-1e300..1e300"], lambda pulse, time, flight: pulse >= 0),
    "after a time far away": (["--time", "1e19.."], lambda pulse, time, flight: pulse < 0),
}


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("style", ["sns", "ess"])
def test_selections(thalweg, tmp_path, style, selection):
    path, out = write(style, tmp_path / "run.nxs", **STORAGE["chunked"]), tmp_path / "out.arrow"
    options, where = SELECTIONS[selection]
    thalweg("read", path, "--events", *options, "--out", out, "--force")
    wanted = [expected(style, name, where) for name in BANKS]
    same(table(out), wanted)
    assert any(len(bank.pulse) for bank in wanted) == (selection not in ("nothing", "after a time far away"))


@pytest.mark.parametrize("time", ["5..1", "nan..", "..NaN", "2027-01-01..2026-01-01", "9e9..2026-03-01T17:30:02"])
def test_ranges_of_time_that_are_none(thalweg, tmp_path, time):
    path = write("sns", tmp_path / "run.nxs")
    assert thalweg("read", path, "--events", "--time", time, check=False).returncode == 2


@pytest.mark.parametrize("named", [["--bank", "bank[13]*"], ["--bank", "bank1_events", "--bank", "/entry/bank3_events"], ["/entry/bank1_events", "/entry/bank3_*"]])
def test_some_banks(thalweg, tmp_path, named):
    path, out = write("sns", tmp_path / "run.nxs"), tmp_path / "out.parquet"
    within = [word for word in named if word.startswith("/entry") and "--bank" not in named]
    thalweg("read", path, *within, "--events", *(named if not within else []), "--out", out, "--force")
    same(table(out), [expected("sns", name) for name in ("bank1_events", "bank3_events")])
    result = thalweg("read", path, "--events", "--bank", "bank9*", check=False)
    assert result.returncode == 1 and "bank9*" in result.stderr and "bank1_events" in result.stderr
    assert thalweg("read", path, "--bank", "bank1*", check=False).returncode == 2
    assert thalweg("read", path, "--events", "--pulses", "7", check=False).returncode == 2


def test_scattered_files_in_little_memory(thalweg, tmp_path):
    banks = {f"bank{number}_events": Bank(40_000, 700, number) for number in range(1, 6)}
    path, out = tmp_path / "live.nxs", tmp_path / "out.arrow"
    scattered(path, banks)
    wanted = [rows(name, bank, bank.flights.astype("<f4"), bank.ids.astype("<u4")) for name, bank in banks.items()]
    for memory in ("4MiB", "192MiB"):
        thalweg("read", path, "--events", "--memory", memory, "--out", out, "--force")
        same(table(out), wanted)
    where = lambda pulse, time, flight: (pulse >= 33) & (pulse < 66)
    thalweg("read", path, "--events", "--pulses", "33..66", "--memory", "4MiB", "--out", out, "--force")
    same(table(out), [rows(name, bank, bank.flights.astype("<f4"), bank.ids.astype("<u4"), where) for name, bank in banks.items()])


@pytest.mark.parametrize("memory", ["4MiB", "192MiB"])
def test_scattered_files_in_one_sweep(thalweg, tmp_path, memory):
    """Banks come in turns, each bank's events in their order; arrays and counts do not show it."""
    banks = {f"bank{number}_events": Bank(40_000, 700, number) for number in range(1, 6)}
    path, out = tmp_path / "live.nxs", tmp_path / "out.arrow"
    scattered(path, banks)
    flown = lambda pulse, time, flight: (pulse >= 33) & (flight >= 5000)
    for options, where in ([], lambda pulse, time, flight: pulse >= 0), (["--pulses", "33..", "--tof", "5ms.."], flown):
        wanted = {name: rows(name, bank, bank.flights.astype("<f4"), bank.ids.astype("<u4"), where) for name, bank in banks.items()}
        said = json.loads(thalweg("read", path, "--events", *options, "--order", "file", "--memory", memory, "--out", out, "--force", "--json").stdout)
        assert {row["bank"]: row["events"] for row in said["banks"]} == {name: len(bank.pulse) for name, bank in wanted.items()}
        columns = table(out)
        for name, bank in wanted.items():
            same({column: values[columns["bank"] == name] for column, values in columns.items()}, [bank])
        turns = int((columns["bank"][1:] != columns["bank"][:-1]).sum())
        assert turns == 4 if memory == "192MiB" else turns > 4
        arrays = tmp_path / f"{len(options)}.npy"
        thalweg("read", path, "--events", *options, "--memory", memory, "--out", arrays)
        for name, bank in wanted.items():
            for column in COLUMNS[1:]:
                assert np.array_equal(np.load(arrays / name / f"{column}.npy"), getattr(bank, column)), (name, column)
        counted = json.loads(thalweg("read", path, "--events", *options, "--memory", memory, "--json").stdout)
        assert counted["banks"] == said["banks"]


WEIGHTED = ("bank1_events", "bank3_events")


def weights(name) -> np.ndarray:
    return np.random.default_rng(7).gamma(2.0, 0.5, len(BANKS[name].ids)).astype("<f4")


def weighted(style, path):
    """Some banks have weights, and others have none."""
    write(style, path, **STORAGE["chunked"])
    with h5py.File(path, "r+") as file:
        for name in WEIGHTED:
            group = file[f"entry/{name}" if style == "sns" else f"entry/instrument/{name.removesuffix('_events')}/{name}"]
            group.create_dataset("event_weight", data=weights(name), chunks=(300,), compression="gzip")
    return path


WEIGHTED_SELECTIONS = {
    "whole": ([], lambda pulse, time, flight: pulse >= 0),
    **{name: SELECTIONS[name] for name in ("pulses", "seconds", "flight", "all", "nothing")},
}


@pytest.mark.parametrize("order", ["banks", "file"])
@pytest.mark.parametrize("selection", WEIGHTED_SELECTIONS)
@pytest.mark.parametrize("style", ["sns", "ess"])
def test_weights_go_with_their_events(thalweg, tmp_path, style, selection, order):
    path = weighted(style, tmp_path / "run.nxs")
    options, where = WEIGHTED_SELECTIONS[selection]
    own = {}
    for name, bank in BANKS.items():
        # Their numbers in the place of their ids: which of the events are kept.
        flights = bank.flights.astype("<f4") if style == "sns" else nanoseconds(bank)
        kept = rows(name, bank, flights, np.arange(len(bank.ids)), where).event_id
        own[name] = weights(name)[kept] if name in WEIGHTED else np.full(len(kept), np.nan, "<f4")
    for kind in ("arrow", "parquet", "csv"):
        out = tmp_path / f"out.{kind}"
        thalweg("read", path, "--events", *options, "--order", order, "--memory", "4MiB", "--out", out, "--force")
        if kind == "csv":
            with out.open() as text:
                read = list(csv.DictReader(text))
            names, values = np.array([row["bank"] for row in read]), np.array([float(row["event_weight"] or "nan") for row in read], "<f4")
        else:
            read = pyarrow.ipc.open_file(out).read_all() if kind == "arrow" else pyarrow.parquet.read_table(out)
            assert read.column_names == [*COLUMNS[:3], "event_weight", *COLUMNS[3:]]
            assert read.schema.field("event_weight").type == pyarrow.float32()
            names, values = np.array(read["bank"].to_pylist(), str), read["event_weight"].to_numpy(zero_copy_only=False)
        for name in BANKS:
            assert np.array_equal(values[names == name], own[name], equal_nan=True), (kind, name)
    arrays = tmp_path / "out.npy"
    thalweg("read", path, "--events", *options, "--out", arrays)
    for name in BANKS:
        assert (arrays / name / "event_weight.npy").exists() == (name in WEIGHTED)
        if name in WEIGHTED:
            read = np.load(arrays / name / "event_weight.npy")
            assert read.dtype == np.dtype("<f4") and np.array_equal(read, own[name])


def test_weights_that_do_not_fit_their_events_are_left_out(thalweg, tmp_path):
    path, out = weighted("sns", tmp_path / "run.nxs"), tmp_path / "out.arrow"
    said = json.loads(thalweg("info", path, "--json").stdout)["nexus"]
    assert [bank["bank"] for bank in said["banks"] if bank["weights"]] == list(WEIGHTED) and said["findings"] == []
    with h5py.File(path, "r+") as file:
        group = file["entry/bank3_events"]
        del group["event_weight"]
        group["event_weight"] = np.ones(700, "<f4")
    result = thalweg("read", path, "--events", "--bank", "bank3*", "--out", out, "--force", "--json")
    finding, = json.loads(result.stdout)["findings"]
    assert (finding["defect"], finding["at"]) == ("lengths_differ", 700) and "event_weight" in result.stderr
    same(table(out), [expected("sns", "bank3_events")])
    with h5py.File(path, "r+") as file:
        group = file["entry/bank3_events"]
        del group["event_weight"]
        group["event_weight"] = np.ones(777, "<f8")
    result = thalweg("read", path, "--events", "--out", tmp_path / "mixed.arrow", check=False)
    assert result.returncode == 1 and "differ in event_weight (F32 in bank1_events, F64 in bank3_events)" in result.stderr


def test_only_the_chunks_that_are_needed_are_read(thalweg, tmp_path):
    """A damaged chunk is no matter for the pulses that are not in it."""
    bank = Bank(20_000, 200, 1)
    path, out = tmp_path / "run.nxs", tmp_path / "out.arrow"
    sns(path, {"bank1_events": bank}, chunks=(500,), compression="gzip")
    with h5py.File(path) as file:
        damaged = file["entry/bank1_events/event_id"].id.get_chunk_info(39)
    data = bytearray(path.read_bytes())
    data[damaged.byte_offset : damaged.byte_offset + 8] = b"\xff" * 8
    path.write_bytes(data)
    before = int(np.searchsorted(bank.index, 39 * 500, side="right")) - 1
    thalweg("read", path, "--events", "--pulses", f"0..{before}", "--out", out, "--force")
    same(table(out), [rows("bank1_events", bank, bank.flights.astype("<f4"), bank.ids.astype("<u4"), lambda pulse, time, flight: pulse < before)])
    result = thalweg("read", path, "--events", "--out", out, "--force", check=False)
    assert result.returncode == 1 and "chunk 39 of /entry/bank1_events/event_id" in result.stderr


def broken(path, index, zeros=None, style="sns", pulses=6, events=60, **others):
    """A bank of evenly spread pulses whose index is not as it should be."""
    bank = Bank(events, pulses, 3)
    bank.index, bank.zeros = np.array([0, 10, 20, 30, 40, 50]), np.arange(6) / 10
    write(style, path, {"bank3_events": bank}, **({"cues": False} if style == "ess" else {}))
    with h5py.File(path, "r+") as file:
        group = file["entry/bank3_events" if style == "sns" else "entry/instrument/bank3/bank3_events"]
        for name, data in {"event_index": index, "event_time_zero": zeros, **others}.items():
            if data is not None:
                attributes = dict(group[name].attrs) if name in group else {}
                if name in group:
                    del group[name]
                if len(data) or name == "event_index":
                    group[name] = np.array(data)
                    group[name].attrs.update(attributes)
    return path


# The index, and of each finding: its defect, entry, count; the pulse of each tenth event.
BROKEN = {
    "truncated": ([0, 10, 20], [("index_truncated", 3, 3)], [0, 1, 2, 2, 2, 2]),
    "one short, at its end": ([0, 10, 20, 30, 40], [("index_one_short", 5, 1)], [0, 1, 2, 3, 4, 4]),
    "one short, at its start": ([10, 20, 30, 40, 50], [("index_one_short", 5, 1)], [0, 1, 2, 3, 4, 5]),
    "with its end": ([0, 10, 20, 30, 40, 50, 60], [("index_longer", 6, 1)], [0, 1, 2, 3, 4, 5]),
    "longer": ([0, 10, 20, 30, 40, 50, 52, 54], [("index_longer", 6, 2)], [0, 1, 2, 3, 4, 5]),
    "repeated": ([0, 2, 4, 4, 4, 4], [("index_repeated", 2, 4)], [0, 5, 5, 5, 5, 5]),
    "decreasing": ([0, 10, 40, 30, 40, 50], [("index_decreasing", 3, 1)], [0, 1, 1, 3, 4, 5]),
    "beyond": ([0, 10, 2**40, 30, 40, 50], [("index_beyond", 2, 1)], [0, 1, 1, 3, 4, 5]),
    "negative": (np.array([0, 10, -1, 30, 40, 50]), [("index_beyond", 2, 1)], [0, 1, 1, 3, 4, 5]),
    "late": ([20, 22, 24, 30, 40, 50], [("events_before_first_pulse", 0, 20)], [-1, -1, 0, 3, 4, 5]),
}


@pytest.mark.parametrize("style", ["sns", "ess"])
@pytest.mark.parametrize("kind", BROKEN)
def test_broken_indexes_are_reported(thalweg, tmp_path, kind, style):
    index, findings, pulses = BROKEN[kind]
    path, out = broken(tmp_path / "run.nxs", index, style=style), tmp_path / "out.arrow"
    result = thalweg("read", path, "--events", "--out", out, "--force", "--json")
    said = json.loads(result.stdout)
    assert [(f["defect"], f["at"], f["count"]) for f in said["findings"]] == findings
    for finding in said["findings"]:
        assert finding["group"].endswith("bank3_events") and finding["found"] and finding["expected"] and finding["done"]
        assert f"{finding['group']}: {finding['defect']} at entry {finding['at']}: found {finding['found']}" in result.stderr
    columns = table(out)
    assert len(columns["pulse"]) == 60 and columns["pulse"][::10].tolist() == pulses
    known = columns["pulse"] >= 0
    assert np.array_equal(columns["pulse_time"][known & (columns["pulse"] < 6)], (EPOCH + np.round(np.arange(6) / 10 * 1e9).astype("i8"))[columns["pulse"][known & (columns["pulse"] < 6)]])
    assert np.isnat(columns["pulse_time"][~known]).all()
    info = json.loads(thalweg("info", path, "--json").stdout)["nexus"]
    assert info["findings"] == said["findings"]
    assert findings[0][0] in thalweg("info", path).stdout


def test_other_defects_are_reported(thalweg, tmp_path):
    sound = [0, 10, 20, 30, 40, 50]

    def found(name, *arguments, edit=None, **options):
        path = broken(tmp_path / f"{name}.nxs", *arguments, **options)
        if edit:
            with h5py.File(path, "r+") as file:
                edit(file["entry/bank3_events"])
        said = json.loads(thalweg("read", path, "--events", "--json").stdout)
        return [(f["defect"], f["at"], f["count"]) for f in said["findings"]], said["events"]

    assert found("sound", sound) == ([], 60)
    assert found("times", sound, [0, 0.1, 0.05, 0.3, 0.2, 0.5]) == ([("times_decreasing", 2, 2)], 60)
    assert found("nan", sound, [0, 0.1, np.nan, 0.3, 0.4, 0.5]) == ([("no_time", 2, 1)], 60)
    assert found("no times", sound, []) == ([("no_times", None, 1)], 60)
    assert found("short", sound, event_id=np.arange(55)) == ([("lengths_differ", 55, 1)], 55)
    assert found("flat", sound, event_index=np.zeros((6, 2))) == ([("unusable", None, 1), ("no_index", None, 1)], 60)

    def units(group):
        group["event_time_offset"].attrs["units"] = "fortnight"

    def offset(group):
        del group["event_time_zero"].attrs["offset"]

    def index(group):
        del group["event_index"]

    assert found("units", sound, edit=units) == ([("unit", None, 1)], 60)
    assert found("epoch", sound, edit=offset) == ([("epoch", None, 1)], 60)
    assert found("no index", sound, edit=index) == ([("no_index", None, 1)], 60)
    cues = dict(cue_index=[0, 30], cue_timestamp_zero=[0, 0.3])
    assert found("cues", sound, **cues) == ([], 60)
    assert found("wrong cues", sound, cue_index=[0, 70], cue_timestamp_zero=[0, 0.3]) == ([("cues", 1, 1)], 60)
    assert found("back", sound, cue_index=[30, 0], cue_timestamp_zero=[0, 0.3]) == ([("cues", 1, 1)], 60)
    assert found("few", sound, cue_index=[0], cue_timestamp_zero=[0, 0.3]) == ([("cues", 1, 1)], 60)


def test_times_without_an_epoch_count_from_the_start_of_the_measurement(thalweg, tmp_path):
    path, out = broken(tmp_path / "run.nxs", None), tmp_path / "out.arrow"
    with h5py.File(path, "r+") as file:
        del file["entry/bank3_events/event_time_zero"].attrs["offset"]
    assert "start_time" in thalweg("read", path, "--events", "--out", out, "--force").stderr
    assert table(out)["pulse_time"][0] == EPOCH


def test_cue_entries_replace_an_index(thalweg, tmp_path):
    bank = Bank(1000, 70, 1)
    path, out = tmp_path / "run.nxs", tmp_path / "out.arrow"
    ess(path, {"bank1": bank})
    with h5py.File(path, "r+") as file:
        for name in ("event_index", "event_time_zero"):
            del file[f"entry/instrument/bank1/bank1_events/{name}"]
    assert "no_index" in thalweg("read", path, "--events", "--time", "..0.5", "--out", out, "--force").stderr
    cue = np.searchsorted(bank.index[::7], np.arange(1000), side="right") - 1
    keep = times(bank)[::7][cue] < times(bank)[0] + np.timedelta64(500, "ms")
    assert 0 < keep.sum() < 1000
    columns = table(out)
    assert np.array_equal(columns["event_id"], bank.ids[keep]) and np.array_equal(columns["pulse_time"], times(bank)[::7][cue][keep])


def test_groups_without_class_or_ids(thalweg, tmp_path):
    """What holds events is a bank whatever its class; monitors have no ids; a file may have two measurements."""
    path, out = tmp_path / "run.nxs", tmp_path / "out.arrow"
    with h5py.File(path, "w") as file:
        for number, entry in enumerate(("first", "second")):
            group = file.create_group(f"{entry}/bank")
            group["event_id"] = np.arange(number, number + 5, dtype="u4")
            group["event_time_offset"] = np.arange(5, dtype="f4")
            group["event_index"], group["event_time_zero"] = [0, 3], [0.0, 1.0]
            group["event_time_zero"].attrs["offset"] = STARTED
        monitor = file.create_group("first/monitor")
        monitor.attrs["NX_class"] = "NXmonitor"
        monitor["event_time_offset"] = np.arange(3, dtype="f4")
        monitor["event_index"], monitor["event_time_zero"] = [0, 1], [0.0, 1.0]
        monitor["event_time_zero"].attrs["offset"] = STARTED
    thalweg("read", path, "--events", "--out", out, "--force")
    read = pyarrow.ipc.open_file(out).read_all()
    assert read["bank"].to_pylist() == ["first/bank"] * 5 + ["monitor"] * 3 + ["second/bank"] * 5
    assert read["event_id"].to_pylist() == [0, 1, 2, 3, 4, None, None, None, 1, 2, 3, 4, 5]
    thalweg("read", path, "--events", "--out", tmp_path / "out.npy")
    assert np.array_equal(np.load(tmp_path / "out.npy/second/bank/event_id.npy"), np.arange(1, 6))
    assert not (tmp_path / "out.npy/monitor/event_id.npy").exists()
    with h5py.File(path, "r+") as file:
        del file["second/bank/event_id"]
        file["second/bank/event_id"] = np.arange(5, dtype="i8")
    result = thalweg("read", path, "--events", "--out", tmp_path / "mixed.arrow", check=False)
    assert result.returncode == 1 and "U32" in result.stderr and "--bank" in result.stderr
    assert not (tmp_path / "mixed.arrow").exists()


def test_one_file_is_read_at_a_time(thalweg, tmp_path):
    one, two = write("sns", tmp_path / "one.nxs"), write("sns", tmp_path / "two.nxs")
    for verb in [["read", one, two], ["read", one, two, "--events"], ["read", one, two, "--digest"], ["doctor", one, two]]:
        result = thalweg(*verb, check=False)
        assert result.returncode == 2 and f"{two}: a second file: this verb takes one HDF5 file" in result.stderr, verb


def test_files_without_logs(thalweg, tmp_path):
    path = tmp_path / "none.h5"
    with h5py.File(path, "w") as file:
        file["d"] = 1
    result = thalweg("read", path, "--logs", check=False)
    assert result.returncode == 1 and "no logs" in result.stderr


def test_files_without_events(thalweg, tmp_path):
    path = tmp_path / "none.h5"
    with h5py.File(path, "w") as file:
        file["data"] = np.arange(5)
    result = thalweg("read", path, "--events", check=False)
    assert result.returncode == 1 and "NXevent_data" in result.stderr
    assert json.loads(thalweg("info", path, "--json").stdout)["nexus"] is None
    assert thalweg("plot", path, "--out", tmp_path / "plot.svg", check=False).returncode == 1


def test_real_events(thalweg, shared, tmp_path):
    out = tmp_path / "out.arrow"
    thalweg("read", STREAMER / "SANS_test_reduced.hdf5", "--events", "--time", "3..10", "--out", out, "--force")
    with h5py.File(STREAMER / "SANS_test_reduced.hdf5") as file:
        group = file["raw_data_1/detector_1_events"]
        zeros, index, ids = group["event_time_zero"][()], group["event_index"][()], group["event_id"][()]
        started = np.datetime64(group["event_time_zero"].attrs["offset"], "ns")
    pulse = np.searchsorted(index, np.arange(len(ids)), side="right") - 1
    zeros = np.round(zeros * 1e9).astype("i8")
    keep = (zeros[pulse] >= zeros[0] + 3_000_000_000) & (zeros[pulse] < zeros[0] + 10_000_000_000)
    columns = table(out)
    assert keep.sum() > 10_000 and np.array_equal(columns["event_id"], ids[keep]) and np.array_equal(columns["pulse"], pulse[keep])
    assert np.array_equal(columns["pulse_time"], started + zeros[pulse][keep])
    # Rubbish in the place of one time.
    said = json.loads(thalweg("read", STREAMER / "minimal_example_with_geometry.nxs", "--events", "--json").stdout)
    assert said["events"] == 7 and {"no_time", "times_decreasing"} == {finding["defect"] for finding in said["findings"]}


def test_real_logs(thalweg, shared, tmp_path):
    out = tmp_path / "logs.parquet"
    path = STREAMER / "SANS_test_reduced.hdf5"
    thalweg("read", path, "--logs", "--out", out, "--force")
    read = pyarrow.parquet.read_table(out).to_pydict()
    wanted = []
    with h5py.File(path) as file:
        for name in sorted(file["raw_data_1/selog"]):
            log = file[f"raw_data_1/selog/{name}/value_log"]
            wanted += [(log.name, value) for value in log["value"][()].reshape(-1)]
    assert read["log"] == [name for name, _ in wanted]
    values = [text.encode() if text is not None else number for text, number in zip(read["text"], read["value"])]
    assert values == [value if isinstance(value, bytes) else float(value) for _, value in wanted]


def test_logs(thalweg, tmp_path):
    path = tmp_path / "run.nxs"
    with h5py.File(path, "w") as file:
        for name, start, unit, data in (("temperature", STARTED, "second", np.arange(4.0)), ("speed", None, "ns", np.arange(4, dtype="u8"))):
            log = file.create_group(f"entry/DASlogs/{name}")
            log.attrs["NX_class"] = "NXlog"
            log["time"] = data * 2
            log["time"].attrs["units"] = unit
            if start:
                log["time"].attrs["start"] = start
            log["value"] = np.arange(4, dtype="i2") * 7
            log["value"].attrs["units"] = "K"
        state = file.create_group("entry/DASlogs/state")
        state.attrs["NX_class"] = "NXlog"
        state["time"], state["value"] = np.arange(2.0), ["open", "closed"]
        odd = file.create_group("entry/DASlogs/odd")
        odd.attrs["NX_class"] = "NXlog"
        odd["time"], odd["value"] = np.arange(4.0), np.zeros((4, 3))
    result = thalweg("read", path, "--logs")
    read = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["log"].rsplit("/")[-1] for row in read] == ["speed"] * 4 + ["state"] * 2 + ["temperature"] * 4
    assert [float(row["value"]) for row in read if row["value"]] == [0, 7, 14, 21] * 2 and {row["units"] for row in read} == {"K", ""}
    assert [(row["time"], row["seconds"], row["text"]) for row in read[4:6]] == [("", "0.0", "open"), ("", "1.0", "closed")]
    assert read[9]["time"] == "2026-03-01T17:30:06.250Z" and float(read[9]["seconds"]) == 6
    assert read[3]["time"] == "1970-01-01T00:00:00.000000006Z"
    assert "odd" in result.stderr
    assert len(thalweg("read", path, "--logs", "temp*").stdout.splitlines()) == 5
    assert thalweg("read", path, "--logs", "none", check=False).returncode == 1
    assert "odd" in thalweg("read", path, "--logs", "--out", tmp_path / "logs.npy").stderr
    arrays = {str(file.relative_to(tmp_path / "logs.npy/entry/DASlogs")): np.load(file, allow_pickle=False) for file in (tmp_path / "logs.npy").rglob("*.npy")}
    assert sorted(arrays) == sorted(f"{log}/{column}.npy" for log, value in (("speed", "value"), ("state", "text"), ("temperature", "value")) for column in ("seconds", "time", value))
    assert arrays["temperature/value.npy"].tolist() == [0, 7, 14, 21] and arrays["temperature/seconds.npy"].tolist() == [0, 2, 4, 6]
    assert arrays["temperature/time.npy"][3] == np.datetime64("2026-03-01T17:30:06.250", "ns")
    assert arrays["state/text.npy"].tolist() == [b"open", b"closed"] and np.isnat(arrays["state/time.npy"]).all()


def test_info(thalweg, tmp_path):
    path = write("sns", tmp_path / "run.nxs")
    info = json.loads(thalweg("info", path, "--json").stdout)["nexus"]
    assert info["entries"] == [{"path": "/entry", "start_time": STARTED, "title": None}]
    assert info["events"] == 18_122 and info["findings"] == [] and info["logs"] == []
    bank = info["banks"][0]
    assert (bank["bank"], bank["events"], bank["pulses"], bank["unit"]) == ("bank1_events", 5000, 300, "us")
    assert bank["first_pulse"] == "2026-03-01T17:30:00.25Z" and bank["duration_s"] == pytest.approx(BANKS["bank1_events"].zeros[-1])
    words = thalweg("info", path).stdout
    assert "18122 of 4 banks, pulses from 2026-03-01T17:30:00.25Z" in words
    assert "/entry/bank3_events: 777 events, 300 pulses" in words


def test_info_of_strings_of_any_length(thalweg, tmp_path):
    path = write("ess", tmp_path / "run.nxs")
    with h5py.File(path, "r+") as file:
        file["entry/title"] = "vanadium"
    info = json.loads(thalweg("info", path, "--json").stdout)["nexus"]
    assert info["entries"] == [{"path": "/entry", "start_time": STARTED, "title": "vanadium"}]


@pytest.mark.parametrize("style", ["sns", "ess"])
def test_plots(thalweg, tmp_path, style):
    path = write(style, tmp_path / "run.nxs", **STORAGE["chunked"])
    svg = tmp_path / "plot.svg"
    thalweg("plot", path, "--out", svg, "--force")
    root = xml.etree.ElementTree.parse(svg).getroot()
    words = " ".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))
    for word in ("18.1k events of 4 banks", "events/s", "time since the first pulse in s", "time of flight in µs", "event_id", "bank4_events"):
        assert word in " ".join(words.split()), word
    thalweg("plot", path, "--out", tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    page = tmp_path / "plot.html"
    thalweg("plot", path, "--bank", "bank1*", "--out", page, "--force")
    text = page.read_text(encoding="utf-8")
    assert "5.00k events of 1 bank" in text and "events/s" in text
    figures = charts(text)
    # What the bars hold is what numpy counts.
    bank = BANKS["bank1_events"]
    flight = figures["Time-of-flight spectrum"]
    edges = [*flight["x"], flight["x"][-1] + flight["width"][-1]]
    flights = bank.flights.astype("f4").astype("f8") if style == "sns" else nanoseconds(bank) / 1000
    assert flight["y"] == np.histogram(flights, edges)[0].tolist() and sum(flight["y"]) == 5000
    rate = figures["Event rate"]
    edges = np.round(np.array([*rate["x"], rate["x"][-1] + rate["width"][-1]]) * 1e9)
    counts = np.diff([*bank.index, 5000]).astype(int)
    assert np.allclose(np.array(rate["y"]) * rate["width"], np.histogram(np.round(bank.zeros * 1e9), edges, weights=counts)[0])
    ids = figures["Events by detector"]
    edges = [*ids["x"], ids["x"][-1] + ids["width"][-1]]
    assert ids["y"] == np.histogram(bank.ids, edges)[0].tolist()


def test_plots_say_that_weights_do_not_count(thalweg, tmp_path):
    path, plot = weighted("sns", tmp_path / "run.nxs"), tmp_path / "plot.svg"
    assert "each event counts as one here" in thalweg("plot", path, "--out", plot, "--force").stderr
    assert thalweg("plot", path, "--bank", "bank2*", "--out", plot, "--force", "-q").stderr == ""


def charts(page: str) -> dict[str, dict]:
    """The data of a page's figures by their titles."""
    titles = re.findall("<figcaption>(.*?)</figcaption>", page)
    figures = json.loads(re.search('<script type="application/json" id="figures">(.*?)</script>', page, re.DOTALL)[1])
    return {title: figure["data"][0] for title, figure in zip(titles, figures, strict=True)}


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_datasets_as_a_table(thalweg, tmp_path, kind):
    path, out = tmp_path / "f.h5", tmp_path / f"out.{kind}"
    rng = np.random.default_rng(5)
    data = {
        "numbers": rng.integers(0, 1 << 40, 5000).astype(">i8"),
        "halves": rng.random(5000).astype("f4"),
        "flags": rng.random(5000) > 0.5,
        "words": np.array([b"x" * (n % 9) for n in range(5000)]),
        "matrix": rng.integers(0, 99, (5000, 3, 2)).astype("u2"),
        "complex": (rng.random(5000) + 1j * rng.random(5000)).astype("c8"),
    }
    with h5py.File(path, "w") as file:
        for number, (name, values) in enumerate(data.items()):
            file.create_dataset(f"g/{name}", data=values, chunks=(700 + number, *values.shape[1:]), compression="gzip")
        file["other/short"] = np.arange(7)
    thalweg("read", path, "g", "--out", out, "--force", "--memory", "4MiB")
    read = pyarrow.ipc.open_file(out).read_all() if kind == "arrow" else pyarrow.parquet.read_table(out)
    assert read.column_names == sorted(data)
    for name, values in data.items():
        own = read[name].to_pylist()
        if values.dtype.kind == "c":
            own = [complex(*pair) for pair in own]
        wanted = values.astype(str) if values.dtype.kind == "S" else values
        assert own == wanted.tolist(), name
    result = thalweg("read", path, "--out", out, "--force", check=False)
    assert result.returncode == 1 and "/other/short" in result.stderr and "5000 rows" in result.stderr


def test_datasets_as_arrays(thalweg, tmp_path):
    path, out = tmp_path / "f.h5", tmp_path / "out.npy"
    with h5py.File(path, "w") as file:
        file["a/scalar"], file["a/empty"], file["b"] = 1.5, np.zeros((0, 3), "u1"), np.arange(24, dtype=">u4").reshape(2, 3, 4)
        file["record"] = np.array([(1, 2.5)], [("n", "<i4"), ("x", "<f8")])
        file["text"] = "of any length"
        group = file.create_group("..")
        group["out"] = np.arange(3)
    result = thalweg("read", path, "--out", out, "--force", "--json")
    assert json.loads(result.stdout)["datasets"] == 5 + ("text" not in result.stderr)
    assert np.load(out / "a/scalar.npy") == 1.5 and np.load(out / "a/empty.npy").shape == (0, 3)
    read = np.load(out / "b.npy")
    assert np.array_equal(read, np.arange(24).reshape(2, 3, 4)) and read.dtype == "<u4"
    assert np.load(out / "record.npy").tobytes() == np.array([(1, 2.5)], [("n", "<i4"), ("x", "<f8")]).tobytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.h5", "out.npy"] and (out / "_/out.npy").exists()


def test_logs_that_cannot_be_read_are_named(thalweg, tmp_path):
    path = tmp_path / "f.nxs"
    with h5py.File(path, "w") as file:
        for name, columns in {"whole": ("time", "value"), "timeless": ("value",), "empty": ("time",), "average": ()}.items():
            log = file.create_group(f"entry/{name}")
            log.attrs["NX_class"] = "NXlog"
            for column in columns:
                log[column] = np.arange(3.0)
        words = file.create_group("entry/words")
        words.attrs["NX_class"] = "NXlog"
        words["time"], words["value"] = np.array([b"now"]), np.arange(1.0)
        parsecs = file.create_group("entry/parsecs")
        parsecs.attrs["NX_class"] = "NXlog"
        parsecs["time"], parsecs["value"] = np.arange(3.0), np.arange(3.0)
        parsecs["time"].attrs["units"] = "parsec"
    wanted = {
        "/entry/timeless": "no dataset time",
        "/entry/empty": "no dataset value",
        "/entry/average": "no dataset time",
        "/entry/words": "not a list of numbers",
        "/entry/parsecs": 'the units "parsec"',
    }
    told, listed = thalweg("info", path).stdout, json.loads(thalweg("info", path, "--json").stdout)
    unread = {log["path"]: log["why"] for log in listed["nexus"]["logs_not_read"]}
    assert unread.keys() == wanted.keys()
    done = thalweg("read", path, "--logs", "*")
    for log, why in wanted.items():
        assert why in unread[log] and f"the log {log}: " in told and f"{log}: not read: " in done.stderr
    assert len(done.stdout.splitlines()) == 4


def test_times_of_logs_in_all_units(thalweg, tmp_path):
    path = tmp_path / "f.nxs"
    units = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "minute": 60 * 10**9, "hours": 3600 * 10**9, "day": 86400 * 10**9}
    with h5py.File(path, "w") as file:
        for name in units:
            log = file.create_group(f"entry/{name}")
            log.attrs["NX_class"] = "NXlog"
            log["time"], log["value"] = np.array([0.0, 1.5]), np.arange(2.0)
            log["time"].attrs.update(units=name, start="2026-03-01T00:00:00Z")
    start = np.datetime64("2026-03-01T00:00:00", "ns")
    for name, nanoseconds in units.items():
        out = tmp_path / f"{name}.arrow"
        thalweg("read", path, "--logs", f"/entry/{name}", "--out", out)
        times = pyarrow.ipc.open_file(out).read_all().column("time").cast(pyarrow.timestamp("ns")).to_numpy()
        assert list(times - start) == [np.timedelta64(0), np.timedelta64(round(1.5 * nanoseconds), "ns")], name


def test_a_damaged_group_hides_no_events(thalweg, tmp_path):
    path = tmp_path / "f.nxs"
    with h5py.File(path, "w") as file:
        bank = file.create_group("entry/bank")
        bank.attrs["NX_class"] = "NXevent_data"
        bank["event_id"], bank["event_time_offset"] = np.arange(5, dtype="u4"), np.arange(5.0)
        bank["event_time_zero"], bank["event_index"] = np.array([0.0]), np.array([0], "u8")
        log = file.create_group("entry/log")
        log.attrs["NX_class"] = "NXlog"
        log["time"], log["value"] = np.arange(3.0), np.arange(3.0)
        address = h5py.h5o.get_info(file.create_group("entry/junk").id).addr
    data = bytearray(path.read_bytes())
    data[address] = 0xFF
    path.write_bytes(data)
    for args, found in [(["--events"], "5 events of 1 bank"), (["--logs"], "/entry/log,")]:
        done = thalweg("read", path, *args, check=False)
        assert done.returncode == 1 and "/entry/junk, byte " in done.stderr and found in done.stdout, done
    assert "/entry/junk, byte " in thalweg("plot", path, "--out", tmp_path / "f.svg").stderr
    assert "5 events" in (tmp_path / "f.svg").read_text()
