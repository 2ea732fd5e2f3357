//! What a client has set between its statements.
//!
//! A session's key is only what asof minted. A session holds: principal, current catalog and schema, time zone, settings,
//! temporary views, prepared statements; pin and open transaction come with their issue. It lives for a TTL after its last use
//! and is released whole at close.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use asof_storage::Env;

use crate::error::Result;
use crate::name::TableName;

/// The minted key: 128 random bits, as text. Signing is the wire's business.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub String);

/// One client's state. Interior mutability; cheap to share.
#[derive(Debug)]
pub struct Session {
    _env: Env,
}

/// A prepared statement: only text and declared parameter types live here.
#[derive(Clone, Debug)]
pub struct PreparedStatement {
    /// The text.
    pub sql: String,
    /// Bound parameters, as an Arrow IPC stream; empty when none.
    pub parameters: Vec<u8>,
}

#[allow(unused_variables, missing_docs, clippy::todo)]
impl Session {
    /// Its key.
    pub fn key(&self) -> &SessionKey {
        todo!()
    }
    /// Who.
    pub fn principal(&self) -> String {
        todo!()
    }
    /// Current catalog and schema.
    pub fn current(&self) -> (String, String) {
        todo!()
    }
    pub fn set_current(&self, catalog: &str, schema: &str) {
        todo!()
    }
    /// Complete a 1–3 part name.
    pub fn qualify(&self, parts: &[String]) -> Result<TableName> {
        todo!()
    }
    /// IANA name or offset; default `UTC`.
    pub fn time_zone(&self) -> String {
        todo!()
    }
    /// Every setting with its value, sorted: `time_zone`, `catalog`, `schema`, `timestamps` (`zoned|naive|text`), `statement_timeout`, …
    pub fn settings(&self) -> BTreeMap<String, String> {
        todo!()
    }
    /// `InvalidSetting` names the nearest known one. `spark.*` and other engines' known settings are kept and shown, without effect.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        todo!()
    }
    pub fn reset(&self, name: Option<&str>) -> Result<()> {
        todo!()
    }
    pub fn get(&self, name: &str) -> Result<String> {
        todo!()
    }
    /// Temporary views: name (lower case unless quoted) → query text.
    pub fn temp_views(&self) -> BTreeMap<String, String> {
        todo!()
    }
    pub fn create_temp_view(&self, name: &str, sql: &str, or_replace: bool) -> Result<()> {
        todo!()
    }
    pub fn drop_temp_view(&self, name: &str) -> Result<bool> {
        todo!()
    }
    /// Prepared statements by handle.
    pub fn prepare(&self, statement: PreparedStatement) -> String {
        todo!()
    }
    pub fn prepared(&self, handle: &str) -> Option<PreparedStatement> {
        todo!()
    }
    pub fn bind(&self, handle: &str, parameters: Vec<u8>) -> bool {
        todo!()
    }
    pub fn close_prepared(&self, handle: &str) -> bool {
        todo!()
    }
}

/// All live sessions of a server.
#[derive(Debug)]
pub struct Sessions {
    _env: Env,
}

#[allow(unused_variables, missing_docs, clippy::todo)]
impl Sessions {
    pub fn new(env: Env, ttl: Duration, catalog: &str, schema: &str) -> Self {
        todo!()
    }
    /// A new session for a principal (`anonymous`).
    pub fn open(&self, principal: &str) -> Arc<Session> {
        todo!()
    }
    /// By key, touched; `NoSession` when unknown or expired.
    pub fn get(&self, key: &SessionKey) -> Result<Arc<Session>> {
        todo!()
    }
    /// Release it and all it holds; idempotent.
    pub fn close(&self, key: &SessionKey) -> bool {
        todo!()
    }
    /// A session of its own for a request that carries none and gets none: reads work, `SET` does not stay.
    pub fn transient(&self, principal: &str) -> Arc<Session> {
        todo!()
    }
    /// Drop the expired.
    pub fn sweep(&self) -> usize {
        todo!()
    }
    pub fn len(&self) -> usize {
        todo!()
    }
}
