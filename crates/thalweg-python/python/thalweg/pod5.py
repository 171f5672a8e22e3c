"""The reading part of the library pod5 over the engine of thalweg: change the import, and keep the program.

>>> import thalweg.pod5 as pod5
>>> with pod5.Reader("reads.pod5") as reader:
...     for read in reader.reads():
...         print(read.read_id, read.signal.mean(), read.run_info.sample_rate)

Names, arguments and results are those of pod5 0.3.49. POD5 files of all versions have the fields of the newest one, with
the same values in place of absent ones. BLOW5, SLOW5 and FAST5 files and URLs can be read, too; a field that they lack is
None, and a read id that is no UUID is a string. Where it differs:

- A batch has 1000 reads in every file. pod5 gives those of the file, which are 1000 unless the writer chose another number.
- `byte_count` of uncompressed signals is in bytes, and `end_reason_index` is always the value of the enumeration.
- Errors are thalweg's; those about reads that a file lacks are also `RuntimeError`, as in pod5.
- There is no access to tables (`read_table`, `signal_rows`, `columns`, `inner_file_reader`), none to the numbers of their
  versions, and no writer: write with pod5, or convert a file with `thalweg convert`.
- URLs have a path that is a string.
"""

from __future__ import annotations

import enum
import math
import os
import threading
import warnings
from collections.abc import Collection, Generator, Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, timezone
from fnmatch import fnmatch
from functools import lru_cache
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg
from thalweg._optional import needs
from thalweg._open import open as _open
from thalweg.errors import NotFoundError, UnsupportedError, UsageError
from thalweg.reads import Batch, Reads

if TYPE_CHECKING:
    import packaging.version
    import pyarrow  # type: ignore[import-untyped]

__all__ = [
    "Calibration",
    "DatasetReader",
    "EndReason",
    "EndReasonEnum",
    "Pore",
    "Read",
    "Reader",
    "ReadRecord",
    "ReadRecordBatch",
    "RunInfo",
    "ShiftScalePair",
    "Writer",
]

PathOrStr = Union["os.PathLike[str]", str]


class EndReasonEnum(enum.Enum):
    """Why a read ended (POD5 specification)."""

    UNKNOWN = 0
    MUX_CHANGE = 1
    UNBLOCK_MUX_CHANGE = 2
    DATA_SERVICE_UNBLOCK_MUX_CHANGE = 3
    SIGNAL_POSITIVE = 4
    SIGNAL_NEGATIVE = 5
    API_REQUEST = 6
    DEVICE_DATA_ERROR = 7
    ANALYSIS_CONFIG_CHANGE = 8
    PAUSED = 9


@dataclass(frozen=True)
class EndReason:
    """Why a read ended, and whether something else than the signal ended it."""

    reason: EndReasonEnum
    forced: bool

    @property
    def name(self) -> str:
        """The name of the reason in lower case."""
        return self.reason.name.lower()


@dataclass
class Calibration:
    """From samples to picoampere: (sample + offset) * scale."""

    offset: float
    scale: float

    @classmethod
    def from_range(cls, offset: float, adc_range: float, digitisation: float) -> Calibration:
        """The calibration of a range in picoampere, and its number of steps."""
        return cls(offset, adc_range / digitisation)


@dataclass
class Pore:
    """The pore of a read; channel and well count from 1."""

    channel: int
    well: int
    pore_type: str


@dataclass
class ShiftScalePair:
    """A shift and a scale. Two that are not numbers are equal."""

    shift: float = math.nan
    scale: float = math.nan

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShiftScalePair):
            return False
        pairs = [(self.shift, other.shift), (self.scale, other.scale)]
        return all(map(math.isnan, (*pairs[0], *pairs[1]))) or all(ours == theirs for ours, theirs in pairs)


