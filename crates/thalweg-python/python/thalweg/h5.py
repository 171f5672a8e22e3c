"""HDF5 files as h5py reads them, with the speed of thalweg.

>>> from thalweg import h5
>>> with h5.File("run.nxs") as f:
...     events = f["entry/bank1_events/event_id"][:1000]
...     f["entry"].attrs["NX_class"]

The names and results are those of h5py, with these differences: numbers are little-endian, whatever their order in the
file; nothing can be written; links to other files are not followed; of committed types only names and attributes are
read; and there is no low-level interface (`id`, `ref`, the modules such as `h5py.h5d`). Datasets of references, and of
records with strings or lists of any length, raise `thalweg.UnsupportedError` where they are read.

There are also no drivers (`File.driver`), no dimension scales (`Dataset.dims`, `is_scale`), no classes of links, and no
`Dataset.fields`, `external`, `is_virtual` and `virtual_sources`. `Dataset.filters` has what `filter_ids` has in h5py.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, Union

from thalweg import _thalweg
from thalweg._fileobj import path_of, source_of
from thalweg._open import options_of
from thalweg._types import Empty, Reference
from thalweg.arrays import Array, Arrays, Attributes, Options, Type, _Named
from thalweg.arrays import Group as _Group
from thalweg.errors import UnsupportedError

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["AttributeManager", "Dataset", "Datatype", "Empty", "File", "Group", "Reference", "is_hdf5"]

_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def _refused(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise UnsupportedError("thalweg.h5 reads, and does not write: write with h5py")


class AttributeManager(Attributes):
    """The attributes of an object, with the values that h5py gives."""

    _is_plain = False

    __setitem__ = __delitem__ = create = modify = _refused


class _Object(_Named):
    """What groups, datasets and committed types share."""

    _file: _Arrays
    _attributes = AttributeManager

    @property
    def file(self) -> File:
        """The file that it is in."""
        return File._of(self._file)

    @property
    def parent(self) -> Group:
        """The group that its path is in."""
        found: Group = self._file[os.path.dirname(self.name) or "/"]
        return found

    def __bool__(self) -> bool:
        return self._file._open is not None


class Dataset(_Object, Array):
    """A dataset: `dataset[10:20]`, `dataset[()]`, `dataset.asstr()[...]`, `dataset.read_direct(array)`."""

    __setitem__ = resize = write_direct = make_scale = flush = _refused

    @property
    def shape(self) -> Any:
        """The length of each dimension; None if it has no value."""
        return self._header.shape

    @property
    def maxshape(self) -> Any:
        """The length to which each dimension may grow; None if it has no limit."""
        return None if self._header.most is None else super().maxshape

    @property
    def size(self) -> Any:
        """The number of elements; None if it has no value."""
        return None if self._header.shape is None else super().size

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory; 0 if it has no value."""
        return 0 if self._header.shape is None else super().nbytes

    def len(self) -> int:
        """The length of its first dimension."""
        return len(self)

    def iter_chunks(self, sel: Any = None) -> Iterator[tuple[slice, ...]]:
        """The part of each chunk that is in a selection, as slices: of a slice for each dimension, or of everything.

        Raises:
            TypeError: It is not stored in chunks.
            ValueError: The selection is not within its shape.
        """
        if self.chunks is None:
            raise TypeError(f"{self.name}: found a dataset without chunks, expected one with chunks")
        wanted = (slice(None),) * self.ndim if sel is None else sel if isinstance(sel, (tuple, list)) else (sel,)
        spans = [
            (one, one + 1) if isinstance(one, int) else (one.start or 0, length if one.stop is None else one.stop)
            for one, length in zip(wanted, self.shape)
        ]
        if len(wanted) != self.ndim or any(not 0 <= a < b <= n for (a, b), n in zip(spans, self.shape)):
            raise ValueError(f"{self.name}: found the selection {sel}, expected a part of the shape {self.shape}")
        return itertools.product(
            *(
                [slice(max(at, first), min(at + step, last), 1) for at in range(first - first % step, last, step)]
                for (first, last), step in zip(spans, self.chunks)
            )
        )

    def __repr__(self) -> str:
        if not self:
            return "<thalweg.h5 dataset, closed>"
        return f'<thalweg.h5 dataset "{os.path.basename(self.name)}": shape {self.shape}, type {self.dtype.str!r}>'


class Datatype(_Object, Type):
    """A committed type. Only its name and attributes are read."""


