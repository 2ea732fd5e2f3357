//! Completion: SQL's words, and the names of the tables the server has.
//!
//! Names are asked for in the background, at the start and after each statement that may have changed them; until they are there,
//! only keywords are offered.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use asof_client::TableName;
use asof_client::script::{Open, Piece, Pieces, Script};
use reedline::{Completer, CompletionResult, Span, Suggestion};

/// The words of the dialect that are worth typing for somebody.
const KEYWORDS: &[&str] = &[
    "ALL",
    "ALTER",
    "AND",
    "AS",
    "ASC",
    "AT",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CATALOGS",
    "COALESCE",
    "COLUMN",
    "COLUMNS",
    "COUNT",
    "CREATE",
    "CROSS",
    "CURRENT_DATE",
    "CURRENT_TIMESTAMP",
    "DATE",
    "DELETE",
    "DELTA",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FALSE",
    "FOR",
    "FROM",
    "FULL",
    "GROUP",
    "HAVING",
    "HISTORY",
    "IF",
    "IN",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTERVAL",
    "INTO",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NOT",
    "NULL",
    "NULLS",
    "OF",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "OVERWRITE",
    "PARTITION",
    "PARTITIONED",
    "REPLACE",
    "RESET",
    "RESTORE",
    "RIGHT",
    "SCHEMA",
    "SCHEMAS",
    "SELECT",
    "SET",
    "SHOW",
    "SUM",
    "SYSTEM_TIME",
    "SYSTEM_VERSION",
    "TABLE",
    "TABLES",
    "TBLPROPERTIES",
    "TEMPORARY",
    "THEN",
    "TIMESTAMP",
    "TO",
    "TRUE",
    "UNION",
    "UPDATE",
    "USE",
    "USING",
    "VALUES",
    "VERSION",
    "VIEW",
    "VIEWS",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
];

/// Whether a word is one of SQL's.
pub fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word.to_ascii_uppercase().as_str()).is_ok()
}

/// Names of tables, as they can be typed: bare, with their schema, and with their catalog. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Names(Arc<RwLock<BTreeSet<String>>>);

impl Names {
    /// Takes new names in place of the former.
    pub fn replace(&self, tables: &[TableName]) {
        let mut names = BTreeSet::new();
        for table in tables {
            let mut name = quoted(&table.table);
            names.insert(name.clone());
            for part in [&table.schema, &table.catalog].into_iter().filter(|part| !part.is_empty()) {
                name = format!("{}.{name}", quoted(part));
                names.insert(name.clone());
            }
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = names;
    }

    /// Those that begin so, in any case, be they in quotes or not.
    fn beginning(&self, prefix: &str) -> Vec<String> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let prefix = prefix.replace('"', "");
        names.iter().filter(|name| begins(&name.replace('"', ""), &prefix)).cloned().collect()
    }
}

fn begins(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// A name as SQL needs it: in quotes unless it is a lower-case word that is none of SQL's own.
fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain && !name.starts_with(|c: char| c.is_ascii_digit()) && !is_keyword(name) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

/// Completes the word before the cursor.
pub struct SqlCompleter {
    names: Names,
}

impl SqlCompleter {
    pub fn new(names: Names) -> Self {
        Self { names }
    }

    /// What the word could become; names come before keywords.
    fn candidates(&self, word: &str) -> Vec<String> {
        let mut found = self.names.beginning(word);
        let lower = word.chars().any(|c| c.is_ascii_lowercase());
        let keywords = KEYWORDS.iter().filter(|keyword| begins(keyword, word));
        found.extend(keywords.map(|keyword| if lower { keyword.to_ascii_lowercase() } else { (*keyword).to_owned() }));
        found
    }
}

impl Completer for SqlCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let Some(word) = line.get(..pos).and_then(last_word) else { return CompletionResult::fresh(Vec::new()) };
        let span = Span::new(pos - word.len(), pos);
        let suggestions: Vec<_> = self
            .candidates(word)
            .into_iter()
            .map(|value| Suggestion { value, span, append_whitespace: true, ..Suggestion::default() })
            .collect();
        CompletionResult::fresh(suggestions)
    }
}

/// The word, with dots in it, that a text ends with; none in texts and comments.
fn last_word(text: &str) -> Option<&str> {
    if matches!(Script::cut(text).open, Some(Open::Comment | Open::Quote('\''))) {
        return None;
    }
    let mut start = text.len();
    let pieces: Vec<_> = Pieces::new(text).collect();
    for (piece, range) in pieces.into_iter().rev() {
        let joins = matches!(piece, Piece::Word | Piece::QuotedName) || text.get(range.clone()) == Some(".");
        if !joins {
            break;
        }
        start = range.start;
    }
    text.get(start..).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(catalog: &str, schema: &str, table: &str) -> TableName {
        TableName { catalog: catalog.into(), schema: schema.into(), table: table.into(), kind: "TABLE".into() }
    }

    #[test]
    fn keywords_are_in_order() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("select") && !is_keyword("orders"));
    }

    #[test]
    fn completing() {
        let names = Names::default();
        names.replace(&[named("lake", "main", "orders"), named("lake", "main", "Order Items"), named("", "sales", "order")]);
        let mut completer = SqlCompleter::new(names);
        let mut check = |line: &str, expect: &[&str]| {
            let result = completer.complete(line, line.len());
            let got: Vec<_> = result.suggestions().iter().map(|suggestion| suggestion.value.as_str()).collect();
            assert_eq!(got, expect, "{line}");
        };
        check("SEL", &["SELECT"]);
        check("sel", &["select"]);
        check("SELECT * FROM ord", &["\"Order Items\"", "\"order\"", "orders", "order"]);
        check("SELECT * FROM main.", &["main.\"Order Items\"", "main.orders"]);
        check("SELECT * FROM lake.main.orders", &["lake.main.orders"]);
        check("SELECT * FROM sales.o", &["sales.\"order\""]);
        check("SELECT * FROM main.\"O", &["main.\"Order Items\"", "main.orders"]);
        check("SELECT 'ord", &[]);
        check("SELECT 1 -- ord", &[]);
        check("SELECT ", &[]);
        check("", &[]);
    }
}
