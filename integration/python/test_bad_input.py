"""Bad input: a typed error that says what was asked, no panic, nothing half-written, and the server answers the next query."""

import os

import adbc_driver_manager
import pytest

import golden
from asofd import execute, one, query, rows

STATUS = adbc_driver_manager.AdbcStatusCode


@pytest.fixture
def answering(golden_server):
    """A connection; when the test is over the server must still answer, on it and on a new one."""
    with golden_server.connect() as connection:
        yield connection
        assert golden_server.alive(), f"asofd died; its log ends:\n{golden_server.log_end()}"
        assert rows(connection, "SELECT 1") == [(1,)]
    with golden_server.connect() as connection:
        assert rows(connection, "SELECT 1") == [(1,)]
    assert "panicked" not in golden_server.log.read_text(errors="replace")


def refused(connection, sql: str, parameters=None) -> adbc_driver_manager.Error:
    with pytest.raises(adbc_driver_manager.Error) as caught:
        query(connection, sql, parameters)
    assert caught.value.status_code not in (STATUS.INTERNAL,), str(caught.value)[:500]
    return caught.value


# --- size and shape ---------------------------------------------------------------------------------------------------------------


def test_a_statement_of_5_mb(answering):
    """Either an answer or a refusal by size; a list this long is legal SQL."""
    sql = "SELECT count(*) FROM golden.selectors WHERE d IN ('mon'" + ", 'xxxxxxxxxxxx'" * 330_000 + ")"
    assert len(sql) > 5_000_000
    try:
        assert one(answering, sql) == 1
    except adbc_driver_manager.Error as error:
        assert error.status_code in (STATUS.INVALID_ARGUMENT, STATUS.INVALID_STATE, STATUS.UNKNOWN, STATUS.INTERNAL), error
        assert "large" in str(error) or "long" in str(error) or "limit" in str(error), str(error)[:300]


def test_a_literal_of_5_mb(answering):
    text = "x" * 5_000_000
    try:
        assert one(answering, f"SELECT length('{text}')") == 5_000_000
    except adbc_driver_manager.Error as error:
        assert len(str(error)) < 5_000, "an error must not repeat the statement"


@pytest.mark.parametrize("depth", [100, 10_000, 200_000])
@pytest.mark.parametrize(
    "opening, inner, closing",
    [
        ("SELECT " + "{(}", "1", "{)}"),
        ("SELECT * FROM " + "{(}", "SELECT 1", "{)}"),
        ("SELECT " + "{NOT }", "true", "{}"),
        ("SELECT " + "{- }", "1", "{}"),
        ("SELECT 1" + "{ + 1}", "", "{}"),
        ("SELECT " + "{CASE WHEN true THEN }", "1", "{ END}"),
        ("SELECT * FROM golden.selectors TIMESTAMP AS OF " + "{(}", "now()", "{)}"),
        ("SELECT " + "{abs(}", "1", "{)}"),
    ],
    ids=["parentheses", "subqueries", "not", "minus", "plus", "case", "selector", "functions"],
)
def test_deep_nesting(answering, depth, opening, inner, closing):
    def many(text):
        head, _, rest = text.partition("{")
        return head + rest.rstrip("}") * depth if rest else head

    sql = many(opening) + inner + many(closing)
    try:
        query(answering, sql)
    except adbc_driver_manager.Error as error:
        assert depth > 100 or error.status_code != STATUS.INTERNAL, str(error)[:300]
        assert len(str(error)) < 5_000


def test_many_columns_joins_and_unions(answering):
    assert query(answering, "SELECT " + ", ".join(f"{n} AS c{n}" for n in range(3000))).num_columns == 3000
    refusable = "SELECT 1" + " UNION ALL SELECT 1" * 500
    assert query(answering, refusable).num_rows == 501


