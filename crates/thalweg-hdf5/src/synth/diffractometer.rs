//! Pixels and times of flight of neutrons from a powder in a time-of-flight diffractometer.

use thalweg_codec::splitmix::mix;
use thalweg_io::random::Chance;

use super::NexusRecipe;

/// The number of kinds of events in the table of a bank. Kinds omit the last bits of the time of
/// flight.
const KINDS: usize = 1 << 14;
/// Bits of the hash that blur the time of an event, because a moderator's pulse takes about 25 us.
const BLUR_BITS: u32 = 8;
/// Steps of the clock: 100 ns, in which 18 bits hold a frame of 1/60 s.
const TICKS_PER_US: f64 = 10.0;
const TICK_BITS: u32 = 18;
const FRAME_US: f64 = 1e6 / 60.0;

/// Tubes of a bank, and pixels of a tube.
const TUBES: u32 = 8;
const PIXELS: u32 = 128;
/// Degrees from one tube to the next.
const TUBE_DEGREES: f64 = 0.4;
/// Flight path in metres, and microseconds per metre of a neutron of 1 angstrom.
const PATH_M: f64 = 20.0;
const US_PER_M: f64 = 252.778;

/// Lattice spacings and multiplicities of a face-centred cubic powder, 4.05 angstrom: 111, 200,
/// 220, 311, ...
const REFLECTIONS: [(f64, f64); 10] = [
    (3.0, 8.0),
    (4.0, 6.0),
    (8.0, 12.0),
    (11.0, 24.0),
    (12.0, 8.0),
    (16.0, 6.0),
    (19.0, 24.0),
    (20.0, 24.0),
    (24.0, 24.0),
    (27.0, 32.0),
];
const LATTICE: f64 = 4.05;
/// Share of the events that are reflections; the others follow the incident spectrum.
const REFLECTED: f64 = 0.4;

/// The kinds of events of a bank, drawn once. Each event then costs one lookup in a table that
/// stays in the cache.
#[derive(Debug)]
pub(super) struct BankTable {
    first_id: u32,
    /// For each kind: the pixel in the high bits, the clock step in the low [`TICK_BITS`] bits.
    kinds: Vec<u32>,
}

impl BankTable {
    pub(super) fn new(recipe: &NexusRecipe, bank: u32) -> Self {
        let purpose = u64::from_be_bytes(*b"detector");
        let mut chance = Chance::new(recipe.seed ^ mix(purpose), u64::from(bank));
        let pixels =
            cumulated((0..TUBES * PIXELS).map(|pixel| sensitivity(&mut chance, pixel % PIXELS)));
        let middle = 15.0 + 135.0 * (f64::from(bank) + 0.5) / f64::from(recipe.banks);
        let longest = FRAME_US / (PATH_M * US_PER_M);
        let spectrum = cumulated((0..SPECTRUM_BINS).map(|bin| flux(wavelength(bin, 0.5, longest))));
        let tubes: Vec<Vec<(f64, f64)>> =
            (0..TUBES).map(|tube| reflections(middle, tube, longest)).collect();
        let kinds = (0..KINDS).map(|_| {
            let pixel = drawn(&pixels, chance.unit()) as u32;
            let reflections =
                tubes.get((pixel / PIXELS) as usize).map_or(&[][..], |tube| &tube[..]);
            let angstrom = if chance.unit() < REFLECTED && !reflections.is_empty() {
                let chosen = chance.unit();
                let reflection = reflections
                    .partition_point(|(sum, _)| *sum <= chosen)
                    .min(reflections.len() - 1);
                reflections[reflection].1 * (1.0 + 0.002 * chance.normal())
            } else {
                wavelength(drawn(&spectrum, chance.unit()) as u32, chance.unit(), longest)
            };
            let last = (FRAME_US * TICKS_PER_US) as u32 - (1 << BLUR_BITS);
            // Float to integer casts saturate.
            let tick = ((angstrom * PATH_M * US_PER_M * TICKS_PER_US) as u32).min(last);
            pixel << TICK_BITS | tick
        });
        Self { first_id: bank * TUBES * PIXELS, kinds: kinds.collect() }
    }

