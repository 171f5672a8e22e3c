//! How many requests a server is sent at a time, if it refuses some because it has too many.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Answers after which the number is looked at again.
const WINDOW: u32 = 32;
/// A server that refuses one of so many requests has a fault, or a bad day. Fewer at a time would
/// not help, and would slow the read down.
const STRAY: u32 = 8;

/// The requests that a server has at a time. There is no limit until it refuses many of them; then
/// the limit falls by a third for each window of refusals, and rises by a quarter without any.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Debug)]
struct State {
    most: usize,
    in_flight: usize,
    /// The most requests in flight in this window.
    peak: usize,
    answers: u32,
    refusals: u32,
}

impl Default for State {
    fn default() -> Self {
        Self { most: usize::MAX, in_flight: 0, peak: 0, answers: 0, refusals: 0 }
    }
}

/// A request that the server has. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Admitted<'a>(&'a Admission);

impl Admission {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the server may have another request.
    pub(crate) async fn enter(&self) -> Admitted<'_> {
        loop {
            let freed = self.freed.notified();
            {
                let mut state = self.lock();
                if state.in_flight < state.most {
                    state.in_flight += 1;
                    state.peak = state.peak.max(state.in_flight);
                    return Admitted(self);
                }
            }
            freed.await;
        }
    }

    /// Notes an answer, which may have been that the server has too many requests.
    pub(crate) fn answered(&self, is_refusal: bool) {
        let mut state = self.lock();
        state.answers += 1;
        state.refusals += u32::from(is_refusal);
        if state.answers < WINDOW {
            return;
        }
        let used = state.peak.min(state.most);
        let most = if state.refusals * STRAY > state.answers {
            (used * 2 / 3).max(1)
        } else {
            // One more than in use is as good as any number.
            state.most.saturating_add(state.most / 4).saturating_add(1)
        };
        let freed = most.saturating_sub(state.in_flight);
        *state = State { most, in_flight: state.in_flight, ..State::default() };
        drop(state);
        for _ in 0..freed.min(WINDOW as usize) {
            self.freed.notify_one();
        }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.0.lock().in_flight -= 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::{Admission, WINDOW};

    /// The most requests that are admitted at a time.
    fn most(admission: &Admission) -> usize {
        let mut admitted = Vec::new();
        while admitted.len() < 1000 {
            match admission.enter().now_or_never() {
                Some(one) => admitted.push(one),
                None => break,
            }
        }
        admitted.len()
    }

    fn window(admission: &Admission, refusals: u32) {
        (0..WINDOW).for_each(|answer| admission.answered(answer < refusals));
    }

    #[test]
    fn a_server_with_too_many_requests_gets_fewer_and_then_more_again() {
        let admission = Admission::default();
        assert_eq!(most(&admission), 1000);
        window(&admission, WINDOW);
        assert_eq!(most(&admission), 666);
        (0..30).for_each(|_| {
            most(&admission);
            window(&admission, WINDOW / 2);
        });
        assert_eq!(most(&admission), 1);
        (0..40).for_each(|_| window(&admission, 0));
        assert_eq!(most(&admission), 1000);
    }

    #[test]
    fn a_few_refusals_change_nothing() {
        let admission = Admission::default();
        (0..100).for_each(|_| window(&admission, 4));
        assert_eq!(most(&admission), 1000);
    }
}
