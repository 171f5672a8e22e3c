"""Networks, against the command."""

import numpy as np
import thalweg


def test_neighbors_are_those_of_the_command(files, command):
    network = thalweg.open(files / "network")
    assert network.types["Astrocyte"] == 50
    found = network.neighbors("Astrocyte", range(50), "Neuron")
    assert len(found.offsets) == 51
    degree = network.degree("Astrocyte", np.arange(50), "Neuron")
    assert degree.tolist() == [len(ids) for ids in found.lists()] == np.diff(found.offsets).tolist()
    printed = command("graph", "neighbors", files / "network", "--from", "Astrocyte", "--to", "Neuron")
    expected = [line.split("\t") for line in printed.splitlines() if not line.startswith("#")]
    assert expected, printed[:200]
    for vertex, count, ids in expected:
        assert [str(id) for id in found.of(int(vertex))] == ids.split() and int(count) == len(ids.split())


def test_a_vertex_that_does_not_exist_has_no_neighbors(files):
    found = thalweg.open(files / "network").neighbors("Astrocyte", [10**9, 0])
    assert found.of(0).size == 0 and found.of(1).size > 0
