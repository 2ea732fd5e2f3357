//! Whole statements.

use super::*;

/// `target [selector]` of each occurrence.
fn tables(sql: &str) -> String {
    match parse(sql) {
        Ok(statement) => {
            statement.tables.iter().map(|t| format!("{}{}", t.target, shown(t.selector.as_ref()))).collect::<Vec<_>>().join(" | ")
        }
        Err(error) => format!("! {error}"),
    }
}

fn shown(selector: Option<&Selector>) -> String {
    match selector {
        None => String::new(),
        Some(Selector::Version(expr)) => format!(" v {expr}"),
        Some(Selector::Timestamp(expr)) => format!(" t {expr}"),
        Some(Selector::CompactTimestamp(digits)) => format!(" @{digits}"),
        Some(Selector::Ref(name)) => format!(" ref {name}"),
    }
}

#[test]
fn every_spelling() {
    let check = |sql: &str, expect: &str| assert_eq!(tables(sql), expect, "{sql}");
    check("SELECT * FROM t VERSION AS OF 3", "t v 3");
    check("select * from T version as of 3 x where x.a = 1", "t v 3");
    check("SELECT * FROM t AS x VERSION AS OF 3 JOIN u ON x.a = u.a", "t v 3 | u");
    check("SELECT * FROM t x VERSION AS OF 3", "t v 3");
    check("SELECT * FROM t AS x (a, b) VERSION AS OF 3", "t v 3");
}
