"""Tables shared with other engines: what they write is seen by the next statement, what asof writes they read."""

import datetime
import decimal
import shutil

import deltalake
import pyarrow as pa
import pytest

import golden
from asofd import execute, one, query, rows
from readers import delta_rs_rows, duckdb_rows


def both_read(path, expected: pa.Table, version: int | None = None) -> None:
    golden.same_rows(delta_rs_rows(path, expected.schema, version), expected)
    golden.same_rows(duckdb_rows(path, expected.schema, version), expected)


# --- foreign commits --------------------------------------------------------------------------------------------------------------


def test_a_foreign_table_is_there_at_once(server, connection, schema):
    path = server.warehouse / schema / "foreign"
    assert "foreign" not in {value for row in rows(connection, f"SHOW TABLES IN {schema}") for value in row}
    deltalake.write_deltalake(str(path), pa.table({"a": [1, 2]}))
    assert one(connection, "SELECT sum(a) FROM foreign") == 3
    assert "foreign" in {value for row in rows(connection, f"SHOW TABLES IN {schema}") for value in row}


def test_foreign_commits_are_seen_by_the_next_statement(server, connection, schema):
    path = str(server.warehouse / schema / "shared")
    deltalake.write_deltalake(path, pa.table({"a": [0]}))
    for n in range(1, 8):
        deltalake.write_deltalake(path, pa.table({"a": [n]}), mode="append")
        assert one(connection, "SELECT count(*) FROM shared") == n + 1
        before = deltalake.DeltaTable(path).version() - 1
        assert one(connection, f"SELECT count(*) FROM shared VERSION AS OF {before}") == n
        if n % 3 == 0:
            assert execute(connection, f"DELETE FROM shared WHERE a = {n}") == 1
            execute(connection, f"INSERT INTO shared VALUES ({n})")
            deltalake.DeltaTable(path).update(predicate="a = 0", updates={"a": "0"})


def test_a_foreign_overwrite_with_another_schema(server, connection, schema):
    path = str(server.warehouse / schema / "t")
    deltalake.write_deltalake(path, pa.table({"a": [1]}))
    assert rows(connection, "SELECT * FROM t") == [(1,)]
    deltalake.write_deltalake(path, pa.table({"b": ["x"], "c": [1.5]}), mode="overwrite", schema_mode="overwrite")
    assert rows(connection, "SELECT b, c FROM t") == [("x", 1.5)]
    assert rows(connection, "SELECT a FROM t VERSION AS OF 0") == [(1,)]


def test_a_table_dropped_and_made_again_behind_the_server(server, connection, schema):
    path = server.warehouse / schema / "t"
    for n in range(3):
        deltalake.write_deltalake(str(path), pa.table({"a": [n]}), mode="append")
    assert one(connection, "SELECT count(*) FROM t") == 3
    shutil.rmtree(path)
    for n in range(3):
        deltalake.write_deltalake(str(path), pa.table({"b": ["new"]}), mode="append")
    assert rows(connection, "SELECT DISTINCT b FROM t") == [("new",)]
    shutil.rmtree(path)
    deltalake.write_deltalake(str(path), pa.table({"c": [9]}))
    assert rows(connection, "SELECT c FROM t") == [(9,)]


def test_appends_of_both_in_turn(server, connection, schema):
    execute(connection, "CREATE TABLE t (who STRING, n INT)")
    path = str(server.warehouse / schema / "t")
    for n in range(5):
        execute(connection, f"INSERT INTO t VALUES ('asof', {n})")
        deltalake.write_deltalake(path, pa.table({"who": ["delta-rs"], "n": pa.array([n], pa.int32())}), mode="append")
    assert rows(connection, "SELECT who, count(*), sum(n) FROM t GROUP BY who ORDER BY who") == [("asof", 5, 10), ("delta-rs", 5, 10)]
    assert [row[0] for row in rows(connection, "DESCRIBE HISTORY t")] == list(range(10, -1, -1))


# --- what asof writes is read -----------------------------------------------------------------------------------------------------

ALL = (
    "CREATE TABLE t (id INT, b TINYINT, s SMALLINT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(38,10), n DECIMAL(9,2), str STRING, bin BINARY, "
    "bool BOOLEAN, dt DATE, ts TIMESTAMP, st STRUCT<x: INT, y: STRING>, arr ARRAY<BIGINT>, mp MAP<STRING, DOUBLE>)"
)
VALUES = [
    "(1, -128, -32768, -9223372036854775808, -1.5, -1e308, -0.0000000001, -9999999.99, '', X'', false, DATE'0001-01-01', "
    "TIMESTAMP'0001-01-01 00:00:00', named_struct('x', 1, 'y', 'one'), array(1, 2), map('k', 1.5D))",
    "(2, 127, 32767, 9223372036854775807, 1.5, 1e308, 9999999999999999999999999999.9999999999, 9999999.99, '日本語''\"\\', X'00FF', true, "
    "DATE'9999-12-31', TIMESTAMP'9999-12-31 23:59:59.999999', named_struct('x', NULL, 'y', NULL), array(NULL), map('a', NULL, 'b', 2.0D))",
    "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
]


