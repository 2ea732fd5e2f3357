//! Schemas and views: CREATE and DROP.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Kind, position, query, table};
use crate::error::Result;

/// `CREATE …`.
pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["CREATE"])?;
    let or_replace = cursor.takes(&["OR", "REPLACE"]);
    let location = cursor.location();
    if cursor.takes(&["SCHEMA"]) || cursor.takes(&["DATABASE"]) {
        if or_replace {
            return Err(position::unsupported("CREATE OR REPLACE SCHEMA; write CREATE SCHEMA IF NOT EXISTS", location));
        }
        let if_not_exists = cursor.takes(&["IF", "NOT", "EXISTS"]);
        return Ok(Kind::CreateSchema { parts: cursor.parts(2, "a schema's name")?, if_not_exists });
    }
    let global = cursor.takes(&["GLOBAL"]) || cursor.takes(&["LOCAL"]);
    let temporary = cursor.takes(&["TEMPORARY"]) || cursor.takes(&["TEMP"]);
    if cursor.takes(&["VIEW"]) {
        if !temporary {
            return Err(position::unsupported("a view that stays; write CREATE TEMPORARY VIEW", location));
        }
        return view(cursor, or_replace);
    }
    if cursor.sees(&["TABLE"]) || cursor.sees(&["EXTERNAL", "TABLE"]) {
        if temporary || global || cursor.takes(&["EXTERNAL"]) {
            return Err(position::unsupported("a temporary or external table; write CREATE TABLE, or CREATE TEMPORARY VIEW", location));
        }
        cursor.takes(&["TABLE"]);
        return table::create(cursor, or_replace);
    }
    Err(cursor.unexpected("SCHEMA, TABLE or TEMPORARY VIEW"))
}

/// `[IF NOT EXISTS] name [(columns)] AS query`, behind CREATE TEMPORARY VIEW.
fn view(cursor: &mut Cursor<'_>, or_replace: bool) -> Result<Kind> {
    let name = cursor.parts(1, "a temporary view's name")?.pop().unwrap_or_default();
    let mut columns = Vec::new();
    if cursor.takes_token(&Token::LParen) {
        loop {
            columns.push(cursor.name_part()?);
            if cursor.takes(&["COMMENT"]) {
                cursor.text("a comment")?;
            }
            if !cursor.takes_token(&Token::Comma) {
                break;
            }
        }
        cursor.expect_token(&Token::RParen)?;
    }
    if cursor.takes(&["COMMENT"]) {
        cursor.text("a comment")?;
    }
    cursor.expect(&["AS"])?;
    let sql = cursor.rest_of_text(cursor.place()).trim().to_owned();
    let with = if cursor.sees(&["WITH"]) { Some(cursor.with()?) } else { None };
    if !query::starts(cursor) {
        return Err(cursor.unexpected("a query"));
    }
    cursor.query(with)?;
    Ok(Kind::CreateTemporaryView { name, or_replace, sql, columns })
}

/// `DROP …`.
pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["DROP"])?;
    if cursor.takes(&["SCHEMA"]) || cursor.takes(&["DATABASE"]) {
        let if_exists = cursor.takes(&["IF", "EXISTS"]);
        let parts = cursor.parts(2, "a schema's name")?;
        let cascade = cursor.takes(&["CASCADE"]);
        cursor.takes(&["RESTRICT"]);
        return Ok(Kind::DropSchema { parts, if_exists, cascade });
    }
    cursor.takes(&["TEMPORARY"]);
    if cursor.takes(&["VIEW"]) {
        let if_exists = cursor.takes(&["IF", "EXISTS"]);
        let name = cursor.parts(1, "a temporary view's name")?.pop().unwrap_or_default();
        return Ok(Kind::DropView { name, if_exists });
    }
    if cursor.takes(&["TABLE"]) {
        let if_exists = cursor.takes(&["IF", "EXISTS"]);
        let target = cursor.target("DROP TABLE")?;
        cursor.takes(&["PURGE"]);
        return Ok(Kind::DropTable { target, if_exists });
    }
    Err(cursor.unexpected("SCHEMA, TABLE or VIEW"))
}
