"""Every value of every read of a multi-read FAST5 file as h5py gives it, by read id."""

import hashlib

import h5py
import numpy
import vbz_h5py_plugin  # noqa: F401  registers the filter


def plain(value):
    """An attribute as a value that can be compared: the bits of floats, NaN included; text whatever its type."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (float, numpy.floating)):
        return "nan" if value != value else float(value).hex()
    if isinstance(value, numpy.generic):
        return value.item()
    return value


def attributes(node) -> dict:
    return {name: plain(value) for name, value in node.attrs.items()}


def types(node) -> dict:
    """The type of each attribute: numbers by their width, all text alike, enumerations with their names."""
    found = {}
    for name in node.attrs:
        dtype = node.attrs.get_id(name).dtype
        names = h5py.check_enum_dtype(dtype)
        found[name] = sorted(names.items()) if names else "text" if dtype.kind in "OS" else dtype.str
    return found


PARTS = ["Raw", "channel_id", "context_tags", "tracking_id"]


def reads(path) -> dict:
    """For each read: its samples' number, sum and digest, its attributes part by part, and their types."""
    found = {}
    with h5py.File(path) as file:
        for name, read in file.items():
            samples = numpy.asarray(read["Raw/Signal"][()], "<i2")
            row = {"n": len(samples), "sum": int(samples.sum(dtype="i8")), "sha256": hashlib.sha256(samples).hexdigest()}
            row["attributes"] = {"": attributes(read)} | {part: attributes(read[part]) for part in PARTS if part in read}
            row["types"] = {"": types(read)} | {part: types(read[part]) for part in PARTS if part in read}
            found[name.removeprefix("read_")] = row
    return found
