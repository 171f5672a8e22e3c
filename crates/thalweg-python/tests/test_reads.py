"""Files of reads, against the command and against other libraries."""

import contextlib
import gc
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import uuid
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import thalweg
from conftest import real

FORMATS = ["blow5", "pod5", "slow5"]


def digests(command, path, *args):
    """The rows of `thalweg read --digest`: read id, samples, sum."""
    lines = command("read", path, "--digest", *args).splitlines()
    return [(f[0], int(f[1]), int(f[2])) for f in (line.split("\t") for line in lines if not line.startswith("#"))]


def row(read):
    return read.id, read.samples, int(read.signal.sum(dtype="i8"))


@pytest.mark.parametrize("suffix", FORMATS)
def test_all_reads_are_those_of_the_command(files, command, suffix):
    path = files / f"reads.{suffix}"
    reads = thalweg.open(path)
    expected = digests(command, path)
    assert list(map(row, reads)) == expected
    assert len(reads) == len(expected) and reads.ids == [one[0] for one in expected]


@pytest.mark.parametrize("suffix", FORMATS)
def test_reads_by_id_have_the_order_of_the_ids(files, suffix):
    reads = thalweg.open(files / f"reads.{suffix}")
    all_reads = {read.id: row(read) for read in reads}
    ids = reads.ids[::-3]
    assert [row(read) for read in reads.get(ids)] == [all_reads[id] for id in ids]
    assert row(reads[ids[0]]) == all_reads[ids[0]]
    with pytest.raises(KeyError) as unknown:
        reads["11111111-2222-3333-4444-555555555555"]
    assert isinstance(unknown.value, thalweg.NotFoundError) and "11111111" in str(unknown.value)


@pytest.mark.parametrize("suffix", FORMATS)
def test_reads_contain_their_ids(files, suffix):
    reads = thalweg.open(files / f"reads.{suffix}")
    ids = reads.ids
    few = reads.filter(ids=ids[:3])
    for read_id, is_in, is_in_few in [(ids[0], True, True), (ids[3], True, False), ("none", False, False)]:
        assert (read_id in reads, read_id in few) == (is_in, is_in_few)
    assert uuid.UUID(ids[0]) in reads and uuid.UUID(ids[3]) not in few
    assert 1 not in reads and None not in reads and reads[ids[0]] not in reads
    assert few and not reads.filter(ids=[]) and not reads.filter("samples < 0") and reads
    assert repr(reads) == "<thalweg.Reads of 1 file>" and repr(few) == "<thalweg.Reads of 3 of the reads of 1 file>"


def test_ids_may_be_uuids(files):
    reads = thalweg.open(files / "reads.pod5")
    ids = reads.ids[3:6]
    for wanted in [list(map(uuid.UUID, ids)), pyarrow.array(ids), np.array(ids), tuple(ids)]:
        assert [read.id for read in reads.get(wanted)] == ids == reads.filter(ids=wanted).ids
    assert reads[uuid.UUID(ids[0])].id == ids[0]
    assert pyarrow.table(reads.scan([uuid.UUID(ids[1])])).column("read_id").to_pylist() == ids[1:2]
    for ask in [reads.get, reads.batches, reads.to_table, reads.scan, lambda ids: reads.filter(ids=ids)]:
        for one in [ids[0], uuid.UUID(ids[0]), 5]:
            with pytest.raises(thalweg.UsageError, match=r"ids=.*found one .*, expected a list"):
                list(ask(one))
        with pytest.raises(thalweg.UsageError, match="found 5, expected a string or a UUID"):
            list(ask([5]))
    for ask in [reads.batches, reads.to_table, reads.scan]:
        with pytest.raises(thalweg.UsageError, match="columns='read_id': found one str, expected a list"):
            ask(columns="read_id")
        with pytest.raises(thalweg.UsageError, match="at least one"):
            ask(columns=[])


def test_the_same_read_in_two_files(files):
    reads = thalweg.open([files / "reads.blow5", files / "reads.pod5"])
    first, *rest = thalweg.open(files / "reads.pod5").ids
    assert [read.path.name for read in reads].count("reads.pod5") == len(rest) + 1
    for one in [reads[first], *reads.get([first]), *reads.filter(ids=[first])]:
        assert one.path.name == "reads.blow5"
    assert pyarrow.table(reads.scan(where="samples > 0")).num_rows == 2 * len(rest) + 2
    wrong = [lambda: reads.filter("samples > 0"), lambda: reads.filter("samples > 0", ids=[first])]
    for ask in [*wrong, lambda: reads.part(0, 2)]:
        with pytest.raises(thalweg.UnsupportedError, match="found the read more than once, expected it once"):
            ask()


