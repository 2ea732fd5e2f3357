//! DESCRIBE [TABLE] t: name, type and comment of each column, then Spark's block of partition columns.

use arrow::array::RecordBatch;

use super::{text, type_name};
use crate::error::{Error, Result};
use crate::plan::{Relation, StatementContext};
use crate::statement::Statement;

pub(super) async fn table(ctx: &StatementContext, statement: &Statement) -> Result<RecordBatch> {
    let (relations, _) = crate::resolve::resolve(ctx, &statement.tables).await?;
    let Some(relation) = relations.first() else {
        return Err(Error::Internal("DESCRIBE without a table".to_owned()));
    };
    let mut rows = Rows::default();
    match relation {
        Relation::Table { table, .. } => {
            let snapshot = &table.snapshot;
            snapshot.schema.fields().iter().for_each(|f| rows.column(f));
            if !snapshot.partition_columns.is_empty() {
                rows.push("# Partition Information", "", Some(""));
                rows.push("# col_name", "data_type", Some("comment"));
                for name in &snapshot.partition_columns {
                    if let Ok(field) = snapshot.schema.field_with_name(name) {
                        rows.column(field);
                    }
                }
            }
        }
        Relation::View { plan, .. } => plan.schema().fields().iter().for_each(|f| rows.column(f)),
        Relation::Rows { rows: provider, .. } => provider.schema().fields().iter().for_each(|f| rows.column(f)),
    }
    rows.finish()
}

#[derive(Default)]
struct Rows {
    names: Vec<Option<String>>,
    types: Vec<Option<String>>,
    comments: Vec<Option<String>>,
}

impl Rows {
    fn push(&mut self, name: &str, data_type: &str, comment: Option<&str>) {
        self.names.push(Some(name.to_owned()));
        self.types.push(Some(data_type.to_owned()));
        self.comments.push(comment.map(str::to_owned));
    }

    fn column(&mut self, field: &(impl std::borrow::Borrow<arrow::datatypes::Field> + ?Sized)) {
        let field = field.borrow();
        self.push(field.name(), &type_name(field), field.metadata().get("comment").map(String::as_str));
    }

    fn finish(self) -> Result<RecordBatch> {
        text(vec![("col_name", self.names), ("data_type", self.types), ("comment", self.comments)])
    }
}
