"""`thalweg check` of HDF5 files of arrays."""

import json
import resource
import subprocess

import h5py
import numpy as np


def made(path):
    with h5py.File(path, "w") as file:
        for name in ("a", "b", "c"):
            data = file.create_dataset(f"group/{name}", data=np.arange(1000), chunks=(100,), compression="gzip", fletcher32=True)
            data.attrs["unit"] = "K"
        file["words"] = ["any", "length", "ü"]
        file.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))[1] = [1, 2, 3]
        file["reference"] = np.array([file["words"].ref], h5py.ref_dtype)
        layout = h5py.VirtualLayout((1000,), "i8")
        layout[:] = h5py.VirtualSource(".", "group/a", (1000,))
        file.create_virtual_dataset("virtual", layout)
        return [file[f"group/{name}"].id.get_chunk_info(3).byte_offset for name in ("a", "c")]


def test_sound_files(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    made(path)
    assert thalweg("check", path).stdout.splitlines() == [
        f"{path}: whole; 6 datasets, 32.0 kB decode",
        "  not checked: /reference: references to objects",
    ]
    row = json.loads(thalweg("check", path, "--json").stdout)
    # The root, the group, and each dataset.
    assert (row["whole"], row["objects"], row["datasets"], row["bytes_decoded"]) == (True, 9, 6, 4 * 8000 + 11 + 12)


def test_every_defect_is_named(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    places = made(path)
    data = bytearray(path.read_bytes())
    for place in places:
        data[place + 9] ^= 0x40
    path.write_bytes(data)
    result = thalweg("check", path, check=False)
    assert result.returncode == 1 and "1 of 1 file damaged" in result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{path}: damaged; 3 datasets, ")
    # The virtual dataset shows one of the damaged ones.
    assert sum("chunk 3 of /group/a" in line for line in lines) == 2 and sum("chunk 3 of /group/c" in line for line in lines) == 1
    row = json.loads(thalweg("check", path, "--json", check=False).stdout)
    assert not row["whole"] and len(row["defects"]) == 3 and row["datasets"] == 3


def test_what_is_for_reads(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    made(path)
    result = thalweg("check", path, "--salvage", tmp_path / "out.fast5", check=False)
    assert result.returncode == 2 and "--salvage is for reads" in result.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["f.h5"]


def test_fill_values_are_not_counted_through(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        for name, dtype, value in (("numbers", "<i4", 7), ("strings", h5py.string_dtype(), "a")):
            file.create_dataset(name, (1 << 40,), dtype, chunks=(1000,))[5] = value
    row = json.loads(thalweg("check", path, "--json").stdout)
    assert row["whole"] and sorted(row["not_checked"]) == [
        f"/{name}: far more values than the file can hold" for name in ("numbers", "strings")
    ]


def test_missing_sources_are_named(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        file["there"] = np.arange(5)
        layout = h5py.VirtualLayout((20,), "i8")
        layout[:5] = h5py.VirtualSource(".", "there", (5,))
        layout[5:10] = h5py.VirtualSource(".", "gone", (5,))
        layout[10:15] = h5py.VirtualSource("gone.h5", "a", (5,))
        file.create_virtual_dataset("virtual", layout, fillvalue=7)
        layout = h5py.VirtualLayout((5,), h5py.string_dtype())
        layout[:] = h5py.VirtualSource("gone.h5", "words", (5,))
        file.create_virtual_dataset("words", layout)
    assert thalweg("check", path).stdout.splitlines() == [
        f"{path}: whole; 3 datasets, 200 B decode",
        "  not checked: /virtual: it shows gone of ., which does not exist",
        "  not checked: /virtual: it shows a of gone.h5, which does not exist",
        "  not checked: /words: it shows words of gone.h5, which does not exist",
    ]
    result = thalweg("read", path, "/virtual", "--digest")
    assert "/virtual: 2 datasets that it shows not found (gone of ., ...): fill values take the place" in result.stderr
    with h5py.File(path) as file:
        assert list(file["virtual"][:12]) == [0, 1, 2, 3, 4] + [7] * 7


def test_claims_of_other_files_are_said_at_once(thalweg, tmp_path):
    path = tmp_path / "f.h5"
    (tmp_path / "few.bin").write_bytes(b"abc")
    with h5py.File(path, "w") as file:
        file.create_dataset("external", (1 << 40,), "u1", external=[("few.bin", 0, h5py.h5f.UNLIMITED)])
        layout = h5py.VirtualLayout((1 << 40,), "u1")
        file["few"] = np.arange(3, dtype="u1")
        layout[:3] = h5py.VirtualSource(".", "few", (3,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("external of its size", (3,), "u1", external=[("few.bin", 0, 3)])
    why = "far more values than the file can hold"
    assert thalweg("check", path).stdout.splitlines() == [
        f"{path}: whole; 2 datasets, 6 B decode",
        f"  not checked: /external: {why}",
        f"  not checked: /virtual: {why}",
    ]
    for name in ("external", "virtual"):
        selected = thalweg("read", path, f"/{name}", "--select", "0:3", "--digest")
        assert f"/{name}: {why}" in selected.stderr and selected.stdout.count("\n") == 1
    done = thalweg("doctor", path, "/external", "/virtual", check=False)
    assert done.returncode == 1 and f"/external: {why}" in done.stderr
    assert "/virtual: not diagnosed: a virtual dataset" in done.stderr


def test_a_repack_of_values_that_may_not_be_read(thalweg, tmp_path):
    """Why they are not read names the file, which is another one after the repack."""
    inner, outside = tmp_path / "inner", tmp_path / "outside.bin"
    inner.mkdir()
    outside.write_bytes(bytes(40))
    with h5py.File(inner / "f.h5", "w") as file:
        file["a"] = np.arange(5)
        file.create_dataset("outside", (10,), "i4", external=[(str(outside), 0, 40)])
    thalweg("convert", "--repack", inner / "f.h5", inner / "out.h5", "--verify")
    with h5py.File(inner / "out.h5") as file:
        assert list(file["a"]) == list(range(5)) and file["outside"].external[0][0] == str(outside)


def test_few_open_files_suffice(thalweg_binary, tmp_path):
    """Sources of virtual datasets and arrays of a folder are not all open at the same time."""
    count = 200
    layout = h5py.VirtualLayout((5 * count,), "i8")
    with h5py.File(tmp_path / "many.h5", "w") as many:
        for i in range(count):
            with h5py.File(tmp_path / f"{i}.h5", "w") as file:
                file["x"] = np.arange(5 * i, 5 * i + 5)
            layout[5 * i : 5 * i + 5] = h5py.VirtualSource(f"{i}.h5", "x", (5,))
            many[f"d{i}"] = np.arange(i)
        many.create_virtual_dataset("virtual", layout)

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    for args in (["read", "many.h5", "/virtual", "--out", "v.npy"], ["check", "many.h5"], ["read", "many.h5", "--out", "all.npy"]):
        subprocess.run([thalweg_binary, *args], cwd=tmp_path, check=True, preexec_fn=few)
    assert (np.load(tmp_path / "v.npy/virtual.npy") == np.arange(5 * count)).all()
    assert all((np.load(tmp_path / f"all.npy/d{i}.npy") == np.arange(i)).all() for i in range(count))
