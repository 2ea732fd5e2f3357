//! What a client asks for, as data: one enum, decoded once, matched once.
//!
//! Commands come as `Any`-wrapped messages of Flight SQL, in descriptors and in tickets. A descriptor that holds no `Any` is the text of a
//! statement: raw scripts send that.

use arrow_flight::sql::{
    Any, Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
};
use arrow_flight::{FlightDescriptor, flight_descriptor::DescriptorType};
use bytes::Bytes;
use prost::Message;

use crate::error::{Error, Result};

/// Questions about the server and its tables, answered from the catalog.
#[derive(Clone, Debug, PartialEq)]
pub enum Metadata {
    /// What the server can do.
    SqlInfo(CommandGetSqlInfo),
    /// Types.
    XdbcTypeInfo(CommandGetXdbcTypeInfo),
    /// Catalogs.
    Catalogs(CommandGetCatalogs),
    /// Schemas.
    DbSchemas(CommandGetDbSchemas),
    /// Tables.
    Tables(CommandGetTables),
    /// Kinds of table.
    TableTypes(CommandGetTableTypes),
    /// Primary keys: a lakehouse table has none.
    PrimaryKeys(CommandGetPrimaryKeys),
    /// Foreign keys that point to a table.
    ExportedKeys(CommandGetExportedKeys),
    /// Foreign keys of a table.
    ImportedKeys(CommandGetImportedKeys),
    /// Foreign keys between two tables.
    CrossReference(CommandGetCrossReference),
}

/// What GetFlightInfo, GetSchema and PollFlightInfo may be asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A statement's text.
    Statement(String),
    /// A prepared statement, by handle.
    Prepared(Bytes),
    /// Metadata.
    Metadata(Metadata),
}

/// What DoGet may be asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched {
    /// A statement's rows, by sealed ticket.
    Ticket(Bytes),
    /// Metadata.
    Metadata(Metadata),
}

/// What DoPut may be asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Put {
    /// Run a text once.
    Update(String),
    /// Run a prepared statement once for each row of parameters.
    PreparedUpdate(Bytes),
    /// Bind parameters.
    Bind(Bytes),
}

/// Decodes a descriptor.
///
/// # Errors
/// `Request`, `Unsupported`.
pub fn asked(descriptor: &FlightDescriptor) -> Result<Asked> {
    match command(&bytes_of(descriptor)?)? {
        Ok(Command::CommandStatementQuery(c)) => no_transaction(c.transaction_id.as_ref()).map(|()| Asked::Statement(c.query)),
        Ok(Command::CommandPreparedStatementQuery(c)) => Ok(Asked::Prepared(c.prepared_statement_handle)),
        Ok(other) => metadata(other).map(Asked::Metadata),
        Err(text) => Ok(Asked::Statement(text)),
    }
}

/// Decodes a ticket.
///
/// # Errors
/// `Request`, `Unsupported`.
pub fn fetched(ticket: &Bytes) -> Result<Fetched> {
    match command(ticket)? {
        Ok(Command::TicketStatementQuery(t)) => Ok(Fetched::Ticket(t.statement_handle)),
        Ok(other) => metadata(other).map(Fetched::Metadata),
        Err(_) => Err(Error::Request("this is no ticket: use the one in FlightInfo's endpoint".to_owned())),
    }
}

/// Decodes the descriptor of an upload.
///
/// # Errors
/// `Request`, `Unsupported`.
pub fn put(descriptor: &FlightDescriptor) -> Result<Put> {
    match command(&bytes_of(descriptor)?)? {
        Ok(Command::CommandStatementUpdate(c)) => no_transaction(c.transaction_id.as_ref()).map(|()| Put::Update(c.query)),
        Ok(Command::CommandPreparedStatementUpdate(c)) => Ok(Put::PreparedUpdate(c.prepared_statement_handle)),
        Ok(Command::CommandPreparedStatementQuery(c)) => Ok(Put::Bind(c.prepared_statement_handle)),
        Ok(Command::CommandStatementIngest(_)) => Err(Error::Unsupported(
            "bulk ingest does not exist yet; use INSERT INTO … VALUES, or a prepared INSERT with rows of parameters".to_owned(),
        )),
        Ok(other) => Err(unexpected(&other)),
        Err(text) => Ok(Put::Update(text)),
    }
}

