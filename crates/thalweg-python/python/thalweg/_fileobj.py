"""Open files of Python, and those of fsspec, as something to read from at any place."""

from __future__ import annotations

import io
import os
import threading
from typing import Any, Callable, NamedTuple

from thalweg.errors import UsageError

Read = Callable[[int, int], bytes]


class Source(NamedTuple):
    """What reads an open file."""

    name: str
    """Its name, for messages; the end of it says the format."""
    size: int
    """Its size in bytes."""
    read: Read
    """From an offset and a number of bytes to these bytes. Many threads may call it at once."""
    is_far: bool
    """Whether each read is waited for, as one from an object store is."""


def path_of(file: Any) -> str | None:
    """The path of a file that is open on this machine: the engine reads it by itself.

    Other objects may have the name and number of a file whose bytes they change, as `gzip.GzipFile` has.
    """
    if type(file).__module__.startswith("fsspec.") and getattr(file, "compression", None) is None:
        file = getattr(file, "f", None)
    raw = getattr(file, "raw", file)
    if not isinstance(raw, io.FileIO):
        return None
    name = raw.name
    try:
        if isinstance(name, str) and os.path.samestat(os.fstat(file.fileno()), os.stat(name)):
            return os.path.abspath(name)
    except (AttributeError, OSError, ValueError):
        pass
    return None


def source_of(file: Any) -> Source:
    """What reads an open file. A file of fsspec is read by its file system, without the cache of the open file."""
    fs: Any = getattr(file, "fs", None)
    path = getattr(file, "path", None)
    if hasattr(fs, "cat_file") and isinstance(path, str) and getattr(file, "compression", None) is None:
        size = fs.size(path)
        if size is None:
            raise UsageError(f"{path}: found a file whose size its file system does not know: download it first")

        def at(offset: int, length: int) -> bytes:
            return bytes(fs.cat_file(path, start=offset, end=offset + length))

        return Source(path, size, at, is_far=not _is_here(fs))
    if not (hasattr(file, "seek") and hasattr(file, "read")):
        raise UsageError(f"{file!r}: expected a path, a URL, or an open file with read() and seek()")
    file.seek(0, os.SEEK_END)
    size = file.tell()
    lock = threading.Lock()

    def here(offset: int, length: int) -> bytes:
        with lock:
            file.seek(offset)
            parts, left = [], length
            while left:
                part = file.read(left)
                if not isinstance(part, bytes):
                    raise TypeError(f"found a file that gives {type(part).__name__}, expected one opened in mode 'rb'")
                if not part:
                    break
                if len(part) > left:
                    raise OSError(f"read({left}) gave {len(part)} bytes, expected at most {left}")
                parts.append(part)
                left -= len(part)
            return b"".join(parts)

    name = getattr(file, "name", None)
    return Source(name if isinstance(name, str) else f"<{type(file).__name__}>", size, here, is_far=False)


def _is_here(fs: Any) -> bool:
    protocol = getattr(fs, "protocol", ())
    protocols = (protocol,) if isinstance(protocol, str) else protocol
    return bool({"file", "local", "memory"} & set(protocols))
