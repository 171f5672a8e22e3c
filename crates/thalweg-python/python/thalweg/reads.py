"""Nanopore reads: SLOW5, BLOW5, POD5 and FAST5."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg


class Calibration(NamedTuple):
    """From samples to picoampere: (sample + offset) * range / digitisation (SLOW5 specification)."""

    digitisation: float
    offset: float
    range: float

    @property
    def scale(self) -> float:
        """Picoampere of a step of the digitiser: `scale` in pod5."""
        return self.range / self.digitisation


# The columns of a batch that are not attributes of the read.
_OWN = {"read_id", "read_group", "digitisation", "offset", "range", "sampling_rate", "signal", "samples"}


class Batch:
    """Some reads as columns. It is also Arrow data: `pyarrow.record_batch(batch)`, `polars.from_arrow(batch)`."""

    __slots__ = ("_batch", "_columns", "columns", "path")

    columns: list[str]
    """The names of the columns."""
    path: os.PathLike[str]
    """The file that the reads are from."""

    def __init__(self, batch: _thalweg.Batch, paths: list[os.PathLike[str]]) -> None:
        self._batch = batch
        self._columns: dict[str, Any] = {}
        self.columns = batch.names
        self.path = paths[batch.file]

    def __len__(self) -> int:
        return len(self._batch)

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
        return self._batch.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._batch.__arrow_c_schema__()

    def _column(self, name: str) -> Any:
        column = self._columns.get(name)
        if column is None:
            column = self._batch.column(name)
            if isinstance(column, tuple):
                *buffers, present = column
                column = (*map(np.asarray, buffers), present)
            self._columns[name] = column
        return column

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
        """The samples in picoampere. Each is calculated in 64 bits, and rounded once."""
        of = self.calibration
        return ((self.signal + of.offset) * of.range / of.digitisation).astype(np.float32)

    @property
    def samples(self) -> int:
        """The number of samples."""
        if "signal" in self._batch.columns:
            return len(self.signal)
        value: int = self._batch._value("samples", self._row)
        return value

    @property
    def sampling_rate(self) -> float:
        """Samples a second."""
        value: float = self._batch._value("sampling_rate", self._row)
        return value

    @property
    def path(self) -> os.PathLike[str]:
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
        """The auxiliary fields of the read, such as `channel_number`; None where one is missing."""
        names = (name for name in self._batch.columns if name not in _OWN)
        return {name: self._batch._value(name, self._row) for name in names}

    def __repr__(self) -> str:
        return f"<thalweg.Read {self.id}: {self.samples} samples>"


class Batches:
    """Reads in batches, once. It is also a stream of Arrow data: `pyarrow.table(batches)`, `polars.DataFrame(batches)`."""

    def __init__(self, stream: _thalweg.BatchStream, paths: list[os.PathLike[str]]) -> None:
        self._stream = stream
        self._paths = paths

    def __iter__(self) -> Iterator[Batch]:
        return (Batch(batch, self._paths) for batch in self._stream)

    def close(self) -> None:
        """Ends the read, if it goes on."""
        self._stream.close()

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._stream.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._stream.__arrow_c_schema__()


class Reads:
    """Files of reads as one data set."""

    def __init__(self, reads: _thalweg.ReadSet) -> None:
        self._set = reads

    @property
    def paths(self) -> list[os.PathLike[str]]:
        """The files, in the order of reading."""
        return self._set.paths

    def __len__(self) -> int:
        """The number of reads. SLOW5 and BLOW5 files without an index are read for it, once."""
        return len(self._set)

    def __bool__(self) -> bool:
        return True

    @property
    def ids(self) -> list[str]:
        """All read ids, in the order of the files."""
        return self._set.ids()

    def __iter__(self) -> Iterator[Read]:
        """All reads, in the order of the files."""
        for batch in self.batches():
            yield from batch

    def __getitem__(self, read_id: str) -> Read:
        """The read with an id."""
        for read in self.get([read_id]):
            return read
        raise KeyError(read_id)

    def get(self, ids: Iterable[str]) -> Iterator[Read]:
        """The reads of a list of ids, in its order."""
        for batch in self.batches(ids):
            yield from batch

    def batches(self, ids: Iterable[str] | None = None, *, signal: bool = True, in_order: bool = True) -> Batches:
        """All reads, or those of a list of ids, as batches of columns.

        Args:
            ids: The read ids; their order is that of the rows.
            signal: Whether the samples are read. Without them, the column `samples` has their number.
            in_order: Whether the rows have the order of the files or ids. If not, batches come as they are decoded.
        """
        wanted = None if ids is None else list(ids)
        return Batches(self._set.batches(wanted, signal=signal, in_order=in_order), self.paths)

    def __repr__(self) -> str:
        return f"<thalweg.Reads of {len(self.paths)} files>"
