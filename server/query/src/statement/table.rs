//! CREATE TABLE, in Spark's and the standard's spelling.

use datafusion::sql::sqlparser::ast::{ColumnDef, ColumnOption, DataType, Ident, TableConstraint};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::cursor::Cursor;
use super::lexer::is_word;
use super::relations::folded;
use super::{CreateTable, Kind, TableTarget, position, query, types};
use crate::error::Result;

/// `IDENTITY (START WITH 1 INCREMENT BY 1)`, as Spark has it, in the order that the parser knows: INCREMENT BY first.
pub(super) fn order_identities(tokens: &mut [TokenWithSpan]) {
    for at in 0..tokens.len() {
        let opens = is_word(&tokens[at].token, "IDENTITY") && tokens.get(at + 1).is_some_and(|t| t.token == Token::LParen);
        let Some(options) = tokens.get_mut(at + 2..).filter(|_| opens) else { continue };
        let end = options.iter().position(|t| t.token == Token::RParen).unwrap_or(0);
        let options = &mut options[..end];
        if options.first().is_some_and(|t| is_word(&t.token, "START"))
            && let Some(next) = options.iter().position(|t| is_word(&t.token, "INCREMENT"))
        {
            options.rotate_left(next);
        }
    }
}

/// What stands behind CREATE [OR REPLACE] TABLE.
pub(super) fn create(cursor: &mut Cursor<'_>, or_replace: bool) -> Result<Kind> {
    let location = cursor.location();
    let if_not_exists = cursor.takes(&["IF", "NOT", "EXISTS"]);
    if or_replace && if_not_exists {
        return Err(position::invalid("OR REPLACE and IF NOT EXISTS exclude each other; keep one", location));
    }
    let target = cursor.target("CREATE TABLE")?;
    let mut table = CreateTable {
        target,
        or_replace,
        if_not_exists,
        columns: Vec::new(),
        constraints: Vec::new(),
        using: None,
        partitioned_by: Vec::new(),
        properties: Vec::new(),
        comment: None,
        query: None,
    };
    if *cursor.ahead(0) == Token::LParen {
        columns(cursor, &mut table)?;
    }
    clauses(cursor, &mut table)?;
    source(cursor, &mut table)?;
    check(&table)?;
    Ok(Kind::CreateTable(Box::new(table)))
}

