"""Sequences with qualities: FASTQ, plain, gzip or BGZF."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg
from thalweg._paths import Path, absolute, shown
from thalweg._stream import Stream, table_of
from thalweg.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

_NAME = re.compile(r"\.(?:fastq|fq)(\.gz|\.bgz|\.bgzf)?$")
_COLUMNS = ("name", "description", "sequence", "quality_scores")


class FastqRecord(NamedTuple):
    """A record of a FASTQ file."""

    name: str
    """What follows `@`, up to the first space or tab."""
    description: str | None
    """What follows the name in its line; None if nothing does."""
    sequence: str
    """The bases."""
    quality_scores: str
    """The qualities as in the file: a character for each base, with the code 33 + Phred quality."""

    @property
    def qualities(self) -> NDArray[np.uint8]:
        """The Phred quality of each base. The array is your own."""
        return np.frombuffer(self.quality_scores.encode("ascii"), np.uint8) - np.uint8(33)


class FastqBatch:
    """Some records as columns. It is also Arrow data: `pyarrow.record_batch(batch)`, `polars.DataFrame(batch)`."""

    __slots__ = ("_rows",)

    def __init__(self, batch: _thalweg.Batch) -> None:
        self._rows = batch

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[FastqRecord]:
        return map(FastqRecord, *map(self._rows.column, _COLUMNS))

    def __repr__(self) -> str:
        return f"<thalweg.FastqBatch of {len(self)} records>"

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._rows.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._rows.__arrow_c_schema__()


class FastqBatches(Stream):
    """Records in batches, once. It is also a stream of Arrow data: `pyarrow.table(batches)`, `polars.DataFrame(batches)`."""

    def __iter__(self) -> Iterator[FastqBatch]:
        return map(FastqBatch, self._stream)


class Count(NamedTuple):
    """How many reads and bases a file has."""

    reads: int
    """Records."""
    bases: int
    """Bases of all records."""


class Lengths(NamedTuple):
    """Exact statistics of the lengths of reads, in bases."""

    n50: int
    """Reads of at least this length have half of all bases."""
    min: int
    """The shortest length."""
    median: int
    """The middle length; the lower one of two."""
    mean: float
    """The mean length."""
    max: int
    """The longest length."""


class Summary(NamedTuple):
    """Figures of a file."""

    reads: int
    """Records."""
    bases: int
    """Bases of all records."""
    gc: int
    """Bases that are G or C."""
    lengths: Lengths | None
    """Lengths of reads; None without reads."""
    qualities: NDArray[np.uint64]
    """How many bases have each Phred quality, from 0 to 93."""

    @property
    def mean_quality(self) -> float:
        """The Phred quality of the mean probability of an error; not a number without bases."""
        errors = (self.qualities * 10.0 ** (np.arange(94) / -10)).sum()
        return float(-10 * np.log10(errors / self.bases) + 0.0) if self.bases else float("nan")


class FastqWritten(NamedTuple):
    """What was written."""

    reads: int
    """Records."""
    bases: int
    """Bases of all records."""
    text_bytes: int
    """Bytes of the text."""
    bytes: int
    """Bytes of the file."""


def _reopened(path: str, options: dict[str, Any]) -> Fastq:
    return Fastq(_thalweg.open([path], options), options)  # type: ignore[arg-type]


class Fastq:
    """A FASTQ file. Records have four lines; they come in the order of the file.

    It can be pickled: the file is opened again where it is loaded.

    >>> fastq = thalweg.open("r.fastq.gz")
    >>> for record in fastq:
    ...     print(record.name, len(record.sequence), record.qualities.mean())
    """

    def __init__(self, file: _thalweg.Fastq, options: dict[str, Any] | None = None) -> None:
        self._file = file
        # Those of a file that was opened without a path are None.
        self._options = options
        if file.note is not None:
            warnings.warn(file.note, RuntimeWarning, stacklevel=3)

    def __reduce__(self) -> Any:
        if self._options is None or self.path is None:
            raise UnsupportedError("pickling needs a path or URL, and the FASTQ file was opened without one")
        return _reopened, (absolute(self.path), self._options)

    @property
    def path(self) -> Path | None:
        """The file: `pathlib.Path`, or text for a URL; None if it was opened without one."""
        path = self._file.path
        return None if path is None else shown(path)

    @property
    def compression(self) -> str:
        """`"plain"`, `"gzip"` or `"BGZF"`. BGZF is decompressed by all threads, other gzip by one."""
        return self._file.compression

    def __iter__(self) -> Iterator[FastqRecord]:
        """All records."""
        for batch in self.batches():
            yield from batch

    def batches(self) -> FastqBatches:
        """All records as batches of columns, of about half a MiB of text each.

        The columns are `name`, `description` (null where there is none), `sequence` and `quality_scores`, all text.

        Raises:
            thalweg.FormatError: A record violates the format. The message has its number and offset in the text.

        >>> for batch in fastq.batches():
        ...     record_batch = pyarrow.record_batch(batch)
        """
        return FastqBatches(self._file.batches())

    def to_table(self) -> pyarrow.Table:
        """All records as one Arrow table in memory. It needs pyarrow.

        >>> fastq.to_table().to_pandas()
        """
        return table_of(self.batches())

    def count(self) -> Count:
        """The number of reads and bases. All records are checked for it.

        >>> fastq.count().reads
        """
        return Count(*self._file.count())

    def summary(self) -> Summary:
        """Reads, bases, lengths, GC and qualities of all records.

        >>> fastq.summary().lengths.n50
        """
        reads, bases, gc, lengths, qualities = self._file.summary()
        return Summary(reads, bases, gc, None if lengths is None else Lengths(*lengths), np.asarray(qualities))

    def convert(
        self,
        output: Path,
        *,
        compression: str | None = None,
        level: int = 6,
        verify: bool = False,
        replace: bool = False,
    ) -> FastqWritten:
        """Writes the same text in another compression to a file, which appears when it is whole.

        Args:
            output: The file to write.
            compression: `"none"`, `"bgzf"`, or `"gzip"` for one member of gzip, which few programs need. By default the
                name says it: BGZF if it ends in .gz, .bgz or .bgzf, else none.
            level: The level of the compression, from 0 to 12 for BGZF, and to 9 for gzip.
            verify: Whether BGZF is decompressed again and compared with the text before it is written.
            replace: Whether to replace the output if it exists.

        Raises:
            thalweg.ExistsError: The output exists.
            thalweg.FormatError: A record violates the format.

        >>> fastq.convert("blocks.fastq.gz", level=9)
        """
        name = os.fspath(output)
        if compression is None:
            match = _NAME.search(name.lower())
            if match is None:
                raise UsageError(f"{name}: expected a name that ends in .fastq or .fq, and .gz for BGZF; or a compression")
            compression = "bgzf" if match[1] else "none"
        return FastqWritten(*self._file.convert(name, compression, level, verify, replace))

    def __repr__(self) -> str:
        return f"<thalweg.Fastq {self.path or ''} ({self.compression})>"
