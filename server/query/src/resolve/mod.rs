//! Each table reference becomes a pinned snapshot. All I/O of naming happens here.
//!
//! A statement reads one moment of each table: occurrences of one table with one selector share one snapshot, however often and
//! from however deep a view they are named. A ticket's pins win over resolving again.

mod information_schema;
mod metadata;
mod moment;
mod selector;

use std::collections::HashMap;
use std::pin::Pin as BoxPin;
use std::sync::Arc;

use asof_storage::{HistoryRange, Snapshot, SnapshotSelector, TableFormat};
use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use parking_lot::Mutex;

use crate::engine::Pin;
use crate::error::{Error, Location, Result};
use crate::plan::{Planner, Relation, StatementContext};
use crate::scan::PinnedTable;
use crate::statement::{Occurrences, Selector, TableOccurrence, TableTarget};

pub use moment::parse_moment;
pub use selector::evaluate;

/// How deep views may nest.
const MAX_VIEW_DEPTH: usize = 32;

/// Resolve a statement's occurrences, in order.
///
/// # Errors
/// Names, versions and moments that do not exist, each naming what does.
pub async fn resolve(ctx: &StatementContext, tables: &Occurrences) -> Result<(Vec<Relation>, Vec<Pin>)> {
    let resolver = Resolver { ctx, snapshots: Mutex::default() };
    let relations = resolver.all(tables, 0).await?;
    let mut pins: Vec<Pin> = resolver.snapshots.into_inner().into_iter().map(|(key, s)| pin(key, &s)).collect();
    pins.sort_by(|a, b| (&a.table, &a.selector).cmp(&(&b.table, &b.selector)));
    Ok((relations, pins))
}

/// The table that a target names.
///
/// # Errors
/// Unknown schema or table; a path outside the warehouse; a temporary view.
pub async fn table(ctx: &StatementContext, target: &TableTarget) -> Result<Arc<dyn TableFormat>> {
    match target {
        TableTarget::Path { format, path } => Ok(ctx.warehouse.table_at(format, path).await?),
        TableTarget::Name(parts) => Ok(ctx.warehouse.table(&ctx.session.qualify(parts)?).await?),
    }
}

/// A table and a selector's canonical text.
type PinKey = (String, String);

fn pin((table, selector): PinKey, snapshot: &Snapshot) -> Pin {
    Pin { table, selector, version: snapshot.version }
}

fn canonical(selector: &SnapshotSelector) -> String {
    match selector {
        SnapshotSelector::Latest => "latest".to_owned(),
        SnapshotSelector::Version(version) => format!("version {version}"),
        SnapshotSelector::Timestamp(at) => format!("time {}", at.0),
        SnapshotSelector::Ref(name) => format!("ref {name}"),
    }
}

struct Resolver<'a> {
    ctx: &'a StatementContext,
    snapshots: Mutex<HashMap<PinKey, Arc<Snapshot>>>,
}

