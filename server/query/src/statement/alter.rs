//! ALTER TABLE, in Spark's and the standard's spelling.

use datafusion::sql::sqlparser::ast::{self, ColumnDef};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::{Kind, position, table, types};
use crate::error::Result;

/// What ALTER TABLE changes. Names of columns as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Alteration {
    /// SET TBLPROPERTIES.
    SetProperties(Vec<(String, String)>),
    /// UNSET TBLPROPERTIES.
    UnsetProperties {
        /// Which.
        keys: Vec<String>,
        /// No error for those that are not there.
        if_exists: bool,
    },
    /// ADD COLUMNS.
    AddColumns {
        /// Which, in order.
        columns: Vec<NewColumn>,
        /// No error when it is there.
        if_not_exists: bool,
    },
    /// DROP COLUMNS.
    DropColumns {
        /// Which, each by its path (a field inside a column has several parts).
        columns: Vec<Vec<String>>,
        /// No error for those that are not there.
        if_exists: bool,
    },
    /// RENAME COLUMN.
    RenameColumn {
        /// Its path.
        from: Vec<String>,
        /// Its new name.
        to: String,
    },
    /// ALTER COLUMN.
    AlterColumn {
        /// Which, by its path.
        column: Vec<String>,
        /// How.
        change: ColumnChange,
    },
    /// ADD CONSTRAINT … CHECK.
    AddConstraint {
        /// Its name, lower case.
        name: String,
        /// What must be true.
        check: Box<ast::Expr>,
    },
    /// DROP CONSTRAINT.
    DropConstraint {
        /// Its name, lower case.
        name: String,
        /// No error when it is not there.
        if_exists: bool,
    },
}

/// A column that is added.
#[derive(Clone, Debug, PartialEq)]
pub struct NewColumn {
    /// The path to the struct that it goes into; empty for the table.
    pub inside: Vec<String>,
    /// As in CREATE TABLE.
    pub column: ast::ColumnDef,
    /// Where; last when `None`.
    pub place: Option<ColumnPlace>,
}

/// Where a column goes.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnPlace {
    /// Before all others.
    First,
    /// Behind this one.
    After(String),
}

/// What ALTER COLUMN changes.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnChange {
    /// Its comment.
    Comment(String),
    /// NOT NULL or not.
    Required(bool),
    /// Its default; none with `None`.
    Default(Option<Box<ast::Expr>>),
    /// Its type.
    Type(ast::DataType),
    /// Its place.
    Place(ColumnPlace),
}

/// `ALTER TABLE t …`.
pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Kind> {
    cursor.expect(&["ALTER"])?;
    if !cursor.sees(&["TABLE"]) {
        return Err(position::unsupported(format!("ALTER {}", cursor.ahead(0)), cursor.location()));
    }
    cursor.expect(&["TABLE"])?;
    let target = cursor.target("ALTER TABLE")?;
    let change = alteration(cursor)?;
    if !cursor.relations.is_empty() {
        return Err(position::invalid("what a table's metadata keeps cannot read tables", None));
    }
    Ok(Kind::Alter { target, change: Box::new(change) })
}

fn alteration(cursor: &mut Cursor<'_>) -> Result<Alteration> {
    let location = cursor.location();
    if cursor.takes(&["SET", "TBLPROPERTIES"]) {
        return Ok(Alteration::SetProperties(table::properties(cursor)?));
    }
    if cursor.takes(&["UNSET", "TBLPROPERTIES"]) {
        let if_exists = cursor.takes(&["IF", "EXISTS"]);
        return Ok(Alteration::UnsetProperties { keys: table::property_keys(cursor)?, if_exists });
    }
    if cursor.takes(&["ADD", "CONSTRAINT"]) {
        let name = cursor.name_part()?.to_lowercase();
        cursor.expect(&["CHECK"])?;
        cursor.expect_token(&Token::LParen)?;
        let check = Box::new(cursor.expression()?);
        cursor.expect_token(&Token::RParen)?;
        return Ok(Alteration::AddConstraint { name, check });
    }
    if cursor.takes(&["DROP", "CONSTRAINT"]) {
        let if_exists = cursor.takes(&["IF", "EXISTS"]);
        return Ok(Alteration::DropConstraint { name: cursor.name_part()?.to_lowercase(), if_exists });
    }
    if cursor.takes(&["ADD"]) {
        return add_columns(cursor);
    }
    if cursor.takes(&["DROP"]) {
        return drop_columns(cursor);
    }
    if cursor.takes(&["RENAME", "COLUMN"]) {
        let from = column(cursor)?;
        cursor.expect(&["TO"])?;
        return Ok(Alteration::RenameColumn { from, to: cursor.identifier()?.value });
    }
    if cursor.takes(&["ALTER"]) || cursor.takes(&["CHANGE"]) {
        cursor.takes(&["COLUMN"]);
        let column = column(cursor)?;
        return Ok(Alteration::AlterColumn { change: column_change(cursor)?, column });
    }
    for words in
        [["RENAME", "TO"].as_slice(), &["SET", "LOCATION"], &["REPLACE", "COLUMNS"], &["CLUSTER", "BY"], &["RECOVER", "PARTITIONS"]]
    {
        if cursor.sees(words) {
            return Err(position::unsupported(format!("ALTER TABLE … {}", words.join(" ")), location));
        }
    }
    Err(cursor.unexpected("SET, UNSET, ADD, DROP, RENAME COLUMN or ALTER COLUMN"))
}

