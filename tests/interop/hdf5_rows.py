"""What h5py finds in a file, in the words of `thalweg read FILE --digest`."""

import ctypes
import hashlib
import pathlib

import h5py
import numpy as np


def h5pys_library() -> ctypes.CDLL:
    """h5py's own libhdf5, for calls that h5py has no names for."""
    return ctypes.CDLL(next(pathlib.Path(h5py.__path__[0]).parent.glob("h5py.libs/libhdf5-*.so*")))


def little_endian(values: np.ndarray) -> np.ndarray:
    dtype = values.dtype.newbyteorder("<")
    # A copy would lose what stands between the fields of a record.
    return values if dtype == values.dtype else values.astype(dtype)


def read(dataset: h5py.Dataset) -> np.ndarray:
    # A single string would lose the NULs that fill it up.
    return np.asarray(dataset[()], dataset.dtype if dataset.dtype.kind == "S" else None)


def row(path: str, values: np.ndarray) -> str:
    values = little_endian(values)
    shape = "x".join(map(str, values.shape))
    return f"{path}\t{shape}\t{values.dtype.str}\t{hashlib.sha256(values.tobytes()).hexdigest()}"


def datasets(group: h5py.Group, prefix="", seen=None):
    """All datasets with their paths, each once."""
    seen = set() if seen is None else seen
    for name in sorted(group):
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            continue
        item = group[name]
        address = h5py.h5o.get_info(item.id).addr
        if address in seen:
            continue
        seen.add(address)
        if isinstance(item, h5py.Dataset):
            yield f"{prefix}/{name}", item
        elif isinstance(item, h5py.Group):
            yield from datasets(item, f"{prefix}/{name}", seen)


def has_arrays(dataset: h5py.Dataset) -> bool:
    """Whether elements have one size."""
    dtype = dataset.dtype
    return dataset.shape is not None and not dtype.hasobject


def rows(path) -> tuple[list[str], list[str]]:
    """Rows of what h5py reads, and the paths of what it reads as something else."""
    found, others = [], []
    with h5py.File(path) as file:
        for name, dataset in datasets(file):
            if has_arrays(dataset):
                found.append(row(name, read(dataset)))
            else:
                others.append(name)
    return sorted(found), sorted(others)
