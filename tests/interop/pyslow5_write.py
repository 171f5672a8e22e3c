"""Writes a BLOW5 file with pyslow5: two read groups, its 16 auxiliary fields, some of them missing."""

import sys

import numpy
import pyslow5

file = pyslow5.Open(sys.argv[1], "w", rec_press="zstd", sig_press="svb-zd")
for group in range(2):
    header, end_reasons = file.get_empty_header(aux=True)
    header = {name: f"{name}_{group}" for name in header}
    assert file.write_header(header, read_group=group, end_reason_labels=end_reasons) == 0

generator = numpy.random.default_rng(7)
for number in range(6):
    record, fields = file.get_empty_record(aux=True)
    signal = generator.integers(300, 700, size=1000 + number, dtype=numpy.int16)
    record.update(
        read_id=f"read_{number}",
        read_group=number % 2,
        digitisation=8192.0,
        offset=-231.0,
        range=1480.3399658203125,
        sampling_rate=4000.0,
        len_raw_signal=len(signal),
        signal=signal,
    )
    fields.update(
        channel_number=str(number),
        median_before=180.10000610351562 + number,
        read_number=number,
        start_mux=number % 4 + 1,
        start_time=2**40 + number,
        end_reason=number % len(end_reasons),
        tracked_scaling_shift=None if number % 2 else 0.1,
        tracked_scaling_scale=0.2,
        predicted_scaling_shift=0.3,
        predicted_scaling_scale=0.4,
        num_reads_since_mux_change=number,
        time_since_mux_change=1.5,
        num_minknow_events=10 * number,
        open_pore_level=None if number % 3 else 210.25,
        expected_open_pore_level=0.5,
        selected_read_level=0.25,
    )
    assert file.write_record(record, fields) == 0
file.close()
