"""Files and folders as the library pod5 reads them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Generator, Iterable, Iterator
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from thalweg._paths import Path as PathOrStr
from thalweg._pod5_records import ReadRecord

if TYPE_CHECKING:
    from thalweg.pod5 import Reader


class DatasetReader:
    """Reads of several files and folders.

    Args:
        paths: Files, folders or URLs.
        recursive: Whether folders in folders are searched.
        pattern: The names of files in folders, and of files that do not have the ending of another format of reads.
        index: Whether the index of all reads is made at once.
        threads: Without effect: the engine uses all cores.
        max_cached_readers: The most files that stay open.
        warn_duplicate_indexing: Whether an id in two files makes a warning when reads are asked for by id.

    Files are read in the order of their paths.
    """

    def __init__(
        self,
        paths: PathOrStr | Collection[PathOrStr],
        recursive: bool = False,
        pattern: str = "*.pod5",
        index: bool = False,
        threads: int = 4,
        max_cached_readers: int | None = 16,
        warn_duplicate_indexing: bool = True,
    ) -> None:
        if isinstance(paths, (str, os.PathLike)):
            paths = [paths]
        if not isinstance(paths, Collection):
            raise TypeError(f"paths={paths!r}: expected a path or a collection of paths")
        found = {one for path in paths for one in _found(os.fspath(path), recursive, pattern)}
        self._paths: list[Path] = sorted(found, key=str)
        self.threads = threads
        self.warn_duplicate_indexing = warn_duplicate_indexing
        self._num_reads: int | None = None
        self._index: dict[str, Path] | None = None
        # That module has this class, too.
        from thalweg.pod5 import Reader

        self._reader = lru_cache(max_cached_readers)(Reader)
        if index:
            self.index_read_ids()

    def __enter__(self) -> DatasetReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear_index()
        self.clear_readers()

    def __iter__(self) -> Generator[ReadRecord, None, None]:
        yield from self.reads()

    def __len__(self) -> int:
        return self.num_reads

    @property
    def paths(self) -> list[Path]:
        """The files."""
        return self._paths

    @property
    def num_reads(self) -> int:
        """The number of reads of all files."""
        if self._num_reads is None:
            self._num_reads = sum(self.get_reader(path).num_reads for path in self._paths)
        return self._num_reads

    @property
    def read_ids(self) -> Generator[str, None, None]:
        """The ids of all reads."""
        for path in self._paths:
            yield from self.get_reader(path).read_ids

    def reads(
        self, selection: Iterable[str] | None = None, preload: set[str] | None = None
    ) -> Generator[ReadRecord, None, None]:
        """The reads of all files, each in its order: all, or those with the ids of `selection`. Ids may be unknown."""
        wanted = None if selection is None else list(selection)
        for path in self._paths:
            yield from self.get_reader(path).reads(wanted, missing_ok=True, preload=preload)

    def get_read(self, read_id: str) -> ReadRecord | None:
        """The read with an id; None if no file has it. It makes the index."""
        path = self.get_path(read_id)
        return None if path is None else next(self.get_reader(path).reads([read_id]))

    def get_reader(self, path: PathOrStr) -> Reader:
        """The reader of a file."""
        name = os.fspath(path)
        return self._reader(name if "://" in name else Path(name))

    def get_path(self, read_id: str) -> Path | None:
        """The file of a read; None if no file has it. It makes the index."""
        self.index_read_ids()
        if self.warn_duplicate_indexing and self.has_duplicate():
            warnings.warn("some read ids are in several files, of which the last counts", stacklevel=2)
        return self._get_index().get(read_id)

    def has_duplicate(self) -> bool:
        """Whether an id is in two files. It makes the index."""
        return len(self) != len(self._get_index())

    def index_read_ids(self) -> None:
        """Makes the index of all reads, if there is none."""
        self._get_index()

    def _get_index(self) -> dict[str, Path]:
        if self._index is None:
            self._index = {read_id: path for path in self._paths for read_id in self.get_reader(path).read_ids}
        return self._index

    def clear_index(self) -> None:
        """Drops the index."""
        self._index = None

    def clear_readers(self) -> None:
        """Drops the readers of files that are open."""
        self._reader.cache_clear()


def _found(name: str, recursive: bool, pattern: str) -> Iterator[Any]:
    """The files of reads at a path."""
    if "://" in name:
        yield name
        return
    path = Path(name)
    if path.is_dir():
        for folder in _folders(name) if recursive else [name]:
            inside = Path(folder).glob(pattern)
            # Indexes, which thalweg writes beside the files, have no reads.
            yield from (one for one in inside if one.is_file() and one.suffix != ".idx")
    elif path.exists() and (fnmatch(path.name, pattern) or path.suffix in (".blow5", ".slow5", ".fast5")):
        yield path


def _folders(top: str) -> Iterator[str]:
    """A folder and all in it, those that links lead to among them, each once."""
    seen = set()
    for folder, inside, _ in os.walk(top, followlinks=True):
        place = os.path.realpath(folder)
        if place in seen:
            inside.clear()
            continue
        seen.add(place)
        yield folder
