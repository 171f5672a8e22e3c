//! Reads scientific files into arrays, as fast as the machine allows and in bounded memory.
//!
//! [`open`] finds out what a path holds: nanopore *reads* (SLOW5, BLOW5, POD5, FAST5), *arrays* of
//! HDF5 files (NeXus, netCDF-4, SONATA), a *network* of vertices and edges, or sequences in
//! *FASTQ*. Everything else in this crate works on one of these four.
//!
//! The data flows one way: a *format* turns a file into extents, a *plan* turns extents into
//! requests, a *store* answers them, a *codec* turns stored bytes into values, and the caller takes
//! the values. The engine knows no format, and a format starts no threads. `docs/design.md`
//! explains the words and the rules.
//!
//! # What is where
//!
//! | module | holds |
//! |---|---|
//! | [`reads`] | files of reads, and many of them as one set: read, select by id, tables, check |
//! | [`convert`], [`write`](mod@write) | reads from any format into any other |
//! | [`format`](mod@format) | the formats of reads by themselves: headers, records, tables |
//! | `arrays` | datasets of HDF5 files, or parts of them (feature `hdf5`) |
//! | `nexus` | events and logs of neutron instruments in HDF5 files (feature `hdf5`) |
//! | [`event_table`] | events as Arrow tables |
//! | `doctor`, `repack` | why an HDF5 file is slow, and how to make it anew (feature `hdf5`) |
//! | [`graph`] | networks: neighbours, changes, import, export |
//! | [`fastq`] | FASTQ files: records, figures, other compressions |
//! | [`synth`] | synthetic files, the same on every machine |
//! | [`store`], [`model`], [`plan`], [`engine`], [`control`] | how bytes are fetched and decoded |
//! | [`codec`] | compressions of signals and blocks, as pure functions |
//!
//! This crate re-exports the crates `thalweg-codec`, `thalweg-io`, `thalweg-hdf5`,
//! `thalweg-nanopore`, `thalweg-graph` and `thalweg-fastq`.
//!
//! # Reads
//!
//! The examples make small synthetic files and read them. This one decodes all reads of a BLOW5
//! file on all cores, in the order of the file. `signal_sum` runs on the thread that decodes the
//! read.
//!
//! ```
//! use thalweg::reads::{Read, Selection};
//! use thalweg::format::slow5::{RecordPress, SignalPress};
//! use thalweg::synth::{Recipe, Synth};
//! use thalweg::write::Coding;
//! use thalweg::{Opened, Options, open};
//!
//! fn signal_sum(read: &Read<'_>) -> (String, i64) {
//!     let sum = read.samples.iter().map(|&sample| i64::from(sample)).sum();
//!     (read.record.read_id.to_owned(), sum)
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("reads.blow5");
//! let synth = Synth::new(Recipe::with_samples(1, 200_000))?;
//! synth.write(&path, Coding::Blow5(RecordPress::Zstd, SignalPress::SvbZd))?;
//!
//! let Opened::Reads(file) = open(&path, Options::default())? else { panic!("no reads") };
//! let mut count = 0;
//! for row in file.map(&Selection::All, signal_sum)? {
//!     let (id, sum) = row?;
//!     println!("{id}: {sum}");
//!     count += 1;
//! }
//! assert_eq!(count, synth.recipe().reads);
//! # Ok(())
//! # }
//! ```
//!
//! # Arrays
//!
//! This example reads one dataset of an HDF5 file part by part. The values are bytes in C order,
//! little-endian.
//!
//! ```
//! # #[cfg(not(feature = "hdf5"))]
//! # fn main() {}
//! # #[cfg(feature = "hdf5")]
//! # fn main() -> thalweg::Result<()> {
//! use thalweg::synth::nexus::{NexusRecipe, NexusWriter, SynthRun};
//! use thalweg::{Opened, Options, open};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let path = folder.path().join("run.nxs");
//! let run = SynthRun::new(NexusRecipe { banks: 2, ..NexusRecipe::with_bytes(1, 100_000) })?;
//! NexusWriter::write(&path, &run)?;
//!
//! let Opened::Arrays(file) = open(&path, Options::default())? else { panic!("no arrays") };
//! let mut bytes = 0;
//! for dataset in file.below("/entry/bank1_events/event_id")? {
//!     file.values(&dataset, &mut |part| {
//!         bytes += part.len();
//!         Ok(())
//!     })?;
//! }
//! assert_eq!(bytes as u64, run.events(0) * 4);
//! # Ok(())
//! # }
//! ```
//!
//! # Events
//!
//! This example reads the events of some banks of a NeXus file, with the pulses that they belong
//! to.
//!
//! ```
//! # #[cfg(not(feature = "hdf5"))]
//! # fn main() {}
//! # #[cfg(feature = "hdf5")]
//! # fn main() -> thalweg::Result<()> {
//! use thalweg::nexus::{EventSelection, Nexus};
//! use thalweg::synth::nexus::{NexusRecipe, NexusWriter, SynthRun};
//! use thalweg::{Opened, Options, open};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let path = folder.path().join("run.nxs");
//! let run = SynthRun::new(NexusRecipe { banks: 3, ..NexusRecipe::with_bytes(1, 100_000) })?;
//! NexusWriter::write(&path, &run)?;
//!
//! let Opened::Arrays(file) = open(&path, Options::default())? else { panic!("no arrays") };
//! let nexus = Nexus::find(&file)?;
//! let wanted = EventSelection { banks: vec!["bank[12]_*".into()], ..Default::default() };
//! let mut events = 0;
//! let summary = nexus.events(&wanted, &mut |batch| {
//!     events += batch.pulses.len() as u64;
//!     Ok(())
//! })?;
//! assert!(summary.findings.is_empty());
//! assert_eq!(events, run.events(0) + run.events(1));
//! # Ok(())
//! # }
//! ```
//!
//! # Networks
//!
//! A network is imported into a folder, which is then opened like any other path. This example
//! reads the synapses of three astrocytes.
//!
//! ```
//! # #[cfg(not(feature = "hdf5"))]
//! # fn main() {}
//! # #[cfg(feature = "hdf5")]
//! # fn main() -> thalweg::Result<()> {
//! use thalweg::graph::synth::{CircuitRecipe, NeuroglialWriter, SynthNetwork};
//! use thalweg::graph::{Direction, InputOptions, Neighbours, NetworkOptions, Writer, input};
//! use thalweg::{Opened, Options, open};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let file = folder.path().join("circuit.h5");
//! # let path = folder.path().join("network");
//! let recipe = CircuitRecipe { astrocytes: Some(10), ..CircuitRecipe::with_neurons(1, 2_000) };
//! NeuroglialWriter::write(&file, &SynthNetwork::new(recipe)?)?;
//! let mut writer = Writer::open(&path, NetworkOptions::default())?;
//! writer.import(input::open(&file, &InputOptions::default())?, &mut |_| {})?;
//! drop(writer);
//!
//! let Opened::Network(network) = open(&path, Options::default())? else { panic!("no network") };
//! let astrocyte = network.type_of("Astrocyte")?;
//! let synapse = network.type_of("Synapse")?;
//! let adjacencies = network.adjacencies(astrocyte, Some(synapse), Direction::Auto);
//! let mut synapses = Neighbours::default();
//! network.neighbours(&adjacencies, &[0, 1, 2], &mut synapses)?;
//! assert_eq!(synapses.len(), 3);
//! assert!(!synapses.of(0).is_empty());
//! # Ok(())
//! # }
//! ```

