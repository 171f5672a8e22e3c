"""Names in files do nothing to a terminal, whichever verb prints them, and forge no rows of tables."""

import json
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from conftest import required
from nanopore import SHARED

HOSTILE = SHARED.parent / "hostile"
READS = ["id_escape.blow5", "id_newline.blow5", "attr_escape.blow5"]
# Seconds; only a hang takes longer.
HANG = 600
NAMES = ["\x1b[2J\x1b]0;title\x07", "row\nforged\t(3,)\t<i4\tabc", "\u202eturned\u2066\u0085\x7f", "<script>alert(1)</script>"]


def hidden(text: str) -> list[str]:
    """The characters that must not reach a terminal, but for line breaks and tabs."""
    turning = [*range(0x2028, 0x202F), *range(0x2066, 0x206A), 0x61C, 0x200E, 0x200F]
    return [c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 or ord(c) in turning]


def called(binary, *arguments) -> subprocess.CompletedProcess:
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, timeout=HANG, check=False, stdin=subprocess.DEVNULL)
    for stream in (done.stdout, done.stderr):
        text = stream.decode()
        assert not hidden(text), (arguments, text[:2000])
    assert done.returncode in (0, 1, 2) and b"panicked" not in done.stderr, (arguments, done)
    return done


@pytest.mark.parametrize("name", READS)
def test_names_of_reads(thalweg_binary, tmp_path, name):
    source = required(HOSTILE / name, "the hostile files")
    file = tmp_path / name
    shutil.copy(source, file)
    for verb in [
        ["read", file],
        ["read", file, "--digest"],
        ["read", file, "--json"],
        ["read", file, "--explain"],
        ["read", file, "--out", tmp_path / "out.arrow"],
        ["info", file],
        ["info", file, "--json"],
        ["info", file, "--run"],
        ["info", file, "--run", "--json"],
        ["check", file],
        ["check", file, "--json"],
        ["doctor", file],
        ["doctor", file, "--json"],
        ["scan", file],
        ["scan", file, "--tsv"],
        ["convert", file, tmp_path / "out.pod5"],
        ["convert", file, tmp_path / "out.fast5"],
        ["convert", file, tmp_path / "out.slow5", "--lossy"],
        ["merge", file, file, "--out", tmp_path / "merged.blow5"],
        ["split", file, "--by", "run_id", "--out", tmp_path / "split"],
        ["filter", file, "--where", "run_id is missing", "--out", tmp_path / "some.blow5"],
        ["index", file],
        ["evict", file],
        ["plot", file, "--out", tmp_path / "run.html"],
    ]:
        called(thalweg_binary, *verb)
    rows = called(thalweg_binary, "read", file, "--digest").stdout.decode()
    count = json.loads(called(thalweg_binary, "read", file, "--json").stdout)["reads"]
    assert len(rows.splitlines()) == count and all(row.count("\t") == 3 for row in rows.splitlines())
    ids = tmp_path / "ids"
    ids.write_text("".join(row.split("\t")[0] + "\n" for row in rows.splitlines()))
    assert called(thalweg_binary, "read", file, "--ids", ids, "--digest").stdout.decode() == rows


def made(path):
    with h5py.File(path, "w") as file:
        for number, name in enumerate(NAMES):
            file[f"group{number}/{name}"] = np.arange(3, dtype="i4")
            file[f"group{number}"].attrs[name] = name
            file[f"texts{number}"] = [name, name]
        file["link"] = h5py.SoftLink("/" + NAMES[0])
        file["kind"] = np.zeros(2, h5py.enum_dtype({name: i for i, name in enumerate(NAMES)}, "i1"))
        bank = file.create_group("entry")
        bank.attrs["NX_class"] = "NXentry"
        events = bank.create_group("bank" + NAMES[0])
        events.attrs["NX_class"] = "NXevent_data"
        events["event_id"] = np.arange(5, dtype="u4")
        events["event_time_offset"] = np.arange(5, dtype="f4")
        events["event_index"] = np.zeros(1, "u8")
        events["event_time_zero"] = np.zeros(1)
        events["event_time_zero"].attrs["offset"] = NAMES[0]
    return path


@pytest.mark.parametrize("kind", ["made", "given"])
def test_names_in_hdf5(thalweg_binary, tmp_path, kind):
    file = tmp_path / "names.h5"
    if kind == "made":
        made(file)
    else:
        shutil.copy(required(HOSTILE / "name_escape.h5", "the hostile files"), file)
    for verb in [
        ["read", file],
        ["read", file, "--digest"],
        ["read", file, "--json"],
        ["read", file, "--explain"],
        ["read", file, "--events"],
        ["read", file, "/absent"],
        ["read", file, "--out", tmp_path / "table.csv"],
        ["read", file, "--out", tmp_path / "arrays.npy"],
        ["info", file],
        ["info", file, "--json"],
        ["doctor", file],
        ["doctor", file, "--json"],
        ["index", file],
        ["index", file, "--kerchunk", tmp_path / "references.json"],
        ["convert", "--repack", file, tmp_path / "repacked.h5"],
        ["convert", "--repack", file, tmp_path / "repacked2.h5", "--json"],
        ["convert", file, tmp_path / "out.blow5"],
        ["check", file],
        ["plot", file, "--out", tmp_path / "events.html"],
        ["graph", "import", file, tmp_path / "network"],
    ]:
        called(thalweg_binary, *verb)
    rows = called(thalweg_binary, "read", file, "--digest").stdout.decode().splitlines()
    assert all(row.startswith("/") and row.count("\t") == 3 for row in rows), rows


def test_names_of_networks(thalweg_binary, tmp_path):
    for number, name in enumerate(NAMES):
        edges = tmp_path / f"edges{number}.csv"
        edges.write_text(f'source,target,"{name}"\n1,2,0.5\n2,3,0.25\n', encoding="utf-8")
        store = tmp_path / f"store{number}"
        names = ["--from-type", name, "--to-type", name]
        assert called(thalweg_binary, "graph", "import", edges, store, *names).returncode == 0
        for verb in [
            ["info", store],
            ["info", store, "--json"],
            ["check", store],
            ["neighbors", store, "--from", f"{name}:1"],
            ["degree", store, "--from", name],
            ["degree", store, "--from", "\x1b[2J"],
            ["export", store, tmp_path / f"out{number}.csv"],
            ["export", store, tmp_path / f"out{number}.h5"],
            ["compact", store],
            ["check", store, "--repair", tmp_path / f"repaired{number}"],
        ]:
            called(thalweg_binary, "graph", *verb)
