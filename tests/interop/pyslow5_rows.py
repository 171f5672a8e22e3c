"""Prints one JSON line per read with every field that pyslow5 gives, auxiliary fields included."""

import hashlib
import json
import sys

import pyslow5

file = pyslow5.Open(sys.argv[1], "r")
for read in file.seq_reads(aux="all" if file.get_aux_names() else None):
    signal = read.pop("signal")
    read["sha256"] = hashlib.sha256(signal.astype("<i2").tobytes()).hexdigest()
    # repr: NaN is equal to itself, and floats keep every bit
    print(json.dumps({key: repr(value) for key, value in sorted(read.items())}))