def test_what_a_batch_was_read_without_is_an_error(files):
    reads = thalweg.open(files / "reads.blow5")
    (only_ids, *_) = next(iter(reads.batches(columns=["read_id"])))
    (fields, *_) = next(iter(reads.batches(signal=False)))
    (only_samples, *_) = next(iter(reads.batches(columns=["signal"])))
    names = ["samples", "sampling_rate", "read_group", "calibration"]
    cases = [(only_ids, "signal"), (only_ids, "signal_pa"), (fields, "signal"), (fields, "signal_pa")]
    cases += [(only_ids, name) for name in names] + [(only_samples, "id"), (only_samples, "signal_pa")]
    for read, name in cases:
        with pytest.raises(thalweg.UsageError, match="this batch was read without '.*': its columns are"):
            getattr(read, name)
    assert only_ids.attributes == {} and fields.samples == only_samples.samples
    assert repr(only_ids) == f"<thalweg.Read {only_ids.id}>"
    assert repr(only_samples) == f"<thalweg.Read: {fields.samples} samples>"


def test_fields_are_those_of_pod5(files):
    pod5 = pytest.importorskip("pod5")
    with pod5.Reader(files / "reads.pod5") as reader:
        for ours, theirs in zip(thalweg.open(files / "reads.pod5"), reader.reads(), strict=True):
            assert ours.id == str(theirs.read_id)
            assert np.array_equal(ours.signal, theirs.signal)
            assert ours.calibration.offset == theirs.calibration.offset
            assert np.isclose(ours.calibration.scale, theirs.calibration.scale, rtol=1e-6)
            assert np.allclose(ours.signal_pa, theirs.signal_pa, rtol=1e-5)
            assert ours.sampling_rate == theirs.run_info.sample_rate
            assert ours.attributes["read_number"] == theirs.read_number
            assert ours.attributes["channel_number"] == str(theirs.pore.channel)


def test_fields_are_those_of_pyslow5(files):
    pyslow5 = pytest.importorskip("pyslow5")
    theirs = pyslow5.Open(str(files / "reads.blow5"), "r").seq_reads(aux="all", pA=True)
    for ours, other in zip(thalweg.open(files / "reads.blow5"), theirs, strict=True):
        assert ours.id == other["read_id"]
        assert np.allclose(ours.signal_pa, other["signal"], rtol=1e-6)
        assert ours.calibration == (other["digitisation"], other["offset"], other["range"])
        assert ours.attributes["start_time"] == other["start_time"]
        assert ours.attributes["channel_number"] == other["channel_number"]


def test_batches_are_arrow_data(files):
    reads = thalweg.open(files / "reads.blow5")
    table = pyarrow.table(reads.batches())
    assert table.column("read_id").to_pylist() == reads.ids
    for batch in reads.batches():
        record = pyarrow.record_batch(batch)
        assert record.num_rows == len(batch) and record.schema.names == batch.columns
        for read, samples in zip(batch, record.column("signal")):
            assert np.array_equal(read.signal, samples.values.to_numpy())
    assert pyarrow.schema(reads.batches()) == table.schema


def test_without_signal_there_is_its_length(files):
    reads = thalweg.open(files / "reads.pod5")
    table = pyarrow.table(reads.batches(signal=False))
    assert "signal" not in table.schema.names
    assert table.column("samples").to_pylist() == [read.samples for read in reads]


