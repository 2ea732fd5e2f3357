//! What a client has set between its statements.
//!
//! A session's key is only what asof minted. A session holds: principal, current catalog and schema, time zone, settings,
//! temporary views, prepared statements; pin and open transaction come with their issue. It lives for a TTL after its last use
//! and is released whole at close.
//!
//! Three ways to have one. *Opened*: the client was told its key and sends it ([`Sessions::open`]). *Offered*: the request came without a
//! key, and one goes back with the answer ([`Sessions::offer`]); until the client shows that it keeps it, a statement whose effect would be
//! lost with the key (`SET`, `USE`, a temporary view) is refused, and everything else works. *Transient*: for one request, such as the
//! reading of a ticket ([`Sessions::transient`], [`Sessions::restore`]).

mod live;
mod setting;
mod time_zone;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use asof_storage::{Env, Micros};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::name::TableName;
use setting::{Name, Setting};

pub use live::Sessions;

/// Most prepared statements of one session, and most temporary views, and most settings.
const MOST_OF_A_KIND: usize = 10_000;

/// The minted key: 128 random bits, as text. Signing is the wire's business.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionKey(pub String);

/// A prepared statement: only text and bound parameters live here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedStatement {
    /// The text.
    pub sql: String,
    /// Bound parameters, as an Arrow IPC stream; empty when none.
    pub parameters: Vec<u8>,
}

/// What of a session decides what a text means: it travels in tickets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// Current catalog.
    pub catalog: String,
    /// Current schema.
    pub schema: String,
    /// Settings of asof's own that differ from the default.
    pub settings: BTreeMap<String, String>,
    /// Temporary views: name → query text.
    pub temp_views: BTreeMap<String, String>,
}

/// One client's state. Interior mutability; cheap to share.
#[derive(Debug)]
pub struct Session {
    env: Env,
    key: SessionKey,
    principal: String,
    /// Catalog and schema at its start, to which RESET goes back.
    home: (String, String),
    /// Known to [`Sessions`] by its key.
    registered: bool,
    /// The client has shown that it keeps the key.
    kept: AtomicBool,
    /// Microseconds since the epoch.
    last_used: AtomicI64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    naming: Naming,
    /// Other engines' settings.
    foreign: BTreeMap<String, String>,
    prepared: HashMap<String, PreparedStatement>,
}

impl Session {
    /// Its key.
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// Who.
    pub fn principal(&self) -> String {
        self.principal.clone()
    }

    /// It ends with the request: nothing can be kept in it.
    pub fn is_transient(&self) -> bool {
        !self.registered
    }

    /// The client keeps the key: from now on it may set things.
    pub fn confirm(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    /// Refuse a statement whose effect would be lost with the request. `statement` is its name in the error: `SET`, `USE`.
    ///
    /// # Errors
    /// `SessionRequired`.
    pub fn require(&self, statement: &str) -> Result<()> {
        if self.registered && self.kept.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Error::SessionRequired { statement: statement.to_owned() })
    }

    /// Current catalog and schema.
    pub fn current(&self) -> (String, String) {
        let state = self.state.lock();
        (state.naming.catalog.clone(), state.naming.schema.clone())
    }

    /// Make these current. Whether they exist is for the caller to check.
    ///
    /// # Errors
    /// `SessionRequired`.
    pub fn set_current(&self, catalog: &str, schema: &str) -> Result<()> {
        self.require("USE")?;
        let mut state = self.state.lock();
        catalog.clone_into(&mut state.naming.catalog);
        schema.clone_into(&mut state.naming.schema);
        Ok(())
    }

    /// Complete a 1–3 part name.
    ///
    /// # Errors
    /// `InvalidName` for no part or more than three.
    pub fn qualify(&self, parts: &[String]) -> Result<TableName> {
        let (catalog, schema) = self.current();
        match parts {
            [table] => Ok(TableName::new(catalog, schema, table)),
            [schema, table] => Ok(TableName::new(catalog, schema, table)),
            [catalog, schema, table] => Ok(TableName::new(catalog, schema, table)),
            _ => {
                Err(Error::InvalidName(format!("{:?} has {} parts: a table's name is catalog.schema.table", parts.join("."), parts.len())))
            }
        }
    }

