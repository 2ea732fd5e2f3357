//! SHOW.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Kind, position};
use crate::error::Result;

/// `SHOW …`.
pub(super) fn show(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["SHOW"])?;
    if cursor.takes(&["CATALOGS"]) {
        return Ok(Kind::ShowCatalogs);
    }
    if cursor.takes(&["SCHEMAS"]) || cursor.takes(&["DATABASES"]) {
        let catalog = if in_or_from(cursor) { cursor.parts(1, "a catalog")?.pop() } else { None };
        return Ok(Kind::ShowSchemas { catalog, like: cursor.like()? });
    }
    if cursor.takes(&["TABLES"]) {
        let schema = if in_or_from(cursor) { Some(cursor.parts(2, "a schema")?) } else { None };
        return Ok(Kind::ShowTables { schema, like: cursor.like()? });
    }
    if cursor.takes(&["VIEWS"]) {
        if in_or_from(cursor) {
            cursor.parts(2, "a schema")?;
        }
        return Ok(Kind::ShowViews { like: cursor.like()? });
    }
    if cursor.takes(&["COLUMNS"]) {
        if !in_or_from(cursor) {
            return Err(cursor.unexpected("IN and a table"));
        }
        cursor.table()?;
        return Ok(Kind::ShowColumns);
    }
    if cursor.takes(&["CREATE", "TABLE"]) {
        cursor.table()?;
        return Ok(Kind::ShowCreateTable);
    }
    if cursor.takes(&["TBLPROPERTIES"]) {
        cursor.table()?;
        let keys = if *cursor.ahead(0) == Token::LParen { super::table::property_keys(cursor)? } else { vec![] };
        return match keys.as_slice() {
            [] => Ok(Kind::ShowProperties { key: None }),
            [key] => Ok(Kind::ShowProperties { key: Some(key.clone()) }),
            _ => Err(cursor.unexpected("one property")),
        };
    }
    for words in [["PARTITIONS"].as_slice(), &["FUNCTIONS"], &["SESSION", "SNAPSHOT"], &["SNAPSHOTS"]] {
        if cursor.sees(words) {
            return Err(position::unsupported(format!("SHOW {}", words.join(" ")), cursor.location()));
        }
    }
    setting(cursor)
}

fn in_or_from(cursor: &mut Cursor<'_>) -> bool {
    cursor.takes(&["IN"]) || cursor.takes(&["FROM"])
}

/// `SHOW ALL`, `SHOW name`, `SHOW TIME ZONE`.
fn setting(cursor: &mut Cursor<'_>) -> Result<Kind> {
    if cursor.takes(&["ALL"]) {
        return Ok(Kind::ShowSetting(None));
    }
    Ok(Kind::ShowSetting(Some(super::settings::name(cursor)?)))
}
