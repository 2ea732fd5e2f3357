"""The seeds' stories: the questions the articles ask, and the same work done by asof from the first statement to the last.

`session` in a seed's case.json sets the article's statements beside what Spark ran and answered. Questions are asked of the recorded
table as it was at that point; then each story is told again on tables that asof itself creates, fills, damages and repairs.
"""

import re

import pytest

import golden
from asofd import execute, one, query, rows
from test_golden_reads import HISTORY_COLUMNS

SEEDS = [case for case in golden.cases(malformed=False) if case.id.startswith("seed_")]
QUESTION = re.compile(r"\s*(SELECT|WITH|DESCRIBE HISTORY)\b(?!.*\bMERGE\b)", re.IGNORECASE | re.DOTALL)


def questions():
    for case in SEEDS:
        for number, told in enumerate(case["session"]):
            asked = QUESTION.match(told["ran"]) and "{t}" in told["ran"] and isinstance(told["result"], list) and told["version_after"] is not None
            if asked and "FORMAT(" not in told["ran"]:
                yield pytest.param(case, told, id=f"{case.id}:{number}")


@pytest.fixture(scope="module")
def as_it_was(server):
    """The name of a seed's table cut to a version, copied once."""
    copies = {}

    def copy(case, version):
        if (case.id, version) not in copies:
            copies[case.id, version] = case.copy(server.warehouse, upto=version, name=f"then.{case.path.name}_{version}")
        return copies[case.id, version]

    return copy


@pytest.mark.story
@pytest.mark.parametrize("case, told", list(questions()))
def test_question(connection, as_it_was, case, told):
    sql = told["ran"].replace("{t}", as_it_was(case, told["version_after"]))
    table = query(connection, sql)
    actual = golden.records(table)
    if sql.upper().startswith("DESCRIBE HISTORY"):
        actual = [{column: commit[column] for column in HISTORY_COLUMNS} for commit in actual]
        # The commit's own file dates versions; the recorded session ran before the times were set.
        dated = {commit["version"]: commit["timestamp"] for commit in case.expect("history")}
        assert actual == [commit | {"timestamp": dated[commit["version"]]} for commit in told["result"]]
        return
    ordered = "ORDER BY" in sql.upper()
    key = None if ordered else repr
    assert (actual if ordered else sorted(actual, key=key)) == (told["result"] if ordered else sorted(told["result"], key=key))


# --- told by asof from the first statement ------------------------------------------------------------------------------------------------


def operations(connection, table: str) -> list[str]:
    """Operations of the history, oldest first."""
    return query(connection, f"DESCRIBE HISTORY {table}").column("operation").to_pylist()[::-1]


CITIES = "city STRING, country STRING, population BIGINT, census_date DATE"
BY_DATE = "ORDER BY city, census_date"


@pytest.mark.story
def test_late_events(server, connection, schema):
    """Seed 000: which events of January 7 came late, by joining two snapshots of one table."""
    case = golden.case("seed_000_clickstream")
    source = case.copy(server.warehouse, name=f"{schema}.recorded")
    t = f"{schema}.retail_clickstream_events"
    columns = "event_id STRING, user_id STRING, session_id STRING, event_type STRING, product_id STRING, event_time TIMESTAMP, ingestion_time TIMESTAMP, event_date DATE"
    execute(connection, f"CREATE TABLE {t} ({columns}) USING delta PARTITIONED BY (event_date)")
    assert execute(connection, f"INSERT INTO {t} SELECT * FROM {source} VERSION AS OF 1") == 1114
    late = f"SELECT * FROM {source} EXCEPT SELECT * FROM {source} VERSION AS OF 1"
    assert execute(connection, f"INSERT INTO {t} {late}") == 739
    that_day = "event_time >= TIMESTAMP '2026-01-07 00:00:00' AND event_time < TIMESTAMP '2026-01-08 00:00:00'"
    assert one(connection, f"SELECT COUNT(*) FROM {t} VERSION AS OF 1 WHERE {that_day}") == 613
    assert one(connection, f"SELECT COUNT(*) FROM {t} WHERE {that_day}") == 704
    join = next(told["ran"] for told in case["session"] if "FULL OUTER JOIN" in told["ran"])
    assert golden.records(query(connection, join.replace("{t}", t))) == case.expect("answers")["by_type"]


