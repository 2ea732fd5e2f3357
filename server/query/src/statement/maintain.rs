//! OPTIMIZE and REORG.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Kind, position};
use crate::error::Result;

/// `OPTIMIZE t [WHERE …]`.
pub(super) fn optimize(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["OPTIMIZE"])?;
    cursor.takes(&["TABLE"]);
    let target = cursor.target("OPTIMIZE")?;
    let location = cursor.location();
    if cursor.takes(&["FULL"]) {
        return Err(position::unsupported("OPTIMIZE … FULL; it is for clustered tables", location));
    }
    let predicate = if cursor.takes(&["WHERE"]) { Some(cursor.expression()?) } else { None };
    if cursor.sees(&["ZORDER"]) {
        return Err(position::unsupported("OPTIMIZE … ZORDER BY; OPTIMIZE alone puts small files together", cursor.location()));
    }
    Ok(Kind::Optimize { target, predicate, purge: false })
}

/// `REORG TABLE t [WHERE …] APPLY (PURGE)`.
pub(super) fn reorg(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["REORG"])?;
    cursor.takes(&["TABLE"]);
    let target = cursor.target("REORG")?;
    let predicate = if cursor.takes(&["WHERE"]) { Some(cursor.expression()?) } else { None };
    cursor.expect(&["APPLY"])?;
    cursor.expect_token(&Token::LParen)?;
    if !cursor.sees(&["PURGE"]) {
        return Err(position::unsupported(format!("REORG … APPLY ({}); it is APPLY (PURGE)", cursor.ahead(0)), cursor.location()));
    }
    cursor.expect(&["PURGE"])?;
    cursor.expect_token(&Token::RParen)?;
    Ok(Kind::Optimize { target, predicate, purge: true })
}
