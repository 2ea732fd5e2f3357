//! DESCRIBE.

use super::cursor::Cursor;
use super::{Kind, position};
use crate::error::Result;

/// `DESCRIBE [TABLE] [EXTENDED|FORMATTED] t [selector]`, `DESCRIBE DETAIL t [selector]`, `DESCRIBE HISTORY t [LIMIT n]`.
pub(super) fn describe(cursor: &mut Cursor<'_>) -> Result<Kind> {
    if !cursor.takes(&["DESCRIBE"]) {
        cursor.expect(&["DESC"])?;
    }
    if cursor.sees(&["HISTORY"]) && !is_last_word(cursor) {
        cursor.takes(&["HISTORY"]);
        return history(cursor);
    }
    if cursor.sees(&["DETAIL"]) && !is_last_word(cursor) {
        cursor.takes(&["DETAIL"]);
        cursor.table()?;
        return Ok(Kind::DescribeDetail);
    }
    for word in ["TABLE", "EXTENDED", "FORMATTED"] {
        if cursor.sees(&[word]) && !is_last_word(cursor) {
            cursor.takes(&[word]);
        }
    }
    cursor.table()?;
    Ok(Kind::Describe)
}

/// Is the next word the table itself (a table may be called `history`)?
fn is_last_word(cursor: &Cursor<'_>) -> bool {
    use datafusion::sql::sqlparser::tokenizer::Token;
    matches!(cursor.ahead(1), Token::EOF | Token::Period) || crate::statement::lexer::is_word(cursor.ahead(1), "FOR")
}

fn history(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.takes(&["TABLE"]);
    let location = cursor.location();
    cursor.table()?;
    if cursor.relations.has_selector() {
        return Err(position::invalid("a table's history is one for all its versions: leave the selector out", location));
    }
    let limit =
        if cursor.takes(&["LIMIT"]) { Some(usize::try_from(cursor.number("a number of versions")?).unwrap_or(usize::MAX)) } else { None };
    Ok(Kind::DescribeHistory { limit })
}