@dataclass(frozen=True)
class RunInfo:
    """What all reads of an acquisition share (POD5 specification, "Run Info Table"). Times are in UTC."""

    acquisition_id: str
    acquisition_start_time: datetime
    adc_max: int
    adc_min: int
    context_tags: dict[str, str] = field(hash=False)
    experiment_name: str
    flow_cell_id: str
    flow_cell_product_code: str
    protocol_name: str
    protocol_run_id: str
    protocol_start_time: datetime
    sample_id: str
    sample_rate: int
    sequencing_kit: str
    sequencer_position: str
    sequencer_position_type: str
    software: str
    system_name: str
    system_type: str
    tracking_id: dict[str, str] = field(hash=False)


@dataclass
class Read:
    """A read in memory, which needs no file."""

    read_id: UUID
    pore: Pore
    calibration: Calibration
    read_number: int
    start_sample: int
    median_before: float
    end_reason: EndReason
    run_info: RunInfo
    num_minknow_events: int = 0
    tracked_scaling: ShiftScalePair = field(default_factory=ShiftScalePair)
    predicted_scaling: ShiftScalePair = field(default_factory=ShiftScalePair)
    num_reads_since_mux_change: int = 0
    time_since_mux_change: float = 0.0
    open_pore_level: float = math.nan
    expected_open_pore_level: float = math.nan
    selected_read_level: float = math.nan
    signal: NDArray[np.int16] = field(default_factory=lambda: np.array([], np.int16))

    @property
    def sample_count(self) -> int:
        """The number of samples."""
        return len(self.signal)


class Writer:
    """pod5 writes, thalweg does not."""

    def __init__(self, *_: object, **__: object) -> None:
        raise UnsupportedError(
            "thalweg.pod5 has no writer: write with the library pod5, or convert a file with `thalweg convert`"
        )


class MissingReadsError(NotFoundError, RuntimeError):
    """A file does not have reads that were asked for."""


# What a column has that is not in the file: version 7 of the Reads table gives these values to older files.
_ABSENT: dict[str, Any] = {
    "tracked_scaling_shift": math.nan,
    "tracked_scaling_scale": math.nan,
    "predicted_scaling_shift": math.nan,
    "predicted_scaling_scale": math.nan,
    "num_reads_since_mux_change": 0,
    "time_since_mux_change": 0.0,
    "num_minknow_events": 0,
    "open_pore_level": math.nan,
    "expected_open_pore_level": math.nan,
    "selected_read_level": math.nan,
}

# Reads of a batch: what pod5 writes.
_BATCH_READS = 1000

# The version of POD5 whose fields all files have here.
_FIELDS_OF = "0.3.48"


class _Signals:
    """The samples of one pass over reads in a known order.

    A program may want all of them, a few, or none. Reads are decoded ahead on all cores once it wants one, and one by
    one if most of what was decoded ahead would go unused.
    """

    def __init__(self, reads: Reads, ids: list[str] | None) -> None:
        self._reads = reads
        self._ids = ids
        self._batches: Iterator[Batch] | None = None
        self._batch: Batch | None = None
        self._start = self._end = self._wanted = 0
        self._lock = threading.Lock()

    def next(self) -> Batch | None:
        """The next batch, which stays until the one after it."""
        with self._lock:
            return self._next()

    def _next(self) -> Batch | None:
        if self._batches is None:
            self._batches = iter(self._reads.batches(self._ids))
        self._batch = next(self._batches, None)
        self._start, self._end = self._end, self._end + len(self._batch or ())
        return self._batch

    def of(self, place: int, read_id: str) -> NDArray[np.int16]:
        """The samples of the read at a place in the order."""
        with self._lock:
            self._wanted += 1
            # What is skipped stays in proportion to what is used.
            if place < self._end or place - self._end <= 64 + 2 * self._wanted:
                samples = self._ahead(place, read_id)
                if samples is None and self._ids is None and place >= self._start:
                    # All reads of a POD5 file come in the order of their samples, which may be another one than that
                    # of their fields.
                    self._ids = self._reads.ids
                    self._batches = iter(self._reads.batches(self._ids[place:]))
                    self._batch = None
                    self._start = self._end = place
                    samples = self._ahead(place, read_id)
                if samples is not None:
                    return samples
        return self._reads[read_id].signal

    def _ahead(self, place: int, read_id: str) -> NDArray[np.int16] | None:
        """The samples of a read that is the next one, or near it."""
        while place >= self._end and self._next() is not None:
            pass
        if self._batch is None or not self._start <= place < self._end:
            return None
        read = self._batch[place - self._start]
        return read.signal if read.id == read_id else None


