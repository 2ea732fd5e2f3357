//! The session's key, and the message that gives it back.
//!
//! The server mints a key on the first call of a connection that has none, and says it in the response header `authorization`. A
//! client that adopts it has a session: settings, temporary views, prepared statements, later pins and transactions. The key is
//! shared by all clones of a connection, since a session is one.

use std::sync::{Arc, PoisonError, RwLock};

use tonic::Request;
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

const AUTHORIZATION: &str = "authorization";
const BEARER: &[u8] = b"bearer ";

/// Flight's action that ends a session. Its messages are plain protobuf, not wrapped in `Any`, and arrow-flight lacks them.
pub(crate) const CLOSE_SESSION: &str = "CloseSession";

/// `arrow.flight.protocol.CloseSessionRequest`: it has no fields, the key says which session.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CloseSessionRequest {}

/// The key, once there is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionKey(Arc<RwLock<Option<MetadataValue<Ascii>>>>);

impl SessionKey {
    /// Wraps a message in a request that carries the key.
    pub(crate) fn sign<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(key) = self.0.read().unwrap_or_else(PoisonError::into_inner).clone() {
            request.metadata_mut().insert(AUTHORIZATION, key);
        }
        request
    }

    /// Takes the key over from a response, or from a refusal: a session is minted before the statement is looked at.
    pub(crate) fn adopt(&self, headers: &MetadataMap) {
        let Some(key) = headers.get(AUTHORIZATION) else { return };
        let bearer = key.as_bytes().get(..BEARER.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(BEARER));
        if bearer {
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(key.clone());
        }
    }

    /// Whether the server gave this connection a session.
    pub(crate) fn is_set(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bearer_keys_are_adopted() {
        let check = |header: &'static str, adopted: bool| {
            let mut headers = MetadataMap::new();
            headers.insert(AUTHORIZATION, MetadataValue::from_static(header));
            let key = SessionKey::default();
            key.adopt(&headers);
            assert_eq!(key.sign(()).metadata().get(AUTHORIZATION).is_some(), adopted, "{header}");
        };
        check("Bearer abc", true);
        check("bearer abc", true);
        check("Basic abc", false);
        check("x", false);
    }
}
