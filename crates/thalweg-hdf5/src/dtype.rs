//! The type of a dataset's elements, in numpy's terms, and how to make their bytes little-endian.

use std::fmt;

/// A type of elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dtype {
    /// numpy's `dtype.str` of little-endian elements: `<u4`, `|S10`, `|V16`.
    name: String,
    /// Bytes of an element.
    size: usize,
    /// The bytes whose form in the file is not numpy's.
    fixes: Vec<Fix>,
}

/// The most fixes of one element.
const MOST_FIXES: usize = 1 << 12;

/// Bytes of an element that must change to become the form that numpy uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fix {
    pub(crate) at: usize,
    pub(crate) size: usize,
    pub(crate) kind: FixKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FixKind {
    /// A big-endian number.
    Swap,
    /// A string that ends at its first NUL. The bytes behind it are garbage.
    Terminated,
    /// A string that is padded with spaces. numpy pads strings with NUL.
    Spaces,
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Dtype {
    /// A number of the kind `i`, `u`, `f` or `c`, with its byte order in the file.
    pub(crate) fn number(kind: char, size: usize, big_endian: bool) -> Self {
        let parts = if kind == 'c' { 2 } else { 1 };
        let part = size / parts;
        let order = if size == 1 { '|' } else { '<' };
        let swap = |i| Fix { at: i * part, size: part, kind: FixKind::Swap };
        let fixes =
            if big_endian && part > 1 { (0..parts).map(swap).collect() } else { Vec::new() };
        Self { name: format!("{order}{kind}{size}"), size, fixes }
    }

    /// Booleans of one byte.
    pub(crate) fn boolean() -> Self {
        Self { name: "|b1".into(), size: 1, fixes: Vec::new() }
    }

    /// Strings of a fixed size.
    pub(crate) fn text(size: usize, kind: Option<FixKind>) -> Self {
        let fixes = kind.map(|kind| Fix { at: 0, size, kind }).into_iter().collect();
        Self { name: format!("|S{size}"), size, fixes }
    }

    /// The number, time (such as `<M8[us]`) or string with this name in numpy; `None` for other
    /// types, and if the type has another size.
    pub(crate) fn named(name: &str, size: usize) -> Option<Self> {
        let (order, rest) = name
            .split_at_checked(1)
            .filter(|(order, _)| "<>|=".contains(order))
            .unwrap_or(("|", name));
        if rest.strip_prefix('S').is_some_and(|digits| digits.parse() == Ok(size)) {
            return Some(Self::text(size, None));
        }
        let letters = rest.strip_prefix(['b', 'i', 'u', 'f', 'c', 'M', 'm'])?;
        let (digits, unit) = letters.find('[').map_or((letters, ""), |at| letters.split_at(at));
        let is_time = rest.starts_with(['M', 'm']);
        if digits.parse() != Ok(size)
            || !(unit.is_empty() || is_time && unit.ends_with(']'))
            || (is_time && size != 8)
        {
            return None;
        }
        let kind = rest.chars().next()?;
        if !matches!(
            (kind, size),
            ('b', 1)
                | ('i' | 'u', 1 | 2 | 4 | 8)
                | ('f', 2 | 4 | 8 | 16)
                | ('c', 8 | 16)
                | ('M' | 'm', 8)
        ) {
            return None;
        }
        let Self { name, size, fixes } = Self::number(kind, size, order == ">");
        Some(Self { name: name + unit, size, fixes })
    }

    /// Bytes without a meaning to numpy.
    pub(crate) fn void(size: usize) -> Self {
        Self { name: format!("|V{size}"), size, fixes: Vec::new() }
    }

    /// A record of fields at these offsets.
    pub(crate) fn record(size: usize, fields: &[(usize, Self)]) -> Self {
        let mut record = Self::void(size);
        for (at, field) in fields {
            record.fixes.extend(field.fixes.iter().map(|fix| Fix { at: at + fix.at, ..*fix }));
        }
        record
    }

    /// Whether an element needs more than [`MOST_FIXES`] fixes.
    pub(crate) fn is_too_mixed(&self) -> bool {
        self.fixes.len() > MOST_FIXES
    }

    /// `count` elements one after the other, as a field of a record; `None` if they need more than
    /// [`MOST_FIXES`] fixes or are too large.
    pub(crate) fn repeated(&self, count: usize) -> Option<Self> {
        let size = self.size.checked_mul(count)?;
        if self.fixes.len().checked_mul(count)? > MOST_FIXES {
            return None;
        }
        let fixes = (0..count).flat_map(|i| {
            self.fixes.iter().map(move |fix| Fix { at: i * self.size + fix.at, ..*fix })
        });
        Some(Self { name: format!("|V{size}"), size, fixes: fixes.collect() })
    }

    /// numpy's name for the elements as they are stored, such as `>f8`; `None` if it has no name
    /// for them.
    pub(crate) fn stored_name(&self) -> Option<String> {
        match self.fixes[..] {
            // numpy also ends a string at trailing NULs.
            [] | [Fix { kind: FixKind::Terminated, .. }] => Some(self.name.clone()),
            [Fix { kind: FixKind::Swap, .. }, ..] => {
                self.name.strip_prefix('<').map(|name| format!(">{name}"))
            }
            _ => None,
        }
    }

    /// numpy's letter for the kind of elements: `i`, `u`, `f`, `V` and so on.
    pub(crate) fn kind(&self) -> char {
        self.name.chars().nth(1).unwrap_or('V')
    }

    /// Bytes of an element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether stored elements are in numpy's little-endian form already.
    pub fn is_plain(&self) -> bool {
        self.fixes.is_empty()
    }

    /// The type of elements that are in numpy's form already.
    pub(crate) fn into_plain(self) -> Self {
        Self { fixes: Vec::new(), ..self }
    }

    /// Converts stored elements to numpy's little-endian form. `bytes` holds whole elements.
    pub fn to_little_endian(&self, bytes: &mut [u8]) {
        match self.fixes[..] {
            [] => {}
            [Fix { size: 2, kind: FixKind::Swap, .. }] if self.size == 2 => swap::<2>(bytes),
            [Fix { size: 4, kind: FixKind::Swap, .. }] if self.size == 4 => swap::<4>(bytes),
            [Fix { size: 8, kind: FixKind::Swap, .. }] if self.size == 8 => swap::<8>(bytes),
            _ => bytes.chunks_exact_mut(self.size.max(1)).for_each(|element| {
                self.fixes
                    .iter()
                    .for_each(|fix| fix.apply(&mut element[fix.at..fix.at + fix.size]));
            }),
        }
    }
}

fn swap<const N: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<N>().0.iter_mut().for_each(|number| number.reverse());
}

