//! The rate of events over time, in bars of whole pulses.

/// More pulses are joined with their neighbours: a run of a day at 60 Hz has five million. Each
/// takes 16 bytes, and as many again before they are sorted.
const MOST_PULSES: usize = 1 << 21;

/// A bar has at least so many pulses, or a quarter of all if that is less. Among bars of few
/// pulses, some are higher by chance alone.
const LEAST_PULSES: usize = 20;

/// A bar ends where the next pulse is later than this many periods.
const GAP: i64 = 10;

/// Steps from pulse to pulse of a bank that are looked at. They tell the period well enough.
const MOST_STEPS: usize = 1 << 16;

const NS: f64 = 1e9;

/// Events by the time of their pulse, of all banks together.
#[derive(Debug, Default)]
pub(super) struct PulseRate {
    /// Nanoseconds since the first pulse of the file, and events. Up to `sorted`, times ascend, and
    /// each is there once.
    pulses: Vec<(i64, u64)>,
    sorted: usize,
    /// Times are multiples of this many nanoseconds if pulses were joined.
    grain: Option<i64>,
    /// The last pulse of the bank whose pulses are counted, and nanoseconds from pulse to pulse.
    last: Option<i64>,
    steps: Vec<i64>,
    /// The longest median step of the banks before.
    period: Option<i64>,
}

/// Bars of whole pulses.
#[derive(Debug, PartialEq)]
pub(super) struct RateBars {
    /// Left edge and right edge in seconds, and events in a second.
    pub(super) bars: Vec<(f64, f64, f64)>,
    /// Pulses in a bar.
    pub(super) pulses: usize,
}

impl PulseRate {
    /// The pulses of another bank follow.
    pub(super) fn next_bank(&mut self) {
        let middle = self.steps.len() / 2;
        if !self.steps.is_empty() {
            let median = *self.steps.select_nth_unstable(middle).1;
            self.period = self.period.max(Some(median));
        }
        self.steps.clear();
        self.last = None;
    }

    /// Counts the events of a pulse of a bank.
    pub(super) fn add(&mut self, time: i64, events: u64) {
        let step = self.last.replace(time).map(|last| time.saturating_sub(last));
        if self.steps.len() < MOST_STEPS {
            self.steps.extend(step.filter(|step| *step > 0));
        }
        self.pulses.push((self.grain.map_or(time, |grain| time.div_euclid(grain) * grain), events));
        if self.pulses.len() >= (2 * self.sorted).max(MOST_PULSES / 8) {
            self.sort();
        }
    }

    /// Sorts the pulses, and joins those of one time.
    fn sort(&mut self) {
        loop {
            self.pulses.sort_unstable_by_key(|pulse| pulse.0);
            self.pulses.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
            self.sorted = self.pulses.len();
            let ends = self.pulses.first().zip(self.pulses.last());
            let Some((first, last)) = ends.filter(|_| self.sorted > MOST_PULSES) else { return };
            let span = last.0.saturating_sub(first.0);
            let grain = (span / MOST_PULSES as i64 * 2).max(2 * self.grain.unwrap_or(1));
            self.grain = Some(grain);
            for pulse in &mut self.pulses {
                pulse.0 = pulse.0.div_euclid(grain) * grain;
            }
        }
    }

    /// At most about `most` bars, or twice as many if there are gaps. Each begins at a pulse, and
    /// ends where the pulse after its last begins, or a period after its last.
    pub(super) fn bars(mut self, most: usize) -> Option<RateBars> {
        self.next_bank();
        self.sort();
        let period = self.period.unwrap_or(NS as i64).max(self.grain.unwrap_or(1));
        // Clocks of banks may differ a little. A pulse is one, whichever clock tells its time.
        self.pulses.dedup_by(|next, kept| {
            let is_same = next.0.saturating_sub(kept.0) < period / 2;
            kept.1 += if is_same { next.1 } else { 0 };
            is_same
        });
        let count = self.pulses.len();
        let least = LEAST_PULSES.min(count.div_ceil(4));
        let pulses = round_up(count.div_ceil(most.max(1)).max(least).max(1));
        // Where gaps are many, only longer ones end a bar.
        let mut gap = GAP.saturating_mul(period);
        let is_gap =
            |gap: i64| move |pair: &&[(i64, u64)]| pair[1].0.saturating_sub(pair[0].0) > gap;
        while self.pulses.windows(2).filter(is_gap(gap)).count() > most {
            gap = gap.saturating_mul(2);
        }
        let is_near = |a: &(i64, u64), b: &(i64, u64)| b.0.saturating_sub(a.0) <= gap;
        let mut bars = Vec::new();
        for train in self.pulses.chunk_by(is_near) {
            for (at, part) in train.chunks(pulses).enumerate() {
                let (start, last) = (part.first()?.0, part.last()?.0);
                let next = train.get((at + 1) * pulses).map(|pulse| pulse.0);
                let end = next.unwrap_or(last.saturating_add(period));
                let events: u64 = part.iter().map(|pulse| pulse.1).sum();
                let [start, end] = [start as f64 / NS, end as f64 / NS];
                bars.push((start, end, events as f64 / (end - start)));
            }
        }
        (!bars.is_empty()).then_some(RateBars { bars, pulses })
    }
}

