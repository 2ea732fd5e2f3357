//! `catalog.schema.table`, resolved against a session's current catalog and schema.

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

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.catalog, self.schema, self.table)
    }
}
