//! The general-purpose byte codecs.

use proptest::prelude::*;

/// Bytes that compress a little, as coded signals do.
fn plain() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(0..40_u8, 0..5000),
        prop::collection::vec(any::<u8>(), 0..5000),
        (any::<u8>(), 0..300_000_usize).prop_map(|(byte, n)| vec![byte; n]),
    ]
}

mod zstd {
    use thalweg_codec::zstd::{ZstdCompressor, ZstdDecompressor};
    use zstd_safe::{CCtx, CParameter};

    use super::*;

    fn frame(plain: &[u8]) -> Vec<u8> {
        let mut coded = Vec::new();
        ZstdCompressor::new(1).unwrap().compress(plain, &mut coded).unwrap();
        coded
    }

    /// A frame whose header does not declare its size.
    fn frame_without_size(plain: &[u8]) -> Vec<u8> {
        let mut context = CCtx::create();
        context.set_parameter(CParameter::ContentSizeFlag(false)).unwrap();
        let mut coded = vec![0; zstd_safe::compress_bound(plain.len())];
        let n = context.compress2(&mut coded[..], plain).unwrap();
        coded.truncate(n);
        coded
    }

    proptest! {
        #[test]
        fn round_trip(plain in plain(), n in 0..6000_usize) {
            let mut codec = ZstdDecompressor::new();
            let mut out = vec![1, 2, 3];
            for coded in [frame(&plain), frame_without_size(&plain)] {
                codec.decompress(&coded, &mut out, plain.len()).unwrap();
                prop_assert_eq!(&out, &plain);
                codec.prefix(&coded, &mut out, n).unwrap();
                prop_assert_eq!(&out, &plain[..n.min(plain.len())]);
                if let Some(less) = plain.len().checked_sub(1) {
                    prop_assert!(codec.decompress(&coded, &mut out, less).is_err());
                    prop_assert!(out.is_empty());
                }
                // A context must still work after a failure.
                codec.decompress(&coded, &mut out, usize::MAX).unwrap();
                prop_assert_eq!(&out, &plain);
            }
        }

        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), magic in any::<bool>()) {
            let start: &[u8] = if magic { &[0x28, 0xb5, 0x2f, 0xfd] } else { &[] };
            let bytes = [start, &bytes].concat();
            let (mut codec, mut out) = (ZstdDecompressor::new(), Vec::new());
            if codec.decompress(&bytes, &mut out, 1 << 20).is_err() {
                prop_assert!(out.is_empty());
            }
            let _ = codec.prefix(&bytes, &mut out, 100);
        }
    }

    #[test]
    fn truncated_and_changed() {
        let plain: Vec<u8> = (0..2000_u32).map(|i| ((i * i) >> 5) as u8 & 0x1f).collect();
        let (mut codec, mut out) = (ZstdDecompressor::new(), Vec::new());
        for good in [frame(&plain), frame_without_size(&plain)] {
            for len in 0..good.len() {
                assert!(codec.decompress(&good[..len], &mut out, 1 << 20).is_err(), "cut to {len}");
                assert!(codec.prefix(&good[..len], &mut out, 2001).is_err(), "cut to {len}");
            }
            for at in 0..good.len() {
                let mut bad = good.clone();
                bad[at] ^= 0x55;
                let _ = codec.decompress(&bad, &mut out, 1 << 20);
                assert!(out.capacity() <= 4 << 20);
            }
        }
    }

    #[test]
    fn bombs_are_named_and_not_allocated() {
        let (mut codec, mut out) = (ZstdDecompressor::new(), Vec::new());
        let bomb = frame(&vec![0; 10 << 20]);
        let fault = codec.decompress(&bomb, &mut out, 1 << 20).unwrap_err();
        assert!(
            fault.found.contains("10485760") && fault.expected.contains("1048576"),
            "{fault:?}"
        );
        assert!(out.capacity() < 2 << 20);
        let fault = codec
            .decompress(&frame_without_size(&vec![0; 10 << 20]), &mut out, 1 << 20)
            .unwrap_err();
        assert!(fault.expected.contains("1048576"), "{fault:?}");
        assert!(out.capacity() <= 2 << 20);
        // Magic, descriptor (8-byte size, single segment), size 2^40, one raw block of nothing.
        let liar = [0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0];
        let fault = codec.decompress(&liar, &mut out, usize::MAX).unwrap_err();
        assert!(fault.found.contains("1099511627776"), "{fault:?}");
        assert!(out.capacity() <= 2 << 20);
    }

    #[test]
    fn several_frames_follow_slow5lib() {
        let (mut codec, mut out) = (ZstdDecompressor::new(), Vec::new());
        let two = [frame(b"first"), frame(b"second")].concat();
        assert!(codec.decompress(&two, &mut out, 100).is_err());
        let and_empty = [frame(b"first"), frame(b"")].concat();
        codec.decompress(&and_empty, &mut out, 100).unwrap();
        assert_eq!(out, b"first");
        let undeclared = [frame_without_size(b"first"), frame(b"second")].concat();
        codec.decompress(&undeclared, &mut out, 100).unwrap();
        assert_eq!(out, b"firstsecond");
        codec.prefix(&two, &mut out, 3).unwrap();
        assert_eq!(out, b"fir");
    }
}

