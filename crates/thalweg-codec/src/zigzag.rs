//! Zigzag: maps small numbers of either sign to small unsigned numbers. 0, -1, 1, -2, ... become 0,
//! 1, 2, 3, ...

#[inline(always)]
pub(crate) fn zigzag_32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)) as u32
}

#[inline(always)]
pub(crate) fn unzigzag_32(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

#[inline(always)]
pub(crate) fn zigzag_16(value: i16) -> u16 {
    ((value << 1) ^ (value >> 15)) as u16
}

#[inline(always)]
pub(crate) fn unzigzag_16(value: u16) -> i16 {
    (value >> 1) as i16 ^ -((value & 1) as i16)
}

/// Maps 0, -1, 1, -2, ... to 0, 1, 2, 3, ...
pub fn zigzag_64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag_64`].
pub fn unzigzag_64(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_of_each_other() {
        for v in 0..=u16::MAX {
            assert_eq!(zigzag_16(unzigzag_16(v)), v);
            assert_eq!(unzigzag_32(u32::from(v)) as i16, unzigzag_16(v));
        }
        for v in [0, 1, 2, 3, 65_535, 65_536, 131_070, u32::MAX - 1, u32::MAX] {
            assert_eq!(zigzag_32(unzigzag_32(v)), v);
        }
        assert_eq!([0, -1, 1, -2, i16::MAX, i16::MIN].map(zigzag_16), [0, 1, 2, 3, 65_534, 65_535]);
    }
}