class Group(_Object, _Group):
    """A group: `group["name"]`, `group.keys()`, `group.visititems(func)`."""

    __setitem__ = __delitem__ = _refused
    create_group = create_dataset = create_dataset_like = create_virtual_dataset = _refused
    require_group = require_dataset = copy = move = build_virtual_dataset = _refused

    def __getitem__(self, path: Any) -> Any:
        """The object at a path below it, at a path of the file if that begins with `/`, or at a reference."""
        if isinstance(path, Reference):
            name = path.name if path else None
            if name is None:
                raise ValueError(f"{self._file.filename}: {path!r} leads to no object")
            return self._file[name]
        return super().__getitem__(path.decode() if isinstance(path, bytes) else path)

    def get(self, path: Any, default: Any = None, getclass: bool = False, getlink: bool = False) -> Any:
        """The object at a path, or with `getclass` its class; `default` if there is none."""
        if getlink:
            raise UnsupportedError("get(getlink=True): thalweg.h5 has no classes of links; h5py has them")
        found = super().get(path)
        if found is None:
            return default
        return type(found) if getclass else found

    def __repr__(self) -> str:
        return f'<thalweg.h5 group "{self.name}" ({len(self)} members)>' if self else "<thalweg.h5 group, closed>"

    __hash__ = _Named.__hash__


class _Arrays(Arrays):
    _array = Dataset
    _group = Group
    _type = Datatype


def is_hdf5(fname: Union[str, bytes, os.PathLike[str]]) -> bool:
    """Whether a file is there and has the signature of HDF5."""
    place = 0
    try:
        with open(fname, "rb") as file:
            # It may lie behind bytes of the user, at 512 or twice as far, and so on ("Disk Format: Level 0A").
            while start := file.read(len(_SIGNATURE)):
                if start == _SIGNATURE:
                    return True
                place = max(512, 2 * place)
                file.seek(place)
    except OSError:
        pass
    return False


class File(Group):
    """An open file, and its root group. It is opened with `threads`, `memory` and `timeout`, as by `thalweg.open`.

    `name` is a path, a URL, or an open file. The arguments of h5py from `libver` to `locking` are taken and have no
    effect. A live file is read as it is when it is opened.

    Raises:
        thalweg.NoFileError: There is no such file.
        thalweg.FormatError: It is not HDF5.
        thalweg.UnsupportedError: A mode other than "r", or a driver.
    """

    def __init__(
        self,
        name: Union[str, bytes, os.PathLike[str], BinaryIO],
        mode: str = "r",
        driver: None = None,
        libver: Any = None,
        *,
        swmr: bool = False,
        rdcc_nslots: int | None = None,
        rdcc_nbytes: int | None = None,
        rdcc_w0: float | None = None,
        locking: bool | str | None = None,
        threads: int | None = None,
        memory: float | str | None = None,
        timeout: float | None = None,
    ) -> None:
        if mode != "r":
            _refused(self)
        if driver is not None:
            raise UnsupportedError(f"driver={driver!r}: thalweg.h5 has no drivers: leave it out; a path may be a URL")
        options = options_of(threads=threads, memory=memory, timeout=timeout)
        is_path = isinstance(name, (str, bytes, os.PathLike))
        path = os.fsdecode(name) if is_path else path_of(name)  # type: ignore[arg-type]
        if path is not None:
            engine = _thalweg.open_arrays(path, options)
        else:
            opened = _thalweg.open_file(*source_of(name), options)
            if not isinstance(opened, _thalweg.ArrayFile):
                raise UnsupportedError(f"{name!r}: found a file of reads, expected arrays; thalweg.open reads it")
            engine = opened
        self._begin(_Arrays(engine, path, options))

    def _begin(self, file: _Arrays) -> None:
        root = file._engine.object("/")
        assert root is not None
        super().__init__(file, root)

    @classmethod
    def _of(cls, file: _Arrays) -> File:
        made = cls.__new__(cls)
        made._begin(file)
        return made

    @property
    def filename(self) -> str:
        """The path or URL of the file."""
        return self._file.filename

    @property
    def mode(self) -> str:
        """`r`."""
        return "r"

    def close(self) -> None:
        """Closes the file. Its objects can no longer be read."""
        self._file.close()

    def flush(self) -> None:
        """Does nothing: nothing is written."""

    def __enter__(self) -> File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        return File._of, (self._file,)

    def __repr__(self) -> str:
        return f'<thalweg.h5 file "{self.filename}">' if self else "<thalweg.h5 file, closed>"

    __hash__ = _Named.__hash__
