"""HDF5 files that are damaged, or were made to do harm: thalweg refuses them, and never goes down with libhdf5."""

import os
import random
import signal
import subprocess
import sys

import h5py
import numpy as np
import pytest

from hdf5_rows import rows
from nanopore import ONE_OF, SHARED

HDF5 = SHARED.parent / "hdf5"
SMALL = sorted(p for p in HDF5.rglob("*") if p.is_file() and p.suffix != ".md" and p.stat().st_size <= 64 << 10) if HDF5.exists() else []

# How many mutants of each file; more with the variable.
MUTANTS = int(os.environ.get("THALWEG_MUTANTS", 1 if ONE_OF > 1 else 4))
# Seconds. No mutant may take longer: it would hang.
HANG = 600


def mutant(data: bytes, chance: random.Random) -> bytes:
    """Flipped bytes, most of them where metadata are; a cut; a piece copied elsewhere; numbers that are very large."""
    out = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(out)) if chance.random() < 0.5 else chance.randrange(min(len(out), 2048))
        match chance.randrange(5):
            case 0 | 1:
                out[at] ^= 1 << chance.randrange(8)
            case 2:
                size = chance.choice([2, 4, 8])
                out[at : at + size] = chance.choice([b"\xff", b"\x00", b"\x7f"]) * len(out[at : at + size])
            case 3:
                start = chance.randrange(len(out))
                piece = out[start : start + chance.randrange(1, 64)][: len(out) - at]
                out[at : at + len(piece)] = piece
            case _ if chance.random() < 0.3:
                del out[max(at, 8) :]
    return bytes(out)


def test_mutants_are_read_or_refused(thalweg_binary, shared, tmp_path):
    """Never a signal, a panic or a hang: what is wrong is said on standard error, with the file's name."""
    chance = random.Random(5)
    runs, refused = 0, 0
    while runs < MUTANTS * len(SMALL):
        path = SMALL[runs % len(SMALL)]
        data = mutant(path.read_bytes(), chance)
        place = tmp_path / f"{path.stem}.h5"
        place.write_bytes(data)
        verb = chance.choice([["read", place, "--digest"], ["read", place], ["info", place, "--json"]])
        done = subprocess.run([thalweg_binary, *verb], capture_output=True, text=True, timeout=HANG, check=False)
        where = f"mutant {runs} of {path}: {verb[0]} {done.returncode} {done.stderr[-500:]}"
        assert done.returncode in (0, 1) and "panicked" not in done.stderr, where
        if done.returncode == 1:
            refused += 1
            assert done.stderr.startswith("thalweg: ") and place.name in done.stderr, where
        place.unlink()
        runs += 1
    print(f"{runs} mutants, {refused} refused")
    assert refused > runs // 20


def test_malformed_files_of_reads(thalweg, shared, tmp_path):
    """Files of arrays with the name of a FAST5 file."""
    crash = next(path for path in SMALL if path.name == "vds_nentries_mult_overflow.h5")
    place = tmp_path / "f.fast5"
    place.write_bytes(crash.read_bytes())
    for verb in ("read", "info", "check"):
        result = thalweg(verb, place, check=False)
        assert result.returncode == 1 and str(place) in result.stderr, (verb, result.returncode, result.stderr)


HOSTILE = SHARED.parent / "hostile"
# Files that make libhdf5 hang, crash or take all memory, and what `convert --repack` says of them. Two can be copied.
HARM = [
    ("attr_heap_hang.h5", "/entry/data, attribute NX_class, byte 2144"),
    ("graph_import_hang.h5", None),
    ("repack_hang1.h5", "/enum_var, attribute DIMENSION_LIST, byte 2048"),
    ("segv_repack_kerchunk.nc", "/lat, byte 22132"),
    ("membomb_ohdr.h5", None),
]
VERBS = ["info FILE", "read FILE --events", "index FILE --kerchunk OUT.json", "convert --repack FILE OUT.h5", "graph import FILE OUT"]
# The verbs differ in how they open the file; each file is tried with some of them, the quick ones with all.
CASES = [
    (name, said, verb)
    for place, (name, said) in enumerate(HARM)
    for number, verb in enumerate(VERBS)
    if name.startswith("segv") or number % len(HARM) in (place, 3)
]


