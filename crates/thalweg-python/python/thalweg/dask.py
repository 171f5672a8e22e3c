"""Reads, arrays and events as collections of Dask.

Each partition is one part of a file: whole chunks of an array or a bank, or reads that follow each other. A partition
is a path and a few numbers, so that it can be sent to workers in other processes and on other machines. A worker keeps
the files open that it has read.

>>> import thalweg.dask
>>> frame = thalweg.dask.reads("run/*.pod5", columns=["read_id", "samples"])
>>> frame["samples"].sum().compute()
"""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

import thalweg
from thalweg._names import columns_of
from thalweg._open import options_of
from thalweg._optional import needs
from thalweg._paths import Path, absolute
from thalweg._stream import table_of
from thalweg.errors import UsageError

if TYPE_CHECKING:
    import dask.array
    import dask.bag
    import dask.dataframe

Paths = Union[Path, Sequence[Path]]

# Files that a worker keeps open.
_OPEN = 16
# What a partition has where its caller does not say how many there are: enough that the scheduler's work for it,
# about a millisecond, is small.
_PARTITION_BYTES = 64 << 20
_PARTITION_EVENTS = 4_000_000
_PARTITION_READS = 4_000


@functools.lru_cache(maxsize=_OPEN)
def _opened(paths: tuple[str, ...], options: tuple[tuple[str, Any], ...]) -> Any:
    return thalweg.open(paths[0] if len(paths) == 1 else list(paths), **dict(options))


class _Source:
    """Paths and how they are opened: what a partition needs to be read anywhere."""

    def __init__(self, paths: Paths, **options: Any) -> None:
        if not isinstance(paths, (str, os.PathLike, Sequence)):
            what = f"found {type(paths).__name__}, expected a path, a URL or a list of them"
            raise UsageError(f"{what}: each worker opens the files by itself")
        # A worker may run in another folder.
        self._paths = tuple(map(absolute, [paths] if isinstance(paths, (str, os.PathLike)) else paths))
        options_of(**options)
        self._options = tuple(sorted(options.items()))

    def open(self, kind: type[Any]) -> Any:
        opened = _opened(self._paths, self._options)
        if not isinstance(opened, kind):
            raise UsageError(f"{self._paths[0]}: found {type(opened).__name__}, expected {kind.__name__}")
        return opened


def _frame(stream: Any) -> Any:
    import pandas
    import pyarrow  # type: ignore[import-untyped]

    table = table_of(stream)
    for place, field in enumerate(table.schema):
        # Partitions may have other labels. As text they have one type.
        if pyarrow.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(field.type.value_type))
    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def _read_rows(part: tuple[int, int], source: _Source, columns: list[str] | None, signal: bool) -> Any:
    reads = source.open(thalweg.Reads)
    return _frame(reads.part(*part).batches(columns=columns, signal=signal))


