//! The key with which a warehouse's servers sign sessions and tickets.
//!
//! Made once, by whichever server comes first, and shared by all that serve the warehouse, so that a ticket of one is good at the others.
//! It lies in a folder that only the server's user may look into; paths of that folder are no table (`path`).

use asof_storage::object::Put;
use asof_storage::{Env, Error as StorageError};
use bytes::Bytes;

use super::{OWN_FOLDER, Warehouse, folder};
use crate::error::{Error, Result};

/// Bytes of the key.
pub const KEY_BYTES: usize = 64;

/// A key, whose bytes are not shown.
#[derive(Clone)]
pub struct Secret(Bytes);

impl Secret {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Warehouse {
    /// The warehouse's signing key; made when there is none.
    ///
    /// # Errors
    /// From the store; `Corrupt` when what lies there is no key.
    pub async fn secret(&self) -> Result<Secret> {
        folder::make_private(&self.folder.join(OWN_FOLDER).join("keys")).await?;
        let path = self.store.child(&format!("{OWN_FOLDER}/keys/signing"))?;
        if let Some(bytes) = self.store.read(&path).await? {
            return checked(bytes);
        }
        // Somebody may be faster, or the answer may be lost: what lies there then is the key.
        match self.store.put_if_absent(&path, random(&self.env)).await? {
            Put::Done | Put::Taken | Put::Unknown(_) => {}
        }
        match self.store.read(&path).await? {
            Some(bytes) => checked(bytes),
            None => Err(Error::Storage(StorageError::Internal(format!("the signing key was written to {path} and is not there")))),
        }
    }
}

fn checked(bytes: Bytes) -> Result<Secret> {
    if bytes.len() == KEY_BYTES {
        return Ok(Secret(bytes));
    }
    Err(Error::Storage(StorageError::Invalid(format!(
        "{OWN_FOLDER}/keys/signing holds {} bytes where a key has {KEY_BYTES}: remove the file, and a new key is made (sessions and tickets end)",
        bytes.len()
    ))))
}

fn random(env: &Env) -> Bytes {
    (0..KEY_BYTES / 16).flat_map(|_| env.entropy.uuid().into_bytes()).collect()
}
