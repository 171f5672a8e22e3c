"""Index files, both ways: slow5lib uses thalweg's, thalweg uses slow5lib's."""

import pytest

from nanopore import expected_rows, readable, run


def copy_of(shared, name, tmp_path):
    copy = tmp_path / name.split("/")[1]
    copy.write_bytes((shared / name).read_bytes())
    return copy


def ids_of(shared, name, tmp_path):
    ids = tmp_path / "ids"
    ids.write_text("".join(row.split("\t")[0] + "\n" for row in reversed(expected_rows(shared, name))))
    return ids


@pytest.mark.parametrize("name", readable())
def test_the_index_equals_slow5libs(thalweg, reference, shared, tmp_path, name):
    file, theirs = copy_of(shared, name, tmp_path), tmp_path / "theirs.idx"
    thalweg("index", file)
    run(reference, "index", file, theirs)
    assert file.with_name(file.name + ".idx").read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("name", readable())
def test_slow5lib_gets_reads_through_thalwegs_index(thalweg, peer, shared, tmp_path, name):
    file = copy_of(shared, name, tmp_path)
    thalweg("index", file)
    rows = run(peer, "get1", file, "--ids", ids_of(shared, name, tmp_path), "--digest").stdout.splitlines()
    assert rows == expected_rows(shared, name)[::-1]


@pytest.mark.parametrize("name", readable())
def test_thalweg_gets_reads_through_slow5libs_index(thalweg, reference, shared, tmp_path, name):
    file = copy_of(shared, name, tmp_path)
    run(reference, "index", file, file.with_name(file.name + ".idx"))
    ids = ids_of(shared, name, tmp_path)
    rows = thalweg("read", file, "--ids", ids, "--digest").stdout.splitlines()
    assert rows == expected_rows(shared, name)[::-1]
