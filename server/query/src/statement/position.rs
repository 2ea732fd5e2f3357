//! From sqlparser's positions and errors to ours.
//!
//! sqlparser appends " at Line: l, Column: c" to its messages; here that becomes a [`Location`], and its jargon becomes plain words.
//! Both count characters from 1. A position of line 0 means "unknown".

use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{self, Span, TokenizerError};

use crate::error::{Error, Location};

pub(super) fn of(span: Span) -> Option<Location> {
    at(span.start)
}

pub(super) fn at(place: tokenizer::Location) -> Option<Location> {
    (place.line > 0).then_some(Location { line: place.line, column: place.column })
}

pub(super) fn syntax(message: impl Into<String>, location: Option<Location>) -> Error {
    Error::Syntax { message: message.into(), location }
}

pub(super) fn invalid(message: impl Into<String>, location: Option<Location>) -> Error {
    Error::Invalid { message: message.into(), location }
}

pub(super) fn unsupported(message: impl Into<String>, location: Option<Location>) -> Error {
    Error::Unsupported { message: message.into(), location }
}

pub(super) fn of_tokenizer(error: TokenizerError) -> Error {
    syntax(error.message, at(error.location))
}

/// An error of the parser. `fallback` is where the statement stands when the parser does not say.
pub(super) fn of_parser(error: ParserError, fallback: Option<Location>) -> Error {
    match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => {
            let (text, location) = split(&text);
            syntax(text, location.or(fallback))
        }
        ParserError::RecursionLimitExceeded => syntax(
            format!(
                "nested too deep: at most {} levels of parentheses, functions and subqueries; split the statement",
                super::nesting::MAX_DEPTH
            ),
            fallback,
        ),
    }
}

/// `"Expected: x, found: y at Line: 1, Column: 5"` → text, place.
fn split(text: &str) -> (String, Option<Location>) {
    const MARK: &str = " at Line: ";
    let Some(start) = text.rfind(MARK) else { return (plain(text), None) };
    let (head, tail) = (&text[..start], &text[start + MARK.len()..]);
    let location = tail.split_once(", Column: ").and_then(|(line, column)| {
        let column = column.trim_end();
        Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
    });
    match location {
        Some(location) => (plain(head), Some(location)),
        None => (plain(text), None),
    }
}

fn plain(text: &str) -> String {
    let text = text.replacen("Expected: ", "expected ", 1).replacen(", found: ", ", found ", 1);
    if text.ends_with("found EOF") { text.replace("found EOF", "found the end of the statement") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parsers_place_is_taken_out_of_its_text() {
        let (text, location) = split("Expected: an expression, found: FROM at Line: 3, Column: 14");
        assert_eq!(text, "expected an expression, found FROM");
        assert_eq!(location, Some(Location { line: 3, column: 14 }));
        assert_eq!(split("sql parser error"), ("sql parser error".to_owned(), None));
        assert_eq!(split("x, found: EOF").0, "x, found the end of the statement");
    }
}
