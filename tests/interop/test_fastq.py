"""FASTQ: the records of htslib (pysam) and of needletail, and gzip files of each other's making."""

import gzip
import hashlib

import needletail
import pysam
import pytest


@pytest.fixture
def folder(tmp_path, thalweg):
    """The same records as text, and compressed by us and by others."""
    folder = tmp_path
    thalweg("synth", folder / "r.fastq", "--kind", "fastq", "--bases", "1M")
    text = (folder / "r.fastq").read_bytes()
    (folder / "r.fastq.gz").write_bytes(gzip.compress(text))
    with pysam.BGZFile(str(folder / "hts.fastq.gz"), "wb") as out:
        out.write(text)
    thalweg("convert", folder / "r.fastq", folder / "blocks.fastq.gz")
    thalweg("convert", folder / "r.fastq", folder / "member.fastq.gz", "--single-member")
    return folder


FILES = ["r.fastq", "r.fastq.gz", "hts.fastq.gz", "blocks.fastq.gz", "member.fastq.gz"]


def row(name, sequence, quality):
    digest = hashlib.sha256(f"{sequence}\n{quality}".encode()).hexdigest()
    return f"{name}\t{len(sequence)}\t{digest}"


@pytest.mark.parametrize("file", FILES)
def test_records_are_those_of_peers(folder, thalweg, file):
    ours = thalweg("read", folder / file, "--digest").stdout.splitlines()
    with pysam.FastxFile(str(folder / file)) as records:
        theirs = [row(record.name, record.sequence, record.quality) for record in records]
    assert ours == theirs
    records = needletail.parse_fastx_file(str(folder / file))
    assert ours == [row(record.id.split(" ")[0], record.seq, record.qual) for record in records]


def test_htslib_takes_blocks_as_its_own(folder, thalweg):
    text = (folder / "r.fastq").read_bytes()
    with pysam.BGZFile(str(folder / "blocks.fastq.gz"), "rb") as blocks:
        assert blocks.read() == text
    assert "BGZF" in thalweg("info", folder / "hts.fastq.gz").stdout
    assert "may be cut short" not in thalweg("check", folder / "hts.fastq.gz").stderr


@pytest.mark.parametrize(
    "text",
    [
        "@a\nACGT\n+\nIIII",
        "@a b\tc\nACGT\n+a b\tc\nIIII\n\n\n",
        "@a\n\n+\n\n@b\nA\n+\n@\n",
        "@\nacgtn.-*\n+\n@@@@@@@@\n",
    ],
)
def test_unusual_files_are_read_as_htslib_reads_them(tmp_path, thalweg, text):
    (tmp_path / "r.fastq").write_text(text)
    ours = thalweg("read", tmp_path / "r.fastq", "--digest").stdout.splitlines()
    with pysam.FastxFile(str(tmp_path / "r.fastq")) as records:
        assert ours == [row(record.name or "", record.sequence or "", record.quality or "") for record in records]