@pytest.mark.story
def test_cities_restored(connection, schema):
    """Seed 001, first session: three loads, RESTORE to the first, to the third, to the moment of the second."""
    t = f"{schema}.cities"
    loads = [
        "('Los Angeles', 'USA', 4000000, DATE'2023-01-01'), ('Mumbai', 'India', 20000000, DATE'2023-01-01'), ('Tokyo', 'Japan', 14000000, DATE'2023-01-01')",
        "('Los Angeles', 'USA', 4100000, DATE'2023-06-01'), ('Mumbai', 'India', 21000000, DATE'2023-06-01'), ('Tokyo', 'Japan', 13950000, DATE'2023-06-01')",
        "('Los Angeles', 'USA', 4150000, DATE'2024-01-01'), ('Mumbai', 'India', 21500000, DATE'2024-01-01'), ('Tokyo', 'Japan', 13900000, DATE'2024-01-01')",
    ]
    execute(connection, f"CREATE TABLE {t} ({CITIES}) USING delta")
    for load in loads:
        assert execute(connection, f"INSERT INTO {t} VALUES {load}") == 3
    case = golden.case("seed_001a_cities")
    after = {version: golden.records(query(connection, f"SELECT * FROM {t} VERSION AS OF {version} {BY_DATE}")) for version in (1, 2, 3)}
    recorded = [told["result"] for told in case["session"] if told["ran"].startswith("SELECT *")]
    assert [after[3], after[1], after[2]] == recorded

    metrics = query(connection, f"RESTORE TABLE {t} TO VERSION AS OF 1").to_pylist()[0]
    assert (metrics["num_removed_files"], metrics["num_restored_files"]) == (2, 0)
    assert golden.records(query(connection, f"SELECT * FROM {t} {BY_DATE}")) == after[1]
    metrics = query(connection, f"RESTORE TABLE {t} TO VERSION AS OF 3").to_pylist()[0]
    assert (metrics["num_removed_files"], metrics["num_restored_files"]) == (0, 2)
    assert golden.records(query(connection, f"SELECT * FROM {t} {BY_DATE}")) == after[3]
    moment = query(connection, f"DESCRIBE HISTORY {t}").to_pylist()[-3]["timestamp"]
    metrics = query(connection, f"RESTORE TABLE {t} TO TIMESTAMP AS OF '{moment.isoformat()}'").to_pylist()[0]
    assert metrics["num_removed_files"] == 1
    assert golden.records(query(connection, f"SELECT * FROM {t} {BY_DATE}")) == after[2]
    assert operations(connection, t) == ["CREATE TABLE", "WRITE", "WRITE", "WRITE", "RESTORE", "RESTORE", "RESTORE"]


@pytest.mark.story
def test_deleted_rows_recovered(connection, schema):
    """Seed 001, second session: an accidental DELETE, then the rows are inserted from the version before it."""
    t = f"{schema}.cities"
    execute(
        connection,
        f"CREATE TABLE {t} USING delta AS SELECT * FROM (VALUES "
        "('Los Angeles', 'USA', CAST(4000000 AS BIGINT), DATE'2023-01-01'), ('Los Angeles', 'USA', 4100000, DATE'2023-06-01'), "
        "('Mumbai', 'India', 20000000, DATE'2023-01-01'), ('Mumbai', 'India', 21000000, DATE'2023-06-01'), "
        "('Tokyo', 'Japan', 14000000, DATE'2023-01-01'), ('Tokyo', 'Japan', 13950000, DATE'2023-06-01')) AS v(city, country, population, census_date)",
    )
    assert execute(connection, f"DELETE FROM {t} WHERE city = 'Mumbai'") == 2
    assert execute(
        connection,
        f"INSERT INTO {t} VALUES ('London', 'UK', 8900000, DATE'2023-01-01'), ('New York', 'USA', 8400000, DATE'2023-01-01'), "
        "('Edinburgh', 'UK', 500000, DATE'2023-01-01')",
    ) == 3
    execute(connection, f"CREATE OR REPLACE TEMPORARY VIEW pre_deletion_view AS SELECT * FROM {t} VERSION AS OF 0")
    assert execute(connection, f"INSERT INTO {t} SELECT * FROM pre_deletion_view WHERE city = 'Mumbai'") == 2
    assert golden.records(query(connection, f"SELECT * FROM {t} {BY_DATE}")) == golden.case("seed_001b_recover").expect("recovered")