@pytest.mark.skipif(not HOSTILE.exists(), reason="needs the hostile files")
@pytest.mark.parametrize(("name", "said", "verb"), CASES)
def test_files_that_do_harm(thalweg, tmp_path, name, said, verb):
    """libhdf5 opens none of them."""
    words = [{"FILE": str(HOSTILE / name)}.get(word, word.replace("OUT", str(tmp_path / "out"))) for word in verb.split()]
    result = thalweg(*words, check=False)
    assert result.returncode in (0, 1) and "panicked" not in result.stderr, result.stderr
    if verb.startswith("convert"):
        assert result.returncode == (said is not None) and (said or "") in result.stderr, result.stderr
    assert result.returncode == 0 or name in result.stderr, result.stderr
    assert result.returncode == 0 or list(tmp_path.iterdir()) == []


WRITER = """
import h5py, numpy as np, sys, time
file = h5py.File(sys.argv[1], "w", libver="latest")
grown = file.create_dataset("grown", (0,), "<i4", maxshape=(None,), chunks=(100,), compression="gzip")
fixed = file.create_dataset("fixed", data=np.arange(1000.0))
if sys.argv[2] == "swmr":
    file.swmr_mode = True
for step in range(20):
    grown.resize((step + 1) * 150, 0)
    grown[step * 150 :] = np.arange(150) + step
    if sys.argv[2] != "unflushed":
        grown.flush()
print("written", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("how", ["swmr", "flushed", "unflushed"])
@pytest.mark.parametrize("killed", [False, True])
def test_files_that_are_being_written(thalweg, tmp_path, how, killed):
    """While the writer is at it, and after it was killed: up to the last state that was flushed, or the reason."""
    path = tmp_path / "f.h5"
    environment = os.environ | {"HDF5_USE_FILE_LOCKING": "FALSE"}
    writer = subprocess.Popen([sys.executable, "-c", WRITER, path, how], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert writer.stdout.readline() == "written\n"
        if killed:
            writer.send_signal(signal.SIGKILL)
            writer.wait()
        result = thalweg("read", path, "--digest", check=False)
        if how == "swmr":
            with h5py.File(path, swmr=True, libver="latest", locking=False) as file:
                assert file["grown"].shape == (3000,)
            assert result.returncode == 0, result.stderr
            assert [row.split("\t")[:2] for row in result.stdout.splitlines()] == [["/fixed", "1000"], ["/grown", "3000"]]
            import hdf5_rows

            with h5py.File(path, swmr=True, libver="latest", locking=False) as file:
                expected = [hdf5_rows.row(f"/{name}", file[name][()]) for name in ("fixed", "grown")]
            assert result.stdout.splitlines() == expected
        else:
            # What was not flushed as a whole need not hang together: it is read, or refused with a reason.
            assert result.returncode in (0, 1)
            assert result.returncode == 0 or (str(path) in result.stderr and "being written" in result.stderr), result.stderr
    finally:
        writer.kill()
        writer.wait()


def test_files_whose_writer_was_killed_after_a_flush(thalweg, tmp_path):
    """All was flushed, and the flags say that it is open for writing: it is read as it is."""
    path = tmp_path / "f.h5"
    child = "import h5py, numpy as np, os, sys; f = h5py.File(sys.argv[1], 'w', libver='latest'); f['a'] = np.arange(1000); f.flush(); os._exit(1)"
    subprocess.run([sys.executable, "-c", child, path], check=False)
    result = thalweg("read", path, "--digest", check=False)
    assert result.returncode == 0 and result.stdout.startswith("/a\t1000\t<i8\t"), result.stderr
    expected = tmp_path / "g.h5"
    with h5py.File(expected, "w") as file:
        file["a"] = np.arange(1000)
    assert result.stdout.splitlines() == rows(expected)[0]
