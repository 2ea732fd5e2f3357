"""The golden statements run by asof itself.

Each golden table is a chain of statements with the rows after each one. So every statement that asof knows is run on a copy of the table
cut to the version before it: the rows must be those recorded, to asof, to DuckDB and to delta-rs; the history must tell the same story.
"""

import re

import adbc_driver_manager
import pytest

import differences
import golden
from asofd import query, rows
from readers import delta_rs_rows, duckdb_rows

KNOWN = re.compile(
    r"\s*(INSERT INTO|INSERT OVERWRITE|DELETE FROM|UPDATE|RESTORE TABLE|ALTER TABLE|TRUNCATE|OPTIMIZE)\s+(TABLE\s+)?\{t\}", re.IGNORECASE
)
# Metrics that do not depend on how the writer lays out files.
ROW_METRICS = ("numOutputRows", "numDeletedRows", "numUpdatedRows")


def steps():
    """(case, version before, statement, version after) of every statement that can be run by itself."""
    for case in golden.cases(malformed=False):
        before = -1
        for told in case["statements"]:
            after = told["version_after"]
            sql = re.sub(r"\s*--[^\n]*$", "", told["sql"])
            runnable = KNOWN.match(sql) and before >= 0 and after - before in (0, 1)
            if runnable and before in case.readable and after in case.readable and (case.id, after) not in differences.NOT_REPLAYED:
                yield pytest.param(case, before, sql, after, id=f"{case.id}:{after}")
            before = after


def metrics_of(commit: dict) -> dict:
    return dict(commit["operationMetrics"] or {})


@pytest.mark.parametrize("case, before, sql, after", list(steps()))
def test_statement(server, connection, case, before, sql, after):
    if (case.id, after) in differences.OTHER_WRITES:
        pytest.skip(differences.OTHER_WRITES[case.id, after])
    name = case.copy(server.warehouse, upto=before, name=f"replay.{case.path.name}_{after}")
    sql = sql.replace("{t}", name)
    if (case.id, after) in differences.REFUSED_WRITES:
        with pytest.raises(adbc_driver_manager.Error) as caught:
            query(connection, sql)
        for word in differences.REFUSED_WRITES[case.id, after]:
            assert re.search(word, str(caught.value)), str(caught.value)
        golden.same_rows(query(connection, f"SELECT * FROM {name}"), case.rows(before))
        return
    with connection.cursor() as cursor:
        cursor.execute(sql)
        result = cursor.fetch_arrow_table() if sql.upper().startswith("RESTORE") else None

    expected = case.rows(after)
    golden.same_rows(query(connection, f"SELECT * FROM {name}"), expected)
    golden.same_schema(query(connection, f"SELECT * FROM {name} LIMIT 0").schema, case.versions[after]["schema"])
    golden.same_rows(query(connection, f"SELECT * FROM {name} VERSION AS OF {before}"), case.rows(before))

    commits = golden.records(query(connection, f"DESCRIBE HISTORY {name}"))
    assert commits[0]["version"] == after
    if after != before:
        recorded = next(commit for commit in case.expect("history") if commit["version"] == after)
        same_commit(commits[0], recorded, result)

    path = server.warehouse / "replay" / f"{case.path.name}_{after}"
    if case.id not in UNREADABLE_TO_DUCKDB:
        golden.same_rows(duckdb_rows(path, expected.schema), expected)
    if case.id not in UNREADABLE_TO_DELTA_RS:
        golden.same_rows(delta_rs_rows(path, expected.schema), expected)


def same_commit(actual: dict, recorded: dict, result) -> None:
    assert actual["operation"] == recorded["operation"]
    assert actual["readVersion"] == recorded["readVersion"]
    assert actual["isBlindAppend"] == recorded["isBlindAppend"]
    assert actual["engineInfo"].startswith("asof/")
    have, want = metrics_of(actual), metrics_of(recorded)
    missing = set(want) - set(have)
    assert not missing, f"metrics that Spark writes and asof does not: {sorted(missing)}"
    assert {key: have[key] for key in ROW_METRICS if key in want} == {key: want[key] for key in ROW_METRICS if key in want}
    if recorded["operation"] == "RESTORE":
        assert have == want
        spelled = {re.sub(r"(?<!^)([A-Z])", r"_\1", key).lower(): int(value) for key, value in want.items()}
        assert result.num_rows == 1
        assert result.to_pylist()[0] == spelled
        assert result.column_names == [
            "table_size_after_restore",
            "num_of_files_after_restore",
            "num_removed_files",
            "num_restored_files",
            "removed_files_size",
            "restored_files_size",
        ]


# What these readers get wrong or refuse in Spark's own table already (INT96 of early years, variants, mapped names in structs,
# features they do not know).
UNREADABLE_TO_DUCKDB = {"all_types", "mapping_name", "variant", "future_writer"}
UNREADABLE_TO_DELTA_RS = {"all_types", "timestamp_ntz", "type_widening", "variant", "future_writer"}


def test_a_statement_that_matches_nothing_commits_nothing(server, connection):
    name = golden.case("stats").copy(server.warehouse, name="replay.nothing")
    last = golden.case("stats").last
    for sql in (f"DELETE FROM {name} WHERE a = -1", f"UPDATE {name} SET b = 0 WHERE a = -1"):
        with connection.cursor() as cursor:
            cursor.execute(sql)
            assert cursor.rowcount == 0
    assert rows(connection, f"DESCRIBE HISTORY {name} LIMIT 1")[0][0] == last


def test_restore_to_a_version_whose_files_are_gone_is_refused(server, connection):
    case = golden.case("vacuumed")
    name = case.copy(server.warehouse, name="replay.gone")
    with pytest.raises(adbc_driver_manager.Error, match="part-00000-"):
        query(connection, f"RESTORE TABLE {name} TO VERSION AS OF 2")
    golden.same_rows(query(connection, f"SELECT * FROM {name}"), case.rows(case.last))
