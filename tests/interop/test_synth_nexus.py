"""Synthetic NeXus events: h5py reads what was asked for, laid out in the file as asked for."""

import hashlib

import h5py
import hdf5plugin  # noqa: F401 # registers the filters
import numpy as np
import pytest

from hdf5_rows import rows

BANKS = 5
EVENTS = ["event_id", "event_time_offset"]
PULSES = ["event_index", "event_time_zero"]
RECIPE = ["--kind", "nexus-live", "--banks", BANKS, "--events-per-pulse", 300]
GZIP, SHUFFLE, LZ4, ZSTD = 1, 2, 32004, 32015


@pytest.fixture
def synth(thalweg, tmp_path):
    count = 0

    def call(*options, chunk=512, size="2MB"):
        nonlocal count
        count += 1
        path = tmp_path / f"{count}.nxs"
        thalweg("synth", path, *RECIPE, "--size", size, "--chunk", chunk, *options)
        assert sorted(item.suffix for item in tmp_path.iterdir()) == [".nxs"] * count, "nothing else is left"
        return path

    return call


def bank(file, number):
    return file[f"entry/bank{number + 1}_events"]


def values(path):
    """Every value of every bank."""
    with h5py.File(path) as file:
        return {(b, name): bank(file, b)[name][()] for b in range(BANKS) for name in EVENTS + PULSES}


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key in ours:
        np.testing.assert_array_equal(ours[key], theirs[key])


def offsets(dataset):
    """Where each chunk lies, in the order of the dataset."""
    infos = [dataset.id.get_chunk_info(i) for i in range(dataset.id.get_num_chunks())]
    return [info.byte_offset for info in sorted(infos, key=lambda info: info.chunk_offset)]


def arrivals(file, name):
    """The banks of all chunks of one name, in the order of the file."""
    placed = [(offset, b) for b in range(BANKS) for offset in offsets(bank(file, b)[name])]
    return [b for _, b in sorted(placed)]


def changes(banks):
    return np.mean(np.diff(banks) != 0)


def test_events_belong_to_pulses_and_pixels_to_banks(synth):
    with h5py.File(synth()) as file:
        assert file["entry"].attrs["NX_class"] == b"NXentry"
        assert file["entry/instrument"].attrs["NX_class"] == b"NXinstrument"
        counts = []
        for b in range(BANKS):
            group = bank(file, b)
            assert group.attrs["NX_class"] == b"NXevent_data"
            ids, index, zero = (group[name][()] for name in ("event_id", "event_index", "event_time_zero"))
            assert (ids.dtype, index.dtype, zero.dtype) == ("<u4", "<u8", "<f8")
            assert group["event_time_offset"].dtype == "<f4" and group["event_time_offset"].attrs["units"] == b"microsecond"
            assert group["event_time_zero"].attrs["offset"].endswith(b"Z")
            assert len(ids) == len(group["event_time_offset"]) == group["total_counts"][0]
            assert len(index) == len(zero) > 100
            assert index[0] == 0 and np.all(np.diff(index.astype("i8")) >= 0) and index[-1] <= len(ids)
            assert np.all(np.diff(zero) > 0)
            assert b * 1024 <= ids.min() and ids.max() < (b + 1) * 1024
            counts.append(len(ids))
        assert 0.9 < sum(counts) * 8 / 2e6 < 1.1
        assert counts == sorted(counts, reverse=True) and counts[0] > 10 * counts[-1]
        for name in ("proton_charge", "sample_temperature"):
            log = file["entry/DASlogs"][name]
            assert log.attrs["NX_class"] == b"NXlog"
            assert len(log["time"]) == len(log["value"]) > 0 and np.all(np.diff(log["time"][()]) > 0)


def test_the_same_seed_is_the_same_file(synth):
    hashes = [hashlib.sha256(synth(*more).read_bytes()).hexdigest() for more in ([], [], ["--seed", 2])]
    assert hashes[0] == hashes[1] != hashes[2]


def test_live_chunks_are_scattered(synth):
    with h5py.File(synth()) as file:
        for name in EVENTS:
            banks = arrivals(file, name)
            assert len(banks) > 400
            shares = np.bincount(banks) / len(banks)
            # by chance a chunk's neighbour is another bank's this often
            assert abs(changes(banks) - (1 - np.sum(shares**2))) < 0.1
            for b in range(BANKS):
                assert offsets(bank(file, b)[name]) == sorted(offsets(bank(file, b)[name])), "in the order of arrival"
        # Pulses come with their events, not before or after all of them.
        events, pulses = ([o for b in range(BANKS) for o in offsets(bank(file, b)[name])] for name in ("event_id", "event_index"))
        assert min(events) < min(pulses) and np.mean(events) / 2 < np.mean(pulses)


