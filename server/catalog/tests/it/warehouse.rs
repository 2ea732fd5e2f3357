//! Names → folders.

use std::path::Path;
use std::sync::Arc;

use asof_catalog::{Error, TableName, Warehouse};
use asof_storage::Error as StorageError;
use tempfile::TempDir;

use crate::Fixed;

fn open(root: &Path) -> Warehouse {
    Warehouse::open(root.to_str().unwrap(), "lake", Fixed::env().0).unwrap()
}

fn make(root: &Path, table: &str) {
    std::fs::create_dir_all(root.join(table).join("_delta_log")).unwrap();
}

fn name(table: &str) -> TableName {
    TableName::new("lake", "main", table)
}

fn warehouse() -> (TempDir, Warehouse) {
    let root = tempfile::tempdir().unwrap();
    for table in ["main/orders", "main/Customers", "sales/orders", "sales/a b", "deep/down/here/t", "loose"] {
        make(root.path(), table);
    }
    std::fs::create_dir_all(root.path().join("main/no_table")).unwrap();
    std::fs::create_dir_all(root.path().join("empty")).unwrap();
    std::fs::create_dir_all(root.path().join(".hidden")).unwrap();
    std::fs::write(root.path().join("file"), "").unwrap();
    let warehouse = open(root.path());
    (root, warehouse)
}

#[tokio::test]
async fn schemas_and_tables_are_folders() {
    let (root, warehouse) = warehouse();
    warehouse.secret().await.unwrap();
    assert_eq!(warehouse.schemas().await.unwrap(), ["deep", "empty", "main", "sales"]);
    let tables = async |schema| warehouse.tables(schema).await.unwrap().into_iter().map(|t| t.name.table).collect::<Vec<_>>();
    assert_eq!(tables("main").await, ["Customers", "orders"]);
    assert_eq!(tables("empty").await, [""; 0]);
    make(root.path(), "empty/at_once");
    assert_eq!(tables("empty").await, ["at_once"]);
    assert!(matches!(warehouse.tables("nowhere").await, Err(Error::UnknownSchema { .. })));
    assert!(matches!(warehouse.tables("loose").await, Err(Error::UnknownSchema { .. })), "a table is no schema");
    let fresh = tempfile::tempdir().unwrap();
    let empty = open(&fresh.path().join("made/when/absent"));
    assert_eq!(empty.schemas().await.unwrap(), ["main"]);
    assert_eq!(empty.tables("main").await.unwrap(), []);
}

#[tokio::test]
async fn unknown_names_are_answered_with_what_exists() {
    let (_root, warehouse) = warehouse();
    async fn check(warehouse: &Warehouse, catalog: &str, schema: &str, table: &str, expect: &str) {
        let error = warehouse.table(&TableName::new(catalog, schema, table)).await.unwrap_err().to_string();
        assert!(error.contains(expect), "{catalog}.{schema}.{table}: {error}");
    }
    check(&warehouse, "lake", "main", "oders", "did you mean \"orders\"?").await;
    check(&warehouse, "lake", "main", "zzzz", "holds Customers, orders").await;
    check(&warehouse, "lake", "main", "no_table", "no table or view").await;
    check(&warehouse, "lake", "empty", "orders", "in schema \"main\": lake.main.orders").await;
    check(&warehouse, "lake", "empty", "q", "holds no tables").await;
    check(&warehouse, "lake", "main", "loose", "delta.`loose`").await;
    check(&warehouse, "lake", "slaes", "orders", "did you mean \"sales\"?").await;
    check(&warehouse, "lake", "q", "orders", "deep, empty, main, sales").await;
    check(&warehouse, "pond", "main", "orders", "\"lake\"").await;
    check(&warehouse, "lake", "main", "../sales/orders", "no table or view").await;
    check(&warehouse, "lake", "..", "x", "no schema").await;
    check(&warehouse, "lake", "_asof", "x", "no schema").await;
}

