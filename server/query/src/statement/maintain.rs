//! OPTIMIZE, REORG and VACUUM.

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

/// `VACUUM t [FULL] [RETAIN n HOURS] [DRY RUN]`.
pub(super) fn vacuum(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["VACUUM"])?;
    cursor.takes(&["TABLE"]);
    let target = cursor.target("VACUUM")?;
    if cursor.sees(&["LITE"]) || cursor.sees(&["USING", "INVENTORY"]) {
        return Err(position::unsupported(format!("VACUUM … {}", cursor.ahead(0)), cursor.location()));
    }
    cursor.takes(&["FULL"]);
    let mut retain_hours = None;
    if cursor.takes(&["RETAIN"]) {
        let location = cursor.location();
        let text = cursor.ahead(0).to_string();
        cursor.skip();
        let hours = text.parse::<f64>().ok().filter(|hours| hours.is_finite() && *hours >= 0.0);
        retain_hours = Some(hours.ok_or_else(|| position::syntax(format!("RETAIN takes a number of hours, not {text}"), location))?);
        if !cursor.takes(&["HOURS"]) && !cursor.takes(&["HOUR"]) {
            return Err(cursor.unexpected("HOURS"));
        }
    }
    Ok(Kind::Vacuum { target, retain_hours, dry_run: cursor.takes(&["DRY", "RUN"]) })
}