/// The least of 1, 2, 5, 10, 20, 50, ... that is no less than `count`.
fn round_up(count: usize) -> usize {
    let mut decade = 1;
    loop {
        for step in [1, 2, 5] {
            if step * decade >= count {
                return step * decade;
            }
        }
        decade *= 10;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Pulses at 60 Hz, each of which every bank has.
    fn steady(pulses: i64, banks: u64, events: u64) -> PulseRate {
        let mut rate = PulseRate::default();
        for _ in 0..banks {
            rate.next_bank();
            (0..pulses).for_each(|pulse| rate.add(pulse * 16_666_667, events));
        }
        rate
    }

    #[test]
    fn a_steady_rate_is_steady_in_bars_of_any_number() {
        for (pulses, bars) in [(2, 10), (9, 10), (100, 10), (1000, 350), (1001, 5000), (777, 3)] {
            let RateBars { bars, pulses: in_bar } = steady(pulses, 3, 20_000).bars(bars).unwrap();
            for (left, right, rate) in &bars {
                assert!((rate / 3.6e6 - 1.0).abs() < 1e-6, "{pulses}: {rate} in {left}..{right}");
            }
            assert!(bars.windows(2).all(|pair| pair[0].1 == pair[1].0));
            assert!(in_bar >= 20 || pulses < 80, "{in_bar}");
        }
    }

    #[test]
    fn a_gap_is_empty_and_raises_no_rate() {
        let mut rate = steady(100, 1, 500);
        (200..300).for_each(|pulse| rate.add(pulse * 16_666_667, 500));
        let bars = rate.bars(10).unwrap().bars;
        assert!(bars.iter().all(|bar| (bar.2 / 30_000.0 - 1.0).abs() < 1e-6), "{bars:?}");
        let empty: Vec<f64> =
            bars.windows(2).map(|pair| pair[1].0 - pair[0].1).filter(|gap| *gap > 0.0).collect();
        assert_eq!(empty.len(), 1);
        assert!((empty[0] - 100.0 / 60.0).abs() < 0.001, "{empty:?}");
    }

    #[test]
    fn banks_whose_clocks_differ_have_the_same_pulses() {
        for apart in [1000, 2_000_000] {
            let mut rate = PulseRate::default();
            for bank in 0..3 {
                rate.next_bank();
                (0..1000).for_each(|pulse| rate.add(pulse * 16_666_667 + bank * apart, 500));
            }
            let RateBars { bars, pulses } = rate.bars(50).unwrap();
            assert_eq!((bars.len(), pulses), (50, 20));
            for (left, right, rate) in bars {
                assert!((rate / 90_000.0 - 1.0).abs() < 1e-3, "{rate} in {left}..{right}");
            }
        }
    }

    #[test]
    fn many_gaps_make_no_more_bars_than_twice_as_many() {
        let mut rate = PulseRate::default();
        for burst in 0..10_000 {
            let start = burst * 1_000_000_000;
            (0..3).for_each(|pulse| rate.add(start + pulse * 16_666_667, 7));
        }
        let bars = rate.bars(100).unwrap().bars;
        assert!(bars.len() <= 200, "{}", bars.len());
        let events: f64 = bars.iter().map(|bar| bar.2 * (bar.1 - bar.0)).sum();
        assert!((events - 210_000.0).abs() < 1.0, "{events}");
    }

    #[test]
    fn very_many_pulses_are_joined() {
        let mut rate = PulseRate::default();
        let count = 3 * MOST_PULSES as i64;
        (0..count).for_each(|pulse| rate.add(pulse * 1000, 1));
        assert!(rate.pulses.len() <= 3 * MOST_PULSES && rate.grain.is_some());
        let bars = rate.bars(100).unwrap().bars;
        let events: f64 = bars.iter().map(|bar| bar.2 * (bar.1 - bar.0)).sum();
        assert!((events - count as f64).abs() < 1.0, "{events}");
        assert!(bars.iter().all(|bar| (bar.2 / 1e6 - 1.0).abs() < 0.01));
    }

    #[test]
    fn no_pulse_has_no_rate() {
        assert_eq!(PulseRate::default().bars(10), None);
        assert_eq!(steady(1, 2, 7).bars(10).unwrap().bars, [(0.0, 1.0, 14.0)]);
    }
}
