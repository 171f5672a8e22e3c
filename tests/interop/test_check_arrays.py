"""`thalweg check` of HDF5 files of arrays."""

import json

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
    assert result.returncode == 1 and "an HDF5 file without reads" in result.stderr
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