    #[inline(always)]
    fn kind(&self, bits: u64) -> u32 {
        self.kinds.get(bits as usize % KINDS).copied().unwrap_or(0)
    }

    /// The number of the pixel, unique among banks.
    #[inline(always)]
    pub(super) fn id(&self, bits: u64) -> u32 {
        self.first_id + (self.kind(bits) >> TICK_BITS)
    }

    /// The time of flight in microseconds.
    #[inline(always)]
    pub(super) fn microseconds(&self, bits: u64) -> f32 {
        let blur = (bits / KINDS as u64) as u32 % (1 << BLUR_BITS);
        ((self.kind(bits) & ((1 << TICK_BITS) - 1)) + blur) as f32 / TICKS_PER_US as f32
    }
}

/// The relative sensitivity of a pixel. Tubes count less at their ends; some pixels are dead, some
/// count too much.
fn sensitivity(chance: &mut Chance, place: u32) -> f64 {
    let middle = f64::from(PIXELS - 1) / 2.0;
    let off = (f64::from(place) - middle) / middle;
    let odd = chance.unit();
    let own = libm::exp(0.15 * chance.normal());
    let oddness = if odd < 0.01 {
        0.0
    } else if odd > 0.998 {
        20.0
    } else {
        1.0
    };
    (1.0 - 0.6 * off * off * off * off) * own * oddness
}

const SPECTRUM_BINS: u32 = 1024;

/// A wavelength within a bin of the spectrum, in angstrom.
fn wavelength(bin: u32, within: f64, longest: f64) -> f64 {
    longest * (0.03 + 0.97 * (f64::from(bin) + within) / f64::from(SPECTRUM_BINS))
}

/// The neutron flux at a wavelength: a moderator's Maxwell distribution and neutrons that were not
/// slowed down. Aluminium windows scatter wavelengths shorter than twice their lattice spacings,
/// which gives Bragg edges.
fn flux(angstrom: f64) -> f64 {
    let a = 1.8 / angstrom;
    let slowed = 2.0 * a * a * a * a * a * libm::exp(-a * a);
    let passed = REFLECTIONS.iter().filter(|(n, _)| angstrom < 2.0 * LATTICE / n.sqrt()).count();
    (slowed + 0.1 * a) * (1.0 - 0.03 * passed as f64)
}

/// The reflections of a tube that fall into the frame, as cumulated shares and wavelengths.
fn reflections(bank_degrees: f64, tube: u32, longest: f64) -> Vec<(f64, f64)> {
    let degrees = bank_degrees + (f64::from(tube) - f64::from(TUBES - 1) / 2.0) * TUBE_DEGREES;
    let sine = libm::sin(degrees / 2.0 * std::f64::consts::PI / 180.0);
    let seen: Vec<(f64, f64)> = REFLECTIONS
        .iter()
        .map(|(n, multiplicity)| {
            let angstrom = 2.0 * LATTICE / n.sqrt() * sine;
            (multiplicity * flux(angstrom), angstrom)
        })
        .filter(|(_, angstrom)| *angstrom < longest * 0.99)
        .collect();
    let shares = cumulated(seen.iter().map(|(share, _)| *share));
    shares.into_iter().zip(seen).map(|(sum, (_, angstrom))| (sum, angstrom)).collect()
}

/// Cumulated weights, divided by the sum of all weights.
fn cumulated(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums: Vec<f64> = weights
        .map(|weight| {
            sum += weight;
            sum
        })
        .collect();
    sums.iter_mut().for_each(|s| *s /= sum);
    sums
}

/// The index of the entry that a number in [0, 1) selects.
fn drawn(sums: &[f64], at: f64) -> usize {
    sums.partition_point(|sum| *sum <= at).min(sums.len().saturating_sub(1))
}
