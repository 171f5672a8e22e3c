//! Text that one thread puts together: of streams, and of gzip files whose parts other threads have
//! decompressed as far as that can be done without what comes before them.

use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use thalweg_codec::gzip::{GzipStream, Part, PartDecompressor};
use thalweg_io::control::Control;
use thalweg_io::engine::Run;
use thalweg_io::pool::Background;
use thalweg_io::{Error, InFile, Result};

use crate::source::{OnStored, PIECE, PieceDecoder, Work, cut};

/// How often the consumer looks whether the work was cancelled.
pub(crate) const POLL: Duration = Duration::from_millis(100);

/// Stored bytes that come in order.
pub(crate) enum Stored {
    Run(Run<PieceDecoder<DecompressParts>>),
    /// A stream, and the bytes of it that were read.
    Reader(Box<dyn Read + Send>, Arc<AtomicU64>),
}

/// Stored bytes, and what was decompressed of them.
#[derive(Default)]
pub(crate) struct StoredPart {
    bytes: Vec<u8>,
    part: Part,
}

/// Decompresses parts of a gzip file as far as that can be done without the others.
pub(crate) struct DecompressParts {
    /// The most symbols of a part; none if parts are not decompressed.
    pub(crate) most: Option<usize>,
    /// Parts whose room is used again.
    pub(crate) old: Arc<Mutex<Vec<Part>>>,
}

impl Work for DecompressParts {
    type Worker = PartDecompressor;
    type Made = StoredPart;

    fn worker(&self) -> PartDecompressor {
        PartDecompressor::default()
    }

    fn make(
        &self,
        worker: &mut PartDecompressor,
        stored: &[u8],
        is_first: bool,
    ) -> Result<StoredPart> {
        let bytes = stored.to_vec();
        // The first part needs nothing that comes before it.
        let Some(most) = self.most.filter(|_| !is_first) else {
            return Ok(StoredPart { bytes, part: Part::default() });
        };
        let old = self.old.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let part = worker.run(&bytes, most, old.unwrap_or_default());
        Ok(StoredPart { bytes, part })
    }
}

impl Stored {
    /// The next bytes, at most `most` of a stream; none at the end.
    fn next(&mut self, most: usize, file: &Arc<str>) -> Result<StoredPart> {
        match self {
            Self::Run(run) => loop {
                let Some(stored) = run.next().transpose()? else {
                    return Ok(StoredPart::default());
                };
                run.recycle(None);
                if let Some(stored) = stored {
                    return Ok(stored.made);
                }
            },
            Self::Reader(reader, count) => {
                let mut stored = Vec::with_capacity(most);
                let got = reader.by_ref().take(most as u64).read_to_end(&mut stored);
                got.map_err(|error| Error::io(file, "reading", error))?;
                count.fetch_add(stored.len() as u64, Ordering::Relaxed);
                Ok(StoredPart { bytes: stored, part: Part::default() })
            }
        }
    }
}

/// The results of work on pieces of text that one thread makes, in order. Other threads do the
/// work.
pub(crate) struct Serial<W: Work> {
    made: Vec<Receiver<Result<W::Made>>>,
    turn: usize,
    threads: Vec<Background<()>>,
    control: Control,
    /// Whether threads are waited for. A stream may have one of them wait forever.
    may_wait: bool,
}

impl<W: Work> Serial<W> {
    pub(crate) fn start(
        text: SerialText,
        work: &Arc<W>,
        workers: usize,
        control: Control,
    ) -> Result<Self> {
        let file = text.file.clone();
        let may_wait = matches!(text.stored, Stored::Run(_));
        let mut serial = Self { made: Vec::new(), turn: 0, threads: Vec::new(), control, may_wait };
        let mut texts = Vec::new();
        for number in 0..workers.max(1) {
            let (give_text, text) = sync_channel::<Result<Vec<u8>>>(1);
            let (give, made) = sync_channel(1);
            let work = work.clone();
            let job = move || {
                let mut own = work.worker();
                let mut is_first = number == 0;
                for text in text {
                    let made = text.and_then(|text| work.make(&mut own, &text, is_first));
                    is_first = false;
                    if give.send(made).is_err() {
                        return;
                    }
                }
            };
            serial.threads.push(Background::start("thalweg-text", &file, job)?);
            serial.made.push(made);
            texts.push(give_text);
        }
        let control = serial.control.clone();
        let job = move || {
            let mut turns = Turns { texts, turn: 0 };
            if let Err(error) = text.give(&mut turns, &control) {
                turns.give(Err(error));
            }
        };
        serial.threads.push(Background::start("thalweg-inflate", &file, job)?);
        Ok(serial)
    }
}

