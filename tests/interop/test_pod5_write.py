"""The POD5 library reads what thalweg wrote: the same runs, the same values in every field, to the last bit."""

import json
import pathlib
import sys

import pytest

from nanopore import HERE, expectations, expected_rows, readable, run

pytest.importorskip("pod5")

POD5 = [
    "b1.pod5",
    "compat_v0.pod5",
    "compat_v3.pod5",
    "derived_b1_v4_repacked.pod5",
    "derived_b1_v4_uncompressed_signal.pod5",
    "multi_fast5_zip_v1.pod5",
    "multi_fast5_zip_v2.pod5",
    "trna_reads.pod5",
    "z1.pod5",
]
# Real BLOW5 files with all that POD5 needs, calibrations that floats hold included.
BLOW5 = ["blow5/z1.blow5", "blow5/derived_z1_zstd_ex-zd.blow5"]
SIGNALS = pytest.mark.parametrize("signal", ["vbz", "none"])


def rows(path) -> list[dict]:
    """In its own process: the library may exit on errors."""
    lines = run(sys.executable, HERE / "pod5_rows.py", path).stdout.splitlines()
    return [json.loads(line) for line in lines]


@SIGNALS
@pytest.mark.parametrize("name", BLOW5)
def test_samples_and_ids(thalweg, shared, tmp_path, name, signal):
    out = tmp_path / "out.pod5"
    thalweg("convert", shared / name, out, "--force", "--signal", signal)
    found = [f"{r['read_id']}\t{r['n']}\t{r['sum']}\t{r['sha256']}" for r in rows(out) if "n" in r]
    assert found == expected_rows(shared, name)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in readable() if name not in BLOW5])
def test_samples_and_ids_of_files_that_lose_digits(thalweg, shared, tmp_path, name):
    out = tmp_path / "out.pod5"
    done = thalweg("convert", shared / name, out, "--force", "--lossy", "--verify", check=False)
    if done.returncode != 0:
        assert "UUID" in done.stderr
        pytest.skip("its reads have no UUIDs")
    found = [f"{r['read_id']}\t{r['n']}\t{r['sum']}\t{r['sha256']}" for r in rows(out) if "n" in r]
    assert found == expected_rows(shared, name)


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [[], ["--signal", "none"], ["--row-samples", "1000", "--signal-rows", "3", "--reads-rows", "2"]]
)
@pytest.mark.parametrize("name", POD5)
def test_nothing_is_lost_on_the_way_through_blow5(thalweg, shared, tmp_path, name, options):
    middle, out = tmp_path / "middle.blow5", tmp_path / "out.pod5"
    thalweg("convert", shared / "pod5" / name, middle)
    thalweg("convert", middle, out, *options)
    assert rows(out) == rows(shared / "pod5" / name)


@pytest.mark.long
@pytest.mark.parametrize("name", POD5)
def test_pod5_to_pod5(thalweg, shared, tmp_path, name):
    out = tmp_path / "out.pod5"
    thalweg("convert", shared / "pod5" / name, out)
    assert rows(out) == rows(shared / "pod5" / name)


def signal_table(path):
    """The Signal table as Arrow reads it, and where it lies in the file."""
    import pod5
    import pyarrow

    with pod5.Reader(path) as reader:
        place = reader.inner_file_reader.get_file_signal_table_location()
    stored = path.read_bytes()[place.offset : place.offset + place.length]
    return pyarrow.ipc.open_file(pyarrow.BufferReader(stored)).read_all(), place


