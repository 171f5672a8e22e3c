//! Reads how Lustre stripes a file over its servers. The source is the extended attribute that `lfs
//! getstripe` reads.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The stripes of a file on Lustre's object storage targets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stripe {
    /// The number of targets that the file lies on.
    pub count: u16,
    /// The number of bytes on one target before the next target follows.
    pub bytes: u32,
    /// Whether the file has a composite layout. If so, the other fields describe its first part.
    pub composite: bool,
}

/// The magic numbers of layouts: LOV_USER_MAGIC_V1, _V3 and _COMP_V1 of lustre_user.h. They are
/// little-endian.
const V1: u32 = 0x0bd1_0bd0;
const V3: u32 = 0x0bd3_0bd0;
const COMPOSITE: u32 = 0x0bd6_0bd0;

/// The stripes of `path`; `None` on other file systems.
pub(super) fn stripe(path: &Path) -> Option<Stripe> {
    // A layout of 2000 stripes takes 48 KB.
    let mut value = vec![0; 64 << 10];
    let len = rustix::fs::getxattr(path, "lustre.lov", &mut value[..]).ok()?;
    parse(value.get(..len)?)
}

fn parse(value: &[u8]) -> Option<Stripe> {
    if u32_at(value, 0)? != COMPOSITE {
        return plain(value);
    }
    // struct lov_comp_md_v1: a head of 32 bytes, then entries of 48 bytes. The offset of an entry's
    // layout is at byte 24 of the entry.
    let at = u32_at(value, 32 + 24)? as usize;
    Some(Stripe { composite: true, ..plain(value.get(at..)?)? })
}

/// Parses a plain layout (struct lov_user_md): magic, pattern, object id (16 bytes), stripe size,
/// stripe count.
fn plain(value: &[u8]) -> Option<Stripe> {
    matches!(u32_at(value, 0)?, V1 | V3).then_some(())?;
    let count = u16::from_le_bytes(value.get(28..30)?.try_into().ok()?);
    Some(Stripe { count, bytes: u32_at(value, 24)?, composite: false })
}

fn u32_at(value: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(value.get(at..)?.get(..4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(magic: u32, bytes: u32, count: u16) -> Vec<u8> {
        let mut value = magic.to_le_bytes().to_vec();
        value.extend([1, 0, 0, 0]);
        value.extend([9; 16]);
        value.extend(bytes.to_le_bytes());
        value.extend(count.to_le_bytes());
        value.extend([0; 2]);
        value
    }

    #[test]
    fn layouts_are_read() {
        let four = Stripe { count: 4, bytes: 1 << 20, composite: false };
        assert_eq!(parse(&layout(V1, 1 << 20, 4)), Some(four.clone()));
        assert_eq!(parse(&layout(V3, 1 << 20, 4)), Some(four.clone()));
        let mut composite = COMPOSITE.to_le_bytes().to_vec();
        composite.resize(32 + 24, 0);
        composite.extend((32_u32 + 48).to_le_bytes());
        composite.resize(32 + 48, 0);
        composite.extend(layout(V3, 1 << 20, 4));
        assert_eq!(parse(&composite), Some(Stripe { composite: true, ..four }));
    }

    #[test]
    fn truncated_and_unknown_layouts_are_none() {
        let whole = layout(V1, 1 << 20, 4);
        for len in 0..whole.len() - 2 {
            assert_eq!(parse(whole.get(..len).unwrap_or_default()), None);
        }
        assert_eq!(parse(&layout(7, 1, 1)), None);
        let mut loops = COMPOSITE.to_le_bytes().to_vec();
        loops.resize(64, 0);
        assert_eq!(parse(&loops), None, "an entry that points at its own head");
    }
}
