"""Sessions: what one connection sets stays there, and no other connection sees it."""

import adbc_driver_manager
import pytest

from asofd import execute, one, query, rows


def setting(connection, name: str) -> str:
    """The value of a setting: the last column of SHOW."""
    return rows(connection, f"SHOW {name}")[0][-1]


def test_set_stays_and_is_not_shared(server):
    with server.connect() as a, server.connect() as b:
        execute(a, "SET TIME ZONE 'Asia/Kolkata'")
        assert setting(a, "timezone") == "Asia/Kolkata"
        assert setting(b, "timezone") == "UTC"
        execute(a, "RESET timezone")
        assert setting(a, "timezone") == "UTC"


def test_time_zone_reads_bare_times(golden_server):
    """A time without an offset is read in the session's zone; one with an offset keeps it."""
    with golden_server.connect() as connection:
        execute(connection, "SET TIME ZONE 'Asia/Kolkata'")
        # Version 1 is of 2026-05-05T00:00Z, that is 05:30 in Kolkata.
        assert one(connection, "SELECT count(*) FROM golden.selectors TIMESTAMP AS OF '2026-05-05 05:29:59'") == 0
        assert one(connection, "SELECT count(*) FROM golden.selectors TIMESTAMP AS OF '2026-05-05 05:30:00'") == 1
        assert one(connection, "SELECT count(*) FROM golden.selectors TIMESTAMP AS OF '2026-05-05T00:00:00Z'") == 1
        assert one(connection, "SELECT count(*) FROM golden.selectors TIMESTAMP AS OF TIMESTAMP '2026-05-05 05:30:00'") == 1
        assert one(connection, "SELECT count(*) FROM golden.selectors@20260505053000000") == 1


def test_unknown_setting_is_named(connection):
    with pytest.raises(adbc_driver_manager.Error, match="tme_zone"):
        execute(connection, "SET tme_zone = 'UTC'")
    with pytest.raises(adbc_driver_manager.Error, match="Nowhere"):
        execute(connection, "SET TIME ZONE 'Nowhere/Land'")


def test_use(server, connection, schema):
    execute(connection, "CREATE TABLE only_here (a INT)")
    execute(connection, "INSERT INTO only_here VALUES (7)")
    assert rows(connection, "SELECT * FROM only_here") == [(7,)]
    with server.connect() as other:
        with pytest.raises(adbc_driver_manager.Error, match="only_here"):
            query(other, "SELECT * FROM only_here")
        execute(other, f"USE lake.{schema}")
        assert rows(other, "SELECT * FROM only_here") == [(7,)]
        with pytest.raises(adbc_driver_manager.Error, match="no_such_schema"):
            execute(other, "USE no_such_schema")
        assert rows(other, "SELECT * FROM only_here") == [(7,)]


def test_schema_by_the_driver(server, connection, schema):
    """ADBC's current catalog and schema are session options of Flight SQL."""
    execute(connection, "CREATE TABLE t (a INT)")
    with server.connect() as other:
        assert other.adbc_current_catalog == "lake"
        assert other.adbc_current_db_schema == "main"
        other.adbc_current_db_schema = schema
        assert other.adbc_current_db_schema == schema
        assert rows(other, "SELECT * FROM t") == []


def test_temporary_views(server, connection, schema):
    execute(connection, "CREATE TABLE t (a INT)")
    execute(connection, "INSERT INTO t VALUES (1)")
    execute(connection, "CREATE TEMPORARY VIEW v AS SELECT a, a * 2 AS twice FROM t")
    execute(connection, "CREATE TEMPORARY VIEW then AS SELECT * FROM t VERSION AS OF 1")
    with pytest.raises(adbc_driver_manager.Error, match="v"):
        execute(connection, "CREATE TEMPORARY VIEW v AS SELECT 1")
    execute(connection, "INSERT INTO t VALUES (2)")
    assert sorted(rows(connection, "SELECT * FROM v")) == [(1, 2), (2, 4)]
    assert rows(connection, "SELECT * FROM then") == [(1,)]
    assert rows(connection, "SELECT v.a FROM v LEFT JOIN then ON v.a = then.a WHERE then.a IS NULL") == [(2,)]
    with server.connect() as other:
        execute(other, f"USE {schema}")
        with pytest.raises(adbc_driver_manager.Error):
            query(other, "SELECT * FROM v")
    execute(connection, "CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 'new' AS x")
    assert rows(connection, "SELECT * FROM v") == [("new",)]
    execute(connection, "DROP VIEW v")
    with pytest.raises(adbc_driver_manager.Error):
        query(connection, "SELECT * FROM v")


def test_a_view_over_views_and_a_selector_on_a_view(connection, schema):
    execute(connection, "CREATE TABLE t (a INT)")
    execute(connection, "INSERT INTO t VALUES (1)")
    execute(connection, "CREATE TEMPORARY VIEW one AS SELECT * FROM t VERSION AS OF 0")
    execute(connection, "CREATE TEMPORARY VIEW two AS SELECT count(*) AS n FROM one")
    assert rows(connection, "SELECT * FROM two") == [(0,)]
    with pytest.raises(adbc_driver_manager.Error):
        query(connection, "SELECT * FROM one VERSION AS OF 1")


def test_many_sessions(server):
    connections = [server.connect() for _ in range(20)]
    for number, connection in enumerate(connections):
        execute(connection, f"CREATE TEMPORARY VIEW mine AS SELECT {number} AS n")
    assert [one(connection, "SELECT n FROM mine") for connection in connections] == list(range(20))
    for connection in connections:
        connection.close()
