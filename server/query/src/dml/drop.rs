//! DROP TABLE.

use crate::engine::Outcome;
use crate::error::{Error, Result};
use crate::plan::StatementContext;
use crate::statement::TableTarget;

pub(super) async fn run(ctx: &StatementContext, target: &TableTarget, if_exists: bool) -> Result<Outcome> {
    let done = Outcome { count: None, rows: None };
    let TableTarget::Name(parts) = target else {
        return Err(Error::Unsupported { message: format!("DROP TABLE {target} by path; drop it by its name"), location: None });
    };
    if let [name] = parts.as_slice()
        && ctx.session.temp_views().contains_key(name)
    {
        return Err(super::invalid(format!("{name} is a view: use DROP VIEW {name}")));
    }
    match ctx.warehouse.drop_table(&ctx.session.qualify(parts)?).await {
        Ok(()) => Ok(done),
        Err(asof_catalog::Error::UnknownTable { .. } | asof_catalog::Error::UnknownSchema { .. }) if if_exists => Ok(done),
        Err(error) => Err(error.into()),
    }
}
