"""Arrays of HDF5 files: NeXus, netCDF-4, SONATA and others."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg
from thalweg._paths import absolute
from thalweg._selection import Selection
from thalweg._types import Decoder, Empty, Kind, dtype_of, objects, parsed
from thalweg.errors import NotFoundError, UnsupportedError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from thalweg.events import Events

_UNLIMITED = 2**64 - 1
# The filters that h5py has names for, by their numbers.
_COMPRESSIONS = {1: "gzip", 32000: "lzf", 4: "szip"}
_SHUFFLE, _FLETCHER32, _SCALE_OFFSET = 2, 3, 6
_OWN_FILTERS = {_SHUFFLE, _FLETCHER32, _SCALE_OFFSET, *_COMPRESSIONS}
# h5py shows the second bit of szip's options: nearest neighbours or entropy coding.
_SZIP_NEAREST = 32


class Filter(NamedTuple):
    """A filter of the chunks of an array."""

    number: int
    """Its number, as the HDF Group registers it."""
    name: str
    """Its name, if the file has one."""
    values: tuple[int, ...]
    """Its client data."""


class Plan(NamedTuple):
    """What a read would cost, found without reading values. Sizes are bytes, and times seconds."""

    arrays: int
    """Arrays that are read."""
    requests: int
    """Requests of the read."""
    fetched_bytes: int
    """Bytes that they transfer."""
    wanted_bytes: int
    """Of these, stored bytes of wanted elements."""
    jumps: int
    """Requests that do not begin where the one before ended."""
    requests_before: int
    """Requests that open the file and find the arrays, if nothing is in memory."""
    bytes_before: int
    """Bytes that these transfer."""
    rounds: int
    """All requests form so many rounds, one after the other."""
    depth: int
    """Requests in flight."""
    block_bytes: int
    """The longest request."""
    threads: int
    """Threads that decode."""
    processor_s: float
    """Time that each thread takes to decode."""
    predicted_s: float
    """Time that all takes, of a store as it was measured or as stores of its kind are."""


class Attributes(Mapping[str, Any]):
    """The attributes of an object.

    Numbers are numpy's, arrays are numpy arrays, text is `str`, an enumeration is the name of its code, and a reference
    is the path of its object. None stands for no value.
    """

    _is_plain = True

    def __init__(self, file: Arrays, of: _thalweg.Object) -> None:
        self._file = file
        self._of = of
        self._read: dict[str, tuple[str, list[int] | None, Any]] | None = None

    @property
    def _all(self) -> dict[str, tuple[str, list[int] | None, Any]]:
        if self._read is None:
            found = self._file._engine.attributes(self._of)
            self._read = {name: (kind, shape, elements) for name, kind, shape, elements in found}
        return self._read

    def _kind(self, name: str) -> Kind:
        """The type of an attribute."""
        return parsed(self._all[name][0])

    def __getitem__(self, name: str) -> Any:
        file = self._file.filename
        try:
            kind, shape, elements = self._all[name]
        except KeyError:
            raise NotFoundError(f"{file}: {self._of.path}: no attribute {name!r}", file) from None
        if isinstance(elements, str):
            raise UnsupportedError(f"{file}: {self._of.path}: the attribute {name!r}: {elements} are not read", file)
        return Decoder(self._file._name_of, self._is_plain).attribute(parsed(kind), shape, elements)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __repr__(self) -> str:
        return f"<attributes of {self._of.path}: {', '.join(self._all)}>"


class _Named:
    """An object of a file."""

    _attributes: type[Attributes] = Attributes

    def __init__(self, file: Arrays, of: _thalweg.Object) -> None:
        self._file = file
        self._object = of
        self._attrs = self._attributes(file, of)

    @property
    def path(self) -> str:
        """Its path in the file."""
        return self._object.path

    @property
    def name(self) -> str:
        """Its path in the file, as h5py has it."""
        return self._object.path

    @property
    def attrs(self) -> Attributes:
        """Its attributes."""
        return self._attrs

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Named):
            return NotImplemented
        return self._file.filename == other._file.filename and self._object.address == other._object.address

    def __hash__(self) -> int:
        return hash((self._file.filename, self._object.address))

    def __reduce__(self) -> Any:
        return _found, (self._file, self.path)


def _found(file: Arrays, path: str) -> Any:
    return file[path]


class Array(_Named):
    """A dataset. Nothing of it is read before it is indexed: `array[10:20, ::2]`, `array[...]`.

    It is indexed as a dataset of h5py: by numbers, slices with a step above 0, `...`, one list or array of indices, a
    mask of one dimension or of the whole array, and names of fields. Indices may also be in any order, and repeat.
    Numbers are little-endian, whatever their order in the file.

    Strings of any length come as `bytes`, and as `str` by `array.asstr()[...]`. Lists of any length come as arrays.
    """

    _cached: _Header | None = None

    @property
    def _header(self) -> _Header:
        if self._cached is None:
            kind, shape, most, chunks, filters = self._file._engine.header(self._object)
            made = [Filter(number, name, tuple(values)) for number, name, values in filters]
            self._cached = _Header(parsed(kind), _tuple(shape), _tuple(most), _tuple(chunks), tuple(made))
        return self._cached

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        shape = self._header.shape
        if shape is None:
            raise self._not_read()
        return shape

    @property
    def maxshape(self) -> tuple[int | None, ...]:
        """The length to which each dimension may grow; None if it has no limit."""
        return tuple(None if most == _UNLIMITED else most for most in self._header.most or ())

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of an element: that of h5py, but little-endian."""
        kind = self._header.kind
        read = self._object.dtype
        if read is None or kind["class"] == "array":
            return dtype_of(kind)
        return dtype_of(kind, np.dtype(read).itemsize)

    @property
    def _is_variable(self) -> bool:
        return self._header.kind["class"] in ("long_text", "list")

    def _not_read(self) -> UnsupportedError:
        file = self._file.filename
        return UnsupportedError(f"{file}: {self.path}: {self._object.not_read} is not read", file)

    @property
    def chunks(self) -> tuple[int, ...] | None:
        """The shape of a chunk; None if the array is not stored in chunks."""
        return self._header.chunks

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The filters of its chunks, in the order in which a writer applies them."""
        return self._header.filters

    @property
    def compression(self) -> str | None:
        """The compression as h5py has it: gzip, lzf, szip, or unknown for that of a plugin, which `filters` names."""
        numbers = [each.number for each in self.filters]
        names = [name for number, name in _COMPRESSIONS.items() if number in numbers]
        if not names and any(number not in _OWN_FILTERS for number in numbers):
            return "unknown"
        return names[0] if names else None

    @property
    def compression_opts(self) -> Any:
        """The options of the compression, as h5py has them: the level of gzip."""
        for number, _, values in self.filters:
            if number == 1:
                return values[0] if values else None
            if number == 4:
                return "nn" if values[0] & _SZIP_NEAREST else "ec", values[1]
        return None

    def _has_filter(self, wanted: int) -> bool:
        return any(each.number == wanted for each in self.filters)

    @property
    def shuffle(self) -> bool:
        """Whether the bytes of elements are sorted by significance."""
        return self._has_filter(_SHUFFLE)

    @property
    def fletcher32(self) -> bool:
        """Whether chunks have checksums."""
        return self._has_filter(_FLETCHER32)

    @property
    def scaleoffset(self) -> int | None:
        """The option of the filter of that name."""
        return next((each.values[1] for each in self.filters if each.number == _SCALE_OFFSET), None)

    @property
    def fillvalue(self) -> Any:
        """The value of elements that are not stored."""
        fill = self._object.fill
        if fill is None and (self._is_variable or self._header.shape is not None):
            return b"" if self._is_variable else None
        dtype = self.dtype
        if not fill:
            return np.zeros((), dtype)[()]
        read = np.frombuffer(fill, self._object.dtype)
        if dtype.subdtype is not None:
            return np.resize(read.view(dtype.base), dtype.shape)
        return read.view(dtype)[0]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._header.shape or ())

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements in memory."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{self.path} is a single value, and has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        names = [one for one in keys if isinstance(one, str)]
        rest = tuple(one for one in keys if not isinstance(one, str))
        if self._header.shape is None:
            if keys in ((), (Ellipsis,)):
                return Empty(self.dtype)
            raise self._not_read()
        for name in names:
            if name not in (self.dtype.names or ()):
                raise ValueError(f"{self.path}: no field {name!r} in {self.dtype}")
        selection = Selection(self.path, rest if names else key, self.shape)
        values = self._values(selection)
        if names:
            values = values[names[0]] if len(names) == 1 else values[names]
        is_array = values.shape or (not self.shape and Ellipsis in rest)
        return values if is_array else values[()]

    def _values(self, selection: Selection) -> NDArray[Any]:
        if self._is_variable:
            return self._variable(selection)
        if self._object.dtype is None:
            raise self._not_read()
        dtype = self.dtype
        inner = dtype.shape
        if selection.size == 0:
            return np.empty(selection.shape + inner, dtype.base)
        if selection.is_whole:
            return self._shown(self._engine_read([None])[0], selection.shape + inner)
        if selection.is_simple:
            return self._shown(self._engine_read([selection.slabs])[0], selection.shape + inner)
        points = selection.points() if not inner else None
        if points is not None:
            return self._shown(self._engine_read([points.tobytes()])[0], selection.shape)
        return self._gathered(selection)

    def _gathered(self, selection: Selection) -> NDArray[Any]:
        """The elements of a list of indices or a mask, from the slabs that span them."""
        dtype = self.dtype
        axis = selection.axis or 0
        values: NDArray[Any] = np.empty(selection.lengths + dtype.shape, dtype.base)
        start = 0
        for batch in selection.batches(self.chunks, dtype.itemsize):
            for part, read in zip(batch, self._engine_read([part.slabs for part in batch])):
                lengths = tuple(count for _, count, _ in part.slabs)
                found = np.take(self._shown(read, lengths + dtype.shape), part.take, axis)
                if selection.mask is not None:
                    found = found[selection.mask[part.take + part.slabs[0][0]]]
                    values[start : start + len(found)] = found
                    start += len(found)
                else:
                    values[(slice(None),) * axis + (part.to,)] = found
        return values.reshape(selection.shape + dtype.shape)

    def _shown(self, read: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        return read.reshape(-1).view(self.dtype.base).reshape(shape)

    def _engine_read(self, wanted: list[Any], out: Any = None) -> list[NDArray[Any]]:
        """The elements of slabs or points; None for all."""
        inner = [(0, length, 1) for length in self.dtype.shape]
        asked = [(self._object, one + inner if isinstance(one, list) else one, out) for one in wanted]
        return [np.asarray(buffer) for buffer in self._file._engine.read(asked)]

    def _variable(self, selection: Selection) -> NDArray[Any]:
        if selection.is_simple:
            wanted = None if selection.is_whole else selection.slabs
            found = self._strings(wanted) if selection.size else []
        elif selection.mask is not None:
            points = np.stack(np.nonzero(selection.mask), axis=1).astype("<u8")
            found = self._strings(points.tobytes())
        else:
            axes = [first + step * np.arange(count) for first, count, step in selection.slabs]
            if selection.axis is not None and selection.index is not None:
                axes[selection.axis] = selection.index
            grid = np.meshgrid(*axes, indexing="ij")
            points = np.stack([each.reshape(-1) for each in grid], axis=1).astype("<u8")
            found = self._strings(points.tobytes())
        return objects(found, selection.shape)

    def _strings(self, wanted: Any) -> list[Any]:
        found = self._file._engine.strings(self._object, wanted, self.ndim)
        if self._header.kind["class"] == "long_text":
            return found
        item = dtype_of(self._header.kind["item"])
        if item.hasobject:
            raise self._not_read()
        return [np.frombuffer(bytearray(each), item) for each in found]

    def read_direct(self, dest: NDArray[Any], source_sel: Any = None, dest_sel: Any = None) -> None:
        """Reads into an array of the caller, as h5py has it.

        Memory that is contiguous in C order, and of the type of the elements, takes them without a copy.

        Args:
            dest: The array.
            source_sel: Which elements are read, such as `numpy.s_[10:20]`; all by default.
            dest_sel: Where they go; the whole array by default.
        """
        if not dest.flags.writeable:
            raise UsageError(f"{self.path}: the array that takes its elements cannot be written to")
        selection = Selection(self.path, ... if source_sel is None else source_sel, self.shape)
        place = (... if dest_sel is None else dest_sel)
        target = dest[place]
        dtype = self.dtype
        if np.size(target) != selection.size * math.prod(dtype.shape):
            found = f"{selection.size} elements are to be read, and there is room for {np.size(target)}"
            raise UsageError(f"{self.path}: {found}: give selections of one size")
        is_view = isinstance(target, np.ndarray) and np.may_share_memory(target, dest)
        if (
            is_view
            and target.flags.c_contiguous
            and target.dtype == dtype.base
            and not dtype.hasobject
            and self._object.dtype is not None
            and selection.is_simple
        ):
            if selection.size:
                self._engine_read([None if selection.is_whole else selection.slabs], target)
            return
        values = self._values(selection)
        dest[place] = values.reshape(np.shape(target))

    def asstr(self, encoding: str | None = None, errors: str = "strict") -> _Text:
        """Its strings as `str`: `array.asstr()[10:20]`."""
        if self._header.kind["class"] not in ("text", "long_text"):
            raise TypeError(f"{self.path}: asstr() is for strings, and it has {self.dtype}")
        return _Text(self, encoding or "utf-8", errors)

    def astype(self, dtype: Any) -> _Astype:
        """Its elements as another type: `array.astype("f4")[10:20]`."""
        return _Astype(self, np.dtype(dtype))

    def plan(self, key: Any = ...) -> Plan:
        """What reading these elements would cost. Nothing but the metadata of the file is read."""
        selection = Selection(self.path, key, self.shape)
        if not selection.is_simple:
            raise UsageError(f"{self.path}: a plan of a list or mask: plan the slices that span it")
        inner = [(0, length, 1) for length in self.dtype.shape]
        return self._file._plan([self.path], None if selection.is_whole else selection.slabs + inner)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(f"{self.path} is in a file, of which an array is a copy")
        values = np.asarray(self[...])
        return values if dtype is None else values.astype(dtype)

    def __dlpack__(self, **wanted: Any) -> Any:
        """All elements, for other array libraries ("DLPack")."""
        wanted.pop("copy", None)
        return np.asarray(self[...]).__dlpack__(**wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        # The processor's memory.
        return (1, 0)

    def __repr__(self) -> str:
        if self._file._open is None:
            return f"<thalweg.Array {self.path}: the file is closed>"
        if self._header.shape is None or (self._object.dtype is None and not self._is_variable):
            return f"<thalweg.Array {self.path}: {self._object.not_read}, not read>"
        return f"<thalweg.Array {self.path}: {self.dtype}, shape {self.shape}>"


class _Header(NamedTuple):
    """What the header of a dataset says."""

    kind: Kind
    shape: tuple[int, ...] | None
    most: tuple[int, ...] | None
    chunks: tuple[int, ...] | None
    filters: tuple[Filter, ...]


def _tuple(lengths: list[int] | None) -> tuple[int, ...] | None:
    return None if lengths is None else tuple(lengths)


class _Text:
    """A dataset of strings, as `str`."""

    def __init__(self, array: Array, encoding: str, errors: str) -> None:
        self._array = array
        self._encoding = encoding
        self._errors = errors

    def __getitem__(self, key: Any) -> Any:
        found = self._array[key]
        if isinstance(found, bytes):
            return found.decode(self._encoding, self._errors)
        return objects([each.decode(self._encoding, self._errors) for each in found.flat], found.shape)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[...], dtype)


class _Astype:
    """A dataset whose elements become another type."""

    def __init__(self, array: Array, dtype: np.dtype[Any]) -> None:
        self._array = array
        self._dtype = dtype

    def __getitem__(self, key: Any) -> Any:
        found = self._array[key]
        return found.astype(self._dtype)

    def __len__(self) -> int:
        return len(self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[...], dtype or self._dtype)


class Type(_Named):
    """A committed type. Only its name and attributes are read."""

    def __repr__(self) -> str:
        return f"<thalweg.Type {self.path}>"


class Group(_Named, Mapping[str, Any]):
    """A group: `group["bank1_events/event_id"]`, `group.keys()`, `group.attrs`."""

    def __getitem__(self, path: str) -> Any:
        """The array or group at a path below it, or at a path of the file if that begins with `/`."""
        return self._file._at(path, self._object)

    def get(self, path: str, default: Any = None) -> Any:
        """The array or group at a path; `default` if there is none."""
        try:
            return self[path]
        except KeyError:
            return default

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._file._node(path, self._object) is not None

    def __iter__(self) -> Iterator[str]:
        """The names of its members, in the order of creation if the file has that, else sorted."""
        return iter(self._file._engine.names(self._object))

    def __len__(self) -> int:
        return len(self._file._engine.names(self._object))

    def visititems(self, func: Callable[[str, Any], Any]) -> Any:
        """Calls `func` with the path below the group of each object and the object, until it returns something.

        As with h5py, the members of a group come in the order of their names, an object with several paths comes once,
        and symbolic links are not followed.
        """
        seen = set()
        waiting = [("", self._object)]
        while waiting:
            path, one = waiting.pop()
            if one.address in seen:
                continue
            seen.add(one.address)
            if path:
                result = func(path, self._file._made(one))
                if result is not None:
                    return result
            if one.kind == "group":
                members = self._file._engine.members(one)
                # The last is taken first.
                waiting.extend((f"{path}/{name}" if path else name, member) for name, member in reversed(members))
        return None

    def visit(self, func: Callable[[str], Any]) -> Any:
        """Calls `func` with the path below the group of each object, until it returns something."""
        return self.visititems(lambda path, _: func(path))

    def __repr__(self) -> str:
        return f"<thalweg.Group {self.path}: {len(self)} members>"

    __hash__ = _Named.__hash__


Options = dict[str, Any]


class Arrays:
    """A file of arrays.

    >>> f = thalweg.open("run.nxs")
    >>> f["/entry/bank1_events/event_id"][:1000]
    >>> list(f["/entry"])
    """

    _array: type[Array] = Array
    _group: type[Group] = Group
    _type: type[Type] = Type

    def __init__(self, engine: _thalweg.ArrayFile, path: str | None, options: Options) -> None:
        self._open: _thalweg.ArrayFile | None = engine
        # Paths of files stay valid where the folder of the process is another.
        self._opened_at = None if path is None else absolute(path)
        self._options = options
        self._name = engine.name
        self._paths: dict[int, str] | None = None

    @property
    def _engine(self) -> _thalweg.ArrayFile:
        if self._open is None:
            raise ValueError(f"{self._name}: the file is closed")
        return self._open

    @property
    def filename(self) -> str:
        """The path or URL of the file."""
        return self._name

    @property
    def events(self) -> Events:
        """The events and logs of a NeXus file; none in other files."""
        from thalweg.events import Events

        return Events(self)

    @property
    def _path(self) -> str:
        if self._opened_at is None:
            raise UnsupportedError(f"{self._name}: this needs a path or URL, and the file was opened without one")
        return self._opened_at

    def __reduce__(self) -> Any:
        return _reopened, (type(self), self._path, self._options)

    def close(self) -> None:
        """Closes the file. Its arrays can no longer be read."""
        self._open = None

    def __enter__(self) -> Arrays:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _name_of(self, address: int) -> str | None:
        """The path of the object whose header is at an address."""
        if self._paths is None:
            self._paths = self._engine.paths()
        return self._paths.get(address)

    def _made(self, of: _thalweg.Object) -> Any:
        if of.kind == "group":
            return self._group(self, of)
        return self._array(self, of) if of.kind == "dataset" else self._type(self, of)

    def _node(self, path: str, group: _thalweg.Object | None = None) -> _thalweg.Object | None:
        """The object at a path, which may begin at a group."""
        names = [name for name in path.split("/") if name not in ("", ".")]
        if group is None or path.startswith("/"):
            return self._engine.object("/" + "/".join(names))
        node: _thalweg.Object | None = group
        for name in names:
            if node is None or node.kind != "group":
                return None
            node = self._engine.child(node, name)
        return node

    def _at(self, path: Any, group: _thalweg.Object | None = None) -> Any:
        node = self._node(path, group)
        if node is None:
            where = "" if group is None or path.startswith("/") else f" in {group.path}"
            what = f"{self._name}: no dataset or group {path}{where}; find() shows the datasets"
            raise NotFoundError(what, self._name)
        return self._made(node)

    def __getitem__(self, path: str) -> Any:
        """The array or group at a path."""
        return self._at(path)

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and self._node(path) is not None

    @property
    def attrs(self) -> Attributes:
        """The attributes of the file."""
        found: Attributes = self["/"].attrs
        return found

    def find(self, *patterns: str) -> list[Array]:
        """The arrays at or below paths; `*` and `?` stand for letters: `find("/entry/bank*/event_id")`."""
        return self._find(patterns)

    def _find(self, patterns: Sequence[str]) -> list[Array]:
        found, not_found = self._engine.datasets(list(patterns) or ["/"])
        for what in not_found:
            warnings.warn(what, stacklevel=3)
        return [self._array(self, dataset) for dataset in found]

    def __iter__(self) -> Iterator[str]:
        """The paths of all arrays."""
        return iter([array.path for array in self.find()])

    def read(self, *patterns: Union[str, Sequence[str]]) -> dict[str, NDArray[Any]]:
        """The arrays at or below paths, all in one pass: faster than one after the other.

        What cannot be read is left out, and warned of.

        >>> f.read("/entry/bank*_events/event_id")
        >>> f.read(["/entry/bank1_events/event_id", "/entry/bank2_events/event_id"])
        """
        arrays = []
        strings = []
        for array in self._find(_flat(patterns)):
            if array._object.not_read is None:
                arrays.append(array)
            elif array._is_variable:
                strings.append(array)
            else:
                warnings.warn(str(array._not_read()), stacklevel=2)
        buffers = self._engine.read([(array._object, None, None) for array in arrays])
        values = {
            array.path: array._shown(np.asarray(buffer), array.shape + array.dtype.shape)
            for array, buffer in zip(arrays, buffers)
        }
        values.update((array.path, np.asarray(array[...])) for array in strings)
        return values

    def plan(self, *patterns: Union[str, Sequence[str]]) -> Plan:
        """What `read` of these patterns would cost if nothing of the file was in memory.

        The file is opened anew, and only its metadata are read. `f["/path"].plan(numpy.s_[:1000])` is about a part.
        """
        return self._plan(_flat(patterns) or ["/"], None)

    def _plan(self, patterns: list[str], slabs: list[tuple[int, int, int]] | None) -> Plan:
        return Plan(**_thalweg.plan(self._path, self._options, patterns, slabs))

    def doctor(self, *patterns: Union[str, Sequence[str]]) -> dict[str, Any]:
        """Why the arrays at or below paths are read as fast as they are, and what would make it faster.

        The keys are those of `thalweg doctor --json`: how each dataset is stored (`datasets`), the predicted times of
        `thalweg` and of a reader through `libhdf5`, and `findings`, each with a `repack` that mends it: options of
        `thalweg convert --repack`. What only the command has: stripes of Lustre, other stores, and a measured time.
        """
        return _thalweg.doctor(self._path, self._options, _flat(patterns) or ["/"])

    def __repr__(self) -> str:
        return f"<thalweg.{type(self).__name__} {self._name}>"


def _flat(patterns: Sequence[Union[str, Sequence[str]]]) -> list[str]:
    found: list[str] = []
    for each in patterns:
        found.extend([each] if isinstance(each, str) else each)
    if patterns and not found:
        raise UsageError("found an empty list, expected paths or patterns; leave it out for all arrays")
    return found


def _reopened(kind: type[Arrays], path: str, options: Options) -> Arrays:
    return kind(_thalweg.open_arrays(path, options), path, options)