@pytest.mark.story
def test_invalid_load_found(server, connection, schema):
    """Seed 001, third session, as far as it goes without MERGE: the rows of an invalid load are an EXCEPT of two moments; RESTORE undoes it."""
    case = golden.case("seed_001c_invalid")
    source = case.copy(server.warehouse, name=f"{schema}.recorded")
    t = f"{schema}.cities"
    execute(connection, f"CREATE TABLE {t} ({CITIES})")
    execute(connection, f"INSERT INTO {t} SELECT * FROM {source} VERSION AS OF 1")
    execute(connection, f"INSERT INTO {t} SELECT * FROM {source} VERSION AS OF 2 EXCEPT SELECT * FROM {source} VERSION AS OF 1")
    execute(connection, f"CREATE TEMPORARY VIEW before_invalid AS SELECT * FROM {t} VERSION AS OF 1")
    execute(connection, f"CREATE TEMPORARY VIEW after_invalid AS SELECT * FROM {t} VERSION AS OF 2")
    found = query(connection, "SELECT * FROM (SELECT * FROM after_invalid EXCEPT SELECT * FROM before_invalid) ORDER BY census_date, city, population")
    assert golden.records(found) == case.expect("invalid_rows")
    query(connection, f"RESTORE TABLE {t} TO VERSION AS OF 1")
    golden.same_rows(query(connection, f"SELECT * FROM {t}"), case.rows(1))
    # The views are bound to versions, so they still show what was.
    assert one(connection, "SELECT count(*) FROM after_invalid") == case.versions[2]["rows"]


@pytest.mark.story
def test_gold_sales_rolled_back(server, connection, schema):
    """Seed 003: an overwrite with revenue times ten, compared and rolled back by version and by time."""
    case = golden.case("seed_003_gold_sales")
    source = case.copy(server.warehouse, name=f"{schema}.recorded")
    answers = case.expect("answers")
    t = f"{schema}.gold_sales_orders"
    execute(connection, f"CREATE TABLE {t} AS SELECT * FROM {source} VERSION AS OF 2")
    execute(
        connection,
        f"CREATE OR REPLACE TABLE {t} AS SELECT order_date, category, region, order_count, revenue * 10 AS revenue FROM {t}",
    )
    overstated = next(told["ran"] for told in case["session"] if "overstatement" in told["ran"])
    overstated = overstated.replace("{t}", t).replace("SYSTEM_VERSION AS OF 2", "SYSTEM_VERSION AS OF 0").replace("SYSTEM_VERSION AS OF 3", "SYSTEM_VERSION AS OF 1")
    assert golden.records(query(connection, overstated)) == answers["overstatement"]
    assert one(connection, f"SELECT SUM(revenue) FROM {t}") == 72669500.0
    metrics = query(connection, f"RESTORE TABLE {t} TO VERSION AS OF 0").to_pylist()[0]
    assert metrics["num_removed_files"] >= 1 and metrics["num_restored_files"] >= 1
    total = f"SELECT SUM(revenue) AS total, SUM(order_count) AS orders FROM {t}"
    assert golden.records(query(connection, total)) == answers["after_restore"]


@pytest.mark.story
def test_price_corrected(connection, schema):
    """Seed 004: one price corrected by UPDATE and seen by comparing a version with now."""
    answers = golden.case("seed_004_korean").expect("answers")
    t = f"{schema}.sales_demo"
    execute(
        connection,
        "CREATE TEMPORARY VIEW silver_sales AS SELECT * FROM (VALUES (1000000, 'Golden Gate Ginger', 5, CAST(20.00 AS DECIMAL(10,2))), "
        "(1000001, 'Austin Almond Biscotti', 9, 27.00), (1000002, 'Tokyo Tidbits', 2, 20.00)) AS v(transaction_id, product, quantity, sales_amount)",
    )
    execute(connection, f"CREATE OR REPLACE TABLE {t} USING DELTA AS SELECT * FROM silver_sales")
    assert execute(connection, f"UPDATE {t} SET sales_amount = 25.00 WHERE transaction_id = 1000000") == 1
    sums = "COUNT(*) AS rows, SUM(quantity) AS quantity, SUM(sales_amount) AS amount"
    compared = query(
        connection,
        f"SELECT * FROM (SELECT '수정 전' AS state, {sums} FROM {t} VERSION AS OF 0 UNION ALL SELECT '수정 후' AS state, {sums} FROM {t} VERSION AS OF 1) ORDER BY state",
    )
    assert golden.records(compared) == answers["before_after"]
    changed = query(
        connection,
        "SELECT b.transaction_id, b.product, b.sales_amount AS before_amount, a.sales_amount AS after_amount, "
        f"a.sales_amount - b.sales_amount AS amount_difference FROM {t} VERSION AS OF 0 b JOIN {t} a ON b.transaction_id = a.transaction_id "
        "WHERE b.sales_amount <> a.sales_amount",
    )
    assert golden.records(changed) == answers["changed"]
    assert golden.records(query(connection, f"SELECT SUM(sales_amount) AS current_amount FROM {t}")) == answers["current_amount"]
    assert operations(connection, t) == ["CREATE OR REPLACE TABLE AS SELECT", "UPDATE"]
