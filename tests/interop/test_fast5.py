"""FAST5 as h5py reads it, with ONT's own VBZ filter."""

import hashlib

import h5py
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
    path = tmp_path / "lzf.fast5"
    with h5py.File(path, "w") as file:
        file.create_dataset("read_a/Raw/Signal", data=numpy.arange(500, dtype="<i2"), chunks=(500,), compression="lzf")
    done = thalweg("read", path, "--digest", check=False)
    assert done.returncode == 1
    assert "lzf" in done.stderr and "32000" in done.stderr
