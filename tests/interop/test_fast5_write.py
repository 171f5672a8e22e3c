"""FAST5 that thalweg wrote, as h5py with ONT's filter and as ONT's own converter read it."""

import json
import sys

import h5py
import pytest

import fast5_rows
from nanopore import FAST5, HERE, REPOSITORY, expected_rows, pod5_files, readable, run

pytest.importorskip("pod5")

COMPRESSIONS = {"vbz": [], "vbz 9": ["--signal", "vbz", "--level", "9"], "zlib": ["--signal", "zlib"], "none": ["--signal", "none"]}


def pod5_rows(path) -> list[dict]:
    """In its own process: the library may exit on errors."""
    return [json.loads(line) for line in run(sys.executable, HERE / "pod5_rows.py", path).stdout.splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("options", COMPRESSIONS.values(), ids=COMPRESSIONS.keys())
@pytest.mark.parametrize("name", [*readable(), *pod5_files(), *FAST5])
def test_samples(thalweg, shared, tmp_path, name, options):
    out = tmp_path / "out.fast5"
    # A few sources have what FAST5 has no place for: arrays, and groups beside the reads.
    thalweg("convert", shared / name, out, *options, "--lossy", "--verify")
    found = [f"{read}\t{row['n']}\t{row['sum']}\t{row['sha256']}" for read, row in fast5_rows.reads(out).items()]
    assert sorted(found) == sorted(expected_rows(shared, FAST5.get(name, name)))
    with h5py.File(out) as file:
        assert file.attrs["file_type"] == b"multi-read" and file.attrs["file_version"] in (b"2.2", b"2.3")


@pytest.mark.parametrize("way", ["straight", "through blow5", "through pod5"])
@pytest.mark.parametrize("name", FAST5)
def test_fast5_attributes_are_those_of_the_source(thalweg, shared, tmp_path, name, way):
    source, out = shared / name, tmp_path / "out.fast5"
    if way != "straight":
        middle = tmp_path / f"middle.{way.split()[1]}"
        thalweg("convert", source, middle, "--lossy", "--force")
        source = middle
    thalweg("convert", source, out, "--lossy", "--force")
    wanted, found = fast5_rows.reads(shared / name), fast5_rows.reads(out)
    assert found.keys() == wanted.keys()
    for read, row in wanted.items():
        for part, attributes in row["attributes"].items():
            # SLOW5 does not tell an empty attribute from none.
            attributes = {k: v for k, v in attributes.items() if v != "" or part in ("Raw", "channel_id")}
            here = {k: found[read]["attributes"][part].get(k) for k in attributes}
            assert here == attributes, (read, part)
            if way != "through pod5" and part in ("Raw", "channel_id"):
                kinds = {k: v for k, v in found[read]["types"][part].items() if k in attributes}
                assert kinds == {k: row["types"][part][k] for k in attributes}, (read, part)


# What ont_fast5_api and pod5 expect of the attributes, whatever the source (pod5's own converter writes the same).
TYPES = {
    "": {"run_id": "text", "pore_type": "text"},
    "Raw": {
        "duration": "<u4",
        "median_before": "<f8",
        "num_minknow_events": "<u8",
        "num_reads_since_mux_change": "<u4",
        "predicted_scaling_scale": "<f4",
        "predicted_scaling_shift": "<f4",
        "read_id": "text",
        "read_number": "<i4",
        "start_mux": "|u1",
        "start_time": "<u8",
        "time_since_mux_change": "<f4",
        "tracked_scaling_scale": "<f4",
        "tracked_scaling_shift": "<f4",
    },
    "channel_id": {
        "channel_number": "text",
        "digitisation": "<f8",
        "offset": "<f8",
        "range": "<f8",
        "sampling_rate": "<f8",
    },
}


@pytest.mark.long
@pytest.mark.parametrize("name", [*pod5_files(), "synthetic"])
def test_types_and_places_are_those_of_onts_own_converter(thalweg, shared, tmp_path, name):
    source, ours, theirs = shared / name, tmp_path / "ours.fast5", tmp_path / "theirs"
    if name == "synthetic":
        source = tmp_path / "synthetic.pod5"
        thalweg("synth", source, "--kind", "pod5", "--samples", "400k", "--seed", "5")
    thalweg("convert", source, ours)
    pod5 = REPOSITORY / ".venv/bin/pod5"
    run(pod5, "convert", "to_fast5", source, "--output", theirs)
    wanted = {}
    for path in theirs.glob("*.fast5"):
        wanted |= fast5_rows.reads(path)
    found = fast5_rows.reads(ours)
    assert found.keys() == wanted.keys()
    for read, row in wanted.items():
        assert found[read]["sha256"] == row["sha256"]
        for part in ["", "Raw", "channel_id"]:
            mine, kinds = found[read]["attributes"][part], found[read]["types"][part]
            for attribute, value in row["attributes"][part].items():
                # A column that the source does not have is zero, or NaN, to the library.
                if attribute not in mine and value in (0, "nan", (0.0).hex()):
                    continue
                assert mine.get(attribute) == value, (read, part, attribute)
                assert kinds[attribute] == row["types"][part][attribute], (read, part, attribute)
            for attribute, kind in TYPES[part].items():
                assert attribute not in kinds or kinds[attribute] == kind, (read, part, attribute)


@pytest.mark.long
@pytest.mark.parametrize("name", [*pod5_files(), "synthetic"])
def test_onts_converter_reads_it(thalweg, shared, tmp_path, name):
    source, middle, out = shared / name, tmp_path / "middle.fast5", tmp_path / "out.pod5"
    if name == "synthetic":
        source = tmp_path / "synthetic.pod5"
        thalweg("synth", source, "--kind", "pod5", "--samples", "400k", "--seed", "6")
    thalweg("convert", source, middle)
    run(REPOSITORY / ".venv/bin/pod5", "convert", "fast5", middle, "--output", out, cwd=tmp_path)
    kept = [
        "read_id", "run", "n", "sum", "sha256", "num_samples", "channel", "well", "pore_type", "offset", "scale",
        "digitisation", "end_reason", "read_number", "start_sample", "median_before", "num_minknow_events", "tracked",
        "predicted", "num_reads_since_mux_change", "time_since_mux_change",
    ]  # fmt: skip

    def rows(path) -> list[dict]:
        found = sorted((r for r in pod5_rows(path) if "n" in r), key=lambda r: r["read_id"])
        return [{field: r[field] for field in kept} for r in found]

    assert rows(out) == rows(source)


def test_a_version_that_is_replaced_is_named(thalweg, tmp_path):
    """A file of many reads has a version of its own, whatever that of the source was."""
    text, out = tmp_path / "a.slow5", tmp_path / "a.fast5"
    primary = "#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*"
    names = "#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal"
    record = "some-id\t0\t8192\t6\t1500\t4000\t3\t1,2,3\n"
    text.write_text(f"#slow5_version\t1.0.0\n#num_read_groups\t1\n@file_version\t0.6\n{primary}\n{names}\n{record}")
    refused = thalweg("convert", text, out, check=False)
    assert refused.returncode == 1 and "file_version of read group 0 (0.6)" in refused.stderr and not out.exists()
    assert "file_version" in thalweg("convert", text, out, "--lossy").stderr
    with h5py.File(out) as file:
        assert file.attrs["file_version"] == b"2.3"
    text.write_text(f"#slow5_version\t1.0.0\n#num_read_groups\t1\n@file_type\tmulti-read\n@file_version\t2.0\n{primary}\n{names}\n{record}")
    assert thalweg("convert", text, out, "--force", "-q").stderr == ""
    with h5py.File(out) as file:
        assert file.attrs["file_version"] == b"2.0"
