"""What ADBC asks of a server beside queries: connecting, metadata, types, parameters, counts, errors."""

import datetime
import decimal
import re
import warnings

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pandas
import polars
import pyarrow as pa
import pyarrow.compute
import pytest

import golden
from asofd import execute, one, query, rows

UTC = datetime.timezone.utc


# --- connecting -------------------------------------------------------------------------------------------------------------------


def test_connect_as_the_dbapi_does_by_default(server):
    """Without autocommit=True the driver tries to open a transaction. It may warn that there are none, but it must not hang."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with flightsql.connect(server.uri) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1 AS x")
            assert cursor.fetchall() == [(1,)]


def test_info(golden_connection):
    info = golden_connection.adbc_get_info()
    assert info["vendor_name"] == "asof"
    assert info["vendor_version"]
    assert info["driver_name"]


def test_pandas_and_polars(golden_connection):
    frame = pandas.read_sql("SELECT d FROM golden.selectors ORDER BY d", golden_connection)
    assert frame["d"].tolist() == ["mon", "tue", "wed"]
    frame = polars.read_database("SELECT d FROM golden.selectors VERSION AS OF 2 ORDER BY d", golden_connection)
    assert frame["d"].to_list() == ["mon", "tue"]


def test_empty_result_has_its_schema(golden_connection):
    table = query(golden_connection, "SELECT * FROM golden.selectors VERSION AS OF 0")
    assert table.num_rows == 0
    assert table.schema.names == ["d"]


def test_execute_schema_agrees_with_the_stream(golden_connection):
    sql = "SELECT *, min(id) OVER () AS m FROM golden.all_types"
    with golden_connection.cursor() as cursor:
        told = cursor.adbc_execute_schema(sql)
        cursor.execute(sql)
        assert cursor.fetch_arrow_table().schema == told


def test_partitions(golden_connection):
    with golden_connection.cursor() as cursor:
        partitions, schema = cursor.adbc_execute_partitions("SELECT d FROM golden.selectors")
        assert len(partitions) == 1 and schema.names == ["d"]
        cursor.adbc_read_partition(partitions[0])
        assert sorted(cursor.fetchall()) == [("mon",), ("tue",), ("wed",)]


# --- metadata ---------------------------------------------------------------------------------------------------------------------


def objects(connection, **filters) -> dict:
    """get_objects as {schema: {table: [columns]}} of the catalog lake."""
    found = connection.adbc_get_objects(**filters).read_all().to_pylist()
    lake = [catalog for catalog in found if catalog["catalog_name"] == "lake"]
    assert len(lake) == 1, found
    return {
        schema["db_schema_name"]: {
            table["table_name"]: [column["column_name"] for column in table["table_columns"] or []]
            for table in schema["db_schema_tables"] or []
        }
        for schema in lake[0]["catalog_db_schemas"] or []
    }


def test_get_objects(golden_connection):
    assert golden_connection.adbc_get_objects(depth="catalogs").read_all().column("catalog_name").to_pylist() == ["lake"]
    assert {"golden", "main", "malformed"} <= set(objects(golden_connection, depth="db_schemas"))
    tables = objects(golden_connection, depth="tables", db_schema_filter="golden")
    assert set(tables) == {"golden"}
    assert set(tables["golden"]) == {case.path.name for case in golden.cases(malformed=False)}


def test_get_objects_with_columns(golden_connection):
    found = objects(golden_connection, depth="all", db_schema_filter="golden", table_name_filter="seed\\_001a\\_cities")
    assert found == {"golden": {"seed_001a_cities": ["city", "country", "population", "census_date"]}}


def test_get_objects_patterns(golden_connection):
    found = objects(golden_connection, depth="tables", db_schema_filter="golden", table_name_filter="seed%")
    assert set(found["golden"]) == {case.path.name for case in golden.cases() if case.id.startswith("seed_")}


def test_get_objects_shows_broken_tables_too(golden_connection):
    """One table that cannot be read must not hide the others."""
    found = objects(golden_connection, depth="all", db_schema_filter="malformed")
    assert "unknown_action" in found["malformed"]


def test_table_schema(golden_connection):
    schema = golden_connection.adbc_get_table_schema("all_types", catalog_filter="lake", db_schema_filter="golden")
    golden.same_schema(schema, golden.case("all_types").versions[5]["schema"])
    with pytest.raises(adbc_driver_manager.Error):
        golden_connection.adbc_get_table_schema("no_such_table", db_schema_filter="golden")


def test_table_types(golden_connection):
    assert "TABLE" in golden_connection.adbc_get_table_types()


def test_show_and_describe(golden_connection):
    assert ("lake",) in rows(golden_connection, "SHOW CATALOGS")
    assert "golden" in {row[0] for row in rows(golden_connection, "SHOW SCHEMAS")}
    assert "selectors" in {value for row in rows(golden_connection, "SHOW TABLES IN golden") for value in row}
    assert rows(golden_connection, "DESCRIBE golden.seed_001a_cities")[0][0] == "city"
    sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'golden' AND table_name = 'seed_001a_cities' ORDER BY ordinal_position"
    assert rows(golden_connection, sql) == [("city",), ("country",), ("population",), ("census_date",)]


# --- types ------------------------------------------------------------------------------------------------------------------------

TYPES = [
    ("TINYINT", "CAST(-128 AS TINYINT)", -128, pa.int8()),
    ("SMALLINT", "CAST(-32768 AS SMALLINT)", -32768, pa.int16()),
    ("INT", "CAST(-2147483648 AS INT)", -2147483648, pa.int32()),
    ("BIGINT", "CAST(-9223372036854775808 AS BIGINT)", -9223372036854775808, pa.int64()),
    ("FLOAT", "CAST(1.5 AS FLOAT)", 1.5, pa.float32()),
    ("DOUBLE", "CAST(4.9E-324 AS DOUBLE)", 5e-324, pa.float64()),
    ("DECIMAL(38,10)", "CAST('9999999999999999999999999999.9999999999' AS DECIMAL(38,10))", decimal.Decimal("9999999999999999999999999999.9999999999"), pa.decimal128(38, 10)),
    ("STRING", "'日本語 😀'", "日本語 😀", pa.string()),
    ("STRING", "'a''b'", "a'b", pa.string()),
    ("BINARY", "X'00FF00'", b"\x00\xff\x00", pa.binary()),
    ("BOOLEAN", "true", True, pa.bool_()),
    ("DATE", "DATE '0001-01-01'", datetime.date(1, 1, 1), pa.date32()),
    ("TIMESTAMP", "TIMESTAMP '9999-12-31 23:59:59.999999'", datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), pa.timestamp("us", "UTC")),
    ("TIMESTAMP_NTZ", "CAST('0001-01-01 00:00:00' AS TIMESTAMP_NTZ)", datetime.datetime(1, 1, 1), pa.timestamp("us")),
    ("ARRAY<INT>", "array(1, NULL, 3)", [1, None, 3], pa.list_(pa.int32())),
    ("STRUCT<a: INT, b: STRING>", "named_struct('a', 1, 'b', NULL)", {"a": 1, "b": None}, pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ("MAP<STRING, INT>", "map('k', 1)", [("k", 1)], pa.map_(pa.string(), pa.int32())),
]


@pytest.mark.parametrize("sql_type, literal, value, arrow", TYPES, ids=[f"{t[0]}:{t[1][:20]}" for t in TYPES])
def test_a_type_written_and_read(connection, schema, sql_type, literal, value, arrow):
    """CREATE with the type, INSERT a value and a NULL, read both; the stream's type is the table's."""
    execute(connection, f"CREATE TABLE t (k INT, x {sql_type})")
    assert execute(connection, f"INSERT INTO t VALUES (1, {literal}), (2, NULL)") == 2
    table = query(connection, "SELECT x FROM t ORDER BY k")
    assert golden.shape(table.schema.field("x").type) == golden.shape(arrow)
    assert table.column("x").to_pylist() == [value, None]
    assert one(connection, "SELECT count(x) FROM t") == 1


def test_no_view_or_dictionary_types_on_the_wire(golden_connection):
    table = query(golden_connection, "SELECT d, upper(d) AS u, d || 'x' AS c, count(*) AS n FROM golden.selectors GROUP BY d")
    assert [str(field.type) for field in table.schema] == ["string", "string", "string", "int64"]


# --- parameters -------------------------------------------------------------------------------------------------------------------


def test_parameters(golden_connection):
    sql = "SELECT city, population FROM golden.seed_001a_cities VERSION AS OF 2 WHERE city = ? AND population > ? ORDER BY population"
    assert rows(golden_connection, sql, ("Mumbai", 20500000)) == [("Mumbai", 21000000), ("Mumbai", 21500000)]
    sql = "SELECT count(*) FROM golden.seed_001a_cities VERSION AS OF 2 WHERE city = $2 OR city = $1"
    assert rows(golden_connection, sql, ("Tokyo", "Mumbai")) == [(6,)]


@pytest.mark.parametrize(
    "moment",
    [
        datetime.datetime(2026, 5, 6, 13, 0),
        datetime.datetime(2026, 5, 6, 13, 0, tzinfo=UTC),
        datetime.datetime(2026, 5, 6, 18, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=5, minutes=30))),
        "2026-05-06 13:00:00",
        "2026-05-06T13:00:00Z",
    ],
    ids=str,
)
@pytest.mark.parametrize("selector", ["TIMESTAMP AS OF ?", "FOR SYSTEM_TIME AS OF ?", "AT (TIMESTAMP => ?)"])
def test_a_moment_as_parameter(golden_connection, selector, moment):
    assert sorted(rows(golden_connection, f"SELECT d FROM golden.selectors {selector}", (moment,))) == [("mon",), ("tue",)]


def test_a_version_as_parameter(golden_connection):
    assert rows(golden_connection, "SELECT count(*) FROM golden.selectors VERSION AS OF ?", (1,)) == [(1,)]


def test_a_date_as_moment(golden_connection):
    assert rows(golden_connection, "SELECT count(*) FROM golden.selectors TIMESTAMP AS OF ?", (datetime.date(2026, 5, 6),)) == [(1,)]


def test_a_prepared_statement_runs_again_with_other_parameters(golden_connection):
    with golden_connection.cursor() as cursor:
        sql = "SELECT count(*) FROM golden.selectors VERSION AS OF ?"
        declared = cursor.adbc_prepare(sql)
        assert len(declared) == 1
        for version in (0, 1, 2, 3):
            cursor.execute(sql, (version,))
            assert cursor.fetchall() == [(version,)]


def test_parameters_of_dml(connection, schema):
    execute(connection, "CREATE TABLE t (id INT, name STRING, at TIMESTAMP, price DECIMAL(10,2))")
    moment = datetime.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (1, "one", moment, decimal.Decimal("1.25")))
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(2, "two", moment, decimal.Decimal("2.50")), (3, None, None, None)])
        cursor.execute("UPDATE t SET name = ? WHERE id = ?", ("zwei", 2))
        assert cursor.rowcount == 1
        cursor.execute("DELETE FROM t WHERE id = ?", (1,))
        assert cursor.rowcount == 1
    assert rows(connection, "SELECT * FROM t ORDER BY id") == [(2, "zwei", moment, decimal.Decimal("2.50")), (3, None, None, None)]


def test_a_batch_of_inserts_is_one_commit(connection):
    execute(connection, "CREATE TABLE batch (id INT NOT NULL, name STRING)")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO batch VALUES (?, ?)", [(n, f"row {n}") for n in range(300)])
        assert cursor.rowcount == 300
    assert rows(connection, "SELECT count(*), max(name) FROM batch") == [(300, "row 99")]
    with connection.cursor() as cursor, pytest.raises(adbc_driver_manager.Error):
        cursor.executemany("INSERT INTO batch (name, id) VALUES (?, ?)", [("a", 1), ("b", None), ("c", 3)])
    assert rows(connection, "SELECT count(*) FROM batch") == [(300,)]
    assert rows(connection, "SELECT version, operation FROM batch.history ORDER BY version") == [(0, "CREATE TABLE"), (1, "WRITE")]


def test_too_few_and_wrong_parameters(golden_connection):
    with pytest.raises(adbc_driver_manager.Error):
        rows(golden_connection, "SELECT * FROM golden.selectors WHERE d = ? AND d = ?", ("x",))
    with pytest.raises(adbc_driver_manager.Error):
        rows(golden_connection, "SELECT * FROM golden.selectors TIMESTAMP AS OF ?", ("yesterday",))
    assert rows(golden_connection, "SELECT 1") == [(1,)]


# --- DDL, counts ------------------------------------------------------------------------------------------------------------------


def test_counts_and_versions(connection, schema):
    execute(connection, "CREATE TABLE t (a INT, b STRING)")
    assert execute(connection, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)") == 3
    assert execute(connection, "INSERT INTO t SELECT a + 10, b FROM t") == 3
    assert execute(connection, "UPDATE t SET b = 'x' WHERE a > 10") == 3
    assert execute(connection, "DELETE FROM t WHERE b = 'x' AND a < 13") == 2
    assert execute(connection, "DELETE FROM t WHERE a = 1000") == 0
    assert sorted(rows(connection, "SELECT * FROM t"), key=repr) == [(1, "a"), (13, "x"), (2, "b"), (3, None)]
    assert [row[0] for row in rows(connection, "DESCRIBE HISTORY t")] == [4, 3, 2, 1, 0]
    assert [one(connection, f"SELECT count(*) FROM t VERSION AS OF {n}") for n in range(5)] == [0, 3, 6, 6, 4]


def test_a_statement_runs_once(connection, schema):
    """`cursor.execute` of DML prepares, plans, executes; only one of these may write."""
    execute(connection, "CREATE TABLE t (a INT)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
        cursor.execute("INSERT INTO t VALUES (?)", (2,))
        cursor.adbc_prepare("INSERT INTO t VALUES (3)")
        cursor.adbc_execute_schema("SELECT * FROM t")
    assert sorted(rows(connection, "SELECT a FROM t")) == [(1,), (2,)]
    assert [row[0] for row in rows(connection, "DESCRIBE HISTORY t")] == [2, 1, 0]


def test_null_comparison_keeps_rows(connection, schema):
    """DELETE WHERE x = 'a' must not take the rows where x is NULL."""
    execute(connection, "CREATE TABLE t (x STRING)")
    execute(connection, "INSERT INTO t VALUES ('a'), ('b'), (NULL)")
    assert execute(connection, "DELETE FROM t WHERE x = 'a'") == 1
    assert execute(connection, "DELETE FROM t WHERE NOT x = 'c'") == 1
    assert rows(connection, "SELECT x FROM t") == [(None,)]


def test_ddl(connection, schema):
    execute(connection, "CREATE TABLE t (a INT NOT NULL, p STRING) USING delta PARTITIONED BY (p) TBLPROPERTIES ('x.y' = 'z')")
    execute(connection, "CREATE TABLE IF NOT EXISTS t (other STRING)")
    with pytest.raises(adbc_driver_manager.Error) as caught:
        execute(connection, "CREATE TABLE t (other STRING)")
    assert caught.value.status_code == adbc_driver_manager.AdbcStatusCode.ALREADY_EXISTS, str(caught.value)
    with pytest.raises(adbc_driver_manager.Error, match="a"):
        execute(connection, "INSERT INTO t VALUES (NULL, 'x')")
    execute(connection, "INSERT INTO t VALUES (1, 'x'), (2, 'y z'), (3, NULL)")
    execute(connection, "CREATE OR REPLACE TABLE t AS SELECT p, count(*) AS n FROM t GROUP BY p")
    assert sorted(rows(connection, "SELECT * FROM t"), key=repr) == [("x", 1), ("y z", 1), (None, 1)]
    assert sorted(rows(connection, "SELECT * FROM t VERSION AS OF 1")) == [(1, "x"), (2, "y z"), (3, None)]
    execute(connection, "DROP TABLE t")
    execute(connection, "DROP TABLE IF EXISTS t")
    with pytest.raises(adbc_driver_manager.Error) as caught:
        query(connection, "SELECT * FROM t")
    assert caught.value.status_code == adbc_driver_manager.AdbcStatusCode.NOT_FOUND
    execute(connection, "CREATE TABLE t (again INT)")
    assert rows(connection, "SELECT * FROM t") == []
    assert [row[0] for row in rows(connection, "DESCRIBE HISTORY t")] == [0]


def test_create_schema_is_seen(server, connection):
    execute(connection, "CREATE SCHEMA just_made")
    execute(connection, "CREATE SCHEMA IF NOT EXISTS just_made")
    with server.connect() as other:
        assert "just_made" in {row[0] for row in rows(other, "SHOW SCHEMAS")}


# --- errors -----------------------------------------------------------------------------------------------------------------------

STATUS = adbc_driver_manager.AdbcStatusCode
ERRORS = [
    ("SELECT * FROM golden.selector", STATUS.NOT_FOUND, "selectors"),
    ("SELECT * FROM nowhere.t", STATUS.NOT_FOUND, "nowhere"),
    ("SELECT * FROM golden.selectors VERSION AS OF 9", STATUS.NOT_FOUND, r"\b9\b.*\b3\b"),
    ("SELECT nope FROM golden.selectors", STATUS.INVALID_ARGUMENT, "nope"),
    ("SELEC 1", STATUS.INVALID_ARGUMENT, "(?i)line 1"),
    ("SELECT *\n  FROM golden.selectors\n WHERE (", STATUS.INVALID_ARGUMENT, "(?i)line 3"),
    ("SELECT 1; SELECT 2", STATUS.INVALID_ARGUMENT, ""),
    ("SELECT no_such_function(1)", STATUS.INVALID_ARGUMENT, "no_such_function"),
    ("SELECT CAST('x' AS INT)", STATUS.INVALID_ARGUMENT, "x"),
    ("SELECT * FROM golden.future_reader", STATUS.NOT_IMPLEMENTED, "futureReader"),
    ("SELECT * FROM golden.selectors TIMESTAMP AS OF '2999-01-01'", STATUS.NOT_FOUND, "2026-05-07"),
]


@pytest.mark.parametrize("sql, status, words", ERRORS, ids=[error[0][:60] for error in ERRORS])
def test_error_says_what_and_the_connection_goes_on(golden_connection, sql, status, words):
    with pytest.raises(adbc_driver_manager.Error) as caught:
        query(golden_connection, sql)
    text = str(caught.value)
    assert caught.value.status_code == status, text
    assert re.search(words, text, re.DOTALL), text
    assert "DataFusionError" not in text and "Some(" not in text, f"a debug dump: {text}"
    assert rows(golden_connection, "SELECT 1") == [(1,)]


# --- large results ----------------------------------------------------------------------------------------------------------------


def test_a_million_rows(golden_connection):
    with golden_connection.cursor() as cursor:
        cursor.execute("SELECT id AS n, id % 7 AS m, concat('row ', id) AS s FROM range(0, 1000000)")
        total = count = 0
        for batch in cursor.fetch_record_batch():
            count += batch.num_rows
            total += pa.compute.sum(batch.column(0)).as_py()
    assert (count, total) == (1_000_000, 499_999_500_000)


def test_a_dropped_stream_does_no_harm(golden_connection):
    for _ in range(5):
        with golden_connection.cursor() as cursor:
            cursor.execute("SELECT a.id FROM range(0, 100000) a CROSS JOIN range(0, 100000) b")
            reader = cursor.fetch_record_batch()
            reader.read_next_batch()
            reader.close()
    assert rows(golden_connection, "SELECT 1") == [(1,)]
