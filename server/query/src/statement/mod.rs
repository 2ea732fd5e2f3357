//! The dialect: every spelling becomes one AST, with a selector per table occurrence.
//!
//! Users of Spark, Trino, Snowflake, Dremio and Fabric spell "this table as it was" differently, and DataFusion's planner drops
//! what it does not know *silently*. So the text is parsed here, once: each table occurrence (in joins, CTEs, subqueries, DML sources)
//! is taken out of the AST and replaced by a placeholder relation `"__asof"."<n>"`, whose number counts into [`Occurrences`]. No
//! selector is left in the AST (Q1), and a selector on something that has no versions (a CTE, VALUES, a function, the target of DML)
//! is an error.
//!
//! The way: `lexer` (tokens, parameters, `[names]`) → `nesting` (depth) → `selector` (each spelling into one form) → the statement
//! families over a `cursor`, which leave queries and expressions to sqlparser → `relations` (tables out, placeholders in) and
//! `spelling` (literals and casts as DataFusion plans them). Once the tables are known, [`columns`] finds columns without case.
//!
//! Names of tables without quotes are lower case; names of columns stay as written in DDL and DML (`columns` of INSERT and CREATE TABLE,
//! assignments of UPDATE), to be compared without case.

mod alter;
pub mod batch;
mod clauses;
pub mod columns;
mod cursor;
mod describe;
mod dialect;
mod dml;
mod lexer;
mod maintain;
pub mod names;
mod nesting;
mod position;
mod query;
mod relations;
mod restore;
mod schema;
mod selector;
mod settings;
mod show;
mod spelling;
mod table;
#[cfg(test)]
mod tests;
pub mod types;
pub mod values;

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::tokenizer::Token;

pub use alter::{Alteration, ColumnChange, ColumnPlace, NewColumn};

use crate::error::{Location, Result};

/// Schema of the placeholder relations; the name is the occurrence's number.
pub const PLACEHOLDER_SCHEMA: &str = "__asof";

/// What a table reference names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TableTarget {
    /// 1 to 4 name parts (4: a metadata table of a full name), unquoted ones lower-cased. `t.history` and the like stay as written here; resolving decides.
    Name(Vec<String>),
    /// ``delta.`path` ``.
    Path {
        /// `delta`.
        format: String,
        /// The path.
        path: String,
    },
}

impl std::fmt::Display for TableTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(parts) => f.write_str(&parts.join(".")),
            Self::Path { format, path } => write!(f, "{format}.`{path}`"),
        }
    }
}

/// A selector as written: its expressions are evaluated when the statement is resolved (they may hold parameters, `now()`, and
/// scalar subqueries, whose own table occurrences are in [`Occurrences`] too).
#[derive(Clone, Debug, PartialEq)]
pub enum Selector {
    /// A version: number, or text (all digits = version, else tag, branch, named snapshot).
    Version(ast::Expr),
    /// A moment.
    Timestamp(ast::Expr),
    /// `@yyyyMMddHHmmssSSS`: a moment in the session's time zone, as digits.
    CompactTimestamp(String),
    /// A tag, branch or named snapshot.
    Ref(String),
}

/// One table occurrence.
#[derive(Clone, Debug, PartialEq)]
pub struct TableOccurrence {
    /// What it names.
    pub target: TableTarget,
    /// Which moment; none = latest, or the session's pin.
    pub selector: Option<Selector>,
    /// Where the name stands in the text.
    pub location: Location,
}

/// The table occurrences of a statement; placeholder `"__asof"."<n>"` is number n.
pub type Occurrences = Vec<TableOccurrence>;

/// A parsed statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What it does.
    pub kind: Kind,
    /// Its table occurrences, other than targets.
    pub tables: Occurrences,
    /// Number of parameters (`?` are numbered from left to right and become `$1`, `$2` …).
    pub parameters: usize,
}

