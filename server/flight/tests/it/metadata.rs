//! Catalogs, schemas, tables, keys, types, SqlInfo.

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys,
    CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, ProstMessageExt,
};

use crate::{Client, Running, decoded, table, wrapped};

async fn ask(client: &mut Client, command: &impl ProstMessageExt) -> String {
    let (schema, batches) = client.rows(wrapped(command)).await.unwrap();
    table(&schema, &batches)
}

async fn with_tables(server: &Running) -> Client {
    let mut client = server.client().await;
    for sql in [
        "CREATE TABLE a_c (id BIGINT NOT NULL, price DECIMAL(10,2), at TIMESTAMP)",
        "CREATE TABLE abc (id BIGINT)",
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id BIGINT)",
    ] {
        client.update(sql).await.unwrap();
    }
    client
}

#[tokio::test]
async fn names_are_listed_and_filtered() {
    let server = Running::start().await;
    let mut client = with_tables(&server).await;
    assert_eq!(ask(&mut client, &CommandGetCatalogs {}).await, "catalog_name\nlake");
    let schemas = |catalog: Option<&str>, like: Option<&str>| CommandGetDbSchemas {
        catalog: catalog.map(Into::into),
        db_schema_filter_pattern: like.map(Into::into),
    };
    let head = "catalog_name,db_schema_name";
    assert_eq!(ask(&mut client, &schemas(None, None)).await, format!("{head}\nlake,information_schema\nlake,main\nlake,sales"));
    assert_eq!(ask(&mut client, &schemas(Some("lake"), Some("s%"))).await, format!("{head}\nlake,sales"));
    assert_eq!(ask(&mut client, &schemas(Some(""), None)).await, head, "all of ours have a catalog");
    assert_eq!(ask(&mut client, &schemas(Some("LAKE"), None)).await, head, "the filter is exact");
    let tables = |like: &str, types: &[&str]| CommandGetTables {
        table_name_filter_pattern: Some(like.into()),
        table_types: types.iter().map(ToString::to_string).collect(),
        ..CommandGetTables::default()
    };
    let head = "catalog_name,db_schema_name,table_name,table_type";
    assert_eq!(
        ask(&mut client, &tables("%", &[])).await,
        format!("{head}\nlake,main,a_c,TABLE\nlake,main,abc,TABLE\nlake,sales,orders,TABLE")
    );
    assert_eq!(ask(&mut client, &tables("a_c", &[])).await, format!("{head}\nlake,main,a_c,TABLE\nlake,main,abc,TABLE"));
    assert_eq!(ask(&mut client, &tables("a\\_c", &["TABLE"])).await, format!("{head}\nlake,main,a_c,TABLE"), "an escaped underscore");
    assert_eq!(ask(&mut client, &tables("%", &["VIEW"])).await, head);
    assert_eq!(ask(&mut client, &CommandGetTableTypes {}).await, "table_type\nTABLE\nVIEW");
}

#[tokio::test]
async fn tables_come_with_their_columns() {
    let server = Running::start().await;
    let mut client = with_tables(&server).await;
    let asked = CommandGetTables { table_name_filter_pattern: Some("a\\_c".into()), include_schema: true, ..CommandGetTables::default() };
    let (schema, batches) = client.rows(wrapped(&asked)).await.unwrap();
    assert_eq!(schema.field(4).data_type(), &DataType::Binary);
    let columns = decoded(batches[0].column(4).as_binary::<i32>().value(0).to_vec().into());
    let (statement, _) = client.rows(crate::statement("SELECT * FROM a_c")).await.unwrap();
    let types = |fields: &arrow::datatypes::Fields| fields.iter().map(|f| (f.name().clone(), f.data_type().clone())).collect::<Vec<_>>();
    assert_eq!(types(columns.fields()), types(statement.fields()), "a table's columns are those of a query of it");
    let said = |column: usize, key: &str| columns.field(column).metadata().get(&format!("ARROW:FLIGHT:SQL:{key}")).cloned();
    assert_eq!(said(1, "TYPE_NAME").as_deref(), Some("DECIMAL(10,2)"));
    assert_eq!((said(1, "PRECISION").as_deref(), said(1, "SCALE").as_deref()), (Some("10"), Some("2")));
    assert_eq!(said(2, "TYPE_NAME").as_deref(), Some("TIMESTAMP"));
}

#[tokio::test]
async fn keys_are_empty_streams_with_a_schema() {
    let server = Running::start().await;
    let mut client = server.client().await;
    assert_eq!(
        ask(&mut client, &CommandGetPrimaryKeys { table: "t".into(), ..Default::default() }).await,
        "catalog_name,db_schema_name,table_name,column_name,key_name,key_sequence"
    );
    let foreign = ask(&mut client, &CommandGetImportedKeys { table: "t".into(), ..Default::default() }).await;
    assert_eq!(foreign.split(',').count(), 13);
    assert_eq!(ask(&mut client, &CommandGetExportedKeys::default()).await, foreign);
    assert_eq!(ask(&mut client, &CommandGetCrossReference::default()).await, foreign);
}

#[tokio::test]
async fn the_server_says_what_it_is() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let (schema, batches) = client.rows(wrapped(&CommandGetSqlInfo { info: vec![0, 8] })).await.unwrap();
    assert_eq!(schema.field(0).data_type(), &DataType::UInt32);
    assert_eq!(batches[0].num_rows(), 2);
    let values = batches[0].column(1).as_any().downcast_ref::<arrow::array::UnionArray>().unwrap();
    assert_eq!(values.value(0).as_string::<i32>().value(0), "asof");
    let (_, all) = client.rows(wrapped(&CommandGetSqlInfo { info: vec![] })).await.unwrap();
    assert_eq!(all[0].num_rows(), 12 + 2 + 77);
    let (schema, types) = client.rows(wrapped(&CommandGetXdbcTypeInfo { data_type: None })).await.unwrap();
    assert_eq!(schema.fields().len(), 19);
    let (_, dates) = client.rows(wrapped(&CommandGetXdbcTypeInfo { data_type: Some(91) })).await.unwrap();
    assert!(types[0].num_rows() > 10 && dates[0].num_rows() == 1);
}
