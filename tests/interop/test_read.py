"""thalweg reads what slow5lib wrote, and the real files."""

import sys

import pytest

import everything
from nanopore import (
    MALFORMED,
    NEWER_VERSION,
    RECORD,
    REPOSITORY,
    SIGNAL,
    UNRELEASED_CODING,
    expected_rows,
    readable,
    run,
)


def pyslow5_digest(file):
    return run(sys.executable, REPOSITORY / "peers/pyslow5/peer.py", "seq", file, "--digest").stdout


@pytest.mark.parametrize("name", readable())
def test_rows_equal_pyslow5s(thalweg, shared, name):
    assert thalweg("read", shared / name, "--digest").stdout == pyslow5_digest(shared / name)


def test_the_unreleased_coding_of_the_published_comparison(thalweg, shared):
    rows = thalweg("read", shared / UNRELEASED_CODING, "--digest").stdout.splitlines()
    assert rows == expected_rows(shared, UNRELEASED_CODING)


def test_a_newer_minor_version_is_read_right_or_refused_by_name(thalweg, shared, peer, tmp_path):
    done = thalweg("read", shared / NEWER_VERSION, "--digest", check=False)
    if done.returncode == 0:
        # the same bytes under a version that slow5lib knows; SLOW5 specification, "BLOW5 header": version at 6..9
        stored = bytearray((shared / NEWER_VERSION).read_bytes())
        stored[6:9] = bytes([0, 2, 0])
        older = tmp_path / "older.blow5"
        older.write_bytes(stored)
        assert done.stdout == run(peer, "seq", older, "--digest").stdout
    else:
        assert done.returncode == 1
        assert "1.1.0" in done.stderr


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_a_typed_error(thalweg, shared, name):
    done = thalweg("read", shared / name, "--digest", check=False)
    assert done.returncode == 1
    assert name.split("/")[1] in done.stderr
    assert "panicked" not in done.stderr


@pytest.fixture(scope="module", params=[(r, s) for r in RECORD for s in SIGNAL], ids="-".join)
def written_by_slow5lib(request, view, tmp_path_factory):
    """A file with every type and awkward floats, in each combination of codings."""
    record, signal = request.param
    folder = tmp_path_factory.mktemp("everything")
    without = everything.NOT_FOR_SLOW5LIB_EX_ZD if signal == "ex-zd" else None
    (folder / "text.slow5").write_text(everything.text(everything.TAME | everything.AWKWARD, without))
    return view(folder / "text.slow5", folder / "binary.blow5", record, signal)


def test_rows_of_every_coding(thalweg, written_by_slow5lib):
    assert thalweg("read", written_by_slow5lib, "--digest").stdout == pyslow5_digest(written_by_slow5lib)


def test_every_field_survives_a_copy_of_every_coding(thalweg, canonical, written_by_slow5lib, tmp_path):
    copy = tmp_path / "copy.blow5"
    thalweg("convert", written_by_slow5lib, copy, "--record", "zstd", "--signal", "svb-zd")
    assert canonical(copy) == canonical(written_by_slow5lib)
