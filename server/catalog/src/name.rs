//! `catalog.schema.table`, and what may be a name.
//!
//! A schema's and a table's name is the name of a folder, so what could mean something else to a file system or an object store is
//! no name. Unquoted names reach this crate in lower case; which case a folder has is asked of the warehouse.

use crate::error::{Error, Result};

/// Longest name, in bytes: what common file systems take as one path segment.
const LONGEST: usize = 255;

/// A full table name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// Catalog.
    pub catalog: String,
    /// Schema.
    pub schema: String,
    /// Table.
    pub table: String,
}

impl TableName {
    /// From its three parts.
    pub fn new(catalog: impl Into<String>, schema: impl Into<String>, table: impl Into<String>) -> Self {
        Self { catalog: catalog.into(), schema: schema.into(), table: table.into() }
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.catalog, self.schema, self.table)
    }
}

/// Refuse what cannot name a folder. `what` is `schema` or `table`.
pub(crate) fn check(what: &'static str, name: &str) -> Result<()> {
    let problem = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > LONGEST {
        format!("it has {} bytes, and {LONGEST} are the most", name.len())
    } else if name.starts_with('.') {
        "it begins with a dot".to_owned()
    } else if name == "_asof" || name == "_delta_log" || (what == "schema" && name.starts_with("__")) {
        "that name is reserved".to_owned()
    } else if let Some(c) = name.chars().find(|c| c.is_control() || matches!(c, '/' | '\\')) {
        format!("it holds the character {c:?}")
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(64).collect();
    Err(Error::InvalidName(format!("{shown:?} cannot name a {what}: {problem}; choose another name")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_name() {
        fn check_table(name: &str, fine: bool) {
            assert_eq!(check("table", name).is_ok(), fine, "{name:?}");
        }
        check_table("orders", true);
        check_table("Orders 2026", true);
        check_table("주문", true);
        check_table("_staging", true);
        check_table("100%", true);
        check_table("", false);
        check_table("..", false);
        check_table(".hidden", false);
        check_table("a/b", false);
        check_table("a\\b", false);
        check_table("a\0b", false);
        check_table("_delta_log", false);
        check_table("_asof", false);
        check_table(&"x".repeat(256), false);
    }
}
