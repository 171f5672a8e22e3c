"""Scientific files become numpy and Arrow arrays, as fast as the machine allows and in bounded memory.

>>> import thalweg
>>> reads = thalweg.open("reads.blow5")
>>> for read in reads:
...     print(read.id, read.signal.mean())
"""

from __future__ import annotations

from thalweg._open import open
from thalweg.arrays import Array, Arrays
from thalweg.errors import (
    Error,
    ExistsError,
    FormatError,
    IoError,
    NoAnswerError,
    NoFileError,
    NoPermissionError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)
from thalweg.network import Neighbors, Network
from thalweg.reads import Batch, Batches, Calibration, Read, Reads

__all__ = [
    "Array",
    "Arrays",
    "Batch",
    "Batches",
    "Calibration",
    "Error",
    "ExistsError",
    "FormatError",
    "IoError",
    "Neighbors",
    "Network",
    "NoAnswerError",
    "NoFileError",
    "NoPermissionError",
    "NotFoundError",
    "Read",
    "Reads",
    "UnsupportedError",
    "UsageError",
    "open",
]
