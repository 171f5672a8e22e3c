//! What is fetched ahead of the reads of a file.
//!
//! Each reader that goes on where its last read ended has a *window*. A read that goes on nowhere
//! starts a new window, with nothing ahead of it: it may be one of a random reader. Each read that
//! goes on lets the window grow.

use std::ops::Range;

/// Windows that a file has at most; the one that was used least recently makes room.
const MOST: usize = 16;
const MIB: u64 = 1 << 20;
/// The kernel sends the reads of one reader on several threads, so that they come in another order.
/// Once a window has grown a few times, a read this near to its end belongs to it.
const OUT_OF_ORDER: u64 = 8 * MIB;
/// What is fetched with the first bytes of a file, for most readers read them in order.
const AT_START: u64 = MIB;

/// A reader that goes on where it ended.
#[derive(Debug)]
struct Window {
    start: u64,
    next: u64,
    /// Reads that went on.
    grown: u32,
    /// When it was used last, counted in reads of the file.
    used: u64,
}

impl Window {
    /// Whether a read belongs to this window. If so, that is noted.
    fn has(&mut self, read: &Range<u64>) -> bool {
        let len = read.end - read.start;
        let reach = match self.grown {
            0 => 0,
            1 => len,
            2 | 3 => 2 * len,
            _ => OUT_OF_ORDER,
        };
        let goes_on = self.next.abs_diff(read.start) <= reach;
        // The second read came before the first one.
        let goes_before = self.grown == 0 && read.end == self.start;
        if goes_on || goes_before {
            self.start = self.start.min(read.start);
            self.next = self.next.max(read.end);
            self.grown += 1;
        }
        goes_on || goes_before
    }

    /// How far ahead it fetches.
    fn ahead(&self) -> u64 {
        match (self.grown, self.start) {
            (0, 0) => AT_START,
            (0, _) => 0,
            (1, 0) => 32 * MIB,
            // It may be a random reader who has met the end of another read.
            (1, _) => MIB / 2,
            (2, 1..) => 4 * MIB,
            (3, 1..) => 32 * MIB,
            _ => u64::MAX,
        }
    }
}

/// The windows of a file.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    windows: Vec<Window>,
    reads: u64,
}

impl Windows {
    /// Notes a read. Returns how many bytes after it are to be fetched ahead, at most `most`.
    pub(crate) fn read(&mut self, read: Range<u64>, most: u64) -> u64 {
        self.reads += 1;
        let found = self.windows.iter_mut().position(|window| window.has(&read));
        let at = found.unwrap_or_else(|| {
            if self.windows.len() >= MOST {
                let oldest = self.windows.iter().enumerate().min_by_key(|(_, window)| window.used);
                let oldest = oldest.map_or(0, |(at, _)| at);
                self.windows.swap_remove(oldest);
            }
            let (start, next) = (read.start, read.end);
            self.windows.push(Window { start, next, grown: 0, used: 0 });
            self.windows.len() - 1
        });
        let window = &mut self.windows[at];
        window.used = self.reads;
        let end = window.next.saturating_add(window.ahead().min(most));
        end.saturating_sub(read.end)
    }
}

#[cfg(test)]
mod tests {
    use thalweg_io::random::hash01;

    use super::*;

    const READ: u64 = 256 << 10;

    #[test]
    fn a_reader_in_order_soon_has_all_ahead() {
        for start in [0, 77 * MIB] {
            let mut windows = Windows::default();
            let ahead: Vec<u64> = (0..5)
                .map(|at| windows.read(start + at * READ..start + (at + 1) * READ, 256 * MIB) / MIB)
                .collect();
            let expected = if start == 0 { [1, 32, 256, 256, 256] } else { [0, 0, 4, 32, 256] };
            assert_eq!(ahead, expected);
        }
    }

    #[test]
    fn readers_in_order_do_not_disturb_each_other() {
        let mut windows = Windows::default();
        let mut last = Vec::new();
        for at in 0..6 {
            last = (0..10)
                .map(|reader| {
                    let start = reader * 100 * MIB + at * READ;
                    windows.read(start..start + READ, 256 * MIB)
                })
                .collect();
        }
        assert_eq!(last, [256 * MIB; 10]);
    }

    #[test]
    fn a_reader_in_the_kernels_order_is_one_in_order() {
        let mut windows = Windows::default();
        let mut ahead = 0;
        for at in [1, 0, 3, 2, 4, 7, 6, 5] {
            ahead = windows.read(at * MIB..(at + 1) * MIB, 256 * MIB);
        }
        assert_eq!(windows.windows.len(), 1);
        assert!(ahead >= 256 * MIB, "{ahead}");
    }

    #[test]
    fn a_random_reader_has_hardly_anything_ahead() {
        let mut windows = Windows::default();
        let mut fetched = 0;
        for number in 0..4000 {
            // Of a file of 1 GiB, aligned as by fio.
            let start = (hash01(1, 0, number) * 4096.0) as u64 * READ;
            fetched += windows.read(start..start + READ, 256 * MIB);
        }
        assert!(fetched < 4000 * READ / 20, "{fetched}");
    }
}
