"""Every value of every read of a POD5 file as the POD5 library gives it, a line of JSON each: the runs, then the reads.

Usage: pod5_rows.py FILE
"""

import hashlib
import json
import sys

import pod5


def plain(value):
    """A value as JSON has it: the bits of floats as hexadecimal, so that NaN equals NaN and nothing is rounded."""
    if isinstance(value, float):
        return "nan" if value != value else value.hex()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, (dict, list, tuple)):
        items = value.items() if isinstance(value, dict) else value
        return [[str(k), str(v)] for k, v in items]
    return value


def run(info) -> dict:
    return {name: plain(value) for name, value in vars(info).items()}


def read(record) -> dict:
    samples = record.signal
    return {
        "read_id": str(record.read_id),
        "run": record.run_info.acquisition_id,
        "n": len(samples),
        "sum": int(samples.astype("int64").sum()),
        "sha256": hashlib.sha256(samples.astype("<i2").tobytes()).hexdigest(),
        "num_samples": record.num_samples,
        "channel": record.pore.channel,
        "well": record.pore.well,
        "pore_type": record.pore.pore_type,
        "offset": plain(record.calibration.offset),
        "scale": plain(record.calibration.scale),
        "digitisation": record.calibration_digitisation,
        "end_reason": record.end_reason.name,
        "forced": record.end_reason.forced,
        "read_number": record.read_number,
        "start_sample": record.start_sample,
        "median_before": plain(record.median_before),
        "num_minknow_events": record.num_minknow_events,
        "tracked": [plain(record.tracked_scaling.shift), plain(record.tracked_scaling.scale)],
        "predicted": [plain(record.predicted_scaling.shift), plain(record.predicted_scaling.scale)],
        "num_reads_since_mux_change": record.num_reads_since_mux_change,
        "time_since_mux_change": plain(record.time_since_mux_change),
        "open_pore_level": plain(record.open_pore_level),
        "expected_open_pore_level": plain(record.expected_open_pore_level),
        "selected_read_level": plain(record.selected_read_level),
    }


with pod5.Reader(sys.argv[1]) as reader:
    runs = {}
    for record in reader.reads():
        runs.setdefault(record.run_info.acquisition_id, run(record.run_info))
    for info in runs.values():
        print(json.dumps(info))
    for record in reader.reads():
        print(json.dumps(read(record)))