def test_every_type_is_read_by_others(server, connection, schema):
    execute(connection, ALL)
    assert execute(connection, "INSERT INTO t VALUES " + ", ".join(VALUES)) == 3
    execute(connection, "INSERT INTO t SELECT id + 10, b, s, l, f, d, m, n, str, bin, bool, dt, ts, st, arr, mp FROM t")
    expected = query(connection, "SELECT * FROM t")
    assert expected.num_rows == 6
    both_read(server.warehouse / schema / "t", expected)


PARTITIONS = ["a b", "50%", "a/b", "k=v", "x:y", "üñ", "日本語", "", None, "..", "'quoted'", '"', "%20", "UPPER", "#", "?", "back\\slash", "new\nline"]


def test_partition_values_are_read_by_others(server, connection, schema):
    execute(connection, "CREATE TABLE t (id INT, p STRING, d DATE) PARTITIONED BY (p, d)")
    with connection.cursor() as cursor:
        for number, value in enumerate(PARTITIONS):
            cursor.execute("INSERT INTO t VALUES (?, ?, ?)", (number, value, datetime.date(2026, 1, 1)))
    # An empty partition value is NULL in Delta.
    told = [(number, value or None) for number, value in enumerate(PARTITIONS)]
    expected = query(connection, "SELECT * FROM t")
    assert sorted(zip(expected["id"].to_pylist(), expected["p"].to_pylist())) == told
    both_read(server.warehouse / schema / "t", expected)
    execute(connection, "DELETE FROM t WHERE p = 'a/b'")
    execute(connection, "UPDATE t SET id = id + 100 WHERE p IN ('50%', 'k=v')")
    expected = query(connection, "SELECT * FROM t")
    both_read(server.warehouse / schema / "t", expected)
    for number, value in told:
        where = "p IS NULL" if value is None else "p = ?"
        found = rows(connection, f"SELECT count(*) FROM t WHERE {where}", None if value is None else (value,))
        assert found == [({None: 2, "a/b": 0}.get(value, 1),)], value


def statements(seed: int, mapped: bool):
    """A session of many statements, the same for each seed; columns come, go and change where the table allows it."""
    random = __import__("random").Random(seed)
    number = iter(range(0, 1_000_000, 40))
    where = lambda: random.choice([f"id % {random.randint(2, 9)} = 1", f"v < 'v{random.randint(1, 99)}'", "p = 'b'", f"id > {random.randint(0, 300)}"])  # noqa: E731
    insert = lambda: f"INSERT INTO t (id, v, p) SELECT id, concat('v', id), substr('abc', CAST(id % 3 AS INT) + 1, 1) FROM range({(n := next(number))}, {n + 40})"  # noqa: E731
    yield insert()
    for turn in range(14):
        yield random.choice([insert, insert, lambda: f"DELETE FROM t WHERE {where()}", lambda: f"UPDATE t SET v = concat(v, '!') WHERE {where()}"])()
        if turn == 5:
            yield "ALTER TABLE t ADD COLUMN extra DOUBLE"
            yield f"UPDATE t SET extra = id / 4 WHERE {where()}"
        if turn == 8 and mapped:
            yield "ALTER TABLE t RENAME COLUMN v TO value"
            yield "ALTER TABLE t DROP COLUMN extra"
            yield "ALTER TABLE t RENAME COLUMN value TO v"
        if turn == 11:
            yield "TRUNCATE TABLE t" if seed % 2 else "INSERT OVERWRITE t (id, v, p) VALUES (1, 'v', 'a'), (2, NULL, 'b'), (3, 'w', NULL)"


