"""Every golden table at every version, through ADBC: rows, schema, selectors, errors, filters, history."""

import re

import adbc_driver_manager
import pytest

import differences
import golden
from asofd import query, rows

CASES = golden.cases()


def listed(items):
    """Parameters with readable ids."""
    return [pytest.param(*item, id=":".join(str(getattr(part, "id", part)) for part in item)[:100]) for item in items]


def refused(connection, sql: str, words: list[str]) -> adbc_driver_manager.Error:
    """Runs a statement that must fail, by a typed error that names the words, and shows that the connection still works."""
    with pytest.raises(adbc_driver_manager.Error) as caught:
        found = query(connection, sql)
        pytest.fail(f"answered with {found.num_rows} rows: {found.slice(0, 5).to_pylist()}")
    text = str(caught.value)
    # INTERNAL is a bug's; damaged files are DATA_LOSS, which ADBC calls IO.
    assert caught.value.status_code != adbc_driver_manager.AdbcStatusCode.INTERNAL, text
    for word in words:
        assert re.search(word, text), f"{word!r} is not named in: {text}"
    assert rows(connection, "SELECT 1") == [(1,)]
    return caught.value


# --- versions ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case, version", listed((case, version) for case in CASES for version in case.readable))
def test_rows(golden_connection, case, version):
    if (case.id, version) in differences.REFUSED_VERSIONS:
        refused(golden_connection, golden.select(case.name, f"VERSION AS OF {version}"), differences.REFUSED_VERSIONS[case.id, version])
        return
    try:
        actual = query(golden_connection, golden.select(case.name, f"VERSION AS OF {version}"))
    except adbc_driver_manager.Error:
        if (case.id, version) not in differences.EITHER_VERSIONS:
            raise
        refused(golden_connection, golden.select(case.name, f"VERSION AS OF {version}"), differences.EITHER_VERSIONS[case.id, version])
        return
    golden.same_schema(actual.schema, case.versions[version]["schema"])
    golden.same_rows(actual, case.rows(version))
    assert rows(golden_connection, golden.select(case.name, f"VERSION AS OF {version}", "count(*)")) == [(case.versions[version]["rows"],)]


@pytest.mark.parametrize("case", listed((case,) for case in CASES if case.last in case.readable))
def test_latest_rows(golden_connection, case):
    golden.same_rows(query(golden_connection, f"SELECT * FROM {case.name}"), case.rows(case.last))


@pytest.mark.parametrize(
    "case, version",
    listed((case, version) for case in CASES for version, told in case.versions.items() if version not in case.readable),
)
def test_unreadable_versions(golden_connection, case, version):
    """Versions that Spark cannot give (and those that must not be given): refused, or given rightly where that is listed."""
    sql = golden.select(case.name, f"VERSION AS OF {version}")
    if (case.id, version) in differences.MORE_VERSIONS:
        actual = query(golden_connection, sql)
        golden.same_rows(actual, differences.table_of(differences.MORE_VERSIONS[case.id, version], actual.schema))
        return
    words = differences.REFUSED_VERSIONS.get((case.id, version), [])
    missing = case.versions[version].get("error", {}).get("text", "")
    gone = re.search(r"FILE_NOT_EXIST\].*?(part-[0-9]+-[0-9a-f-]{36})", missing)
    if gone and case.id != "malformed/dv_missing":
        words = words + [gone.group(1)] if case.schema == "malformed" else ["part-"]
    error = refused(golden_connection, sql, words)
    if case.id in ("vacuumed", "delta_rs_zorder_vacuum", "malformed/missing_file"):
        assert "out of retention:" in str(error)


# --- selectors ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case, selector, version", listed((case, s["sql"], s["version"]) for case in CASES for s in case["selectors"]))
def test_selectors(golden_connection, case, selector, version):
    actual = query(golden_connection, golden.select(case.name, selector))
    expected = query(golden_connection, golden.select(case.name, f"VERSION AS OF {version}"))
    assert actual.schema == expected.schema
    golden.same_rows(actual, expected)
    if version in case.readable:
        golden.same_rows(actual, case.rows(version))


@pytest.mark.parametrize("case, selector, version", listed((golden.case(c), s, v) for (c, s), v in differences.MORE_SELECTORS.items()))
def test_more_selectors(golden_connection, case, selector, version):
    golden.same_rows(query(golden_connection, golden.select(case.name, selector)), case.rows(version))


