"""FASTQ, against the text itself, gzip and the command."""

import gzip
import io
import pickle
import threading

import numpy as np
import pyarrow
import pytest
import thalweg


@pytest.fixture(scope="module")
def folder(tmp_path_factory, command):
    folder = tmp_path_factory.mktemp("fastq")
    command("synth", folder / "r.fastq", "--kind", "fastq", "--bases", "2M")
    command("convert", folder / "r.fastq", folder / "r.fastq.gz")
    (folder / "one.fq.gz").write_bytes(gzip.compress((folder / "r.fastq").read_bytes()))
    return folder


@pytest.fixture(scope="module")
def records(folder):
    lines = (folder / "r.fastq").read_text().splitlines()
    rows = [lines[first : first + 4] for first in range(0, len(lines), 4)]
    return [(*title[1:].split(" ", 1), bases, qualities) for title, bases, _, qualities in rows]


FILES = [("r.fastq", "plain"), ("r.fastq.gz", "BGZF"), ("one.fq.gz", "gzip")]


@pytest.mark.parametrize("name, compression", FILES)
def test_records_are_those_of_the_text(folder, records, name, compression):
    fastq = thalweg.open(folder / name)
    assert isinstance(fastq, thalweg.Fastq)
    assert (fastq.path, fastq.compression) == (folder / name, compression)
    assert list(map(tuple, fastq)) == records
    table = fastq.to_table()
    assert table.schema.names == ["name", "description", "sequence", "quality_scores"]
    assert list(zip(*(column.to_pylist() for column in table.columns))) == records
    assert pyarrow.table(fastq.batches()) == table
    assert sum(len(batch) for batch in fastq.batches()) == len(records)
    assert fastq.count() == (len(records), sum(len(record[2]) for record in records))
    again = pickle.loads(pickle.dumps(fastq))
    assert again.count() == fastq.count() and repr(again) == repr(fastq)


def test_figures_are_those_of_the_text(folder, records):
    summary = thalweg.open(folder / "r.fastq.gz").summary()
    lengths = np.sort([len(record[2]) for record in records])
    qualities = np.frombuffer("".join(record[3] for record in records).encode(), np.uint8) - 33
    assert (summary.reads, summary.bases) == (len(records), lengths.sum())
    assert np.array_equal(summary.qualities, np.bincount(qualities, minlength=94))
    assert summary.mean_quality == pytest.approx(-10 * np.log10((10.0 ** (qualities / -10)).mean()))
    assert (summary.lengths.min, summary.lengths.max) == (lengths[0], lengths[-1])
    assert lengths[lengths >= summary.lengths.n50].sum() * 2 >= lengths.sum()
    assert summary.gc == sum(record[2].count("G") + record[2].count("C") for record in records)
    first = next(iter(thalweg.open(folder / "r.fastq")))
    assert np.array_equal(first.qualities, qualities[: len(first.sequence)]) and first.qualities.flags.owndata


def test_open_files_and_unknown_names_are_recognised(folder, records, tmp_path):
    for name, _ in FILES:
        content = (folder / name).read_bytes()
        assert list(map(tuple, thalweg.open(io.BytesIO(content)))) == records
        (tmp_path / "unknown").write_bytes(content)
        assert thalweg.open(tmp_path / "unknown").count().reads == len(records)
    with pytest.raises(thalweg.UnsupportedError, match="without one"):
        pickle.dumps(thalweg.open(io.BytesIO(content)))


def test_text_is_written_in_other_compressions(folder, tmp_path):
    text = (folder / "r.fastq").read_bytes()
    fastq = thalweg.open(folder / "one.fq.gz")
    for name, arguments, compression in [
        ("a.fastq.gz", {"verify": True}, "BGZF"),
        ("b.fastq.gz", {"compression": "gzip", "level": 1}, "gzip"),
        ("c.fastq", {}, "plain"),
    ]:
        done = fastq.convert(tmp_path / name, **arguments)
        written = (tmp_path / name).read_bytes()
        assert (done.text_bytes, done.bytes) == (len(text), len(written))
        assert (written if compression == "plain" else gzip.decompress(written)) == text
        assert thalweg.open(tmp_path / name).compression == compression
        with pytest.raises(thalweg.ExistsError):
            fastq.convert(tmp_path / name)
    with pytest.raises(thalweg.UsageError, match="compression"):
        fastq.convert(tmp_path / "d.fastq", compression="zip")
    with pytest.raises(thalweg.UsageError, match="d.parquet: expected a name"):
        fastq.convert(tmp_path / "d.parquet")
    with pytest.raises(thalweg.UsageError):
        fastq.convert(folder / "one.fq.gz", replace=True)
    with pytest.raises(thalweg.UsageError, match="level"):
        fastq.convert(tmp_path / "d.fastq.gz", level=13)


def test_a_missing_end_is_warned_of(folder, tmp_path):
    (tmp_path / "cut.fastq.gz").write_bytes((folder / "r.fastq.gz").read_bytes()[:-28])
    with pytest.warns(RuntimeWarning, match="may be cut short"):
        thalweg.open(tmp_path / "cut.fastq.gz")


def test_defects_name_the_record(tmp_path):
    (tmp_path / "bad.fastq").write_text("@r1\nAC\n+\nII\n@r2\nAC\n+\nI\n")
    fastq = thalweg.open(tmp_path / "bad.fastq")
    found = iter(fastq)
    assert next(found).name == "r1"
    with pytest.raises(thalweg.FormatError, match="bad.fastq: record 2, byte 21: found 1 qualities for 2 bases"):
        next(found)
    with pytest.raises(thalweg.FormatError):
        fastq.count()


def test_threads_read_at_once(folder, records):
    fastq = thalweg.open(folder / "r.fastq.gz", memory="16MB")
    counts = []
    threads = [threading.Thread(target=lambda: counts.append(fastq.count().reads)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [len(records)] * 8
