//! Synthetic reads are reproducible, have the requested lengths, and are as hard to compress as
//! real ones.

use sha2::{Digest, Sha256};
use thalweg::format::pod5::fields::END_REASONS;
use thalweg::synth::{Basecalls, Recipe, Synth, SynthRead};

fn read(synth: &Synth, i: u64) -> SynthRead {
    let mut read = SynthRead::default();
    synth.read(i, &mut read);
    read
}

/// A digest of all fields, except those that are copied from the recipe.
fn digest(reads: &[SynthRead]) -> String {
    let mut hash = Sha256::new();
    for read in reads {
        hash.update(read.read_id.as_bytes());
        hash.update(read.uuid);
        hash.update(read.read_group.to_le_bytes());
        hash.update(read.offset.to_le_bytes());
        read.samples.iter().for_each(|sample| hash.update(sample.to_le_bytes()));
        // The sign of a NaN differs between processors; its text doesn't.
        hash.update(format!("{:?}", read.aux));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_first_reads_are_the_same_everywhere() {
    let synth = Synth::new(Recipe { seed: 1, ..Recipe::default() }).unwrap();
    let reads: Vec<_> = (0..4).map(|i| read(&synth, i)).collect();
    assert_eq!(digest(&reads), "c58ebdf01e8c7fa16b4b7686048dfd8f3660e2ac89b33c5c3ef6320f594505de");
}

#[test]
fn a_read_depends_on_its_number_alone() {
    let recipe = Recipe { mean_length: 3000.0, read_groups: 3, ..Recipe::default() };
    let synth = Synth::new(recipe.clone()).unwrap();
    let forth: Vec<_> = (0..40).map(|i| read(&synth, i)).collect();
    let mut reused = SynthRead::default();
    for i in (0..40).rev() {
        synth.read(i, &mut reused);
        assert_eq!(digest(&[reused.clone()]), digest(&forth[i as usize..=i as usize]));
        assert_eq!(synth.len_of(i), reused.samples.len() as u64);
    }
    let threads: Vec<_> = std::thread::scope(|scope| {
        let synth = &synth;
        let workers: Vec<_> = (0..4).map(|k| scope.spawn(move || read(synth, k))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert_eq!(digest(&threads), digest(&forth[..4]));
    let other = Synth::new(Recipe { seed: 2, ..recipe }).unwrap();
    assert_ne!(read(&other, 0).samples, forth[0].samples);
}

#[test]
fn fields_look_like_those_of_real_files() {
    let recipe = Recipe { mean_length: 2000.0, read_groups: 2, channels: 126, ..Recipe::default() };
    let synth = Synth::new(recipe).unwrap();
    let mut ids = std::collections::HashSet::new();
    let mut round = std::collections::HashSet::new();
    let mut groups = [0; 2];
    for i in 0..126 {
        let read = read(&synth, i);
        let id = read.read_id.as_bytes();
        assert_eq!((id.len(), id[14]), (36, b'4'), "{}", read.read_id);
        assert!(matches!(id[19], b'8' | b'9' | b'a' | b'b'), "{}", read.read_id);
        assert!(ids.insert(read.read_id.clone()));
        assert!(round.insert(read.aux.channel_number.clone()), "one read a channel and round");
        assert!((1..=126).contains(&read.aux.channel_number.parse::<u32>().unwrap()));
        assert!((1..=4).contains(&read.aux.start_mux));
        assert!(usize::from(read.aux.end_reason) < END_REASONS.len());
        groups[read.read_group as usize] += 1;
    }
    assert!(groups.iter().all(|&n| n > 20), "{groups:?}");
    let attributes = synth.attributes(0);
    assert!(attributes.is_sorted_by(|a, b| a.0 < b.0), "sorted, no name twice");
    assert!(attributes.iter().all(|(_, value)| !value.is_empty() && !value.contains(['\t', '\n'])));
    assert_ne!(attributes, synth.attributes(1));
}

#[test]
fn lengths_are_log_normal_with_the_mean_asked_for() {
    let synth = Synth::new(Recipe { min_length: 0, ..Recipe::default() }).unwrap();
    let lengths: Vec<_> = (0..20_000).map(|i| synth.len_of(i) as f64).collect();
    let n = lengths.len() as f64;
    let mean = lengths.iter().sum::<f64>() / n;
    assert!((mean / 65_000.0 - 1.0).abs() < 0.03, "{mean}");
    let logs: Vec<_> = lengths.iter().map(|length| length.ln()).collect();
    let middle = logs.iter().sum::<f64>() / n;
    let sigma = (logs.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / n).sqrt();
    assert!((sigma - 0.9).abs() < 0.02, "{sigma}");
    assert_eq!(Recipe::with_samples(1, 1_200_000_000).reads, Recipe::default().reads);
    assert_eq!(Recipe::with_samples(1, 0).reads, 0);
}

/// Zigzag differences, as all signal codecs make them.
fn zigzag(samples: &[i16]) -> Vec<u16> {
    let mut last = 0i16;
    let step = |&sample: &i16| {
        let delta = sample.wrapping_sub(std::mem::replace(&mut last, sample));
        ((delta << 1) ^ (delta >> 15)) as u16
    };
    samples.iter().map(step).collect()
}

/// POD5's coding: one bit per value for its length of one or two bytes, followed by these bytes.
fn svb16(values: &[u16]) -> Vec<u8> {
    let mut coded = vec![0; values.len().div_ceil(8)];
    for (k, value) in values.iter().enumerate() {
        let [low, high] = value.to_le_bytes();
        coded.push(low);
        if high != 0 {
            coded[k / 8] |= 1 << (k % 8);
            coded.push(high);
        }
    }
    coded
}

#[test]
fn reads_are_as_hard_to_compress_as_real_ones() {
    for seed in [1, 2, 3] {
        let synth = Synth::new(Recipe { seed, ..Recipe::default() }).unwrap();
        let (mut samples, mut stored, mut wide) = (0, 0, 0);
        let mut sizes = [0usize; 10];
        for i in 0..30 {
            let read = read(&synth, i);
            let values = zigzag(&read.samples);
            samples += values.len();
            wide += values.iter().filter(|&&value| value > 255).count();
            for value in &values {
                sizes[(16 - (value.div_ceil(2)).leading_zeros()).min(9) as usize] += 1;
            }
            let coded = svb16(&values);
            let mut packed = vec![0u8; zstd_safe::compress_bound(coded.len())];
            stored += zstd_safe::compress(&mut packed[..], &coded, 1).unwrap();
        }
        let bits = stored as f64 * 8.0 / samples as f64;
        assert!((6.5..7.0).contains(&bits), "seed {seed}: {bits} bits a sample");
        // Two real runs: 0.4 and 1.45 %.
        let share = wide as f64 / samples as f64;
        assert!((0.004..0.0145).contains(&share), "seed {seed}: {share}");
        // Shares of |delta| in 0, 1, 2-3, 4-7, ... 128-255 of the same two runs, with some room for
        // the seed.
        let real = [
            (2.8, 2.6),
            (5.5, 4.8),
            (10.8, 9.5),
            (20.0, 17.8),
            (29.7, 27.2),
            (23.7, 22.4),
            (9.3, 6.4),
        ];
        for (k, (a, b)) in real.into_iter().enumerate() {
            let percent = sizes[k] as f64 * 100.0 / samples as f64;
            assert!(
                (b * 0.9..a * 1.1).contains(&percent),
                "seed {seed}: {percent} % of |delta| in class {k}"
            );
        }
    }
}

#[test]
fn odd_recipes_give_odd_reads_and_no_panic() {
    let base = || Recipe { min_length: 0, mean_length: 500.0, ..Recipe::default() };
    let odd = [
        Recipe { mean_length: 0.0, ..base() },
        Recipe { mean_length: 1.0, length_sigma: 0.0, ..base() },
        Recipe { mean_length: 1e15, max_length: 9, ..base() },
        Recipe { sample_rate: 1e12, bases_per_second: 1e-3, ..base() },
        Recipe { sample_rate: 1e-3, bases_per_second: 1e12, ..base() },
        Recipe { digitisation: 1.0, range: 1e9, ..base() },
        Recipe { digitisation: 8192.0, range: 1916.98, offset: 9.0, ..base() },
        Recipe { digitisation: 65_536.0, range: 1e-3, level_sd: 1e6, noise_sd: 1e6, ..base() },
        Recipe {
            stalls_per_base: 1.0,
            spikes_per_sample: 1.0,
            open_pore_share: 1.0,
            adapter_length: 0.0,
            ..base()
        },
        Recipe {
            noise_correlation: -0.5,
            dwell_shape: 0.5,
            level_sd: 0.0,
            noise_sd: 0.0,
            drift_sd: 0.0,
            ..base()
        },
        Recipe { channels: 1, read_groups: u32::MAX, seed: u64::MAX, ..base() },
        Recipe { channels: u32::MAX, ..base() },
    ];
    for recipe in odd {
        let synth = Synth::new(recipe.clone()).unwrap();
        for i in [0, 1, 7, u64::MAX] {
            assert!(read(&synth, i).samples.len() as u64 == synth.len_of(i), "{recipe:?}");
        }
    }
    assert_eq!(
        read(&Synth::new(Recipe { mean_length: 0.0, ..base() }).unwrap(), 0).samples.len(),
        0
    );
    let one = Recipe { mean_length: 1.0, length_sigma: 0.0, ..base() };
    assert_eq!(read(&Synth::new(one).unwrap(), 0).samples.len(), 1);
}

#[test]
fn senseless_recipes_are_refused() {
    for recipe in [
        Recipe { mean_length: f64::NAN, ..Recipe::default() },
        Recipe { mean_length: -1.0, ..Recipe::default() },
        Recipe { range: 0.0, ..Recipe::default() },
        Recipe { digitisation: 1e6, ..Recipe::default() },
        Recipe { min_length: 2, max_length: 1, ..Recipe::default() },
        Recipe { channels: 0, ..Recipe::default() },
    ] {
        let error = Synth::new(recipe).unwrap_err().to_string();
        assert!(error.starts_with("recipe: "), "{error}");
    }
}

/// The records of `calls` as lines, four to each.
fn fastq(calls: &Basecalls) -> Vec<String> {
    let mut text = Vec::new();
    (0..calls.reads).for_each(|i| calls.record(i, &mut text));
    String::from_utf8(text).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn basecalls_are_fastq_with_the_lengths_and_qualities_of_a_real_run() {
    let calls = Basecalls::with_bases(1, 4_000_000).unwrap();
    let lines = fastq(&calls);
    assert_eq!(lines.len() as u64, 4 * calls.reads);
    let (mut bases, mut gc, mut quality) = (0, 0, 0);
    let mut ids = std::collections::HashSet::new();
    for record in lines.chunks(4) {
        let id = record[0].strip_prefix('@').unwrap().split(' ').next().unwrap();
        assert!(id.len() == 36 && id.as_bytes()[14] == b'4' && ids.insert(id.to_owned()), "{id}");
        assert_eq!(record[2], "+");
        assert_eq!(record[1].len(), record[3].len());
        assert!(record[1].bytes().all(|b| b"ACGT".contains(&b)));
        assert!(record[3].bytes().all(|b| (b'"'..=b'S').contains(&b)));
        bases += record[1].len();
        gc += record[1].bytes().filter(|b| b"GC".contains(b)).count();
        quality += record[3].bytes().map(|b| usize::from(b - b'!')).sum::<usize>();
    }
    let share = |part: usize| part as f64 / bases as f64;
    assert!((share(gc) - 0.41).abs() < 0.01, "{}", share(gc));
    assert!((share(quality) - 22.0).abs() < 2.0, "{}", share(quality));
    // The lengths are log-normal, so the sum of 500 of them varies widely.
    assert!((bases as f64 / 4e6 - 1.0).abs() < 0.2, "{bases}");
    // In a gzip file of real reads, a base takes about one byte.
    let mut packed = Vec::new();
    let text = lines.join("\n");
    thalweg::codec::deflate::DeflateCompressor::new(6)
        .unwrap()
        .gzip(text.as_bytes(), &mut packed)
        .unwrap();
    assert!((0.8..1.1).contains(&share(packed.len())), "{}", share(packed.len()));
}

#[test]
fn basecalls_are_the_same_everywhere() {
    let calls = Basecalls::with_bases(1, 50_000).unwrap();
    let hash = Sha256::digest(fastq(&calls).join("\n"));
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hash, "5efea456114d4a234464f7918a98327540965985fa8379277a8a4f48a9fe8e54");
    assert_ne!(fastq(&calls), fastq(&Basecalls { seed: 2, ..calls.clone() }));
    assert!(Basecalls::with_bases(1, 0).is_err());
}
