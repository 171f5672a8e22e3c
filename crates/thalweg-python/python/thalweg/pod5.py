"""The reading part of the library pod5 over the engine of thalweg: change the import, and keep the program.

>>> import thalweg.pod5 as pod5
>>> with pod5.Reader("reads.pod5") as reader:
...     for read in reader.reads():
...         print(read.read_id, read.signal.mean(), read.run_info.sample_rate)

Names, arguments and results are those of pod5 0.3.49. POD5 files of all versions have the fields of the newest one,
with the same values in place of absent ones. BLOW5, SLOW5 and FAST5 files and URLs can be read, too; a field that they
lack is None, and a read id that is no UUID is a string. Where it differs:

- A batch has 1000 reads in every file. pod5 gives those of the file, which are 1000 unless the writer chose another
  number.
- `byte_count` of uncompressed signals is in bytes, and `end_reason_index` is always the value of the enumeration.
- Errors are thalweg's; those about reads that a file lacks are also `RuntimeError`, as in pod5.
- There is no access to tables and their rows (`read_table`, `run_info_table`, `signal_table`, `signal_rows`,
  `signal_for_chunk`, `columns`, `set_cached_signal`, `inner_file_reader`, `physical_read_table_version`).
- There is no writer (`Writer`, `SignalType`): convert a file with `thalweg.convert`. The writer of pod5 does not take
  the classes of this module.
- There are no compressed signals (`CompressedRead`, `vbz_compress_signal`, `vbz_decompress_signal`,
  `vbz_decompress_signal_chunked`, `vbz_decompress_signal_into`), and no modules of pod5 such as `pod5.tools`.
- URLs have a path that is a string.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Generator, Iterable, Iterator
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID

import numpy as np

from thalweg._paths import Path as PathOrStr
from thalweg._open import open as _open
from thalweg._optional import needs
from thalweg._pod5_dataset import DatasetReader
from thalweg._pod5_ids import format_read_id_to_str, format_read_ids, load_read_id_iterable, pack_read_ids
from thalweg._pod5_records import ReadRecord, ReadRecordBatch, Rows, Signals, raw_ids, uuid_of
from thalweg._pod5_types import Calibration, EndReason, EndReasonEnum, Pore, Read, RunInfo, ShiftScalePair, run_info
from thalweg.errors import NoFileError, NotFoundError, UnsupportedError, UsageError
from thalweg.reads import Batch, Reads

if TYPE_CHECKING:
    import packaging.version
    import pyarrow  # type: ignore[import-untyped]

__all__ = [
    "Calibration",
    "DatasetReader",
    "EndReason",
    "EndReasonEnum",
    "Pore",
    "Read",
    "Reader",
    "ReadRecord",
    "ReadRecordBatch",
    "RunInfo",
    "ShiftScalePair",
    "Writer",
    "__version__",
    "format_read_id_to_str",
    "format_read_ids",
    "load_read_id_iterable",
    "pack_read_ids",
]

__version__ = "0.3.49"
"""The version of pod5 whose names are here."""

# What that version has, besides.
_NOT_HERE = {
    "CompressedRead",
    "SignalType",
    "api_utils",
    "dataset",
    "pod5_types",
    "reader",
    "signal_tools",
    "tools",
    "vbz_compress_signal",
    "vbz_decompress_signal",
    "vbz_decompress_signal_chunked",
    "vbz_decompress_signal_into",
    "writer",
}

# Reads of a batch: what pod5 writes.
_BATCH_READS = 1000

# The version of POD5 whose fields all files have here, and that of its Reads table.
_FIELDS_OF = "0.3.48"
_TABLE_OF = 7


def __getattr__(name: str) -> NoReturn:
    if name in _NOT_HERE:
        raise AttributeError(f"thalweg.pod5 has no {name}, which pod5 has; help(thalweg.pod5) lists the differences")
    raise AttributeError(f"module 'thalweg.pod5' has no attribute {name!r}")


class MissingReadsError(NotFoundError, RuntimeError):
    """A file does not have reads that were asked for."""


class Reader:
    """Reads of one file.

    Args:
        path: A POD5, BLOW5, SLOW5 or FAST5 file, or its URL.

    Raises:
        thalweg.IoError: The system refuses it.
        thalweg.FormatError: It is no file of reads, or it is damaged.
    """

    def __init__(self, path: PathOrStr) -> None:
        name = os.fspath(path)
        self._path = name if "://" in name else Path(name)
        self._opened: Reads | None = _file_of_reads(name)
        # What takes time or memory is read when it is needed.
        self._known: dict[str, Any] = {}

    @property
    def _files(self) -> Reads:
        if self._opened is None:
            raise RuntimeError(f"{self._path}: the reader of this file was closed")
        return self._opened

    @property
    def _pod5(self) -> tuple[str, str, str, bool, int] | None:
        if "pod5" not in self._known:
            self._known["pod5"] = self._files._set.pod5(0)
        return self._known["pod5"]  # type: ignore[no-any-return]

    @property
    def _runs(self) -> list[RunInfo]:
        if "runs" not in self._known:
            self._known["runs"] = list(map(run_info, self._files._set.runs(0)))
        return self._known["runs"]  # type: ignore[no-any-return]

    def _ids(self) -> list[str]:
        if "ids" not in self._known:
            self._known["ids"] = self._files.ids
        return self._known["ids"]  # type: ignore[no-any-return]

    def _places(self) -> dict[str, int]:
        """The place of each read in the file."""
        if "places" not in self._known:
            self._known["places"] = {read_id: place for place, read_id in enumerate(self._ids())}
        return self._known["places"]  # type: ignore[no-any-return]

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._opened = None

    def __iter__(self) -> Generator[ReadRecord, None, None]:
        yield from self.reads()

    @property
    def path(self) -> Path | str:
        """The path; a string for a URL."""
        return self._path

    @property
    def num_reads(self) -> int:
        """The number of reads."""
        return len(self._files)

    @property
    def read_ids(self) -> list[str]:
        """The ids of all reads, in the order of the file."""
        return list(self._ids())

    @property
    def read_ids_raw(self) -> pyarrow.ChunkedArray:
        """The ids of all reads, in 16 bytes each. It needs pyarrow."""
        ids = self._ids()
        parts = [ids[start : start + _BATCH_READS] for start in range(0, len(ids), _BATCH_READS)]
        pyarrow = needs("pyarrow", "arrow")
        return pyarrow.chunked_array(map(raw_ids, parts), pyarrow.binary(16))

    @property
    def file_identifier(self) -> UUID:
        """The identifier of a POD5 file; None of another."""
        return UUID(self._pod5[0]) if self._pod5 else None  # type: ignore[return-value]

    @property
    def original_file_version(self) -> packaging.version.Version:
        """The version of POD5 that the file was written in; None of another format. It needs packaging."""
        known = self._pod5
        version: Any = needs("packaging.version", "pod5").Version(known[1]) if known else None
        return version  # type: ignore[no-any-return]

    file_version_pre_migration = original_file_version

    @property
    def logical_file_version(self) -> packaging.version.Version:
        """The version of POD5 whose fields the reads have."""
        original = self.original_file_version
        return original and max(original, type(original)(_FIELDS_OF))

    file_version = logical_file_version

    @property
    def logical_read_table_version(self) -> int:
        """The version of the Reads table whose fields the reads of a POD5 file have; None of another."""
        return _TABLE_OF if self._pod5 else None  # type: ignore[return-value]

    reads_table_version = logical_read_table_version

    @property
    def writing_software(self) -> str:
        """The program that wrote a POD5 file; None of another."""
        return self._pod5[2] if self._pod5 else None  # type: ignore[return-value]

    @property
    def is_vbz_compressed(self) -> bool:
        """Whether signals of a POD5 file are compressed; None of another."""
        return self._pod5[3] if self._pod5 else None  # type: ignore[return-value]

    @property
    def signal_batch_row_count(self) -> int:
        """The rows of a batch of signals of a POD5 file; None of another."""
        return self._pod5[4] if self._pod5 else None  # type: ignore[return-value]

    @property
    def batch_count(self) -> int:
        """The number of batches of reads."""
        return -(-self.num_reads // _BATCH_READS)

    def get_batch(self, index: int) -> ReadRecordBatch:
        """A batch of reads."""
        if not 0 <= index < self.batch_count:
            raise UsageError(f"{self._path}: batch {index}, but there are {self.batch_count} batches")
        return next(self.read_batches(batch_selection=[index]))

    def read_batches(
        self,
        selection: list[str] | None = None,
        batch_selection: Iterable[int] | None = None,
        missing_ok: bool = False,
        preload: set[str] | None = None,
    ) -> Generator[ReadRecordBatch, None, None]:
        """The reads in batches: all, those with the ids of `selection`, or the batches with some numbers.

        Reads of a selection have the order of the file, and batches without any of them are left out.

        Args:
            selection: Read ids.
            batch_selection: Numbers of batches.
            missing_ok: Whether ids may be unknown.
            preload: As in `reads`.
        """
        if selection is not None and batch_selection is not None:
            raise UsageError("a selection of reads and one of batches: expected one of them")
        size = _BATCH_READS
        if batch_selection is not None:
            for index in batch_selection:
                ids = self._ids()[index * size : (index + 1) * size]
                yield ReadRecordBatch(self, list(self._records(ids, preload)))
            return
        places = count() if selection is None else self._in_file(list(selection), missing_ok)
        records = self.reads(selection, missing_ok, preload)
        for _, part in groupby(zip(places, records), key=lambda one: one[0] // size):
            yield ReadRecordBatch(self, [read for _, read in part])

    def reads(
        self, selection: Iterable[str] | None = None, missing_ok: bool = False, preload: set[str] | None = None
    ) -> Generator[ReadRecord, None, None]:
        """The reads in the order of the file: all, or those with the ids of `selection`.

        Args:
            selection: Read ids.
            missing_ok: Whether ids may be unknown.
            preload: As in pod5. Signals are decoded ahead in any case once the program takes one.

        Raises:
            MissingReadsError: The file does not have a read.
        """
        if selection is None:
            yield from self._records(None, preload)
            return
        wanted = list(selection)
        if len(wanted) == 1:
            yield from self._one(wanted[0], missing_ok, preload)
            return
        ids = self._ids()
        yield from self._records([ids[place] for place in self._in_file(wanted, missing_ok)], preload)

    def _one(self, read_id: str, missing_ok: bool, preload: Collection[str] | None) -> Iterator[ReadRecord]:
        try:
            row = self._files._set.row(self._normal(read_id))
        except NotFoundError as error:
            if missing_ok:
                return
            raise MissingReadsError(str(error), error.file) from None
        rows = Rows(Batch(row, self._files.paths), 0, None)
        yield ReadRecord(self, rows, 0, _is_preloaded(preload))

    def _normal(self, read_id: object) -> str:
        """A read id as the file has it. Those of POD5 are UUIDs, which can be written in several ways."""
        return str(uuid_of(str(read_id))) if self._pod5 else str(read_id)

    def _in_file(self, selection: list[str], missing_ok: bool) -> list[int]:
        """The places of some reads, in the order of the file."""
        known = self._places()
        found = [known.get(self._normal(read_id)) for read_id in selection]
        missing = [read_id for read_id, place in zip(selection, found) if place is None]
        if missing and not missing_ok:
            some = ", ".join(map(str, missing[:3])) + (", ..." if len(missing) > 3 else "")
            raise MissingReadsError(
                f"{self._path}: lacks {len(missing)} of {len(selection)} reads: {some}; check the ids, or allow it by "
                "missing_ok=True",
                str(self._path),
            )
        return sorted(place for place in found if place is not None)

    def _records(self, ids: list[str] | None, preload: Collection[str] | None) -> Iterator[ReadRecord]:
        """Reads in an order that the engine keeps."""
        reads = self._files
        signals = Signals(reads, ids)
        is_preloaded = _is_preloaded(preload)
        first = 0
        for rows in self._rows(reads, ids, signals):
            rows.first = first
            for row in range(len(rows.batch)):
                yield ReadRecord(self, rows, row, is_preloaded)
            first += len(rows.batch)

    def _rows(self, reads: Reads, ids: list[str] | None, signals: Signals) -> Iterator[Rows]:
        if self._pod5:
            # Fields are in a table of their own.
            for batch in reads.batches(ids, signal=False):
                yield Rows(batch, 0, signals)
            return
        while (whole := signals.next()) is not None:
            # Reads that the program keeps must not keep all signals.
            names = [name for name in whole.columns if name != "signal"]
            rows = Rows(Batch(whole._rows.select(names), reads.paths), 0, signals)
            rows.lengths = np.diff(whole._column("signal")[0])
            yield rows


class Writer:
    """pod5 writes, thalweg does not."""

    def __init__(self, *_: object, **__: object) -> None:
        raise UnsupportedError(
            "thalweg.pod5 has no writer: read and write with the library pod5, or convert files with thalweg.convert"
        )


def _file_of_reads(name: str) -> Reads:
    if os.path.isdir(name):
        raise NoFileError(f"{name}: found a folder, expected a file; a DatasetReader reads folders", file=name)
    opened = _open(name)
    if not isinstance(opened, Reads):
        what = type(opened).__name__
        raise UnsupportedError(f"{name}: found {what}, expected a file of reads; thalweg.open reads it")
    if len(opened.paths) != 1:
        raise UsageError(f"{name}: found {len(opened.paths)} files, expected one; a DatasetReader reads several")
    return opened


def _is_preloaded(preload: Collection[str] | None) -> bool:
    return bool(preload) and "samples" in preload  # type: ignore[operator]