mod deflate {
    use thalweg_codec::deflate::{DeflateCompressor, DeflateDecompressor};

    use super::*;

    fn stream(plain: &[u8]) -> Vec<u8> {
        let mut coded = vec![1, 2, 3];
        DeflateCompressor::new(6).unwrap().compress(plain, &mut coded).unwrap();
        coded
    }

    proptest! {
        #[test]
        fn round_trip(plains in prop::collection::vec(plain(), 1..4), n in 0..6000_usize) {
            let mut codec = DeflateDecompressor::new();
            let mut out = vec![1, 2, 3];
            for plain in plains {
                let coded = stream(&plain);
                codec.decompress(&coded, &mut out, plain.len()).unwrap();
                prop_assert_eq!(&out, &plain);
                codec.prefix(&coded, &mut out, n).unwrap();
                prop_assert_eq!(&out, &plain[..n.min(plain.len())]);
                if let Some(less) = plain.len().checked_sub(1) {
                    prop_assert!(codec.decompress(&coded, &mut out, less).is_err());
                    prop_assert!(out.is_empty());
                    prop_assert!(codec.decompress_exact(&coded, &mut vec![0; less]).is_err());
                }
                let mut longer = vec![0; plain.len() + 1];
                prop_assert!(codec.decompress_exact(&coded, &mut longer).is_err());
                let mut exact = vec![0; plain.len()];
                codec.decompress_exact(&coded, &mut exact).unwrap();
                prop_assert_eq!(&exact, &plain);
                codec.decompress(&coded, &mut out, usize::MAX).unwrap();
                prop_assert_eq!(&out, &plain);
            }
        }

        #[test]
        fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), header in any::<bool>()) {
            let bytes = if header { [&[0x78, 0x9c][..], &bytes].concat() } else { bytes };
            let (mut codec, mut out) = (DeflateDecompressor::new(), Vec::new());
            if codec.decompress(&bytes, &mut out, 1 << 20).is_err() {
                prop_assert!(out.is_empty());
            }
            let _ = codec.prefix(&bytes, &mut out, 100);
        }
    }

    #[test]
    fn truncated_and_changed() {
        let plain: Vec<u8> = (0..2000_u32).map(|i| ((i * i) >> 5) as u8 & 0x1f).collect();
        let (mut codec, mut out) = (DeflateDecompressor::new(), Vec::new());
        let good = stream(&plain);
        for len in 0..good.len() {
            assert!(codec.decompress(&good[..len], &mut out, 1 << 20).is_err(), "cut to {len}");
            assert!(codec.prefix(&good[..len], &mut out, 2001).is_err(), "cut to {len}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            assert!(codec.decompress(&bad, &mut out, 1 << 20).is_err(), "changed at {at}");
        }
        // Bytes after the end of the stream are ignored.
        let longer = [&good[..], b"more"].concat();
        codec.decompress(&longer, &mut out, 1 << 20).unwrap();
        assert_eq!(out, plain);
    }

    #[test]
    fn bombs_are_named_and_not_allocated() {
        let (mut codec, mut out) = (DeflateDecompressor::new(), Vec::new());
        let bomb = stream(&vec![0; 10 << 20]);
        let fault = codec.decompress(&bomb, &mut out, 1 << 20).unwrap_err();
        assert!(fault.expected.contains("1048576"), "{fault:?}");
        assert!(out.capacity() <= 2 << 20);
        assert!(DeflateCompressor::new(13).is_err());
    }
}
