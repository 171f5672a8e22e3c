"""Events of NeXus files as binned data of scipp.

>>> import thalweg.scipp
>>> data = thalweg.scipp.events("run.nxs")
>>> data["bank1_events"].hist(event_time_offset=1000)
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import thalweg
from thalweg._paths import Path
from thalweg._optional import needs
from thalweg.arrays import Arrays
from thalweg.errors import UsageError
from thalweg.events import Bank, Pulses

if TYPE_CHECKING:
    import scipp


def events(
    file: Path | Arrays,
    banks: str | Sequence[str] | None = None,
    *,
    pulses: tuple[int | None, int | None] | None = None,
) -> scipp.DataGroup[scipp.DataArray]:
    """The events of banks, binned by pulse, as scippnexus loads groups of class NXevent_data.

    The bins lie along `event_time_zero`, the times of the pulses. The events have the coordinates `event_id` and
    `event_time_offset`, as far as the file has them; their data is `event_weight`, or 1. All banks are read in one pass.

    scipp has whole numbers of 32 and 64 bits with a sign, so that uint32 becomes int64. scippnexus makes int32 of it,
    in which large numbers are negative. Events that belong to no pulse have no bin: they are left out, and warned of.
    `thalweg.open(file).events.read()` has them.

    Args:
        file: The file, or its path.
        banks: Names or paths of banks, or patterns of them; all by default.
        pulses: The first pulse, and the end, which is not included. Pulses count from 0.

    Returns:
        The banks by their names.

    >>> thalweg.scipp.events("run.nxs", "bank[12]_*", pulses=(0, 1000))
    """
    sc = needs("scipp", "scipp")
    opened = file if isinstance(file, Arrays) else thalweg.open(file)
    if not isinstance(opened, Arrays):
        raise UsageError(f"{file}: expected a NeXus file")
    found = opened.events
    chosen = found.find(banks)
    numbers = slice(*(pulses or (None, None)))
    bins: dict[str, tuple[Any, Any, Any]] = {}
    for bank, of in zip(chosen, found._pulses(chosen)):
        bins[bank.name] = _bins(bank, of, numbers)
        left_out = int(of.first[0]) if len(of.first) else bank.events
        if left_out and pulses is None:
            what = f"{left_out} events belong to no pulse and are left out; thalweg.open(file).events.read() has them"
            warnings.warn(f"{opened.filename}: {bank.path}: {what}", stacklevel=2)
    columns: dict[str, Any] = {}
    paths = [f"{bank.path}/{column}" for bank in chosen for column in bank.columns]
    if pulses is None:
        columns = opened.read(*paths) if paths else {}
    else:
        for bank in chosen:
            _, begin, end = bins[bank.name]
            part = slice(int(begin[0]), int(end[-1])) if len(begin) else slice(0, 0)
            for column in bank.columns:
                path = f"{bank.path}/{column}"
                columns[path] = opened[path][part]
    group: scipp.DataGroup[scipp.DataArray] = sc.DataGroup(
        {bank.name: _binned(sc, bank, columns, *bins[bank.name]) for bank in chosen}
    )
    return group


def _bins(bank: Bank, of: Pulses, numbers: slice) -> tuple[Any, Any, Any]:
    """The times of pulses, and where their events begin and end."""
    begin = of.first.astype(np.int64)
    end = np.append(begin, bank.events)[1:]
    return of.time[numbers], begin[numbers], end[numbers]


def _known(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers of a type that scipp has, and that holds them."""
    if values.dtype.kind not in "iu":
        return values
    wide = np.dtype(np.int64) if values.dtype.itemsize == 8 else np.promote_types(values.dtype, np.int32)
    return values.astype(wide, copy=False)


def _binned(sc: Any, bank: Bank, columns: dict[str, Any], time: Any, begin: Any, end: Any) -> Any:
    read = {column: columns[f"{bank.path}/{column}"] for column in bank.columns}
    weight = read.get("event_weight")
    if weight is None:
        count = len(next(iter(read.values()))) if read else 0
        weight = np.ones(count, np.float32)
    coords = {}
    if "event_id" in read:
        # As scippnexus has it: numbers of pixels have no unit.
        coords["event_id"] = sc.array(dims=["event"], values=_known(read["event_id"]), unit=None)
    if "event_time_offset" in read:
        offset = _known(read["event_time_offset"])
        coords["event_time_offset"] = sc.array(dims=["event"], values=offset, unit=bank.units)
    table = sc.DataArray(sc.array(dims=["event"], values=_known(weight), unit="counts"), coords=coords)
    shift = begin[0] if len(begin) and len(weight) != bank.events else 0
    return sc.DataArray(
        sc.bins(
            begin=sc.array(dims=["event_time_zero"], values=begin - shift, unit=None),
            end=sc.array(dims=["event_time_zero"], values=end - shift, unit=None),
            dim="event",
            data=table,
        ),
        coords={"event_time_zero": sc.array(dims=["event_time_zero"], values=time, unit="ns")},
    )
