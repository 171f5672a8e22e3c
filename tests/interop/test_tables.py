"""`thalweg read FILE --out TABLE`: strings and lists of HDF5 datasets as columns."""

import csv
import json

import h5py
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

COUNT = 10_000


def table(path):
    if path.suffix == ".arrow":
        return pyarrow.ipc.open_file(path).read_all()
    return pyarrow.parquet.read_table(path)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "f.h5"
    rng = np.random.default_rng(7)
    texts = [f"{n} µm" * (n % 4) for n in range(COUNT)]
    lists = [rng.integers(-9, 9, n % 5).astype("i2") for n in range(COUNT)]
    with h5py.File(path, "w") as file:
        file.create_dataset("any", data=texts, dtype=h5py.string_dtype(), chunks=(700,), compression="gzip")
        file.create_dataset("fixed", data=np.array([text.encode() for text in texts], "S40"))
        file.create_dataset("square", data=np.array(texts, object).reshape(-1, 1).repeat(2, 1), dtype=h5py.string_dtype())
        for name, dtype in (("lists", ">i2"), ("floats", "<f8"), ("flags", "?")):
            data = file.create_dataset(name, (COUNT,), h5py.vlen_dtype(np.dtype(dtype)), chunks=(999,))
            data[:] = np.fromiter((values.astype(dtype) for values in lists), object, COUNT)
        file["numbers"] = np.arange(COUNT)
    return path, texts, lists


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
@pytest.mark.parametrize("memory", ["4MiB", "1GiB"])
def test_strings_and_lists_are_columns(thalweg, tmp_path, file, kind, memory):
    path, texts, lists = file
    out = tmp_path / f"out.{kind}"
    done = thalweg("read", path, "--out", out, "--memory", memory, "--json")
    assert done.stderr == "" and json.loads(done.stdout)["datasets"] == 7
    read = table(out)
    assert read["any"].to_pylist() == read["fixed"].to_pylist() == texts
    assert read["square"].to_pylist() == [[text, text] for text in texts]
    assert read["numbers"].to_pylist() == list(range(COUNT))
    for name, kind in (("lists", "int16"), ("floats", "double"), ("flags", "bool")):
        assert str(read.schema.field(name).type) == f"list<item: {kind} not null>"
        assert all(np.array_equal(own, wanted.astype(np.dtype("?")) if kind == "bool" else wanted) for own, wanted in zip(read[name].to_pylist(), lists, strict=True))


def test_text_and_lists_in_csv(thalweg, tmp_path, file):
    path, texts, lists = file
    out = tmp_path / "out.csv"
    thalweg("read", path, "/any", "/fixed", "/lists", "--out", out)
    with open(out, newline="", encoding="utf-8") as opened:
        rows = list(csv.reader(opened))
    assert rows[0] == ["any", "fixed", "lists"]
    assert rows[1:] == [[text, text, "[" + ", ".join(map(str, values)) + "]"] for text, values in zip(texts, lists, strict=True)]


def test_a_string_that_is_not_utf_8_makes_its_column_bytes(thalweg, tmp_path):
    """The last batch of rows has it: the table is begun anew."""
    path, out = tmp_path / "f.h5", tmp_path / "out.arrow"
    texts = [b"plain"] * COUNT + ["µ".encode("latin-1")]
    with h5py.File(path, "w") as file:
        file["fixed"] = np.array(texts)
        file.create_dataset("any", data=texts, dtype=h5py.string_dtype("ascii"))
        file["good"] = np.array([b"good"] * len(texts))
    done = thalweg("read", path, "--out", out, "--memory", "4MiB")
    assert done.stderr.count("is not UTF-8; its column has bytes") == 2
    read = table(out)
    assert read["fixed"].to_pylist() == read["any"].to_pylist() == texts
    assert read["good"].to_pylist() == ["good"] * len(texts)


def test_single_elements_are_one_row(thalweg, tmp_path):
    path, out = tmp_path / "f.h5", tmp_path / "out.parquet"
    with h5py.File(path, "w") as file:
        file["text"], file["number"], file["none"] = "words", 7, np.zeros(0)
        file.create_dataset("of lists", (1,), h5py.vlen_dtype(h5py.string_dtype()))
        file["reference"] = file["text"].ref
    thalweg("read", path, "/text", "/number", "--out", out)
    assert table(out).to_pylist() == [{"text": "words", "number": 7}]
    for name in ("/of lists", "/reference"):
        done = thalweg("read", path, name, "--out", out, "--force", check=False)
        assert done.returncode == 1 and f"{name}: not read" in done.stderr, done.stderr
    thalweg("read", path, "/none", "--out", out, "--force")
    assert table(out).num_rows == 0
    done = thalweg("read", path, "/number", "/none", "--out", out, "--force", check=False)
    assert done.returncode == 1 and "expected 0 rows" in done.stderr


def test_damaged_strings_leave_no_table(thalweg, tmp_path):
    path, out = tmp_path / "f.h5", tmp_path / "out.arrow"
    with h5py.File(path, "w") as file:
        file.create_dataset("any", data=["a" * 50] * 100, dtype=h5py.string_dtype())
    data = bytearray(path.read_bytes())
    data[data.index(b"GCOL")] ^= 1
    path.write_bytes(data)
    done = thalweg("read", path, "--out", out, check=False)
    assert done.returncode == 1 and "GCOL" in done.stderr and not out.exists()
