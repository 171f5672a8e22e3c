//! A feed for tests of [`Store::serve`]. It issues a list of requests under configurable limits,
//! and checks every answer.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use thalweg_io::Result;
use thalweg_io::store::{AlignedBuf, Feed, Next, Request, Store};

/// The value of every byte of a buffer before the store writes to it.
const BLANK: u8 = 0xa5;
/// Bytes before and after the place of a request in its buffer. The store must not change them.
const MARGIN: usize = 4096;

/// A list of requests to issue, and the way to issue them.
pub struct Script {
    pub store: Arc<dyn Store>,
    pub bytes: Arc<[u8]>,
    /// The offset and length of each request, in bytes.
    pub wanted: Vec<(u64, usize)>,
    /// The most requests in flight at a time.
    pub most_out: usize,
    /// Answers [`Next::Later`] to every call that does not wait.
    pub only_to_who_waits: bool,
    /// The number of requests after which the feed ends.
    pub ends_after: usize,
    /// The offset from which bytes are not compared.
    pub sure: u64,
    /// The number of outcomes after which the feed panics and ends, counted from 1.
    pub panics_at: Option<usize>,
    pub(super) state: Mutex<State>,
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    given: usize,
    out: usize,
    peak: usize,
    ended: bool,
    outcomes: Vec<Option<Result<()>>>,
    done: usize,
}

impl Script {
    pub fn new(store: &Arc<dyn Store>, bytes: &[u8], wanted: Vec<(u64, usize)>) -> Self {
        let state = State { outcomes: wanted.iter().map(|_| None).collect(), ..State::default() };
        Self {
            store: store.clone(),
            bytes: bytes.into(),
            ends_after: wanted.len(),
            wanted,
            most_out: usize::MAX,
            only_to_who_waits: false,
            sure: u64::MAX,
            panics_at: None,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Lets the store answer all requests, with at most `depth` in flight. Panics if the store
    /// hangs.
    pub fn serve(self, depth: usize) -> Self {
        super::no_hang(move || {
            self.serve_here(depth);
            self
        })
    }

    pub fn serve_here(&self, depth: usize) {
        self.store.serve(depth, self);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(state.peak <= depth, "{} requests in flight at depth {depth}", state.peak);
        assert_eq!(state.out, 0, "requests were not answered");
    }

    /// The outcomes of the requests that were issued, in the order of the list.
    pub fn outcomes(self) -> Vec<Result<()>> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.outcomes.into_iter().flatten().collect()
    }

    /// Checks that every request was answered without an error.
    pub fn all_right(self) {
        let count = self.wanted.len();
        let outcomes = self.outcomes();
        assert_eq!(outcomes.len(), count);
        for (tag, outcome) in outcomes.into_iter().enumerate() {
            outcome.unwrap_or_else(|e| panic!("request {tag}: {e}"));
        }
    }

    fn request(&self, index: usize) -> Request {
        let (offset, len) = self.wanted[index];
        let buf = self.store.bytes().is_none().then(|| {
            let mut buf =
                AlignedBuf::new(MARGIN + len.next_multiple_of(self.store.alignment()) + MARGIN);
            buf.fill(BLANK);
            buf
        });
        Request {
            offset,
            len,
            at: if buf.is_some() { MARGIN } else { 0 },
            buf,
            tag: index as u64,
            issued: Instant::now(),
        }
    }

    fn check(&self, request: &Request) {
        let Request { offset, len, buf, at, tag, .. } = request;
        let want = &self.bytes[*offset as usize..][..*len];
        let Some(buf) = buf else {
            let own = self.store.bytes().expect("a store without bytes needs a buffer");
            assert!(own[*offset as usize..][..*len] == *want, "request {tag}: wrong bytes");
            return;
        };
        let sure =
            usize::try_from(self.sure.saturating_sub(*offset)).map_or(*len, |sure| sure.min(*len));
        assert!(
            buf[*at..*at + sure] == want[..sure],
            "request {tag} ({offset}+{len}): wrong bytes"
        );
        let end = at + len.next_multiple_of(self.store.alignment());
        assert!(
            buf[..*at].iter().chain(&buf[end..]).all(|b| *b == BLANK),
            "request {tag}: wrote outside its place"
        );
    }
}

impl Feed for Script {
    fn next(&self, wait: bool) -> Next {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.ended || state.given == self.wanted.len().min(self.ends_after) {
                return Next::End;
            }
            if state.out < self.most_out && (wait || !self.only_to_who_waits) {
                let index = state.given;
                state.given += 1;
                state.out += 1;
                state.peak = state.peak.max(state.out);
                drop(state);
                return Next::Read(self.request(index));
            }
            if !wait {
                return Next::Later;
            }
            let (next, waited) = self
                .changed
                .wait_timeout(state, Duration::from_secs(600))
                .unwrap_or_else(PoisonError::into_inner);
            assert!(!waited.timed_out(), "a request in flight was never answered");
            state = next;
        }
    }

    fn put(&self, request: Request, outcome: Result<()>) {
        let tag = request.tag as usize;
        assert_eq!(
            (request.offset, request.len),
            self.wanted[tag],
            "request {tag} came back changed"
        );
        if outcome.is_ok() {
            self.check(&request);
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.out -= 1;
        state.done += 1;
        assert!(state.outcomes[tag].replace(outcome).is_none(), "request {tag} was answered twice");
        self.changed.notify_all();
        if self.panics_at.is_some_and(|at| state.done == at) {
            state.ended = true;
            panic!("as scripted");
        }
    }
}