pub mod event_table;
mod open;

pub use open::{ArrayFile, Identified, Opened, open, open_store, open_urls};

#[doc(inline)]
pub use thalweg_io::open::{OpenedStore, Options, StoreKind};
#[doc(inline)]
pub use thalweg_io::{Error, Fault, InFile, Result, cache_folder};

#[doc(inline)]
pub use thalweg_nanopore::{convert, reads, write};

#[doc(inline)]
pub use thalweg_hdf5 as hdf5;
#[cfg(feature = "hdf5")]
#[doc(inline)]
pub use thalweg_hdf5::repack;
#[doc(inline)]
pub use thalweg_hdf5::{arrays, doctor, nexus};

#[doc(inline)]
pub use thalweg_graph as graph;

#[doc(inline)]
pub use thalweg_fastq as fastq;

#[cfg(feature = "object")]
#[doc(inline)]
pub use thalweg_object as object;

#[doc(inline)]
pub use thalweg_codec as codec;
#[doc(inline)]
pub use thalweg_io::{
    cells, condition, control, disk, engine, extent, lengths, model, new_file, object_cache, plan,
    pool, residency, store, text, urls,
};

/// The formats of reads: the headers of their files, and the places of their records.
pub mod format {
    #[doc(inline)]
    pub use thalweg_nanopore::format::*;
    #[doc(inline)]
    pub use thalweg_nanopore::{bam, fast5, pod5, slow5};
}

/// Synthetic files of any size, the same on every machine.
pub mod synth {
    #[doc(inline)]
    pub use thalweg_graph::synth as neuroglial;
    #[doc(inline)]
    pub use thalweg_hdf5::synth as nexus;
    #[doc(inline)]
    pub use thalweg_nanopore::synth::*;
}

/// The example of the README.
#[cfg(all(doctest, feature = "hdf5"))]
#[doc = include_str!("../README.md")]
struct Readme;
