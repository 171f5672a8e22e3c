//! The parser: from text to an expression.

use super::{ConditionKind, Expr, Sign, Test, Word, wrong};
use crate::error::Result;

/// The deepest nesting of parentheses and `not`s. The parser recurses, so that it needs a limit;
/// real conditions stay far below this one.
const DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    /// A bare word; keywords are words too.
    Word(String),
    Quoted(String),
    Sign(String),
    Open,
    Close,
    Comma,
}

impl Token {
    fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn shown(&self) -> String {
        match self {
            Self::Word(text) | Self::Quoted(text) | Self::Sign(text) => format!("{text:?}"),
            Self::Open => "\"(\"".into(),
            Self::Close => "\")\"".into(),
            Self::Comma => "\",\"".into(),
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Expr> {
    let mut parser = Parser { text, tokens: tokens(text)?, next: 0, depth: 0 };
    let expr = parser.any()?;
    match parser.peek() {
        None => Ok(expr),
        Some(_) => Err(parser.unexpected("\"and\", \"or\" or the end")),
    }
}

fn is_sign(c: char) -> bool {
    matches!(c, '<' | '>' | '=' | '!')
}

/// Tokens with the byte offsets at which they start.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        let run = |member: fn(char) -> bool| rest.find(|c| !member(c)).unwrap_or(rest.len());
        let (len, token) = match c {
            c if c.is_whitespace() => (c.len_utf8(), None),
            '(' => (1, Some(Token::Open)),
            ')' => (1, Some(Token::Close)),
            ',' => (1, Some(Token::Comma)),
            '"' | '\'' => {
                let inside = rest.get(1..).unwrap_or_default();
                let end = inside.find(c).ok_or_else(|| {
                    wrong(text, at, "text without an end", &format!("{c} after it"))
                })?;
                (end + 2, Some(Token::Quoted(inside.get(..end).unwrap_or_default().to_owned())))
            }
            c if is_sign(c) => {
                let len = run(is_sign);
                (len, Some(Token::Sign(rest.get(..len).unwrap_or_default().to_owned())))
            }
            _ => {
                let len = run(|c| {
                    !c.is_whitespace() && !is_sign(c) && !matches!(c, '(' | ')' | ',' | '"' | '\'')
                });
                (len, Some(Token::Word(rest.get(..len).unwrap_or_default().to_owned())))
            }
        };
        tokens.extend(token.map(|token| (at, token)));
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(tokens)
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// Takes the next token if it is this keyword.
    fn took(&mut self, keyword: &str) -> bool {
        let is = self.peek().is_some_and(|token| token.is(keyword));
        self.next += usize::from(is);
        is
    }

    fn unexpected(&self, expected: &str) -> crate::Error {
        match self.tokens.get(self.next) {
            Some((at, token)) => wrong(self.text, *at, &token.shown(), expected),
            None => wrong(self.text, self.text.len(), "the end", expected),
        }
    }

    fn expect(&mut self, token: &Token, shown: &str) -> Result<()> {
        if self.peek() == Some(token) {
            self.next += 1;
            return Ok(());
        }
        Err(self.unexpected(shown))
    }

    fn any(&mut self) -> Result<Expr> {
        let mut parts = vec![self.all()?];
        while self.took("or") {
            parts.push(self.all()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::Any(parts) })
    }

    fn all(&mut self) -> Result<Expr> {
        let mut parts = vec![self.not()?];
        while self.took("and") {
            parts.push(self.not()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Expr::All(parts) })
    }

    fn not(&mut self) -> Result<Expr> {
        if self.depth == DEPTH {
            return Err(self.unexpected(&format!(
                "at most {DEPTH} parentheses and \"not\"s inside each other"
            )));
        }
        self.depth += 1;
        let expr = if self.took("not") {
            Expr::Not(Box::new(self.not()?))
        } else if self.peek() == Some(&Token::Open) {
            self.next += 1;
            let inner = self.any()?;
            self.expect(&Token::Close, "\")\", \"and\" or \"or\"")?;
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn test(&mut self) -> Result<Expr> {
        let column = self.word("the name of a column, \"not\" or \"(\"")?;
        if self.took("is") {
            let not = self.took("not");
            if !self.took("missing") {
                return Err(self.unexpected(if not {
                    "\"missing\""
                } else {
                    "\"missing\" or \"not missing\""
                }));
            }
            return Ok(negated(not, Expr::Test(Test { column, kind: ConditionKind::Missing })));
        }
        let not = self.took("not");
        if self.took("in") {
            let kind = ConditionKind::OneOf(self.list()?);
            return Ok(negated(not, Expr::Test(Test { column, kind })));
        }
        let signs = "== != < <= > >=, \"in\" or \"is missing\"";
        let sign = match self.peek() {
            Some(Token::Sign(sign)) if !not => sign.clone(),
            _ => return Err(self.unexpected(if not { "\"in\"" } else { signs })),
        };
        let (not, sign) = match sign.as_str() {
            "==" | "=" => (false, Sign::Equal),
            "!=" => (true, Sign::Equal),
            "<" => (false, Sign::Less),
            "<=" => (false, Sign::AtMost),
            ">" => (false, Sign::More),
            ">=" => (false, Sign::AtLeast),
            _ => return Err(self.unexpected(signs)),
        };
        self.next += 1;
        let kind = ConditionKind::Compare(sign, self.word("a value")?);
        Ok(negated(not, Expr::Test(Test { column, kind })))
    }

    /// The values after "in".
    fn list(&mut self) -> Result<Vec<Word>> {
        self.expect(&Token::Open, "\"(\"")?;
        let mut values = vec![self.word("a value")?];
        while self.peek() == Some(&Token::Comma) {
            self.next += 1;
            values.push(self.word("a value")?);
        }
        self.expect(&Token::Close, "\",\" or \")\"")?;
        Ok(values)
    }

    fn word(&mut self, expected: &str) -> Result<Word> {
        match self.tokens.get(self.next) {
            Some((at, Token::Word(text) | Token::Quoted(text))) => {
                self.next += 1;
                Ok(Word { at: *at, text: text.clone() })
            }
            _ => Err(self.unexpected(expected)),
        }
    }
}

fn negated(not: bool, expr: Expr) -> Expr {
    if not { Expr::Not(Box::new(expr)) } else { expr }
}
