"""Programs in C and ctypes against the command, and what the interface does with wrong arguments."""

import ctypes
import os
import subprocess
import sys
import threading
from ctypes import POINTER, byref, c_char_p, c_double, c_int16, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import h5py
import numpy as np
import pyarrow
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
LIBRARY = BUILT / "libthalweg_c.so"

OK, END, MISSING = 0, 1, 2
ARGUMENT, IO, FORMAT, UNSUPPORTED, NOT_FOUND, INTERNAL, CANCELLED = -1, -2, -3, -4, -5, -6, -7


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("threads", c_uint32), ("memory", c_uint64)]


class Read(ctypes.Structure):
    _fields_ = [
        ("id", c_char_p),
        ("id_length", c_size_t),
        ("samples", POINTER(c_int16)),
        ("sample_count", c_uint64),
        ("digitisation", c_double),
        ("offset", c_double),
        ("range", c_double),
        ("sampling_rate", c_double),
        ("read_group", c_uint32),
        ("file", c_uint32),
    ]


class Batch(ctypes.Structure):
    _fields_ = [
        ("reads", c_uint64),
        ("ids", POINTER(ctypes.c_char)),
        ("id_offsets", POINTER(c_int32)),
        ("samples", POINTER(c_int16)),
        ("sample_offsets", POINTER(c_int32)),
        ("digitisation", POINTER(c_double)),
        ("offset", POINTER(c_double)),
        ("range", POINTER(c_double)),
        ("sampling_rate", POINTER(c_double)),
        ("read_group", POINTER(c_uint32)),
        ("file", c_uint32),
    ]


class Array(ctypes.Structure):
    _fields_ = [
        ("rank", c_uint32),
        ("shape", c_uint64 * 32),
        ("element_size", c_uint64),
        ("bytes", c_uint64),
        ("type", ctypes.c_char * 64),
    ]


class Lists(ctypes.Structure):
    _fields_ = [("count", c_uint64), ("offsets", POINTER(c_uint64)), ("ids", POINTER(c_uint64)), ("owner", c_void_p)]


def run(*args):
    return subprocess.run([str(arg) for arg in args], check=True, capture_output=True, text=True).stdout


