//! Text with names in braces that stand for values: `{file}`, `{threads}`, `{file:ids}`.
//!
//! Only a lower-case name directly within braces is replaced. Braces of shell and awk stay:
//! `${HOME}`, `{print $1}`. `{{name}}` stands for `{name}`.

use super::{Span, WithSpan};

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Text(String),
    Name(String),
}

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template {
    pieces: Vec<TemplatePart>,
    pub(super) at: Span,
}

fn is_name(s: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    // The text after a colon is the name of a file, which may contain any character.
    let (word, rest) = s.split_once(':').unwrap_or((s, "x"));
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(plain)
        && !rest.is_empty()
        && rest.chars().all(|c| c.is_alphanumeric() || "_-. +".contains(c))
}

impl Template {
    pub(super) fn new(text: &WithSpan<String>) -> Self {
        Self { pieces: pieces(&text.value), at: text.at.clone() }
    }

    /// The names in the template.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePart::Name(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        })
    }

    /// The text, with each name replaced by the value that `value` returns for it.
    pub(super) fn fill<E>(
        &self,
        mut value: impl FnMut(&str) -> Result<String, E>,
    ) -> Result<String, E> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePart::Text(text) => out.push_str(text),
                TemplatePart::Name(name) => out.push_str(&value(name)?),
            }
        }
        Ok(out)
    }
}

/// A part of the text of a template as it is written.
enum Token<'a> {
    Text(&'a str),
    /// `{{name}}`, which stands for `{name}`.
    Escaped(&'a str),
    /// `{name}`.
    Name(&'a str),
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        tokens.push(Token::Text(before));
        let (token, length) = if let Some((name, length)) = name_within(from, "{{", "}}") {
            (Token::Escaped(name), length)
        } else if let Some((name, length)) =
            name_within(from, "{", "}").filter(|_| !before.ends_with('$'))
        {
            (Token::Name(name), length)
        } else {
            (Token::Text("{"), 1)
        };
        tokens.push(token);
        rest = from.get(length..).unwrap_or_default();
    }
    tokens.push(Token::Text(rest));
    tokens
}

fn pieces(text: &str) -> Vec<TemplatePart> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    for token in tokens(text) {
        match token {
            Token::Text(text) => plain.push_str(text),
            Token::Escaped(name) => plain.push_str(&format!("{{{name}}}")),
            Token::Name(name) => {
                if !plain.is_empty() {
                    pieces.push(TemplatePart::Text(std::mem::take(&mut plain)));
                }
                pieces.push(TemplatePart::Name(name.to_owned()));
            }
        }
    }
    if !plain.is_empty() {
        pieces.push(TemplatePart::Text(plain));
    }
    pieces
}

/// A template whose filled text is `text`. Names in braces stand for values only where `is_value`
/// says so.
pub fn literal(text: &str, is_value: impl Fn(&str) -> bool) -> String {
    let written = |token| match token {
        Token::Text(text) => text.to_owned(),
        // A further pair of braces keeps this one.
        Token::Escaped(name) => format!("{{{{{{{name}}}}}}}"),
        Token::Name(name) if is_value(name) => format!("{{{name}}}"),
        Token::Name(name) => format!("{{{{{name}}}}}"),
    };
    tokens(text).into_iter().map(written).collect()
}

/// The name that stands within these braces at the start of `from`, and the length with them.
fn name_within<'a>(from: &'a str, open: &str, close: &str) -> Option<(&'a str, usize)> {
    let end = from.strip_prefix(open)?.find(close)?;
    let name = from.get(open.len()..open.len() + end)?;
    is_name(name).then_some((name, open.len() + end + close.len()))
}

/// `text` as one word of a POSIX shell.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::new(&WithSpan { value: text.into(), at: 0..text.len() })
    }

    fn filled(text: &str) -> String {
        template(text).fill(|name| Ok::<_, ()>(format!("<{name}>"))).unwrap_or_default()
    }

    #[test]
    fn names_are_replaced_and_other_braces_stay() {
        assert_eq!(filled("a {file} b{file:ids}"), "a <file> b<file:ids>");
        assert_eq!(
            filled("awk '{print $1}' ${HOME} ${x} {} { file }"),
            "awk '{print $1}' ${HOME} ${x} {} { file }"
        );
        assert_eq!(filled(r#"echo '{"a":{"b":1}}'"#), r#"echo '{"a":{"b":1}}'"#);
        assert_eq!(filled("{{file}} {{{file}}}"), "{file} {{file}}");
        assert_eq!(filled("{file"), "{file");
        assert_eq!(filled("ä{ö}{"), "ä{ö}{");
        assert_eq!(template("{a}{b:c d}").names().collect::<Vec<_>>(), ["a", "b:c d"]);
    }

    #[test]
    fn a_literal_gives_its_text() {
        let alphabet = ["{", "}", "a", "$", ":", " "];
        // All texts of up to seven of these.
        for length in 0..=7 {
            for number in 0..alphabet.len().pow(length) {
                let digit = |place| number / alphabet.len().pow(place) % alphabet.len();
                let text: String =
                    (0..length).filter_map(|place| alphabet.get(digit(place))).copied().collect();
                assert_eq!(filled(&literal(&text, |_| false)), text);
            }
        }
        let template = literal("cat {file:x} {file} {{file:x}}", |name| name == "file:x");
        assert_eq!(filled(&template), "cat <file:x> {file} {{file:x}}");
    }

    #[test]
    fn paths_are_quoted_for_shells() {
        assert_eq!(quoted("a/b.c"), "a/b.c");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
