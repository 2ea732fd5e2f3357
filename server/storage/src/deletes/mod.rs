//! Rows of a file that are deleted: one roaring codec, one in-memory form.
//!
//! Deleting a few rows of a large file must not rewrite it. So a file's entry in the log may name a *deletion vector*, the set of row
//! numbers (0 = the file's first row) that no longer count. Reading without it brings deleted rows back, so a vector that is gone or
//! damaged is an error, never an empty set.

mod codec;
mod z85;

use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use roaring::RoaringTreemap;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::object::TableStore;
use crate::snapshot::Snapshot;

pub(crate) use codec::{BlockWriter, block_size};

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

/// Where a vector's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the log itself.
    Inline,
    /// In a file named by a path as the log writes paths.
    File(String),
}

/// Length of a 16-byte id in Z85.
const ENCODED_ID: usize = 20;

impl DeletionVector {
    /// The protocol's unique id: `<storageType><pathOrInlineDv>[@<offset>]`.
    #[must_use]
    pub fn unique_id(&self) -> String {
        match self.offset {
            Some(offset) => format!("{}{}@{offset}", self.storage_type, self.path_or_inline),
            None => format!("{}{}", self.storage_type, self.path_or_inline),
        }
    }

    /// A vector in the file `deletion_vector_<id>.bin` of the table's folder.
    pub(crate) fn in_file(id: Uuid, offset: i32, size_in_bytes: i32, cardinality: i64) -> Self {
        Self { storage_type: 'u', path_or_inline: z85::encode(id.as_bytes()), offset: Some(offset), size_in_bytes, cardinality }
    }

    /// Where its bytes are, or what is wrong with the descriptor.
    pub(crate) fn place(&self) -> std::result::Result<Place, String> {
        match self.storage_type {
            'i' => Ok(Place::Inline),
            'p' => Ok(Place::File(self.path_or_inline.clone())),
            'u' => {
                let split = self.path_or_inline.len().checked_sub(ENCODED_ID).filter(|n| self.path_or_inline.is_char_boundary(*n));
                let (prefix, id) = self.path_or_inline.split_at(split.ok_or("its file's id is too short")?);
                let id = z85::decode(id).and_then(|b| Uuid::from_slice(&b).ok()).ok_or("its file's id is not Z85")?;
                let slash = if prefix.is_empty() { "" } else { "/" };
                Ok(Place::File(format!("{prefix}{slash}deletion_vector_{id}.bin")))
            }
            other => Err(format!("storage type {other:?} is unknown")),
        }
    }
}

/// Reads a deletion vector of `snapshot`: the numbers of the deleted rows.
///
/// # Errors
/// `FileGone` when its file is gone; `Corrupt` when the checksum, size or cardinality does not fit; `PathOutside`; `Store`.
pub async fn load(store: &TableStore, snapshot: &Snapshot, vector: &DeletionVector) -> Result<RoaringTreemap> {
    let corrupt = |file: String, detail: String| Error::Corrupt {
        table: snapshot.name.clone(),
        version: Some(snapshot.version),
        file,
        detail: format!("deletion vector: {detail}"),
    };
    let (file, rows) = match vector.place().map_err(|e| corrupt(vector.unique_id(), e))? {
        Place::Inline => ("_delta_log".to_owned(), inline(vector)),
        Place::File(logged) => {
            let path = store.data_path(snapshot, &logged)?;
            let bytes = block(store, snapshot, vector, &path).await?;
            (store.shown(&path), codec::decode_block(&bytes, vector.size_in_bytes))
        }
    };
    let rows = rows.map_err(|e| corrupt(file.clone(), e))?;
    let found = i64::try_from(rows.len()).unwrap_or(i64::MAX);
    if found != vector.cardinality {
        return Err(corrupt(file, format!("it holds {found} rows, the log says {}", vector.cardinality)));
    }
    Ok(rows)
}

fn inline(vector: &DeletionVector) -> std::result::Result<RoaringTreemap, String> {
    let mut bytes = z85::decode(&vector.path_or_inline).ok_or("it is not Z85")?;
    let size = usize::try_from(vector.size_in_bytes).map_err(|_| "its size is negative")?;
    if bytes.len() < size {
        return Err(format!("it has {} bytes, the log says {size}", bytes.len()));
    }
    bytes.truncate(size);
    codec::decode(&bytes)
}

/// The vector's block in its file: size, bitmap, checksum.
async fn block(store: &TableStore, snapshot: &Snapshot, vector: &DeletionVector, path: &Path) -> Result<bytes::Bytes> {
    let corrupt = |detail: &str| Error::Corrupt {
        table: snapshot.name.clone(),
        version: Some(snapshot.version),
        file: store.shown(path),
        detail: format!("deletion vector: {detail}"),
    };
    let start = u64::try_from(vector.offset.unwrap_or(1)).map_err(|_| corrupt("its offset is negative"))?;
    let size = block_size(vector.size_in_bytes).ok_or_else(|| corrupt("its size is negative"))?;
    let options = GetOptions { range: Some(GetRange::Bounded(start..start + size)), ..GetOptions::default() };
    let answer = match store.objects.get_opts(path, options).await {
        Ok(object) => object.bytes().await,
        Err(e) => Err(e),
    };
    match answer {
        Ok(bytes) => Ok(bytes),
        Err(object_store::Error::NotFound { .. }) => {
            Err(Error::FileGone { table: snapshot.name.clone(), version: snapshot.version, path: store.shown(path) })
        }
        Err(source) => match store.objects.get_opts(path, GetOptions { head: true, ..GetOptions::default() }).await {
            Ok(object) if object.meta.size < start + size => Err(corrupt("the file is too short")),
            _ => Err(Error::Store { action: "reading", path: store.shown(path), source }),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let vector = |storage_type, path: &str| DeletionVector {
            storage_type,
            path_or_inline: path.to_owned(),
            offset: Some(1),
            size_in_bytes: 36,
            cardinality: 2,
        };
        let id = Uuid::parse_str("d2c639aa-8816-431a-aaf6-d3fe2512ff61").unwrap();
        let own = DeletionVector::in_file(id, 4, 40, 6);
        assert_eq!(own.path_or_inline, "^-aqEH.-t@S}K{vb[*k^");
        assert_eq!(own.unique_id(), "u^-aqEH.-t@S}K{vb[*k^@4");
        let file = |prefix: &str| Place::File(format!("{prefix}deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"));
        assert_eq!(own.place(), Ok(file("")));
        assert_eq!(vector('u', "ab^-aqEH.-t@S}K{vb[*k^").place(), Ok(file("ab/")));
        assert!(vector('u', "short").place().is_err());
        assert!(vector('u', "…………………………").place().is_err());
        assert!(vector('x', "").place().is_err());
    }
}