def command(*args):
    return run(BUILT / "thalweg", *args)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    command("synth", folder / "reads.blow5", "--samples", "2M")
    for name in ["reads.pod5", "reads.slow5"]:
        command("convert", folder / "reads.blow5", folder / name)
    command("synth", folder / "run.nxs", "--kind", "nexus-live", "--size", "2MB", "--banks", "2")
    command("synth", folder / "circuit.h5", "--kind", "neuroglial", "--astrocytes", "50", "--neurons", "2000")
    command("graph", "import", folder / "circuit.h5", folder / "network")
    return folder


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Compiles a program in C, as strictly as C has it, against the shared library."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(source):
        program = folder / Path(source).stem
        flags = ["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
        linked = [LIBRARY, f"-Wl,-rpath,{BUILT}", "-o", program]
        run(os.environ.get("CC", "cc"), *flags, f"-I{HERE.parent / 'include'}", source, *linked)
        return program

    return compiled


@pytest.fixture
def thalweg():
    library = ctypes.CDLL(str(LIBRARY))
    library.thw_error.restype = library.thw_version.restype = c_char_p
    for name in ["thw_reads_free", "thw_run_free", "thw_arrays_free", "thw_network_free"]:
        getattr(library, name).restype = None
        getattr(library, name).argtypes = [c_void_p]
    library.thw_reads_get.argtypes = [c_void_p, POINTER(c_char_p), c_size_t, c_void_p]
    library.thw_neighbors.argtypes = [c_void_p, c_char_p, c_char_p, c_void_p, c_size_t, c_void_p]
    library.thw_arrays_read.argtypes = [c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_size_t]
    return library


def opened(library, function, path, options=None):
    handle = c_void_p()
    code = getattr(library, function)(str(path).encode(), options and byref(options), byref(handle))
    assert code == OK, library.thw_error()
    return handle


def digests(path):
    rows = [line.split("\t") for line in command("read", path, "--digest").splitlines() if not line.startswith("#")]
    assert rows
    return [(id, int(samples), int(sum)) for id, samples, sum, _ in rows]


def table(path, tmp_path):
    command("read", path, "--out", tmp_path / "reads.arrow", "--force")
    return pyarrow.ipc.open_file(tmp_path / "reads.arrow").read_all()


@pytest.mark.parametrize("name", ["reads.blow5", "reads.pod5", "reads.slow5"])
def test_a_loop_of_slow5lib(files, compiled, tmp_path, name):
    program = compiled(HERE.parent / "examples/each_read.c")
    rows = [line.split("\t") for line in run(program, files / name).splitlines()]
    expected = digests(files / name)
    assert [(id, int(samples), int(sum)) for id, samples, sum, _, _ in rows] == expected
    columns = table(files / name, tmp_path).to_pydict()
    for row, (_, samples, sum, current, channel) in enumerate(rows):
        digitisation, offset, range_ = (columns[name][row] for name in ("digitisation", "offset", "range"))
        assert float(current) == (int(sum) / int(samples) + offset) * range_ / digitisation
        assert channel == str(columns["channel_number"][row])
    wanted = [expected[5][0], expected[2][0], expected[5][0]]
    rows = [line.split("\t")[0] for line in run(program, files / name, *wanted).splitlines()]
    assert rows == wanted
    failed = subprocess.run([program, files / name, wanted[0], "nothing"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1 and "nothing" in failed.stderr


def test_ctypes(files):
    path = "/entry/bank1_events/event_id"
    args = [LIBRARY, files / "run.nxs", path, files / "network", "Astrocyte", "Neuron"]
    first, *rest = run(sys.executable, HERE.parent / "examples/from_python.py", *args).splitlines()
    with h5py.File(files / "run.nxs") as file:
        values = file[path][()]
    assert first.split() == [str(len(values)), values.dtype.str, str(values.sum())]
    lines = command("graph", "neighbors", files / "network", "--from", "Astrocyte:0-9", "--to", "Neuron").splitlines()
    expected = [line.split("\t") for line in lines if not line.startswith("#")]
    assert [line.split() for line in rest] == [[vertex, *ids.split()] for vertex, _, ids in expected]


def test_a_hundred_thousand_reads_take_no_more_memory(compiled, tmp_path):
    # Short reads, for the calls count and not the samples.
    names = "read_id read_group digitisation offset range sampling_rate len_raw_signal raw_signal"
    names += " channel_number median_before"
    types = "char* uint32_t double double double double uint64_t int16_t* char* double"
    lines = ["#slow5_version\t0.2.0", "#num_read_groups\t1", "@experiment_type\tgenomic_dna"]
    lines += ["#" + text.replace(" ", "\t") for text in (types, names)]
    samples = ",".join(map(str, range(20)))
    lines += [f"read_{n}\t0\t8192\t{n % 30}\t1450.5\t4000\t20\t{samples}\t{n % 512}\t{n / 7}" for n in range(5000)]
    (tmp_path / "short.slow5").write_text("\n".join(lines) + "\n")
    command("convert", tmp_path / "short.slow5", tmp_path / "short.blow5")
    command("synth", tmp_path / "c.h5", "--kind", "neuroglial", "--astrocytes", "20", "--neurons", "500")
    command("graph", "import", tmp_path / "c.h5", tmp_path / "network")
    program = compiled(HERE / "many_reads.c")
    reads, more = map(int, run(program, tmp_path / "short.blow5", tmp_path / "network", 100_000).split())
    # A leak of 200 bytes a read would be 18 MB. Allocators keep some memory of threads that ended.
    assert reads >= 100_000 and more < 8000, more


def test_batches_are_columns(files, thalweg, tmp_path):
    expected = table(files / "reads.blow5", tmp_path)
    reads = opened(thalweg, "thw_reads_open", files / "reads.blow5", Options(ctypes.sizeof(Options), 1, 1 << 20))
    count = c_uint64()
    assert thalweg.thw_reads_count(reads, byref(count)) == OK and count.value == len(expected)
    run_ = c_void_p()
    assert thalweg.thw_reads_all(reads, byref(run_)) == OK
    # What thw_next gave is not in the next batch.
    read, batch, place = Read(), Batch(), 0
    assert thalweg.thw_next(run_, byref(read)) == OK
    assert read.id.decode() == expected["read_id"][0].as_py()
    assert read.samples[: read.sample_count] == expected["signal"][0].as_py()
    place = 1
    while thalweg.thw_next_batch(run_, byref(batch)) == OK:
        for row in range(batch.reads):
            ids, signal = batch.id_offsets[row : row + 2], batch.sample_offsets[row : row + 2]
            assert batch.ids[ids[0] : ids[1]].decode() == expected["read_id"][place].as_py()
            assert batch.samples[signal[0] : signal[1]] == expected["signal"][place].as_py()
            for name in ["digitisation", "offset", "range", "sampling_rate", "read_group"]:
                assert getattr(batch, name)[row] == expected[name][place].as_py()
            place += 1
    assert place == len(expected) and batch.file == 0
    # No read was given alone.
    text = c_char_p()
    thalweg.thw_run_free(run_)
    assert thalweg.thw_reads_all(reads, byref(run_)) == OK
    assert thalweg.thw_next_batch(run_, byref(batch)) == OK
    assert thalweg.thw_read_text(run_, b"channel_number", byref(text)) == ARGUMENT
    thalweg.thw_run_free(run_)
    thalweg.thw_reads_free(reads)


def test_attributes(files, thalweg, tmp_path):
    expected = table(files / "reads.pod5", tmp_path)
    reads = opened(thalweg, "thw_reads_open", files / "reads.pod5")
    run_ = c_void_p()
    assert thalweg.thw_reads_all(reads, byref(run_)) == OK
    whole, real, text, read = c_int64(), c_double(), c_char_p(), Read()
    assert thalweg.thw_read_integer(run_, b"start_mux", byref(whole)) == ARGUMENT and b"thw_next" in thalweg.thw_error()
    for row in range(5):
        assert thalweg.thw_next(run_, byref(read)) == OK
        for name in [name for name in expected.column_names if name not in ("signal",)]:
            value = expected[name][row].as_py()
            code = thalweg.thw_read_text(run_, name.encode(), byref(text))
            assert code == (MISSING if value is None else OK), name
            if isinstance(value, str):
                assert text.value.decode() == value
            if isinstance(value, (int, float)):
                assert thalweg.thw_read_real(run_, name.encode(), byref(real)) == OK and real.value == value
                assert float(text.value) == value
            if isinstance(value, int) and value < 2**63:
                assert thalweg.thw_read_integer(run_, name.encode(), byref(whole)) == OK and whole.value == value
    assert thalweg.thw_read_integer(run_, b"read_id", byref(whole)) == ARGUMENT
    assert b"not a number" in thalweg.thw_error()
    assert thalweg.thw_read_integer(run_, b"nothing", byref(whole)) == MISSING
    thalweg.thw_run_free(run_)
    attribute = c_char_p()
    assert thalweg.thw_reads_header(reads, 0, 0, b"nothing", byref(attribute)) == MISSING
    assert thalweg.thw_reads_header(reads, 1, 0, b"nothing", byref(attribute)) == ARGUMENT
    thalweg.thw_reads_free(reads)
    reads = opened(thalweg, "thw_reads_open", files / "reads.slow5")
    header = [line[1:].split("\t") for line in (files / "reads.slow5").read_text().splitlines() if line.startswith("@")]
    assert header
    for name, value in header:
        code = thalweg.thw_reads_header(reads, 0, 0, name.encode(), byref(attribute))
        assert (code, attribute.value) == (OK, value.encode()) if value not in ("", ".") else code == MISSING
    thalweg.thw_reads_free(reads)


def test_arrays(files, thalweg):
    arrays = opened(thalweg, "thw_arrays_open", files / "run.nxs")
    info = Array()
    seen = set()
    with h5py.File(files / "run.nxs") as file:

        def compare(name, item):
            if not isinstance(item, h5py.Dataset):
                return
            path = f"/{name}".encode()
            code = thalweg.thw_arrays_info(arrays, path, byref(info))
            if item.dtype.hasobject:
                assert code == UNSUPPORTED
                return
            assert code == OK, thalweg.thw_error()
            assert (tuple(info.shape[: info.rank]), info.bytes) == (item.shape, item.size * item.dtype.itemsize)
            assert info.type.decode() == item.dtype.str
            values = np.empty(item.shape, item.dtype)
            assert thalweg.thw_arrays_read(arrays, path, None, None, values.ctypes.data, values.nbytes) == OK
            assert values.tobytes() == item[()].tobytes()
            assert thalweg.thw_arrays_read(arrays, path, None, None, values.ctypes.data, values.nbytes + 1) == ARGUMENT
            if item.ndim == 1 and len(item) > 20:
                part = np.empty(7, item.dtype)
                start, count = (c_uint64 * 1)(11), (c_uint64 * 1)(7)
                assert thalweg.thw_arrays_read(arrays, path, start, count, part.ctypes.data, part.nbytes) == OK
                assert part.tobytes() == item[11:18].tobytes()
                start[0] = len(item) - 3
                assert thalweg.thw_arrays_read(arrays, path, start, count, part.ctypes.data, part.nbytes) == ARGUMENT
                assert thalweg.thw_arrays_read(arrays, path, start, None, part.ctypes.data, part.nbytes) == ARGUMENT
            seen.add(item.dtype.str)

        file.visititems(compare)
    assert len(seen) > 2
    assert thalweg.thw_arrays_info(arrays, b"/nothing", byref(info)) == NOT_FOUND
    thalweg.thw_arrays_free(arrays)


def test_wrong_arguments_are_errors(files, thalweg, tmp_path):
    handle, read, lists, info, count = c_void_p(), Read(), Lists(), Array(), c_uint64()
    reads = opened(thalweg, "thw_reads_open", files / "reads.blow5")
    arrays = opened(thalweg, "thw_arrays_open", files / "run.nxs")
    network = opened(thalweg, "thw_network_open", files / "network")
    ids = (c_uint64 * 2)(0, 1)
    nulls = (c_char_p * 2)(b"x", None)
    path = b"/entry/bank1_events/event_id"
    for name, function, *args in [
        ("reads", "thw_reads_open", b"x", None, None),
        ("path", "thw_reads_open", None, None, byref(handle)),
        ("path", "thw_arrays_open", None, None, byref(handle)),
        ("path", "thw_network_open", None, None, byref(handle)),
        ("UTF-8", "thw_reads_open", b"\xff", None, byref(handle)),
        ("options.size", "thw_reads_open", b"x", byref(Options(3, 0, 0)), byref(handle)),
        ("reads", "thw_reads_all", None, byref(handle)),
        ("run", "thw_reads_all", reads, None),
        ("reads", "thw_reads_cancel", None),
        ("count", "thw_reads_count", reads, None),
        ("place 1", "thw_reads_get", reads, nulls, 2, byref(handle)),
        ("ids", "thw_reads_get", reads, None, 2, byref(handle)),
        ("run", "thw_next", None, byref(read)),
        ("batch", "thw_next_batch", None, None),
        ("arrays", "thw_arrays_info", None, path, byref(info)),
        ("info", "thw_arrays_info", arrays, path, None),
        ("memory", "thw_arrays_read", arrays, path, None, None, None, 8),
        ("network", "thw_neighbors", None, b"Astrocyte", None, ids, 2, byref(lists)),
        ("from", "thw_neighbors", network, None, None, ids, 2, byref(lists)),
        ("ids", "thw_neighbors", network, b"Astrocyte", None, None, 2, byref(lists)),
        ("no edges", "thw_neighbors", network, b"Neuron", b"Neuron", ids, 2, byref(lists)),
        ("more than memory", "thw_neighbors", network, b"Astrocyte", None, ids, 2**62, byref(lists)),
        ("not aligned", "thw_neighbors", network, b"Astrocyte", None, ctypes.addressof(ids) + 1, 1, byref(lists)),
        ("lists", "thw_neighbors", network, b"Astrocyte", None, ids, 2, None),
        ("type", "thw_vertex_count", network, None, byref(count)),
    ]:
        assert getattr(thalweg, function)(*args) == ARGUMENT, name
        assert name in thalweg.thw_error().decode() and handle.value is None
    assert thalweg.thw_neighbors(network, b"Astrocyte", None, None, 0, byref(lists)) == OK and lists.count == 0
    thalweg.thw_lists_free(byref(lists))
    assert thalweg.thw_vertex_count(network, b"Astrocyte", byref(count)) == OK and count.value == 50
    (tmp_path / "bad.blow5").write_bytes((files / "reads.blow5").read_bytes()[:5000])
    (tmp_path / "text.h5").write_text("no HDF5")
    bad = opened(thalweg, "thw_reads_open", tmp_path / "bad.blow5")
    assert thalweg.thw_reads_all(bad, byref(handle)) == OK
    while (code := thalweg.thw_next(handle, byref(read))) == OK:
        pass
    assert code == FORMAT and b"bad.blow5" in thalweg.thw_error()
    thalweg.thw_run_free(handle)
    assert thalweg.thw_arrays_open(str(tmp_path / "text.h5").encode(), None, byref(handle)) in (FORMAT, UNSUPPORTED)
    assert thalweg.thw_network_open(str(tmp_path).encode(), None, byref(handle)) == NOT_FOUND
    for free, one in [("reads", bad), ("reads", reads), ("arrays", arrays), ("network", network)]:
        getattr(thalweg, f"thw_{free}_free")(one)
        getattr(thalweg, f"thw_{free}_free")(None)
    thalweg.thw_run_free(None)
    thalweg.thw_lists_free(None)


def test_threads_share_handles_and_have_errors_of_their_own(files, thalweg):
    reads = opened(thalweg, "thw_reads_open", files / "reads.blow5")
    network = opened(thalweg, "thw_network_open", files / "network")
    expected = [(id.encode(), sum) for id, _, sum in digests(files / "reads.blow5")]
    found, messages = [], []

    def work(number):
        run_, read, lists, mine = c_void_p(), Read(), Lists(), []
        assert thalweg.thw_network_open(f"/no/network/{number}".encode(), None, byref(c_void_p())) < 0
        assert thalweg.thw_reads_all(reads, byref(run_)) == OK
        while thalweg.thw_next(run_, byref(read)) == OK:
            mine.append((read.id, int(np.ctypeslib.as_array(read.samples, (read.sample_count,)).sum(dtype="i8"))))
        thalweg.thw_run_free(run_)
        ids = (c_uint64 * 50)(*range(50))
        for _ in range(50):
            assert thalweg.thw_neighbors(network, b"Astrocyte", b"Neuron", ids, 50, byref(lists)) == OK
            thalweg.thw_lists_free(byref(lists))
        found.append(mine)
        messages.append(f"/no/network/{number}" in thalweg.thw_error().decode())

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4 and messages == [True] * 4
    # Others may end a run.
    run_, read = c_void_p(), Read()
    assert thalweg.thw_reads_all(reads, byref(run_)) == OK
    assert thalweg.thw_reads_cancel(reads) == OK
    while (code := thalweg.thw_next(run_, byref(read))) == OK:
        pass
    assert code == CANCELLED
    thalweg.thw_run_free(run_)
    thalweg.thw_reads_free(reads)
    thalweg.thw_network_free(network)
