//! SET, RESET, USE.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::Kind;
use super::cursor::Cursor;
use super::position;
use crate::error::Result;

/// A setting's name: words joined by dots, in lower case. `TIME ZONE` and `TIMEZONE` are `time_zone`.
pub(super) fn name(cursor: &mut Cursor<'_>) -> Result<String> {
    if cursor.takes(&["TIME", "ZONE"]) || cursor.takes(&["TIMEZONE"]) {
        return Ok("time_zone".to_owned());
    }
    let mut name = String::new();
    loop {
        match cursor.ahead(0) {
            Token::Word(_) => name.push_str(&cursor.word_or_text().unwrap_or_default()),
            _ => return Err(cursor.unexpected("a setting's name")),
        }
        if !cursor.takes_token(&Token::Period) {
            return Ok(name.to_lowercase());
        }
        name.push('.');
    }
}

/// `SET name = value`, `SET name TO value`, `SET TIME ZONE 'zone'`; `SET` and `SET name` show, as Spark's do.
pub(super) fn set(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["SET"])?;
    if cursor.is_at_end() {
        return Ok(Kind::ShowSetting(None));
    }
    if cursor.sees(&["SESSION", "SNAPSHOT"]) {
        return Err(position::unsupported("SET SESSION SNAPSHOT", cursor.location()));
    }
    let scoped = (cursor.sees(&["SESSION"]) || cursor.sees(&["LOCAL"])) && matches!(cursor.ahead(1), Token::Word(_));
    if scoped {
        cursor.word_or_text();
    }
    let zone = cursor.sees(&["TIME", "ZONE"]);
    let name = name(cursor)?;
    if cursor.is_at_end() {
        return Ok(Kind::ShowSetting(Some(name)));
    }
    let assigned = cursor.takes_token(&Token::Eq) || cursor.takes(&["TO"]);
    if !assigned && !zone {
        return Err(cursor.unexpected("= and a value"));
    }
    Ok(Kind::Set { name, value: value(cursor)? })
}

/// The rest of the statement as text: a literal without its quotes, else the words as written.
fn value(cursor: &mut Cursor<'_>) -> Result<String> {
    if let (Token::SingleQuotedString(text), Token::EOF) = (cursor.ahead(0), cursor.ahead(1)) {
        let text = text.clone();
        cursor.word_or_text();
        return Ok(text);
    }
    if let (Token::Word(word), Token::EOF) = (cursor.ahead(0), cursor.ahead(1)) {
        let text = word.value.clone();
        cursor.word_or_text();
        return Ok(text);
    }
    let start = cursor.place();
    if cursor.is_at_end() {
        return Err(cursor.unexpected("a value"));
    }
    let text = cursor.rest_of_text(start).trim().to_owned();
    cursor.skip_rest();
    Ok(text)
}

/// `RESET name`, `RESET ALL`, `RESET`.
pub(super) fn reset(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["RESET"])?;
    if cursor.is_at_end() || cursor.takes(&["ALL"]) {
        return Ok(Kind::Reset(None));
    }
    if cursor.sees(&["SESSION", "SNAPSHOT"]) {
        return Err(position::unsupported("RESET SESSION SNAPSHOT", cursor.location()));
    }
    Ok(Kind::Reset(Some(name(cursor)?)))
}

/// `USE [CATALOG|SCHEMA|DATABASE] a[.b]`.
pub(super) fn use_(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["USE"])?;
    let named = |cursor: &Cursor<'_>| matches!(cursor.ahead(1), Token::Word(_));
    if cursor.sees(&["CATALOG"]) && named(cursor) {
        cursor.takes(&["CATALOG"]);
        return Ok(Kind::Use { catalog_only: true, parts: cursor.parts(1, "a catalog")? });
    }
    for word in ["SCHEMA", "DATABASE", "NAMESPACE"] {
        if cursor.sees(&[word]) && named(cursor) {
            cursor.takes(&[word]);
            break;
        }
    }
    Ok(Kind::Use { catalog_only: false, parts: cursor.parts(2, "catalog.schema")? })
}
