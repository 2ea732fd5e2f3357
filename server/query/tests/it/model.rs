//! Random statements against a model in memory: a table must have the model's rows at every version, whichever way its rows are changed.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::dml::Server;

/// A row: `k`, `v`, `p`.
type Row = (i64, Option<i64>, &'static str);

const PARTITIONS: [&str; 3] = ["a", "b c", "d/e"];

#[derive(Clone, Copy, Debug)]
enum Filter {
    /// `k % m = r`.
    Modulo(i64, i64),
    /// `v < c`: unknown where v is NULL.
    Less(i64),
    /// `v IS NULL`.
    Null,
    /// `p = …`.
    Partition(usize),
    All,
}

#[derive(Clone, Copy, Debug)]
enum Turn {
    Insert(i64),
    Delete(Filter),
    /// `v = v + n`.
    Add(i64, Filter),
    /// `p = …`: rows move to another partition.
    Move(usize, Filter),
    Overwrite(i64),
    /// New rows for those of a partition.
    Replace(usize, i64),
    /// To the version so many before.
    Restore(usize),
    /// Small files together, or (true) files with deletion vectors without them: the rows stay.
    Optimize(bool),
}

impl Filter {
    fn sql(self) -> String {
        match self {
            Self::Modulo(m, r) => format!("k % {m} = {r}"),
            Self::Less(c) => format!("v < {c}"),
            Self::Null => "v IS NULL".to_owned(),
            Self::Partition(at) => format!("p = '{}'", PARTITIONS[at]),
            Self::All => "true".to_owned(),
        }
    }

    fn selects(self, (k, v, p): &Row) -> bool {
        match self {
            Self::Modulo(m, r) => k % m == r,
            Self::Less(c) => v.is_some_and(|v| v < c),
            Self::Null => v.is_none(),
            Self::Partition(at) => *p == PARTITIONS[at],
            Self::All => true,
        }
    }
}

fn new_rows(from: i64, count: i64) -> Vec<Row> {
    let row = |k: i64| (k, (k % 4 != 0).then_some(k % 10), PARTITIONS[usize::try_from(k % 3).unwrap()]);
    (from..from + count).map(row).collect()
}

fn values(rows: &[Row]) -> String {
    let value = |v: &Option<i64>| v.map_or_else(|| "NULL".to_owned(), |v| v.to_string());
    rows.iter().map(|(k, v, p)| format!("({k}, {}, '{p}')", value(v))).collect::<Vec<_>>().join(", ")
}

/// The statement, and what the model becomes by it; `None` where nothing is committed.
fn apply(turn: Turn, next: &mut i64, versions: &[Vec<Row>]) -> (String, Option<Vec<Row>>) {
    let now = versions.last().unwrap();
    let changed = |rows: Vec<Row>, filter: Filter| now.iter().any(|row| filter.selects(row)).then_some(rows);
    match turn {
        Turn::Insert(count) => {
            let new = new_rows(*next, count);
            *next += count;
            (format!("INSERT INTO t VALUES {}", values(&new)), Some([now.clone(), new].concat()))
        }
        Turn::Overwrite(count) => {
            let new = new_rows(*next, count);
            *next += count;
            (format!("INSERT OVERWRITE t VALUES {}", values(&new)), Some(new))
        }
        Turn::Replace(at, count) => {
            let p = PARTITIONS[at];
            let new: Vec<Row> = new_rows(*next, count).into_iter().map(|(k, v, _)| (k, v, p)).collect();
            *next += count;
            let left: Vec<Row> = now.iter().filter(|row| row.2 != p).copied().collect();
            (format!("INSERT INTO t REPLACE WHERE p = '{p}' VALUES {}", values(&new)), Some([left, new].concat()))
        }
        Turn::Delete(filter) => {
            let left = now.iter().filter(|row| !filter.selects(row)).copied().collect();
            (format!("DELETE FROM t WHERE {}", filter.sql()), changed(left, filter))
        }
        Turn::Add(n, filter) => {
            let add = |row: &Row| if filter.selects(row) { (row.0, row.1.map(|v| v + n), row.2) } else { *row };
            (format!("UPDATE t SET v = v + {n} WHERE {}", filter.sql()), changed(now.iter().map(add).collect(), filter))
        }
        Turn::Move(to, filter) => {
            let to = PARTITIONS[to];
            let go = |row: &Row| if filter.selects(row) { (row.0, row.1, to) } else { *row };
            (format!("UPDATE t SET p = '{to}' WHERE {}", filter.sql()), changed(now.iter().map(go).collect(), filter))
        }
        Turn::Optimize(purge) => ((if purge { "REORG TABLE t APPLY (PURGE)" } else { "OPTIMIZE t" }).to_owned(), None),
        Turn::Restore(back) => {
            let version = (versions.len() - 1).saturating_sub(back);
            (format!("RESTORE t TO VERSION AS OF {version}"), Some(versions[version].clone()))
        }
    }
}

fn turn() -> impl Strategy<Value = Turn> {
    let filter = prop_oneof![
        (2_i64..5, 0_i64..3).prop_map(|(m, r)| Filter::Modulo(m, r % m)),
        (0_i64..12).prop_map(Filter::Less),
        Just(Filter::Null),
        (0_usize..3).prop_map(Filter::Partition),
        Just(Filter::All),
    ];
    prop_oneof![
        4 => (1_i64..9).prop_map(Turn::Insert),
        4 => filter.clone().prop_map(Turn::Delete),
        4 => (1_i64..9, filter.clone()).prop_map(|(n, f)| Turn::Add(n, f)),
        2 => (0_usize..3, filter).prop_map(|(to, f)| Turn::Move(to, f)),
        1 => (1_i64..9).prop_map(Turn::Overwrite),
        2 => (0_usize..3, 1_i64..9).prop_map(|(at, count)| Turn::Replace(at, count)),
        1 => (0_usize..5).prop_map(Turn::Restore),
        2 => any::<bool>().prop_map(Turn::Optimize),
    ]
}

fn lines(rows: &[Row]) -> Vec<String> {
    let mut lines: Vec<_> = rows.iter().map(|(k, v, p)| format!("{k}|{}|{p}", v.map_or("NULL".to_owned(), |v| v.to_string()))).collect();
    lines.sort();
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tables_have_the_models_rows_at_every_version(
        turns in prop::collection::vec(turn(), 1..14),
        (vectors, feed, partitioned, mapped) in any::<(bool, bool, bool, bool)>(),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).thread_stack_size(16 << 20).enable_all().build().unwrap();
        runtime.block_on(async {
            let server = Server::new();
            let partitioning = if partitioned { "PARTITIONED BY (p)" } else { "" };
            let mut properties = format!("'delta.enableDeletionVectors' = '{vectors}', 'delta.enableChangeDataFeed' = '{feed}'");
            if mapped {
                write!(properties, ", 'delta.columnMapping.mode' = 'name'").unwrap();
            }
            server.run(&format!("CREATE TABLE t (k BIGINT, v BIGINT, p STRING) {partitioning} TBLPROPERTIES ({properties})")).await;
            let mut versions: Vec<Vec<Row>> = vec![vec![]];
            let mut next = 1;
            for turn in &turns {
                let (sql, after) = apply(*turn, &mut next, &versions);
                server.run(&sql).await;
                versions.extend(after);
                if matches!(turn, Turn::Optimize(_)) {
                    // It commits where there is something to do.
                    versions.resize(server.versions("t"), versions.last().unwrap().clone());
                }
                assert_eq!(server.versions("t"), versions.len(), "{sql}");
                let mut found = server.rows("SELECT k, v, p FROM t").await;
                found.sort();
                assert_eq!(found, lines(versions.last().unwrap()), "{sql}");
            }
            for (version, rows) in versions.iter().enumerate() {
                let mut found = server.rows(&format!("SELECT k, v, p FROM t VERSION AS OF {version}")).await;
                found.sort();
                assert_eq!(found, lines(rows), "version {version}");
            }
        });
    }
}
