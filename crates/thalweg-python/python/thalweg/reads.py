"""Nanopore reads: SLOW5, BLOW5, POD5 and FAST5."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg
from thalweg._names import ReadId, columns_of, id_of, ids_of
from thalweg._parts import bounds
from thalweg._paths import Path, absolute, shown
from thalweg._stream import Stream, table_of
from thalweg.errors import NotFoundError, UnsupportedError, UsageError

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]


class Calibration(NamedTuple):
    """From samples to picoampere: (sample + offset) * (range / digitisation) (SLOW5 specification)."""

    digitisation: float
    offset: float
    range: float

    @property
    def scale(self) -> float:
        """Picoampere of a step of the digitiser: `scale` in pod5."""
        return self.range / self.digitisation


# The columns of a batch that are not attributes of the read.
_SIGNAL = ("signal", "signal_pa", "samples")
_OWN = {"read_id", "read_group", "digitisation", "offset", "range", "sampling_rate", *_SIGNAL}


class Batch:
    """Some reads as columns. It is also Arrow data: `pyarrow.record_batch(batch)`, `polars.DataFrame(batch)`."""

    # CPython clears slots in the order of their names. `_columns`, the arrays, goes before `_rows`, so that the run can
    # use their memory again.
    __slots__ = ("_columns", "_lists", "_rows", "columns", "path")

    columns: list[str]
    """The names of the columns."""
    path: Path
    """The file that the reads are from; text for a URL."""

    def __init__(self, batch: _thalweg.Batch, paths: list[Path]) -> None:
        self._rows = batch
        self._columns: dict[str, Any] = {}
        self._lists: dict[str, list[Any] | None] | None = None
        self.columns = batch.names
        self.path = paths[batch.file]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Read]:
        return (Read(self, row) for row in range(len(self)))

    def __getitem__(self, row: int) -> Read:
        if row < 0:
            row += len(self)
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of a batch of {len(self)} reads")
        return Read(self, row)

    def __repr__(self) -> str:
        return f"<thalweg.Batch of {len(self)} reads: {', '.join(self.columns)}>"

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._rows.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._rows.__arrow_c_schema__()

    def _column(self, name: str) -> Any:
        column = self._columns.get(name)
        if column is None:
            self._needs(name)
            column = self._rows.column(name)
            if isinstance(column, tuple):
                *buffers, present = column
                column = (*map(np.asarray, buffers), present)
            self._columns[name] = column
        return column

    def _needs(self, *names: str) -> None:
        for name in names:
            if name not in self.columns:
                raise UsageError(f"this batch was read without {name!r}: its columns are {', '.join(self.columns)}")

    def _value(self, name: str, row: int) -> Any:
        """One value of a column; None if it is missing."""
        column = self._column(name)
        if isinstance(column, list):
            return column[row]
        *arrays, present = column
        if present is not None and not present[row]:
            return None
        if len(arrays) == 1:
            return arrays[0][row].item()
        offsets, values = arrays
        return values[offsets[row] : offsets[row + 1]]

    def _is_picoampere(self) -> bool:
        """Whether the column `signal_pa` is the signal. If not, it is an auxiliary field of that name."""
        return "signal_pa" in self.columns and "signal" not in self.columns and "samples" not in self.columns

    def _attributes(self) -> dict[str, list[Any] | None]:
        """The auxiliary columns, as lists where a read has a single value: that takes less time than a value at a time."""
        if self._lists is None:
            own = _OWN if self._is_picoampere() else _OWN - {"signal_pa"}
            self._lists = {name: self._list(name) for name in self.columns if name not in own}
        return self._lists

    def _list(self, name: str) -> list[Any] | None:
        column = self._column(name)
        if isinstance(column, list):
            return column
        *arrays, present = column
        if len(arrays) > 1:
            return None
        values: list[Any] = arrays[0].tolist()
        if present is None:
            return values
        return [value if there else None for value, there in zip(values, present, strict=True)]


class Read:
    """One read. What it gives belongs to memory that is never overwritten while somebody has it."""

    __slots__ = ("_batch", "_row")

    def __init__(self, batch: Batch, row: int) -> None:
        self._batch = batch
        self._row = row

    @property
    def id(self) -> str:
        """The read id, a UUID in most files."""
        value: str = self._batch._value("read_id", self._row)
        return value

    @property
    def signal(self) -> NDArray[np.int16]:
        """The samples as they were digitised. It is a view, which cannot be written to."""
        value: NDArray[np.int16] = self._batch._value("signal", self._row)
        return value

    @property
    def signal_pa(self) -> NDArray[np.float32]:
        """The samples in picoampere. Each is calculated in 64 bits, and rounded to 32 at the end.

        The array is your own. From a batch with the column `signal_pa` it is a view, which cannot be written to.
        """
        if self._batch._is_picoampere():
            value: NDArray[np.float32] = self._batch._value("signal_pa", self._row)
            return value
        self._batch._needs("signal", *Calibration._fields)
        return np.asarray(self._batch._rows.picoampere(self._row))

    @property
    def samples(self) -> int:
        """The number of samples."""
        if "signal" in self._batch.columns:
            return len(self._batch._value("signal", self._row))
        if self._batch._is_picoampere():
            return len(self._batch._value("signal_pa", self._row))
        value: int = self._batch._value("samples", self._row)
        return value

    @property
    def sampling_rate(self) -> float:
        """Samples a second."""
        value: float = self._batch._value("sampling_rate", self._row)
        return value

    @property
    def path(self) -> Path:
        """The file that the read is from."""
        return self._batch.path

    @property
    def read_group(self) -> int:
        """The number of the read group in its file, `path`."""
        value: int = self._batch._value("read_group", self._row)
        return value

    @property
    def calibration(self) -> Calibration:
        """What makes picoampere of samples."""
        value = self._batch._value
        return Calibration(*(value(name, self._row) for name in Calibration._fields))

    @property
    def attributes(self) -> dict[str, Any]:
        """The auxiliary fields of the read, such as `channel_number`; None where one is missing.

        From a batch of chosen columns it has those that are fields.
        """
        batch, row = self._batch, self._row
        columns = batch._attributes().items()
        return {name: batch._value(name, row) if column is None else column[row] for name, column in columns}

    def __repr__(self) -> str:
        # Debuggers show reads of all batches.
        name = f" {self.id}" if "read_id" in self._batch.columns else ""
        has_samples = not set(_SIGNAL).isdisjoint(self._batch.columns)
        return f"<thalweg.Read{name}: {self.samples} samples>" if has_samples else f"<thalweg.Read{name}>"


class Batches(Stream):
    """Reads in batches, once. It is also a stream of Arrow data: `pyarrow.table(batches)`, `polars.DataFrame(batches)`."""

    def __init__(self, stream: _thalweg.BatchStream, paths: list[Path]) -> None:
        super().__init__(stream)
        self._paths = paths

    def __iter__(self) -> Iterator[Batch]:
        return (Batch(batch, self._paths) for batch in self._stream)


class Scan(Stream):
    """A table of reads without their samples, once: a stream of Arrow data, as `pyarrow.table(scan)` takes it."""


def _reopened(paths: list[str], options: dict[str, Any], ids: list[str] | None) -> Reads:
    return Reads(_thalweg.open(paths, options), options, ids)  # type: ignore[arg-type]


def _twice(ids: list[str], advice: str) -> UnsupportedError:
    read_id = next(read_id for read_id, count in Counter(ids).items() if count > 1)
    return UnsupportedError(f"{read_id}: found the read more than once, expected it once; {advice}")


class Reads:
    """Files of reads as one data set, or some of their reads.

    It can be pickled: the files are opened again where it is loaded.

    >>> reads = thalweg.open("run/*.pod5")
    >>> for read in reads:
    ...     print(read.id, read.signal.mean())
    """

    def __init__(
        self, reads: _thalweg.ReadSet, options: dict[str, Any] | None = None, ids: list[str] | None = None
    ) -> None:
        self._set = reads
        # Those of a file that was opened without a path are None.
        self._options = options
        # Of all reads it is None.
        self._ids = ids

    def __reduce__(self) -> Any:
        if self._options is None:
            raise UnsupportedError(f"{self.paths[0]}: pickling needs a path or URL, and the file was opened without one")
        return _reopened, ([absolute(path) for path in self.paths], self._options, self._ids)

    def filter(
        self, where: str | None = None, ids: Iterable[ReadId] | None = None, *, missing_ok: bool = False
    ) -> Reads:
        """Some of the reads: those for which a condition holds, or those of a list of ids, or both.

        With a condition they are in the order of the files, else in that of the list.

        Args:
            where: A condition, as `thalweg filter --where` has it: `"samples >= 4000 and end_reason == paused"`.
            ids: The read ids, as strings or `uuid.UUID`.
            missing_ok: Whether ids that no file has are left out. If not, they are an error.

        Raises:
            thalweg.NotFoundError: No file has an id.
            thalweg.UsageError: The condition cannot be understood.
            thalweg.UnsupportedError: The condition holds for a read that several files have.

        >>> long = reads.filter("samples > 100000")
        """
        wanted = self._ids if ids is None else self._inside(ids)
        if where is None and wanted is None:
            return self
        chosen, missing = _thalweg.choose(self._set, wanted, where)
        if missing and not missing_ok:
            raise NotFoundError(f"{len(missing)} of the reads (such as {missing[0]}) not found; check the ids")
        if where is None and wanted is not None:
            gone = set(missing)
            chosen = [read_id for read_id in dict.fromkeys(wanted) if read_id not in gone]
        elif len(set(chosen)) != len(chosen):
            raise _twice(chosen, "filter() finds reads by id: filter the files one by one")
        return Reads(self._set, self._options, chosen)

    def part(self, rank: int, size: int) -> Reads:
        """Part `rank`, from 0 on, of `size` parts of the reads, for processes that share them.

        Parts have the same number of reads, but for one, and a part's reads follow each other.

        >>> mine = thalweg.open("reads.pod5").part(comm.rank, comm.size)
        """
        first, last = bounds(len(self), rank, size)
        if size == 1:
            return self
        ids = self._all
        if len(self._distinct) != len(ids):
            raise _twice(ids, "part() finds reads by id: divide the files instead")
        return Reads(self._set, self._options, ids[first:last])

    # Who asks for many reads or parts one by one does not wait for these each time.
    @cached_property
    def _all(self) -> list[str]:
        """All read ids."""
        return self._set.ids() if self._ids is None else self._ids

    @cached_property
    def _distinct(self) -> set[str]:
        """All read ids, each once."""
        return set(self._all)

    def _inside(self, ids: Iterable[ReadId] | None) -> list[str] | None:
        """A list of ids, all of which must be among these reads."""
        if ids is None:
            return self._ids
        wanted = ids_of(ids)
        if self._ids is not None:
            for read_id in wanted:
                if read_id not in self._distinct:
                    raise NotFoundError(f"{read_id} is not among these {len(self._ids)} reads")
        return wanted

    @property
    def paths(self) -> list[Path]:
        """The files, in the order of reading: `pathlib.Path`, or text for URLs."""
        return [shown(path) for path in self._set.paths]

    def __len__(self) -> int:
        """The number of reads. SLOW5 and BLOW5 files without an index are read for it, once."""
        return len(self._set) if self._ids is None else len(self._ids)

    def __bool__(self) -> bool:
        # Files always count as something: to find that they have no reads may take a pass over all of them.
        return self._ids is None or bool(self._ids)

    def __contains__(self, read_id: object) -> bool:
        """Whether a read with an id, a string or a `uuid.UUID`, is among these."""
        try:
            wanted = id_of(read_id)
        except UsageError:
            return False
        return wanted in self._distinct if self._ids is not None else not self._set.missing([wanted])

    @property
    def ids(self) -> list[str]:
        """All read ids, in the order of the files."""
        return list(self._all)

    def __iter__(self) -> Iterator[Read]:
        """All reads, in the order of the files, or in that of the ids that were chosen."""
        for batch in self.batches():
            yield from batch

    def __getitem__(self, read_id: ReadId) -> Read:
        """The read with an id, a string or a `uuid.UUID`."""
        read_id = id_of(read_id)
        if self._ids is None and len(self._set.paths) == 1:
            # No threads start for it.
            return Read(Batch(self._set.row(read_id), self.paths), 0)
        for read in self.get([read_id]):
            return read
        raise KeyError(read_id)

    def get(self, ids: Iterable[ReadId], *, columns: Sequence[str] | None = None) -> Iterator[Read]:
        """The reads of a list of ids, in its order, with all columns or some: see `batches`.

        With a column `signal_pa`, the threads that decode calculate picoampere:

        >>> for read in reads.get(ids, columns=["read_id", "signal_pa"]):
        ...     print(read.id, read.signal_pa.mean())
        """
        for batch in self.batches(ids, columns=columns):
            yield from batch

    def batches(
        self,
        ids: Iterable[ReadId] | None = None,
        *,
        signal: bool = True,
        in_order: bool = True,
        columns: Sequence[str] | None = None,
        size: int | None = None,
    ) -> Batches:
        """All reads, or those of a list of ids, as batches of columns.

        Args:
            ids: The read ids; their order is that of the rows.
            signal: Whether the samples are read. Without them, the column `samples` has their number.
            in_order: Whether the rows have the order of iteration, or of `ids`. If not, batches come as they are decoded.
            columns: The columns, in this order; all by default. Without `signal` among them, no samples are read.
                `signal_pa`, the samples in picoampere (float32), takes the place of `signal`.
            size: The most rows of a batch. By default a batch has as many reads as the engine decodes at a time: about
                a MiB of samples, so that few rows are usual. Larger batches are sliced without copies, and smaller
                ones stay as they are.

        Raises:
            thalweg.NotFoundError: No file has an id.
            thalweg.UsageError: There is no such column.

        >>> for batch in reads.batches(columns=["read_id", "signal"], size=100):
        ...     record = pyarrow.record_batch(batch)
        """
        if size is not None and size < 1:
            raise UsageError(f"size={size}: expected at least one row")
        names = columns_of(columns)
        picoampere = names is not None and "signal_pa" in names
        if names is not None:
            if picoampere and not signal:
                raise UsageError("columns: found signal_pa, and signal=False")
            if picoampere and "signal" in names:
                raise UsageError("columns: found both signal and signal_pa, expected one of them")
            signal = signal and (picoampere or "signal" in names)
        stream = self._set.batches(
            self._inside(ids),
            signal=signal,
            picoampere=picoampere,
            in_order=in_order,
            columns=names,
            size=size,
        )
        return Batches(stream, self.paths)

    def to_table(
        self, ids: Iterable[ReadId] | None = None, *, signal: bool = True, columns: Sequence[str] | None = None
    ) -> pyarrow.Table:
        """All reads, or those of a list of ids, as one Arrow table in memory.

        The arguments are those of `batches`. It needs pyarrow.

        >>> reads.to_table(columns=["read_id", "sampling_rate"]).to_pandas()
        """
        return table_of(self.batches(ids, signal=signal, columns=columns))

    def scan(
        self,
        ids: Iterable[ReadId] | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        in_order: bool = True,
    ) -> Scan:
        """A table of the reads without their samples: a row a read, in batches of thousands of rows.

        Its columns are the fields of the reads, `samples` (the number of samples) and `file`. Attributes of the read
        groups, such as `run_id`, can be columns, too. Samples are not decoded, and POD5's are not even fetched.

        Args:
            ids: The read ids; their order is that of the rows.
            columns: The columns, in this order, or names of attributes; the fields of the reads and `file` by default.
            where: A condition, as `thalweg filter --where` has it: `"samples >= 4000 and end_reason == paused"`.
            in_order: Whether the rows have the order of the files or ids.

        Raises:
            thalweg.NotFoundError: No file has an id, or there is no such column.
            thalweg.UsageError: The condition cannot be understood.

        >>> pyarrow.table(reads.scan(columns=["read_id", "samples", "run_id"], where="samples > 10000"))
        """
        return Scan(
            self._set.scan(
                self._inside(ids),
                columns=columns_of(columns),
                condition=where,
                in_order=in_order,
            )
        )

    def read_groups(self, path: int | Path = 0) -> list[dict[str, str | None]]:
        """The attributes of each read group of a file, such as `run_id`; None where a group does not have one.

        The header of the file has them. Of POD5 files they are the run information, with `context_tags` and
        `tracking_id` among the others.

        Args:
            path: The file, as `paths` has it, or its number there.

        >>> reads.read_groups(read.path)[read.read_group]["run_id"]
        """
        groups, attributes = self._set.attributes(self._number(path))
        return [{name: values[group] for name, values in attributes} for group in range(groups)]

    def _number(self, path: int | Path) -> int:
        """The number of a file."""
        if isinstance(path, int):
            return path
        names = [os.fspath(one) for one in self.paths]
        if os.fspath(path) not in names:
            raise UsageError(f"{os.fspath(path)}: expected one of the {len(names)} files that are open, as in .paths")
        return names.index(os.fspath(path))

    def __repr__(self) -> str:
        some = "" if self._ids is None else f"{len(self._ids)} of the reads of "
        count = len(self._set.paths)
        return f"<thalweg.Reads of {some}{count} {'file' if count == 1 else 'files'}>"
