"""Progress bars, in terminals and notebooks."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from thalweg import _thalweg
from thalweg._optional import needs
from thalweg.arrays import Arrays
from thalweg.errors import UsageError
from thalweg.reads import Reads

# Shorter work shows no bar.
_DELAY_S = 0.7
_TICK_S = 0.15


class progress:
    """Shows a bar while files are read: bytes fetched, of all bytes of the files, and how fast. It needs tqdm.

    The bar appears in terminals and notebooks, after 0.7 seconds.

    >>> with thalweg.progress(reads):
    ...     table = reads.to_table()
    """

    def __init__(self, of: Reads | Arrays, **options: Any) -> None:
        if not isinstance(of, (Reads, Arrays)):
            raise UsageError(f"progress: found {type(of).__name__}, expected the Reads or Arrays that are read")
        self._of = of._set if isinstance(of, Reads) else of._engine
        self._options = options
        self._tqdm = needs("tqdm.auto", "progress").tqdm
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> progress:
        self._over.clear()
        self._first, self._total = _thalweg.fetched(self._of)
        self._thread = threading.Thread(target=self._watch, name="thalweg-progress", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        if self._over.wait(_DELAY_S):
            return
        with self._tqdm(total=self._total, unit="B", unit_scale=True, leave=False, **self._options) as bar:
            while True:
                is_over = self._over.wait(_TICK_S)
                bar.update(_thalweg.fetched(self._of)[0] - self._first - bar.n)
                if is_over:
                    return