@pytest.mark.parametrize("suffix", FORMATS)
def test_batches_of_some_rows_and_columns_are_slices(files, suffix):
    reads = thalweg.open(files / f"reads.{suffix}")
    expected = list(map(row, reads))
    batches = list(reads.batches(columns=["signal", "read_id"], size=2))
    assert max(map(len, batches)) == 2 and {tuple(batch.columns) for batch in batches} == {("signal", "read_id")}
    assert [row(read) for batch in batches for read in batch] == expected
    assert all(int(read.signal[0]) for batch in batches for read in batch)
    stream = reads.batches(reads.ids[::-4], columns=["read_id", "signal"], size=1)
    table = pyarrow.RecordBatchReader.from_stream(stream)
    assert table.schema.names == ["read_id", "signal"]
    assert [one["read_id"].to_pylist() for one in table] == [[read_id] for read_id in reads.ids[::-4]]
    fields = reads.batches(columns=["samples", "read_id"])
    assert [(read.id, read.samples) for batch in fields for read in batch] == [one[:2] for one in expected]
    with pytest.raises(thalweg.UsageError, match='"none"; columns are read_id'):
        reads.batches(columns=["none"])
    with pytest.raises(thalweg.UsageError, match="size=0"):
        reads.batches(size=0)


def test_tables_become_data_frames(files):
    """pandas takes no unsigned codes of labels, and reads of POD5 have an enumeration."""
    pytest.importorskip("pandas")
    reads = thalweg.open(files / "reads.pod5")
    frame = reads.to_table().to_pandas()
    assert frame["end_reason"].tolist() == [read.attributes["end_reason"] for read in reads]
    assert pyarrow.table(reads.scan()).to_pandas()["read_id"].tolist() == reads.ids
    for batch in reads.batches():
        assert pyarrow.record_batch(batch).to_pandas()["read_id"].tolist() == [read.id for read in batch]


def test_tables_are_in_memory(files):
    reads = thalweg.open(files / "reads.pod5")
    table = reads.to_table(reads.ids[3:9], columns=["read_id", "signal"])
    assert table.column("read_id").to_pylist() == reads.ids[3:9]
    assert [len(signal) for signal in table.column("signal")] == [read.samples for read in reads.get(reads.ids[3:9])]


def test_scans_are_those_of_the_command(files, command, tmp_path):
    reads = thalweg.open(files)
    columns = ["file", "read_id", "samples", "run_id"]
    table = pyarrow.table(reads.scan(columns=columns, where="samples >= 60000"))
    lines = command("scan", files, "--columns", ",".join(columns), "--where", "samples >= 60000", "--tsv").splitlines()
    expected = [tuple(line.split("\t")) for line in lines[1:]]
    found = [tuple(map(str, one.values())) for one in table.to_pylist()]
    assert found == expected and len(set(table.column("file").to_pylist())) == 3
    one = thalweg.open(files / "reads.pod5")
    assert pyarrow.table(one.scan(one.ids[5:2:-1])).column("read_id").to_pylist() == one.ids[5:2:-1]
    assert pyarrow.schema(one.scan()).names[-1] == "file"
    with pytest.raises(KeyError, match="none"):
        one.scan(columns=["none"])
    with pytest.raises(thalweg.UsageError):
        one.scan(where="samples >=")


def test_read_groups_have_attributes(files):
    pyslow5 = pytest.importorskip("pyslow5")
    header = pyslow5.Open(str(files / "reads.blow5"), "r").get_all_headers()
    for suffix in FORMATS:
        reads = thalweg.open(files / f"reads.{suffix}")
        read = reads[reads.ids[0]]
        group = reads.read_groups(read.path)[read.read_group]
        assert group["run_id"] == header["run_id"] and reads.read_groups() == reads.read_groups(0) == [group]
        if suffix != "pod5":
            assert group == header
    with pytest.raises(thalweg.UsageError, match="other.blow5"):
        reads.read_groups("other.blow5")
    with pytest.raises(thalweg.UsageError, match="no file number 1"):
        reads.read_groups(1)


@pytest.mark.parametrize("suffix", FORMATS)
def test_picoampere_are_rounded_at_the_end(files, suffix):
    reads = thalweg.open(files / f"reads.{suffix}")
    all_expected = []
    for read in reads:
        of = read.calibration
        all_expected.append(((read.signal + of.offset) * (of.range / of.digitisation)).astype("f4"))
        assert read.signal_pa.dtype == np.float32 and np.array_equal(read.signal_pa, all_expected[-1])
        assert read.signal_pa.flags.writeable and not read.signal.flags.writeable
    columns = ["signal_pa", "read_id"]
    in_pa = [read for batch in reads.batches(columns=columns) for read in batch]
    backwards = list(reads.get(reads.ids[::-1], columns=columns))
    for found, ids in [(in_pa, reads.ids), (backwards[::-1], reads.ids)]:
        assert [read.id for read in found] == ids
        for read, expected in zip(found, all_expected, strict=True):
            assert read.signal_pa.dtype == np.float32 and np.array_equal(read.signal_pa, expected)
            assert read.samples == len(expected) and not read.signal_pa.flags.writeable
            assert repr(read) == f"<thalweg.Read {read.id}: {len(expected)} samples>"
            with pytest.raises(thalweg.UsageError, match="read without 'signal'"):
                _ = read.signal
    with pytest.raises(thalweg.UsageError, match="found both signal and signal_pa"):
        reads.batches(columns=["signal", "signal_pa"])


