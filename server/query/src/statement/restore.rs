//! RESTORE.

use super::cursor::Cursor;
use super::{Kind, position, relations};
use crate::error::Result;

/// `RESTORE [TABLE] t TO VERSION|TIMESTAMP AS OF …`.
pub(super) fn restore(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["RESTORE"])?;
    if cursor.sees(&["TABLE"]) && !crate::statement::lexer::is_word(cursor.ahead(1), "TO") {
        cursor.takes(&["TABLE"]);
    }
    let location = cursor.location();
    let (target, suffix) = relations::target(&cursor.name()?)?;
    if suffix.is_some() || cursor.sees(&["FOR", "SYSTEM_TIME", "AS", "OF"]) {
        let what = format!("RESTORE changes the current version of {target}: write the version behind TO, not behind the name");
        return Err(position::invalid(what, location));
    }
    cursor.expect(&["TO"])?;
    let to = cursor.selector()?;
    Ok(Kind::Restore { target, to })
}
