"""NeXus files of events as the sources' own writers lay them out, and what numpy makes of them."""

import h5py
import numpy as np

STARTED = "2026-03-01T12:30:00.250000000-05:00"
# That, in UTC.
EPOCH = np.datetime64("2026-03-01T17:30:00.25", "ns")


class Bank:
    """Events of a bank, as they should come out of a file."""

    def __init__(self, events: int, pulses: int, seed: int):
        rng = np.random.default_rng(seed)
        self.ids = rng.integers(seed * 1000, seed * 1000 + 999, events)
        # In microseconds, with a peak.
        self.flights = rng.gamma(4.0, 2000.0, events)
        cuts = np.sort(rng.integers(0, events + 1, max(pulses - 1, 0)))
        self.index = np.concatenate([[0], cuts]).astype("u8")[:pulses]
        # 60 Hz, with a pause.
        steps = np.full(pulses, 1 / 60)
        steps[pulses // 2 : pulses // 2 + 1] = 7.5
        self.zeros = np.cumsum(steps) - 1 / 60 if pulses else steps


def sns(path, banks: dict[str, Bank], libver="earliest", **storage):
    """SNS: floating-point microseconds, seconds since the attribute `offset`; strings of a fixed size, in lists of one."""
    with h5py.File(path, "w", libver=libver) as file:
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = np.bytes_("NXentry")
        entry["start_time"] = np.array([STARTED.encode()])
        for name, bank in banks.items():
            group = entry.create_group(name)
            group.attrs["NX_class"] = np.bytes_("NXevent_data")
            group.create_dataset("event_id", data=bank.ids.astype("<u4"), **storage)
            offsets = group.create_dataset("event_time_offset", data=bank.flights.astype("<f4"), **storage)
            offsets.attrs["units"] = np.array([b"microsecond"])
            group["event_index"] = bank.index
            zeros = group.create_dataset("event_time_zero", data=bank.zeros)
            zeros.attrs["units"] = np.array([b"second"])
            zeros.attrs["offset"] = np.array([STARTED.encode()])
            group["total_counts"] = np.array([len(bank.ids)], "u8")
            # The same group by another name, further down.
            entry.require_group("instrument")[name.removesuffix("_events")] = group


def ess(path, banks: dict[str, Bank], libver="latest", cues=True, **storage):
    """ESS: integral nanoseconds since 1970; strings of any length; cues."""
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["NX_class"] = "NXroot"
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        entry["start_time"] = STARTED
        for name, bank in banks.items():
            group = entry.create_group(f"instrument/{name}/{name}_events")
            group.attrs["NX_class"] = "NXevent_data"
            group.create_dataset("event_id", data=bank.ids.astype("<i4"), **storage)
            offsets = group.create_dataset("event_time_offset", data=nanoseconds(bank), **storage)
            offsets.attrs["units"] = "ns"
            group.create_dataset("event_index", data=bank.index.astype("<i8"), maxshape=(None,), chunks=(64,))
            zeros = group.create_dataset("event_time_zero", data=times(bank).astype("<u8"), maxshape=(None,), chunks=(64,))
            zeros.attrs["units"] = "ns"
            if cues:
                every = slice(0, None, 7)
                group["cue_index"] = bank.index[every].astype("<u4")
                cue = group.create_dataset("cue_timestamp_zero", data=times(bank).astype("<u8")[every])
                cue.attrs["units"] = "ns"


def nanoseconds(bank: Bank) -> np.ndarray:
    return np.round(bank.flights * 1000).astype("<i4")


def times(bank: Bank) -> np.ndarray:
    """The time of each pulse."""
    return EPOCH.astype("<M8[ns]") + np.round(bank.zeros * 1e9).astype("i8")


def scattered(path, banks: dict[str, Bank], chunk=256, seed=0):
    """As a run writes: chunks of many banks in the order in which they came."""
    with h5py.File(path, "w") as file:
        parts = []
        for name, bank in banks.items():
            group = file.create_group(f"entry/{name}")
            group.attrs["NX_class"] = "NXevent_data"
            for column, data in (("event_id", bank.ids.astype("<u4")), ("event_time_offset", bank.flights.astype("<f4"))):
                dataset = group.create_dataset(column, data.shape, data.dtype, chunks=(chunk,), maxshape=(None,))
                parts += [(at, dataset, data) for at in range(0, len(data), chunk)]
            group["event_index"], group["event_time_zero"] = bank.index, bank.zeros
            group["event_time_zero"].attrs["offset"] = STARTED
        order = np.random.default_rng(seed).permutation(len(parts))
        for at, dataset, data in (parts[i] for i in order):
            dataset[at : at + chunk] = data[at : at + chunk]
            file.flush()


class Rows:
    """The rows of a table of events."""

    def __init__(self, names, ids, flights, times, pulses):
        self.bank, self.event_id, self.event_time_offset, self.pulse_time, self.pulse = names, ids, flights, times, pulses


def rows(name: str, bank: Bank, flights: np.ndarray, ids: np.ndarray, where=lambda pulse, time, flight: pulse >= 0) -> Rows:
    """The events of a bank for which a condition on pulse, seconds since the first pulse and microseconds holds."""
    pulse = np.searchsorted(bank.index, np.arange(len(ids)), side="right").astype("i8") - 1
    time = times(bank)[pulse] if len(bank.zeros) else np.zeros(len(ids), "<M8[ns]")
    scale = 1000 if flights.dtype.kind == "i" else 1
    keep = where(pulse, (time - times(bank)[0]).astype("i8") / 1e9 if len(bank.zeros) else 0, flights.astype("f8") / scale)
    return Rows(np.full(keep.sum(), name), ids[keep], flights[keep], time[keep], pulse[keep])