/// Gives pieces to threads in turn.
struct Turns {
    texts: Vec<SyncSender<Result<Vec<u8>>>>,
    turn: usize,
}

impl Turns {
    /// Whether somebody took it.
    fn give(&mut self, text: Result<Vec<u8>>) -> bool {
        let to = self.turn;
        self.turn = (to + 1) % self.texts.len();
        self.texts[to].send(text).is_ok()
    }
}

/// Text that one thread makes.
pub(crate) struct SerialText {
    pub(crate) stored: Stored,
    pub(crate) is_gzip: bool,
    /// Bytes of text in a piece.
    pub(crate) piece: usize,
    pub(crate) file: Arc<str>,
    pub(crate) on_stored: Option<OnStored>,
    /// Parts whose room is used again.
    pub(crate) old: Arc<Mutex<Vec<Part>>>,
}

impl SerialText {
    /// The next stored bytes; none at the end.
    fn next(&mut self, most: usize) -> Result<StoredPart> {
        let stored = self.stored.next(most, &self.file)?;
        if let Some(on_stored) = &mut self.on_stored {
            on_stored(&stored.bytes);
        }
        Ok(stored)
    }

    /// Gives all text, piece by piece, until nobody takes it.
    fn give(mut self, turns: &mut Turns, control: &Control) -> Result<()> {
        if self.is_gzip {
            return self.inflate(turns, control);
        }
        loop {
            control.check()?;
            let text = self.next(self.piece)?.bytes;
            if text.is_empty() || !turns.give(Ok(text)) {
                return Ok(());
            }
        }
    }

    fn inflate(&mut self, turns: &mut Turns, control: &Control) -> Result<()> {
        let mut stream = GzipStream::default();
        let mut text = Vec::with_capacity(self.piece);
        let mut size = 0;
        loop {
            let StoredPart { bytes, part } = self.next(PIECE)?;
            if bytes.is_empty() {
                break;
            }
            stream.offer(part);
            size += bytes.len() as u64;
            let mut rest = &bytes[..];
            loop {
                control.check()?;
                let pushed = stream.push(&mut rest, &mut text);
                let is_all = *pushed.as_ref().unwrap_or(&false);
                // What comes before a defect is delivered before it.
                if !is_all {
                    let full = std::mem::replace(&mut text, Vec::with_capacity(self.piece));
                    if !turns.give(Ok(full)) {
                        return Ok(());
                    }
                }
                pushed.map_err(|fault| fault.in_file(&self.file, 0, "gzip data"))?;
                if is_all {
                    break;
                }
            }
            let old = stream.take_back();
            self.old.lock().unwrap_or_else(PoisonError::into_inner).extend(old);
        }
        if !turns.give(Ok(text)) {
            return Ok(());
        }
        stream.unfinished().map_or(Ok(()), |start| Err(cut(&self.file, start, size)))
    }
}

impl<W: Work> Iterator for Serial<W> {
    type Item = Result<W::Made>;

    fn next(&mut self) -> Option<Self::Item> {
        let made = self.made.get(self.turn)?;
        let next = loop {
            match made.recv_timeout(POLL) {
                Ok(made) => break Some(made),
                Err(RecvTimeoutError::Timeout) if self.control.is_cancelled() => {
                    break Some(Err(Error::Cancelled));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        };
        self.turn = (self.turn + 1) % self.made.len();
        match &next {
            Some(Ok(_)) => {}
            Some(Err(_)) => self.made.clear(),
            None => {
                // A panic of a thread continues here, for its end is not that of the text.
                self.made.clear();
                let is_over = |thread: &mut Background<()>| self.may_wait || thread.is_finished();
                self.threads.extract_if(.., is_over).for_each(Background::join);
            }
        }
        next
    }
}

impl<W: Work> Drop for Serial<W> {
    fn drop(&mut self) {
        // Threads end when nobody takes what they give.
        self.made.clear();
        if self.may_wait {
            self.threads.drain(..).for_each(Background::wait);
        }
    }
}
