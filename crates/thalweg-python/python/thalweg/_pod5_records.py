"""Reads of a file as the library pod5 has them."""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from thalweg._optional import needs
from thalweg._pod5_types import Calibration, EndReason, EndReasonEnum, Pore, Read, RunInfo, ShiftScalePair
from thalweg.reads import Batch, Reads

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

    from thalweg.pod5 import Reader

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


class Signals:
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


class Rows:
    """Some reads in the order of a pass, without their samples."""

    def __init__(self, batch: Batch, first: int, signals: Signals | None) -> None:
        self.batch = batch
        self.first = first
        self.signals = signals
        self.lengths: NDArray[np.integer[Any]] | None = None


class ReadRecord:
    """A read of a file."""

    __slots__ = ("_reader", "_row", "_rows", "_has_signal")

    def __init__(self, reader: Reader, rows: Rows, row: int, has_cached_signal: bool = False) -> None:
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
        return uuid_of(self._id)

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
        self._chosen = reads

    @property
    def num_reads(self) -> int:
        """The number of reads, chosen or not."""
        return len(self._reads)

    def set_selected_batch_rows(self, selected_batch_rows: Iterable[int]) -> None:
        """Chooses the rows that `reads` and the columns give."""
        self._chosen = [self._reads[row] for row in selected_batch_rows]

    def reads(self) -> Generator[ReadRecord, None, None]:
        """The reads, or those that were chosen."""
        yield from self._chosen

    def get_read(self, row: int) -> ReadRecord:
        """The read in a row."""
        return self._reads[row]

    @property
    def read_id_column(self) -> pyarrow.FixedSizeBinaryArray:
        """The read ids, in 16 bytes each. It needs pyarrow."""
        return raw_ids([read._id for read in self._chosen])

    @property
    def read_number_column(self) -> pyarrow.UInt32Array:
        """The numbers of the reads. It needs pyarrow."""
        pyarrow = needs("pyarrow", "arrow")
        return pyarrow.array([read.read_number for read in self._chosen], pyarrow.uint32())

    @property
    def cached_sample_count_column(self) -> NDArray[np.uint64]:
        """The numbers of samples."""
        return np.array([read.num_samples for read in self._chosen], np.uint64)

    @property
    def cached_samples_column(self) -> list[NDArray[np.int16]]:
        """The samples."""
        return [read.signal for read in self._chosen]


def uuid_of(read_id: str) -> UUID:
    """A read id as a UUID; the id itself if it is none."""
    try:
        return UUID(read_id)
    except ValueError:
        return read_id  # type: ignore[return-value]


def raw_ids(ids: list[str]) -> pyarrow.FixedSizeBinaryArray:
    """Read ids in 16 bytes each."""
    pyarrow = needs("pyarrow", "arrow")
    return pyarrow.array([UUID(read_id).bytes for read_id in ids], pyarrow.binary(16))