def reads(
    paths: Paths,
    *,
    partitions: int | None = None,
    columns: Sequence[str] | None = None,
    signal: bool = True,
    threads: int | None = 1,
    memory: float | str | None = None,
) -> dask.dataframe.DataFrame:
    """Nanopore reads as a data frame of Dask, a row a read, whose columns have types of Arrow.

    Args:
        paths: A file, a folder, a pattern, or a list of them. Workers must be able to read them.
        partitions: How many parts; by default 4,000 reads each. SLOW5 and BLOW5 files need an index, which is made once.
        columns: The columns; all by default.
        signal: Whether the samples are read. Without them, the column `samples` has their number.
        threads: Threads that decode a partition.
        memory: What reading a partition may use beside its rows.

    >>> thalweg.dask.reads("reads.blow5", signal=False)["samples"].mean().compute()
    """
    frames = needs("dask.dataframe", "dask")
    source = _Source(paths, threads=threads, memory=memory)
    opened = source.open(thalweg.Reads)
    names = columns_of(columns)
    count = partitions or -(-len(opened) // _PARTITION_READS) or 1
    meta = _frame(opened.batches([], columns=names, signal=signal))
    parts = [(rank, count) for rank in range(count)]
    frame: dask.dataframe.DataFrame = frames.from_map(
        _read_rows, parts, source=source, columns=names, signal=signal, meta=meta, label="reads"
    )
    return frame


def _read_dicts(part: tuple[int, int], source: _Source) -> list[dict[str, Any]]:
    return [
        {
            "read_id": read.id,
            "signal": np.array(read.signal),
            "read_group": read.read_group,
            "sampling_rate": read.sampling_rate,
            **read.calibration._asdict(),
            **read.attributes,
        }
        for read in source.open(thalweg.Reads).part(*part)
    ]


def bag(
    paths: Paths, *, partitions: int | None = None, threads: int | None = 1, memory: float | str | None = None
) -> dask.bag.Bag:
    """Nanopore reads as a bag of Dask: a dictionary each, with the samples and all fields.

    The arguments are those of `reads`.

    >>> thalweg.dask.bag("reads.pod5").map(lambda read: read["signal"].mean()).compute()
    """
    bags = needs("dask.bag", "dask")
    delayed = needs("dask", "dask").delayed
    source = _Source(paths, threads=threads, memory=memory)
    count = partitions or -(-len(source.open(thalweg.Reads)) // _PARTITION_READS) or 1
    read = delayed(_read_dicts, pure=True)
    made: dask.bag.Bag = bags.from_delayed([read((rank, count), source) for rank in range(count)])
    return made


class _Lazy:
    """An array of a file, which a worker opens for the first of its blocks."""

    def __init__(self, source: _Source, array: Any) -> None:
        self._source = source
        self._path = array.path
        # Elements may be arrays, which numpy shows as further dimensions.
        self.shape = array.shape + array.dtype.shape
        self.dtype = array.dtype.base
        self.ndim = len(self.shape)

    def __getitem__(self, key: Any) -> Any:
        array = self._source.open(thalweg.Arrays)[self._path]
        own, inner = key[: array.ndim], key[array.ndim :]
        values = array[own] if own else array[()]
        return values[(...,) + inner] if inner else values


def array(
    path: Path,
    name: str,
    *,
    chunks: Any = None,
    threads: int | None = 1,
    memory: float | str | None = None,
) -> dask.array.Array:
    """An array of an HDF5 file as an array of Dask.

    Args:
        path: The file.
        name: The path of the array in it.
        chunks: The shape of a block, as Dask has it; by default as many whole chunks of the file as make 64 MiB.
        threads: Threads that decode a block.
        memory: What reading a block may use beside it.

    >>> thalweg.dask.array("run.nxs", "/entry/bank1_events/event_id").max().compute()
    """
    arrays = needs("dask.array", "dask")
    source = _Source(path, threads=threads, memory=memory)
    found = source.open(thalweg.Arrays)[name]
    if not isinstance(found, thalweg.Array):
        what = f"found {type(found).__name__}, expected an array; thalweg.dask.arrays gives all arrays below a group"
        raise UsageError(f"{os.fspath(path)}: {name}: {what}")
    lazy = _Lazy(source, found)
    inner = found.dtype.shape
    blocks = arrays.core.normalize_chunks(
        "auto" if chunks is None else chunks,
        shape=lazy.shape,
        dtype=lazy.dtype,
        limit=_PARTITION_BYTES if chunks is None else None,
        previous_chunks=None if found.chunks is None else found.chunks + inner,
    )
    made: dask.array.Array = arrays.from_array(
        lazy, chunks=blocks, asarray=False, lock=False, meta=np.empty(0, lazy.dtype)
    )
    return made


def arrays(
    path: Path, *patterns: str, chunks: Any = None, threads: int | None = 1, memory: float | str | None = None
) -> dict[str, dask.array.Array]:
    """The arrays at or below paths, or patterns of them, as arrays of Dask, by their paths. See `array`.

    >>> thalweg.dask.arrays("run.nxs", "/entry/bank*_events/event_id")
    """
    source = _Source(path, threads=threads, memory=memory)
    found = [each for each in source.open(thalweg.Arrays).find(*patterns) if each._object.not_read is None]
    return {each.path: array(path, each.path, chunks=chunks, threads=threads, memory=memory) for each in found}


def _event_frame(stream: Any, names: list[str], columns: list[str] | None) -> Any:
    import pandas
    import pyarrow

    table = table_of(stream)
    if columns is not None:
        table = table.select(columns)

    def mapped(kind: Any) -> Any:
        # Names become categories: as text, they would take more memory than all else.
        return None if pyarrow.types.is_dictionary(kind) else pandas.ArrowDtype(kind)

    frame = table.to_pandas(types_mapper=mapped)
    if "bank" in frame:
        # All partitions have the same ones.
        frame["bank"] = frame["bank"].cat.set_categories(names)
    return frame


def _event_rows(
    part: tuple[int, int],
    source: _Source,
    banks: list[str],
    names: list[str],
    tof: Any,
    columns: list[str] | None = None,
) -> Any:
    # The banks of a file that was written while it was measured lie in turns: the partition is one region of it.
    events = source.open(thalweg.Arrays).events.batches(banks, tof=tof, part=part, in_file_order=True)
    return _event_frame(events, names, columns)


def events(
    path: Path,
    banks: str | Sequence[str] | None = None,
    *,
    partitions: int | None = None,
    tof: tuple[float | None, float | None] | None = None,
    threads: int | None = 1,
    memory: float | str | None = None,
) -> dask.dataframe.DataFrame:
    """The events of a NeXus file as a data frame of Dask, a row an event.

    A partition has whole chunks of all banks, those of about the same time, in the order in which they lie in the file. A
    bank of fewer chunks than there are partitions is in some of them only. The column `bank` is a category.

    Args:
        path: The file.
        banks: Names or paths of banks, or patterns of them; all by default.
        partitions: How many parts; by default four million events each.
        tof: Only events of these times of flight, in microseconds.
        threads: Threads that decode a partition.
        memory: What reading a partition may use beside its rows.

    >>> thalweg.dask.events("run.nxs")["event_id"].value_counts().compute()
    """
    frames = needs("dask.dataframe", "dask")
    source = _Source(path, threads=threads, memory=memory)
    found = source.open(thalweg.Arrays).events
    chosen = found.find(banks)
    total = sum(bank.events for bank in chosen)
    count = partitions or -(-total // _PARTITION_EVENTS) or 1
    parts = [(rank, count) for rank in range(count)]
    paths = [glob.escape(bank.path) for bank in chosen]
    names = [bank.name for bank in chosen]
    meta = _event_frame(found.batches(paths, pulses=(0, 0)), names, None)
    # Dask asks for the columns that are used, by the argument `columns`.
    frame: dask.dataframe.DataFrame = frames.from_map(
        _event_rows, parts, source=source, banks=paths, names=names, tof=tof, meta=meta, label="events"
    )
    return frame