impl Fix {
    fn apply(self, bytes: &mut [u8]) {
        match self.kind {
            FixKind::Swap => bytes.reverse(),
            FixKind::Terminated => {
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                bytes[end..].fill(0);
            }
            FixKind::Spaces => {
                let end = bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
                bytes[end..].fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Dtype, FixKind};

    fn repeated(dtype: &Dtype, count: usize) -> Dtype {
        dtype.repeated(count).unwrap_or_else(Dtype::boolean)
    }

    fn fixed(dtype: &Dtype, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        dtype.to_little_endian(&mut bytes);
        bytes
    }

    #[test]
    fn names_are_numpys() {
        let names = [
            Dtype::number('i', 1, true),
            Dtype::number('u', 4, true),
            Dtype::number('c', 16, false),
            Dtype::boolean(),
            Dtype::text(10, None),
            repeated(&Dtype::number('f', 8, false), 3),
        ];
        assert_eq!(
            names.map(|dtype| dtype.to_string()),
            ["|i1", "<u4", "<c16", "|b1", "|S10", "|V24"]
        );
    }

    #[test]
    fn big_endian_numbers_are_swapped_wherever_they_stand() {
        assert_eq!(fixed(&Dtype::number('u', 2, true), &[0, 1, 0, 2]), [1, 0, 2, 0]);
        assert_eq!(fixed(&Dtype::number('u', 4, false), &[1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(
            fixed(&Dtype::number('f', 8, true), &[1, 2, 3, 4, 5, 6, 7, 8]),
            [8, 7, 6, 5, 4, 3, 2, 1]
        );
        assert_eq!(
            fixed(&Dtype::number('c', 8, true), &[1, 2, 3, 4, 5, 6, 7, 8]),
            [4, 3, 2, 1, 8, 7, 6, 5]
        );
        let record = Dtype::record(
            8,
            &[(0, Dtype::number('i', 1, false)), (2, repeated(&Dtype::number('u', 2, true), 2))],
        );
        assert_eq!(fixed(&record, &[9, 8, 1, 2, 3, 4, 7, 6]), [9, 8, 2, 1, 4, 3, 7, 6]);
    }

    #[test]
    fn numpys_own_names_are_known() {
        let named = |name, size| Dtype::named(name, size).map(|dtype| dtype.to_string());
        assert_eq!(named("<M8[us]", 8).as_deref(), Some("<M8[us]"));
        assert_eq!(named(">m8[ns]", 8).as_deref(), Some("<m8[ns]"));
        assert_eq!(named("|b1", 1).as_deref(), Some("|b1"));
        assert_eq!(named("|S21", 21).as_deref(), Some("|S21"));
        assert_eq!(named("float64", 8), None);
        assert_eq!(
            ["<M8[us]", "<V8", "<i8[us]", ">", ""].map(|name| named(name, 4)),
            [const { None }; 5]
        );
        let Some(swapped) = Dtype::named(">M8[s]", 8) else { unreachable!("a known name") };
        assert_eq!(fixed(&swapped, &[1, 2, 3, 4, 5, 6, 7, 8]), [8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn strings_are_filled_up_with_nul() {
        assert_eq!(
            fixed(&Dtype::text(4, Some(FixKind::Terminated)), b"a\0bcdefg"),
            *b"a\0\0\0defg"
        );
        assert_eq!(fixed(&Dtype::text(4, Some(FixKind::Spaces)), b"a b     "), *b"a b\0\0\0\0\0");
        assert_eq!(fixed(&Dtype::text(4, None), b"a\0b "), *b"a\0b ");
    }
}