    /// IANA name or offset; default `UTC`.
    pub fn time_zone(&self) -> String {
        self.value(Setting::TimeZone)
    }

    /// How zoned timestamps go on the wire: `zoned` (default), `naive`, `text`.
    pub fn timestamps(&self) -> String {
        self.value(Setting::Timestamps)
    }

    /// How long a statement may take; no limit with `None`.
    pub fn statement_timeout(&self) -> Option<Duration> {
        setting::duration(&self.value(Setting::StatementTimeout)).flatten()
    }

    fn value(&self, setting: Setting) -> String {
        let state = self.state.lock();
        match setting {
            Setting::Catalog => state.naming.catalog.clone(),
            Setting::Schema => state.naming.schema.clone(),
            _ => state.naming.settings.get(setting.name()).cloned().unwrap_or_else(|| setting.default().to_owned()),
        }
    }

    /// Every setting with its value, sorted: `time_zone`, `catalog`, `schema`, `timestamps` (`zoned|naive|text`), `statement_timeout`, …
    pub fn settings(&self) -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = Setting::ALL.into_iter().map(|s| (s.name().to_owned(), self.value(s))).collect();
        all.extend(self.state.lock().foreign.clone());
        all
    }

    /// `InvalidSetting` names the nearest known one. `spark.*` and other engines' known settings are kept and shown, without effect. Whether a
    /// catalog or schema exists is for the caller to check.
    ///
    /// # Errors
    /// `InvalidSetting`; `SessionRequired`.
    pub fn set(&self, name: &str, value: &str) -> Result<()> {
        let (name, value) = checked(name, value)?;
        self.require("SET")?;
        self.put(name, value)
    }

    /// [`Session::set`] for what came with the connection itself (its URL or headers), and so comes again with each request.
    ///
    /// # Errors
    /// `InvalidSetting`.
    pub fn configure(&self, name: &str, value: &str) -> Result<()> {
        let (name, value) = checked(name, value)?;
        self.put(name, value)
    }

    fn put(&self, name: Name, value: String) -> Result<()> {
        let mut state = self.state.lock();
        match name {
            Name::Known(Setting::Catalog) => state.naming.catalog = value,
            Name::Known(Setting::Schema) => state.naming.schema = value,
            Name::Known(setting) => {
                state.naming.settings.insert(setting.name().to_owned(), value);
            }
            Name::Foreign(name) => {
                full(state.foreign.len(), "settings")?;
                state.foreign.insert(name, value);
            }
        }
        Ok(())
    }

    /// Whether there is such a setting.
    ///
    /// # Errors
    /// `InvalidSetting` naming the nearest.
    pub fn knows(&self, name: &str) -> Result<()> {
        setting::look_up(name).map(|_| ())
    }

    /// Back to the default; all of them, current catalog and schema too, with `None`.
    ///
    /// # Errors
    /// `InvalidSetting`; `SessionRequired`.
    pub fn reset(&self, name: Option<&str>) -> Result<()> {
        let name = name.map(setting::look_up).transpose()?;
        self.require("RESET")?;
        let mut state = self.state.lock();
        let (catalog, schema) = self.home.clone();
        match name {
            None => {
                state.naming.settings.clear();
                state.foreign.clear();
                (state.naming.catalog, state.naming.schema) = (catalog, schema);
            }
            Some(Name::Known(Setting::Catalog)) => state.naming.catalog = catalog,
            Some(Name::Known(Setting::Schema)) => state.naming.schema = schema,
            Some(Name::Known(setting)) => {
                state.naming.settings.remove(setting.name());
            }
            Some(Name::Foreign(name)) => {
                state.foreign.remove(&name);
            }
        }
        Ok(())
    }

    /// A setting's value.
    ///
    /// # Errors
    /// `InvalidSetting` when nobody knows it, or when it is another engine's and was not set.
    pub fn get(&self, name: &str) -> Result<String> {
        match setting::look_up(name)? {
            Name::Known(setting) => Ok(self.value(setting)),
            Name::Foreign(name) => {
                let value = self.state.lock().foreign.get(&name).cloned();
                value.ok_or_else(|| Error::InvalidSetting(format!("{name:?} is another engine's setting and is not set in this session")))
            }
        }
    }

    /// Temporary views: name (lower case unless quoted) → query text.
    pub fn temp_views(&self) -> BTreeMap<String, String> {
        self.state.lock().naming.temp_views.clone()
    }

    /// Keep a query under a name.
    ///
    /// # Errors
    /// `AlreadyExists` unless `or_replace`; `SessionRequired`.
    pub fn create_temp_view(&self, name: &str, sql: &str, or_replace: bool) -> Result<()> {
        self.require("CREATE TEMPORARY VIEW")?;
        let mut state = self.state.lock();
        if !or_replace && state.naming.temp_views.contains_key(name) {
            return Err(Error::AlreadyExists { what: "temporary view", name: name.to_owned() });
        }
        full(state.naming.temp_views.len(), "temporary views")?;
        state.naming.temp_views.insert(name.to_owned(), sql.to_owned());
        Ok(())
    }

    /// Forget a temporary view; `false` when there is none of that name.
    ///
    /// # Errors
    /// `SessionRequired`.
    pub fn drop_temp_view(&self, name: &str) -> Result<bool> {
        self.require("DROP VIEW")?;
        Ok(self.state.lock().naming.temp_views.remove(name).is_some())
    }

    /// What decides what a text means, for a ticket.
    pub fn naming(&self) -> Naming {
        self.state.lock().naming.clone()
    }

    /// Keep a prepared statement; its handle.
    ///
    /// # Errors
    /// `InvalidSetting` when the session holds too many already.
    pub fn prepare(&self, statement: PreparedStatement) -> Result<String> {
        let handle = self.env.entropy.uuid().simple().to_string();
        let mut state = self.state.lock();
        full(state.prepared.len(), "prepared statements")?;
        state.prepared.insert(handle.clone(), statement);
        Ok(handle)
    }

    /// A prepared statement by handle.
    pub fn prepared(&self, handle: &str) -> Option<PreparedStatement> {
        self.state.lock().prepared.get(handle).cloned()
    }

    /// Bind parameters, an Arrow IPC stream, in place of those bound before; `false` for an unknown handle.
    pub fn bind(&self, handle: &str, parameters: Vec<u8>) -> bool {
        match self.state.lock().prepared.get_mut(handle) {
            Some(statement) => {
                statement.parameters = parameters;
                true
            }
            None => false,
        }
    }

    /// Forget a prepared statement; `false` when there is none.
    pub fn close_prepared(&self, handle: &str) -> bool {
        self.state.lock().prepared.remove(handle).is_some()
    }

    fn touch(&self, now: Micros) {
        self.last_used.fetch_max(now.0, Ordering::Relaxed);
    }

    fn idle(&self, now: Micros) -> Duration {
        let idle = now.0.saturating_sub(self.last_used.load(Ordering::Relaxed));
        Duration::from_micros(u64::try_from(idle).unwrap_or_default())
    }

    /// Nothing would be lost with it: the key never came back, and nothing is kept.
    fn is_pristine(&self) -> bool {
        !self.kept.load(Ordering::Relaxed) && self.state.lock().prepared.is_empty()
    }
}

fn checked(name: &str, value: &str) -> Result<(Name, String)> {
    let name = setting::look_up(name)?;
    let value = match &name {
        Name::Known(setting) => setting.canonical(value)?,
        Name::Foreign(_) => value.chars().take(1024).collect(),
    };
    Ok((name, value))
}

fn full(held: usize, what: &str) -> Result<()> {
    if held < MOST_OF_A_KIND {
        return Ok(());
    }
    Err(Error::InvalidSetting(format!("this session holds {held} {what}, which is the most; close some, or connect again")))
}

impl Session {
    fn new(env: Env, principal: &str, home: (String, String), naming: Naming, registered: bool, kept: bool) -> Arc<Self> {
        let key = SessionKey(env.entropy.uuid().simple().to_string());
        let last_used = AtomicI64::new(env.clock.now().0);
        let state = Mutex::new(State { naming, ..State::default() });
        Arc::new(Self { env, key, principal: principal.to_owned(), home, registered, kept: AtomicBool::new(kept), last_used, state })
    }
}
