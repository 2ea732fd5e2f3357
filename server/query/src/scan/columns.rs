//! A version's columns: as a scan presents them, and where a file keeps them.
//!
//! The snapshot's schema carries the format's metadata at every level (ids, physical names). Queries see none of it: DataFusion compares
//! nested types with their metadata, so two versions of one table, or a literal beside a column, would not fit together (of columns, the mark
//! of CHAR(n) stays, see [`super::char`]). A variant is presented as its JSON text. DataFusion wants the columns of a file before those that are constant within one, so there are two orders:
//! *presented* (the snapshot's, then [`FILE_ORDINAL`] and [`ROW_NUMBER`]) and *scanned* (file columns, partition columns, `FILE_ORDINAL`,
//! `ROW_NUMBER`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use asof_storage::Snapshot;
use asof_storage::snapshot::ColumnMapping;
use datafusion::datasource::table_schema::TableSchema;

use parquet::arrow::RowNumber;

use super::{FILE_ORDINAL, ROW_NUMBER};

/// Where Spark keeps the declared type of a CHAR(n) or VARCHAR(n) column.
const CHAR_TYPE: &str = "__CHAR_VARCHAR_TYPE_STRING";

/// The columns of a scan.
#[derive(Debug)]
pub(super) struct Columns {
    /// What queries see.
    pub presented: SchemaRef,
    /// The same in DataFusion's order.
    pub scanned: TableSchema,
    /// For each presented column its place among the scanned.
    pub order: Vec<usize>,
    /// The snapshot's fields of the columns that lie in files, in scanned order.
    pub stored: Vec<FieldRef>,
    /// How they are found there.
    pub mapping: ColumnMapping,
    /// CHAR(n) partition columns.
    padded: Vec<(String, usize)>,
}

impl Columns {
    /// Of a version, with rows' positions ([`FILE_ORDINAL`], [`ROW_NUMBER`]) or without.
    pub(super) fn new(snapshot: &Snapshot, positions: bool) -> Self {
        let fields = snapshot.schema.fields();
        let partition = |f: &FieldRef| snapshot.partition_columns.contains(f.name());
        let stored: Vec<FieldRef> = fields.iter().filter(|f| !partition(f)).cloned().collect();
        let column = |f: &FieldRef| Arc::new(marked(f, snapshot.column_mapping));
        let in_file = |f: &FieldRef| Arc::new(marked(f, snapshot.column_mapping).with_data_type(scanned_type(f)));
        let mut constant: Vec<FieldRef> =
            snapshot.partition_columns.iter().filter_map(|name| fields.find(name)).map(|(_, f)| column(f)).collect();
        let mut presented: Vec<FieldRef> = fields.iter().map(|f| if partition(f) { column(f) } else { in_file(f) }).collect();
        let mut made_by_reader = vec![];
        if positions {
            let ordinal = Arc::new(Field::new(FILE_ORDINAL, DataType::UInt32, false));
            constant.push(Arc::clone(&ordinal));
            let number = Arc::new(Field::new(ROW_NUMBER, DataType::Int64, false).with_extension_type(RowNumber));
            made_by_reader.push(Arc::clone(&number));
            presented.extend([ordinal, number]);
        }
        let in_files: SchemaRef = Arc::new(Schema::new(stored.iter().map(in_file).collect::<Vec<_>>()));
        let scanned = TableSchema::builder(in_files).with_table_partition_cols(constant).with_virtual_columns(made_by_reader).build();
        let order = presented.iter().filter_map(|f| scanned.table_schema().index_of(f.name()).ok()).collect();
        let padded = fields.iter().filter(|f| partition(f)).filter_map(|f| Some((f.name().clone(), char_length(f)?))).collect();
        Self { presented: Arc::new(Schema::new(presented)), scanned, order, stored, mapping: snapshot.column_mapping, padded }
    }

    /// The n of a partition column CHAR(n).
    pub(super) fn partition_length(&self, name: &str) -> Option<usize> {
        self.padded.iter().find(|(padded, _)| padded == name).map(|(_, n)| *n)
    }

    /// The snapshot's field of a column that lies in files.
    pub(super) fn stored(&self, name: &str) -> Option<&FieldRef> {
        self.stored.iter().find(|f| f.name() == name)
    }

    /// Whether a column is the same in all rows of a file.
    pub(super) fn is_constant(&self, name: &str) -> bool {
        self.scanned.table_partition_cols().find(name).is_some()
    }

    /// Whether any column, at any depth, is a variant.
    pub(super) fn has_variant(&self) -> bool {
        self.stored.iter().any(|f| holds_variant(f))
    }
}

/// A column as queries see it. Of the format's metadata only CHAR(n) is left, since comparisons depend on it.
///
/// DataFusion leaves out the adapter where the table's and the file's fields are equal. After two columns swapped their names they are,
/// and yet each must be read as the other: so a column that is not found by its own name carries a mark that no file has.
fn marked(field: &FieldRef, mapping: ColumnMapping) -> Field {
    let mut marks = HashMap::new();
    if let Some((key, declared)) = field.metadata().get_key_value(CHAR_TYPE).filter(|_| char_length(field).is_some()) {
        marks.insert(key.clone(), declared.clone());
    }
    if mapping != ColumnMapping::None && is_renamed(field) {
        marks.insert("asof.renamed".to_owned(), "true".to_owned());
    }
    present(field).with_metadata(marks)
}