fn columns(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<()> {
    let (columns, constraints) = cursor.read(Parser::parse_columns)?;
    (table.columns, table.constraints) = (columns, constraints);
    for column in &table.columns {
        types::check(&column.data_type, position::of(column.name.span))?;
    }
    // A copy is walked, to see that nothing in it reads a table: the table's metadata keeps the expressions as they were written.
    cursor.relations.walk(&mut table.columns.clone())?;
    cursor.relations.walk(&mut table.constraints.clone())?;
    if cursor.relations.is_empty() { Ok(()) } else { Err(position::invalid("a column's default or check cannot read tables", None)) }
}

/// USING, PARTITIONED BY, TBLPROPERTIES, COMMENT in any order.
fn clauses(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<()> {
    loop {
        let location = cursor.location();
        if cursor.takes(&["USING"]) {
            table.using = Some(cursor.name_part()?.to_lowercase());
        } else if cursor.takes(&["PARTITIONED", "BY"]) || cursor.takes(&["PARTITION", "BY"]) {
            partitions(cursor, table)?;
        } else if cursor.takes(&["TBLPROPERTIES"]) || cursor.takes(&["OPTIONS"]) {
            table.properties = properties(cursor)?;
        } else if cursor.takes(&["COMMENT"]) {
            cursor.takes_token(&Token::Eq);
            table.comment = Some(cursor.text("a comment")?);
        } else if cursor.sees(&["LOCATION"]) || cursor.sees(&["CLUSTER"]) || cursor.sees(&["CLUSTERED"]) || cursor.sees(&["LIKE"]) {
            return Err(position::unsupported(format!("{} in CREATE TABLE", cursor.ahead(0)), location));
        } else if cursor.sees(&["SHALLOW"]) || cursor.sees(&["DEEP"]) || cursor.sees(&["CLONE"]) {
            return Err(position::unsupported("CLONE; write CREATE TABLE … AS SELECT * FROM …", location));
        } else {
            return Ok(());
        }
    }
}

/// `(a, b)` or, as Hive has it, `(a INT, b STRING)`.
fn partitions(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<()> {
    cursor.expect_token(&Token::LParen)?;
    loop {
        let location = cursor.location();
        let name = cursor.identifier()?;
        if *cursor.ahead(0) == Token::LParen {
            return Err(position::unsupported(format!("partitioning by the transform {name}(…); partition by columns"), location));
        }
        if !matches!(cursor.ahead(0), Token::Comma | Token::RParen) {
            let data_type = cursor.read(Parser::parse_data_type)?;
            table.columns.push(ColumnDef { name: name.clone(), data_type, options: Vec::new() });
        }
        table.partitioned_by.push(column_name(&table.columns, &name));
        if !cursor.takes_token(&Token::Comma) {
            break;
        }
    }
    cursor.expect_token(&Token::RParen)
}

/// A column as it was declared: names of columns keep their case and compare without it.
fn column_name(columns: &[ColumnDef], name: &Ident) -> String {
    let same = |column: &&ColumnDef| column.name.value == name.value || column.name.value.to_lowercase() == name.value.to_lowercase();
    columns.iter().find(same).map_or_else(|| name.value.clone(), |column| column.name.value.clone())
}

/// `('key' = 'value', a.b = 1)`.
pub(super) fn properties(cursor: &mut Cursor<'_>) -> Result<Vec<(String, String)>> {
    let mut properties: Vec<(String, String)> = Vec::new();
    cursor.expect_token(&Token::LParen)?;
    loop {
        let location = cursor.location();
        let key = property_key(cursor)?;
        cursor.takes_token(&Token::Eq);
        let value = property_value(cursor)?;
        if properties.iter().any(|(known, _)| *known == key) {
            return Err(position::invalid(format!("the property {key} is given twice"), location));
        }
        properties.push((key, value));
        if !cursor.takes_token(&Token::Comma) {
            break;
        }
    }
    cursor.expect_token(&Token::RParen)?;
    Ok(properties)
}

/// `('key', a.b)`.
pub(super) fn property_keys(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    cursor.expect_token(&Token::LParen)?;
    loop {
        keys.push(property_key(cursor)?);
        if !cursor.takes_token(&Token::Comma) {
            break;
        }
    }
    cursor.expect_token(&Token::RParen)?;
    Ok(keys)
}

fn property_key(cursor: &mut Cursor<'_>) -> Result<String> {
    let mut key = String::new();
    loop {
        match cursor.word_or_text() {
            Some(part) => key.push_str(&part),
            None => return Err(cursor.unexpected("a property's name")),
        }
        if !cursor.takes_token(&Token::Period) {
            return Ok(key);
        }
        key.push('.');
    }
}

fn property_value(cursor: &mut Cursor<'_>) -> Result<String> {
    if let Token::Number(..) | Token::Minus = cursor.ahead(0) {
        let minus = if cursor.takes_token(&Token::Minus) { "-" } else { "" };
        let number = cursor.ahead(0).to_string();
        cursor.skip();
        return Ok(format!("{minus}{number}"));
    }
    match cursor.word_or_text() {
        Some(text) => Ok(text),
        None => Err(cursor.unexpected("a property's value")),
    }
}

/// `[AS] query`.
fn source(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<()> {
    let explicit = cursor.takes(&["AS"]);
    if cursor.is_at_end() && !explicit {
        return Ok(());
    }
    let with = if cursor.sees(&["WITH"]) { Some(cursor.with()?) } else { None };
    if !explicit && with.is_none() && !query::starts(cursor) {
        return Err(cursor.unexpected("USING, PARTITIONED BY, TBLPROPERTIES, COMMENT or AS and a query"));
    }
    table.query = Some(cursor.query(with)?);
    Ok(())
}

fn check(table: &CreateTable) -> Result<()> {
    if let (TableTarget::Path { .. }, _) = (&table.target, ()) {
        return Err(position::unsupported(format!("CREATE TABLE {}; tables are created by name", table.target), None));
    }
    if table.columns.is_empty() && table.query.is_none() {
        return Err(position::invalid(format!("{} has no columns: list them, or write AS SELECT …", table.target), None));
    }
    if !table.columns.is_empty() && table.query.is_some() {
        return Err(position::invalid(
            "a table gets its columns from a list or from AS SELECT, not from both; cast and rename in the query",
            None,
        ));
    }
    let mut seen: Vec<String> = Vec::new();
    for column in &table.columns {
        let name = column.name.value.to_lowercase();
        if seen.contains(&name) {
            return Err(position::invalid(
                format!("the column {} is there twice (names compare without case)", column.name),
                position::of(column.name.span),
            ));
        }
        seen.push(name);
    }
    if !table.columns.is_empty() {
        let missing = |name: &&String| !table.columns.iter().any(|column| column.name.value == **name);
        if let Some(name) = table.partitioned_by.iter().find(missing) {
            return Err(position::invalid(format!("PARTITIONED BY names the column {name}, which the table does not have"), None));
        }
    }
    for constraint in &table.constraints {
        if !matches!(constraint, TableConstraint::Check(_)) {
            return Err(position::unsupported(format!("{constraint}; of constraints, NOT NULL and CHECK are there"), None));
        }
    }
    for column in &table.columns {
        check_options(column)?;
    }
    Ok(())
}

fn check_options(column: &ColumnDef) -> Result<()> {
    for option in &column.options {
        let known = matches!(
            option.option,
            ColumnOption::Null
                | ColumnOption::NotNull
                | ColumnOption::Comment(_)
                | ColumnOption::Default(_)
                | ColumnOption::Check(_)
                | ColumnOption::Generated { .. }
        );
        if !known {
            let what = format!(
                "{} on the column {}; of options, NOT NULL, COMMENT, DEFAULT, CHECK and GENERATED are read",
                option.option, column.name
            );
            return Err(position::unsupported(what, position::of(column.name.span)));
        }
    }
    if matches!(column.data_type, DataType::Unspecified) {
        return Err(position::syntax(format!("the column {} has no type", column.name), position::of(column.name.span)));
    }
    let _ = folded(&column.name);
    Ok(())
}