@pytest.mark.parametrize(
    "sql",
    [
        "",
        ";",
        "-- nothing",
        "/* never closed",
        "SELECT 'never closed",
        'SELECT "never closed',
        "SELECT $$",
        "\x00",
        "SELECT \x00",
        "SELECT * FROM t VERSION AS OF",
        "SELECT * FROM golden.selectors VERSION AS OF 1 VERSION AS OF 2",
        "SELECT * FROM golden.selectors VERSION AS OF 9223372036854775808",
        "SELECT * FROM golden.selectors@v99999999999999999999",
        "SELECT * FROM golden.selectors@20261399000000000",
        "SELECT * FROM golden.selectors@x",
        "SELECT * FROM golden.selectors TIMESTAMP AS OF 'infinity'",
        "SELECT * FROM golden.selectors TIMESTAMP AS OF 1e300",
        "SELECT * FROM golden.selectors TIMESTAMP AS OF random()",
        "SELECT * FROM golden.selectors TIMESTAMP AS OF (SELECT d FROM golden.selectors)",
        "SELECT * FROM golden.selectors TIMESTAMP AS OF '0000-00-00'",
        "SELECT * FROM golden.selectors TIMESTAMP AS OF '+262143-01-01'",
        "SELECT * FROM golden.selectors AT (NOTHING => 1)",
        "SELECT * FROM golden.selectors BEFORE (STATEMENT => 'x')",
        "SELECT 1 / 0",
        "SELECT CAST('abc' AS BIGINT)",
        "SELECT (SELECT d FROM golden.selectors)",
        "INSERT INTO golden.selectors VALUES (1, 2)",
        "INSERT INTO golden.nowhere VALUES (1)",
        "DELETE FROM golden.selectors WHERE nope = 1",
        "UPDATE golden.selectors SET nope = 1",
        "UPDATE golden.selectors SET d = 1 / 0",
        "CREATE TABLE golden.x (a NOSUCHTYPE)",
        "CREATE TABLE golden.x (a INT, A INT)",
        "CREATE TABLE golden.x (a INT) PARTITIONED BY (b)",
        "CREATE TABLE golden.x (a INT) USING nosuchformat",
        "DROP TABLE golden.nowhere",
        "RESTORE TABLE golden.selectors TO VERSION AS OF 77",
        "RESTORE TABLE golden.nowhere TO VERSION AS OF 0",
        "DESCRIBE HISTORY golden.nowhere",
        "GRANT ALL ON t TO bob",
        "COPY t FROM '/etc/passwd'",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_csv('/etc/passwd')",
    ],
    ids=lambda sql: repr(sql)[:60],
)
def test_wrong_statements(answering, sql):
    refused(answering, sql)


def test_wrong_statements_wrote_nothing(answering):
    case = golden.case("selectors")
    golden.same_rows(query(answering, "SELECT * FROM golden.selectors"), case.rows(3))
    assert one(answering, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'golden' AND table_name = 'x'") == 0


# --- paths ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "delta.`/etc`",
        "delta.`../../../../../../etc`",
        "delta.`golden/../../outside`",
        "delta.`file:///etc`",
        "delta.`..%2F..%2Foutside`",
        "delta.``",
        "delta.`s3://bucket/table`",
        "`../outside`.t",
        '"..".".."',
        "golden.`../golden/selectors`",
        "golden.`selectors/../selectors`",
        "`golden/selectors`",
        "golden.`/etc`",
        "golden.`a\\b`",
        "_asof.dropped",
    ],
)
def test_paths_that_leave_the_warehouse(answering, golden_server, name):
    outside = golden_server.warehouse.parent / "outside"
    if not outside.exists():
        golden.case("selectors").copy(outside.parent, name="outside.t")
    refused(answering, f"SELECT * FROM {name}")
    refused(answering, f"INSERT INTO {name} VALUES ('x')")
    refused(answering, f"CREATE TABLE {name} (a INT)")


def test_a_link_out_of_the_warehouse(answering, golden_server):
    """A link inside the warehouse is the operator's doing; whatever is answered, it is answered, and `..` in it gives nothing away."""
    link = golden_server.warehouse / "main" / "linked"
    link.parent.mkdir(exist_ok=True)
    if not link.exists():
        os.symlink("/etc", link)
    refused(answering, "SELECT * FROM main.linked")


