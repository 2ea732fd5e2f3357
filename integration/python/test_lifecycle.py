"""Starting, stopping, crashing."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time

import adbc_driver_manager
import pytest

from asofd import execute, one, query, rows, wait_until


def run(*arguments, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("ASOF_")} | environment
    return subprocess.run([os.environ["ASOFD"], *arguments], capture_output=True, text=True, timeout=30, env=env, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT], ids=lambda how: how.name)
def test_an_orderly_end(own_server, how):
    server = own_server()
    with server.connect() as connection:
        execute(connection, "CREATE TABLE t AS SELECT 1 AS a")
    assert server.stop(how) == 0


def test_an_orderly_end_while_connected_and_reading(own_server):
    server = own_server()
    connection = server.connect()
    cursor = connection.cursor()
    cursor.execute("SELECT a.id FROM range(0, 100000) a CROSS JOIN range(0, 100000) b")
    reader = cursor.fetch_record_batch()
    reader.read_next_batch()
    assert server.stop() == 0
    for left in (cursor, connection):
        # The server is gone, and the driver says so when it wants to close what it had there.
        with contextlib.suppress(Exception):
            left.close()


def cpu_seconds(process) -> float:
    """What a process has used of all cores so far."""
    values = open(f"/proc/{process.pid}/stat").read().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="reads /proc")
def idle(process) -> bool:
    """It does nothing for half a second."""
    before = cpu_seconds(process)
    time.sleep(0.5)
    return cpu_seconds(process) - before < 0.1


def test_a_dropped_stream_stops_its_work(own_server):
    """A query that would run for hours ends when its reader goes away."""
    server = own_server()
    with server.connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("SELECT a.id, b.id FROM range(0, 10000000) a JOIN range(0, 10000000) b ON a.id % 1000 = b.id % 1000")
            reader = cursor.fetch_record_batch()
            reader.read_next_batch()
            reader.close()
        wait_until("the work stops", lambda: idle(server.process), seconds=10)
        assert rows(connection, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("condition", ["x * y % 7 = 8", "x % 3 = y % 3 AND x * y < 0", "true"])
def test_a_cancelled_join_stops_and_holds_up_nobody(own_server, condition):
    """Joins that would run for hours and never pause: the next statement is answered beside them, and cancelling ends them."""
    server = own_server()
    sql = f"SELECT count(*) FROM generate_series(1, 2000000) a(x), generate_series(1, 2000000) b(y) WHERE {condition}"
    with server.connect() as connection, server.connect() as other, connection.cursor() as cursor:
        ended = []

        def run():
            try:
                cursor.execute(sql)
                ended.append(cursor.fetchall())
            except Exception as error:  # noqa: BLE001 - whatever the driver makes of it
                ended.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        wait_until("the join works", lambda: cpu_seconds(server.process) > 1.0, seconds=30)
        assert rows(other, "SELECT 1") == [(1,)]
        assert not ended
        cursor.adbc_cancel()
        thread.join(30)
        assert len(ended) == 1 and "ancel" in str(ended[0]), ended
        wait_until("the work stops", lambda: idle(server.process), seconds=10)
        assert rows(other, "SELECT 2") == [(2,)]


def test_stdout_is_one_line(own_server):
    server = own_server()
    with server.connect() as connection:
        rows(connection, "SELECT 1")
    server.process.send_signal(signal.SIGTERM)
    rest = server.process.stdout.read()
    assert server.process.wait(30) == 0
    assert rest == b""


def test_a_crash_loses_nothing_acknowledged(own_server, tmp_path):
    warehouse = tmp_path / "warehouse"
    server = own_server(warehouse)
    acknowledged = []

    def write():
        try:
            with server.connect() as connection:
                execute(connection, "CREATE TABLE t (n INT)")
                acknowledged.append(-1)
                for n in range(100_000):
                    execute(connection, f"INSERT INTO t VALUES ({n})")
                    acknowledged.append(n)
        except adbc_driver_manager.Error:
            pass

    writer = threading.Thread(target=write)
    writer.start()
    wait_until("five acknowledged appends", lambda: len(acknowledged) > 5)
    server.kill()
    writer.join()
    again = own_server(warehouse)
    with again.connect() as connection:
        found = sorted(n for (n,) in rows(connection, "SELECT n FROM t"))
        # The last append may have been committed without its answer having arrived.
        assert found in (list(range(len(acknowledged) - 1)), list(range(len(acknowledged))))
        execute(connection, "INSERT INTO t VALUES (-7)")
        assert one(connection, "SELECT count(*) FROM t") == len(found) + 1


def test_a_connection_outlives_a_restart_with_a_clear_error(own_server, tmp_path):
    server = own_server()
    connection = server.connect()
    server.kill()
    with pytest.raises(adbc_driver_manager.Error):
        rows(connection, "SELECT 1")
    try:
        connection.close()
    except adbc_driver_manager.Error:
        pass


def test_settings_by_environment_and_file(own_server, tmp_path):
    (tmp_path / "asof.toml").write_text("catalog = 'other'\n")
    server = own_server(arguments=("--config", str(tmp_path / "asof.toml")))
    with server.connect() as connection:
        assert ("other",) in rows(connection, "SHOW CATALOGS")


def test_an_unknown_key_names_the_nearest(tmp_path):
    (tmp_path / "asof.toml").write_text("warehose = '/tmp/x'\n")
    ended = run("serve", "--listen", "127.0.0.1:0", "--config", str(tmp_path / "asof.toml"))
    assert ended.returncode != 0
    assert "warehose" in ended.stderr and "warehouse" in ended.stderr


def test_a_port_in_use_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = run("serve", "--listen", address, "--warehouse", str(tmp_path / "warehouse"))
    assert ended.returncode != 0
    assert address in ended.stderr
    assert ended.stdout == ""


def test_an_open_address_without_authentication_is_refused(tmp_path):
    ended = run("serve", "--listen", "0.0.0.0:0", "--warehouse", str(tmp_path / "warehouse"))
    assert ended.returncode != 0
    assert re.search("authentication", ended.stderr)


def test_help_and_version():
    assert "serve" in run("--help").stdout
    assert re.match(r"asofd \d+\.\d+\.\d+", run("--version").stdout)


def test_a_warehouse_is_found_again(own_server, tmp_path):
    first = own_server(tmp_path / "warehouse")
    with first.connect() as connection:
        execute(connection, "CREATE SCHEMA kept")
        execute(connection, "CREATE TABLE kept.t AS SELECT 1 AS a")
    assert first.stop() == 0
    second = own_server(tmp_path / "warehouse")
    with second.connect() as connection:
        assert query(connection, "SELECT * FROM kept.t").to_pylist() == [{"a": 1}]
