//! DESCRIBE DETAIL t [selector]: one row of Delta's columns about a table at one version.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, ListBuilder, RecordBatch, StringArray, StringBuilder, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field};
use asof_storage::index::Chunk;
use asof_storage::snapshot::FormatSnapshot;

use super::history::map;
use crate::error::{Error, Result};
use crate::plan::{Relation, StatementContext};
use crate::statement::Statement;

pub(super) async fn rows(ctx: &StatementContext, statement: &Statement) -> Result<RecordBatch> {
    let (relations, _) = crate::resolve::resolve(ctx, &statement.tables).await?;
    let Some(Relation::Table { table, .. }) = relations.first() else {
        let message = "DESCRIBE DETAIL is about a table's files: a view and a metadata table have none".to_owned();
        return Err(Error::Invalid { message, location: statement.tables.first().map(|t| t.location) });
    };
    let (snapshot, index) = (&table.snapshot, &table.index);
    let FormatSnapshot::Delta(delta) = &snapshot.format;
    let size: i64 = index.chunks().iter().map(Chunk::live_bytes).sum();
    let features = delta.features();
    // Which columns a table is clustered by stands in a domain's metadata, which is not read: unknown is not none.
    let clustering = (!features.iter().any(|f| f == "clustering")).then_some(&[] as &[String]);
    let text = |value: Option<&str>| Arc::new(StringArray::from(vec![value])) as ArrayRef;
    let moment = |micros: Option<i64>| Arc::new(TimestampMicrosecondArray::from(vec![micros]).with_timezone("UTC")) as ArrayRef;
    let int = |value: i32| Arc::new(Int32Array::from(vec![value])) as ArrayRef;
    let long = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    let properties = snapshot.properties.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect();
    let columns = vec![
        ("format", text(Some(table.table.capabilities().format)), true),
        ("id", text(Some(&delta.metadata.id)), true),
        ("name", text(Some(&snapshot.name)), true),
        ("description", text(delta.metadata.description.as_deref()), true),
        ("location", text(Some(snapshot.table.location().as_str())), true),
        ("createdAt", moment(delta.metadata.created_time.map(|ms| ms.saturating_mul(1000))), true),
        ("lastModified", moment(Some(snapshot.committed_at.0)), true),
        ("partitionColumns", texts(Some(&snapshot.partition_columns)), true),
        ("clusteringColumns", texts(clustering), true),
        ("numFiles", long(i64::try_from(index.len()).unwrap_or(i64::MAX)), true),
        ("sizeInBytes", long(size), true),
        ("properties", map(std::iter::once(Some(&properties)))?, true),
        ("minReaderVersion", int(delta.protocol.min_reader_version), true),
        ("minWriterVersion", int(delta.protocol.min_writer_version), true),
        ("tableFeatures", texts(Some(&features)), true),
        ("version", long(snapshot.version), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(|e| Error::Internal(e.to_string()))
}

/// One list of texts.
fn texts(values: Option<&[String]>) -> ArrayRef {
    let element = Field::new("element", DataType::Utf8, true);
    let mut builder = ListBuilder::new(StringBuilder::new()).with_field(element);
    values.into_iter().flatten().for_each(|v| builder.values().append_value(v));
    builder.append(values.is_some());
    Arc::new(builder.finish())
}