def test_other_orders_hold_the_same_values(synth):
    paths = {order: synth("--order", order) for order in ("live", "interleaved", "ordered")}
    live = values(paths["live"])
    with h5py.File(paths["interleaved"]) as file:
        assert arrivals(file, "event_id")[: 2 * BANKS] == list(range(BANKS)) * 2
    with h5py.File(paths["ordered"]) as file:
        banks = arrivals(file, "event_id")
        assert banks == sorted(banks)
        for b in range(BANKS):
            assert max(offsets(bank(file, b)["event_id"])) < min(offsets(bank(file, b)["event_time_offset"]))
    for order in ("interleaved", "ordered"):
        same(values(paths[order]), live)


@pytest.mark.parametrize("chunk", [1, 100, "4Ki", "1Mi", "contiguous"])
def test_other_layouts_hold_the_same_values(synth, chunk):
    path = synth(chunk=chunk, size="100kB")
    same(values(path), values(synth(size="100kB")))
    with h5py.File(path) as file:
        dataset = bank(file, 0)["event_id"]
        whole = len(dataset)
        # No chunk is longer than what it is of.
        assert dataset.chunks == {1: (1,), 100: (100,), "4Ki": (4096,), "1Mi": (whole,), "contiguous": None}[chunk]
        assert dataset.maxshape == ((whole,) if chunk == "contiguous" else (None,))


@pytest.mark.parametrize(
    ("name", "filters"),
    [
        ("gzip:1", [GZIP]),
        ("gzip", [GZIP]),
        ("shuffle+gzip:9", [SHUFFLE, GZIP]),
        ("zstd", [ZSTD]),
        ("shuffle+zstd:1", [SHUFFLE, ZSTD]),
        ("lz4", [LZ4]),
        ("shuffle+lz4", [SHUFFLE, LZ4]),
    ],
)
@pytest.mark.parametrize("chunk", [512, "1Mi"])
def test_filters(thalweg, synth, name, filters, chunk):
    path = synth("--filter", name, chunk=chunk)
    with h5py.File(path) as file:
        for field in EVENTS + PULSES:
            dataset = bank(file, 0)[field]
            made = dataset.id.get_create_plist()
            assert [made.get_filter(i)[0] for i in range(made.get_nfilters())] == filters
            if SHUFFLE in filters:
                assert made.get_filter(0)[2] == (dataset.dtype.itemsize,)
        stored = bank(file, 0)["event_id"].id.get_storage_size() / bank(file, 0)["event_id"].nbytes
        assert 0.2 < stored < 0.9, "an arange would be a hundredth"
    same(values(path), values(synth(chunk=chunk)))
    assert thalweg("read", path, "--digest").stdout.splitlines() == rows(path)[0]


@pytest.mark.parametrize(("libver", "superblock"), [("earliest", 0), ("latest", 3)])
@pytest.mark.parametrize("order", ["live", "ordered"])
def test_digests_are_those_of_h5py(thalweg, synth, libver, superblock, order):
    path = synth("--libver", libver, "--order", order)
    assert path.read_bytes()[8] == superblock
    ours = thalweg("read", path, "--digest").stdout.splitlines()
    assert ours == rows(path)[0] and len(ours) >= BANKS * 5


def test_pulse_times_in_nanoseconds(synth):
    seconds, nanoseconds = (synth("--pulse-times", unit) for unit in ("seconds", "nanoseconds"))
    with h5py.File(seconds) as one, h5py.File(nanoseconds) as other:
        zero = bank(other, 0)["event_time_zero"]
        assert zero.dtype == "<u8" and zero.attrs["units"] == b"ns" and zero.attrs["offset"] == b"1970-01-01T00:00:00Z"
        start = np.datetime64(bank(one, 0)["event_time_zero"].attrs["offset"].decode().strip("Z"), "ns").astype("i8")
        np.testing.assert_allclose((zero[()].astype("i8") - start) / 1e9, bank(one, 0)["event_time_zero"][()], atol=1e-8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--chunk", "contiguous", "--filter", "gzip"], "only chunks have filters"),
        (["--chunk", "contiguous", "--order", "live"], "ordered"),
        (["--chunk", "1Gi"], "1Mi"),
        (["--banks", 0], "banks"),
        (["--filter", "szip"], "shuffle+gzip"),
        (["--events-per-pulse", 0], "events_per_pulse"),
    ],
)
def test_impossible_recipes_are_usage_errors(thalweg, tmp_path, options, words):
    done = thalweg("synth", tmp_path / "x.nxs", "--kind", "nexus-live", *options, check=False)
    assert done.returncode == 2 and words in done.stderr
    assert not any(tmp_path.iterdir())
