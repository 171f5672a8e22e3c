"""Streams of Arrow data."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from thalweg import _thalweg
from thalweg._optional import needs

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]

Own = TypeVar("Own", bound="Stream")


class Stream:
    """Rows that are read once: a stream of Arrow data, as `pyarrow.table(stream)` and `polars.DataFrame(stream)` take it."""

    def __init__(self, stream: _thalweg.BatchStream) -> None:
        self._stream = stream

    def close(self) -> None:
        """Ends the read, if it goes on."""
        self._stream.close()

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._stream.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._stream.__arrow_c_schema__()


def table_of(stream: Stream) -> pyarrow.Table:
    """All of a stream as one table. An error is one of thalweg; from `pyarrow.table(stream)` it is one of pyarrow."""
    pyarrow = needs("pyarrow", "arrow")
    batches = [pyarrow.record_batch(batch) for batch in stream._stream]
    return pyarrow.Table.from_batches(batches, schema=pyarrow.schema(stream))