/// Whether the field, or one below it, has another name in files.
fn is_renamed(field: &Field) -> bool {
    physical_name(field) != field.name()
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|f| is_renamed(f)),
            DataType::List(inner) | DataType::Map(inner, _) => is_renamed(inner),
            _ => false,
        }
}

fn physical_name(field: &Field) -> &String {
    field.metadata().get("delta.columnMapping.physicalName").unwrap_or(field.name())
}

/// A field as queries see it.
pub(super) fn present(field: &Field) -> Field {
    Field::new(field.name(), presented_type(field), field.is_nullable())
}

/// A field's type as queries see it.
pub(super) fn presented_type(field: &Field) -> DataType {
    if is_variant(field) {
        return DataType::Utf8;
    }
    match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| present(f)).collect()),
        DataType::List(element) => DataType::List(Arc::new(present(element))),
        DataType::Map(entries, sorted) => DataType::Map(Arc::new(present(entries)), *sorted),
        other => other.clone(),
    }
}

/// The type of a column that lies in files. Text is a view there: values stay in the file's pages, and filters, joins and groups move
/// references of fixed size (beside copies, TPC-H takes 5% less CPU, its queries that filter by text a third less). Below a column text
/// is not: types of structs and lists must be equal where they meet, to the last field.
pub(super) fn scanned_type(stored: &Field) -> DataType {
    match stored.data_type() {
        DataType::Utf8 if char_length(stored).is_none() => DataType::Utf8View,
        _ => presented_type(stored),
    }
}

/// Whether the snapshot marks the field as a variant.
pub(super) fn is_variant(field: &Field) -> bool {
    field.metadata().get("asof.type").is_some_and(|t| t == "variant")
}

fn holds_variant(field: &Field) -> bool {
    is_variant(field)
        || match field.data_type() {
            DataType::Struct(fields) => fields.iter().any(|f| holds_variant(f)),
            DataType::List(inner) | DataType::Map(inner, _) => holds_variant(inner),
            _ => false,
        }
}

/// The n of a CHAR(n) column, whose values may lie unpadded in files.
pub(super) fn char_length(field: &Field) -> Option<usize> {
    let declared = field.metadata().get(CHAR_TYPE)?.to_ascii_lowercase();
    let inside = declared.strip_prefix("char(")?.strip_suffix(')')?;
    inside.trim().parse().ok()
}

/// Which of a file's fields holds `stored`, if any.
///
/// With mapping by id, a file none of whose fields carries an id was written before the mapping: then by physical name, as Spark does.
pub(super) fn find(stored: &Field, in_file: &[FieldRef], mapping: ColumnMapping) -> Option<usize> {
    let physical = physical_name(stored);
    let by_name = |name: &String| in_file.iter().position(|f| f.name() == name);
    match mapping {
        ColumnMapping::None => by_name(stored.name()),
        ColumnMapping::Name => by_name(physical),
        ColumnMapping::Id => {
            let id_of = |f: &FieldRef| f.metadata().get("PARQUET:field_id").cloned();
            let id = stored.metadata().get("delta.columnMapping.id");
            if id.is_none() || in_file.iter().all(|f| id_of(f).is_none()) {
                return by_name(physical);
            }
            in_file.iter().position(|f| id_of(f).as_ref() == id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, metadata: &[(&str, &str)]) -> FieldRef {
        let metadata = metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Arc::new(Field::new(name, DataType::Int32, true).with_metadata(metadata))
    }

    #[test]
    fn columns_are_found_as_their_mapping_says() {
        let mapped = field("now", &[("delta.columnMapping.id", "3"), ("delta.columnMapping.physicalName", "then")]);
        let with_ids = [field("now", &[("PARQUET:field_id", "1")]), field("x", &[("PARQUET:field_id", "3")])];
        let other_ids = [field("then", &[("PARQUET:field_id", "1")])];
        let without = [field("now", &[]), field("then", &[])];
        let check = |in_file: &[FieldRef], mapping, expect| assert_eq!(find(&mapped, in_file, mapping), expect, "{mapping:?} {in_file:?}");
        check(&with_ids, ColumnMapping::None, Some(0));
        check(&with_ids, ColumnMapping::Name, None);
        check(&with_ids, ColumnMapping::Id, Some(1));
        check(&other_ids, ColumnMapping::Name, Some(0));
        check(&other_ids, ColumnMapping::Id, None);
        check(&without, ColumnMapping::None, Some(0));
        check(&without, ColumnMapping::Name, Some(1));
        check(&without, ColumnMapping::Id, Some(1));
    }

    #[test]
    fn queries_see_no_metadata_and_variants_as_text() {
        let variant = Field::new("w", DataType::Struct(vec![field("metadata", &[])].into()), true)
            .with_metadata([("asof.type".to_owned(), "variant".to_owned())].into());
        let inner = DataType::Struct(vec![field("a", &[("delta.columnMapping.id", "3")]), Arc::new(variant)].into());
        let list = Field::new_list("l", Field::new("element", inner, true), true);
        let seen = DataType::Struct(vec![field("a", &[]), Arc::new(Field::new("w", DataType::Utf8, true))].into());
        assert_eq!(present(&list), Field::new_list("l", Field::new("element", seen, true), true));
        assert!(holds_variant(&list));
    }

    #[test]
    fn declared_lengths() {
        let check = |declared, expect| assert_eq!(char_length(&field("c", &[(CHAR_TYPE, declared)])), expect, "{declared}");
        check("char(5)", Some(5));
        check("CHAR( 12 )", Some(12));
        check("varchar(5)", None);
        check("array<char(5)>", None);
    }
}
