"""The reading part of the library pyslow5 over the engine of thalweg: change the import, and keep the program.

>>> import thalweg.slow5 as pyslow5
>>> s5 = pyslow5.Open("reads.blow5", "r")
>>> for read in s5.seq_reads(pA=True, aux="all"):
...     print(read["read_id"], read["signal"].mean(), read["channel_number"])

Names, arguments and results are those of pyslow5 1.5. POD5 and FAST5 files and URLs can be read, too. Where it differs:

- Damage and unknown arguments are errors. pyslow5 logs the first and ends the reading, and some of the others end
  Python.
- `threads` and `batchsize` have no effect: the engine uses all cores, in bounded memory.
- There is no writing: `thalweg.convert` writes SLOW5 and BLOW5 files.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np

from thalweg._open import open as _open
from thalweg.errors import NotFoundError, UnsupportedError, UsageError
from thalweg.reads import Read, Reads

__all__ = ["Open"]

_log = logging.getLogger(__name__)

# The numbers that slow5lib gives to types: those of arrays are 12 more.
_SCALARS = ["int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "float", "double"]
_SCALARS += ["char", "enum"]
_TYPES = {name: number for number, name in enumerate(_SCALARS + [f"{name}*" for name in _SCALARS])}


class _Field:
    """An auxiliary field, and how its values look in pyslow5."""

    def __init__(self, name: str, kind: str, labels: list[str]) -> None:
        self.name = name
        self.kind = kind
        self.labels = labels
        self._codes = {label: code for code, label in enumerate(labels)}
        # SLOW5 writes these in place of missing values.
        self._missing: Any = 255 if kind == "enum" else 0 if kind == "char" else "" if kind == "char*" else math.nan
        if "int" in kind:
            self._missing = int(np.iinfo(kind.rstrip("*").removesuffix("_t")).max)

    def of(self, read: Read) -> Any:
        value = read._batch._value(self.name, read._row)
        if self.kind == "char*":
            return self._missing if value is None else value
        if self.kind.endswith("*"):
            return [] if value is None else [self._codes[one] for one in value] if self._codes else value.tolist()
        if value is None:
            return self._missing
        return ord(value) if self.kind == "char" else self._codes[value] if self._codes else value


class Open:
    """A file of reads.

    Args:
        path: A SLOW5, BLOW5, POD5 or FAST5 file, or its URL.
        mode: `"r"`.
        rec_press: Without effect.
        sig_press: Without effect.
        DEBUG: Without effect.

    Raises:
        thalweg.UnsupportedError: It is to be written.
        thalweg.IoError: The system refuses it.
        thalweg.FormatError: It is no file of reads, or it is damaged.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: str = "r",
        rec_press: str = "zlib",
        sig_press: str = "svb_zd",
        DEBUG: int = 0,
    ) -> None:
        self._name = os.fspath(path)
        if mode in ("w", "a"):
            raise UnsupportedError(
                f"{self._name}: thalweg.slow5 does not write, mode {mode!r}; write with pyslow5, or convert a file "
                "with thalweg.convert"
            )
        if mode != "r":
            raise UsageError(f"{self._name}: mode {mode!r}, expected 'r'")
        opened = _open(self._name)
        if not isinstance(opened, Reads) or len(opened.paths) != 1:
            raise UnsupportedError(f"{self._name}: expected one file of reads; thalweg.open reads other things")
        self._opened: Reads | None = opened
        self._fields = [_Field(*one) for one in opened._set.fields(0)]
        self._groups = opened.read_groups()
        self._sequence: Iterator[Read] = iter(opened)

    @property
    def _reads(self) -> Reads:
        if self._opened is None:
            raise UsageError(f"{self._name}: the file was closed")
        return self._opened

    def __enter__(self) -> Open:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._opened = None
        self._sequence = iter(())

    def _wanted(self, aux: str | Iterable[str] | None) -> tuple[list[_Field], list[str]]:
        """The auxiliary fields that are asked for, and names that are none."""
        if aux is None:
            return [], []
        if aux == "all":
            return self._fields, []
        names = [aux] if isinstance(aux, str) else list(aux)
        unknown = [name for name in names if name not in self.get_aux_names()]
        for name in unknown:
            _log.warning("%s: no auxiliary field %r", self._name, name)
        return [one for one in self._fields if one.name in names], unknown

    @staticmethod
    def _shown(read: Read, pA: bool, wanted: tuple[list[_Field], list[str]]) -> dict[str, Any]:
        """A read as pyslow5 has it."""
        of = read.calibration
        # pyslow5 rounds as this package does.
        signal: Any = read.signal_pa if pA else read.signal.copy()
        shown = {
            "read_id": read.id,
            "read_group": read.read_group,
            "digitisation": of.digitisation,
            "offset": of.offset,
            "range": of.range,
            "sampling_rate": read.sampling_rate,
            "len_raw_signal": len(signal),
            "signal": signal,
        }
        fields, unknown = wanted
        for one in fields:
            shown[one.name] = one.of(read)
        shown.update(dict.fromkeys(unknown))
        return shown

    def seq_reads(
        self, pA: bool = False, aux: str | Iterable[str] | None = None
    ) -> Generator[dict[str, Any], None, None]:
        """The reads that follow in the file. As in pyslow5, all calls share one position: each read comes once.

        Args:
            pA: Whether the signal is in picoampere (float32), or as it was digitised (int16).
            aux: The names of auxiliary fields, one name, or `"all"`. An unknown name gives None.
        """
        wanted = self._wanted(aux)
        self._reads  # noqa: B018
        for read in self._sequence:
            yield self._shown(read, pA, wanted)

    def seq_reads_multi(
        self, threads: int = 4, batchsize: int = 4096, pA: bool = False, aux: str | Iterable[str] | None = None
    ) -> Generator[dict[str, Any], None, None]:
        """What `seq_reads` gives."""
        return self.seq_reads(pA, aux)

    def get_read(
        self, read_id: str, pA: bool = False, aux: str | Iterable[str] | None = None
    ) -> dict[str, Any] | None:
        """The read with an id; None if there is none."""
        wanted = self._wanted(aux)
        try:
            read = self._reads[read_id]
        except NotFoundError:
            return None
        return self._shown(read, pA, wanted)

    def get_read_list(
        self, read_list: Iterable[str], pA: bool = False, aux: str | Iterable[str] | None = None
    ) -> Generator[dict[str, Any] | None, None, None]:
        """The reads of a list of ids, in its order; None in the place of one that there is not."""
        ids = list(read_list)
        wanted = self._wanted(aux)
        missing = set(self._reads._set.missing(ids))
        found = self._reads.get([read_id for read_id in ids if read_id not in missing])
        for read_id in ids:
            yield None if read_id in missing else self._shown(next(found), pA, wanted)

    def get_read_list_multi(
        self,
        read_list: Iterable[str],
        threads: int = 4,
        batchsize: int = 100,
        pA: bool = False,
        aux: str | Iterable[str] | None = None,
    ) -> Generator[dict[str, Any] | None, None, None]:
        """What `get_read_list` gives."""
        return self.get_read_list(read_list, pA, aux)

    def get_read_ids(self) -> tuple[list[str], int]:
        """The ids of all reads, and their number."""
        ids = self._reads.ids
        return ids, len(ids)

    def get_num_read_groups(self) -> int:
        """The number of read groups."""
        return len(self._groups)

    def get_header_names(self) -> list[str]:
        """The names of the attributes of read groups, sorted."""
        return sorted(self._groups[0])

    def get_header_value(self, attr: str, read_group: int = 0) -> str | None:
        """An attribute of a read group; None if there is none."""
        return self.get_all_headers(read_group).get(attr)

    def get_all_headers(self, read_group: int = 0) -> dict[str, str | None]:
        """The attributes of a read group; None for those that only others have."""
        if not 0 <= read_group < len(self._groups):
            raise UsageError(f"{self._name}: read group {read_group}, but there are {len(self._groups)} read groups")
        group = self._groups[read_group]
        return {name: group[name] for name in self.get_header_names()}

    def get_aux_names(self) -> list[str]:
        """The names of the auxiliary fields."""
        return [one.name for one in self._fields]

    def get_aux_types(self) -> list[int]:
        """The types of the auxiliary fields, as numbers of slow5lib."""
        return [_TYPES[one.kind] for one in self._fields]

    def get_aux_enum_labels(self, label: str) -> list[str]:
        """The labels of an auxiliary field that is an enumeration; empty if it is none."""
        return next((list(one.labels) for one in self._fields if one.name == label), [])