def test_kept_arrays_stay_as_they_are(files):
    reads = thalweg.open(files / "reads.blow5", memory="32MB")
    kept = [(read.signal, int(read.signal.sum(dtype="i8"))) for read in reads]
    del reads
    gc.collect()
    assert all(int(signal.sum(dtype="i8")) == total for signal, total in kept)
    with pytest.raises(ValueError):
        kept[0][0][0] = 1


def test_all_batches_may_be_kept(files):
    reads = thalweg.open(files / "reads.blow5", memory="16MB", threads=2)
    batches = list(reads.batches())
    assert sum(map(len, batches)) == len(reads) and len(batches) > 3
    assert [read.id for batch in batches for read in batch] == reads.ids


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory_stays_flat(files):
    reads = thalweg.open(files / "reads.blow5")
    one = reads.ids[0]
    for _ in range(20):
        sum(int(read.signal[0]) for read in reads)
    before = resident()
    for _ in range(60):
        sum(int(read.signal[0]) for read in reads)
        reads[one].signal.sum()
    assert resident() < before + (64 << 20)


def test_memory_stays_flat_over_100_000_batches(tmp_path):
    types = ["char*", "uint32_t", "double", "double", "double", "double", "uint64_t", "int16_t*"]
    columns = ["read_id", "read_group", "digitisation", "offset", "range", "sampling_rate", "len_raw_signal", "raw_signal"]
    lines = ["#slow5_version\t0.2.0", "#num_read_groups\t1", "#" + "\t".join(types), "#" + "\t".join(columns)]
    lines += [f"read-{i}\t0\t8192\t5\t1400\t4000\t3\t{i},{i + 1},-{i}" for i in range(2000)]
    (tmp_path / "small.slow5").write_text("\n".join(lines) + "\n")
    reads = thalweg.open(tmp_path / "small.slow5")

    def passes(count):
        rows = (batch[0] for _ in range(count) for batch in reads.batches(size=1))
        return sum(int(read.signal.sum()) + round(float(read.signal_pa[0])) for read in rows)

    expected = passes(1)
    assert passes(9) == 9 * expected
    before = resident()
    assert passes(40) == 40 * expected
    assert resident() < before + (16 << 20)


PEAK = """
import sys, resource, thalweg
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
reads = thalweg.open(sys.argv[1], threads=2, memory=int(sys.argv[2]))
before = peak()
print(sum(int(read.signal.sum(dtype="i8")) for read in reads), peak() - before)
"""


@pytest.mark.parametrize("suffix", ["blow5", "pod5"])
@pytest.mark.parametrize("memory", [8 << 20, 64 << 20])
def test_a_loop_takes_no_more_memory_than_it_may(tmp_path, command, suffix, memory):
    path = tmp_path / f"large.{suffix}"
    command("synth", path, "--samples", "60M")
    ran = subprocess.run([sys.executable, "-c", PEAK, path, str(memory)], check=True, capture_output=True, text=True)
    total, taken = map(int, ran.stdout.split())
    assert total == sum(one[2] for one in digests(command, path))
    assert taken < memory + (64 << 20)


