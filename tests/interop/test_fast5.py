"""FAST5 as h5py reads it, with ONT's own VBZ filter."""

import hashlib
import zlib

import h5py
import hdf5plugin
import numpy
import pytest
import vbz_h5py_plugin  # noqa: F401  registers the filter

from nanopore import SHARED


def files() -> list[str]:
    """Never empty, so that a missing folder is a skipped test, not silence."""
    return sorted(path.name for path in (SHARED / "fast5").glob("*.fast5")) or ["multi_fast5_zip.fast5"]


def reads(file: h5py.File):
    """Read id and signal of each read, whichever kind of file it is."""
    if "Raw" in file:
        for read in file["Raw/Reads"].values():
            yield read.attrs["read_id"].decode(), read["Signal"]
        return
    for name, read in file.items():
        yield name.removeprefix("read_"), read["Raw/Signal"]


def row(read_id: str, samples) -> str:
    samples = numpy.asarray(samples, "<i2")
    return f"{read_id}\t{len(samples)}\t{samples.sum(dtype=numpy.int64)}\t{hashlib.sha256(samples.tobytes()).hexdigest()}"


@pytest.mark.parametrize("name", files())
def test_rows_equal_h5pys(thalweg, shared, name):
    with h5py.File(shared / "fast5" / name) as file:
        expected = sorted(row(read_id, signal[:]) for read_id, signal in reads(file))
    assert sorted(thalweg("read", shared / "fast5" / name, "--digest").stdout.splitlines()) == expected


