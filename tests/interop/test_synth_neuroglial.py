"""Synthetic connectivity: h5py reads lists that are as those of a real circuit, and the same for the same recipe."""

import h5py
import numpy as np
import pytest

NEURONS = 20_000
RECIPE = ["--kind", "neuroglial", "--neurons", NEURONS]


@pytest.fixture
def synth(thalweg, tmp_path):
    count = 0

    def call(*options):
        nonlocal count
        count += 1
        path = tmp_path / f"{count}.h5"
        thalweg("synth", path, *RECIPE, *options)
        assert sorted(item.suffix for item in tmp_path.iterdir()) == [".h5"] * count, "nothing else is left"
        return path

    return call


def test_datasets_are_laid_out_as_real_ones(synth):
    with h5py.File(synth("--astrocytes", 100)) as file:
        astrocyte, neuron = file["Astrocyte"], file["Neuron"]
        assert sorted(file) == ["Astrocyte", "Neuron"]
        assert sorted(astrocyte) == ["neuron", "offsets", "synapse"] and sorted(neuron) == ["astrocyte", "offsets"]
        assert list(astrocyte["offsets"].attrs["column_names"]) == ["synapse", "neuron"]
        assert list(neuron["offsets"].attrs["column_names"]) == ["astrocyte"]
        assert astrocyte["offsets"].shape == (101, 2) and neuron["offsets"].shape == (NEURONS + 1,)
        for dataset in [*astrocyte.values(), *neuron.values()]:
            assert dataset.dtype == np.uint64 and dataset.chunks is None


def test_lists_ascend_and_both_sides_agree(synth):
    with h5py.File(synth("--astrocytes", 100)) as file:
        offsets = file["Astrocyte/offsets"][()].astype(np.int64)
        synapses, neurons = file["Astrocyte/synapse"][()], file["Astrocyte/neuron"][()]
        back, astrocytes = file["Neuron/offsets"][()].astype(np.int64), file["Neuron/astrocyte"][()]
    assert list(offsets[-1]) == [len(synapses), len(neurons)] and back[-1] == len(astrocytes)
    for ends, values in [(offsets[:, 0], synapses), (offsets[:, 1], neurons), (back, astrocytes)]:
        assert all((np.diff(part.astype(np.int64)) > 0).all() for part in np.split(values, ends[1:-1]))
    assert len(np.unique(synapses)) == len(synapses), "a synapse belongs to one astrocyte"
    there = np.stack([np.repeat(np.arange(100), np.diff(offsets[:, 1])), neurons.astype(np.int64)], axis=1)
    here = np.stack([astrocytes.astype(np.int64), np.repeat(np.arange(NEURONS), np.diff(back))], axis=1)
    assert np.array_equal(there, here[np.lexsort((here[:, 1], here[:, 0]))])


def test_degrees_are_those_of_a_real_circuit(synth):
    with h5py.File(synth()) as file:
        degrees = np.diff(file["Astrocyte/offsets"][()].astype(np.int64), axis=0)
    synapses, neurons = degrees.mean(axis=0)
    assert 15_000 < synapses < 17_500 and 1_150 < neurons < 1_350
    skew = ((degrees[:, 0] - synapses) ** 3).mean() / degrees[:, 0].std() ** 3
    assert skew > 0.3, "few have many synapses"


def test_fewer_astrocytes_are_the_first_ones(synth):
    few, more = synth("--astrocytes", 10), synth("--astrocytes", 30)
    with h5py.File(few) as few, h5py.File(more) as more:
        for name in ["offsets", "synapse", "neuron"]:
            one, two = few["Astrocyte"][name][()], more["Astrocyte"][name][()]
            assert np.array_equal(one, two[: len(one)])


def test_the_same_recipe_is_the_same_file(synth):
    one, two, other = synth("--astrocytes", 9), synth("--astrocytes", 9), synth("--astrocytes", 9, "--seed", 2)
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()


def test_more_astrocytes_than_there_is_room_for(thalweg, tmp_path):
    done = thalweg("synth", tmp_path / "x.h5", *RECIPE, "--astrocytes", 2000, check=False)
    assert done.returncode == 2 and "there is room for 1283" in done.stderr
    assert not list(tmp_path.iterdir())