type BoxFuture<'a, T> = BoxPin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Resolver<'_> {
    fn all<'a>(&'a self, tables: &'a Occurrences, depth: usize) -> BoxFuture<'a, Result<Vec<Relation>>> {
        Box::pin(async move {
            let mut relations: Vec<Option<Relation>> = vec![None; tables.len()];
            for number in 0..tables.len() {
                self.one(tables, number, &mut relations, depth).await?;
            }
            Ok(relations.into_iter().flatten().collect())
        })
    }

    /// Resolve occurrence `number`; those inside its selector's subqueries come first.
    fn one<'a>(
        &'a self,
        tables: &'a Occurrences,
        number: usize,
        done: &'a mut Vec<Option<Relation>>,
        depth: usize,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if done[number].is_some() {
                return Ok(());
            }
            let table = &tables[number];
            let selector = match &table.selector {
                None => SnapshotSelector::Latest,
                Some(selector) => {
                    for inner in selector::placeholders(selector) {
                        if inner != number && inner < tables.len() {
                            self.one(tables, inner, done, depth).await?;
                        }
                    }
                    evaluate(self.ctx, selector, done, table.location).await?
                }
            };
            done[number] = Some(self.relation(table, &selector, depth).await.map_err(|e| located(e, table.location))?);
            Ok(())
        })
    }

    async fn relation(&self, table: &TableOccurrence, selector: &SnapshotSelector, depth: usize) -> Result<Relation> {
        if let TableTarget::Name(parts) = &table.target {
            if let [name] = parts.as_slice()
                && let Some(sql) = self.ctx.session.temp_views().get(name)
            {
                return self.view(name, sql, table.selector.as_ref(), depth).await;
            }
            if let Some(relation) = information_schema::relation(self.ctx, parts, table.selector.is_some()).await? {
                return Ok(relation);
            }
        }
        let handle = match self::table(self.ctx, &table.target).await {
            Ok(handle) => handle,
            Err(error) => match metadata::named(&table.target) {
                // A table of the full name wins over a metadata table.
                Some((of, which)) if metadata::may_be(&error) => return self.metadata(&of, which, table, selector, error).await,
                _ => return Err(error),
            },
        };
        let name = match &table.target {
            TableTarget::Path { format, path } => TableReference::partial(format.clone(), path.clone()),
            TableTarget::Name(parts) => {
                let name = self.ctx.session.qualify(parts)?;
                TableReference::full(name.catalog, name.schema, name.table)
            }
        };
        let snapshot = self.snapshot(handle.as_ref(), selector).await?;
        let index = handle.index(&snapshot).await?;
        Ok(Relation::Table { name, table: Arc::new(PinnedTable::new(handle, snapshot, index)) })
    }

    /// A metadata table of `of`; `otherwise` where there is no such table either.
    async fn metadata(
        &self,
        of: &TableTarget,
        which: metadata::Which,
        table: &TableOccurrence,
        selector: &SnapshotSelector,
        otherwise: Error,
    ) -> Result<Relation> {
        let handle = match self::table(self.ctx, of).await {
            Ok(handle) => handle,
            // `golden.t.files` names no catalog `golden`, where `golden` is a schema without a table `t`.
            Err(error) => return Err(if metadata::no_catalog(&otherwise) { error } else { otherwise }),
        };
        if table.selector.is_some() && !which.has_versions() {
            return Err(invalid(format!("{} shows all versions: leave the selector out", table.target)));
        }
        let rows = match which.has_versions() {
            true => {
                let snapshot = self.snapshot(handle.as_ref(), selector).await?;
                metadata::of_version(which, handle.index(&snapshot).await?.as_ref(), &snapshot)?
            }
            false => metadata::of_commits(which, &handle.history(HistoryRange::default()).await?)?,
        };
        let rows = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
        Ok(Relation::Rows { name: TableReference::bare(table.target.to_string()), rows: Arc::new(rows) })
    }

    async fn snapshot(&self, table: &dyn TableFormat, selector: &SnapshotSelector) -> Result<Arc<Snapshot>> {
        let key = (table.id().location().to_string(), canonical(selector));
        if let Some(snapshot) = self.snapshots.lock().get(&key) {
            return Ok(Arc::clone(snapshot));
        }
        let pinned = self.ctx.pins.iter().find(|p| (&p.table, &p.selector) == (&key.0, &key.1));
        let snapshot = match pinned {
            Some(pin) => table.resolve(&SnapshotSelector::Version(pin.version)).await?,
            None => table.resolve(selector).await?,
        };
        self.snapshots.lock().insert(key, Arc::clone(&snapshot));
        Ok(snapshot)
    }

    async fn view(&self, name: &str, sql: &str, selector: Option<&Selector>, depth: usize) -> Result<Relation> {
        if selector.is_some() {
            return Err(invalid(format!("{name:?} is a view and has no versions: put the selector on the tables inside it")));
        }
        if depth >= MAX_VIEW_DEPTH {
            return Err(invalid(format!("view {name:?} nests more than {MAX_VIEW_DEPTH} deep: does it name itself?")));
        }
        let statement = crate::statement::parse(sql)?;
        let crate::statement::Kind::Query(query) = &statement.kind else {
            return Err(Error::Internal(format!("view {name:?} is no query")));
        };
        let planner = Planner::new(self.ctx, self.all(&statement.tables, depth + 1).await?)?;
        let plan = planner.logical(query).await?;
        Ok(Relation::View { name: TableReference::bare(name), plan })
    }
}

fn invalid(message: String) -> Error {
    Error::Invalid { message, location: None }
}

/// Give an error of resolving the place of the table in the text, where it has none.
fn located(error: Error, location: Location) -> Error {
    match error {
        Error::Invalid { message, location: None } => Error::Invalid { message, location: Some(location) },
        Error::Unsupported { message, location: None } => Error::Unsupported { message, location: Some(location) },
        source @ (Error::Catalog(_) | Error::Storage(_)) => Error::Located { location, source: Box::new(source) },
        other => other,
    }
}