SPELLINGS = [
    "{t} VERSION AS OF 2",
    "{t} version as of 2",
    "{t} /* which? */ VERSION -- this one\n AS OF 2",
    "{t} FOR VERSION AS OF 2",
    "{t} FOR SYSTEM_VERSION AS OF 2",
    "{t}@v2",
    "{t} AT (VERSION => 2)",
    "{t} AT (TIMESTAMP => '2026-05-06 12:30:15.250')",
    "{t} FOR TIMESTAMP AS OF '2026-05-06 13:00:00'",
    "{t} FOR SYSTEM_TIME AS OF TIMESTAMP '2026-05-06 13:00:00'",
    "{t} TIMESTAMP AS OF '2026-05-06T15:00:00+02:00'",
    "{t} TIMESTAMP AS OF (SELECT max(m) FROM (VALUES (TIMESTAMP '2026-05-06 13:00:00')) AS v(m))",
    "[golden].[selectors] VERSION AS OF 2",
    '"golden"."selectors" VERSION AS OF 2',
    "`golden`.`selectors` VERSION AS OF 2",
    "lake.golden.selectors VERSION AS OF 2",
    "delta.`golden/selectors` VERSION AS OF 2",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "frame",
    [
        "SELECT * FROM {} ",
        "SELECT x.d FROM {} AS x",
        "SELECT x.d FROM {} x JOIN golden.selectors y ON x.d = y.d",
        "WITH c AS (SELECT * FROM {}) SELECT * FROM c",
        "SELECT * FROM (SELECT * FROM {}) s",
        "SELECT d FROM golden.selectors WHERE d IN (SELECT d FROM {})",
    ],
)
def test_spellings(golden_connection, spelling, frame):
    sql = frame.format(spelling.replace("{t}", "golden.selectors"))
    assert sorted(rows(golden_connection, sql)) == [("mon",), ("tue",)]


def test_fabric_option(golden_connection):
    sql = "SELECT * FROM golden.selectors OPTION (FOR TIMESTAMP AS OF '2026-05-06T13:00:00')"
    assert sorted(rows(golden_connection, sql)) == [("mon",), ("tue",)]


def test_two_moments_in_one_statement(golden_connection):
    sql = (
        "SELECT a.d FROM golden.selectors VERSION AS OF 3 a LEFT JOIN golden.selectors TIMESTAMP AS OF '2026-05-05' b ON a.d = b.d "
        "WHERE b.d IS NULL ORDER BY 1"
    )
    assert rows(golden_connection, sql) == [("tue",), ("wed",)]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH c AS (SELECT 1 AS x) SELECT * FROM c VERSION AS OF 1",
        "SELECT * FROM (VALUES (1)) AS v(x) VERSION AS OF 1",
        "SELECT * FROM information_schema.tables VERSION AS OF 1",
        "DELETE FROM golden.selectors VERSION AS OF 1 WHERE d = 'x'",
        "UPDATE golden.selectors VERSION AS OF 1 SET d = 'x'",
        "INSERT INTO golden.selectors VERSION AS OF 1 VALUES ('x')",
    ],
)
def test_selector_on_what_has_no_versions(golden_connection, sql):
    refused(golden_connection, sql, [])


# --- errors -------------------------------------------------------------------------------------------------------------------------


def statement(case, sql: str) -> str:
    """The statement of a recorded error: its text, or a SELECT where it is a selector."""
    whole = re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|ALTER|VACUUM|RESTORE|MERGE)\b", sql, re.IGNORECASE)
    return sql.replace("{t}", case.name) if whole else golden.select(case.name, sql)


@pytest.mark.parametrize("case, error", [pytest.param(c, e, id=f"{c.id}:{e['sql']}"[:100]) for c in CASES for e in c["errors"]])
def test_errors(golden_connection, case, error):
    sql = statement(case, error["sql"])
    if (case.id, error["sql"]) in differences.MORE_SELECTORS:
        return
    if differences.answers_with_latest(error):
        golden.same_rows(query(golden_connection, sql), case.rows(case.last))
        return
    if case.id in ("malformed/corrupt_checkpoint", "malformed/zero_byte_commit"):
        # Spark answers; so may asof (test_rows), but if it refuses it says why.
        return
    caught = refused(golden_connection, sql, [] if differences.NOT_YET.match(sql) else differences.words(error["expect"]))
    if error["why"] in ("no such version", "cleaned away", "before the first version", "cleaned away"):
        assert caught.status_code == adbc_driver_manager.AdbcStatusCode.NOT_FOUND, str(caught)
    # Nothing was written.
    if case.last in case.readable and not sql.upper().startswith("SELECT"):
        golden.same_rows(query(golden_connection, f"SELECT * FROM {case.name}"), case.rows(case.last))


