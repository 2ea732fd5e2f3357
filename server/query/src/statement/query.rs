//! SELECT, VALUES, WITH, and EXPLAIN of them.

use super::cursor::Cursor;
use super::{Kind, dml, position};
use crate::error::Result;

/// Does a query start here?
pub(super) fn starts(cursor: &Cursor<'_>) -> bool {
    ["SELECT", "VALUES", "FROM", "TABLE"].iter().any(|word| cursor.sees(&[word]))
        || *cursor.ahead(0) == datafusion::sql::sqlparser::tokenizer::Token::LParen
}

/// `WITH …` and what it belongs to.
pub(super) fn with(cursor: &mut Cursor<'_>) -> Result<Kind> {
    let with = cursor.with()?;
    if cursor.sees(&["INSERT"]) {
        return dml::insert(cursor, Some(with));
    }
    if let Some(word) = ["UPDATE", "DELETE", "MERGE"].iter().find(|word| cursor.sees(&[word])) {
        return Err(position::unsupported(format!("WITH before {word}; put the query into a subquery of {word}"), cursor.location()));
    }
    Ok(Kind::Query(cursor.query(Some(with))?))
}

/// `EXPLAIN [ANALYZE] [VERBOSE] query`.
pub(super) fn explain(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["EXPLAIN"])?;
    let (mut analyze, mut verbose) = (false, false);
    loop {
        if cursor.takes(&["ANALYZE"]) {
            analyze = true;
        } else if cursor.takes(&["VERBOSE"]) || cursor.takes(&["EXTENDED"]) || cursor.takes(&["FORMATTED"]) {
            verbose = true;
        } else {
            break;
        }
    }
    let with = if cursor.sees(&["WITH"]) { Some(cursor.with()?) } else { None };
    if !starts(cursor) {
        return Err(position::unsupported("EXPLAIN of anything but a query", cursor.location()));
    }
    Ok(Kind::Explain { analyze, verbose, query: cursor.query(with)? })
}
