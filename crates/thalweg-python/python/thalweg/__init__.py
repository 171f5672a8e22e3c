"""Scientific files become numpy and Arrow arrays, as fast as the machine allows and in bounded memory.

>>> import thalweg
>>> reads = thalweg.open("reads.blow5")
>>> for read in reads:
...     print(read.id, read.signal.mean())
"""

from __future__ import annotations

from thalweg._command import bench, command, compare
from thalweg._convert import Converted, Lost, convert
from thalweg._networks import create_network, import_network, open_network
from thalweg._open import open
from thalweg._progress import progress
from thalweg._thalweg import __version__
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
from thalweg.events import Bank, BankEvents, EventBatch, EventBatches, Events, Log, Pulses
from thalweg.fastq import Fastq, FastqBatch, FastqBatches, FastqRecord
from thalweg.network import Changed, Checked, Neighbors, Network, Population, Storage, Table, Transaction
from thalweg.reads import Batch, Batches, Calibration, Read, Reads, Scan

__all__ = [
    "Array",
    "Arrays",
    "Bank",
    "BankEvents",
    "Batch",
    "Batches",
    "Calibration",
    "Changed",
    "Checked",
    "Converted",
    "Error",
    "EventBatch",
    "EventBatches",
    "Events",
    "ExistsError",
    "Fastq",
    "FastqBatch",
    "FastqBatches",
    "FastqRecord",
    "FormatError",
    "IoError",
    "Log",
    "Lost",
    "Neighbors",
    "Network",
    "NoAnswerError",
    "NoFileError",
    "NoPermissionError",
    "NotFoundError",
    "Population",
    "Pulses",
    "Read",
    "Reads",
    "Scan",
    "Storage",
    "Table",
    "Transaction",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "bench",
    "command",
    "compare",
    "convert",
    "create_network",
    "import_network",
    "open",
    "open_network",
    "progress",
]
