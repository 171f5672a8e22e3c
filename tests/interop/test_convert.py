"""slow5lib and pyslow5 read what thalweg wrote: the same header, the same values in every field, to the last bit."""

import pytest

import everything
from nanopore import RECORD, SIGNAL, readable, run

COMBINATIONS = pytest.mark.parametrize("record, signal", [(r, s) for r in RECORD for s in SIGNAL])


@pytest.fixture
def everything_text(tmp_path):
    path = tmp_path / "everything.slow5"
    path.write_text(everything.text(everything.TAME))
    return path


@pytest.mark.long
@COMBINATIONS
@pytest.mark.parametrize("name", readable())
def test_slow5lib_sees_the_same_file(thalweg, canonical, shared, tmp_path, name, record, signal):
    out = tmp_path / "out.blow5"
    thalweg("convert", shared / name, out, "--record", record, "--signal", signal)
    assert canonical(out) == canonical(shared / name)


@COMBINATIONS
def test_pyslow5_reads_every_field(thalweg, pyslow5_rows, shared, tmp_path, record, signal):
    source, out = shared / "blow5/example_multi_rg_v0.2.0_zstd_svb-zd.blow5", tmp_path / "out.blow5"
    thalweg("convert", source, out, "--record", record, "--signal", signal)
    assert pyslow5_rows(out) == pyslow5_rows(source)


@COMBINATIONS
def test_every_type_and_signal(thalweg, canonical, everything_text, tmp_path, record, signal):
    out = tmp_path / "out.blow5"
    thalweg("convert", everything_text, out, "--record", record, "--signal", signal)
    assert canonical(out) == canonical(everything_text)


@COMBINATIONS
def test_the_header_names_the_codings(thalweg, everything_text, tmp_path, record, signal):
    out = tmp_path / "out.blow5"
    thalweg("convert", everything_text, out, "--record", record, "--signal", signal)
    # SLOW5 specification, "BLOW5 header": record compression at 9, signal compression at 14
    stored = out.read_bytes()
    assert (stored[9], stored[14]) == (RECORD.index(record), SIGNAL.index(signal))


def without_version(text: str) -> list[str]:
    """The first line tells the version that the writer writes, which each writer chooses."""
    lines = text.splitlines(keepends=True)
    assert lines[0].startswith("#slow5_version\t")
    return lines[1:]


def rounded(number: str) -> str:
    """A number as slow5lib writes it."""
    text = f"{float(number):.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


@pytest.mark.parametrize("name", readable())
def test_ascii_equals_slow5libs_but_for_what_that_rounds(thalweg, view, canonical, shared, tmp_path, name):
    ours, theirs = tmp_path / "ours.slow5", tmp_path / "theirs.slow5"
    thalweg("convert", shared / name, ours)
    view(shared / name, theirs)
    own, other = (without_version(path.read_text()) for path in (ours, theirs))
    assert len(own) == len(other)
    for row, expected in zip(own, other):
        for column, value in zip(row.split("\t"), expected.split("\t"), strict=True):
            assert column == value or rounded(column) == value
    # slow5lib reads all digits: the values are those of the file.
    assert canonical(ours) == canonical(shared / name)


@COMBINATIONS
def test_ascii_of_every_type(thalweg, view, tmp_path, record, signal):
    text, binary, ours = tmp_path / "text.slow5", tmp_path / "binary.blow5", tmp_path / "ours.slow5"
    without = everything.NOT_FOR_SLOW5LIB_EX_ZD if signal == "ex-zd" else None
    text.write_text(everything.text(everything.TAME, without))
    view(text, binary, record, signal)
    theirs = view(binary, tmp_path / "theirs.slow5")
    thalweg("convert", binary, ours)
    assert without_version(ours.read_text()) == without_version(theirs.read_text())


def test_a_file_written_by_pyslow5(thalweg, canonical, pyslow5_rows, tmp_path):
    import sys

    from nanopore import HERE

    source, out = tmp_path / "pyslow5.blow5", tmp_path / "out.blow5"
    run(sys.executable, HERE / "pyslow5_write.py", source)
    thalweg("convert", source, out, "--record", "zstd", "--signal", "ex-zd")
    assert canonical(out) == canonical(source)
    assert pyslow5_rows(out) == pyslow5_rows(source)


def test_a_failed_conversion_leaves_nothing_that_looks_whole(thalweg, shared, tmp_path):
    out = tmp_path / "out.blow5"
    done = thalweg("convert", shared / "blow5/bad_trunc.blow5", out, check=False)
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []
