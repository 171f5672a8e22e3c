//! Turns blocks, which arrive in any order, into groups of extents in order.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::task::Poll;

use crate::engine::Shape;
use crate::error::{Error, Result};
use crate::extent::{Block, Data, Fetch, Framer, Group, Place, Plan, Source, Step};
use crate::store::{AlignedBuf, Store};

/// The requests that have not been turned into groups yet.
pub(super) struct EngineInput {
    source: InputSource,
    /// One entry per request, from the oldest that has not been turned into groups.
    pending: VecDeque<Pending>,
    head: u64,
    places: Vec<Range<usize>>,
    ordinal: u64,
    /// Set when the run fails. Bytes that arrive later are dropped, because the workers may have
    /// ended.
    stopped: bool,
}

struct Pending {
    offset: u64,
    len: usize,
    /// Bytes at the front that were read only because of the store's alignment.
    skip: usize,
    fetch: Option<Fetch>,
    bytes: Bytes,
}

/// The state of the bytes of a request.
enum Bytes {
    InFlight,
    Arrived(Arrived),
    /// They are in groups.
    Grouped,
}

/// The bytes of a request that was answered.
pub(super) enum Arrived {
    /// In a buffer, from index `at` on.
    Buf(AlignedBuf, usize),
    /// In the store's own memory.
    View,
}

impl Arrived {
    /// The block of a request at `offset`.
    fn into_block(self, offset: u64, store: &Arc<dyn Store>) -> Block {
        match self {
            Self::Buf(buf, at) => {
                Block { data: Data::Buf(buf), origin: offset.wrapping_sub(at as u64) }
            }
            Self::View => Block { data: Data::View(store.clone()), origin: 0 },
        }
    }
}

enum InputSource {
    Framed {
        next: u64,
        end: u64,
        framer: Box<dyn Framer>,
        carry: Option<Carry>,
        ended: bool,
    },
    /// `plan` is `None` while a thread waits for it, and after its end.
    Planned {
        plan: Option<Box<dyn Plan>>,
        ended: bool,
    },
}

/// The bytes at the end of a block that belong to an extent whose end has not arrived.
struct Carry {
    block: Arc<Block>,
    range: Range<usize>,
    need: usize,
}

/// What [`EngineInput::next_request`] finds.
pub(super) enum NextWanted {
    Request(WantedRequest),
    /// The plan is not ready: see [`EngineInput::take_plan`].
    NotReady,
    /// There are no more requests.
    End,
}

/// A request to make: offset and length in bytes, and a tag that identifies it.
pub(super) struct WantedRequest {
    pub(super) offset: u64,
    pub(super) len: usize,
    pub(super) tag: u64,
}

/// The parts of the run's state that framing uses.
pub(super) struct FrameContext<'a> {
    pub(super) store: &'a Arc<dyn Store>,
    pub(super) shape: &'a Shape,
    pub(super) ready: &'a mut VecDeque<Group>,
    /// Whether groups are decoded in the order of their requests.
    pub(super) in_order: bool,
    pub(super) spare: &'a mut Vec<Vec<Place>>,
    /// Blocks that no group uses any more.
    pub(super) freed: &'a mut Vec<Block>,
    /// Bytes of unpooled blocks that are alive.
    pub(super) oversize: &'a mut u64,
}

impl EngineInput {
    pub(super) fn new(source: Source) -> Self {
        let source = match source {
            Source::Framed { range, framer } => InputSource::Framed {
                next: range.start,
                end: range.end,
                framer,
                carry: None,
                ended: range.is_empty(),
            },
            Source::Planned(plan) => InputSource::Planned { plan: Some(plan), ended: false },
        };
        Self {
            source,
            pending: VecDeque::new(),
            head: 0,
            places: Vec::new(),
            ordinal: 0,
            stopped: false,
        }
    }

    /// The next request. Does not wait.
    pub(super) fn next_request(&mut self, store: &dyn Store, shape: &Shape) -> NextWanted {
        let align = store.alignment() as u64;
        let (offset, len, skip, fetch) = match &mut self.source {
            InputSource::Framed { next, end, ended, .. } => {
                if *ended || *next >= *end {
                    return NextWanted::End;
                }
                let offset = *next / align * align;
                // Blocks start on multiples of their size, so that only the first and last can be
                // shorter.
                let block = shape.block as u64;
                let stop = ((offset / block + 1) * block).min(*end);
                let skip = (*next - offset) as usize;
                *next = stop;
                (offset, (stop - offset) as usize, skip, None)
            }
            InputSource::Planned { ended: true, .. } => return NextWanted::End,
            InputSource::Planned { plan, ended } => {
                let fetch = match plan.as_mut().map_or(Poll::Pending, |plan| plan.poll()) {
                    Poll::Pending => return NextWanted::NotReady,
                    Poll::Ready(Some(fetch)) => fetch,
                    Poll::Ready(None) => {
                        *ended = true;
                        *plan = None;
                        return NextWanted::End;
                    }
                };
                let offset = fetch.range.start / align * align;
                let skip = (fetch.range.start - offset) as usize;
                (offset, (fetch.range.end - offset) as usize, skip, Some(fetch))
            }
        };
        let tag = self.head + self.pending.len() as u64;
        self.pending.push_back(Pending { offset, len, skip, fetch, bytes: Bytes::InFlight });
        NextWanted::Request(WantedRequest { offset, len, tag })
    }

    /// Takes the plan out, to wait for it without the lock of the run. `None` if another thread
    /// waits for it already.
    pub(super) fn take_plan(&mut self) -> Option<Box<dyn Plan>> {
        match &mut self.source {
            InputSource::Planned { plan, .. } => plan.take(),
            InputSource::Framed { .. } => None,
        }
    }

    /// Puts the plan back, unless no more requests are made.
    pub(super) fn put_plan(&mut self, back: Box<dyn Plan>) {
        if let InputSource::Planned { plan, ended: false } = &mut self.source {
            *plan = Some(back);
        }
    }

    /// Whether no request is outstanding and none will follow.
    pub(super) fn is_done(&self) -> bool {
        self.pending.is_empty()
            && match &self.source {
                InputSource::Framed { next, end, ended, .. } => *ended || next >= end,
                InputSource::Planned { ended, .. } => *ended,
            }
    }

    /// Stops making requests. Requests in flight still arrive, and their bytes are dropped.
    pub(super) fn end(&mut self) {
        self.stopped = true;
        match &mut self.source {
            InputSource::Framed { ended, carry, .. } => {
                *ended = true;
                *carry = None;
            }
            InputSource::Planned { plan, ended } => {
                *ended = true;
                // The threads of the plan end with it, even if the run itself is kept.
                *plan = None;
            }
        }
    }

    fn ended(&self) -> bool {
        // The end of a plan stops only new requests. Bytes of earlier requests are still used.
        self.stopped || matches!(&self.source, InputSource::Framed { ended: true, .. })
    }

    /// Takes the bytes of request `tag`. Turns all blocks whose turn it is into groups: if the
    /// order is free, that of a planned request at once, so that none waits for a slow answer to
    /// another.
    pub(super) fn arrived(
        &mut self,
        tag: u64,
        block: Arrived,
        context: &mut FrameContext<'_>,
    ) -> Result<()> {
        let is_its_turn = !context.in_order && !self.stopped;
        if let Some(pending) = self.pending.get_mut((tag - self.head) as usize) {
            pending.bytes = match pending.fetch.take_if(|_| is_its_turn) {
                Some(fetch) => {
                    group_planned(&fetch, pending.offset, block, context);
                    Bytes::Grouped
                }
                None => Bytes::Arrived(block),
            };
        }
        while self.pending.front().is_some_and(|first| !matches!(first.bytes, Bytes::InFlight)) {
            let Some(Pending { offset, len, skip, fetch, bytes }) = self.pending.pop_front() else {
                break;
            };
            self.head += 1;
            let Bytes::Arrived(block) = bytes else { continue };
            if self.ended() {
                context.freed.push(block.into_block(offset, context.store));
                continue;
            }
            match fetch {
                Some(fetch) => group_planned(&fetch, offset, block, context),
                None => self.frame(offset, len, skip, block, context)?,
            }
        }
        Ok(())
    }

    fn frame(
        &mut self,
        offset: u64,
        len: usize,
        skip: usize,
        arrived: Arrived,
        context: &mut FrameContext<'_>,
    ) -> Result<()> {
        let InputSource::Framed { end, framer, carry, ended, .. } = &mut self.source else {
            return Ok(());
        };
        let last = offset + len as u64 >= *end;
        let joined = join(carry.take(), AnsweredPiece { arrived, offset, len, skip }, context);
        let (block, unframed) = joined.inspect_err(|_| *ended = true)?;
        let block = Arc::new(block);
        let Range { start, end: stop } = unframed;
        let bytes = &block.bytes()[start..stop];
        self.places.clear();
        let outcome =
            framer.frame(block.origin.wrapping_add(start as u64), bytes, last, &mut self.places);
        group_framed(&block, start, &self.places, &mut self.ordinal, context);
        match outcome {
            Ok(Step::More { used, need }) if !last => {
                let range = start + used..stop;
                if range.is_empty() {
                    free(block, context);
                } else {
                    *carry = Some(Carry { block, range, need });
                }
                Ok(())
            }
            Ok(_) => {
                *ended = true;
                free(block, context);
                Ok(())
            }
            Err(error) => {
                *ended = true;
                free(block, context);
                Err(error)
            }
        }
    }
}

/// The bytes of an answered request. The first `skip` of them precede the range of the source.
struct AnsweredPiece {
    arrived: Arrived,
    offset: u64,
    len: usize,
    skip: usize,
}

/// Puts the bytes that were carried over before those that arrived. Returns the block that holds
/// both, and the range of its bytes that have not been framed.
fn join(
    carried: Option<Carry>,
    piece: AnsweredPiece,
    context: &mut FrameContext<'_>,
) -> Result<(Block, Range<usize>)> {
    let AnsweredPiece { arrived, offset, len, skip } = piece;
    let (need, tail) = carried.as_ref().map_or((0, 0), |c| (c.need, c.range.len()));
    match arrived {
        Arrived::View => {
            if let Some(c) = carried {
                free(c.block, context);
            }
            let block = arrived.into_block(offset, context.store);
            Ok((block, offset as usize + skip - tail..offset as usize + len))
        }
        Arrived::Buf(mut buf, at) if tail <= at && need <= tail + len => {
            if let Some(c) = carried {
                buf[at - tail..at].copy_from_slice(&c.block.bytes()[c.range.clone()]);
                free(c.block, context);
            }
            let block = Arrived::Buf(buf, at).into_block(offset, context.store);
            Ok((block, at + skip - tail..at + len))
        }
        Arrived::Buf(buf, at) => {
            // The extent is longer than a pooled buffer. It gets its own buffer, which also takes
            // the bytes of this block.
            let room = need.max(tail + len);
            let at_byte = offset - tail as u64;
            let whole = match carried {
                Some(carried) => take_whole(carried, room, context),
                None => roomy(room),
            };
            let whole = whole.map(|mut whole| {
                whole.extend_from_slice(&buf[at + skip..at + len]);
                whole
            });
            context.freed.push(Block { data: Data::Buf(buf), origin: 0 });
            let whole = whole
                .map_err(|error| Error::io_at(context.store.name(), NO_ROOM, at_byte, error))?;
            *context.oversize += whole.capacity() as u64;
            let unframed = 0..whole.len();
            let origin = offset + skip as u64 - tail as u64;
            Ok((Block { data: Data::Whole(whole), origin }, unframed))
        }
    }
}

/// The operation in out-of-memory errors. A size that fits in the file may still be damaged.
pub(super) const NO_ROOM: &str =
    "making room for a record (its size may be damaged: see `thalweg check`)";

/// An empty vector with room for `room` bytes. Lack of memory is an error and does not end the
/// process.
fn roomy(room: usize) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    whole.try_reserve_exact(room).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok(whole)
}

/// The carried bytes in a vector with room for `room` bytes. The carried vector itself is reused if
/// no group shares it.
fn take_whole(carry: Carry, room: usize, context: &mut FrameContext<'_>) -> io::Result<Vec<u8>> {
    let range = carry.range;
    let copy = |bytes: &[u8]| {
        let mut whole = roomy(room)?;
        whole.extend_from_slice(bytes);
        Ok(whole)
    };
    match Arc::try_unwrap(carry.block) {
        Ok(Block { data: Data::Whole(mut whole), .. }) if range.start == 0 => {
            *context.oversize -= whole.capacity() as u64;
            whole.truncate(range.end);
            let more = room.saturating_sub(whole.len());
            whole.try_reserve(more).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            Ok(whole)
        }
        Ok(block) => {
            let whole = copy(&block.bytes()[range]);
            context.freed.push(block);
            whole
        }
        Err(shared) => copy(&shared.bytes()[range]),
    }
}

fn free(block: Arc<Block>, context: &mut FrameContext<'_>) {
    if let Some(block) = Arc::into_inner(block) {
        context.freed.push(block);
    }
}

fn group_framed(
    block: &Arc<Block>,
    start: usize,
    found: &[Range<usize>],
    ordinal: &mut u64,
    context: &mut FrameContext<'_>,
) {
    let places = found.iter().map(|range| {
        let range = start + range.start..start + range.end;
        let place = Place { block: 0, range, ordinal: *ordinal };
        *ordinal += 1;
        place
    });
    group(block, places, context);
}

fn group_planned(fetch: &Fetch, offset: u64, arrived: Arrived, context: &mut FrameContext<'_>) {
    let block = Arc::new(arrived.into_block(offset, context.store));
    let places = fetch.extents.iter().map(|wanted| {
        let start = wanted.range.start.wrapping_sub(block.origin) as usize;
        Place {
            block: 0,
            range: start..start + (wanted.range.end - wanted.range.start) as usize,
            ordinal: wanted.ordinal,
        }
    });
    group(&block, places, context);
    free(block, context);
}

/// Cuts a sequence of extents into groups of about `shape.group` stored bytes.
fn group(block: &Arc<Block>, places: impl Iterator<Item = Place>, context: &mut FrameContext<'_>) {
    let mut current: Vec<Place> = Vec::new();
    let mut bytes = 0;
    for place in places {
        if current.is_empty() {
            current = context.spare.pop().unwrap_or_default();
        }
        bytes += place.range.len();
        current.push(place);
        if bytes >= context.shape.group {
            let places = std::mem::take(&mut current);
            context.push(Group { blocks: vec![block.clone()], places });
            bytes = 0;
        }
    }
    if !current.is_empty() {
        context.push(Group { blocks: vec![block.clone()], places: current });
    }
}

impl FrameContext<'_> {
    /// Appends a group. If the order is free, the first ordinals of groups ascend: then those that
    /// a horizon stops come last.
    fn push(&mut self, group: Group) {
        let ordinal = |group: &Group| group.places.first().map(|place| place.ordinal);
        let at = match self.in_order {
            true => self.ready.len(),
            false => self.ready.partition_point(|other| ordinal(other) <= ordinal(&group)),
        };
        self.ready.insert(at, group);
    }
}
