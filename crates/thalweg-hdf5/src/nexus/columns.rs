//! Columns of the events of a part of a bank.

use std::ops::Range;

use super::number::NumericType;
use super::pulses::Pulses;
use super::{Bank, EventColumn};

/// The bytes of consecutive events: the index of the first event, and the bytes of each column.
pub(super) struct Bytes<'a> {
    pub(super) first: u64,
    pub(super) columns: [&'a [u8]; 3],
}

/// Columns that are being assembled.
#[derive(Default)]
pub(super) struct PendingColumns {
    pub(super) columns: [Vec<u8>; 3],
    pub(super) pulses: Vec<i64>,
    pub(super) times: Vec<i64>,
}

impl PendingColumns {
    /// Removes all events.
    pub(super) fn clear(&mut self) {
        self.columns.iter_mut().for_each(Vec::clear);
        self.pulses.clear();
        self.times.clear();
    }

    /// Adds the events of a range that have a selected time of flight.
    pub(super) fn take(
        &mut self,
        range: Range<u64>,
        (bank, known): (&Bank, &Pulses),
        bytes: &Bytes<'_>,
        flight: Option<&Range<f64>>,
    ) {
        let Self { columns, pulses, times } = self;
        let before = pulses.len();
        known.of_events(range.clone(), pulses, times);
        let from = (range.start - bytes.first) as usize;
        let to = (range.end - bytes.first) as usize;
        let sizes =
            bank.columns.each_ref().map(|list| list.as_ref().map_or(0, |list| list.number.size()));
        let own = |column: usize| &bytes.columns[column][from * sizes[column]..to * sizes[column]];
        let Some(flight) = flight else {
            columns
                .iter_mut()
                .enumerate()
                .for_each(|(column, some)| some.extend_from_slice(own(column)));
            return;
        };
        let ns = bank.unit.ns() as f64;
        let flight = flight.start / ns..flight.end / ns;
        let mut event = 0;
        let mut kept = before;
        bank.number(EventColumn::Offset).unwrap_or(NumericType::F64).floats(
            own(EventColumn::Offset as usize),
            |offset| {
                if flight.contains(&offset) {
                    for (column, some) in columns.iter_mut().enumerate() {
                        let size = sizes[column];
                        some.extend_from_slice(&own(column)[event * size..(event + 1) * size]);
                    }
                    pulses[kept] = pulses[before + event];
                    times[kept] = times[before + event];
                    kept += 1;
                }
                event += 1;
            },
        );
        pulses.truncate(kept);
        times.truncate(kept);
    }
}