LAYOUTS = {
    "contiguous": {},
    "many chunks": {"chunks": (100,), "compression": "gzip"},
    "shuffled and summed": {"chunks": (1000,), "compression": "gzip", "shuffle": True, "fletcher32": True},
    "one chunk larger than the signal": {"chunks": (9999,), "fletcher32": True},
    "VBZ 0": {"chunks": (333,), "compression": 32020, "compression_opts": (0, 2, 1, 1)},
    "VBZ 1": {"chunks": (5000,), "compression": 32020, "compression_opts": (1, 2, 1, 3)},
    "VBZ without zigzag": {"chunks": (333,), "compression": 32020, "compression_opts": (0, 2, 0, 1)},
    "VBZ without zstd": {"chunks": (333,), "compression": 32020, "compression_opts": (0, 2, 1, 0)},
    "VBZ of bytes": {"chunks": (334,), "compression": 32020, "compression_opts": (1, 1, 1, 1)},
    "VBZ of four bytes": {"chunks": (334,), "compression": 32020, "compression_opts": (0, 4, 1, 1)},
}


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_every_layout_that_h5py_writes(thalweg, tmp_path, libver):
    random = numpy.random.default_rng(1)
    path = tmp_path / "layouts.fast5"
    expected = []
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["file_type"] = "multi-read"
        for name, options in LAYOUTS.items():
            for length in (0, 1, 4321) if not options else (1, 4321):
                samples = random.integers(-32768, 32767, length, "<i2")
                samples[length // 2 :] //= 500
                read_id = f"{name} {length}"
                growing = {"maxshape": (None,)} if "chunks" in options else {}
                file.create_dataset(f"read_{read_id}/Raw/Signal", data=samples, **options, **growing)
                expected.append(row(read_id, samples))
        # Chunks that nobody wrote hold the fill value.
        sparse = file.create_dataset("read_sparse/Raw/Signal", (1000,), "<i2", chunks=(100,), fillvalue=-7)
        sparse[250:260] = 5
        expected.append(row("sparse", sparse[:]))
    assert sorted(thalweg("read", path, "--digest").stdout.splitlines()) == sorted(expected)


REASONS = h5py.enum_dtype({"unknown": 0, "mux_change": 2, "signal_positive": 4}, basetype="u1")
COLUMNS = "read_id,samples,digitisation,range,channel_number,start_time,read_number,median_before,end_reason,run_id,tag_9"


def put(group, attributes, strings):
    for name, value in attributes.items():
        if isinstance(value, str) and strings == "fixed":
            group.attrs.create(name, numpy.bytes_(value))
        else:
            group.attrs[name] = value


@pytest.mark.parametrize("strings", ["fixed", "any length"])
@pytest.mark.parametrize("libver", ["earliest", ("earliest", "v108"), ("v108", "v110"), ("v112", "v114"), "latest"])
@pytest.mark.parametrize("shared_groups", [True, False])
def test_fields_and_samples_are_what_h5py_wrote(thalweg, tmp_path, libver, strings, shared_groups):
    """Sixty reads in the layouts of all generations of the library; the last ten of another run, with a field more."""
    random = numpy.random.default_rng(2)
    path = tmp_path / "all.fast5"
    rows, digests = [], []
    with h5py.File(path, "w", libver=libver) as file:
        put(file, {"file_type": "multi-read", "file_version": "2.3"}, strings)
        runs = {}
        for i in range(60):
            late = i >= 50
            read_id = f"{i * 2654435761 % 2**32:08x}-{i}"
            samples = random.normal(400, 60, 50 + 211 * i % 3000).astype("<i2")
            group = file.create_group(f"read_{read_id}")
            raw = group.create_group("Raw")
            vbz = {"chunks": samples.shape, "compression": 32020, "compression_opts": (0, 2, 1, 1)}
            gzip = {"chunks": (max(1, len(samples) // 3),), "compression": "gzip", "maxshape": (None,)}
            raw.create_dataset("Signal", data=samples, **(vbz if i % 2 else gzip))
            put(raw, {"read_id": read_id, "duration": numpy.uint32(len(samples))}, strings)
            put(raw, {"start_time": numpy.uint64(2**40 + i), "read_number": numpy.int32(-i)}, strings)
            raw.attrs.create("end_reason", 4, dtype=REASONS)
            if late:
                put(raw, {"median_before": 200.5 + i}, strings)
            channel = {"channel_number": str(i), "digitisation": 8192.0, "offset": 3.0, "sampling_rate": 4000.0}
            put(group.create_group("channel_id"), {**channel, "range": numpy.float32(1402.5)}, strings)
            if shared_groups and late in runs:
                group["tracking_id"] = runs[late]
            else:
                runs[late] = group.create_group("tracking_id")
                tags = {f"tag_{n}": f"{n} of {late}" for n in range(12)}
                put(runs[late], {"run_id": f"run {late}", **tags}, strings)
            digests.append(row(read_id, samples))
            median = str(200.5 + i) if late else ""
            rows.append(
                f"{read_id},{len(samples)},8192.0,1402.5,{i},{2**40 + i},{-i},{median},signal_positive,run {late},9 of {late}"
            )
    assert sorted(thalweg("read", path, "--digest").stdout.splitlines()) == sorted(digests)
    assert sorted(thalweg("scan", path, "--columns", COLUMNS).stdout.splitlines()[1:]) == sorted(rows)
    ids = tmp_path / "ids"
    ids.write_text("".join(f"{line.split(chr(9))[0]}\n" for line in digests[::-7]))
    assert sorted(thalweg("read", path, "--ids", ids, "--digest").stdout.splitlines()) == sorted(digests[::-7])
    assert "whole" in thalweg("check", path).stdout


def test_a_wrong_checksum_is_an_error(thalweg, tmp_path):
    path = tmp_path / "sum.fast5"
    with h5py.File(path, "w") as file:
        file.attrs["file_type"] = "multi-read"
        signal = file.create_dataset("read_a/Raw/Signal", data=numpy.arange(500, dtype="<i2"), chunks=(500,), fletcher32=True)
        at = signal.id.get_chunk_info(0).byte_offset
    stored = bytearray(path.read_bytes())
    stored[at + 77] ^= 1
    path.write_bytes(stored)
    done = thalweg("read", path, "--digest", check=False)
    assert done.returncode == 1
    assert "checksum" in done.stderr and "read a" in done.stderr and str(path) in done.stderr


def test_a_filter_that_is_not_known_is_named(thalweg, tmp_path):
    path = tmp_path / "sz3.fast5"
    signal = numpy.arange(500, dtype="<i2")
    with h5py.File(path, "w") as file:
        file.create_dataset("read_a/Raw/Signal", data=signal, chunks=(500,), **hdf5plugin.SZ3(absolute=1))
    done = thalweg("read", path, "--digest", check=False)
    assert done.returncode == 1
    assert "32024" in done.stderr


def test_filters_of_other_hdf5_files(thalweg, tmp_path):
    signal = numpy.arange(5000, dtype="<i2") // 7
    digest = hashlib.sha256(signal.tobytes()).hexdigest()
    for name, coded in (("lzf", {"compression": "lzf"}), ("zstd", hdf5plugin.Zstd()), ("blosc", hdf5plugin.Blosc()), ("blosc2", hdf5plugin.Blosc2()), ("bzip2", hdf5plugin.BZip2())):
        path = tmp_path / f"{name}.fast5"
        with h5py.File(path, "w") as file:
            file.create_dataset("read_a/Raw/Signal", data=signal, chunks=(1000,), **coded)
        assert thalweg("read", path, "--digest").stdout == f"a\t5000\t{int(signal.sum())}\t{digest}\n"


@pytest.mark.parametrize("shape", [(36_511,), (37, 53)])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_chunk_that_holds_the_elements_of_the_dataset_alone(thalweg, tmp_path, shape, shuffle):
    """MinKNOW stored single reads so: the chunk's shape is larger than the dataset, and its stream ends with the data."""
    values = numpy.arange(numpy.prod(shape), dtype="<i2").reshape(shape)
    path, repacked = tmp_path / "short.fast5", tmp_path / "repacked.h5"
    # Rows are as long in the chunk as in the dataset, so that the dataset's elements come first.
    chunk = (201_536, *shape[1:])
    with h5py.File(path, "w") as file:
        group = file.create_group("Raw/Reads/Read_7")
        group.attrs["read_id"] = numpy.bytes_("some-id")
        options = {"chunks": chunk, "maxshape": (None, *shape[1:]), "compression": "gzip", "shuffle": shuffle}
        signal = group.create_dataset("Signal", shape, "<i2", **options)
        stored = values.tobytes()
        if shuffle:
            stored = values.reshape(-1).view("u1").reshape(-1, 2).T.tobytes()
        signal.id.write_direct_chunk((0,) * len(shape), zlib.compress(stored))
    with h5py.File(path) as file:
        assert (file["Raw/Reads/Read_7/Signal"][()] == values).all()
    arrays = tmp_path / "short.h5"
    arrays.write_bytes(path.read_bytes())
    with h5py.File(arrays, "r+") as file:
        file.move("Raw", "Other")
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    shown = "x".join(map(str, shape))
    expected = f"/Other/Reads/Read_7/Signal\t{shown}\t<i2\t{digest}\n"
    assert thalweg("read", arrays, "--digest").stdout == expected
    for how in (["--filter", "none"], ["--chunk", "100", "--filter", "gzip:1"]):
        thalweg("convert", "--repack", arrays, repacked, "--force", "--verify", *how)
        assert thalweg("read", repacked, "--digest").stdout == expected
    if len(shape) == 1:
        assert thalweg("read", path, "--digest").stdout == row("some-id", values) + "\n"
        # One element less than the dataset has is damage.
        with h5py.File(path, "r+") as file:
            signal = file["Raw/Reads/Read_7/Signal"]
            signal.id.write_direct_chunk((0,), zlib.compress(stored[:-2]))
        assert "bytes" in thalweg("read", path, "--digest", check=False).stderr


def test_a_file_without_reads_says_what_it_holds(thalweg, tmp_path):
    path = tmp_path / "none.fast5"
    values = numpy.arange(10)
    with h5py.File(path, "w") as file:
        file["UniqueGlobalKey/tracking_id"] = values
        file["Analyses/events"] = values
    for verb in (["check"], ["scan"], ["read", "--digest", tmp_path]):
        told = thalweg(verb[0], *(verb[1:] or [path]), check=False)
        assert told.returncode == 1, verb
        assert "without reads" in told.stderr and "Analyses" in told.stderr, told.stderr
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    assert thalweg("read", path, "/Analyses/events", "--digest").stdout == f"/Analyses/events\t10\t<i8\t{digest}\n"
    assert "/UniqueGlobalKey/tracking_id" in thalweg("info", path).stdout
    # No reads, and nothing else, is what a conversion of no reads makes.
    with h5py.File(path, "w") as file:
        file.attrs["file_type"] = "multi-read"
    assert thalweg("read", path, "--digest").stdout == ""


def test_fields_of_single_reads_have_the_types_of_slow5tools(thalweg, tmp_path):
    kinds = [("u4", "i4"), ("u8", "u8"), ("i4", "u1")]
    for number, (read_number, mux) in enumerate(kinds):
        with h5py.File(tmp_path / f"{number}.fast5", "w") as file:
            group = file.create_group(f"Raw/Reads/Read_{number}")
            group["Signal"] = numpy.arange(5, dtype="<i2")
            group.attrs["read_id"] = numpy.bytes_(f"read-{number}")
            group.attrs.create("read_number", 70 + number, dtype=read_number)
            group.attrs.create("start_mux", 2, dtype=mux)
            group.attrs.create("start_time", 2**33, dtype="u8")
            group.attrs.create("median_before", 200.5, dtype="f4" if number else "f8")
            file.create_group("UniqueGlobalKey/tracking_id").attrs["run_id"] = numpy.bytes_("run")
    out = tmp_path / "out.slow5"
    thalweg("merge", tmp_path, "--out", out, "--lossy")
    lines = out.read_text().splitlines()
    names = next(line for line in lines if line.startswith("#read_id")).split("\t")
    types = next(line for line in lines if line.startswith("#char*")).split("\t")
    found = dict(zip(names, types, strict=True))
    wanted = {"read_number": "int32_t", "start_mux": "uint8_t", "start_time": "uint64_t", "median_before": "double"}
    assert {name: found[name] for name in wanted} == wanted
    rows = [line.split("\t") for line in lines if line.startswith("read-")]
    assert sorted(line[names.index("read_number")] for line in rows) == ["70", "71", "72"]
