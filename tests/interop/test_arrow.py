"""Arrow files that thalweg writes, read by pyarrow."""

import hashlib
import math

import pyarrow as pa
import pytest

import everything
from nanopore import expectations

MISSING = everything.TAME | everything.AWKWARD


def table(path) -> pa.Table:
    with pa.memory_map(str(path)) as source:
        read = pa.ipc.open_file(source).read_all()
    read.validate(full=True)
    return read


@pytest.mark.parametrize("name", ["blow5/example3.blow5", "blow5/sequin_rna.blow5", "slow5/b1_ascii.slow5"])
def test_values_of_real_files(thalweg, shared, tmp_path, name):
    thalweg("read", shared / name, "--out", tmp_path / "out.arrow")
    rows = []
    for row in table(tmp_path / "out.arrow").select(list(range(7))).to_batches():
        for i in range(row.num_rows):
            signal = row.column("signal")[i].values.to_numpy()
            fields = {key: row.column(key)[i].as_py() for key in row.schema.names if key != "signal"}
            stored = hashlib.sha256(signal.astype("<i2").tobytes()).hexdigest()
            rows.append(fields | {"n": len(signal), "sum": int(signal.sum(dtype="int64")), "sha256": stored})
    assert rows == expectations(shared)[name]["reads"]


def as_written(kind: str, text: str):
    """The value of an auxiliary field from its SLOW5 text."""
    base = kind.split("{")[0]
    if base == "char*" or base == "char":
        return text
    if base.endswith("*"):
        return [as_written(kind.replace("*", "", 1), part) for part in text.split(",")]
    if base == "enum":
        return kind[kind.index("{") + 1 : -1].split(",")[int(text)]
    return float(text) if base in ("float", "double") else int(text)


def close(kind: str, found, expected) -> bool:
    if isinstance(expected, list):
        return len(found) == len(expected) and all(close(kind, f, e) for f, e in zip(found, expected))
    return math.isclose(found, expected, rel_tol=1e-6) if "float" in kind else found == expected


def test_every_type_of_field(thalweg, tmp_path):
    (tmp_path / "all.slow5").write_text(everything.text(MISSING))
    thalweg("convert", tmp_path / "all.slow5", tmp_path / "all.blow5")
    for source in ("all.slow5", "all.blow5"):
        thalweg("read", tmp_path / source, "--out", tmp_path / "out.arrow", "--force")
        read = table(tmp_path / "out.arrow")
        assert read.column("read_id").to_pylist() == list(everything.signals())
        assert read.column("signal").to_pylist() == list(everything.signals().values())
        for name, (kind, *values) in MISSING.items():
            assert read.schema.field(name).metadata[b"slow5:type"].decode() == kind
            for number, found in enumerate(read.column(name).to_pylist()):
                if number % 3 == 2:
                    assert found is None
                else:
                    assert close(kind, found, as_written(kind, values[number % 3])), (name, number, found)
        assert read.schema.field("a_enum").type == pa.dictionary(pa.uint8(), pa.string())
        assert read.schema.field("b_float").type.value_type == pa.float32()
