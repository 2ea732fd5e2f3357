//! Expressions over the table's columns, rewritten for one file.
//!
//! DataFusion's own adapter matches by name. Ours matches by physical name or field id ([`super::columns::find`]) at every depth.
//! A plain column stays a plain column or a cast of one, so that row groups, pages and Bloom filters prune by it. A field of a struct
//! stays `get_field(column, …)` with the file's own names: the Parquet source promises at planning to apply predicates on such fields
//! while decoding, and later silently skips what it cannot recognise.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::functions::core::get_field;
use datafusion::functions::core::getfield::GetFieldFunc;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_adapter::{PhysicalExprAdapter, PhysicalExprAdapterFactory};

use super::columns::{Columns, find, present, scanned_type};
use super::reading::{Read, Reading};

/// Makes an adapter for each file.
#[derive(Debug)]
pub(super) struct PinnedAdapterFactory {
    columns: Arc<Columns>,
}

impl PinnedAdapterFactory {
    pub(super) fn new(columns: Arc<Columns>) -> Self {
        Self { columns }
    }
}

impl PhysicalExprAdapterFactory for PinnedAdapterFactory {
    fn create(&self, _logical: SchemaRef, file: SchemaRef) -> Result<Arc<dyn PhysicalExprAdapter>> {
        Ok(Arc::new(PinnedAdapter { columns: Arc::clone(&self.columns), file }))
    }
}

#[derive(Debug)]
struct PinnedAdapter {
    columns: Arc<Columns>,
    file: SchemaRef,
}

impl PhysicalExprAdapter for PinnedAdapter {
    fn rewrite(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        expr.transform_down(|expr| match self.locate(&expr)? {
            Some(place) => Ok(Transformed::new(self.read(place)?, true, TreeNodeRecursion::Jump)),
            None => self.reader_column(expr),
        })
        .data()
    }
}

/// Where the value of a column, or of a field below one, lies in the file.
enum Place {
    /// Nowhere: it is NULL.
    Missing(Field),
    /// Below a column of the file, along these names.
    Found { column: Column, path: Vec<String>, reading: Reading, field: Field },
}

impl PinnedAdapter {
    /// `None`: neither a column of the table's files nor a field below one.
    fn locate(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<Place>> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return self.columns.stored(column.name()).map(|stored| self.column(stored)).transpose();
        }
        let Some(access) = ScalarFunctionExpr::try_downcast_func::<GetFieldFunc>(expr.as_ref()) else {
            return Ok(None);
        };
        let Some((source, keys)) = access.args().split_first() else {
            return Ok(None);
        };
        let mut place = self.locate(source)?;
        for key in keys {
            let name = key.downcast_ref::<Literal>().and_then(|l| l.value().try_as_str().flatten());
            place = match (place, name) {
                (Some(place), Some(name)) => place.child(name),
                _ => None,
            };
        }
        Ok(place)
    }

    fn column(&self, stored: &FieldRef) -> Result<Place> {
        let field = present(stored).with_data_type(scanned_type(stored));
        let Some(at) = find(stored, self.file.fields(), self.columns.mapping) else {
            return Ok(Place::Missing(field));
        };
        let found = self.file.field(at);
        let reading = Reading::column(stored, found.data_type(), self.columns.mapping)?;
        Ok(Place::Found { column: Column::new(found.name(), at), path: Vec::new(), reading, field })
    }

    fn read(&self, place: Place) -> Result<Arc<dyn PhysicalExpr>> {
        let (column, path, reading, field) = match place {
            Place::Missing(field) => return Ok(Arc::new(Literal::new(ScalarValue::try_new_null(field.data_type())?))),
            Place::Found { column, path, reading, field } => (column, path, reading, field),
        };
        let mut value: Arc<dyn PhysicalExpr> = Arc::new(column);
        if !path.is_empty() {
            let keys = path.into_iter().map(|name| Arc::new(Literal::new(ScalarValue::Utf8(Some(name)))) as Arc<dyn PhysicalExpr>);
            let args = std::iter::once(value).chain(keys).collect();
            value = Arc::new(ScalarFunctionExpr::try_new(get_field(), args, &self.file, Arc::new(ConfigOptions::default()))?);
        }
        Ok(match reading {
            Reading::Same => value,
            Reading::Cast(_) => Arc::new(CastExpr::new_with_target_field(value, Arc::new(field), None)),
            other => Arc::new(Read::new(value, other, &field)),
        })
    }

    /// A column that the reader itself makes (a row's number) keeps its name and has its own place behind the file's columns.
    fn reader_column(&self, expr: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
        let Some(column) = expr.downcast_ref::<Column>() else {
            return Ok(Transformed::no(expr));
        };
        let moved = Column::new_with_schema(column.name(), &self.file)?;
        Ok(Transformed::new(Arc::new(moved), true, TreeNodeRecursion::Jump))
    }
}

impl Place {
    /// The field `name` below; `None` where that is no field of a struct (a key of a map).
    fn child(self, name: &str) -> Option<Self> {
        match self {
            Self::Missing(field) => match field.data_type() {
                DataType::Struct(fields) => fields.find(name).map(|(_, f)| Self::Missing(f.as_ref().clone())),
                _ => None,
            },
            Self::Found { column, mut path, reading: Reading::Struct(children), .. } => {
                let child = children.into_iter().find(|c| c.field.name() == name)?;
                let field = child.field.as_ref().clone();
                match child.from {
                    None => Some(Self::Missing(field)),
                    Some((_, name)) => {
                        path.push(name);
                        Some(Self::Found { column, path, reading: child.reading, field })
                    }
                }
            }
            Self::Found { .. } => None,
        }
    }
}