/// What a statement does. Expressions and queries are sqlparser's, with placeholders for tables.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// SELECT, VALUES, WITH …
    Query(Box<ast::Query>),
    /// EXPLAIN [ANALYZE] [VERBOSE] of a query.
    Explain {
        /// Run it and show the metrics.
        analyze: bool,
        /// All plans.
        verbose: bool,
        /// The query.
        query: Box<ast::Query>,
    },
    /// DESCRIBE [TABLE] [EXTENDED] t: occurrence 0.
    Describe,
    /// DESCRIBE DETAIL t: occurrence 0.
    DescribeDetail,
    /// DESCRIBE HISTORY t [LIMIT n]: occurrence 0.
    DescribeHistory {
        /// At most so many.
        limit: Option<usize>,
    },
    /// SHOW CATALOGS.
    ShowCatalogs,
    /// SHOW SCHEMAS (or DATABASES) [IN catalog] [LIKE 'p'].
    ShowSchemas {
        /// Catalog.
        catalog: Option<String>,
        /// Pattern.
        like: Option<String>,
    },
    /// SHOW TABLES [IN schema] [LIKE 'p'].
    ShowTables {
        /// Schema: 1 or 2 parts.
        schema: Option<Vec<String>>,
        /// Pattern.
        like: Option<String>,
    },
    /// SHOW VIEWS.
    ShowViews {
        /// Pattern.
        like: Option<String>,
    },
    /// SHOW COLUMNS IN t (occurrence 0).
    ShowColumns,
    /// SHOW TBLPROPERTIES t [('key')] (occurrence 0).
    ShowProperties {
        /// Only this one.
        key: Option<String>,
    },
    /// SHOW CREATE TABLE t (occurrence 0).
    ShowCreateTable,
    /// SHOW setting; all with `None`.
    ShowSetting(Option<String>),
    /// SET name = value; also SET TIME ZONE '…', SET TIMEZONE.
    Set {
        /// Name, lower case.
        name: String,
        /// Value as text.
        value: String,
    },
    /// RESET name; RESET ALL with `None`.
    Reset(Option<String>),
    /// USE [CATALOG|SCHEMA] a[.b]: parts as written.
    Use {
        /// `USE CATALOG`: the only part is a catalog.
        catalog_only: bool,
        /// 1 or 2 parts.
        parts: Vec<String>,
    },
    /// CREATE [OR REPLACE] TEMPORARY VIEW.
    CreateTemporaryView {
        /// Name.
        name: String,
        /// Replace.
        or_replace: bool,
        /// The query's text as written (kept; parsed at each use). It has been parsed once, so it is sound.
        sql: String,
        /// Column names, when given.
        columns: Vec<String>,
    },
    /// DROP VIEW [IF EXISTS].
    DropView {
        /// Name.
        name: String,
        /// No error when it is not there.
        if_exists: bool,
    },
    /// CREATE SCHEMA (or DATABASE) [IF NOT EXISTS].
    CreateSchema {
        /// 1 or 2 parts.
        parts: Vec<String>,
        /// No error when there.
        if_not_exists: bool,
    },
    /// DROP SCHEMA [IF EXISTS] [CASCADE].
    DropSchema {
        /// 1 or 2 parts.
        parts: Vec<String>,
        /// No error when not there.
        if_exists: bool,
        /// With its tables.
        cascade: bool,
    },
    /// CREATE [OR REPLACE] TABLE [IF NOT EXISTS] … [AS query].
    CreateTable(Box<CreateTable>),
    /// DROP TABLE [IF EXISTS].
    DropTable {
        /// The table.
        target: TableTarget,
        /// No error when not there.
        if_exists: bool,
    },
    /// INSERT INTO.
    Insert {
        /// The table.
        target: TableTarget,
        /// Columns, when given.
        columns: Vec<String>,
        /// The rows.
        source: Box<ast::Query>,
        /// What becomes of the rows that are there.
        mode: InsertMode,
    },
    /// DELETE FROM.
    Delete {
        /// The table.
        target: TableTarget,
        /// Its alias.
        alias: Option<String>,
        /// Which rows; all when `None`.
        predicate: Option<ast::Expr>,
    },
    /// UPDATE.
    Update {
        /// The table.
        target: TableTarget,
        /// Its alias.
        alias: Option<String>,
        /// Column (may be nested: several parts) and value.
        assignments: Vec<(Vec<String>, ast::Expr)>,
        /// Which rows; all when `None`.
        predicate: Option<ast::Expr>,
    },
    /// TRUNCATE TABLE.
    Truncate {
        /// The table.
        target: TableTarget,
    },
    /// ALTER TABLE.
    Alter {
        /// The table.
        target: TableTarget,
        /// How.
        change: Box<Alteration>,
    },
    /// OPTIMIZE, or REORG … APPLY (PURGE).
    Optimize {
        /// The table.
        target: TableTarget,
        /// Which partitions; all when `None`.
        predicate: Option<ast::Expr>,
        /// Only files with deletion vectors.
        purge: bool,
    },
    /// VACUUM.
    Vacuum {
        /// The table.
        target: TableTarget,
        /// How long files are kept after they left the table; what the table says when `None`.
        retain_hours: Option<f64>,
        /// Only name the files.
        dry_run: bool,
    },
    /// RESTORE TABLE t TO …
    Restore {
        /// The table.
        target: TableTarget,
        /// To which moment.
        to: Selector,
    },
}

