#![expect(clippy::panic, reason = "tests")]

use super::*;
use crate::array::{Array, ElementPlace};
use crate::dtype::Dtype;
use crate::filter::Pipeline;
use crate::types::Chunk;

/// An array of u32 in chunks of 2048, whose chunks lie `stride` chunks apart.
fn array(chunks: u64, stride: u64) -> Array {
    let size = 2048 * 4;
    let chunk = |first| Chunk { first, offset: 4096 + first * stride * size, size, mask: 0 };
    Array {
        shape: vec![chunks * 2048],
        dtype: Dtype::number('u', 4, false),
        fill: Vec::new(),
        place: ElementPlace::Chunked(vec![2048], (0..chunks).map(chunk).collect()),
        pipeline: Pipeline::default(),
    }
}

const MODEL: StoreModel = StoreModel {
    latency_s: 1e-3,
    bandwidth: 150e6,
    request_rate: 2e3,
    depth: 8,
    ..StoreModel::LOCAL
};

#[test]
fn scattered_chunks_are_counted() {
    let layout = ArrayLayout::of("/a", &array(100, 80));
    assert_eq!(
        (layout.pieces, layout.pairs, layout.followed, layout.small),
        (100, 99, 0, 100 * 8192)
    );
    let layout = ArrayLayout::of("/a", &array(100, 1));
    assert_eq!((layout.pieces, layout.followed, layout.stored), (100, 99, 100 * 8192));
}

#[test]
fn the_time_through_libhdf5_is_a_request_a_chunk() {
    let layouts = [ArrayLayout::of("/a", &array(10_000, 80))];
    let time = of_libhdf5(&layouts, &MODEL, Duration::ZERO, &Costs::default());
    assert_eq!((time.requests, time.jumps), (10_000, 10_000));
    // Each request takes a millisecond. The bytes take half a second, the processor less.
    assert!((10.5..10.8).contains(&time.total_s), "{time:?}");
    let ordered = of_libhdf5(
        &[ArrayLayout::of("/a", &array(10_000, 1))],
        &MODEL,
        Duration::ZERO,
        &Costs::default(),
    );
    assert!((5.0..5.8).contains(&ordered.total_s), "requests at 2,000 a second: {ordered:?}");
}

/// The findings for arrays, with requests of at most 1 MiB.
fn findings(layouts: &[ArrayLayout], thalweg: &Predicted, libhdf5: &Predicted) -> Vec<Finding> {
    let costs = &Costs::default();
    let (model, index, block) = (&MODEL, Duration::ZERO, 1 << 20);
    Examined { layouts, thalweg, libhdf5, model, index, costs, block }.findings()
}

#[test]
fn repairs_are_named_with_their_gain() {
    let layouts = [ArrayLayout::of("/a", &array(10_000, 80))];
    let costs = Costs::default();
    let load = Load { requests: 10_000, bytes: 10_000 * 8192 };
    let thalweg = of_thalweg(&layouts, load, 10_000, &MODEL, Duration::ZERO, &costs, 2);
    let libhdf5 = of_libhdf5(&layouts, &MODEL, Duration::ZERO, &costs);
    let found = findings(&layouts, &thalweg, &libhdf5);
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(
        (finding.kind, finding.repack.as_deref()),
        (FindingKind::Scattered, Some("--chunk 1Mi"))
    );
    let Some(gain) = finding.gain else { panic!("no gain") };
    assert!(
        gain.libhdf5.total_s < libhdf5.total_s / 10.0
            && gain.thalweg.total_s < thalweg.total_s / 5.0,
        "{gain:?}"
    );
    assert_eq!(gain.libhdf5.requests, 20, "20.48 million elements");
}

#[test]
fn no_repair_is_named_that_gains_next_to_nothing() {
    let layouts = &[ArrayLayout::of("/a", &array(100, 80))];
    let costs = &Costs::default();
    let load = Load { requests: 100, bytes: 100 * 8192 };
    // Finding the chunks takes much longer than reading them, whatever their layout is.
    let index = Duration::from_secs(10);
    let thalweg = &of_thalweg(layouts, load, 100, &MODEL, index, costs, 2);
    let libhdf5 = &of_libhdf5(layouts, &MODEL, index, costs);
    let examined =
        Examined { layouts, thalweg, libhdf5, model: &MODEL, index, costs, block: 1 << 20 };
    let found = examined.findings();
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!((finding.kind, finding.repack.as_deref()), (FindingKind::Scattered, None));
    assert!(finding.gain.is_some());
    assert!(findings(layouts, thalweg, libhdf5)[0].repack.is_some(), "without that time");
}

#[test]
fn a_file_in_order_is_healthy() {
    let contiguous = Array { place: ElementPlace::Contiguous(Some(4096)), ..array(100, 1) };
    let layouts = [ArrayLayout::of("/a", &contiguous)];
    let costs = Costs::default();
    let time = of_libhdf5(&layouts, &MODEL, Duration::ZERO, &costs);
    assert!(findings(&layouts, &time, &time).is_empty());
}