# --- filters ------------------------------------------------------------------------------------------------------------------------

FILTERS = [
    pytest.param(case, told, id=f"{case.id}:{told['where']}"[:100])
    for case in CASES
    if (case.path / "expect" / "filters.json").exists()
    for told in case.expect("filters")
]


@pytest.mark.parametrize("case, told", FILTERS)
def test_filters(golden_connection, case, told):
    key, expected = next((key, ids) for key, ids in told.items() if key != "where")
    column = {"ids": "id"}.get(key, key)
    where = differences.standard_literals(told["where"])
    found = sorted(value for (value,) in rows(golden_connection, f"SELECT {column} FROM {case.name} WHERE {where}"))
    assert found == expected
    assert rows(golden_connection, f"SELECT count(*) FROM {case.name} WHERE {where}") == [(len(expected),)]


def test_min_max_do_not_trust_truncated_statistics(golden_connection):
    case = golden.case("stats")
    told = case.expect("min_max")
    sql = f"SELECT min(a), max(a), min(s), max(s), min(b), max(b), max(c.e), count(*), count(s) FROM {case.name}"
    names = ("min_a", "max_a", "min_s", "max_s", "min_b", "max_b", "max_e", "n", "n_s")
    assert dict(zip(names, rows(golden_connection, sql)[0])) == told


# --- history ------------------------------------------------------------------------------------------------------------------------

HISTORY_COLUMNS = [
    "version",
    "timestamp",
    "userId",
    "userName",
    "operation",
    "operationParameters",
    "job",
    "notebook",
    "clusterId",
    "readVersion",
    "isolationLevel",
    "isBlindAppend",
    "operationMetrics",
    "userMetadata",
    "engineInfo",
]
# Their logs cannot be listed to the end; what their history says is tested in test_bad_input.
TORN = {"malformed/garbage_commit", "malformed/truncated_commit", "malformed/version_gap", "malformed/zero_byte_first_commit"}


@pytest.mark.parametrize("case", listed((case,) for case in CASES if case.id not in TORN and (case.path / "expect" / "history.json").exists()))
def test_history(golden_connection, case):
    expected = case.expect("history")
    if not isinstance(expected, list):
        pytest.skip("Spark gives no history for this table")
    table = query(golden_connection, f"DESCRIBE HISTORY {case.name}")
    assert table.column_names == [*HISTORY_COLUMNS, "readable"]
    actual = golden.records(table)
    assert [commit["version"] for commit in actual] == [commit["version"] for commit in expected]
    wrong = [
        f"version {want['version']} {column}: {have[column]!r}, expected {want[column]!r}"
        for have, want in zip(actual, expected)
        for column in HISTORY_COLUMNS
        if not differences.same_history_value(column, have[column], want[column])
    ]
    assert not wrong, "\n".join(wrong[:10])
    readable = {commit["version"]: commit["readable"] for commit in actual}
    for version, told in case.versions.items():
        if version in readable and case.schema == "golden" and case.id not in ("future_reader", "no_json_before_checkpoint"):
            assert readable[version] == told["readable"], f"readable of version {version}"


# --- detail -------------------------------------------------------------------------------------------------------------------------

# Spark names a table by its catalog, and clustering columns stand in a domain's metadata, which asof does not read.
NOT_COMPARED = {"name", "clusteringColumns"}


@pytest.mark.parametrize("case", listed((case,) for case in CASES if (case.path / "expect" / "detail.json").exists()))
def test_detail(golden_connection, case):
    expected = case.expect("detail")
    if not isinstance(expected, dict) or "format" not in expected:
        pytest.skip("Spark gives no detail for this table")
    table = query(golden_connection, f"DESCRIBE DETAIL {case.name}")
    (actual,) = golden.records(table)
    actual["partitionColumns"] = table.column("partitionColumns")[0].as_py()
    # Spark shows the file's time, asof the commit's: in-commit where there is one, else made to grow.
    own_times = case.id in ("ict", "ict_late", "skewed_mtimes")
    skipped = NOT_COMPARED | ({"lastModified"} if own_times else set())
    wrong = [f"{k}: {actual[k]!r}, expected {v!r}" for k, v in expected.items() if k not in skipped and actual[k] != v]
    assert not wrong, "\n".join(wrong)
    assert actual["location"].startswith("file:///") and table.column("clusteringColumns")[0].as_py() in ([], None)


def test_history_limit(golden_connection):
    case = golden.case("seed_001a_cities")
    assert [row[0] for row in rows(golden_connection, f"DESCRIBE HISTORY {case.name} LIMIT 2")] == [5, 4]