/// What an INSERT does with the rows that are there.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertMode {
    /// INTO: they stay.
    Append,
    /// OVERWRITE: they go.
    Overwrite,
    /// INTO … REPLACE WHERE: those go for which this is true, and it must be true of the new ones.
    Replace(Box<ast::Expr>),
}

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// The table.
    pub target: TableTarget,
    /// Replace.
    pub or_replace: bool,
    /// No error when there.
    pub if_not_exists: bool,
    /// Columns with types, as sqlparser has them (options hold NOT NULL, COMMENT, DEFAULT, GENERATED, CHECK).
    pub columns: Vec<ast::ColumnDef>,
    /// Table constraints (CHECK).
    pub constraints: Vec<ast::TableConstraint>,
    /// USING; `delta` when absent.
    pub using: Option<String>,
    /// PARTITIONED BY (names; typed columns given there are appended to `columns`).
    pub partitioned_by: Vec<String>,
    /// TBLPROPERTIES.
    pub properties: Vec<(String, String)>,
    /// COMMENT.
    pub comment: Option<String>,
    /// AS SELECT.
    pub query: Option<Box<ast::Query>>,
}

/// How to read the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Read `\n`, `\t`, `\\`, `\'`, `\uXXXX` in `'…'` as Spark does; else a backslash is a backslash, as in the standard.
    pub backslash_escapes: bool,
}

/// Parse one statement; a trailing semicolon is fine, a second statement is an error.
///
/// # Errors
/// `Syntax` with line and column; `Invalid` for a selector on something that has no versions; `Unsupported` by name.
pub fn parse(sql: &str) -> Result<Statement> {
    parse_with(sql, Options::default())
}

/// Parse one statement, as `options` say.
///
/// # Errors
/// As [`parse`].
pub fn parse_with(sql: &str, options: Options) -> Result<Statement> {
    let lexed = lexer::lex(sql, options)?;
    let (mut tokens, depth) = nesting::flatten(lexed.tokens)?;
    table::order_identities(&mut tokens);
    let stack = nesting::stack_size(&tokens, depth)?;
    // Trees are made, walked and, on errors, dropped in here.
    stacker::maybe_grow(stack, stack, || {
        let rewritten = selector::rewrite(tokens)?;
        let dialect = dialect::AsofDialect::new(options.backslash_escapes, nesting::fuel(&rewritten.tokens));
        let mut cursor = cursor::Cursor::new(&dialect, sql, rewritten)?;
        let kind = statement(&mut cursor)?;
        cursor.end()?;
        let tables = cursor.relations.finish()?;
        if lexed.parameters > 0 && matches!(kind, Kind::CreateTemporaryView { .. } | Kind::Set { .. }) {
            return Err(position::invalid("a parameter cannot stand in a statement whose text is kept", None));
        }
        Ok(Statement { kind, tables, parameters: lexed.parameters })
    })
}

/// One statement, by its first words.
fn statement(cursor: &mut cursor::Cursor<'_>) -> Result<Kind> {
    let first = match cursor.ahead(0) {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        Token::LParen => "SELECT".to_owned(),
        _ => return Err(cursor.unexpected("a statement")),
    };
    match first.as_str() {
        "SELECT" | "VALUES" | "FROM" | "TABLE" => Ok(Kind::Query(cursor.query(None)?)),
        "WITH" => query::with(cursor),
        "EXPLAIN" => query::explain(cursor),
        "DESCRIBE" | "DESC" => describe::describe(cursor),
        "SHOW" => show::show(cursor),
        "SET" => settings::set(cursor),
        "RESET" => settings::reset(cursor),
        "USE" => settings::use_(cursor),
        "CREATE" => schema::create(cursor),
        "DROP" => schema::drop(cursor),
        "INSERT" => dml::insert(cursor, None),
        "DELETE" => dml::delete(cursor),
        "UPDATE" => dml::update(cursor),
        "RESTORE" => restore::restore(cursor),
        "ALTER" => alter::alter(cursor),
        "TRUNCATE" => dml::truncate(cursor),
        "OPTIMIZE" => maintain::optimize(cursor),
        "REORG" => maintain::reorg(cursor),
        "VACUUM" => maintain::vacuum(cursor),
        other if LATER.contains(&other) => Err(position::unsupported(other, cursor.location())),
        _ => Err(cursor.unexpected(
            "a statement (SELECT, INSERT, UPDATE, DELETE, TRUNCATE, CREATE, ALTER, DROP, OPTIMIZE, VACUUM, RESTORE, DESCRIBE, SHOW, SET, USE, EXPLAIN)",
        )),
    }
}

/// Statements that are known by name.
const LATER: &[&str] = &[
    "MERGE",
    "COPY",
    "UNDROP",
    "DIFF",
    "BISECT",
    "BEGIN",
    "START",
    "COMMIT",
    "ROLLBACK",
    "CALL",
    "GRANT",
    "REVOKE",
    "ANALYZE",
    "REFRESH",
    "CACHE",
    "MSCK",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "LOAD",
    "COMMENT",
];
