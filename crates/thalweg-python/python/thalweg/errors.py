"""The exceptions of thalweg.

Each is a `thalweg.Error`, and also the built-in exception that users of Python expect:

| exception | is also | when |
|---|---|---|
| `IoError` | `OSError` | the system or a service refused or failed an operation |
| `NoFileError` | `FileNotFoundError` | there is no such file or object |
| `NoPermissionError` | `PermissionError` | the system or a service denies it |
| `NoAnswerError` | `TimeoutError` | a service does not answer in time |
| `FormatError` | `ValueError` | bytes of a file violate its format, or the file is cut short |
| `UnsupportedError` | `ValueError` | an intact file uses what thalweg does not have |
| `NotFoundError` | `KeyError` | a file does not have what was asked for |
| `ExistsError` | `FileExistsError` | a file is where a new one is to appear |
| `UsageError` | `ValueError` | an argument is not valid |
"""

from __future__ import annotations

from typing import Any


def _again(kind: type[Error], message: str, parts: dict[str, Any]) -> Error:
    """An error that was pickled."""
    error = kind(message)
    errno = parts.pop("errno")
    error.__dict__.update(parts)
    if isinstance(error, IoError):
        error.errno, error.filename = errno, error.file
    return error


class Error(Exception):
    """What went wrong, in one line, and its parts where there are any.

    Attributes:
        file: The file.
        offset: The byte of the file.
        found: What was found there.
        expected: What the format requires there.
    """

    file: str | None
    offset: int | None
    found: str | None
    expected: str | None

    def __init__(
        self,
        message: str,
        file: str | None = None,
        offset: int | None = None,
        found: str | None = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.offset = offset
        self.found = found
        self.expected = expected

    # Those of OSError lose what is no argument.
    def __reduce__(self) -> Any:
        return _again, (type(self), self.message, {**self.__dict__, "errno": getattr(self, "errno", None)})

    # KeyError shows its argument in quotes, and OSError the number of the error.
    def __str__(self) -> str:
        return self.message


class IoError(Error, OSError):
    """The system or a service refused or failed an operation."""

    def __init__(self, message: str, errno: int | None = None, **parts: object) -> None:
        super().__init__(message, **parts)  # type: ignore[arg-type]
        self.errno = errno
        self.filename = self.file


class NoFileError(IoError, FileNotFoundError):
    """There is no such file or object."""


class NoPermissionError(IoError, PermissionError):
    """The system or a service denies it."""


class NoAnswerError(IoError, TimeoutError):
    """A service does not answer in time."""


class FormatError(Error, ValueError):
    """Bytes that violate the format of their file."""


class UnsupportedError(Error, ValueError):
    """An intact file that uses what thalweg does not have."""


class NotFoundError(Error, KeyError):
    """A file does not have what was asked for."""


class ExistsError(Error, FileExistsError):
    """A file is where a new one is to appear."""


class UsageError(Error, ValueError):
    """An argument that is not valid."""
