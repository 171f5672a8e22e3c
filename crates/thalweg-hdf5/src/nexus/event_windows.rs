//! Reads events window by window. The next window is read while the caller handles the current one.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use thalweg_io::{Error, Result};

use super::columns::{Bytes, PendingColumns};
use super::pulses::Pulses;
use super::read::{EventBatch, cut, want};
use super::{Bank, ColumnDataset, Nexus};
use crate::arrays::ArrayRequest;

/// Bytes that an event takes while it is delivered, as read and as passed on. A batch has as many
/// events as fit into a sixteenth of the memory budget.
const EVENT_BYTES: usize = 64;

/// A part of a bank's arrays.
pub(super) struct BankPiece {
    bank: usize,
    pulses: Arc<Pulses>,
    read: Range<u64>,
    /// The selected ranges of it, in order.
    keep: Vec<Range<u64>>,
}

impl BankPiece {
    /// The columns of its bank, and the bytes that are read of each.
    fn lists<'a>(&self, bank: &'a Bank) -> [Option<(&'a ColumnDataset, usize)>; 3] {
        let len =
            |list: &ColumnDataset| (self.read.end - self.read.start) as usize * list.number.size();
        bank.columns.each_ref().map(|list| list.as_ref().map(|list| (list, len(list))))
    }
}

/// Pieces that are read at once.
#[derive(Default)]
pub(super) struct EventWindow {
    pieces: Vec<BankPiece>,
    /// For each bank, the index of its last piece.
    last: HashMap<usize, usize>,
    pub(super) bytes: u64,
}

impl EventWindow {
    /// Adds events of a bank, which come after its earlier events. Gaps of fewer than `gap` events
    /// are read too.
    pub(super) fn add(
        &mut self,
        place: usize,
        bank: &Bank,
        pulses: &Arc<Pulses>,
        part: Range<u64>,
        gap: u64,
    ) {
        let last = self.last.get(&place).and_then(|&at| self.pieces.get_mut(at));
        match last {
            // The gap is cheaper to read than to skip.
            Some(BankPiece { read, keep, .. }) if part.start - read.end < gap => {
                self.bytes += (part.end - read.end) * bank.event_bytes();
                read.end = part.end;
                match keep.last_mut() {
                    Some(before) if before.end == part.start => before.end = part.end,
                    _ => keep.push(part),
                }
            }
            _ => {
                self.bytes += (part.end - part.start) * bank.event_bytes();
                self.last.insert(place, self.pieces.len());
                self.pieces.push(BankPiece {
                    bank: place,
                    pulses: pulses.clone(),
                    read: part.clone(),
                    keep: vec![part],
                });
            }
        }
    }
}

/// The values of a window: the columns of each piece, one after another. The memory is reused from
/// window to window.
pub(super) type WindowValues = Vec<u8>;

/// The windows of a read. A separate thread reads the next window.
pub(super) struct EventWindows<'a, 'f> {
    pub(super) nexus: &'a Nexus<'a>,
    pub(super) flight: Option<&'a Range<f64>>,
    pub(super) ask: SyncSender<(EventWindow, WindowValues)>,
    pub(super) answers: Receiver<(EventWindow, Result<WindowValues>)>,
    /// Whether a window is being read.
    pub(super) is_out: bool,
    pub(super) pending: PendingColumns,
    pub(super) spare: WindowValues,
    pub(super) show: &'f mut dyn FnMut(&EventBatch<'_>) -> Result<()>,
}

impl EventWindows<'_, '_> {
    /// Starts reading a window, and delivers the previous one meanwhile.
    pub(super) fn next(&mut self, window: Option<EventWindow>) -> Result<()> {
        self.nexus.file.options().control.check()?;
        // If the thread is gone, its windows would be left out silently.
        let gone = || Error::Usage("the thread that reads events ended too early".into());
        let before =
            if self.is_out { Some(self.answers.recv().map_err(|_| gone())?) } else { None };
        self.is_out = window.is_some();
        if let Some(window) = window {
            let spare = std::mem::take(&mut self.spare);
            self.ask.send((window, spare)).map_err(|_| gone())?;
        }
        if let Some((window, values)) = before {
            let values = values?;
            self.give(&window, &values)?;
            self.spare = values;
        }
        Ok(())
    }

    fn give(&mut self, window: &EventWindow, values: &WindowValues) -> Result<()> {
        let most = (self.nexus.file.options().budget.memory / 16 / EVENT_BYTES).max(1);
        let mut rest = &values[..];
        for piece in &window.pieces {
            let bank = &self.nexus.banks[piece.bank];
            let columns = piece.lists(bank).map(|list| {
                let (own, others) = rest.split_at(list.map_or(0, |(_, len)| len));
                rest = others;
                own
            });
            let bytes = Bytes { first: piece.read.start, columns };
            for part in piece.keep.iter().flat_map(|range| cut(range.clone(), most as u64)) {
                self.pending.take(part, (bank, &piece.pulses), &bytes, self.flight);
                if self.pending.pulses.len() * 2 > most {
                    self.batch(piece.bank)?;
                }
            }
            self.batch(piece.bank)?;
        }
        Ok(())
    }

    fn batch(&mut self, bank: usize) -> Result<()> {
        let PendingColumns { columns, pulses, times } = &self.pending;
        if !pulses.is_empty() {
            (self.show)(&EventBatch {
                bank,
                columns: columns.each_ref().map(Vec::as_slice),
                pulses,
                times,
            })?;
        }
        self.pending.clear();
        Ok(())
    }
}

impl Nexus<'_> {
    /// Reads all pieces of a window at once, into reused memory.
    pub(super) fn values_of(
        &self,
        window: &EventWindow,
        mut values: WindowValues,
    ) -> Result<WindowValues> {
        let bank = |piece: &BankPiece| &self.banks[piece.bank];
        let lists = || {
            window
                .pieces
                .iter()
                .flat_map(|piece| piece.lists(bank(piece)).map(|list| (piece, list)))
        };
        values.resize(lists().filter_map(|(_, list)| list).map(|(_, len)| len).sum(), 0);
        let mut rest = &mut values[..];
        let mut wants: Vec<ArrayRequest<'_>> = Vec::new();
        for (piece, (list, len)) in lists().filter_map(|(piece, list)| Some((piece, list?))) {
            let (own, others) = rest.split_at_mut(len);
            rest = others;
            wants.push(want(&list.dataset, &piece.read, own));
        }
        self.file.read(&mut wants)?;
        drop(wants);
        Ok(values)
    }
}
