//! Cutting a text into statements, without understanding them.
//!
//! A script, a `-c` argument or a shell's input may hold several statements, and which of its `;` end one can be told without a
//! grammar: those outside of quotes and comments. Known are `'…'`, `"…"` and `` `…` `` (doubled quotes inside them close and reopen,
//! which comes to the same), `-- …` to the end of the line, and `/* … */`, which nests. A backslash means nothing in quotes, as in
//! standard SQL.

use std::ops::Range;

/// What a stretch of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A word: keyword or unquoted name.
    Word,
    /// A number.
    Number,
    /// `'…'`.
    Text,
    /// `"…"` or `` `…` ``.
    QuotedName,
    /// `-- …` or `/* … */`.
    Comment,
    /// `;`.
    End,
    /// White space.
    Space,
    /// Any other single character.
    Other,
}

/// What a text ends inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// A quote that is not closed.
    Quote(char),
    /// A comment that is not closed.
    Comment,
}

/// A statement in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its text, without the `;` and without white space around it.
    pub text: &'a str,
    /// The line of the script where it begins, from 1.
    pub line: usize,
}

/// A script, cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script<'a> {
    /// Statements that a `;` ends.
    pub statements: Vec<Statement<'a>>,
    /// What follows the last `;`, unless it is blank or comments only.
    pub rest: Option<Statement<'a>>,
    /// What the text ends inside of.
    pub open: Option<Open>,
}

impl<'a> Script<'a> {
    /// Cuts a text.
    pub fn cut(text: &'a str) -> Self {
        let mut script = Script { statements: Vec::new(), rest: None, open: None };
        let mut start = 0;
        let mut blank = true;
        let mut pieces = Pieces::new(text);
        for (piece, range) in pieces.by_ref() {
            match piece {
                Piece::End => {
                    script.statements.extend(statement(text, start..range.start, blank));
                    start = range.end;
                    blank = true;
                }
                Piece::Space | Piece::Comment => {}
                _ => blank = false,
            }
        }
        script.open = pieces.open;
        script.rest = statement(text, start..text.len(), blank);
        script
    }

    /// All statements, the one that no `;` ends too.
    pub fn all(self) -> impl Iterator<Item = Statement<'a>> {
        self.statements.into_iter().chain(self.rest)
    }

    /// Whether nothing is left to type: no statement is open, nor a comment.
    pub fn is_complete(&self) -> bool {
        self.rest.is_none() && self.open.is_none()
    }
}

fn statement(text: &str, range: Range<usize>, blank: bool) -> Option<Statement<'_>> {
    let body = text.get(range.clone()).filter(|_| !blank)?;
    let lead = body.len() - body.trim_start().len();
    let line = 1 + text.get(..range.start + lead)?.matches('\n').count();
    Some(Statement { text: body.trim(), line })
}

/// The pieces of a text, from left to right, without gaps.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    text: &'a str,
    at: usize,
    open: Option<Open>,
}

impl<'a> Pieces<'a> {
    /// Of this text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, open: None }
    }

    /// The length of the quoted text at the head of `rest`, up to its closing quote.
    fn quoted(&mut self, rest: &str, quote: char) -> usize {
        match rest.get(1..).and_then(|inside| inside.find(quote)) {
            Some(length) => length + 2,
            None => {
                self.open = Some(Open::Quote(quote));
                rest.len()
            }
        }
    }

    /// The length of the `/* … */` at the head of `rest`.
    fn block_comment(&mut self, rest: &str) -> usize {
        let mut depth = 0;
        let mut at = 0;
        while let Some(here) = rest.get(at..) {
            let Some(next) = here.find(['/', '*']) else { break };
            at += next;
            match rest.get(at..at + 2) {
                Some("/*") => depth += 1,
                Some("*/") => depth -= 1,
                _ => {
                    at += 1;
                    continue;
                }
            }
            at += 2;
            if depth == 0 {
                return at;
            }
        }
        self.open = Some(Open::Comment);
        rest.len()
    }
}

impl Iterator for Pieces<'_> {
    type Item = (Piece, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..)?;
        let first = rest.chars().next()?;
        let run = |belongs: fn(char) -> bool| rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let (piece, length) = match first {
            '\'' => (Piece::Text, self.quoted(rest, '\'')),
            '"' | '`' => (Piece::QuotedName, self.quoted(rest, first)),
            '-' if rest.starts_with("--") => (Piece::Comment, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (Piece::Comment, self.block_comment(rest)),
            ';' => (Piece::End, 1),
            c if c.is_whitespace() => (Piece::Space, run(char::is_whitespace)),
            c if c.is_ascii_digit() => (Piece::Number, run(|c| c.is_ascii_alphanumeric() || c == '.')),
            c if is_word(c) => (Piece::Word, run(is_word)),
            c => (Piece::Other, c.len_utf8()),
        };
        let range = self.at..self.at + length;
        self.at = range.end;
        Some((piece, range))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting() {
        let check = |text: &str, expect: &[(&str, usize)], open: Option<Open>| {
            let script = Script::cut(text);
            assert_eq!(script.open, open, "{text}");
            let got: Vec<_> = script.all().map(|statement| (statement.text, statement.line)).collect();
            assert_eq!(got, expect, "{text}");
        };
        check("", &[], None);
        check(" ;; ; ", &[], None);
        check("SELECT 1", &[("SELECT 1", 1)], None);
        check("SELECT 1;\n\n SELECT 2;", &[("SELECT 1", 1), ("SELECT 2", 3)], None);
        check("SELECT ';', 'a'';b', \"x;y\", `p;q`; x", &[("SELECT ';', 'a'';b', \"x;y\", `p;q`", 1), ("x", 1)], None);
        check("-- one; two\nSELECT 1; -- three;", &[("-- one; two\nSELECT 1", 1)], None);
        check("SELECT /* a; /* b; */ c; */ 1; 2", &[("SELECT /* a; /* b; */ c; */ 1", 1), ("2", 1)], None);
        check("/* only a comment; */;", &[], None);
        check("SELECT 'a;", &[("SELECT 'a;", 1)], Some(Open::Quote('\'')));
        check("SELECT 1; /* open;", &[("SELECT 1", 1)], Some(Open::Comment));
        check("SELECT 1 - -2, 4/2 /**/; -", &[("SELECT 1 - -2, 4/2 /**/", 1), ("-", 1)], None);
        check("SELECT '\\'; SELECT 'ü;'", &[("SELECT '\\'", 1), ("SELECT 'ü;'", 1)], None);
        check("/*/ ; */ x", &[("/*/ ; */ x", 1)], None);
    }

    #[test]
    fn pieces_cover_the_text() {
        let text = "SELECT \"a\"\"b\", 'x', 1.5e3 FROM t@v3 WHERE ü >= $1 -- end\n;/**/";
        let mut at = 0;
        for (_, range) in Pieces::new(text) {
            assert_eq!(range.start, at);
            at = range.end;
        }
        assert_eq!(at, text.len());
    }

    #[test]
    fn completeness() {
        let check = |text: &str, complete: bool| assert_eq!(Script::cut(text).is_complete(), complete, "{text}");
        check("", true);
        check("SELECT 1;", true);
        check("SELECT 1; -- done", true);
        check("SELECT 1", false);
        check("SELECT ';", false);
        check("SELECT 1; /*", false);
    }
}
