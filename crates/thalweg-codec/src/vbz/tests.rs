#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Chunks that version 1.0.1 of the plugin wrote from these integers, without zstd.
#[test]
fn decodes_what_the_plugin_wrote() {
    let signed: [i32; 11] = [5, -7, 3, 100, -90, 80, 120, 0, 1, -2, 3];
    let unsigned: [i32; 11] = [5, 7, 3, 100, 90, 80, 120, 0, 1, 2, 3];
    for (integers, size, version, zigzag, chunk) in [
        (signed, 1, 0, false, "0b0000000c030c05f9ffffff0364a6ffffff50780001feffffff03"),
        (signed, 1, 0, true, "0b0000000005000a1714c27b01540150ef02050a"),
        (signed, 1, 1, false, "0b0000009d2b1d95ff3f64a6ff5078e1ff3f"),
        (signed, 1, 1, true, "0b000000a9af157a4121bc17401500f52ea5"),
        (unsigned, 1, 1, false, "0b000000952a157543a605851732"),
        (unsigned, 1, 1, true, "0b00000095aa154a273c3101f52e22"),
        (signed, 2, 0, false, "160000000c030c05f9ffffff0364a6ffffff50780001feffffff03"),
        (signed, 2, 1, true, "160000000005000a1714c27b01540150ef02050a"),
        (unsigned, 2, 1, false, "16000000000000050703645a507800010203"),
        (signed, 4, 0, false, "2c0000000c030c05f9ffffff0364a6ffffff50780001feffffff03"),
        (signed, 4, 1, true, "2c0000000005000a1714c27b01540150ef02050a"),
    ] {
        let params = VbzParams { version, integer_size: size, zigzag, level: 0 };
        let want: Vec<u8> =
            integers.iter().flat_map(|i| i.to_le_bytes()[..size as usize].to_vec()).collect();
        let mut got = Vec::new();
        VbzDecompressor::default().bytes(params, &hex(chunk), want.len(), &mut got).unwrap();
        assert_eq!(got, want, "{params:?}");
        if size == 2 {
            let mut samples = vec![9];
            VbzDecompressor::default().samples(params, &hex(chunk), 22, &mut samples).unwrap();
            assert_eq!(samples[1..], integers.map(|i| i as i16));
        }
    }
}

#[test]
fn client_data_are_checked() {
    assert_eq!(
        VbzParams::parse(&[1, 2, 1, 1]).unwrap(),
        VbzParams { version: 1, ..VbzParams::SIGNAL }
    );
    assert_eq!(VbzParams::parse(&[0, 2, 1]).unwrap(), VbzParams::SIGNAL);
    assert_eq!(VbzParams::SIGNAL.values(), [0, 2, 1, 1]);
    for wrong in [&[0, 2][..], &[2, 2, 1, 1], &[0, 0, 1, 1], &[0, 3, 1, 1], &[0, 8, 1, 1], &[]] {
        VbzParams::parse(wrong).unwrap_err();
    }
}

#[test]
fn sizes_that_lie_are_refused_before_memory_is_spent() {
    let mut chunk = Vec::new();
    VbzCompressor::new(1).unwrap().chunk(&[1, 2, 3], &mut chunk).unwrap();
    let mut out = Vec::new();
    let mut vbz = VbzDecompressor::default();
    vbz.samples(VbzParams::SIGNAL, &chunk, 6, &mut out).unwrap();
    assert_eq!(out, [1, 2, 3]);
    for wrong in [0, 4, 7, 8, usize::MAX & !1] {
        vbz.samples(VbzParams::SIGNAL, &chunk, wrong, &mut out).unwrap_err();
    }
    chunk[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    vbz.samples(VbzParams::SIGNAL, &chunk, 6, &mut out).unwrap_err();
    vbz.samples(VbzParams::SIGNAL, &chunk, u32::MAX as usize, &mut out).unwrap_err();
    let even = u32::MAX - 1;
    chunk[..4].copy_from_slice(&even.to_le_bytes());
    vbz.samples(VbzParams::SIGNAL, &chunk, even as usize, &mut out).unwrap_err();
    assert_eq!(out, [1, 2, 3]);
}

proptest! {
    #[test]
    fn round_trips(samples in prop::collection::vec(any::<i16>(), 0..300), level in 0..4) {
        let mut chunk = Vec::new();
        VbzCompressor::new(level).unwrap().chunk(&samples, &mut chunk).unwrap();
        let params = VbzParams { level: level as u32, ..VbzParams::SIGNAL };
        let mut vbz = VbzDecompressor::default();
        let mut got = Vec::new();
        let mut bytes = Vec::new();
        vbz.samples(params, &chunk, samples.len() * 2, &mut got).unwrap();
        prop_assert_eq!(&got, &samples);
        vbz.bytes(params, &chunk, samples.len() * 2, &mut bytes).unwrap();
        let plain: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
        prop_assert_eq!(bytes, plain);
        if chunk.len() > 5 {
            let cut = &chunk[..chunk.len() - 1];
            vbz.samples(params, cut, samples.len() * 2, &mut got).unwrap_err();
        }
    }
}