/// `[COLUMN|COLUMNS] [(] a INT [NOT NULL] [DEFAULT x] [COMMENT '…'] [FIRST|AFTER b], … [)]`.
fn add_columns(cursor: &mut Cursor<'_>) -> Result<Alteration> {
    let location = cursor.location();
    let _ = cursor.takes(&["COLUMNS"]) || cursor.takes(&["COLUMN"]);
    let if_not_exists = cursor.takes(&["IF", "NOT", "EXISTS"]);
    let in_brackets = cursor.takes_token(&Token::LParen);
    let mut columns = Vec::new();
    loop {
        columns.push(new_column(cursor)?);
        if !cursor.takes_token(&Token::Comma) {
            break;
        }
        if !in_brackets && (cursor.takes(&["ADD", "COLUMN"]) || cursor.takes(&["ADD"])) {
            continue;
        }
    }
    if in_brackets {
        cursor.expect_token(&Token::RParen)?;
    }
    if if_not_exists && columns.len() > 1 {
        return Err(position::unsupported("IF NOT EXISTS with several columns; add them one by one", location));
    }
    Ok(Alteration::AddColumns { columns, if_not_exists })
}

fn new_column(cursor: &mut Cursor<'_>) -> Result<NewColumn> {
    let mut inside = Vec::new();
    while *cursor.ahead(1) == Token::Period {
        inside.push(cursor.identifier()?.value);
        cursor.expect_token(&Token::Period)?;
    }
    let location = cursor.location();
    let column: ColumnDef = cursor.read(Parser::parse_column_def)?;
    types::check(&column.data_type, location)?;
    cursor.relations.walk(&mut column.clone())?;
    Ok(NewColumn { inside, column, place: place(cursor)? })
}

fn place(cursor: &mut Cursor<'_>) -> Result<Option<ColumnPlace>> {
    if cursor.takes(&["FIRST"]) {
        return Ok(Some(ColumnPlace::First));
    }
    Ok(if cursor.takes(&["AFTER"]) { Some(ColumnPlace::After(cursor.identifier()?.value)) } else { None })
}

/// `COLUMN|COLUMNS [IF EXISTS] a, b` or `(a, b)`.
fn drop_columns(cursor: &mut Cursor<'_>) -> Result<Alteration> {
    if !cursor.takes(&["COLUMNS"]) && !cursor.takes(&["COLUMN"]) {
        return Err(cursor.unexpected("COLUMN or CONSTRAINT"));
    }
    let if_exists = cursor.takes(&["IF", "EXISTS"]);
    let in_brackets = cursor.takes_token(&Token::LParen);
    let mut columns = Vec::new();
    loop {
        columns.push(column(cursor)?);
        if !cursor.takes_token(&Token::Comma) {
            break;
        }
    }
    if in_brackets {
        cursor.expect_token(&Token::RParen)?;
    }
    Ok(Alteration::DropColumns { columns, if_exists })
}

/// `a`, `s.a`, `l.element.a`.
fn column(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    let mut path = vec![cursor.identifier()?.value];
    while cursor.takes_token(&Token::Period) {
        path.push(cursor.identifier()?.value);
    }
    Ok(path)
}

/// Behind ALTER COLUMN a.
fn column_change(cursor: &mut Cursor<'_>) -> Result<ColumnChange> {
    if cursor.takes(&["COMMENT"]) {
        return Ok(ColumnChange::Comment(cursor.text("a comment")?));
    }
    if cursor.takes(&["SET", "NOT", "NULL"]) {
        return Ok(ColumnChange::Required(true));
    }
    if cursor.takes(&["DROP", "NOT", "NULL"]) {
        return Ok(ColumnChange::Required(false));
    }
    if cursor.takes(&["SET", "DEFAULT"]) {
        return Ok(ColumnChange::Default(Some(Box::new(cursor.expression()?))));
    }
    if cursor.takes(&["DROP", "DEFAULT"]) {
        return Ok(ColumnChange::Default(None));
    }
    if cursor.takes(&["SET", "DATA", "TYPE"]) || cursor.takes(&["TYPE"]) {
        let location = cursor.location();
        let data_type = cursor.read(Parser::parse_data_type)?;
        types::check(&data_type, location)?;
        return Ok(ColumnChange::Type(data_type));
    }
    match place(cursor)? {
        Some(place) => Ok(ColumnChange::Place(place)),
        None => Err(cursor.unexpected("COMMENT, TYPE, FIRST, AFTER, SET NOT NULL, DROP NOT NULL, SET DEFAULT or DROP DEFAULT")),
    }
}