#[tokio::test]
async fn a_name_in_another_case_finds_the_one_folder() {
    let (root, warehouse) = warehouse();
    assert_eq!(warehouse.table(&name("customers")).await.unwrap().name(), "lake.main.Customers");
    make(root.path(), "main/CUSTOMERS");
    assert!(warehouse.table(&name("customers")).await.is_err(), "two of them");
    assert_eq!(warehouse.table(&name("CUSTOMERS")).await.unwrap().name(), "lake.main.CUSTOMERS");
}

#[tokio::test]
async fn one_folder_has_one_handle_until_it_is_replaced() {
    let (root, warehouse) = warehouse();
    let by_name = warehouse.table(&name("orders")).await.unwrap();
    let absolute = root.path().canonicalize().unwrap().join("main/orders");
    for path in ["main/orders", "./main//orders/", absolute.to_str().unwrap(), &format!("file://{}", absolute.display())] {
        assert!(Arc::ptr_eq(&by_name, &warehouse.table_at("delta", path).await.unwrap()), "{path}");
    }
    warehouse.drop_table(&name("orders")).await.unwrap();
    assert!(matches!(warehouse.table(&name("orders")).await, Err(Error::UnknownTable { .. })));
    make(root.path(), "main/orders");
    let made_again = warehouse.table(&name("orders")).await.unwrap();
    assert!(!Arc::ptr_eq(&by_name, &made_again));
    std::fs::rename(root.path().join("main/orders"), root.path().join("main/old")).unwrap();
    make(root.path(), "main/orders");
    assert!(!Arc::ptr_eq(&made_again, &warehouse.table(&name("orders")).await.unwrap()), "somebody else replaced it");
}

#[tokio::test]
async fn a_table_keeps_the_handle_it_was_created_with() {
    let (root, warehouse) = warehouse();
    let creating = warehouse.create(&name("new")).await.unwrap();
    assert_eq!(creating.name(), "lake.main.new");
    make(root.path(), "main/new");
    assert!(Arc::ptr_eq(&creating, &warehouse.table(&name("new")).await.unwrap()));
    assert!(matches!(warehouse.create(&TableName::new("lake", "nowhere", "t")).await, Err(Error::UnknownSchema { .. })));
    for bad in ["", "..", "a/b", "_delta_log", "_asof"] {
        assert!(matches!(warehouse.create(&name(bad)).await, Err(Error::InvalidName(_))), "{bad}");
    }
}

