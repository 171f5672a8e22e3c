"""Events and logs of neutron instruments, in NeXus files."""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg
from thalweg._stream import Stream
from thalweg.errors import UsageError

if TYPE_CHECKING:
    from thalweg.arrays import Arrays

Moment = Union[float, str, datetime.datetime, "np.datetime64", None]
"""Seconds since the first pulse of the file, or a time: ISO 8601, `datetime` or `numpy.datetime64`; without a zone it is UTC."""

_COLUMNS = ("event_id", "event_time_offset", "event_weight")


@dataclass(frozen=True)
class Bank:
    """A bank of detectors: a group of class NXevent_data (NeXus definitions)."""

    name: str
    """The last part of its path, or the whole path if another bank has the same last part."""
    path: str
    """The path of its group in the file."""
    events: int
    """The number of events."""
    pulses: int
    """The number of pulses."""
    units: str
    """The unit of `event_time_offset`."""
    columns: list[str]
    """The columns that it has: `event_id`, `event_time_offset`, `event_weight`."""


class BankEvents(NamedTuple):
    """The events of a bank. All arrays have one element for each event."""

    bank: Bank
    """The bank."""
    event_id: NDArray[Any] | None
    """The pixel of the detector."""
    event_time_offset: NDArray[Any] | None
    """The time of flight, in `bank.units`."""
    event_weight: NDArray[Any] | None
    """For how many neutrons the event counts."""
    pulse: NDArray[np.int64]
    """The number of its pulse, from 0 on; -1 if it belongs to none."""
    pulse_time: NDArray[np.datetime64]
    """The time of its pulse, in UTC; NaT if it is not known."""


class Pulses(NamedTuple):
    """The pulses of a bank. Both arrays have one element for each pulse."""

    first: NDArray[np.uint64]
    """The number of its first event; that of the next pulse if it has none."""
    time: NDArray[np.datetime64]
    """Its time, in UTC; NaT if it is not known."""


class Log(NamedTuple):
    """A log: a group of class NXlog (NeXus definitions)."""

    path: str
    """The path of its group in the file."""
    units: str | None
    """The unit of the values."""
    time: NDArray[Any]
    """The times from which the values hold: `datetime64[ns]` in UTC, or `timedelta64[ns]` if the log has no start."""
    value: NDArray[Any]
    """The values: 64-bit floating-point numbers, or strings."""


class EventBatch:
    """Some events of one bank as columns. It is also Arrow data: `pyarrow.record_batch(batch)`."""

    __slots__ = ("_batch", "bank")

    bank: Bank
    """The bank."""

    def __init__(self, batch: _thalweg.Batch, bank: Bank) -> None:
        self._batch = batch
        self.bank = bank

    def __len__(self) -> int:
        return len(self._batch)

    def _values(self, name: str, missing: Any) -> NDArray[Any]:
        buffer, present = self._batch.column(name)
        values = np.asarray(buffer)
        if present is not None:
            values = np.where(present, values, missing)
        return values

    @property
    def event_id(self) -> NDArray[Any] | None:
        """The pixel of the detector of each event."""
        return self._values("event_id", 0) if "event_id" in self.bank.columns else None

    @property
    def event_time_offset(self) -> NDArray[Any] | None:
        """The time of flight of each event, in `bank.units`."""
        return self._values("event_time_offset", 0) if "event_time_offset" in self.bank.columns else None

    @property
    def event_weight(self) -> NDArray[Any] | None:
        """For how many neutrons each event counts."""
        return self._values("event_weight", 0) if "event_weight" in self.bank.columns else None

    @property
    def pulse(self) -> NDArray[np.int64]:
        """The number of the pulse of each event, from 0 on; -1 if it belongs to none."""
        return self._values("pulse", -1)

    @property
    def pulse_time(self) -> NDArray[np.datetime64]:
        """The time of the pulse of each event, in UTC; NaT if it is not known."""
        return self._values("pulse_time", np.datetime64("NaT", "ns"))

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._batch.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._batch.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<thalweg.EventBatch of {len(self)} events of {self.bank.name}>"


class EventBatches(Stream):
    """Events in batches, once. It is also a stream of Arrow data: `pyarrow.table(batches)`."""

    def __init__(self, stream: _thalweg.BatchStream, banks: list[Bank]) -> None:
        super().__init__(stream)
        self._banks = banks

    def __iter__(self) -> Iterator[EventBatch]:
        return (EventBatch(batch, self._banks[batch.file]) for batch in self._stream)


def _moment(moment: Moment) -> str | None:
    if moment is None:
        return None
    if isinstance(moment, np.datetime64):
        return f"{np.datetime_as_string(moment)}"
    if isinstance(moment, datetime.datetime):
        return moment.isoformat()
    return str(moment)


def _pair(name: str, pair: Any) -> tuple[Any, Any]:
    """The two ends of a range."""
    try:
        first, last = pair
    except (TypeError, ValueError):
        raise ValueError(f"{name}={pair!r}: expected a pair of ends, such as (0, 60); None is no end") from None
    return first, last


def _names(banks: str | Sequence[str] | None) -> list[str]:
    names = [] if banks is None else [banks] if isinstance(banks, str) else list(banks)
    if not names and banks is not None:
        raise UsageError("banks: found an empty list, expected names or patterns; leave it out for all banks")
    return names