@pytest.mark.long
@pytest.mark.parametrize("name", POD5)
def test_signal_is_copied_as_it_is_stored(thalweg, shared, tmp_path, name):
    source, rough, fine, again = (tmp_path / f"{name}.pod5" for name in ("source", "rough", "fine", "again"))
    source.write_bytes((shared / "pod5" / name).read_bytes())
    uncompressed = "uncompressed" in name
    own = ["--signal", "none"] if uncompressed else []
    thalweg("convert", source, rough, *own, "--row-samples", "1000", *([] if uncompressed else ["--level", "9"]))
    wanted, _ = signal_table(rough)
    # Rows of another length and level stay what they are, whichever verb writes them; checked or not.
    if uncompressed:
        thalweg("convert", rough, fine, "--force")
        assert signal_table(fine)[0].schema.field("signal").type != wanted.schema.field("signal").type
        return
    thalweg("convert", rough, fine, "--force")
    assert signal_table(fine)[0].equals(wanted)
    thalweg("filter", rough, "--where", "samples >= 0", "--out", fine, "--force", "--verify")
    assert signal_table(fine)[0].equals(wanted)
    # Unless they are asked to change.
    thalweg("convert", fine, again, "--row-samples", "102400", "--signal", "vbz")
    assert signal_table(again)[0].num_rows < wanted.num_rows
    assert rows(again) == rows(source)


def test_copied_signal_is_checked_where_that_is_asked_for(thalweg, shared, tmp_path):
    damaged, out = tmp_path / "damaged.pod5", tmp_path / "out.pod5"
    stored = bytearray((shared / "pod5/b1.pod5").read_bytes())
    table, place = signal_table(shared / "pod5/b1.pod5")
    chunk = table.column("signal")[1].as_py()
    stored[stored.index(chunk, place.offset)] ^= 0x55  # of the magic number of zstd
    damaged.write_bytes(stored)
    done = thalweg("convert", damaged, out, "--verify", check=False)
    assert done.returncode == 1 and not out.exists(), done.stderr


def test_the_reads_of_many_files(thalweg, shared, tmp_path):
    out = tmp_path / "out.pod5"
    thalweg("convert", shared / "pod5/b1.pod5", shared / "pod5/z1.pod5", out)
    merged = [r for r in rows(out) if "n" in r]
    each = [r for name in ("b1", "z1") for r in rows(shared / f"pod5/{name}.pod5") if "n" in r]
    assert merged == each


def test_no_reads(thalweg, shared, tmp_path):
    empty, out, source = tmp_path / "ids", tmp_path / "out.pod5", tmp_path / "reads.blow5"
    empty.write_text("")
    # A copy: an id list makes an index beside the file.
    source.write_bytes((shared / "blow5/z1.blow5").read_bytes())
    thalweg("convert", source, out, "--force", "--ids", empty)
    assert [r for r in rows(out) if "n" in r] == []


def test_synthetic_reads(thalweg, tmp_path):
    direct, through, blow5 = tmp_path / "direct.pod5", tmp_path / "through.pod5", tmp_path / "reads.blow5"
    thalweg("synth", direct, "--kind", "pod5", "--samples", "500k", "--seed", "7")
    thalweg("synth", blow5, "--samples", "500k", "--seed", "7")
    thalweg("convert", blow5, through)
    found = [r for r in rows(direct) if "n" in r]
    assert len(found) > 3
    assert [(r["read_id"], r["sha256"], r["scale"]) for r in found] == [
        (r["read_id"], r["sha256"], r["scale"]) for r in rows(through) if "n" in r
    ]


def test_columns_that_pod5_does_not_define_are_kept(thalweg, tmp_path):
    text, out, again = tmp_path / "more.slow5", tmp_path / "more.pod5", tmp_path / "again.slow5"
    primary = "#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*"
    names = "#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal"
    text.write_text(
        "#slow5_version\t1.0.0\n#num_read_groups\t1\n@run_id\tabc\n"
        f"{primary}\tint8_t\tdouble\tchar*\n{names}\tdepth\tweight\tcolour\n"
        "00f7a3c1-0000-4abc-bdef-0123456789ff\t0\t8192\t6\t1500\t4000\t3\t1,2,3\t-5\t0.1\tred\n"
        "10f7a3c1-0000-4abc-bdef-0123456789ff\t0\t8192\t6\t1500\t4000\t1\t-4\t.\t.\t.\n"
    )
    thalweg("convert", text, out)
    assert [r["n"] for r in rows(out) if "n" in r] == [3, 1]
    thalweg("convert", out, again)
    header = again.read_text().splitlines()
    names = next(line for line in header if line.startswith("#read_id")).split("\t")
    for name, values in {"depth": ["-5", "."], "weight": ["0.1", "."], "colour": ["red", "."]}.items():
        found = [line.split("\t")[names.index(name)] for line in header if not line.startswith(("#", "@"))]
        assert found == values