#[tokio::test]
async fn paths_stay_inside() {
    let (root, warehouse) = warehouse();
    assert_eq!(warehouse.table_at("delta", "deep/down/here/t").await.unwrap().name(), "delta.`deep/down/here/t`");
    assert_eq!(warehouse.table_at("DELTA", "loose").await.unwrap().name(), "delta.`loose`");
    for bad in ["../x", "/etc", "s3://b/t", "", "_asof/keys", "deep/../main/orders"] {
        assert!(matches!(warehouse.table_at("delta", bad).await, Err(Error::InvalidName(_))), "{bad}");
    }
    for none in ["main", "nowhere", "file", "file/x", "main/orders/_delta_log"] {
        let got = warehouse.table_at("delta", none).await;
        assert!(matches!(got, Err(Error::Storage(StorageError::NotATable { .. }))), "{none}: {got:?}");
    }
    assert!(matches!(warehouse.table_at("iceberg", "loose").await, Err(Error::Storage(StorageError::Unsupported { .. }))));
    let outside = tempfile::tempdir().unwrap();
    make(outside.path(), "t");
    std::os::unix::fs::symlink(outside.path().join("t"), root.path().join("main/link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("schema_link")).unwrap();
    for link in ["main/link", "schema_link/t"] {
        assert!(matches!(warehouse.table_at("delta", link).await, Err(Error::InvalidName(_))), "{link}");
    }
    assert!(matches!(warehouse.table(&name("link")).await, Err(Error::InvalidName(_))));
    assert!(matches!(warehouse.table(&TableName::new("lake", "schema_link", "t")).await, Err(Error::UnknownSchema { .. })));
    assert!(!warehouse.tables("main").await.unwrap().iter().any(|t| t.name.table == "link"));
}

#[tokio::test]
async fn the_root_may_be_a_link() {
    let (root, _) = warehouse();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("w");
    std::os::unix::fs::symlink(root.path(), &link).unwrap();
    let warehouse = Warehouse::open(&format!("file://{}", link.display()), "lake", Fixed::env().0).unwrap();
    assert!(warehouse.table_at("delta", link.join("loose").to_str().unwrap()).await.is_ok());
    assert!(warehouse.table_at("delta", root.path().canonicalize().unwrap().join("loose").to_str().unwrap()).await.is_ok());
    assert!(Warehouse::open("s3://bucket/x", "lake", Fixed::env().0).is_err());
}

#[tokio::test]
async fn schemas_are_made_and_dropped() {
    let (root, warehouse) = warehouse();
    assert!(warehouse.create_schema("new", false).await.unwrap());
    assert!(matches!(warehouse.create_schema("new", false).await, Err(Error::AlreadyExists { .. })));
    assert!(matches!(warehouse.create_schema("NEW", false).await, Err(Error::AlreadyExists { .. })));
    assert!(!warehouse.create_schema("new", true).await.unwrap());
    assert!(!warehouse.create_schema("main", true).await.unwrap());
    assert!(matches!(warehouse.create_schema("../out", false).await, Err(Error::InvalidName(_))));
    warehouse.drop_schema("new", false).await.unwrap();
    assert!(matches!(warehouse.drop_schema("new", false).await, Err(Error::UnknownSchema { .. })));
    assert!(matches!(warehouse.drop_schema("main", true).await, Err(Error::InvalidName(_))));
    let Err(Error::NotEmpty { tables, .. }) = warehouse.drop_schema("sales", false).await else { panic!("it holds tables") };
    assert_eq!(tables, ["a b", "orders"]);
    warehouse.drop_schema("sales", true).await.unwrap();
    assert!(!root.path().join("sales").exists());
    assert!(matches!(warehouse.drop_schema("deep", true).await, Err(Error::NotEmpty { .. })), "other folders stay");
    assert!(root.path().join("deep/down/here/t/_delta_log").exists());
}

#[tokio::test]
async fn a_dropped_table_can_come_back() {
    let (root, warehouse) = warehouse();
    std::fs::write(root.path().join("main/orders/_delta_log/0.json"), "kept").unwrap();
    warehouse.drop_table(&name("orders")).await.unwrap();
    assert!(!root.path().join("main/orders").exists());
    let dropped: Vec<_> = std::fs::read_dir(root.path().join("_asof/dropped/main/orders")).unwrap().collect();
    let folder = dropped[0].as_ref().unwrap().path();
    assert!(folder.file_name().unwrap().to_str().unwrap().starts_with("1700000000000-"));
    assert_eq!(std::fs::read_to_string(folder.join("_delta_log/0.json")).unwrap(), "kept");
    make(root.path(), "main/orders");
    warehouse.drop_table(&name("orders")).await.unwrap();
    assert_eq!(std::fs::read_dir(root.path().join("_asof/dropped/main/orders")).unwrap().count(), 2);
    assert!(matches!(warehouse.drop_table(&name("orders")).await, Err(Error::UnknownTable { .. })));
}

#[tokio::test]
async fn all_servers_of_a_warehouse_share_one_key() {
    let (root, warehouse) = warehouse();
    let (env, clock) = Fixed::env();
    let other = Warehouse::open(root.path().to_str().unwrap(), "lake", env).unwrap();
    asof_storage::Entropy::number(&*clock);
    let (a, b) = futures::join!(warehouse.secret(), other.secret());
    assert_eq!(a.unwrap().bytes(), b.unwrap().bytes());
    assert_eq!(open(root.path()).secret().await.unwrap().bytes(), warehouse.secret().await.unwrap().bytes());
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(root.path().join("_asof/keys")).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "others cannot look into it");
    assert!(!format!("{:?}", warehouse.secret().await.unwrap()).contains(char::is_numeric));
    std::fs::write(root.path().join("_asof/keys/signing"), "short").unwrap();
    assert!(warehouse.secret().await.unwrap_err().to_string().contains("5 bytes"));
}