def _wanted(
    banks: str | Sequence[str] | None,
    pulses: tuple[int | None, int | None] | None,
    time: tuple[Moment, Moment] | None,
    tof: tuple[float | None, float | None] | None,
    part: tuple[int, int] | None,
) -> dict[str, Any]:
    wanted: dict[str, Any] = {"banks": _names(banks), "pulses": None, "time": None, "tof": None, "part": part}
    if pulses is not None:
        wanted["pulses"] = _pair("pulses", pulses)
    if time is not None:
        first, last = _pair("time", time)
        wanted["time"] = (_moment(first), _moment(last))
    if tof is not None:
        wanted["tof"] = tuple(None if end is None else float(end) * 1000 for end in _pair("tof", tof))
    return wanted


class Events:
    """The events and logs of a NeXus file: `thalweg.open("run.nxs").events`.

    >>> events = thalweg.open("run.nxs").events
    >>> events.read("bank1_events", time=(0, 60))[0].event_id
    """

    def __init__(self, file: Arrays) -> None:
        self._file = file
        self._events = _thalweg.Events(file._engine)
        self._banks: list[Bank] | None = None

    @property
    def banks(self) -> list[Bank]:
        """The banks of detectors, in the order of their paths."""
        if self._banks is None:
            self._banks = [Bank(*parts) for parts in self._events.banks()]
            for what in self._events.unreadable():
                warnings.warn(what, stacklevel=2)
        return self._banks

    def find(self, banks: str | Sequence[str] | None = None) -> list[Bank]:
        """The banks that names, paths, or patterns of either choose: `find("bank[12]_*")`."""
        return [self.banks[number] for number in self._events.find(_names(banks))]

    def pulses(self, bank: Bank) -> Pulses:
        """The pulses of a bank. Defects of the bank are warned of.

        >>> events.pulses(events.banks[0]).time
        """
        (pulses,) = self._pulses([bank])
        return pulses

    def _pulses(self, banks: Sequence[Bank]) -> list[Pulses]:
        """The pulses of banks: what is in the file is found once."""
        found, defects = self._events.pulses([self.banks.index(bank) for bank in banks])
        for defect in defects:
            warnings.warn(f"{self._file.filename}: {defect}", stacklevel=3)
        return [Pulses(np.asarray(first), np.asarray(time)) for first, time in found]

    def __len__(self) -> int:
        """The number of events of all banks."""
        return sum(bank.events for bank in self.banks)

    def __bool__(self) -> bool:
        return bool(self.banks)

    def read(
        self,
        banks: str | Sequence[str] | None = None,
        *,
        pulses: tuple[int | None, int | None] | None = None,
        time: tuple[Moment, Moment] | None = None,
        tof: tuple[float | None, float | None] | None = None,
        part: tuple[int, int] | None = None,
    ) -> list[BankEvents]:
        """The events of banks as arrays, in the order of the file. Defects of the file are warned of.

        Args:
            banks: Names or paths of banks, or patterns of them, such as `"bank[12]_*"`; all by default.
            pulses: The first pulse, and the end, which is not included. Pulses count from 0.
            time: Only pulses from the first moment on, and before the second.
            tof: Only events of these times of flight, in microseconds.
            part: The number of a part, from 0 on, and how many parts there are, for processes that share a read, such as
                `(comm.rank, comm.size)`. A part has events of each bank that follow each other, and ends where a chunk of
                the file ends.
        """
        found, defects = self._events.read(_wanted(banks, pulses, time, tof, part))
        for defect in defects:
            warnings.warn(defect, stacklevel=2)
        read = []
        for number, columns, pulse, pulse_time in found:
            pixel, offset, weight = (None if column is None else np.asarray(column) for column in columns)
            read.append(
                BankEvents(self.banks[number], pixel, offset, weight, np.asarray(pulse), np.asarray(pulse_time))
            )
        return read

    def batches(
        self,
        banks: str | Sequence[str] | None = None,
        *,
        pulses: tuple[int | None, int | None] | None = None,
        time: tuple[Moment, Moment] | None = None,
        tof: tuple[float | None, float | None] | None = None,
        part: tuple[int, int] | None = None,
        in_file_order: bool = False,
    ) -> EventBatches:
        """The events of banks in batches, in bounded memory. Each batch is of one bank.

        Args:
            banks, pulses, time, tof, part: As for `read`.
            in_file_order: Banks in turns, as they lie in the file, which is read once. If not, they come one after the
                other, and a file whose banks are interleaved is read more than once.
        """
        stream = self._events.batches(_wanted(banks, pulses, time, tof, part), in_file_order)
        return EventBatches(stream, self.banks)

    @property
    def logs(self) -> dict[str, Log]:
        """The logs, by their paths. Logs that cannot be read are left out, and warned of."""
        found, refused = self._events.logs()
        for what in refused:
            warnings.warn(what, stacklevel=2)
        logs = {}
        for path, units, time, value in found:
            values = np.asarray(value, dtype=str) if isinstance(value, list) else np.asarray(value)
            logs[path] = Log(path, units, np.asarray(time), values)
        return logs

    def __repr__(self) -> str:
        return f"<thalweg.Events of {os.fspath(self._file.filename)}: {len(self.banks)} banks>"
