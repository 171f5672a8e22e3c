"""Opens, makes and imports networks."""

from __future__ import annotations

import os
import warnings

from thalweg import _thalweg
from thalweg._open import options_of
from thalweg._paths import Path
from thalweg.network import Network


def open_network(
    path: Path, *, threads: int | None = None, memory: float | str | None = None, mapped: bool = True
) -> Network:
    """Opens the network in a folder or at a URL. `thalweg.open` does so for folders, too.

    Args:
        path: The folder or URL.
        threads: Threads that read; all cores by default.
        memory: What reading may use, in bytes or as in `"256MB"`.
        mapped: Whether files are mapped into memory. If another program truncates a mapped file, the system ends this
            process. Where that may happen, as on file systems that several machines share, say False.

    Raises:
        thalweg.NotFoundError: There is no network.
    """
    return Network(_thalweg.open_network(os.fspath(path), options_of(threads=threads, memory=memory), mapped))


def create_network(path: Path, *, threads: int | None = None, memory: float | str | None = None) -> Network:
    """Makes an empty network in a folder, which is empty or not there.

    >>> network = thalweg.create_network("new")
    >>> with network.transaction() as change:
    ...     change.add_edges("gap", [(1, 2), (2, 3)], {"weight": [0.5, 0.25]}, between=("Neuron", "Neuron"))

    Raises:
        thalweg.ExistsError: There is a network.
        thalweg.UsageError: Other files are there.
    """
    return Network(_thalweg.create_network(os.fspath(path), options_of(threads=threads, memory=memory)))


def import_network(
    file: Path, store: Path, *, raw: bool = False, threads: int | None = None, memory: float | str | None = None
) -> Network:
    """Imports a file into a network: SONATA edges and nodes, or neuroglial and vascular connectivity in HDF5.

    All of the file is imported or, after an error, nothing of it. An import that was stopped goes on when it is called
    again. What is left out is warned of.

    Args:
        file: The HDF5 file; it may be at a URL.
        store: The folder of the network, which is made if there is none.
        raw: Store ids in eight bytes each, in place of as few bits as they need.
        threads: Threads; all cores by default.
        memory: What the import may use, in bytes or as in `"256MB"`.

    Raises:
        thalweg.UnsupportedError: The file is HDF5 of another kind.
        thalweg.FormatError: The file is damaged.
    """
    arguments = options_of(threads=threads, memory=memory)
    network, words = _thalweg.import_network(os.fspath(file), os.fspath(store), raw, arguments)
    for what in words:
        warnings.warn(f"{os.fspath(file)}: {what}", stacklevel=2)
    return Network(network)
