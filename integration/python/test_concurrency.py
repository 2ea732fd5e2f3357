"""Writers at once: two servers on one warehouse, several connections each. What was acknowledged is there once."""

import re
import threading

import adbc_driver_manager
import deltalake
import pyarrow as pa

from asofd import execute, one, query, rows
from readers import delta_rs_rows


def at_once(work) -> None:
    """Run the callables in threads; the first failure is raised."""
    failures = []

    def guarded(run):
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(run,)) for run in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def is_conflict(error: Exception) -> bool:
    return "conflict:" in str(error)


def test_two_servers_append_to_one_table(own_server, tmp_path):
    servers = [own_server(tmp_path / "warehouse"), own_server(tmp_path / "warehouse")]
    with servers[0].connect() as connection:
        execute(connection, "CREATE TABLE t (server INT, thread INT, n INT)")
    acknowledged, lock = [], threading.Lock()

    def writer(server: int, thread: int):
        def run():
            with servers[server].connect() as connection:
                for n in range(8):
                    try:
                        assert execute(connection, f"INSERT INTO t VALUES ({server}, {thread}, {n})") == 1
                    except adbc_driver_manager.Error as error:
                        # Appends do not conflict; only having lost too many races may be reported.
                        assert is_conflict(error), error
                        continue
                    with lock:
                        acknowledged.append((server, thread, n))

        return run

    at_once([writer(server, thread) for server in range(2) for thread in range(3)])
    assert len(acknowledged) >= 40
    for server in servers:
        with server.connect() as connection:
            assert sorted(rows(connection, "SELECT * FROM t")) == sorted(acknowledged)
            versions = query(connection, "DESCRIBE HISTORY t").column("version").to_pylist()
            assert versions == list(range(len(acknowledged), -1, -1))


def test_two_servers_and_delta_rs_append(own_server, tmp_path):
    servers = [own_server(tmp_path / "warehouse"), own_server(tmp_path / "warehouse")]
    with servers[0].connect() as connection:
        execute(connection, "CREATE TABLE t (who INT, n INT)")
    path = str(tmp_path / "warehouse" / "main" / "t")

    def asof(who: int):
        def run():
            with servers[who].connect() as connection:
                for n in range(8):
                    execute(connection, f"INSERT INTO t VALUES ({who}, {n})")

        return run

    def delta_rs():
        for n in range(8):
            deltalake.write_deltalake(path, pa.table({"who": pa.array([2], pa.int32()), "n": pa.array([n], pa.int32())}), mode="append")

    at_once([asof(0), asof(1), delta_rs])
    with servers[1].connect() as connection:
        found = query(connection, "SELECT who, n FROM t")
        assert sorted(zip(found["who"].to_pylist(), found["n"].to_pylist())) == [(who, n) for who in range(3) for n in range(8)]
    assert delta_rs_rows(path, found.schema).num_rows == 24


def test_increments_are_not_lost(own_server, tmp_path):
    """UPDATE n = n + 1 from many sides: the counter is the number of acknowledged updates."""
    servers = [own_server(tmp_path / "warehouse"), own_server(tmp_path / "warehouse")]
    with servers[0].connect() as connection:
        execute(connection, "CREATE TABLE t (n INT)")
        execute(connection, "INSERT INTO t VALUES (0)")
    done, lock = [0], threading.Lock()

    def incrementer(server: int):
        def run():
            with servers[server].connect() as connection:
                for _ in range(6):
                    try:
                        assert execute(connection, "UPDATE t SET n = n + 1") == 1
                    except adbc_driver_manager.Error as error:
                        assert is_conflict(error), error
                        continue
                    with lock:
                        done[0] += 1

        return run

    at_once([incrementer(number % 2) for number in range(4)])
    with servers[0].connect() as connection:
        assert one(connection, "SELECT n FROM t") == done[0]
        assert done[0] >= 6


def test_a_reader_sees_whole_commits(own_server, tmp_path):
    """Each commit replaces all rows by rows of one generation: no reader may see two generations or half of one."""
    servers = [own_server(tmp_path / "warehouse"), own_server(tmp_path / "warehouse")]
    with servers[0].connect() as connection:
        execute(connection, "CREATE TABLE t (g INT, p INT) PARTITIONED BY (p)")
        execute(connection, "INSERT INTO t SELECT 0, id % 4 FROM range(0, 40)")
    stop = threading.Event()

    def write():
        try:
            with servers[0].connect() as connection:
                for generation in range(1, 11):
                    assert execute(connection, f"UPDATE t SET g = {generation}") == 40
        finally:
            stop.set()

    def read(server: int):
        def run():
            with servers[server].connect() as connection:
                while not stop.is_set():
                    seen = rows(connection, "SELECT count(*), count(DISTINCT g) FROM t")
                    assert seen == [(40, 1)]

        return run

    at_once([write, read(0), read(1)])
    with servers[1].connect() as connection:
        assert one(connection, "SELECT max(g) FROM t") == 10


def test_one_create_wins(own_server, tmp_path):
    servers = [own_server(tmp_path / "warehouse"), own_server(tmp_path / "warehouse")]
    outcomes, lock = [], threading.Lock()

    def creator(number: int):
        def run():
            with servers[number % 2].connect() as connection:
                try:
                    execute(connection, f"CREATE TABLE t AS SELECT {number} AS who")
                    told = "made"
                except adbc_driver_manager.Error as error:
                    assert re.search("exist|conflict:", str(error)), error
                    told = "refused"
                with lock:
                    outcomes.append((told, number))

        return run

    at_once([creator(number) for number in range(6)])
    made = [number for told, number in outcomes if told == "made"]
    assert len(made) == 1, outcomes
    with servers[0].connect() as connection:
        assert rows(connection, "SELECT who FROM t") == [(made[0],)]