ENCODED = ["..%2F..%2Fsecret.parquet", "..%2f..%2fsecret.parquet", "%2e%2e/%2e%2e/secret.parquet", "file:///etc/hostname", "/etc/hostname"]


@pytest.mark.parametrize("encoded", ENCODED)
def test_encoded_paths_in_a_log(golden_server, answering, encoded):
    """A log that points out of its table, in spellings that decode to it."""
    case = golden.case("malformed/path_escapes")
    name = f"malformed.encoded_{ENCODED.index(encoded)}"
    case.copy(golden_server.warehouse, name=name)
    commit = golden_server.warehouse / name.replace(".", "/") / "_delta_log" / f"{4:020d}.json"
    commit.write_text(commit.read_text().replace("../../secret.parquet", encoded))
    error = refused(answering, f"SELECT * FROM {name}")
    assert error.status_code != STATUS.INTERNAL
    assert "row 4" not in str(error)
    golden.same_rows(query(answering, f"SELECT * FROM {name} VERSION AS OF 3"), case.rows(3))


# --- damaged tables ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", golden.cases(malformed=True), ids=lambda case: case.path.name)
def test_damaged_tables(answering, case):
    """Whatever is asked of a damaged table, the answer is an answer or a typed error (which one, test_golden_reads says)."""
    for sql in (
        f"SELECT * FROM {case.name}",
        f"SELECT count(*) FROM {case.name}",
        f"DESCRIBE {case.name}",
        f"DESCRIBE HISTORY {case.name}",
        f"SELECT * FROM {case.name} TIMESTAMP AS OF '2026-01-01 01:00:00'",
        f"SELECT * FROM {case.name} VERSION AS OF 1000",
    ):
        try:
            query(answering, sql)
        except adbc_driver_manager.Error as error:
            assert error.status_code != STATUS.INTERNAL, f"{sql}: {error}"
            assert len(str(error)) < 4_000


@pytest.mark.parametrize("name", ["garbage_commit", "version_gap", "truncated_commit", "no_metadata", "dv_missing", "path_escapes", "missing_file"])
def test_writes_to_damaged_tables(server, connection, name):
    """A write that would build on what cannot be read is refused and leaves the log as it was."""
    case = golden.case(f"malformed/{name}")
    table = case.copy(server.warehouse, name=f"damaged.{name}")
    log = server.warehouse / "damaged" / name / "_delta_log"
    before = sorted(file.name for file in log.iterdir())
    for sql in (f"DELETE FROM {table}  WHERE id >= 0", f"UPDATE {table} SET id = id + 1"):
        with pytest.raises(adbc_driver_manager.Error):
            execute(connection, sql)
    assert sorted(file.name for file in log.iterdir()) == before
    assert rows(connection, "SELECT 1") == [(1,)]


def test_a_failing_insert_leaves_nothing(connection, schema, server):
    execute(connection, "CREATE TABLE t (a INT NOT NULL)")
    with pytest.raises(adbc_driver_manager.Error):
        execute(connection, "INSERT INTO t SELECT CASE WHEN id = 99999 THEN NULL ELSE id END FROM range(0, 100000)")
    with pytest.raises(adbc_driver_manager.Error):
        execute(connection, "INSERT INTO t SELECT 1 / (id - 50000) FROM range(0, 100000)")
    assert one(connection, "SELECT count(*) FROM t") == 0
    assert [row[0] for row in rows(connection, "DESCRIBE HISTORY t")] == [0]


def test_a_failing_ctas_leaves_no_table(connection, schema):
    with pytest.raises(adbc_driver_manager.Error):
        execute(connection, "CREATE TABLE t AS SELECT 1 / (id - 5) AS x FROM range(0, 10)")
    with pytest.raises(adbc_driver_manager.Error) as caught:
        query(connection, "SELECT * FROM t")
    assert caught.value.status_code == STATUS.NOT_FOUND
