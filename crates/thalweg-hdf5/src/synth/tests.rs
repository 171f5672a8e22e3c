use std::collections::HashSet;

use super::*;

fn small() -> NexusRecipe {
    NexusRecipe {
        banks: 4,
        layout: DatasetLayout::Chunked(256),
        events_per_pulse: 500.0,
        ..NexusRecipe::with_bytes(3, 400_000)
    }
}

fn run(recipe: NexusRecipe) -> SynthRun {
    SynthRun::new(recipe).unwrap_or_else(|error| unreachable!("{error}"))
}

fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect()
}

fn u64s(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|b| u64::from_le_bytes(*b)).collect()
}

/// These values must never change: files made by other versions and on other machines hold them.
#[test]
fn values_are_the_same_everywhere() {
    let run = run(small());
    let (mut ids, mut offsets, mut index) = (Vec::new(), Vec::new(), Vec::new());
    run.ids(1, 5..9, &mut ids);
    run.offsets(1, 5..9, &mut offsets);
    run.index(1, 0..5, &mut index);
    let offsets: Vec<f32> = offsets.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    assert_eq!(u32s(&ids), [1084, 1234, 1423, 1471]);
    assert_eq!(offsets, [6583.6, 5886.8, 15018.9, 7077.7]);
    assert_eq!(u64s(&index), [0, 131, 249, 374, 502]);
}

#[test]
fn another_seed_makes_other_values_and_another_layout_does_not() {
    let of = |recipe: NexusRecipe| {
        let run = run(recipe);
        let mut bytes = Vec::new();
        run.ids(0, 0..1000, &mut bytes);
        run.offsets(0, 0..1000, &mut bytes);
        run.index(0, 0..50, &mut bytes);
        bytes
    };
    let laid =
        NexusRecipe { layout: DatasetLayout::Contiguous, order: ChunkOrder::Ordered, ..small() };
    assert_eq!(of(small()), of(laid));
    assert_ne!(of(small()), of(NexusRecipe { seed: 4, ..small() }));
}

#[test]
fn parts_are_parts_of_the_whole() {
    let run = run(small());
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    run.ids(2, 0..1000, &mut whole);
    run.index(2, 0..100, &mut whole);
    for range in [0..1, 1..700, 700..1000] {
        run.ids(2, range, &mut parts);
    }
    for range in [0..7, 7..100] {
        run.index(2, range, &mut parts);
    }
    assert_eq!(whole, parts);
}

#[test]
fn every_event_belongs_to_a_pulse() {
    // More than a block of pulses, and banks with less than an event a pulse.
    let recipe =
        NexusRecipe { banks: 3, events_per_pulse: 3.0, ..NexusRecipe::with_bytes(1, 64_000) };
    let run = run(recipe);
    assert!(run.pulses() > 2048);
    for bank in 0..3 {
        let mut index = Vec::new();
        run.index(bank, 0..run.pulses(), &mut index);
        let index = u64s(&index);
        assert_eq!(index.len() as u64, run.pulses());
        assert!(index.is_sorted() && index.first() == Some(&0));
        assert!(index.last().is_some_and(|last| *last <= run.events(bank)));
        // The beam was off for some pulses, so that no events arrived.
        assert!(index.windows(60).any(|pulses| pulses.iter().all(|first| *first == pulses[0])));
    }
}

#[test]
fn as_many_events_as_were_asked_for_and_weighted() {
    let run = run(NexusRecipe { banks: 40, ..NexusRecipe::with_bytes(1, 80_000_000) });
    assert!((run.bytes() as f64 / 8e7 - 1.0).abs() < 0.01, "{}", run.bytes());
    let share = run.events(0) as f64 * 8.0 / run.bytes() as f64;
    assert!((0.085..0.088).contains(&share), "{share}");
    assert!((1..40).all(|bank| run.events(bank) < run.events(bank - 1)));
}

#[test]
fn detector_counts_look_like_powder_diffraction() {
    let run = run(NexusRecipe { banks: 2, ..NexusRecipe::with_bytes(1, 8_000_000) });
    let (mut ids, mut offsets) = (Vec::new(), Vec::new());
    run.ids(1, 0..400_000, &mut ids);
    run.offsets(1, 0..400_000, &mut offsets);
    let ids = u32s(&ids);
    assert!(ids.iter().all(|id| (1024..2048).contains(id)));
    let seen: HashSet<u32> = ids.iter().copied().collect();
    assert!((1000..1024).contains(&seen.len()), "{} pixels: some are dead", seen.len());
    let mut bins = [0_u32; 167];
    for bytes in offsets.as_chunks().0 {
        let at = f32::from_le_bytes(*bytes);
        assert!((0.0..16_666.7).contains(&at));
        bins[(at / 100.0) as usize] += 1;
    }
    let mut sorted = bins;
    sorted.sort_unstable();
    assert!(sorted[166] > 5 * sorted[83], "peaks stand out: {bins:?}");
}

