"""Networks of vertices and edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg

Ids = Union[Iterable[int], "NDArray[Any]"]


class Neighbors(NamedTuple):
    """Lists of neighbours: those of vertex i are `ids[offsets[i]:offsets[i + 1]]`, or `neighbors.of(i)`."""

    offsets: NDArray[np.uint64]
    ids: NDArray[np.uint64]

    def of(self, place: int) -> NDArray[np.uint64]:
        """The neighbours of the vertex at this place of the question."""
        return self.ids[self.offsets[place] : self.offsets[place + 1]]

    def lists(self) -> Iterator[NDArray[np.uint64]]:
        """The list of each vertex."""
        return (self.of(place) for place in range(len(self.offsets) - 1))


class Network:
    """A network, in a folder or at a URL.

    >>> network = thalweg.open("network")
    >>> network.neighbors("Astrocyte", range(1000), "Neuron").ids
    """

    def __init__(self, network: _thalweg.Network) -> None:
        self._network = network

    @property
    def types(self) -> dict[str, int]:
        """The types of vertices, and how many vertices of each there are."""
        return dict(self._network.types)

    def neighbors(self, of: str, ids: Ids, to: str | None = None) -> Neighbors:
        """The neighbours of vertices of a type. A vertex that does not exist has none.

        Args:
            of: The type of the vertices.
            ids: Their ids.
            to: The type of the neighbours; all types by default.
        """
        offsets, found = self._network.neighbours(of, _ids(ids), to)
        return Neighbors(np.asarray(offsets), np.asarray(found))

    neighbours = neighbors

    def degree(self, of: str, ids: Ids, to: str | None = None) -> NDArray[np.uint64]:
        """How many neighbours each vertex has."""
        return np.asarray(self._network.degrees(of, _ids(ids), to))

    def __repr__(self) -> str:
        return f"<thalweg.Network {self._network.name}: {', '.join(self.types)}>"


def _ids(ids: Ids) -> list[int]:
    if isinstance(ids, np.ndarray):
        numbers: list[int] = ids.tolist()
        return numbers
    return list(ids)
