"""Writes reads into new files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Union

from thalweg import _thalweg
from thalweg._names import ReadId
from thalweg._open import open
from thalweg._paths import Path
from thalweg.errors import UsageError
from thalweg.reads import Reads


class Lost(NamedTuple):
    """Something that the new format cannot hold."""

    what: str
    """A description."""
    reads: int | None
    """The number of reads concerned; None for a loss of the header."""
    first: str | None
    """The id of the first of these reads."""


class Converted(NamedTuple):
    """What a conversion wrote."""

    reads: int
    """Reads written."""
    samples: int
    """Samples written."""
    lost: list[Lost]
    """What the new format cannot hold; empty unless `lossy` is true."""
    missing: list[str]
    """The ids that no file has; empty unless `missing_ok` is true."""


def convert(
    source: Union[Reads, Path, Sequence[Path]],
    output: Path,
    *,
    format: str | None = None,
    ids: Iterable[ReadId] | None = None,
    where: str | None = None,
    missing_ok: bool = False,
    record: str | None = None,
    signal: str | None = None,
    level: int | None = None,
    lossy: bool = False,
    verify: bool = False,
    replace: bool = False,
) -> Converted:
    """Writes reads to one file of any format, which appears when it is whole.

    Many files become one. Without `ids` and `where` all reads are written.

    Args:
        source: The reads, or their paths.
        output: The file to write. Its name ends in .slow5, .blow5, .pod5 or .fast5.
        format: `"slow5"`, `"blow5"`, `"pod5"` or `"fast5"`, if the name does not say it.
        ids: Only these reads, in their order.
        where: Only reads for which a condition holds: `"samples >= 5000 and end_reason == signal_positive"`.
        missing_ok: Whether ids that no file has are left out. If not, they are an error.
        record: BLOW5: the compression of each record, `"none"`, `"zlib"` or `"zstd"`.
        signal: The compression of each signal. BLOW5: `"none"`, `"svb-zd"` or `"ex-zd"`; POD5: `"none"` or `"vbz"`; FAST5:
            `"none"`, `"zlib"` or `"vbz"`.
        level: POD5 and FAST5: the level of the compression.
        lossy: Whether to continue if the format cannot hold everything. If not, that is an error.
        verify: Whether to read the new file and compare it before it gets its name.
        replace: Whether to replace the output if it exists.

    Raises:
        thalweg.ExistsError: The output exists.
        thalweg.NotFoundError: No file has one of the ids.
        thalweg.UnsupportedError: The format cannot hold everything.

    >>> thalweg.convert("run/", "run.blow5", where="samples >= 5000")
    """
    reads = source if isinstance(source, Reads) else open(source)
    if not isinstance(reads, Reads):
        raise UsageError(f"{source}: found {type(reads).__name__}, expected files of reads")
    how = {
        "format": format,
        "ids": reads._inside(ids),
        "condition": where,
        "missing_ok": missing_ok,
        "record": record,
        "signal": signal,
        "level": level,
        "lossy": lossy,
        "verify": verify,
        "replace": replace,
    }
    written, samples, lost, missing = _thalweg.convert(reads._set, os.fspath(output), how)
    return Converted(written, samples, [Lost(*one) for one in lost], missing)