/// gzip saves a half of the ids and a quarter of the times of real events, not nine tenths as of
/// consecutive numbers.
#[test]
fn values_are_as_hard_to_compress_as_real_ones() {
    let run = run(NexusRecipe::with_bytes(1, 40_000_000));
    let coding = ChunkCoding { shuffle: false, press: Press::Gzip(6) };
    let mut encoder = Encoder::new(coding);
    let mut ratio = |field| {
        let piece = DatasetPiece { bank: 3, field, number: 0 };
        let Ok(packed) = encoder.encode(&run, piece) else { unreachable!("level 6 exists") };
        8192.0 / packed.bytes.len() as f64
    };
    let (id, offset) = (ratio(BankField::EventId), ratio(BankField::EventTimeOffset));
    assert!((1.8..3.0).contains(&id), "ids: {id}");
    assert!((1.1..1.8).contains(&offset), "times: {offset}");
}

#[test]
fn each_piece_comes_once_in_every_order() {
    for order in [ChunkOrder::Live, ChunkOrder::Interleaved, ChunkOrder::Ordered] {
        let run = run(NexusRecipe { order, ..small() });
        let pieces: Vec<DatasetPiece> = run.pieces().collect();
        assert_eq!(pieces.len() as u64, run.piece_count());
        let mut once = HashSet::new();
        assert!(pieces.iter().all(|piece| once.insert((piece.bank, piece.field, piece.number))));
        for bank in 0..4 {
            for field in BankField::ALL {
                let numbers: Vec<u64> = pieces
                    .iter()
                    .filter(|p| (p.bank, p.field) == (bank, field))
                    .map(|p| p.number)
                    .collect();
                assert_eq!(
                    numbers,
                    (0..numbers.len() as u64).collect::<Vec<_>>(),
                    "a dataset grows at its end"
                );
                assert_eq!(
                    numbers.len() as u64,
                    run.len(bank, field).div_ceil(run.piece(bank, field))
                );
            }
        }
    }
}

#[test]
fn a_live_run_is_scattered_and_an_ordered_one_is_not() {
    // The share of chunks of ids whose next chunk belongs to another bank.
    let changes = |order| {
        let run = run(NexusRecipe { order, ..small() });
        let banks: Vec<u32> =
            run.pieces().filter(|p| p.field == BankField::EventId).map(|p| p.bank).collect();
        let changes = banks.windows(2).filter(|pair| pair[0] != pair[1]).count();
        changes as f64 / (banks.len() - 1) as f64
    };
    // In random order, the share is 1 minus the sum of the squared bank shares: 0.58 for four
    // skewed banks.
    assert!((0.45..0.75).contains(&changes(ChunkOrder::Live)), "{}", changes(ChunkOrder::Live));
    assert!(changes(ChunkOrder::Interleaved) > 0.5);
    assert!(changes(ChunkOrder::Ordered) < 0.02);
}

#[test]
fn impossible_recipes_are_refused() {
    let coding = ChunkCoding { shuffle: true, press: Press::Gzip(4) };
    let contiguous =
        NexusRecipe { layout: DatasetLayout::Contiguous, order: ChunkOrder::Ordered, ..small() };
    for wrong in [
        NexusRecipe { banks: 0, ..small() },
        NexusRecipe { layout: DatasetLayout::Chunked(1 << 40), ..small() },
        NexusRecipe { order: ChunkOrder::Live, ..contiguous.clone() },
        NexusRecipe { coding, ..contiguous.clone() },
        NexusRecipe { events_per_pulse: f64::NAN, ..small() },
        NexusRecipe { events: u64::MAX, ..small() },
    ] {
        assert!(matches!(SynthRun::new(wrong.clone()), Err(Error::Usage(_))), "{wrong:?}");
    }
    assert!(contiguous.check().is_ok());
}

#[test]
fn keywords_are_parsed() {
    assert_eq!("1Mi".parse(), Ok(DatasetLayout::Chunked(1 << 20)));
    assert_eq!("contiguous".parse(), Ok(DatasetLayout::Contiguous));
    for coding in ["none", "gzip:4", "shuffle+gzip:1", "zstd:3", "shuffle+lz4"] {
        assert_eq!(coding.parse::<ChunkCoding>().map(|c| c.to_string()), Ok(coding.to_owned()));
    }
    assert_eq!("gzip".parse::<ChunkCoding>(), "gzip:4".parse());
    for wrong in ["shuffle+none", "gzip:13", "lz4:1", "szip", "gzip:", ""] {
        assert!(wrong.parse::<ChunkCoding>().is_err(), "{wrong}");
    }
    for wrong in ["0", "1Gi", "-1", "", "Mi", "99999999999999999999Mi"] {
        assert!(wrong.parse::<DatasetLayout>().is_err(), "{wrong}");
    }
}

#[cfg(feature = "libhdf5")]
#[test]
fn the_same_recipe_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| unreachable!("{error}"));
    let coding = ChunkCoding { shuffle: true, press: Press::Gzip(4) };
    for recipe in [small(), NexusRecipe { coding, libver: Libver::Latest, ..small() }] {
        let run = run(recipe);
        let bytes = ["a.nxs", "b.nxs"].map(|name| {
            let path = folder.path().join(name);
            assert!(NexusWriter::write(&path, &run).is_ok());
            std::fs::read(path).unwrap_or_default()
        });
        assert!(bytes[0].len() > 100_000 && bytes[0] == bytes[1]);
    }
}
