"""What h5py and numpy find in files of networks, without any of thalweg's code."""

import dataclasses
import pathlib

import h5py
import numpy as np

NGV = ["basalt/neuroglial_connectivity.h5", "basalt/synaptic_connectivity.h5", "basalt/gliovascular_connectivity.h5"]
SONATA = [
    "archngv/circuit_edges.h5",
    "archngv/neuroglial.h5",
    "archngv/gliovascular.h5",
    "libsonata/edges1.h5",
    "libsonata/edges-no-index.h5",
    "snap/edges.h5",
]


@dataclasses.dataclass
class Edges:
    name: str
    source: str
    target: str
    directed: bool
    sources: np.ndarray
    targets: np.ndarray


@dataclasses.dataclass
class Network:
    """Types with their ids, and edges."""

    types: dict[str, np.ndarray]
    edges: list[Edges]

    def neighbours(self, source, target, direction):
        """The ids for each vertex of a type; None if nothing connects the two."""
        if direction == "auto":
            out = self.neighbours(source, target, "out")
            return self.neighbours(source, target, "in") if out is None else out
        pairs = []
        for edges in self.edges:
            leaving = (edges.source, edges.target) == (source, target) and (direction != "in" or not edges.directed)
            arriving = (edges.target, edges.source) == (source, target) and (direction != "out" or not edges.directed)
            if leaving:
                pairs.append((edges.sources, edges.targets))
            if arriving:
                # An edge from a vertex to itself is one edge, from whichever end it is seen.
                kept = (edges.sources != edges.targets) | (not leaving)
                pairs.append((edges.targets[kept], edges.sources[kept]))
        if not pairs:
            return None
        here, there = (np.concatenate(part) for part in zip(*pairs, strict=True))
        order = np.argsort(here, kind="stable")
        here, there = here[order], there[order]
        ids = np.sort(self.types[source])
        starts, ends = np.searchsorted(here, ids), np.searchsorted(here, ids, "right")
        return {int(vertex): there[a:b] for vertex, a, b in zip(ids, starts, ends, strict=True)}


def population_of(dataset, otherwise):
    name = dataset.attrs.get("node_population", otherwise)
    return name.decode() if isinstance(name, bytes) else str(name)


def edges_of(path: pathlib.Path) -> list[Edges]:
    """Of a SONATA file."""
    found = []
    with h5py.File(path) as file:
        for name, group in file["edges"].items():
            if "source_node_id" not in group:
                found.append(Edges(name, f"{name}_source", f"{name}_target", True, np.zeros(0, "u8"), np.zeros(0, "u8")))
                continue
            ends = group["source_node_id"], group["target_node_id"]
            kinds = [population_of(end, f"{name}_{which}") for end, which in zip(ends, ("source", "target"), strict=True)]
            found.append(Edges(name, *kinds, True, *(end[()].astype("u8") for end in ends)))
    return found


def lists(name, source, target, offsets, targets):
    return Edges(name, source, target, False, np.repeat(np.arange(len(offsets) - 1, dtype="u8"), np.diff(offsets.astype("i8"))), targets.astype("u8"))


def changes(values):
    """Where a value is another one than the value before."""
    return np.append(True, values[1:] != values[:-1])[: len(values)]


def distinct(values):
    """As `np.unique`, which takes ten times as long for millions of ids."""
    values = np.sort(values, kind="stable")
    return values[changes(values)]


def network_of(path: pathlib.Path, first: int | None = None) -> Network:
    """Of the first so many astrocytes, if it is said."""
    types: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:
        if "edges" in file:
            edges = edges_of(path)
        elif "Vasculature Segment" in file:
            offsets, table = file["Astrocyte/offsets"][()], file["Astrocyte/connectivity"][()]
            feet = file["Endfoot/connectivity"][()]
            own = np.arange(len(feet) + 1)
            edges = [
                lists("Astrocyte-Endfoot", "Astrocyte", "Endfoot", offsets, table[:, 0]),
                lists("Astrocyte-Vasculature Segment", "Astrocyte", "Vasculature Segment", offsets, table[:, 1]),
                lists("Endfoot-Vasculature Segment", "Endfoot", "Vasculature Segment", own, feet[:, 1]),
            ]
            counts = {"Astrocyte": len(offsets) - 1, "Endfoot": len(feet), "Vasculature Segment": len(file["Vasculature Segment/connectivity"])}
            types = {name: np.arange(count, dtype="u8") for name, count in counts.items()}
        elif "Afferent Neuron" in file:
            neurons = file["Synapse/Afferent Neuron"][()].astype("u8")
            edges = [Edges("Afferent Neuron-Synapse", "Afferent Neuron", "Synapse", False, neurons, np.arange(len(neurons), dtype="u8"))]
            types = {"Afferent Neuron": np.arange(len(file["Afferent Neuron/offsets"]) - 1, dtype="u8"), "Synapse": edges[0].targets}
        else:
            offsets = file["Astrocyte/offsets"][()]
            edges = [
                lists("Astrocyte-Synapse", "Astrocyte", "Synapse", offsets[:, 0], file["Astrocyte/synapse"][()]),
                lists("Astrocyte-Neuron", "Astrocyte", "Neuron", offsets[:, 1], file["Astrocyte/neuron"][()]),
            ]
            types = {"Astrocyte": np.arange(len(offsets) - 1, dtype="u8"), "Neuron": np.arange(len(file["Neuron/offsets"]) - 1, dtype="u8")}
            if first is not None:
                types = {"Astrocyte": types["Astrocyte"][:first]}
                for some in edges:
                    kept = some.sources < first
                    some.sources, some.targets = some.sources[kept], some.targets[kept]
    for some in edges:
        if not some.directed:
            # Two vertices have one link.
            order = np.lexsort((some.targets, some.sources))
            sources, targets = some.sources[order], some.targets[order]
            kept = changes(sources) | changes(targets)
            some.sources, some.targets = sources[kept], targets[kept]
        for kind, ids in ((some.source, some.sources), (some.target, some.targets)):
            types[kind] = distinct(np.concatenate([types.get(kind, np.zeros(0, "u8")), ids]))
    return Network(types, edges)


def attributes_of(path: pathlib.Path):
    """Of each population: which kind it is, its name, its ids, and its attributes in the order of the ids."""
    with h5py.File(path) as file:
        for kind, root in (("edges", "edges"), ("vertices", "nodes")):
            for name, group in file.get(root, {}).items():
                if not {"source_node_id", "node_type_id"} & set(group):
                    # An empty population has nothing but a name.
                    continue
                if kind == "edges":
                    sources, targets = (group[f"{end}_node_id"][()].astype("u8") for end in ("source", "target"))
                    order = np.lexsort((targets, sources))
                    ids = {"source": sources[order], "target": targets[order]}
                else:
                    order = np.arange(len(group["node_type_id"]))
                    ids = {"id": order.astype("u8")}
                yield kind, name, ids, {what: values[order] for what, values in columns(group["0"], len(order))}


def columns(group, count):
    library = group.get("@library", {})
    for name, item in sorted(group.items()):
        if isinstance(item, h5py.Group):
            if name == "dynamics_params":
                yield from ((f"{name}/{own}", column(part)) for own, part in sorted(item.items()))
        elif item.shape == (count,):
            values = column(item)
            if name in library:
                names = library[name].asstr()[()]
                values = np.array([names[code] if 0 <= code < len(names) else None for code in values], object)
            yield name, values


def column(dataset):
    return dataset.asstr()[()] if dataset.dtype == object else dataset[()]
