//! Pulses of the source, and the number of events of each pulse in each bank.

use std::ops::Range;

use thalweg_codec::splitmix::mix;
use thalweg_io::random::{Chance, hash01};

use super::{NexusRecipe, PulseTimes, SynthRun};

/// Pulses whose numbers of events come from one stream of random numbers.
const BLOCK: u64 = 1024;
/// Pulses for which the beam is off together, and the share of them.
const TRIP: u64 = 64;
const TRIPS: f64 = 0.02;
/// From this mean on, a normal distribution approximates Poisson's well enough.
const MANY: f64 = 30.0;

/// 2024-05-14T08:00:00Z, in seconds since 1970.
const START: u64 = 1_715_673_600;

/// The pulses of a run. Their numbers of events are drawn again on each request; only the sum
/// before each block is stored.
#[derive(Debug)]
pub(super) struct SynthPulses {
    seed: u64,
    count: u64,
    frequency: f64,
    /// For each bank: the mean, the events before each block, and the total.
    banks: Vec<(f64, Vec<u64>)>,
}

impl SynthPulses {
    pub(super) fn new(recipe: &NexusRecipe) -> Self {
        let count = ((recipe.events as f64 / recipe.events_per_pulse).ceil() as u64).max(1);
        let mut pulses =
            Self { seed: recipe.seed, count, frequency: recipe.frequency, banks: Vec::new() };
        let on = (0..count)
            .step_by(TRIP as usize)
            .filter(|p| pulses.is_on(*p))
            .map(|p| TRIP.min(count - p))
            .sum::<u64>();
        for bank in 0..recipe.banks {
            let mean = recipe.events as f64 * recipe.share(bank) / on.max(1) as f64;
            let mut before = vec![0];
            let mut sum = 0;
            for block in 0..count.div_ceil(BLOCK) {
                pulses.block(bank, mean, block, |events| sum += events);
                before.push(sum);
            }
            pulses.banks.push((mean, before));
        }
        pulses
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn events(&self, bank: u32) -> u64 {
        self.banks.get(bank as usize).and_then(|(_, before)| before.last()).copied().unwrap_or(0)
    }

    /// Whether the beam is on. The first pulse is always on, so that every run has events.
    fn is_on(&self, pulse: u64) -> bool {
        let purpose = u64::from_be_bytes(*b"beamtrip");
        pulse < TRIP || hash01(self.seed, purpose, pulse / TRIP) >= TRIPS
    }

    /// Passes the number of events of each pulse of a block to `take`.
    fn block(&self, bank: u32, mean: f64, block: u64, mut take: impl FnMut(u64)) {
        let purpose = u64::from_be_bytes(*b"pulsing ");
        let mut chance = Chance::new(self.seed ^ mix(purpose.wrapping_add(u64::from(bank))), block);
        for pulse in block * BLOCK..((block + 1) * BLOCK).min(self.count) {
            let drawn = poisson(&mut chance, mean);
            take(if self.is_on(pulse) { drawn } else { 0 });
        }
    }

    /// Passes the index of the first event of each selected pulse to `take`.
    fn firsts(&self, bank: u32, wanted: &Range<u64>, mut take: impl FnMut(u64)) {
        let Some((mean, before)) = self.banks.get(bank as usize) else { return };
        for block in wanted.start / BLOCK..wanted.end.div_ceil(BLOCK) {
            let mut first = before.get(block as usize).copied().unwrap_or(0);
            let mut pulse = block * BLOCK;
            self.block(bank, *mean, block, |events| {
                if wanted.contains(&pulse) {
                    take(first);
                }
                first += events;
                pulse += 1;
            });
        }
    }

    /// Time of a pulse in seconds from the start of the run. Pulses are evenly spaced except for a
    /// jitter of some microseconds.
    fn seconds(&self, pulse: u64) -> f64 {
        let jitter = hash01(self.seed, u64::from_be_bytes(*b"jitter  "), pulse) - 0.5;
        (pulse as f64 + 1.0) / self.frequency + jitter * 20e-6
    }
}

impl SynthRun {
    /// Appends `event_index` of some pulses of a bank, little-endian.
    pub fn index(&self, bank: u32, pulses: Range<u64>, out: &mut Vec<u8>) {
        self.pulses.firsts(bank, &pulses, |first| out.extend(first.to_le_bytes()));
    }

    /// Appends `event_time_zero` of some pulses, little-endian.
    pub fn zeros(&self, pulses: Range<u64>, out: &mut Vec<u8>) {
        for pulse in pulses {
            let seconds = self.pulses.seconds(pulse);
            match self.recipe.pulse_times {
                PulseTimes::Seconds => out.extend(seconds.to_le_bytes()),
                PulseTimes::Nanoseconds => {
                    out.extend(
                        (START * 1_000_000_000 + (seconds * 1e9).round() as u64).to_le_bytes(),
                    );
                }
            }
        }
    }

    /// Appends the time of each of some pulses, in seconds since the start, as little-endian
    /// float64.
    pub fn times(&self, pulses: Range<u64>, out: &mut Vec<u8>) {
        out.extend(pulses.flat_map(|pulse| self.pulses.seconds(pulse).to_le_bytes()));
    }

    /// The length of the run in seconds.
    pub fn seconds(&self) -> f64 {
        self.pulses() as f64 / self.recipe.frequency
    }

    /// The temperature of the cooling sample at its `i`th reading, in kelvin.
    pub fn temperature(&self, i: u64) -> f64 {
        let noise = hash01(self.recipe.seed, u64::from_be_bytes(*b"kelvin  "), i) - 0.5;
        100.0 + 200.0 * libm::exp(-(i as f64) / 300.0) + 0.02 * noise
    }

    /// Appends the charge of each of some pulses in picocoulomb. It is 0 while the beam is off.
    pub fn charges(&self, pulses: Range<u64>, out: &mut Vec<u8>) {
        for pulse in pulses {
            let wander = hash01(self.pulses.seed, u64::from_be_bytes(*b"charges "), pulse);
            let charge = if self.pulses.is_on(pulse) { 2.3e7 + 1e5 * (wander - 0.5) } else { 0.0 };
            out.extend(charge.to_le_bytes());
        }
    }
}

/// Draws a number from the Poisson distribution.
fn poisson(chance: &mut Chance, mean: f64) -> u64 {
    if mean >= MANY {
        return (mean + mean.sqrt() * chance.normal()).round().max(0.0) as u64;
    }
    // Knuth's method: uniform numbers are multiplied until the product is below exp(-mean).
    let least = libm::exp(-mean);
    let mut product = chance.unit();
    let mut events = 0;
    while product > least {
        product *= chance.unit();
        events += 1;
    }
    events
}
