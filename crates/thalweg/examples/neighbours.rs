//! Imports a neuroglial network into a store, then asks for the neurons of two astrocytes.
//!
//! `cargo run -p thalweg --example neighbours [HDF5_FILE]`
//!
//! Without a file, a small synthetic one is made in a temporary folder; the store is made there
//! in either case.

use std::error::Error;
use std::path::{Path, PathBuf};

use thalweg::graph::{Direction, Neighbours, Network, NetworkOptions, Writer, input};
use thalweg::synth::neuroglial::{self, CircuitRecipe, NeuroglialWriter};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = match std::env::args_os().nth(1) {
        Some(path) => PathBuf::from(path),
        None => synthetic(folder.path())?,
    };
    let store = folder.path().join("network");

    // Only one process at a time may write. An import is stored completely or not at all.
    let mut writer = Writer::open(&store, NetworkOptions::default())?;
    let imported =
        writer.import(input::open(&path, &input::InputOptions::default())?, &mut |_edges| ())?;
    println!("imported {} vertices and {} edges", imported.vertices, imported.edges);
    drop(writer);

    // A network shows the store as it was when it was opened.
    let network = Network::open(&store, NetworkOptions::default())?;
    for (number, edges) in network.populations().iter().enumerate() {
        println!("population {}: {} edges", edges.population.name, network.edge_count(number));
    }
    let astrocyte = network.type_of("Astrocyte")?;
    let neuron = network.type_of("Neuron")?;
    let adjacencies = network.adjacencies(astrocyte, Some(neuron), Direction::Auto);

    // One call for many vertices: their lists are fetched together, in the order of the files.
    let vertices = [0, 3];
    let mut neighbours = Neighbours::default();
    network.neighbours(&adjacencies, &vertices, &mut neighbours)?;
    for (place, vertex) in vertices.iter().enumerate() {
        let list = neighbours.of(place);
        println!("astrocyte {vertex}: {} neurons, from {:?}", list.len(), list.first());
    }
    Ok(())
}

/// Makes a file of ten astrocytes in a tissue of 1,000 neurons.
fn synthetic(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let path = folder.join("network.h5");
    let recipe = CircuitRecipe { astrocytes: Some(10), ..CircuitRecipe::with_neurons(1, 1_000) };
    NeuroglialWriter::write(&path, &neuroglial::SynthNetwork::new(recipe)?)?;
    Ok(path)
}
