"""No output replaces a file that holds values of an input: those of external datasets, and the sources of virtual ones."""

import os

import h5py
import numpy as np
import pytest


def virtual(path, source, dataset="v"):
    with h5py.File(path, "w") as file:
        layout = h5py.VirtualLayout((50,), "<i8")
        layout[:] = h5py.VirtualSource(source, dataset, (50,))
        file.create_virtual_dataset("v", layout)


def numbered(path):
    """A dataset without a limit, whose blocks are in part0.h5, part1.h5 and so on."""
    with h5py.File(path, "w") as file:
        space = h5py.h5s.create_simple((20,), (h5py.h5s.UNLIMITED,))
        blocks = space.copy()
        blocks.select_hyperslab((0,), (h5py.h5s.UNLIMITED,), (10,), (10,))
        options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        options.set_virtual(blocks, b"part%b.h5", b"v", h5py.h5s.create_simple((10,)))
        h5py.h5d.create(file.id, b"v", h5py.h5t.NATIVE_INT64, space, options)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.arange(50, dtype="<i8").tofile("ext.bin")
    with h5py.File("ext.h5", "w") as file:
        file.create_dataset("v", (50,), "<i8", external=[("ext.bin", 0, 400)])
    with h5py.File("source.h5", "w") as file:
        file["v"] = np.arange(50)
    for number in range(2):
        with h5py.File(f"part{number}.h5", "w") as file:
            file["v"] = np.arange(10)
    virtual("virtual.h5", "source.h5")
    virtual("second.h5", "virtual.h5")
    virtual("of_external.h5", "ext.h5")
    numbered("numbered.h5")
    # Its source may not be read, and must not be replaced, either.
    (tmp_path / "inner").mkdir()
    virtual("inner/outside.h5", "../source.h5")
    # Nothing of this type is read.
    with h5py.File("compound.h5", "w") as file:
        file.create_dataset("v", (50,), np.dtype([("r", h5py.ref_dtype)]), external=[("ext.bin", 0, 400)])
    return tmp_path


INPUTS = {
    "ext.h5": ["ext.bin"],
    "virtual.h5": ["source.h5"],
    "second.h5": ["virtual.h5", "source.h5"],
    "of_external.h5": ["ext.h5", "ext.bin"],
    "numbered.h5": ["part0.h5", "part1.h5"],
    "inner/outside.h5": ["source.h5"],
    "compound.h5": ["ext.bin"],
}
VERBS = {
    "kerchunk": (["index", "IN", "--kerchunk", "OUT"], ""),
    "index": (["index", "IN", "-o", "OUT"], ""),
    "repack": (["convert", "--repack", "IN", "OUT"], ""),
    "read": (["read", "IN", "/v", "--out", "OUT"], ".arrow"),
    "events": (["read", "IN", "--events", "--out", "OUT"], ".csv"),
    "plot": (["plot", "IN", "--out", "OUT"], ".svg"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_files_with_values_of_an_input_are_inputs(thalweg, folder, verb):
    words, ending = VERBS[verb]
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for name, held in INPUTS.items():
        for number, other in enumerate(held):
            hard, soft = f"hard{number}{ending}", f"soft{number}{ending}"
            os.link(other, hard)
            os.symlink(other, soft)
            for out in [hard, soft] if ending else [other, f"{folder}/{other}", hard, soft]:
                line = [{"IN": name, "OUT": out}.get(word, word) for word in words]
                result = thalweg(*line, "--force", check=False)
                assert result.returncode == 2 and "the output is the input" in result.stderr, (line, result.stderr)
            os.remove(hard)
            os.remove(soft)
    for path, bytes_before in before.items():
        assert path.read_bytes() == bytes_before, path


def test_other_files_are_replaced(thalweg, folder):
    with h5py.File("virtual.h5") as file:
        expected = file["v"][:]
    thalweg("convert", "--repack", "virtual.h5", "part0.h5", "--force")
    with h5py.File("part0.h5") as file:
        assert np.array_equal(file["v"][:], expected)
    # Values that are not there cannot be replaced.
    os.remove("ext.bin")
    thalweg("index", "ext.h5", "--kerchunk", "ext.bin")
