"""What can be opened: paths, and open files of Python and fsspec."""

import gzip
import io
import os
import pickle

import fsspec
import numpy as np
import pytest
import thalweg

BANK = "/entry/bank1_events/event_id"


class Piecewise(io.BytesIO):
    """A file that gives less than it is asked for, as pipes and sockets do."""

    def read(self, size=-1):
        return super().read(min(size, 1000) if size > 0 else size)


@pytest.mark.parametrize("kind", [io.BytesIO, Piecewise])
@pytest.mark.parametrize("suffix", ["blow5", "pod5", "slow5"])
def test_reads_of_an_open_file(files, kind, suffix):
    expected = thalweg.open(files / f"reads.{suffix}")
    with kind((files / f"reads.{suffix}").read_bytes()) as file:
        reads = thalweg.open(file)
        assert reads.ids == expected.ids
        signals = [read.signal for read in reads]
        assert all(np.array_equal(ours, read.signal) for ours, read in zip(signals, expected))
        wanted = reads.ids[::-2]
        assert [read.id for read in reads.get(wanted)] == wanted
    assert not os.path.exists("<BytesIO>.idx")


def test_arrays_of_an_open_file(files):
    with io.BytesIO((files / "run.nxs").read_bytes()) as file:
        arrays = thalweg.open(file)
        assert np.array_equal(arrays[BANK][5:500:3], thalweg.open(files / "run.nxs")[BANK][5:500:3])
        assert len(arrays.events) == len(thalweg.open(files / "run.nxs").events)


def test_files_of_fsspec(files):
    memory = fsspec.filesystem("memory")
    for name in ["reads.pod5", "run.nxs"]:
        memory.pipe(f"/thalweg/{name}", (files / name).read_bytes())
    with fsspec.open("memory://thalweg/reads.pod5") as file:
        assert thalweg.open(file).ids == thalweg.open(files / "reads.pod5").ids
    # One that is not opened yet.
    arrays = thalweg.open(fsspec.open("memory://thalweg/run.nxs"))
    assert np.array_equal(arrays[BANK][...], thalweg.open(files / "run.nxs")[BANK][...])


def test_an_open_file_of_this_machine_is_read_by_its_path(files):
    for file in [open(files / "reads.pod5", "rb"), fsspec.open(str(files / "reads.pod5")).open()]:
        with file:
            assert [str(path) for path in thalweg.open(file).paths] == [str(files / "reads.pod5")]


def test_what_cannot_be_read_is_an_error(files):
    with pytest.raises(ValueError, match="expected a path"):
        thalweg.open(5)
    with open(files / "reads.slow5") as text, io.StringIO(text.read()) as file:
        with pytest.raises(OSError, match="expected one opened in mode 'rb'"):
            thalweg.open(file)
    file = io.BytesIO((files / "reads.blow5").read_bytes())
    reads = thalweg.open(file)
    file.close()
    with pytest.raises(OSError, match="closed file"):
        list(reads)


def test_a_table_of_an_open_file_is_made_by_who_holds_the_lock(files):
    """Polars holds the interpreter's lock while it takes batches, for which threads of the read need it."""
    polars = pytest.importorskip("polars")
    with io.BytesIO((files / "reads.blow5").read_bytes()) as file:
        reads = thalweg.open(file)
        frame = polars.DataFrame(reads.batches(columns=["read_id", "signal"]))
        assert frame["read_id"].to_list() == reads.ids
        # A stream that is given up.
        reads.batches().__arrow_c_stream__()


def test_what_a_file_decompresses_is_read(files, tmp_path):
    for name in ["reads.slow5", "run.nxs"]:
        packed = gzip.compress((files / name).read_bytes(), 1)
        path = tmp_path / f"{name}.gz"
        path.write_bytes(packed)
        with gzip.open(path) as file:
            opened = thalweg.open(file)
            if name == "run.nxs":
                assert np.array_equal(opened[BANK][...], thalweg.open(files / name)[BANK][...])
            else:
                assert opened.ids == thalweg.open(files / name).ids


def test_open_files_have_no_path(files):
    with io.BytesIO((files / "run.nxs").read_bytes()) as file:
        arrays = thalweg.open(file)
        for wrong in [lambda: pickle.dumps(arrays), lambda: arrays.plan(BANK), arrays.doctor]:
            with pytest.raises(ValueError, match="without one"):
                wrong()
    with io.BytesIO((files / "reads.pod5").read_bytes()) as file:
        with pytest.raises(ValueError, match="without one"):
            pickle.dumps(thalweg.open(file))


class Failing(io.BytesIO):
    """A file that fails once it is open."""

    error = None

    def read(self, size=-1):
        if self.error is not None:
            raise self.error
        return super().read(size)


@pytest.mark.parametrize("name", ["reads.blow5", "run.nxs"])
def test_what_a_file_raises_is_not_lost(files, name):
    file = Failing((files / name).read_bytes())
    opened = thalweg.open(file)

    def read():
        return opened[BANK][...] if name == "run.nxs" else list(opened)

    if name == "run.nxs":
        opened[BANK]
    file.error = KeyboardInterrupt("now")
    with pytest.raises(KeyboardInterrupt):
        read()
    file.error = LookupError("gone")
    with pytest.raises(OSError, match="gone") as failure:
        read()
    assert isinstance(failure.value.__cause__, LookupError)
    assert pickle.loads(pickle.dumps(failure.value)).file == failure.value.file
    file.error = None
    assert len(read())


def test_errors_can_be_sent(files, tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        thalweg.open(tmp_path / "none.blow5")
    again = pickle.loads(pickle.dumps(missing.value))
    assert (type(again), str(again), again.errno) == (type(missing.value), str(missing.value), 2)