class _Rows:
    """Some reads in the order of a pass, without their samples."""

    def __init__(self, batch: Batch, first: int, signals: _Signals | None) -> None:
        self.batch = batch
        self.first = first
        self.signals = signals
        self.lengths: NDArray[np.integer[Any]] | None = None


class ReadRecord:
    """A read of a file."""

    __slots__ = ("_reader", "_row", "_rows", "_has_signal")

    def __init__(self, reader: Reader, rows: _Rows, row: int, has_cached_signal: bool = False) -> None:
        self._reader = reader
        self._rows = rows
        self._row = row
        self._has_signal = has_cached_signal

    def _field(self, name: str) -> Any:
        """The value of a field; None if the file does not have it."""
        batch, is_pod5 = self._rows.batch, self._reader._pod5 is not None
        if name not in batch.columns:
            return _ABSENT.get(name) if is_pod5 else None
        value = batch._value(name, self._row)
        column = batch._column(name)
        if value is None and not isinstance(column, list):
            # What is missing in the model of thalweg, SLOW5's, is one of these values in POD5.
            kind = column[0].dtype
            value = math.nan if kind.kind == "f" else int(np.iinfo(kind).max) if is_pod5 else None
        return value

    def _pair(self, name: str) -> ShiftScalePair:
        return ShiftScalePair(self._field(f"{name}_shift"), self._field(f"{name}_scale"))

    @property
    def _id(self) -> str:
        value: str = self._rows.batch._value("read_id", self._row)
        return value

    @property
    def read_id(self) -> UUID:
        """The identifier."""
        return _uuid(self._id)

    @property
    def read_number(self) -> int:
        """The number of the read on its channel."""
        value = self._field("read_number")
        # SLOW5 has the same 32 bits with a sign.
        number: Any = None if value is None else value & 0xFFFFFFFF
        return number  # type: ignore[no-any-return]

    @property
    def start_sample(self) -> int:
        """The number of samples that the channel had before the read."""
        value: int = self._field("start_time")
        return value

    @property
    def num_samples(self) -> int:
        """The number of samples."""
        rows = self._rows
        if rows.lengths is not None:
            return int(rows.lengths[self._row])
        return rows.batch[self._row].samples

    @property
    def sample_count(self) -> int:
        """The number of samples."""
        return self.num_samples

    @property
    def median_before(self) -> float:
        """The median level before the read, in picoampere."""
        value: float = self._field("median_before")
        return value

    @property
    def num_minknow_events(self) -> int:
        """The number of MinKNOW's events."""
        value: int = self._field("num_minknow_events")
        return value

    @property
    def tracked_scaling(self) -> ShiftScalePair:
        """The scaling of the reads before."""
        return self._pair("tracked_scaling")

    @property
    def predicted_scaling(self) -> ShiftScalePair:
        """The scaling of this read's own signal."""
        return self._pair("predicted_scaling")

    @property
    def num_reads_since_mux_change(self) -> int:
        """The number of reads on the channel since its last change of the well."""
        value: int = self._field("num_reads_since_mux_change")
        return value

    @property
    def time_since_mux_change(self) -> float:
        """The seconds since the last change of the well."""
        value: float = self._field("time_since_mux_change")
        return value

    @property
    def open_pore_level(self) -> float:
        """The level of the open pore, in picoampere."""
        value: float = self._field("open_pore_level")
        return value

    @property
    def expected_open_pore_level(self) -> float:
        """The level that was expected of the open pore, in picoampere."""
        value: float = self._field("expected_open_pore_level")
        return value

    @property
    def selected_read_level(self) -> float:
        """The level that was selected for the read, in picoampere."""
        value: float = self._field("selected_read_level")
        return value

    @property
    def pore(self) -> Pore:
        """The pore."""
        text = self._field("channel_number")
        channel: Any = None if text is None else int(text)
        return Pore(channel, self._field("start_mux"), self._field("pore_type"))

    @property
    def calibration(self) -> Calibration:
        """What makes picoampere of samples. POD5 has both numbers in 32 bits."""
        value = self._rows.batch._value
        scale = np.float32(value("range", self._row) / value("digitisation", self._row))
        return Calibration(float(np.float32(value("offset", self._row))), float(scale))

    @property
    def calibration_digitisation(self) -> int:
        """The steps of the digitiser."""
        return int(self._rows.batch._value("digitisation", self._row))

    @property
    def calibration_range(self) -> float:
        """The range of the digitiser, in picoampere."""
        return self.calibration.scale * self.calibration_digitisation

    @property
    def end_reason(self) -> EndReason:
        """Why the read ended."""
        label = self._field("pod5_end_reason") or self._field("end_reason")
        forced = self._field("end_reason_forced")
        reason = None if label is None else EndReasonEnum.__members__.get(label.upper())
        return EndReason(reason, None if forced is None else bool(forced))  # type: ignore[arg-type]

    @property
    def end_reason_index(self) -> int:
        """The value of the reason in its enumeration."""
        reason = self.end_reason.reason
        index: Any = None if reason is None else reason.value
        return index  # type: ignore[no-any-return]

    @property
    def run_info(self) -> RunInfo:
        """What the reads of the acquisition share."""
        return self._reader._runs[self.run_info_index]

    @property
    def run_info_index(self) -> int:
        """The number of the acquisition in the file."""
        value: int = self._rows.batch._value("read_group", self._row)
        return value

    @property
    def byte_count(self) -> int:
        """The bytes of the signal in the file; those of the whole record in BLOW5 and SLOW5."""
        return self._reader._files._set.stored_bytes(self._id)

    @property
    def has_cached_signal(self) -> bool:
        """Whether the signal was asked for by `preload`."""
        return self._has_signal

    @property
    def signal(self) -> NDArray[np.int16]:
        """The samples as they were digitised. The array is your own."""
        rows = self._rows
        if rows.signals is None:
            return rows.batch[self._row].signal.copy()
        # The reader says if it was closed.
        self._reader._files  # noqa: B018
        return rows.signals.of(rows.first + self._row, self._id).copy()

    @property
    def signal_pa(self) -> NDArray[np.float32]:
        """The samples in picoampere."""
        return self.calibrate_signal_array(self.signal)

    def calibrate_signal_array(self, signal_array_adc: NDArray[np.int16]) -> NDArray[np.float32]:
        """Samples in picoampere, calculated in 32 bits as pod5 does."""
        of = self.calibration
        pa: NDArray[np.float32] = np.add(signal_array_adc, np.float32(of.offset))
        pa *= np.float32(of.scale)
        return pa

    def to_read(self) -> Read:
        """The read in memory."""
        return Read(**{one.name: getattr(self, one.name) for one in fields(Read)})


