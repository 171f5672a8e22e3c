"""Collections of Dask."""

import pickle

import numpy as np
import pyarrow
import pytest
import thalweg

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
import thalweg.dask

BANK = "/entry/bank1_events/event_id"


@pytest.fixture(scope="module")
def cluster():
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None) as local:
        with Client(local) as client:
            yield client


def check_all(files, **how):
    reads = thalweg.open(files / "reads.blow5")
    frame = thalweg.dask.reads(files / "reads.blow5", partitions=5)
    assert frame.npartitions == 5
    found = frame.compute(**how)
    table = pyarrow.table(reads.batches())
    assert found["read_id"].tolist() == reads.ids
    assert all(np.array_equal(ours, read.signal) for ours, read in zip(found["signal"], reads))
    assert list(found.columns) == table.column_names
    assert found["end_reason"].tolist() == table.column("end_reason").to_pylist() and repr(found.head())
    samples = thalweg.dask.reads(files / "reads.pod5", columns=["read_id", "samples"], signal=False, partitions=3)
    assert samples["samples"].sum().compute(**how) == sum(read.samples for read in reads)
    sums = thalweg.dask.bag(files / "reads.pod5", partitions=4).map(lambda read: int(read["signal"].sum())).compute(**how)
    assert sums == [int(read.signal.sum()) for read in reads]
    file = thalweg.open(files / "run.nxs")
    array = thalweg.dask.array(files / "run.nxs", BANK, chunks=50_000)
    assert array.dtype == file[BANK].dtype and len(array.chunks[0]) > 2
    assert np.array_equal(array.compute(**how), file[BANK][...])
    assert array[100:120_000:7].sum().compute(**how) == file[BANK][100:120_000:7].sum()
    arrays = thalweg.dask.arrays(files / "run.nxs", "/entry/bank*_events/event_id")
    assert {path: int(each.max().compute(**how)) for path, each in arrays.items()} == {
        path: int(values.max()) for path, values in file.read("/entry/bank*_events/event_id").items()
    }
    events = thalweg.dask.events(files / "run.nxs", partitions=6)
    found = events.compute(**how)
    expected = pyarrow.table(file.events.batches())
    assert events.npartitions == 6 and len(found) == expected.num_rows
    by_bank = found.sort_values("bank", kind="stable")
    for name in ["bank", "event_id", "event_time_offset", "pulse"]:
        assert by_bank[name].tolist() == expected.column(name).to_pylist(), name
    # A partition has all banks.
    assert events.map_partitions(len).compute(**how).max() < len(found) // 4
    assert set(events.partitions[3].compute(**how)["bank"]) == set(found["bank"])


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
def test_values_are_those_of_one_process(files, scheduler):
    check_all(files, scheduler=scheduler)


def test_values_of_a_cluster_are_those_of_one_process(files, cluster):
    check_all(files)


def test_blocks_are_whole_chunks(files):
    stored = thalweg.open(files / "run.nxs")[BANK].chunks[0]
    for chunks in [None, "auto", {0: "1MB"}]:
        blocks = thalweg.dask.array(files / "run.nxs", BANK, chunks=chunks).chunks[0]
        assert all(block % stored == 0 for block in blocks[:-1])


def test_a_partition_is_small_to_send(files):
    frame = thalweg.dask.reads(files / "reads.pod5", partitions=40)
    assert len(pickle.dumps(frame)) < 20_000
    with pytest.raises(ValueError, match="expected Reads"):
        thalweg.dask.reads(files / "run.nxs")
    for paths in [thalweg.open(files / "reads.pod5"), 5]:
        with pytest.raises(thalweg.UsageError, match=f"found {type(paths).__name__}, expected a path, a URL or a list"):
            thalweg.dask.reads(paths)
    with pytest.raises(thalweg.UsageError, match="columns='read_id': found one str"):
        thalweg.dask.reads(files / "reads.pod5", columns="read_id")
    with pytest.raises(thalweg.UsageError, match="/entry: found Group, expected an array"):
        thalweg.dask.array(files / "run.nxs", "/entry")
    with pytest.raises(ValueError, match="memory"):
        thalweg.dask.reads(files / "reads.pod5", memory="much")


def test_banks_may_differ_in_columns(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.nxs", "w") as file:
        entry = file.create_group("entry")
        for name, weights in [("det[1]", [0.5, 2.0]), ("plain", None)]:
            bank = entry.create_group(name)
            bank.attrs["NX_class"] = "NXevent_data"
            bank["event_id"] = np.array([3, 1], "u4")
            if weights:
                bank["event_weight"] = np.array(weights, "f4")
    frame = thalweg.dask.events(tmp_path / "a.nxs")
    assert frame["event_weight"].sum().compute(scheduler="sync") == 2.5
    assert frame.compute(scheduler="sync")["bank"].tolist() == ["det[1]"] * 2 + ["plain"] * 2


def test_elements_may_be_arrays(tmp_path):
    h5py = pytest.importorskip("h5py")
    values = np.arange(24, dtype="f4").reshape(4, 2, 3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("a", (4, 2), np.dtype(("f4", (3,))), chunks=(2, 2))
        made[...] = values
        file["one"] = 5
    array = thalweg.dask.array(tmp_path / "a.h5", "a")
    assert array.shape == (4, 2, 3) and np.array_equal(array.compute(scheduler="sync"), values)
    assert thalweg.dask.array(tmp_path / "a.h5", "one").compute(scheduler="sync") == 5
