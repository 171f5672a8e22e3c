"""Files of libraries that keep conventions of their own in HDF5: netCDF4, PyTables, anndata, pynwb, and MATLAB's. h5py and thalweg
find the same values in them; and a copy, which thalweg makes of what its reader finds, has every object, attribute, string and
reference that h5py finds."""

import json
import pathlib
import subprocess
import sys

import h5py
import hdf5plugin  # noqa: F401: h5py reads through its filters
import pytest

import foreign_writers
from hdf5_rows import rows
from hdf5_same import same

WRITERS = pathlib.Path(__file__).parents[2] / ".venv/writers/bin/python"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    if sys.version_info < (3, 11):
        pytest.skip("the writers need Python 3.11")
    folder = tmp_path_factory.mktemp("written")
    subprocess.run([WRITERS, "-W", "ignore", foreign_writers.__file__, folder], check=True)
    return folder


@pytest.mark.parametrize("name", foreign_writers.WRITERS)
def test_files_of_others(thalweg, written, tmp_path, name):
    path, out = written / name, tmp_path / "out.h5"
    found, others = rows(path)
    read = thalweg("read", path, "--digest")
    assert sorted(read.stdout.splitlines()) == found and len(found) >= 10
    for row in json.loads(thalweg("info", path, "--json").stdout)["datasets"]:
        assert (row["not_read"] is not None) == (row["path"] in others), row
    thalweg("convert", "--repack", "--verify", path, out)
    assert same(path, out) > len(found)


def test_strings_of_others(thalweg, written):
    seen = 0
    for name in foreign_writers.WRITERS:
        with h5py.File(written / name) as file:
            for row in json.loads(thalweg("info", written / name, "--json").stdout)["datasets"]:
                dataset = file[row["path"]]
                if h5py.check_string_dtype(dataset.dtype) and dataset.dtype.hasobject and dataset.shape is not None:
                    assert row["strings"] == list(dataset.asstr()[()].ravel()[:8] if dataset.shape else [dataset.asstr()[()]]), row
                    seen += 1
    assert seen > 20
