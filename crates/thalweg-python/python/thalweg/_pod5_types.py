"""What reads of thalweg.pod5 consist of, with the names of the library pod5."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray


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

    @classmethod
    def from_reason_with_default_forced(cls, reason: EndReasonEnum) -> EndReason:
        """A reason, and whether something else than the signal ends a read for it."""
        return cls(reason, reason not in _OF_SIGNALS)


# The signal itself ended the read, or nobody knows what did.
_OF_SIGNALS = {EndReasonEnum.UNKNOWN, EndReasonEnum.SIGNAL_POSITIVE, EndReasonEnum.SIGNAL_NEGATIVE}


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


def run_info(columns: list[tuple[str, Any]]) -> RunInfo:
    """The run of the columns that the library gives; times there are milliseconds since 1970."""
    values = dict(columns)
    for name in ("acquisition_start_time", "protocol_start_time"):
        if values[name] is not None:
            values[name] = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=values[name])
    for name in ("context_tags", "tracking_id"):
        values[name] = dict(values[name] or ())
    return RunInfo(**{one.name: values[one.name] for one in fields(RunInfo)})
