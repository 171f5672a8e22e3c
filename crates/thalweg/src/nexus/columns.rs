//! Events of a part of a bank, column by column.

use std::ops::Range;

use super::number::Number;
use super::pulses::Pulses;
use super::{Bank, List};

/// Bytes of elements that lie beside each other: the first of them, and those of each list that a bank has.
pub(super) struct Bytes<'a> {
    pub(super) first: u64,
    pub(super) ids: &'a [u8],
    pub(super) offsets: &'a [u8],
}

/// Columns that are being put together.
#[derive(Default)]
pub(super) struct Columns {
    pub(super) ids: Vec<u8>,
    pub(super) offsets: Vec<u8>,
    pub(super) pulses: Vec<i64>,
    pub(super) times: Vec<i64>,
}

impl Columns {
    /// Forgets what was here.
    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.offsets.clear();
        self.pulses.clear();
        self.times.clear();
    }

    /// Adds events of a range, those of such times of flight.
    pub(super) fn take(
        &mut self,
        range: Range<u64>,
        (bank, known): (&Bank, &Pulses),
        bytes: &Bytes<'_>,
        flight: Option<&Range<f64>>,
    ) {
        let Self { ids: some_ids, offsets: some_offsets, pulses, times } = self;
        let size = |list: &Option<List>| list.as_ref().map_or(0, |list| list.number.size());
        let (id_size, offset_size) = (size(&bank.event_id), size(&bank.event_time_offset));
        let ns = bank.unit.ns() as f64;
        let before = pulses.len();
        known.of_events(range.clone(), pulses, times);
        let (from, to) = ((range.start - bytes.first) as usize, (range.end - bytes.first) as usize);
        let ids = &bytes.ids[from * id_size..to * id_size];
        let offsets = &bytes.offsets[from * offset_size..to * offset_size];
        let Some(flight) = flight.map(|flight| flight.start / ns..flight.end / ns) else {
            some_ids.extend_from_slice(ids);
            some_offsets.extend_from_slice(offsets);
            return;
        };
        let (mut event, mut kept) = (0, before);
        let number = bank.offset().unwrap_or(Number::F64);
        number.floats(offsets, |offset| {
            if flight.contains(&offset) {
                some_ids.extend_from_slice(&ids[event * id_size..(event + 1) * id_size]);
                some_offsets.extend_from_slice(&offsets[event * offset_size..(event + 1) * offset_size]);
                pulses[kept] = pulses[before + event];
                times[kept] = times[before + event];
                kept += 1;
            }
            event += 1;
        });
        pulses.truncate(kept);
        times.truncate(kept);
    }
}
