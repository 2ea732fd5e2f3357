//! Rows of a file that are deleted: one roaring codec, one in-memory form.

/// A deletion vector's descriptor, as in the log's `deletionVector`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeletionVector {
    /// `u` (file by encoded id), `i` (inline), `p` (absolute path).
    pub storage_type: char,
    /// What the storage type says.
    pub path_or_inline: String,
    /// Where in the file.
    pub offset: Option<i32>,
    /// Bytes of the bitmap.
    pub size_in_bytes: i32,
    /// How many rows are deleted.
    pub cardinality: i64,
}

impl DeletionVector {
    /// The protocol's unique id: `<storageType><pathOrInlineDv>[@<offset>]`.
    #[must_use]
    pub fn unique_id(&self) -> String {
        match self.offset {
            Some(offset) => format!("{}{}@{offset}", self.storage_type, self.path_or_inline),
            None => format!("{}{}", self.storage_type, self.path_or_inline),
        }
    }
}
