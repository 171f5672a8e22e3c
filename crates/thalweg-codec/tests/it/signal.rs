//! Tests of the signal codecs: every kernel of this machine against the scalar one, which is the
//! definition, and the scalar one against bytes made by hand.

use proptest::prelude::*;
use thalweg_codec::Fault;
use thalweg_codec::picoampere::Calibration;
use thalweg_codec::{Kernel, ex_zd, svb, svb16};

type Decoded = Result<Vec<i16>, Fault>;

/// Decodes `coded` with every kernel, behind existing samples. Checks that all results are equal
/// and returns them.
fn same_by_all(
    coded: &[u8],
    decode: impl Fn(Kernel, &[u8], &mut Vec<i16>) -> Result<(), Fault>,
) -> Decoded {
    let by = |kernel| {
        let mut out = vec![7, -7];
        let result = decode(kernel, coded, &mut out);
        assert_eq!(out[..2], [7, -7], "{kernel:?} overwrites");
        let samples = out.split_off(2);
        assert!(result.is_ok() || samples.is_empty(), "{kernel:?} appends in spite of an error");
        result.map(|()| samples)
    };
    let scalar = by(Kernel::Scalar);
    for kernel in Kernel::available() {
        assert_eq!(by(kernel), scalar, "{kernel:?}");
    }
    scalar
}

/// Checks that all kernels agree on truncated, changed and extended copies of good bytes.
fn same_on_damage(
    good: &[u8],
    decode: impl Fn(Kernel, &[u8], &mut Vec<i16>) -> Result<(), Fault> + Copy,
) {
    for len in 0..good.len() {
        assert!(same_by_all(&good[..len], decode).is_err(), "cut to {len} bytes");
    }
    let mut longer = good.to_vec();
    longer.push(0);
    assert!(same_by_all(&longer, decode).is_err());
    for at in 0..good.len() {
        for flip in [1, 2, 0x80, 0xff] {
            let mut bad = good.to_vec();
            bad[at] ^= flip;
            let _ = same_by_all(&bad, decode);
        }
    }
}

/// Samples like those of a pore, with rare long jumps.
fn signal() -> impl Strategy<Value = Vec<i16>> {
    let step = prop_oneof![80 => -60..60_i16, 10 => -600..600_i16, 1 => any::<i16>()];
    prop_oneof![
        4 => prop::collection::vec(step, 0..700).prop_map(|steps| {
            let add = |at: &mut i16, step| {
                *at = at.wrapping_add(step);
                Some(*at)
            };
            steps.into_iter().scan(400_i16, add).collect()
        }),
        1 => prop::collection::vec(any::<i16>(), 0..300),
        1 => prop::collection::vec(prop_oneof![Just(i16::MIN), Just(i16::MAX), Just(0)], 0..300),
    ]
}

/// A fixed signal that has every width of value and is long enough for several blocks.
fn fixed_signal(samples: usize) -> Vec<i16> {
    let mut state = 1_u32;
    let mut at = 0_i16;
    let mut step = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let jump = (state >> 16) as i16;
        at = at.wrapping_add(match state >> 8 & 0x3f {
            0..=3 => jump >> 6,
            _ => jump >> 9,
        });
        at
    };
    (0..samples).map(|_| step()).collect()
}

mod svb_zd {
    use super::*;

    fn coded(samples: &[i16]) -> Vec<u8> {
        let mut coded = vec![9];
        svb::zd::encode(samples, &mut coded).unwrap();
        coded.split_off(1)
    }

    #[test]
    fn known_bytes() {
        // Differences 0, -1, 128, -32768 - 127 (zigzag 65789), 65535 (zigzag 131070).
        let samples = [0, -1, 127, i16::MIN, i16::MAX];
        let bytes = [5, 0, 0, 0, 0b10_01_00_00, 0b10, 0, 1, 0, 1, 0xfd, 0, 1, 0xfe, 0xff, 1];
        assert_eq!(coded(&samples), bytes);
        assert_eq!(same_by_all(&bytes, svb::zd::decode_with).unwrap(), samples);
        assert_eq!(svb::zd::samples(&bytes), Ok(5));
    }

    #[test]
    fn four_byte_values_and_loose_codes_are_read() {
        // 1 in four bytes, 2 in three, and a last key byte whose unused codes are not zero.
        let bytes = [2, 0, 0, 0, 0b11_11_10_11, 1, 0, 0, 0, 2, 0, 0];
        assert_eq!(same_by_all(&bytes, svb::zd::decode_with).unwrap(), [-1, 0]);
    }