class ReadRecordBatch:
    """Some reads of a file."""

    def __init__(self, reader: Reader, reads: list[ReadRecord]) -> None:
        self._reader = reader
        self._reads = reads

    @property
    def num_reads(self) -> int:
        """The number of reads."""
        return len(self._reads)

    def reads(self) -> Generator[ReadRecord, None, None]:
        """The reads."""
        yield from self._reads

    def get_read(self, row: int) -> ReadRecord:
        """The read in a row."""
        return self._reads[row]

    @property
    def read_id_column(self) -> pyarrow.FixedSizeBinaryArray:
        """The read ids, in 16 bytes each. It needs pyarrow."""
        return _raw_ids([read._id for read in self._reads])

    @property
    def read_number_column(self) -> pyarrow.UInt32Array:
        """The numbers of the reads. It needs pyarrow."""
        pyarrow = needs("pyarrow", "arrow")
        return pyarrow.array([read.read_number for read in self._reads], pyarrow.uint32())

    @property
    def cached_sample_count_column(self) -> NDArray[np.uint64]:
        """The numbers of samples."""
        return np.array([read.num_samples for read in self._reads], np.uint64)

    @property
    def cached_samples_column(self) -> list[NDArray[np.int16]]:
        """The samples."""
        return [read.signal for read in self._reads]