@pytest.mark.parametrize("seed", range(8))
def test_every_version_of_a_session_is_read_by_others(server, connection, schema, seed):
    vectors, feed, mapped, partitioned = seed % 2 == 0, seed // 2 % 2 == 0, seed // 4 == 0, seed in (1, 2, 4, 7)
    properties = {"delta.enableDeletionVectors": vectors, "delta.enableChangeDataFeed": feed}
    shown = ", ".join(f"'{key}' = '{str(value).lower()}'" for key, value in properties.items())
    shown += ", 'delta.columnMapping.mode' = 'name'" if mapped else ""
    execute(connection, f"CREATE TABLE t (id BIGINT, v STRING, p STRING) {'PARTITIONED BY (p)' if partitioned else ''} TBLPROPERTIES ({shown})")
    for sql in statements(seed, mapped):
        execute(connection, sql)
    latest = one(connection, "SELECT max(version) FROM t.history")
    path = server.warehouse / schema / "t"
    for version in range(latest + 1):
        expected = query(connection, f"SELECT * FROM t VERSION AS OF {version}")
        golden.same_rows(delta_rs_rows(path, expected.schema, version), expected)
        # DuckDB gives NULL for partition values of tables with column mapping, those that Spark wrote too (golden table mapping_name).
        if not (mapped and partitioned):
            golden.same_rows(duckdb_rows(path, expected.schema, version), expected)
    if feed and not mapped:
        # Where whole files with deletion vectors go, the log itself tells which rows went; delta-rs misreads that.
        whole = one(connection, "SELECT min(version) FROM t.history WHERE operation = 'TRUNCATE' OR operationParameters['mode'] = 'Overwrite'")
        the_feed_tells_every_change(connection, path, whole - 1)


def the_feed_tells_every_change(connection, path, latest: int) -> None:
    """What delta-rs reads of the change feed turns each version into the next."""
    import collections

    table = deltalake.DeltaTable(str(path))
    changes = pa.table(table.load_cdf(starting_version=0, ending_version=latest).read_all()).to_pylist()
    held = collections.Counter()
    for version in range(latest + 1):
        for change in (change for change in changes if change["_commit_version"] == version):
            row = (change["id"], change["v"], change["p"])
            held[row] += {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}[change["_change_type"]]
        told = collections.Counter(rows(connection, f"SELECT id, v, p FROM t VERSION AS OF {version}"))
        assert +held == told, f"version {version}"


def test_every_version_is_read_by_others(server, connection, schema):
    execute(connection, "CREATE TABLE t (id INT, v STRING, price DECIMAL(10,2))")
    execute(connection, "INSERT INTO t SELECT id, concat('v', id), id * 1.25 FROM range(0, 200)")
    execute(connection, "DELETE FROM t WHERE id % 7 = 0")
    execute(connection, "UPDATE t SET v = 'changed', price = price + 1 WHERE id % 5 = 0")
    execute(connection, "DELETE FROM t WHERE id < 100")
    execute(connection, "INSERT INTO t VALUES (1000, NULL, NULL)")
    query(connection, "RESTORE TABLE t TO VERSION AS OF 3")
    execute(connection, "CREATE OR REPLACE TABLE t AS SELECT id, price FROM t WHERE id > 150")
    execute(connection, "DELETE FROM t")
    for version in range(9):
        expected = query(connection, f"SELECT * FROM t VERSION AS OF {version}")
        both_read(server.warehouse / schema / "t", expected, version)
    assert one(connection, "SELECT count(*) FROM t") == 0


def test_many_commits_with_checkpoints_are_read_by_others(server, connection, schema):
    execute(connection, "CREATE TABLE t (n INT) TBLPROPERTIES ('delta.checkpointInterval' = '10')")
    for n in range(25):
        execute(connection, f"INSERT INTO t VALUES ({n})")
    path = server.warehouse / schema / "t"
    for version in (9, 10, 11, 20, 25):
        expected = query(connection, f"SELECT * FROM t VERSION AS OF {version}")
        assert expected.num_rows == version
        both_read(path, expected, version)


def test_history_is_told_to_others(server, connection, schema):
    execute(connection, "CREATE TABLE t (a INT)")
    execute(connection, "INSERT INTO t VALUES (1), (2)")
    execute(connection, "DELETE FROM t WHERE a = 1")
    told = deltalake.DeltaTable(str(server.warehouse / schema / "t")).history()
    assert [commit["operation"] for commit in told] == ["DELETE", "WRITE", "CREATE TABLE"]
    assert all(commit["engineInfo"].startswith("asof/") for commit in told)


def test_constraints_of_others_are_kept(server, connection, schema):
    """A CHECK that delta-rs put on a table binds asof's writes too (NULL is a violation in Delta)."""
    path = str(server.warehouse / schema / "t")
    deltalake.write_deltalake(path, pa.table({"a": pa.array([1], pa.int64()), "m": pa.array([decimal.Decimal("1.10")], pa.decimal128(10, 2))}))
    deltalake.DeltaTable(path).alter.add_constraint({"positive": "a > 0"})
    execute(connection, "INSERT INTO t VALUES (2, 2.2)")
    for bad in ("(0, 1.0)", "(NULL, 1.0)"):
        with pytest.raises(Exception, match="positive"):
            execute(connection, f"INSERT INTO t VALUES {bad}")
    with pytest.raises(Exception, match="positive"):
        execute(connection, "UPDATE t SET a = -a")
    assert one(connection, "SELECT sum(a) FROM t") == 3
