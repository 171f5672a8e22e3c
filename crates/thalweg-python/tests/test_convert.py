"""Writing reads into new files."""

import numpy as np
import pytest
import thalweg


def rows(path):
    return {read.id: (read.signal.tobytes(), read.calibration) for read in thalweg.open(path)}


def test_reads_are_the_same_in_all_formats(files, tmp_path):
    expected = rows(files / "reads.blow5")
    for name, more in [
        ("a.pod5", {}),
        ("a.fast5", {"signal": "zlib", "level": 3}),
        ("a.slow5", {}),
        ("b.blow5", {"record": "zlib", "signal": "ex-zd", "verify": True}),
        ("c", {"format": "pod5", "level": 5}),
    ]:
        done = thalweg.convert(files / "reads.blow5", tmp_path / name, **more)
        assert done.reads == len(expected) and not done.lost and not done.missing
        assert done.samples == sum(len(signal) // 2 for signal, _ in expected.values())
        found = rows(tmp_path / name)
        assert {id: signal for id, (signal, _) in found.items()} == {id: signal for id, (signal, _) in expected.items()}


def test_some_reads_of_many_files(files, command, tmp_path):
    command("split", files / "reads.blow5", "--out", tmp_path / "parts", "--reads", "20")
    reads = thalweg.open(tmp_path / "parts")
    wanted = [read.id for read in reads if read.samples > 50_000]
    done = thalweg.convert(reads, tmp_path / "long.pod5", where="samples > 50000")
    assert thalweg.open(tmp_path / "long.pod5").ids == wanted and done.reads == len(wanted) > 0
    few = [wanted[2], wanted[0], reads.ids[-1]]
    thalweg.convert(reads, tmp_path / "few.blow5", ids=few, where="samples > 50000")
    assert set(thalweg.open(tmp_path / "few.blow5").ids) == {id for id in few if id in wanted}


def test_missing_ids_are_an_error(files, tmp_path):
    reads = thalweg.open(files / "reads.pod5")
    with pytest.raises(KeyError, match="missing_ok"):
        thalweg.convert(reads, tmp_path / "a.blow5", ids=[reads.ids[0], "none"])
    assert not (tmp_path / "a.blow5").exists()
    done = thalweg.convert(reads, tmp_path / "a.blow5", ids=[reads.ids[0], "none"], missing_ok=True)
    assert done.missing == ["none"] and done.reads == 1


def test_outputs_are_safe(files, tmp_path):
    path = tmp_path / "a.blow5"
    thalweg.convert(files / "reads.slow5", path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="give another name, or replace=True to replace it"):
        thalweg.convert(files / "reads.pod5", path)
    with pytest.raises(ValueError, match="is the input"):
        thalweg.convert(path, path, replace=True)
    assert path.read_bytes() == before
    # The index of the file that is replaced would be wrong for the new one.
    thalweg.open(path)[thalweg.open(path).ids[0]]
    assert (tmp_path / "a.blow5.idx").exists()
    thalweg.convert(files / "reads.pod5", path, where="samples > 50000", replace=True)
    assert not (tmp_path / "a.blow5.idx").exists()
    assert all(read.samples > 50_000 for read in thalweg.open(path))
    for wrong in [{"format": "wav"}, {"where": "samples >"}, {"record": "lzma"}, {"signal": "vbz"}]:
        with pytest.raises(ValueError):
            thalweg.convert(files / "reads.pod5", tmp_path / "b.blow5", **wrong)
    with pytest.raises(ValueError, match="expected files of reads"):
        thalweg.convert(files / "run.nxs", tmp_path / "b.blow5")
    assert np.all([not path.name.startswith("b") for path in tmp_path.iterdir()])