class Reader:
    """Reads of one file.

    Args:
        path: A POD5, BLOW5, SLOW5 or FAST5 file, or its URL.

    Raises:
        thalweg.IoError: The system refuses it.
        thalweg.FormatError: It is no file of reads, or it is damaged.
    """

    def __init__(self, path: PathOrStr) -> None:
        name = os.fspath(path)
        self._path = name if "://" in name else Path(name)
        self._opened: Reads | None = _file_of_reads(name)
        # What takes time or memory is read when it is needed.
        self._known: dict[str, Any] = {}

    @property
    def _files(self) -> Reads:
        if self._opened is None:
            raise RuntimeError(f"{self._path}: the reader of this file was closed")
        return self._opened

    @property
    def _pod5(self) -> tuple[str, str, str, bool, int] | None:
        if "pod5" not in self._known:
            self._known["pod5"] = self._files._set.pod5(0)
        return self._known["pod5"]  # type: ignore[no-any-return]

    @property
    def _runs(self) -> list[RunInfo]:
        if "runs" not in self._known:
            self._known["runs"] = list(map(_run, self._files._set.runs(0)))
        return self._known["runs"]  # type: ignore[no-any-return]

    def _ids(self) -> list[str]:
        if "ids" not in self._known:
            self._known["ids"] = self._files.ids
        return self._known["ids"]  # type: ignore[no-any-return]

    def _places(self) -> dict[str, int]:
        """The place of each read in the file."""
        if "places" not in self._known:
            self._known["places"] = {read_id: place for place, read_id in enumerate(self._ids())}
        return self._known["places"]  # type: ignore[no-any-return]

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._opened = None

    def __iter__(self) -> Generator[ReadRecord, None, None]:
        yield from self.reads()

    @property
    def path(self) -> Path | str:
        """The path; a string for a URL."""
        return self._path

    @property
    def num_reads(self) -> int:
        """The number of reads."""
        return len(self._files)

    @property
    def read_ids(self) -> list[str]:
        """The ids of all reads, in the order of the file."""
        return list(self._ids())

    @property
    def read_ids_raw(self) -> pyarrow.ChunkedArray:
        """The ids of all reads, in 16 bytes each. It needs pyarrow."""
        ids = self._ids()
        parts = [ids[start : start + _BATCH_READS] for start in range(0, len(ids), _BATCH_READS)]
        pyarrow = needs("pyarrow", "arrow")
        return pyarrow.chunked_array(map(_raw_ids, parts), pyarrow.binary(16))

    @property
    def file_identifier(self) -> UUID:
        """The identifier of a POD5 file; None of another."""
        return UUID(self._pod5[0]) if self._pod5 else None  # type: ignore[return-value]

    @property
    def original_file_version(self) -> packaging.version.Version:
        """The version of POD5 that the file was written in; None of another format. It needs packaging."""
        known = self._pod5
        version: Any = needs("packaging.version", "pod5").Version(known[1]) if known else None
        return version  # type: ignore[no-any-return]

    file_version_pre_migration = original_file_version

    @property
    def logical_file_version(self) -> packaging.version.Version:
        """The version of POD5 whose fields the reads have."""
        original = self.original_file_version
        return original and max(original, type(original)(_FIELDS_OF))

    file_version = logical_file_version

    @property
    def writing_software(self) -> str:
        """The program that wrote a POD5 file; None of another."""
        return self._pod5[2] if self._pod5 else None  # type: ignore[return-value]

    @property
    def is_vbz_compressed(self) -> bool:
        """Whether signals of a POD5 file are compressed; None of another."""
        return self._pod5[3] if self._pod5 else None  # type: ignore[return-value]

    @property
    def signal_batch_row_count(self) -> int:
        """The rows of a batch of signals of a POD5 file; None of another."""
        return self._pod5[4] if self._pod5 else None  # type: ignore[return-value]

    @property
    def batch_count(self) -> int:
        """The number of batches of reads."""
        return -(-self.num_reads // _BATCH_READS)

    def get_batch(self, index: int) -> ReadRecordBatch:
        """A batch of reads."""
        if not 0 <= index < self.batch_count:
            raise UsageError(f"{self._path}: batch {index}, but there are {self.batch_count} batches")
        return next(self.read_batches(batch_selection=[index]))

    def read_batches(
        self,
        selection: list[str] | None = None,
        batch_selection: Iterable[int] | None = None,
        missing_ok: bool = False,
        preload: set[str] | None = None,
    ) -> Generator[ReadRecordBatch, None, None]:
        """The reads in batches: all, those with the ids of `selection`, or the batches with some numbers.

        Reads of a selection have the order of the file, and batches without any of them are left out.

        Args:
            selection: Read ids.
            batch_selection: Numbers of batches.
            missing_ok: Whether ids may be unknown.
            preload: As in `reads`.
        """
        if selection is not None and batch_selection is not None:
            raise UsageError("a selection of reads and one of batches: expected one of them")
        size = _BATCH_READS
        if batch_selection is not None:
            for index in batch_selection:
                ids = self._ids()[index * size : (index + 1) * size]
                yield ReadRecordBatch(self, list(self._records(ids, preload)))
            return
        places = count() if selection is None else self._in_file(list(selection), missing_ok)
        records = self.reads(selection, missing_ok, preload)
        for _, part in groupby(zip(places, records), key=lambda one: one[0] // size):
            yield ReadRecordBatch(self, [read for _, read in part])

    def reads(
        self, selection: Iterable[str] | None = None, missing_ok: bool = False, preload: set[str] | None = None
    ) -> Generator[ReadRecord, None, None]:
        """The reads in the order of the file: all, or those with the ids of `selection`.

        Args:
            selection: Read ids.
            missing_ok: Whether ids may be unknown.
            preload: As in pod5. Signals are decoded ahead in any case once the program takes one.

        Raises:
            MissingReadsError: The file does not have a read.
        """
        if selection is None:
            yield from self._records(None, preload)
            return
        wanted = list(selection)
        if len(wanted) == 1:
            yield from self._one(wanted[0], missing_ok, preload)
            return
        ids = self._ids()
        yield from self._records([ids[place] for place in self._in_file(wanted, missing_ok)], preload)

    def _one(self, read_id: str, missing_ok: bool, preload: Collection[str] | None) -> Iterator[ReadRecord]:
        try:
            row = self._files._set.row(self._normal(read_id))
        except NotFoundError as error:
            if missing_ok:
                return
            raise MissingReadsError(str(error), error.file) from None
        rows = _Rows(Batch(row, self._files.paths), 0, None)
        yield ReadRecord(self, rows, 0, _is_preloaded(preload))

    def _normal(self, read_id: object) -> str:
        """A read id as the file has it. Those of POD5 are UUIDs, which can be written in several ways."""
        return str(_uuid(str(read_id))) if self._pod5 else str(read_id)

    def _in_file(self, selection: list[str], missing_ok: bool) -> list[int]:
        """The places of some reads, in the order of the file."""
        known = self._places()
        found = [known.get(self._normal(read_id)) for read_id in selection]
        missing = [read_id for read_id, place in zip(selection, found) if place is None]
        if missing and not missing_ok:
            some = ", ".join(map(str, missing[:3])) + (", ..." if len(missing) > 3 else "")
            raise MissingReadsError(
                f"{self._path}: lacks {len(missing)} of {len(selection)} reads: {some}; check the ids, or allow it by "
                "missing_ok=True",
                str(self._path),
            )
        return sorted(place for place in found if place is not None)

    def _records(self, ids: list[str] | None, preload: Collection[str] | None) -> Iterator[ReadRecord]:
        """Reads in an order that the engine keeps."""
        reads = self._files
        signals = _Signals(reads, ids)
        is_preloaded = _is_preloaded(preload)
        first = 0
        for rows in self._rows(reads, ids, signals):
            rows.first = first
            for row in range(len(rows.batch)):
                yield ReadRecord(self, rows, row, is_preloaded)
            first += len(rows.batch)

    def _rows(self, reads: Reads, ids: list[str] | None, signals: _Signals) -> Iterator[_Rows]:
        if self._pod5:
            # Fields are in a table of their own.
            for batch in reads.batches(ids, signal=False):
                yield _Rows(batch, 0, signals)
            return
        while (whole := signals.next()) is not None:
            # Reads that the program keeps must not keep all signals.
            names = [name for name in whole.columns if name != "signal"]
            rows = _Rows(Batch(whole._batch.select(names), reads.paths), 0, signals)
            rows.lengths = np.diff(whole._column("signal")[0])
            yield rows


class DatasetReader:
    """Reads of several files and folders.

    Args:
        paths: Files, folders or URLs.
        recursive: Whether folders in folders are searched.
        pattern: The names of files in folders, and of files that do not have the ending of another format of reads.
        index: Whether the index of all reads is made at once.
        threads: Without effect: the engine uses all cores.
        max_cached_readers: The most files that stay open.
        warn_duplicate_indexing: Whether an id in two files makes a warning when reads are asked for by id.

    Files are read in the order of their paths.
    """

    def __init__(
        self,
        paths: PathOrStr | Collection[PathOrStr],
        recursive: bool = False,
        pattern: str = "*.pod5",
        index: bool = False,
        threads: int = 4,
        max_cached_readers: int | None = 16,
        warn_duplicate_indexing: bool = True,
    ) -> None:
        if isinstance(paths, (str, os.PathLike)):
            paths = [paths]
        if not isinstance(paths, Collection):
            raise TypeError(f"paths={paths!r}: expected a path or a collection of paths")
        found = {one for path in paths for one in _found(os.fspath(path), recursive, pattern)}
        self._paths: list[Path] = sorted(found, key=str)
        self.threads = threads
        self.warn_duplicate_indexing = warn_duplicate_indexing
        self._num_reads: int | None = None
        self._index: dict[str, Path] | None = None
        self._reader = lru_cache(max_cached_readers)(Reader)
        if index:
            self.index_read_ids()

    def __enter__(self) -> DatasetReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear_index()
        self.clear_readers()

    def __iter__(self) -> Generator[ReadRecord, None, None]:
        yield from self.reads()

    def __len__(self) -> int:
        return self.num_reads

    @property
    def paths(self) -> list[Path]:
        """The files."""
        return self._paths

    @property
    def num_reads(self) -> int:
        """The number of reads of all files."""
        if self._num_reads is None:
            self._num_reads = sum(self.get_reader(path).num_reads for path in self._paths)
        return self._num_reads

    @property
    def read_ids(self) -> Generator[str, None, None]:
        """The ids of all reads."""
        for path in self._paths:
            yield from self.get_reader(path).read_ids

    def reads(
        self, selection: Iterable[str] | None = None, preload: set[str] | None = None
    ) -> Generator[ReadRecord, None, None]:
        """The reads of all files, each in its order: all, or those with the ids of `selection`. Ids may be unknown."""
        wanted = None if selection is None else list(selection)
        for path in self._paths:
            yield from self.get_reader(path).reads(wanted, missing_ok=True, preload=preload)

    def get_read(self, read_id: str) -> ReadRecord | None:
        """The read with an id; None if no file has it. It makes the index."""
        path = self.get_path(read_id)
        return None if path is None else next(self.get_reader(path).reads([read_id]))

    def get_reader(self, path: PathOrStr) -> Reader:
        """The reader of a file."""
        name = os.fspath(path)
        return self._reader(name if "://" in name else Path(name))

    def get_path(self, read_id: str) -> Path | None:
        """The file of a read; None if no file has it. It makes the index."""
        self.index_read_ids()
        if self.warn_duplicate_indexing and self.has_duplicate():
            warnings.warn("some read ids are in several files, of which the last counts", stacklevel=2)
        return self._get_index().get(read_id)

    def has_duplicate(self) -> bool:
        """Whether an id is in two files. It makes the index."""
        return len(self) != len(self._get_index())

    def index_read_ids(self) -> None:
        """Makes the index of all reads, if there is none."""
        self._get_index()

    def _get_index(self) -> dict[str, Path]:
        if self._index is None:
            self._index = {read_id: path for path in self._paths for read_id in self.get_reader(path).read_ids}
        return self._index

    def clear_index(self) -> None:
        """Drops the index."""
        self._index = None

    def clear_readers(self) -> None:
        """Drops the readers of files that are open."""
        self._reader.cache_clear()


def _file_of_reads(name: str) -> Reads:
    if os.path.isdir(name):
        raise UsageError(f"{name}: found a folder, expected a file; a DatasetReader reads folders")
    opened = _open(name)
    if not isinstance(opened, Reads):
        raise UnsupportedError(f"{name}: found {type(opened).__name__}, expected a file of reads; thalweg.open reads it")
    if len(opened.paths) != 1:
        raise UsageError(f"{name}: found {len(opened.paths)} files, expected one; a DatasetReader reads several")
    return opened


def _found(name: str, recursive: bool, pattern: str) -> Iterator[Any]:
    """The files of reads at a path."""
    if "://" in name:
        yield name
        return
    path = Path(name)
    if path.is_dir():
        inside = path.rglob(pattern) if recursive else path.glob(pattern)
        # Indexes, which thalweg writes beside the files, have no reads.
        yield from (one for one in inside if one.is_file() and one.suffix != ".idx")
    elif path.exists() and (fnmatch(path.name, pattern) or path.suffix in (".blow5", ".slow5", ".fast5")):
        yield path


def _is_preloaded(preload: Collection[str] | None) -> bool:
    return bool(preload) and "samples" in preload  # type: ignore[operator]


def _uuid(read_id: str) -> UUID:
    try:
        return UUID(read_id)
    except ValueError:
        return read_id  # type: ignore[return-value]


def _raw_ids(ids: list[str]) -> pyarrow.FixedSizeBinaryArray:
    pyarrow = needs("pyarrow", "arrow")
    return pyarrow.array([UUID(read_id).bytes for read_id in ids], pyarrow.binary(16))


def _run(columns: list[tuple[str, Any]]) -> RunInfo:
    values = dict(columns)
    for name in ("acquisition_start_time", "protocol_start_time"):
        if values[name] is not None:
            values[name] = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=values[name])
    for name in ("context_tags", "tracking_id"):
        values[name] = dict(values[name] or ())
    return RunInfo(**{one.name: values[one.name] for one in fields(RunInfo)})
