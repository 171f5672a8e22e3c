//! Shapes (section IV.A.2.b).

use super::cursor::{Cursor, all_ones};
use super::{Result, damaged};
use crate::array::MOST_RANK;

/// The shape of a dataset or an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dataspace {
    /// There is no element.
    Null,
    /// A single element, or an element at each place of a grid.
    Simple {
        /// The length of each dimension; none for a single element.
        shape: Vec<u64>,
        /// The length to which each dimension may grow; `u64::MAX` if it has no limit.
        most: Vec<u64>,
    },
}

impl Dataspace {
    /// Parses the body of a dataspace message.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let at = cursor.at();
        let version = cursor.u8()?;
        let rank = usize::from(cursor.u8()?);
        let flags = cursor.u8()?;
        let is_null = match version {
            1 => {
                cursor.skip(5)?;
                false
            }
            2 => cursor.u8()? == 2,
            version => return damaged(at, format!("version {version} of a dataspace"), "1 or 2"),
        };
        if rank > MOST_RANK {
            return damaged(at, format!("{rank} dimensions"), format!("at most {MOST_RANK}"));
        }
        if is_null {
            return Ok(Self::Null);
        }
        let unlimited = all_ones(cursor.widths().length.into());
        let mut lengths = || (0..rank).map(|_| cursor.length()).collect::<Result<Vec<u64>>>();
        let shape = lengths()?;
        let most = if flags & 1 == 0 { shape.clone() } else { lengths()? };
        let most: Vec<u64> =
            most.into_iter().map(|most| if most == unlimited { u64::MAX } else { most }).collect();
        if let Some((length, most)) = shape.iter().zip(&most).find(|(length, most)| length > most) {
            return damaged(at, format!("a dimension of {length}"), format!("at most {most}"));
        }
        Ok(Self::Simple { shape, most })
    }

    /// How many elements there are; `None` if 64 bits do not hold the number.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Null => Some(0),
            Self::Simple { shape, .. } => {
                shape.iter().try_fold(1u64, |count, &length| count.checked_mul(length))
            }
        }
    }
}
