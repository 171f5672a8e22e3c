//! Splits Rust source into tokens: words, strings and single characters, each with its line.
//! Comments are left out, and so are the parts that `#[cfg(test)]` excludes from a build.

use std::iter::Peekable;
use std::str::CharIndices;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Word(String),
    Text(String),
    Sign(char),
}

#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) token: Token,
    pub(crate) line: usize,
}

impl Placed {
    pub(crate) fn is(&self, sign: char) -> bool {
        self.token == Token::Sign(sign)
    }

    pub(crate) fn word(&self) -> Option<&str> {
        if let Token::Word(word) = &self.token { Some(word) } else { None }
    }
}

struct Reader<'a> {
    source: &'a str,
    chars: Peekable<CharIndices<'a>>,
    line: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let (_, c) = self.chars.next()?;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn rest(&mut self) -> &str {
        self.chars.peek().map_or("", |(at, _)| &self.source[*at..])
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.next();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        loop {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.skip(2);
            } else if self.rest().starts_with("*/") {
                depth -= 1;
                self.skip(2);
            } else if self.next().is_none() {
                return;
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// Reads the content of a string. The opening quote comes next.
    fn string(&mut self) -> String {
        let mut text = String::new();
        self.next();
        while let Some(c) = self.next() {
            match c {
                '"' => break,
                '\\' => self.skip(1),
                c => text.push(c),
            }
        }
        text
    }

    /// Reads the content of a raw string. Its `#`s come next.
    fn raw_string(&mut self) -> String {
        let hashes = self.rest().chars().take_while(|c| *c == '#').count();
        self.skip(hashes + 1);
        let end = format!("\"{}", "#".repeat(hashes));
        let mut text = String::new();
        while !self.rest().is_empty() && !self.rest().starts_with(&end) {
            text.extend(self.next());
        }
        self.skip(hashes + 1);
        text
    }

    /// Skips a character in quotes, or the quote of a lifetime.
    fn quote(&mut self) {
        let mut next = self.rest().chars().skip(1);
        let (first, second) = (next.next(), next.next());
        self.next();
        if first == Some('\\') {
            self.skip(2);
            while self.next().is_some_and(|c| c != '\'') {}
        } else if second == Some('\'') {
            self.skip(2);
        }
    }

    fn word(&mut self) -> String {
        let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
        let word: String = self.rest().chars().take_while(is_word).collect();
        self.skip(word.chars().count());
        word
    }
}

/// All tokens of a file.
pub(crate) fn tokens(source: &str) -> Vec<Placed> {
    let mut reader = Reader { source, chars: source.char_indices().peekable(), line: 1 };
    let mut all = Vec::new();
    loop {
        let rest = reader.rest();
        let Some(first) = rest.chars().next() else { return all };
        if rest.starts_with("//") {
            while reader.chars.peek().is_some_and(|(_, c)| *c != '\n') {
                reader.next();
            }
            continue;
        }
        if rest.starts_with("/*") {
            reader.block_comment();
            continue;
        }
        let line = reader.line;
        let token = match first {
            '"' => Token::Text(reader.string()),
            '\'' => {
                reader.quote();
                continue;
            }
            c if c.is_alphanumeric() || c == '_' => {
                let word = reader.word();
                let raw = word.ends_with('r') && word.len() <= 2;
                match reader.rest().as_bytes() {
                    [b'"', ..] if raw => Token::Text(reader.raw_string()),
                    [b'#', b'"' | b'#', ..] if raw => Token::Text(reader.raw_string()),
                    [b'"', ..] if word == "b" || word == "c" => Token::Text(reader.string()),
                    _ => Token::Word(word),
                }
            }
            c => {
                reader.next();
                if c.is_whitespace() {
                    continue;
                }
                Token::Sign(c)
            }
        };
        all.push(Placed { token, line });
    }
}

/// The index after the bracket that closes the one at `open`.
pub(crate) fn past_bracket(tokens: &[Placed], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The index after the item, field or arm at `at`: after its semicolon or comma, or after its last
/// brace.
fn past_item(tokens: &[Placed], mut at: usize) -> usize {
    const ITEMS: [&str; 13] = [
        "async", "const", "enum", "extern", "fn", "impl", "mod", "pub", "static", "struct",
        "trait", "unsafe", "use",
    ];
    // Commas of an item separate type parameters and do not end the item.
    let is_item = tokens.get(at).and_then(Placed::word).is_some_and(|word| ITEMS.contains(&word));
    while let Some(token) = tokens.get(at) {
        match token.token {
            Token::Sign(';') => return at + 1,
            Token::Sign(',') if !is_item => return at + 1,
            Token::Sign('{') => return past_bracket(tokens, at),
            Token::Sign('(' | '[') => at = past_bracket(tokens, at),
            // The last field or arm of its list.
            Token::Sign('}') => return at,
            _ => at += 1,
        }
    }
    at
}

/// Whether an attribute marks code that only tests have.
fn for_tests(attribute: &[Placed]) -> bool {
    let words: Vec<&str> = attribute.iter().filter_map(Placed::word).collect();
    match words[..] {
        ["test"] => true,
        ["cfg", "test"] => true,
        ["cfg", "all", ..] => words.contains(&"test") && !words.contains(&"not"),
        _ => false,
    }
}

/// The tokens without the items that only tests have, and the names of modules in other files that
/// only tests have.
pub(crate) fn without_tests(all: &[Placed]) -> (Vec<Placed>, Vec<String>) {
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < all.len() {
        let attribute = all[at].is('#') && all.get(at + 1).is_some_and(|next| next.is('['));
        let end = if attribute { past_bracket(all, at + 1) } else { at };
        if !attribute || !for_tests(&all[at + 1..end]) {
            kept.push(all[at].clone());
            at += 1;
            continue;
        }
        let mut item = end;
        while all.get(item).is_some_and(|token| token.is('#')) {
            item = past_bracket(all, item + 1);
        }
        at = past_item(all, item);
        let words: Vec<&str> = all[item..at].iter().filter_map(Placed::word).collect();
        let outside = all[at - 1].is(';');
        if let Some(mod_at) = words.iter().position(|word| *word == "mod").filter(|_| outside) {
            modules.extend(words.get(mod_at + 1).map(|name| (*name).to_owned()));
        }
    }
    (kept, modules)
}