fn metadata(command: Command) -> Result<Metadata> {
    match command {
        Command::CommandGetSqlInfo(c) => Ok(Metadata::SqlInfo(c)),
        Command::CommandGetXdbcTypeInfo(c) => Ok(Metadata::XdbcTypeInfo(c)),
        Command::CommandGetCatalogs(c) => Ok(Metadata::Catalogs(c)),
        Command::CommandGetDbSchemas(c) => Ok(Metadata::DbSchemas(c)),
        Command::CommandGetTables(c) => Ok(Metadata::Tables(c)),
        Command::CommandGetTableTypes(c) => Ok(Metadata::TableTypes(c)),
        Command::CommandGetPrimaryKeys(c) => Ok(Metadata::PrimaryKeys(c)),
        Command::CommandGetExportedKeys(c) => Ok(Metadata::ExportedKeys(c)),
        Command::CommandGetImportedKeys(c) => Ok(Metadata::ImportedKeys(c)),
        Command::CommandGetCrossReference(c) => Ok(Metadata::CrossReference(c)),
        Command::CommandStatementSubstraitPlan(_) => Err(Error::Unsupported("Substrait plans; send SQL".to_owned())),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(command: &Command) -> Error {
    let name = command.type_url().rsplit(['/', '.']).next().unwrap_or_default().to_owned();
    match command {
        Command::Unknown(_) => Error::Unsupported(format!("the command {name:?}")),
        _ => Error::Request(format!("{name} has no meaning here")),
    }
}

fn no_transaction(id: Option<&Bytes>) -> Result<()> {
    match id {
        Some(id) if !id.is_empty() => Err(Error::Unsupported("transactions; send the statement without a transaction id".to_owned())),
        _ => Ok(()),
    }
}

fn bytes_of(descriptor: &FlightDescriptor) -> Result<Bytes> {
    match descriptor.r#type() {
        DescriptorType::Path => Err(Error::Unsupported(format!("flights by path ({:?}); send SQL", descriptor.path))),
        DescriptorType::Cmd | DescriptorType::Unknown => Ok(descriptor.cmd.clone()),
    }
}

/// A wrapped command, or else the bytes as text.
fn command(bytes: &Bytes) -> Result<std::result::Result<Command, String>> {
    match Any::decode(bytes.as_ref()) {
        Ok(any) if any.type_url.contains('/') => {
            Command::try_from(any).map(Ok).map_err(|e| Error::Request(format!("the command cannot be read: {e}")))
        }
        _ => match std::str::from_utf8(bytes) {
            Ok(text) if !text.trim().is_empty() => Ok(Err(text.to_owned())),
            _ => Err(Error::Request("the command is neither a message of Flight SQL nor the text of a statement".to_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use arrow_flight::sql::{CommandStatementQuery, CommandStatementUpdate, ProstMessageExt};

    use super::*;

    fn descriptor(message: &impl ProstMessageExt) -> FlightDescriptor {
        FlightDescriptor::new_cmd(message.as_any().encode_to_vec())
    }

    #[test]
    fn commands_are_told_apart_from_texts() {
        let query = CommandStatementQuery { query: "SELECT 1".into(), transaction_id: None };
        assert_eq!(asked(&descriptor(&query)).unwrap(), Asked::Statement("SELECT 1".into()));
        assert_eq!(asked(&FlightDescriptor::new_cmd("SELECT 1")).unwrap(), Asked::Statement("SELECT 1".into()));
        let text = "-- 주석\nSELECT count(*) FROM t VERSION AS OF 1 WHERE a/b > 2";
        assert_eq!(asked(&FlightDescriptor::new_cmd(text)).unwrap(), Asked::Statement(text.into()));
        assert_eq!(asked(&descriptor(&CommandGetCatalogs {})).unwrap(), Asked::Metadata(Metadata::Catalogs(CommandGetCatalogs {})));
        let update = CommandStatementUpdate { query: "DELETE FROM t".into(), transaction_id: None };
        assert_eq!(put(&descriptor(&update)).unwrap(), Put::Update("DELETE FROM t".into()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        #[expect(clippy::needless_pass_by_value, reason = "cases read better with values")]
        fn refused<T: std::fmt::Debug>(got: Result<T>) {
            assert!(matches!(got, Err(Error::Request(_) | Error::Unsupported(_))), "{got:?}");
        }
        refused(asked(&FlightDescriptor::new_cmd("")));
        refused(asked(&FlightDescriptor::new_cmd(vec![0xff, 0xfe])));
        refused(asked(&FlightDescriptor::new_path(vec!["t".into()])));
        refused(asked(&descriptor(&CommandStatementUpdate { query: "DELETE FROM t".into(), transaction_id: None })));
        let in_transaction = CommandStatementQuery { query: "SELECT 1".into(), transaction_id: Some("tx".into()) };
        refused(asked(&descriptor(&in_transaction)));
        refused(fetched(&"SELECT 1".into()));
        refused(put(&descriptor(&CommandGetCatalogs {})));
        let unknown = Any { type_url: "type.googleapis.com/a.b.C".into(), value: Bytes::new() };
        refused(asked(&FlightDescriptor::new_cmd(unknown.encode_to_vec())));
        let broken = Any { type_url: CommandStatementQuery::type_url().into(), value: vec![0xff, 0xff].into() };
        refused(asked(&FlightDescriptor::new_cmd(broken.encode_to_vec())));
    }
}
