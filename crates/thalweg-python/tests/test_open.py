"""What can be opened: paths, and open files of Python and fsspec."""

import io
import os

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
