//! INSERT, UPDATE, DELETE: the target is the table as it is now, the sources may be read at any moment.

use datafusion::sql::sqlparser::ast::{AssignmentTarget, Ident, ObjectNamePart, With};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::relations::folded;
use super::{InsertMode, Kind, position, query};
use crate::error::Result;

/// `INSERT INTO|OVERWRITE [TABLE] t [(columns)] query`, `INSERT INTO t [(columns)] REPLACE WHERE condition query`.
pub(super) fn insert(cursor: &mut Cursor<'_>, with: Option<With>) -> Result<Kind> {
    cursor.expect(&["INSERT"])?;
    let overwrite = cursor.takes(&["OVERWRITE"]);
    if !cursor.takes(&["INTO"]) && !overwrite {
        return Err(cursor.unexpected("INTO or OVERWRITE"));
    }
    let is_keyword = cursor.sees(&["TABLE"]) && matches!(cursor.ahead(1), Token::Word(_));
    if is_keyword {
        cursor.takes(&["TABLE"]);
    }
    let target = cursor.target("INSERT")?;
    for words in [["PARTITION"].as_slice(), &["REPLACE", "USING"], &["REPLACE", "ON"], &["BY", "NAME"], &["DEFAULT", "VALUES"]] {
        if cursor.sees(words) {
            return Err(position::unsupported(format!("INSERT … {}", words.join(" ")), cursor.location()));
        }
    }
    let columns = column_list(cursor)?;
    let mode = match (cursor.takes(&["REPLACE", "WHERE"]), overwrite) {
        (true, false) => InsertMode::Replace(Box::new(cursor.expression()?)),
        (true, true) => return Err(cursor.unexpected("INSERT INTO before REPLACE WHERE")),
        (false, true) => InsertMode::Overwrite,
        (false, false) => InsertMode::Append,
    };
    let with = match (with, cursor.sees(&["WITH"])) {
        (None, true) => Some(cursor.with()?),
        (Some(mut outer), true) => {
            let inner = cursor.with()?;
            outer.recursive |= inner.recursive;
            outer.cte_tables.extend(inner.cte_tables);
            Some(outer)
        }
        (with, false) => with,
    };
    if !query::starts(cursor) {
        return Err(cursor.unexpected("VALUES or a query"));
    }
    Ok(Kind::Insert { target, columns, source: cursor.query(with)?, mode })
}

/// `(a, b)` where it lists columns; `(SELECT …)` is the source.
fn column_list(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let is_query = *cursor.ahead(0) != Token::LParen
        || *cursor.ahead(1) == Token::LParen
        || ["SELECT", "WITH", "VALUES", "FROM"].iter().any(|word| super::lexer::is_word(cursor.ahead(1), word))
            && !matches!(cursor.ahead(2), Token::Comma | Token::RParen);
    if is_query {
        return Ok(Vec::new());
    }
    cursor.expect_token(&Token::LParen)?;
    let mut columns = Vec::new();
    loop {
        columns.push(column(&cursor.identifier()?));
        if !cursor.takes_token(&Token::Comma) {
            break;
        }
    }
    cursor.expect_token(&Token::RParen)?;
    Ok(columns)
}

/// A column as written: its case may matter, and writing compares without it where that is unambiguous.
fn column(ident: &Ident) -> String {
    ident.value.clone()
}

/// `DELETE FROM t [alias] [WHERE …]`.
pub(super) fn delete(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["DELETE"])?;
    cursor.expect(&["FROM"])?;
    let target = cursor.target("DELETE")?;
    let alias = cursor.target_alias("DELETE", &target)?.map(|alias| folded(&alias));
    if cursor.sees(&["USING"]) {
        return Err(position::unsupported("DELETE … USING; write WHERE … IN (SELECT …) or WHERE EXISTS (…)", cursor.location()));
    }
    let predicate = if cursor.takes(&["WHERE"]) { Some(cursor.expression()?) } else { None };
    Ok(Kind::Delete { target, alias, predicate })
}

/// `TRUNCATE [TABLE] t`.
pub(super) fn truncate(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["TRUNCATE"])?;
    if cursor.sees(&["TABLE"]) && matches!(cursor.ahead(1), Token::Word(_)) {
        cursor.takes(&["TABLE"]);
    }
    let target = cursor.target("TRUNCATE")?;
    if cursor.sees(&["PARTITION"]) {
        return Err(position::unsupported("TRUNCATE … PARTITION; write DELETE FROM … WHERE", cursor.location()));
    }
    Ok(Kind::Truncate { target })
}

/// `UPDATE t [alias] SET a = x, … [WHERE …]`.
pub(super) fn update(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["UPDATE"])?;
    let target = cursor.target("UPDATE")?;
    let alias = cursor.target_alias("UPDATE", &target)?;
    cursor.expect(&["SET"])?;
    let mut assignments = Vec::new();
    loop {
        let location = cursor.location();
        let mut assignment = cursor.read(Parser::parse_assignment)?;
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return Err(position::unsupported("SET (a, b) = …; assign each column on its own", location));
        };
        let mut idents: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
        drop_qualifier(&mut idents, alias.as_ref(), &target);
        let parts: Vec<String> = idents.into_iter().map(column).collect();
        if assignments.iter().any(|(known, _)| *known == parts) {
            return Err(position::invalid(format!("the column {} is assigned twice", parts.join(".")), location));
        }
        cursor.relations.walk(&mut assignment.value)?;
        assignments.push((parts, assignment.value));
        if !cursor.takes_token(&Token::Comma) {
            break;
        }
    }
    if cursor.sees(&["FROM"]) {
        return Err(position::unsupported("UPDATE … FROM; use a subquery in SET or WHERE", cursor.location()));
    }
    let predicate = if cursor.takes(&["WHERE"]) { Some(cursor.expression()?) } else { None };
    Ok(Kind::Update { target, alias: alias.as_ref().map(folded), assignments, predicate })
}

/// `SET t.a = …` and `SET alias.a = …` assign `a`.
fn drop_qualifier(idents: &mut Vec<&Ident>, alias: Option<&Ident>, target: &super::TableTarget) {
    let qualifier = match (alias, target) {
        (Some(alias), _) => vec![folded(alias)],
        (None, super::TableTarget::Name(parts)) => parts.clone(),
        (None, super::TableTarget::Path { .. }) => return,
    };
    for length in (1..=qualifier.len()).rev() {
        let matches =
            idents.len() > length && idents[..length].iter().map(|i| folded(i)).eq(qualifier[qualifier.len() - length..].iter().cloned());
        if matches {
            idents.drain(..length);
            return;
        }
    }
}