def test_eight_threads_read_at_once(files):
    reads = thalweg.open(files / "reads.pod5")
    expected = list(map(row, reads))
    found = [None] * 8

    def read(place):
        found[place] = list(map(row, reads))

    threads = [threading.Thread(target=read, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(one == expected for one in found)


@contextlib.contextmanager
def interrupted(after):
    """Ctrl-C after some seconds, unless the block is left before."""
    timer = threading.Timer(after, os.kill, [os.getpid(), signal.SIGINT])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def test_an_interrupt_ends_a_wait():
    """One call of Rust waits for a server that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        # Without it, an error would say after 30 s that there is no answer.
        with interrupted(0.3), pytest.raises(KeyboardInterrupt):
            thalweg.open(f"http://127.0.0.1:{server.getsockname()[1]}/reads.blow5")


def test_an_interrupted_read_can_be_made_again(files):
    reads = thalweg.open(files / "reads.slow5")
    with interrupted(0.2), pytest.raises(KeyboardInterrupt):
        while True:
            for _ in reads:
                pass
    assert [read.id for read in reads] == reads.ids


def test_batches_are_read_once(files):
    batches = thalweg.open(files / "reads.blow5").batches()
    pyarrow.table(batches)
    with pytest.raises(thalweg.UsageError):
        pyarrow.table(batches)
    with thalweg.open(files / "reads.blow5").batches() as batches:
        next(iter(batches))
    assert list(batches) == []


def test_errors_are_pythons_too(files, tmp_path):
    with pytest.raises(FileNotFoundError) as missing:
        thalweg.open(tmp_path / "none.blow5")
    assert missing.value.errno == 2 and "none.blow5" in missing.value.file
    damaged = bytearray((files / "reads.blow5").read_bytes())
    damaged[len(damaged) // 2 :] = b""
    (tmp_path / "half.blow5").write_bytes(damaged)
    with pytest.raises(thalweg.FormatError) as half:
        for _ in thalweg.open(tmp_path / "half.blow5"):
            pass
    assert isinstance(half.value, ValueError) and half.value.offset > 0
    with pytest.raises(ValueError, match="memory"):
        thalweg.open(files / "reads.blow5", memory="much")


def test_folders_and_patterns_are_one_set(files, command, tmp_path):
    command("split", files / "reads.blow5", "--out", tmp_path / "parts", "--reads", "20")
    reads = thalweg.open(tmp_path / "parts")
    assert len(reads.paths) > 1
    assert sorted(reads.ids) == sorted(thalweg.open(files / "reads.blow5").ids)
    assert thalweg.open(str(tmp_path / "parts" / "*.blow5")).ids == reads.ids


def test_a_loop_uses_the_memory_of_dropped_batches_again(tmp_path, command):
    command("synth", tmp_path / "many.blow5", "--samples", "8M")
    places = [read.signal.ctypes.data for read in thalweg.open(tmp_path / "many.blow5", threads=1, memory="1MB")]
    batches = sum(1 for _ in thalweg.open(tmp_path / "many.blow5", threads=1, memory="1MB").batches())
    assert batches > 40 and len(set(places)) < len(places) / 2


@pytest.mark.parametrize("name", real("pod5/trna_reads.pod5"))
def test_all_ways_give_one_order(copy, name):
    """Its samples have another order than its table."""
    reads = thalweg.open(copy(name))
    ids = reads.ids
    assert [read.id for read in reads] == ids
    assert reads.to_table().column("read_id").to_pylist() == ids
    samples = reads.to_table(columns=["samples"], signal=False).column("samples").to_pylist()
    assert [len(signal) for signal in reads.to_table(columns=["signal"]).column("signal")] == samples
    assert pyarrow.table(reads.scan(columns=["read_id"])).column("read_id").to_pylist() == ids


def test_tables_raise_the_errors_of_the_library(files, tmp_path):
    whole = (files / "reads.blow5").read_bytes()
    (tmp_path / "cut.blow5").write_bytes(whole[: len(whole) // 2])
    reads = thalweg.open(tmp_path / "cut.blow5")
    with pytest.raises(thalweg.Error, match=r"cut\.blow5"):
        reads.to_table()


def test_columns_are_named_where_one_is_unknown(files):
    reads = thalweg.open(files / "reads.blow5")
    with pytest.raises(thalweg.UsageError, match=r"'?signal_pA.*columns are .*\bsignal_pa\b"):
        reads.batches(columns=["read_id", "signal_pA"])
    with pytest.raises(thalweg.UsageError, match="signal=False"):
        reads.batches(columns=["signal_pa"], signal=False)


def test_a_name_of_another_format_is_refused(files, tmp_path):
    with pytest.raises(thalweg.UsageError, match="found a name of POD5, expected one of BLOW5"):
        thalweg.convert(files / "reads.blow5", tmp_path / "a.pod5", format="blow5")
    assert not list(tmp_path.iterdir())
