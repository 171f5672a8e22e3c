use std::collections::HashSet;

use super::*;

fn network(recipe: CircuitRecipe) -> SynthNetwork {
    SynthNetwork::new(recipe).unwrap_or_else(|error| unreachable!("{error}"))
}

fn small() -> CircuitRecipe {
    CircuitRecipe::with_neurons(3, 3_000)
}

fn lists(network: &SynthNetwork, astrocyte: u64) -> [Vec<u64>; 2] {
    let mut lists = [Vec::new(), Vec::new()];
    let [synapses, neurons] = &mut lists;
    network.astrocyte(astrocyte, synapses, neurons);
    lists
}

/// These values must never change: files from other versions and other machines contain them.
#[test]
fn values_are_the_same_everywhere() {
    let network = network(small());
    let [synapses, neurons] = lists(&network, 5);
    assert_eq!(network.totals(), [1_564_937, 118_366]);
    assert_eq!(synapses[..6], [3550, 3551, 3554, 3555, 3634, 3635]);
    assert_eq!(neurons[..6], [6, 7, 11, 18, 19, 22]);
}

/// The expected values are published ones, of a circuit with these numbers of astrocytes and
/// neurons.
#[test]
fn as_many_links_as_a_real_circuit_has() {
    let network = network(CircuitRecipe::default());
    assert_eq!(network.recipe().astrocytes(), 14_086);
    for (kind, mean, least, most) in
        [(0, 16_201.0, 3..40, 55_000..75_000), (1, 1_251.0, 3..20, 2_700..3_100)]
    {
        let mut counts: Vec<u64> =
            (0..14_086).map(|astrocyte| network.counts(astrocyte)[kind]).collect();
        counts.sort_unstable();
        let found = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        assert!((found / mean - 1.0).abs() < 0.02, "{found}");
        assert!(least.contains(&counts[0]), "{}", counts[0]);
        assert!(most.contains(&counts[14_085]), "{}", counts[14_085]);
    }
    let [synapses, _] = network.totals();
    let unowned = network.synapses() - synapses;
    assert!(unowned < 219_422, "at most one of each neuron: {unowned}");
}

#[test]
fn lists_ascend_and_each_synapse_is_in_one() {
    let network = network(small());
    let mut seen = HashSet::new();
    let mut runs = 0;
    for astrocyte in 0..network.recipe().astrocytes() {
        let [synapses, neurons] = lists(&network, astrocyte);
        assert_eq!([synapses.len() as u64, neurons.len() as u64], network.counts(astrocyte));
        for list in [&synapses, &neurons] {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert!(neurons.last().is_none_or(|last| *last < 3_000));
        runs += synapses.chunk_by(|one, two| two - one == 1).count() as u64;
        seen.extend(synapses);
    }
    let [synapses, _] = network.totals();
    assert_eq!(seen.len() as u64, synapses, "no synapse twice");
    assert!(seen.iter().all(|id| *id < network.synapses()));
    let mean = synapses as f64 / runs as f64;
    assert!((1.5..4.0).contains(&mean), "runs of {mean}");
}

#[test]
fn both_directions_hold_the_same_edges() {
    let network = network(CircuitRecipe { astrocytes: Some(100), ..small() });
    let mut one: Vec<(u64, u64)> = Vec::new();
    for astrocyte in 0..100 {
        one.extend(lists(&network, astrocyte)[1].iter().map(|neuron| (*neuron, astrocyte)));
    }
    one.sort_unstable();
    let (mut two, mut list) = (Vec::new(), Vec::new());
    for neuron in 0..3_000 {
        list.clear();
        network.neuron(neuron, &mut list);
        two.extend(list.iter().map(|astrocyte| (neuron, *astrocyte)));
    }
    assert_eq!(one, two);
}

#[test]
fn fewer_astrocytes_are_the_first_ones() {
    let (all, some) = (network(small()), network(CircuitRecipe { astrocytes: Some(7), ..small() }));
    for astrocyte in 0..7 {
        assert_eq!(lists(&all, astrocyte), lists(&some, astrocyte));
    }
    assert_ne!(lists(&all, 0), lists(&network(CircuitRecipe { seed: 4, ..small() }), 0));
}

#[test]
fn neighbours_share_neurons() {
    let network = network(CircuitRecipe::with_neurons(1, 100_000));
    let own: HashSet<u64> = lists(&network, 0)[1].iter().copied().collect();
    let shared =
        |other| lists(&network, other)[1].iter().filter(|neuron| own.contains(neuron)).count();
    let mut shares: Vec<usize> = (1..600).map(shared).collect();
    shares.sort_unstable();
    assert!(
        shares[300] * 20 < own.len(),
        "most have few in common: {} of {}",
        shares[300],
        own.len()
    );
    assert!(shares[598] * 5 > own.len(), "some have many: {} of {}", shares[598], own.len());
}

#[test]
fn small_tissue_is_made_too() {
    for neurons in [1, 2, 15, 16, 100, 500] {
        let network = network(CircuitRecipe::with_neurons(1, neurons));
        for astrocyte in 0..network.recipe().astrocytes() {
            let [synapses, owners] = lists(&network, astrocyte);
            assert!(
                synapses.windows(2).all(|pair| pair[0] < pair[1]) && owners.len() as u64 <= neurons
            );
        }
    }
}

#[test]
fn impossible_recipes_are_refused() {
    for wrong in [
        CircuitRecipe { neurons: 0, ..small() },
        CircuitRecipe { neurons: u64::MAX, ..small() },
        CircuitRecipe { astrocytes: Some(193), ..small() },
    ] {
        assert!(matches!(SynthNetwork::new(wrong.clone()), Err(Error::Usage(_))), "{wrong:?}");
    }
    assert_eq!(small().room(), 192);
    assert_eq!(CircuitRecipe::default().file_name(), "synth-14086-astrocytes-219422-neurons-v1.h5");
}

#[cfg(feature = "hdf5")]
#[test]
fn the_same_recipe_is_the_same_file_and_is_brought_in() {
    use crate::input::{InputOptions, ngv, open};

    let folder = tempfile::tempdir().unwrap_or_else(|error| unreachable!("{error}"));
    let network = network(CircuitRecipe { astrocytes: Some(20), ..small() });
    let paths = ["a.h5", "b.h5"].map(|name| folder.path().join(name));
    let bytes = paths.each_ref().map(|path| {
        assert!(NeuroglialWriter::write(path, &network).is_ok());
        std::fs::read(path).unwrap_or_default()
    });
    assert!(bytes[0].len() as u64 > network.bytes() && bytes[0] == bytes[1]);
    let agreed = ngv::check(&paths[0], &InputOptions::default()).unwrap_or_default();
    assert!(agreed.len() == 1 && agreed[0].is_same, "{agreed:?}");
    let input =
        open(&paths[0], &InputOptions::default()).unwrap_or_else(|error| unreachable!("{error}"));
    let totals: Vec<_> = input.edges.iter().map(|edges| edges.total()).collect();
    assert_eq!(totals, network.totals().map(Some));
}
