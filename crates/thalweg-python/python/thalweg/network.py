"""Networks of vertices and edges."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from thalweg import _thalweg
from thalweg._names import columns_of
from thalweg._paths import Path
from thalweg.errors import Error, UsageError

Ids = Union[Iterable[int], "NDArray[Any]"]
"""Ids of vertices: an array of whole numbers, a range, or anything with whole numbers in it. Arrays are fastest."""

Pairs = Union[Iterable[tuple[int, int]], "NDArray[Any]"]
"""Edges as pairs of source and target: an array of shape (n, 2), or pairs."""

Attributes = Mapping[str, Any]
"""Columns by their names, each with a value for each id or pair, as in a `dict` of arrays or a DataFrame of pandas."""

Direction = Literal["auto", "out", "in", "both"]
"""Which edges to follow: those that leave, or arrive, or both. An edge without a direction is followed from both ends.
`"auto"` is `"out"` or, if no edges leave to the other type, `"in"`."""

# The types of attributes that pyarrow calls otherwise than the engine. Numbers differ in case alone.
_ARROW_NAMES = {"Utf8": "string", "Boolean": "bool"}


class Population(NamedTuple):
    """A population: edges of one kind between two types of vertices."""

    name: str
    source: str
    """The type of the vertices that its edges leave."""
    target: str
    """The type of the vertices that its edges lead to."""
    directed: bool
    """Whether its edges have a direction."""
    several: bool
    """Whether two vertices may have several of its edges."""
    edges: int
    """How many edges it has."""


class Storage(NamedTuple):
    """The files of a network."""

    segments: int
    """How many segments there are."""
    bytes: int
    """The bytes of all segments."""
    changes_in_log: int
    """Changes of vertices and edges since the last segment."""


class Checked(NamedTuple):
    """What a check of a network found."""

    pages: int
    """Pages read; each has a checksum."""
    lists: int
    """Lists of neighbours read."""
    edges: int
    """Edges read; each is read on both sides."""
    defects: list[Error]
    """The first 1,000 defects."""


class Changed(NamedTuple):
    """What a transaction changed."""

    vertices_added: int
    vertices_removed: int
    edges_added: int
    edges_removed: int


class Neighbors(Sequence["NDArray[np.uint64]"]):
    """Lists of neighbours, in the order of the ids that were asked for.

    `neighbors[i]` is the list of vertex i of the question: `ids[offsets[i]:offsets[i + 1]]`. The arrays are views,
    which cannot be written to. As Arrow data (`pyarrow.array(neighbors)`) it is a LargeList of uint64, without a copy.
    """

    __slots__ = ("_lists", "ids", "offsets")

    offsets: NDArray[np.int64]
    """Where each list begins, and where the last one ends."""
    ids: NDArray[np.uint64]
    """All lists, one after the other. Each ascends. A neighbour that several edges lead to is repeated."""

    def __init__(self, lists: _thalweg.Lists) -> None:
        self._lists = lists
        self.offsets = np.asarray(lists.offsets)
        self.ids = np.asarray(lists.ids)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(f"list {place} of {len(self)}")
        return self.ids[self.offsets[place] : self.offsets[place + 1]]

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._lists.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._lists.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<thalweg.Neighbors of {len(self)} vertices: {len(self.ids)} ids>"


class Table:
    """Vertices or edges as columns: `table["weight"]`, or as Arrow data: `pyarrow.record_batch(table)`.

    `dict(table)` has all columns, and so has `pandas.DataFrame(dict(table))`.
    """

    __slots__ = ("_batch",)

    def __init__(self, batch: _thalweg.Batch) -> None:
        self._batch = batch

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._batch.names

    def keys(self) -> list[str]:
        """The names of the columns."""
        return self._batch.names

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._batch)

    def __getitem__(self, column: str) -> Any:
        """A column: an array, which is masked where values are missing, or a list of strings and None."""
        values = self._batch.column(column)
        if isinstance(values, list):
            return values
        buffer, present = values
        numbers = np.asarray(buffer)
        return numbers if present is None else np.ma.masked_array(numbers, ~np.asarray(present, bool))

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._batch.__arrow_c_array__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._batch.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<thalweg.Table of {len(self)} rows: {', '.join(self.columns)}>"


class Network:
    """A network, in a folder or at a URL. It is read as it was when it was opened, until `refresh` or a change.

    >>> network = thalweg.open("network")
    >>> network.neighbors("Astrocyte", range(1000), "Neuron").ids
    >>> with network.transaction() as change:
    ...     change.add_edges("Astrocyte-Neuron", [(0, 17), (0, 18)])
    """

    def __init__(self, network: _thalweg.Network) -> None:
        self._network = network

    @property
    def types(self) -> dict[str, int]:
        """The types of vertices, and how many vertices of each there are."""
        return dict(self._network.types)

    @property
    def populations(self) -> dict[str, Population]:
        """The populations of edges, by their names."""
        return {parts[0]: Population(*parts) for parts in self._network.populations}

    def columns(self, of: str | None = None, *, population: str | None = None) -> dict[str, str]:
        """The columns of a type's vertices, or of a population's edges, and their types as pyarrow names them.

        >>> network.columns("Neuron")
        {'id': 'uint64'}
        """
        if (of is None) == (population is None):
            raise UsageError("columns: expected a type, or population=")
        found = self._network.columns(of, population)
        return {name: _ARROW_NAMES.get(kind, kind.lower()) for name, kind in found}

    @property
    def storage(self) -> Storage:
        """The sizes of the network's files."""
        return Storage(*self._network.storage)

    def neighbors(
        self,
        of: str,
        ids: Ids,
        to: str | None = None,
        *,
        population: str | None = None,
        direction: Direction = "auto",
        where: str | None = None,
    ) -> Neighbors:
        """The neighbours of vertices of a type. A vertex that does not exist has none.

        Args:
            of: The type of the vertices.
            ids: Their ids.
            to: The type of the neighbours; all types by default.
            population: Only edges of this population.
            direction: Which edges to follow.
            where: Only edges for which this holds, as in `"weight > 0.5 and to.layer == 4"`. Names are attributes of
                edges, `from` and `to` (ids), and the attributes of the vertices there.

        Raises:
            thalweg.NotFoundError: There is no such type or population.
            thalweg.UsageError: No edges lead there, or a condition does not fit.
        """
        query = {"of": of, "to": to, "population": population, "direction": direction}
        return Neighbors(self._network.neighbours(query, _ids(ids), where))

    neighbours = neighbors

    def degree(
        self,
        of: str,
        ids: Ids,
        to: str | None = None,
        *,
        population: str | None = None,
        direction: Direction = "auto",
    ) -> NDArray[np.uint64]:
        """How many neighbours each vertex has. Lists are not read; the arguments are those of `neighbors`."""
        query = {"of": of, "to": to, "population": population, "direction": direction}
        return np.asarray(self._network.degrees(query, _ids(ids)))

    def khop(
        self,
        of: str,
        ids: Ids,
        hops: int,
        *,
        population: str | None = None,
        direction: Direction = "auto",
    ) -> NDArray[np.uint64]:
        """The vertices within some steps of others, along edges between vertices of one type.

        Each is there once, ascending, without the vertices `ids`.

        >>> network.khop("Neuron", [17], 2)
        """
        query = {"of": of, "to": of, "population": population, "direction": direction}
        return np.asarray(self._network.reachable(query, _ids(ids), hops))

    def vertices(
        self,
        of: str,
        ids: Ids | None = None,
        *,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Table:
        """Vertices of a type: the column `id`, and their attributes. All of it is in memory.

        Args:
            of: The type.
            ids: A row for each of these, in this order; else all vertices, ascending. The attributes of a vertex that
                has none, or is not there, are missing (`has_vertices` tells).
            where: Only vertices for which this holds, as in `"layer == 4 and mtype == L4_PC"`.
            columns: Only these columns.
        """
        wanted = None if ids is None else _ids(ids)
        return Table(self._network.vertices(of, wanted, where, columns_of(columns)))

    def edges(
        self,
        population: str,
        *,
        sources: Ids | None = None,
        targets: Ids | None = None,
        where: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> Table:
        """Edges of a population: `source`, `target`, and their attributes, by source, then target. All is in memory.

        An edge without a direction is there once. Its source is of the first of the two types or, within one type, the
        lesser id.

        Args:
            population: The population.
            sources: Only edges from these vertices.
            targets: Only edges to these vertices.
            where: Only edges for which this holds (see `neighbors`).
            columns: Only these columns.
        """
        start, end = (None if ids is None else _ids(ids) for ids in (sources, targets))
        return Table(self._network.edges(population, start, end, where, columns_of(columns)))

    def subgraph(self, vertices: Mapping[str, Ids], *, where: str | None = None) -> dict[str, Table]:
        """The edges between vertices: for each population that connects their types, its edges.

        >>> network.subgraph({"Neuron": range(100), "Astrocyte": [0, 1]})["Astrocyte-Neuron"]["target"]
        """
        unknown = [of for of in vertices if of not in self.types]
        if unknown:
            raise UsageError(f"{self._network.name}: no types {unknown}; there are {', '.join(self.types)}")
        ids = {of: np.frombuffer(_ids(each), "<u8") for of, each in vertices.items()}
        return {
            name: self.edges(name, sources=ids[edges.source], targets=ids[edges.target], where=where)
            for name, edges in self.populations.items()
            if edges.source in ids and edges.target in ids
        }

    def has_vertices(self, of: str, ids: Ids) -> NDArray[np.bool_]:
        """Whether each of these vertices exists."""
        return np.asarray(self._network.has_vertices(of, _ids(ids)))

    def has_edges(self, population: str, pairs: Pairs) -> NDArray[np.bool_]:
        """Whether a population has an edge between each of these pairs of source and target."""
        return np.asarray(self._network.has_edges(population, _pairs(pairs)))

    def node_set(self, file: Path, name: str, of: str) -> NDArray[np.uint64]:
        """The vertices of a type that are in a node set of SONATA: their ids, ascending.

        Types are SONATA's populations of nodes, and attributes of vertices are those of nodes. A rule may ask for
        `population`, `node_id`, numbers, strings, `$regex`, `$gt`, `$gte`, `$lt` and `$lte`; a list of names is a union
        (SONATA developer guide, "Node Sets File").

        >>> network.node_set("circuit_node_sets.json", "Layer4", "cells")

        Raises:
            thalweg.FormatError: The file is no JSON object, or the set is no rule.
            thalweg.NotFoundError: There is no such set, type or attribute.
        """
        return np.asarray(self._network.node_set(os.fspath(file), name, of))

    def check(self) -> Checked:
        """Reads all of the network: each page against its checksum, and whether lists and counts are consistent."""
        return Checked(*self._network.check())

    def refresh(self) -> None:
        """Reads the network as it is now, with what others have changed."""
        self._network.refresh()

    def transaction(self) -> Transaction:
        """Begins changes that are made together, or not at all.

        They are durable at the end of the block. An exception that leaves the block undoes all. Meanwhile nobody else
        can change the network. At the beginning and at the end the network is read as it is then.

        >>> with network.transaction() as change:
        ...     change.add_vertices("Neuron", [1000, 1001])
        ...     change.remove_edges("Astrocyte-Neuron", [(0, 17)])
        >>> change.done
        Changed(vertices_added=2, vertices_removed=0, edges_added=0, edges_removed=1)

        Raises:
            thalweg.UsageError: Another process changes the network.
            thalweg.UnsupportedError: The network is at a URL.
        """
        return Transaction(self)

    def compact(self, *, raw: bool = False) -> None:
        """Writes all that is in the network into one segment: smaller, and faster to read.

        Args:
            raw: Store ids in eight bytes each, in place of as few bits as they need.
        """
        self._network.compact(raw)

    def __repr__(self) -> str:
        return f"<thalweg.Network {self._network.name}: {', '.join(self.types)}>"


class Transaction:
    """Changes of a network that are made together, in their order: `network.transaction()`."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._change: _thalweg.Transaction | None = None
        self.done: Changed | None = None
        """What was changed; None until the block has ended."""

    def __enter__(self) -> Transaction:
        self._change = _thalweg.Transaction(self._network._network)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        change, self._change = self._open, None
        if kind is None:
            self.done = Changed(*change.commit())
        else:
            change.close()

    @property
    def _open(self) -> _thalweg.Transaction:
        if self._change is None:
            raise UsageError("a transaction is used in its block: with network.transaction() as change")
        return self._change

    def add_vertices(self, of: str, ids: Ids, attributes: Attributes | None = None) -> None:
        """Adds vertices. Those that exist keep their attributes. A type that is new is made.

        Args:
            of: The type.
            ids: The ids.
            attributes: The attributes. A type that has none yet gets these.
        """
        wanted = _ids(ids)
        self._open.add_vertices(of, wanted, self._columns(attributes, len(wanted) // 8, of=of))

    def set_vertices(self, of: str, ids: Ids, attributes: Attributes) -> None:
        """Sets the attributes of vertices, and adds those that do not exist."""
        wanted = _ids(ids)
        columns = self._columns(attributes, len(wanted) // 8, of=of)
        if not columns:
            raise UsageError("set_vertices: expected attributes")
        self._open.set_vertices(of, wanted, columns)

    def remove_vertices(self, of: str, ids: Ids | None) -> None:
        """Removes vertices and all their edges. Those that do not exist are ignored; None is all of the type."""
        self._open.remove_vertices(of, None if ids is None else _ids(ids))

    def add_edges(
        self,
        population: str,
        pairs: Pairs,
        attributes: Attributes | None = None,
        *,
        between: tuple[str, str] | None = None,
        directed: bool = False,
        several: bool = False,
    ) -> None:
        """Adds edges, and the vertices at their ends that do not exist.

        Args:
            population: The population.
            pairs: Pairs of source and target. An edge that exists stays as it is, unless two vertices may have several.
            attributes: The attributes of each edge. They are required if the population has any.
            between: The types that a new population connects. It gets the attributes that are given.
            directed: The edges of a new population have a direction.
            several: Two vertices may have several edges of a new population.
        """
        wanted = _pairs(pairs)
        count = len(wanted) // 16
        if between is not None:
            new = None if attributes is None else [_column(name, attributes[name], None, count) for name in attributes]
            source, target = between
            self._open.add_population(population, (source, target), directed, several, new)
        elif directed or several:
            raise UsageError("directed and several are for a new population: expected between=(type, type)")
        self._open.add_edges(population, wanted, self._columns(attributes, count, population=population))

    def remove_edges(self, population: str, pairs: Pairs | None) -> None:
        """Removes all edges between pairs. Those that do not exist are ignored; None is all of the population."""
        self._open.remove_edges(population, None if pairs is None else _pairs(pairs))

    def _columns(
        self, attributes: Attributes | None, count: int, of: str | None = None, population: str | None = None
    ) -> list[tuple[str, str, Any]] | None:
        """The columns that the type or population has, or those that are given if it has none."""
        if attributes is None:
            return None
        known = self._open.wanted(of, population)
        given = list(attributes)
        if not known:
            return [_column(name, attributes[name], None, count) for name in given]
        names = [name for name, _ in known]
        if sorted(given) != sorted(names):
            raise UsageError(f"attributes of {of or population}: found {given}, expected {names}")
        return [_column(name, attributes[name], kind, count) for name, kind in known]


def _column(name: str, values: Any, kind: str | None, count: int) -> tuple[str, str, Any]:
    """A column's name, its type, and its bytes or strings. `kind`: the type that it has to have."""
    found = np.asarray(values)
    if found.shape != (count,):
        raise UsageError(f"attribute {name!r}: found the shape {found.shape}, expected ({count},)")
    if np.ma.is_masked(values) or (found.dtype.kind == "O" and any(map(_is_missing, found))):
        raise UsageError(f"attribute {name!r}: found missing values, expected a number or string for each id or pair")
    if kind == "text" or (kind is None and found.dtype.kind in "OUT"):
        texts = found.tolist()
        wrong = next((text for text in texts if not isinstance(text, str)), None)
        if wrong is not None:
            raise UsageError(f"attribute {name!r}: found {wrong!r}, expected strings")
        return name, "text", texts
    to = found.dtype.newbyteorder("<") if kind is None else np.dtype(kind)
    try:
        with np.errstate(over="ignore"):
            cast = found.astype(to, casting="same_kind")
    except TypeError:
        raise UsageError(f"attribute {name!r}: found {found.dtype}, expected {to}") from None
    if found.dtype.kind in "iu":
        lost = cast != found
    else:
        lost = np.isinf(cast) & np.isfinite(found) if to.kind == "f" else np.zeros(count, bool)
    if lost.any():
        raise UsageError(f"attribute {name!r}: found {found[lost][0]}, expected numbers that {to} can hold")
    return name, to.str, np.ascontiguousarray(cast).tobytes()


def _is_missing(value: Any) -> bool:
    """Whether it stands for no value: None, or `pandas.NA`, for which pandas need not be there."""
    return value is None or type(value).__name__ == "NAType"


def _numbers(values: Any, what: str) -> NDArray[np.uint64]:
    """Whole numbers from 0 on as an array."""
    found = np.asarray(values)
    if found.size == 0:
        return np.zeros(found.shape, "<u8")
    if found.dtype.kind not in "iu":
        raise UsageError(f"{what}: found {found.dtype}, expected whole numbers from 0 to 2**64 - 1")
    if found.dtype.kind == "i" and found.min() < 0:
        raise UsageError(f"{what}: found {found.min()}, expected whole numbers from 0 to 2**64 - 1")
    return np.ascontiguousarray(found, "<u8")


def _ids(ids: Ids) -> bytes:
    """The bytes of ids as 64-bit numbers."""
    if isinstance(ids, range) and all(-(2**63) <= end < 2**63 for end in (ids.start, ids.stop, ids.step)):
        ids = np.arange(ids.start, ids.stop, ids.step)
    elif isinstance(ids, (bytes, bytearray, str)):
        raise UsageError(f"ids: found {type(ids).__name__}, expected whole numbers from 0 to 2**64 - 1")
    elif not hasattr(ids, "__array__"):
        try:
            ids = np.frombuffer(array("Q", ids), "=u8")
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"ids: {error}; expected whole numbers from 0 to 2**64 - 1") from None
    found = _numbers(ids, "ids")
    if found.ndim != 1:
        raise UsageError(f"ids: found the shape {found.shape}, expected one dimension")
    return found.tobytes()


def _pairs(pairs: Pairs) -> bytes:
    """The bytes of pairs of ids."""
    if not hasattr(pairs, "__array__"):
        flat = array("Q")
        try:
            for source, target in pairs:
                flat.extend((source, target))
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"pairs: {error}; expected pairs of whole numbers from 0 to 2**64 - 1") from None
        return np.frombuffer(flat, "=u8").astype("<u8").tobytes()
    found = _numbers(pairs, "pairs")
    if found.ndim != 2 or found.shape[1] != 2:
        raise UsageError(f"pairs: found the shape {found.shape}, expected (n, 2)")
    return found.tobytes()
