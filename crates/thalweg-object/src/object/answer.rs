//! Answers to requests for ranges, and the memory for their bytes.

use std::ops::Range;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt};

use super::Version;
use super::refused::Refused;
use crate::checksums::Checksum;
use crate::connection::Connection;
use crate::transport::with_aside;

/// An answer to a request for a range.
pub(super) struct Answer {
    pub(super) version: Version,
    pub(super) range: Range<u64>,
    /// The checksum of the whole object.
    pub(super) sum: Option<Checksum>,
    pub(super) body: Body,
}

/// The bytes of an answer.
pub(super) enum Body {
    /// Still in the connection.
    Direct(Connection),
    /// In pieces, of which the last one was read in part.
    Pieces(Pin<Box<dyn Stream<Item = object_store::Result<Bytes>> + Send>>, Bytes),
}

impl Body {
    /// Some bytes; 0 at the end.
    pub(super) async fn read(&mut self, buf: &mut [u8]) -> Result<usize, Refused> {
        match self {
            Self::Direct(connection) => {
                connection.read(buf).await.map_err(|error| Refused::NoAnswer(error.to_string()))
            }
            Self::Pieces(pieces, piece) => {
                while piece.is_empty() {
                    let (next, aside) = with_aside(pieces.next()).await;
                    match next {
                        Some(Ok(next)) => *piece = next,
                        Some(Err(error)) => return Err(Refused::of(aside.trouble, &error)),
                        None => return Ok(0),
                    }
                }
                let len = buf.len().min(piece.len());
                buf[..len].copy_from_slice(&piece.split_to(len));
                Ok(len)
            }
        }
    }
}

/// Memory for the bytes of a read, in parts that follow each other in the object.
pub(super) struct Room<'a, 'b> {
    parts: &'a mut [&'b mut [u8]],
    pub(super) len: usize,
    pub(super) filled: usize,
}

impl<'a, 'b> Room<'a, 'b> {
    pub(super) fn new(parts: &'a mut [&'b mut [u8]]) -> Self {
        let len = parts.iter().map(|part| part.len()).sum();
        Self { parts, len, filled: 0 }
    }

    /// What is empty of the first part that is not full.
    pub(super) fn space(&mut self) -> &mut [u8] {
        let mut skip = self.filled;
        for part in &mut *self.parts {
            if skip < part.len() {
                return &mut part[skip..];
            }
            skip -= part.len();
        }
        &mut []
    }

    /// The bytes of the whole object, which has this size, if they are here in one part.
    pub(super) fn whole(&self, size: u64) -> Option<&[u8]> {
        match &*self.parts {
            [part] if part.len() as u64 == size => Some(part),
            _ => None,
        }
    }
}