    #[test]
    fn no_samples() {
        assert_eq!(coded(&[]), [0; 4]);
        assert_eq!(same_by_all(&[0; 4], svb::zd::decode_with).unwrap(), [0_i16; 0]);
    }

    #[test]
    fn hostile_counts() {
        for count in [1_u32, 3, 32, 0x7fff_ffff, u32::MAX] {
            let mut bad = count.to_le_bytes().to_vec();
            assert!(same_by_all(&bad, svb::zd::decode_with).is_err());
            bad.extend([0xff; 40]);
            assert!(same_by_all(&bad, svb::zd::decode_with).is_err());
        }
        for count in [41, 1 << 40, usize::MAX] {
            assert!(svb::zd::decode_exact(&[0; 40], count, &mut Vec::new()).is_err());
            assert!(svb::decode_u32(&[0; 40], count, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn damage() {
        same_on_damage(&coded(&fixed_signal(210)), svb::zd::decode_with);
    }

    #[test]
    fn every_kernel_encodes_the_same() {
        let check = |samples: &[i16]| {
            let by = |kernel| {
                let mut out = vec![7; 3];
                svb::zd::encode_exact_with(kernel, samples, &mut out);
                assert_eq!(out[..3], [7; 3], "{kernel:?} overwrites");
                out.split_off(3)
            };
            for kernel in Kernel::available() {
                assert_eq!(by(kernel), by(Kernel::Scalar), "{kernel:?}, {} samples", samples.len());
            }
        };
        (0..200).for_each(|n| check(&fixed_signal(n)));
        let jumps = |i: i16| if i % 37 == 0 { i16::MIN } else { i16::MAX - i % 7 };
        check(&(0..500).map(jumps).collect::<Vec<_>>());
        check(&[i16::MAX; 320]);
        proptest!(|(samples in signal())| check(&samples));
    }

    proptest! {
        #[test]
        fn round_trip(samples in signal()) {
            let coded = coded(&samples);
            prop_assert_eq!(svb::zd::samples(&coded), Ok(samples.len()));
            prop_assert_eq!(same_by_all(&coded, svb::zd::decode_with).unwrap(), samples);
        }

        #[test]
        fn any_bytes(count in 0..200_u32, rest in prop::collection::vec(any::<u8>(), 0..600)) {
            let bytes = [&count.to_le_bytes()[..], &rest].concat();
            let _ = same_by_all(&bytes, svb::zd::decode_with);
        }

        #[test]
        fn values_round_trip(values in prop::collection::vec(
            any::<u32>().prop_flat_map(|v| (0..32_u32).prop_map(move |s| v >> s)), 0..100,
        )) {
            let (mut coded, mut back) = (Vec::new(), Vec::new());
            svb::encode_u32(&values, &mut coded);
            svb::decode_u32(&coded, values.len(), &mut back).unwrap();
            prop_assert_eq!(&back, &values);
            coded.push(0);
            prop_assert!(svb::decode_u32(&coded, values.len(), &mut back).is_err());
            prop_assert_eq!(back, values);
        }
    }
}

mod svb_16 {
    use super::*;

    fn coded(samples: &[i16]) -> Vec<u8> {
        let mut coded = vec![9];
        svb16::encode_prefixed(samples, &mut coded).unwrap();
        coded.split_off(1)
    }

    #[test]
    fn known_bytes() {
        // Zigzag differences modulo 2^16: 0, 1, 256, 0xff02 (-32895 is 32641), 1 (65535 is -1), and
        // 2 four times.
        let samples =
            [0, -1, 127, i16::MIN, i16::MAX, i16::MIN, i16::MIN + 1, i16::MIN + 2, i16::MIN + 3];
        let bytes = [9, 0, 0, 0, 0b0000_1100, 0, 0, 1, 0, 1, 0x02, 0xff, 1, 2, 2, 2, 2];
        assert_eq!(coded(&samples), bytes);
        assert_eq!(same_by_all(&bytes, svb16::decode_prefixed_with).unwrap(), samples);
    }

    #[test]
    fn no_samples() {
        assert_eq!(coded(&[]), [0; 4]);
        assert_eq!(same_by_all(&[0; 4], svb16::decode_prefixed_with).unwrap(), [0_i16; 0]);
    }

    #[test]
    fn hostile_counts() {
        for count in [37, 1 << 40, usize::MAX - 7, usize::MAX] {
            assert!(svb16::decode(&[0; 40], count, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn damage() {
        same_on_damage(&coded(&fixed_signal(210)), svb16::decode_prefixed_with);
    }

    #[test]
    fn every_kernel_encodes_the_same() {
        let check = |samples: &[i16]| {
            let by = |kernel| {
                let mut out = vec![7; 3];
                svb16::encode_with(kernel, samples, &mut out);
                assert_eq!(out[..3], [7; 3], "{kernel:?} overwrites");
                out.split_off(3)
            };
            for kernel in Kernel::available() {
                assert_eq!(by(kernel), by(Kernel::Scalar), "{kernel:?}, {} samples", samples.len());
            }
        };
        (0..200).for_each(|n| check(&fixed_signal(n)));
        let jumps = |i: i16| if i % 3 == 0 { i16::MIN } else { i16::MAX - i % 7 };
        check(&(0..500).map(jumps).collect::<Vec<_>>());
        check(&[i16::MAX; 320]);
        proptest!(|(samples in signal())| check(&samples));
    }

    proptest! {
        #[test]
        fn round_trip(samples in signal()) {
            let decoded = same_by_all(&coded(&samples), svb16::decode_prefixed_with).unwrap();
            prop_assert_eq!(decoded, samples);
        }

        #[test]
        fn any_bytes(count in 0..300_usize, rest in prop::collection::vec(any::<u8>(), 0..600)) {
            let decode = |kernel, rest: &[u8], out: &mut Vec<i16>| {
                svb16::decode_with(kernel, rest, count, out)
            };
            let _ = same_by_all(&rest, decode);
        }
    }
}

mod ex_zd_0 {
    use super::*;

    fn coded(samples: &[i16]) -> Vec<u8> {
        let mut coded = vec![9];
        ex_zd::encode(samples, &mut coded).unwrap();
        coded.split_off(1)
    }

    #[track_caller]
    fn pair(samples: &[i16], bytes: &[u8]) {
        assert_eq!(coded(samples), bytes);
        assert_eq!(same_by_all(bytes, ex_zd::decode_with).unwrap(), samples);
        assert_eq!(ex_zd::samples(bytes), Ok(samples.len()));
    }

    #[test]
    fn known_bytes() {
        pair(&[], &[0; 16]);
        // A lone 1000 has three low bits clear: 125, zigzag 250.
        pair(&[1000], &[0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 250, 0, 0, 0, 0, 0]);
        pair(&[0], &[0, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0]);
        // No exception; the first sample may be any.
        pair(&[-1000, -1001, -1000], &[0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0xcf, 7, 0, 0, 0, 0, 1, 2]);
        // One: difference 1 is 300, zigzag 600 = 256 + 344.
        let one = [0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0x58, 1, 0, 0, 2, 1];
        pair(&[1, 2, 302, 301], &one);
        // Two, at differences 0 and 2: a key byte and the gaps 0 and 1; a key byte, 0x158 and
        // -300's 0x157.
        let two = [0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 2, 0, 0, 0];
        let lists = [3, 0, 0, 0, 0, 0, 1, 5, 0, 0, 0, 0b0101, 0x58, 1, 0x57, 1];
        pair(&[1, 301, 300, 0, 1], &[&two[..], &lists, &[1, 2]].concat());
    }

    #[test]
    fn every_shift_of_the_samples_is_undone() {
        for q in 1..=7 {
            let samples: Vec<i16> = fixed_signal(500).iter().map(|s| s << q).collect();
            let coded = coded(&samples);
            assert_eq!(coded[9], q.min(5));
            assert_eq!(same_by_all(&coded, ex_zd::decode_with).unwrap(), samples);
        }
    }

    #[test]
    fn chunks_join() {
        for len in [4095, 4096, 4097, 4098, 8192, 8193, 8194, 20_000] {
            let samples = fixed_signal(len);
            assert_eq!(same_by_all(&coded(&samples), ex_zd::decode_with).unwrap(), samples);
        }
    }

    #[test]
    fn bytes_after_an_empty_signal_are_refused() {
        let mut bad = vec![0; 16];
        bad.push(0);
        assert!(same_by_all(&bad, ex_zd::decode_with).is_err());
        bad.pop();
        bad[12] = 1;
        assert!(same_by_all(&bad, ex_zd::decode_with).is_err());
    }

    #[test]
    fn hostile_counts() {
        let good = coded(&fixed_signal(100));
        for count in [0, 1, 99, 101, 1 << 20, 1 << 40, u64::MAX - 1, u64::MAX] {
            let mut bad = good.clone();
            bad[1..9].copy_from_slice(&count.to_le_bytes());
            assert!(same_by_all(&bad, ex_zd::decode_with).is_err());
        }
        for count in [0, 1, 2, 99, 100, 1 << 20, u32::MAX] {
            let mut bad = good.clone();
            bad[12..16].copy_from_slice(&count.to_le_bytes());
            assert!(same_by_all(&bad, ex_zd::decode_with).is_err());
        }
        for (at, bad_value) in [(0, 1), (9, 6), (9, 255)] {
            let mut bad = good.clone();
            bad[at] = bad_value;
            assert!(same_by_all(&bad, ex_zd::decode_with).is_err());
        }
    }

    /// Five exceptions in the first chunk, then more beyond the end than samples are left, with
    /// counts that agree.
    #[test]
    fn exceptions_beyond_the_end_in_a_later_chunk() {
        let (differences, exceptions) = (4096 + 10, 100_u32);
        let mut gaps = vec![1_u32; 5];
        gaps.resize(exceptions as usize, 5000);
        let mut bad = vec![0];
        bad.extend((differences as u64 + 1).to_le_bytes());
        bad.extend([0, 0, 0]);
        bad.extend(exceptions.to_le_bytes());
        for list in [gaps, vec![7; exceptions as usize]] {
            let mut coded = Vec::new();
            svb::encode_u32(&list, &mut coded);
            bad.extend((coded.len() as u32).to_le_bytes());
            bad.extend(coded);
        }
        bad.extend(vec![0; differences - exceptions as usize]);
        assert!(same_by_all(&bad, ex_zd::decode_with).is_err());
    }

    #[test]
    fn damage() {
        for len in [2, 210] {
            same_on_damage(&coded(&fixed_signal(len)), ex_zd::decode_with);
        }
        same_on_damage(&coded(&[1, 2, 302, 301]), ex_zd::decode_with);
    }

    proptest! {
        #[test]
        fn round_trip(samples in signal()) {
            let coded = coded(&samples);
            prop_assert_eq!(ex_zd::samples(&coded), Ok(samples.len()));
            prop_assert_eq!(same_by_all(&coded, ex_zd::decode_with).unwrap(), samples);
        }

        #[test]
        fn any_bytes(
            n in 0..300_u64, exceptions in 0..20_u32,
            rest in prop::collection::vec(0..40_u8, 0..400),
        ) {
            let mut bytes = vec![0];
            bytes.extend(n.to_le_bytes());
            bytes.extend([0, 1, 2]);
            bytes.extend(exceptions.to_le_bytes());
            bytes.extend(rest);
            let _ = same_by_all(&bytes, ex_zd::decode_with);
        }
    }
}

/// Without this test, the suite would pass on a machine that has only the scalar kernel.
#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn this_machine_has_a_vector_kernel() {
    assert_ne!(Kernel::best(), Kernel::Scalar);
}

#[test]
fn ex_zd_without_samples_has_no_first_sample() {
    let mut coded = Vec::new();
    ex_zd::encode(&[], &mut coded).unwrap();
    assert_eq!(ex_zd::samples(&coded), Ok(0));
    ex_zd::decode(&coded, &mut Vec::new()).unwrap();
    // One sample, whose count is damaged: slow5lib gives the sample, and zero would lose it.
    let mut coded = Vec::new();
    ex_zd::encode(&[491], &mut coded).unwrap();
    coded[1] = 0;
    assert!(ex_zd::samples(&coded).is_err());
    assert!(ex_zd::decode(&coded, &mut Vec::new()).is_err());
}

mod picoampere {
    use super::*;

    /// The bits of all samples, by every kernel behind a value that is there.
    fn check(samples: &[i16], offset: f64, range: f64, digitisation: f64) {
        let scale = range / digitisation;
        let expected: Vec<u32> = samples
            .iter()
            .map(|&sample| (((f64::from(sample) + offset) * scale) as f32).to_bits())
            .collect();
        for kernel in Kernel::available() {
            let mut out = vec![7.0];
            let calibration = Calibration::new(offset, range, digitisation);
            calibration.convert_with(kernel, samples, &mut out);
            assert_eq!(out[0], 7.0, "{kernel:?} overwrites");
            let is_same = |(value, &bits): (&f32, &u32)| {
                value.to_bits() == bits || value.is_nan() && f32::from_bits(bits).is_nan()
            };
            assert_eq!(out.len(), 1 + expected.len());
            assert!(out[1..].iter().zip(&expected).all(is_same), "{kernel:?}");
        }
    }

    #[test]
    fn every_sample() {
        let all: Vec<i16> = (i16::MIN..=i16::MAX).collect();
        check(&all, 10.0, 1467.61, 8192.0);
        check(&all, -243.0, 748.580_139, 2048.0);
    }

    proptest! {
        #[test]
        fn every_kernel_converts_the_same(
            samples in prop::collection::vec(any::<i16>(), 0..200),
            offset in any::<f64>(), range in any::<f64>(), digitisation in any::<f64>(),
        ) {
            check(&samples, offset, range, digitisation);
        }
    }
}
