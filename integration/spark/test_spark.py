"""What asof writes, Spark reads, at every version; what Spark then writes, asof reads."""

import pyarrow as pa
import pytest

import golden
from asofd import execute, one, query, rows


def spark_rows(spark, path, schema: pa.Schema, version: int | None = None) -> pa.Table:
    selector = "" if version is None else f" VERSION AS OF {version}"
    found = spark.sql(f"SELECT * FROM delta.`{path}`{selector}").toArrow()
    return found.cast(schema) if found.column_names == schema.names else found


def agree(spark, server, connection, table: str) -> None:
    """Every version, its rows and its place in the history."""
    path = server.warehouse / "main" / table
    history = query(connection, f"DESCRIBE HISTORY {table}")
    for version in history.column("version").to_pylist():
        expected = query(connection, f"SELECT * FROM {table} VERSION AS OF {version}")
        golden.same_rows(spark_rows(spark, path, expected.schema, version), expected)
    told = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    columns = ("version", "timestamp", "operation", "operationParameters", "readVersion", "isolationLevel", "isBlindAppend", "operationMetrics", "engineInfo")
    for have, row in zip(golden.records(history), told, strict=True):
        want = {column: row[column] for column in columns}
        want["timestamp"] = want["timestamp"].strftime("%Y-%m-%dT%H:%M:%S.") + f"{want['timestamp'].microsecond // 1000:03d}Z"
        assert {column: have[column] for column in columns} == want


def test_types(spark, server, connection):
    execute(
        connection,
        "CREATE TABLE types (id INT, b TINYINT, s SMALLINT, l BIGINT, f FLOAT, d DOUBLE, m DECIMAL(38,10), str STRING, bin BINARY, bool BOOLEAN, "
        "dt DATE, ts TIMESTAMP, tn TIMESTAMP_NTZ, st STRUCT<x: INT, y: STRING>, arr ARRAY<BIGINT>, mp MAP<STRING, DOUBLE>)",
    )
    execute(
        connection,
        "INSERT INTO types VALUES (1, -128, -32768, -9223372036854775808, -1.5, -1e308, -0.0000000001, '', X'', false, DATE'0001-01-01', "
        "TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP_NTZ'0001-01-01 00:00:00', named_struct('x', 1, 'y', 'one'), array(1, 2), map('k', 1.5D)), "
        "(2, 127, 32767, 9223372036854775807, 1.5, 1e308, 9999999999999999999999999999.9999999999, '日本語', X'00FF', true, DATE'9999-12-31', "
        "TIMESTAMP'9999-12-31 23:59:59.999999', TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', NULL, array(NULL), map('a', NULL)), "
        "(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    agree(spark, server, connection, "types")


def test_changes(spark, server, connection):
    execute(connection, "CREATE TABLE t (id BIGINT, v STRING, price DECIMAL(10,2), day DATE) PARTITIONED BY (day)")
    execute(
        connection,
        "INSERT INTO t SELECT id, concat('v', id), id * 1.25, CASE WHEN id % 3 = 0 THEN NULL ELSE DATE'2026-01-01' END FROM range(0, 200)",
    )
    execute(connection, "DELETE FROM t WHERE id % 7 = 0")
    execute(connection, "UPDATE t SET v = 'changed', price = price + 1 WHERE id % 5 = 0")
    execute(connection, "DELETE FROM t WHERE day IS NULL")
    query(connection, "RESTORE TABLE t TO VERSION AS OF 3")
    execute(connection, "CREATE OR REPLACE TABLE t AS SELECT id, price FROM t WHERE id > 150")
    execute(connection, "INSERT INTO t VALUES (1000, NULL)")
    agree(spark, server, connection, "t")


def test_partition_values(spark, server, connection):
    execute(connection, "CREATE TABLE p (id INT, p STRING) PARTITIONED BY (p)")
    with connection.cursor() as cursor:
        for number, value in enumerate(["a b", "50%", "a/b", "k=v", "x:y", "日本語", "", None, "..", "%20", "new\nline"]):
            cursor.execute("INSERT INTO p VALUES (?, ?)", (number, value))
    agree(spark, server, connection, "p")


def test_checkpoints(spark, server, connection):
    execute(connection, "CREATE TABLE c (n INT) TBLPROPERTIES ('delta.checkpointInterval' = '10')")
    for n in range(22):
        execute(connection, f"INSERT INTO c VALUES ({n})")
    agree(spark, server, connection, "c")


def test_spark_goes_on(spark, server, connection):
    """Commits of both in turn on one table, deletion vectors of both among them."""
    execute(connection, "CREATE TABLE both (id BIGINT, who STRING)")
    path = server.warehouse / "main" / "both"
    execute(connection, "INSERT INTO both SELECT id, 'asof' FROM range(0, 50)")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 10 = 0")
    assert one(connection, "SELECT count(*) FROM both") == 45
    execute(connection, "DELETE FROM both WHERE id % 10 = 1")
    spark.sql(f"UPDATE delta.`{path}` SET who = 'spark' WHERE id % 10 = 2")
    execute(connection, "UPDATE both SET who = 'asof again' WHERE id % 10 = 2 AND id > 20")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (100, 'spark')")
    assert rows(connection, "SELECT who, count(*) FROM both GROUP BY who ORDER BY who") == [("asof", 35), ("asof again", 3), ("spark", 3)]
    metrics = spark.sql(f"RESTORE TABLE delta.`{path}` TO VERSION AS OF 1").collect()[0].asDict()
    assert metrics["num_of_files_after_restore"] >= 1
    assert one(connection, "SELECT count(*) FROM both WHERE who = 'asof'") == 50
    expected = query(connection, "SELECT * FROM both")
    golden.same_rows(spark_rows(spark, path, expected.schema), expected)


@pytest.mark.parametrize("property", ["delta.enableDeletionVectors", "delta.enableChangeDataFeed", "delta.enableInCommitTimestamps"])
def test_features_made_by_asof(spark, server, connection, property):
    table = property.split(".")[1].lower()
    execute(connection, f"CREATE TABLE {table} (id INT, v STRING) TBLPROPERTIES ('{property}' = 'true')")
    execute(connection, f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    execute(connection, f"DELETE FROM {table} WHERE id = 2")
    execute(connection, f"UPDATE {table} SET v = 'x' WHERE id = 3")
    agree(spark, server, connection, table)
