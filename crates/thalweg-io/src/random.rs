//! Random numbers for synthetic data, uniform and normal. A seed gives the same numbers on every
//! machine. The module is in this crate because the crates of all formats make synthetic files.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use thalweg_codec::splitmix::{STEP, mix};

/// A pseudorandom number in [0, 1), determined by the three arguments.
pub fn hash01(seed: u64, purpose: u64, i: u64) -> f64 {
    unit(mix(mix(seed ^ purpose.wrapping_mul(STEP)).wrapping_add(i.wrapping_mul(STEP))))
}

fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// The stream of random numbers of one item: a read, a bank, a block of pulses.
#[derive(Debug)]
pub struct Chance(Xoshiro256PlusPlus);

impl Chance {
    /// The stream of item `i` under `seed`.
    pub fn new(seed: u64, i: u64) -> Self {
        let mut bytes = [0; 32];
        // Four SplitMix64 outputs; `i` enters through a bijection, so that no two items share a
        // state.
        let base = mix(seed.wrapping_add(STEP)) ^ mix(i.wrapping_mul(STEP));
        for (k, word) in (1u64..).zip(bytes.chunks_exact_mut(8)) {
            word.copy_from_slice(&mix(base.wrapping_add(k.wrapping_mul(STEP))).to_le_bytes());
        }
        Self(Xoshiro256PlusPlus::from_seed(bytes))
    }

    /// 64 random bits.
    #[inline(always)]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }

    /// A standard normal value by [`quantile`], good to 1e-9 but slow.
    pub fn normal(&mut self) -> f64 {
        // The middle of one of 2^53 slots: never 0 or 1.
        quantile(self.unit() + 0.5 / (1u64 << 53) as f64)
    }
}

/// The standard normal distribution's quantile at `p`, in (0, 1): P. J. Acklam's approximation,
/// good to 1e-9.
pub fn quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -39.696_830_286_653_76,
        220.946_098_424_520_5,
        -275.928_510_446_968_7,
        138.357_751_867_269,
        -30.664_798_066_147_16,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -54.476_098_798_224_06,
        161.585_836_858_040_9,
        -155.698_979_859_886_6,
        66.801_311_887_719_72,
        -13.280_681_552_885_72,
        1.0,
    ];
    const C: [f64; 6] = [
        -0.007_784_894_002_430_293,
        -0.322_396_458_041_136_5,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        0.007_784_695_709_041_462,
        0.322_467_129_070_039_8,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    let poly = |c: &[f64], x: f64| c.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * libm::log(p)).sqrt();
        poly(&C, q) / poly(&D, q)
    };
    // `1 - p` is 0 if `p` is 1; the logarithm needs a positive number.
    if p < 0.024_25 {
        tail(p.max(1e-300))
    } else if p > 1.0 - 0.024_25 {
        -tail((1.0 - p).max(1e-17))
    } else {
        let q = p - 0.5;
        q * poly(&A, q * q) / poly(&B, q * q)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (p, z) in
            [(0.5, 0.0), (0.841_344_746, 1.0), (0.975, 1.959_963_985), (0.001, -3.090_232_306)]
        {
            assert!((quantile(p) - z).abs() < 1e-6, "{p}: {}", quantile(p));
        }
        assert!(quantile(1.0).is_finite() && quantile(0.0).is_finite());
    }

    #[test]
    fn streams_differ() {
        let first = |seed, i| Chance::new(seed, i).bits();
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 0), first(0, 1));
    }
}