def reads_table(path):
    """The Reads table as Arrow reads it, and where it lies in the file."""
    import pod5
    import pyarrow

    with pod5.Reader(path) as reader:
        place = reader.inner_file_reader.get_file_read_table_location()
    stored = path.read_bytes()[place.offset : place.offset + place.length]
    return pyarrow.ipc.open_file(pyarrow.BufferReader(stored)).read_all(), place


def with_columns(source, out, columns) -> None:
    """Gives a file's reads more columns. The Reads table stands last, so that only its length changes in the footer."""
    import pyarrow

    table, place = reads_table(source)
    for name, values in columns.items():
        table = table.append_column(name, values)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, table.schema) as writer:
        for batch in table.combine_chunks().to_batches():
            writer.write_batch(batch)
    made, stored = sink.getvalue().to_pybytes(), source.read_bytes()
    length = place.length.to_bytes(8, "little")
    # POD5 specification, "Container": padded to 8 bytes, the marker, the footer
    end = stored[place.offset + -(-place.length // 8) * 8 :]
    assert end.count(length) == 1
    padding = bytes(-len(made) % 8)
    out.write_bytes(stored[: place.offset] + made + padding + end.replace(length, len(made).to_bytes(8, "little")))


def test_types_of_columns_that_pod5_does_not_define_survive(thalweg, shared, tmp_path):
    import datetime

    import pyarrow as pa

    times = [datetime.datetime(2026, 11, 22, 8, 0, second, 123456) for second in range(3)]
    days = [datetime.date(2026, 11, day + 1) for day in range(3)]
    values = {
        pa.bool_(): [True, False, None],
        pa.int8(): [-5, 7, None],
        pa.uint64(): [2**40, 3, None],
        pa.float64(): [0.1, -2.5, 1e300],
        pa.utf8(): ["red", "green", None],
        pa.large_utf8(): ["red", "green", None],
        pa.dictionary(pa.int16(), pa.utf8()): ["red", "green", "red"],
        pa.binary(): [b"\x00\xff", b"abc", None],
        pa.large_binary(): [b"\x00\xff", b"abc", None],
        pa.binary(3): [b"abc", b"\x00\x01\x02", None],
        pa.date32(): [days[0], days[1], None],
        pa.timestamp("s"): [times[0].replace(microsecond=0), times[1].replace(microsecond=0), None],
        pa.timestamp("ms", tz="UTC"): [1, 2, None],
        pa.timestamp("us"): [times[0], times[1], None],
        pa.timestamp("ns", tz="Europe/Vienna"): [1, 2, None],
        pa.duration("ms"): [1, -2, None],
        pa.list_(pa.float32()): [[1.5, -2.5], [3.0], None],
        pa.list_(pa.int16()): [[-1, 2, 3], [4], None],
        pa.list_(pa.field("element", pa.uint32())): [[1, 2], [3], None],
        pa.large_list(pa.float64()): [[0.1], [0.2, 0.3], None],
    }
    source, middle, out = tmp_path / "source.pod5", tmp_path / "middle.blow5", tmp_path / "out.pod5"
    count = reads_table(shared / "pod5/b1.pod5")[0].num_rows
    columns = {f"column {kind}".replace(" ", "_"): pa.array([row[i % 3] for i in range(count)], kind) for kind, row in values.items()}
    with_columns(shared / "pod5/b1.pod5", source, columns)
    wanted, _ = reads_table(source)

    def plain(column):
        column = column.combine_chunks()
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    through = [[source, out], [source, middle, out], [source, tmp_path / "again.pod5", out]]
    for way in through:
        for given, made in zip(way, way[1:], strict=False):
            told = thalweg("convert", given, made, "--force", "--verify", "-q")
            assert told.stderr == ""
        found, _ = reads_table(out)
        for name in columns:
            assert found.schema.field(name).type == wanted.schema.field(name).type, (name, way)
            assert plain(found.column(name)).equals(plain(wanted.column(name))), (name, way)
        assert rows(out) == rows(shared / "pod5/b1.pod5")


def test_columns_of_other_types_are_named(thalweg, shared, tmp_path):
    import pyarrow as pa

    source, out = tmp_path / "source.pod5", tmp_path / "out.pod5"
    count = reads_table(shared / "pod5/b1.pod5")[0].num_rows
    kind = pa.struct([("a", pa.int8())])
    with_columns(shared / "pod5/b1.pod5", source, {"nested": pa.array([{"a": 1}] * count, kind)})
    refused = thalweg("convert", source, out, "--force", check=False)
    assert refused.returncode == 1 and "nested" in refused.stderr and not out.exists()
    told = thalweg("convert", source, out, "--force", "--lossy")
    assert "column nested" in told.stderr


def test_losses_of_pod5_are_listed(thalweg, shared, tmp_path):
    out = tmp_path / "out.pod5"
    name = "blow5/exp_1_lossless_zstd_svb_v0.2.0.blow5"
    refused = thalweg("convert", shared / name, out, "--force", check=False)
    assert refused.returncode == 1 and "--lossy" in refused.stderr and "range" in refused.stderr
    assert list(tmp_path.iterdir()) == []
    done = thalweg("convert", shared / name, out, "--force", "--lossy", "--json", "--verify")
    told = json.loads(done.stdout)
    assert any("range" in lost["what"] and lost["reads"] == 1 for lost in told["lost"])
    found = [f"{r['read_id']}\t{r['n']}\t{r['sum']}\t{r['sha256']}" for r in rows(out) if "n" in r]
    assert found == expected_rows(shared, name)
    assert name in expectations(shared)


def test_reads_without_a_run_id(thalweg, tmp_path):
    """The POD5 library finds their run, copies it, and gets no missing value of it."""
    import pod5

    text, out, again, copied = (tmp_path / name for name in ("a.slow5", "a.pod5", "again.slow5", "copied.pod5"))
    primary = "#char*\tuint32_t\tdouble\tdouble\tdouble\tdouble\tuint64_t\tint16_t*"
    names = "#read_id\tread_group\tdigitisation\toffset\trange\tsampling_rate\tlen_raw_signal\traw_signal"
    text.write_text(
        f"#slow5_version\t1.0.0\n#num_read_groups\t1\n@flow_cell_id\tFC\n{primary}\n{names}\n"
        "00f7a3c1-0000-4abc-bdef-0123456789ff\t0\t8192\t6\t1500\t4000\t3\t1,2,3\n"
    )
    thalweg("convert", text, out, "--verify")
    assert "00f7a3c1-0000-4abc-bdef-0123456789ff" in run(pathlib.Path(sys.executable).with_name("pod5"), "view", out).stdout
    with pod5.Reader(out) as reader, pod5.Writer(copied) as writer:
        for record in reader.reads():
            assert record.run_info.acquisition_id == "" and record.run_info.flow_cell_id == "FC"
            assert all(value is not None for value in vars(record.run_info).values())
            writer.add_read(record.to_read())
    assert [r["n"] for r in rows(copied) if "n" in r] == [3]
    thalweg("convert", out, again)
    assert "@flow_cell_id\tFC\n" in again.read_text()
