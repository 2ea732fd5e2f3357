"""A running ``asofd``: the process under test, and connections to it.

A server is started on port 0 over a warehouse folder and is ready when it prints its one line. Its log goes to a file, whose end is
shown when the server will not start or dies.
"""

import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import adbc_driver_flightsql.dbapi as flightsql

READY = re.compile(r"^asofd listening on (\S+):(\d+)\s*$")
START_SECONDS = 60
STOP_SECONDS = 30


class Asofd:
    """One server process over one warehouse."""

    def __init__(self, warehouse: Path, log: Path, arguments: tuple[str, ...] = (), environment: dict[str, str] | None = None):
        self.warehouse = Path(warehouse)
        self.log = Path(log)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ASOF_")}
        # A zone of its own, so that a server that reads its machine's zone is found out.
        env = kept | {"TZ": "America/St_Johns", "RUST_BACKTRACE": "1"} | (environment or {})
        command = [os.environ["ASOFD"], "serve", "--listen", "127.0.0.1:0", "--warehouse", str(self.warehouse), *arguments]
        with open(self.log, "ab") as errors:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, env=env)
        self.host, self.port = self._ready()

    def _ready(self) -> tuple[str, int]:
        stdout = self.process.stdout
        readable, _, _ = select.select([stdout], [], [], START_SECONDS)
        line = stdout.readline().decode() if readable else ""
        found = READY.match(line)
        if not found:
            self.kill()
            raise RuntimeError(f"asofd did not say that it listens, but {line!r}; its log ends:\n{self.log_end()}")
        return found.group(1), int(found.group(2))

    @property
    def uri(self) -> str:
        return f"grpc://{self.host}:{self.port}"

    def connect(self, **options):
        """A new ADBC connection with autocommit, and so a new session."""
        return flightsql.connect(self.uri, autocommit=True, **options)

    def alive(self) -> bool:
        return self.process.poll() is None

    def log_end(self, characters: int = 4000) -> str:
        return self.log.read_text(errors="replace")[-characters:] if self.log.exists() else ""

    def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it in an orderly way; the exit code."""
        if self.alive():
            self.process.send_signal(how)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"asofd did not end within {STOP_SECONDS} s of {how.name}; its log ends:\n{self.log_end()}") from None

    def kill(self) -> None:
        """End it as a crash would."""
        if self.alive():
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def query(connection, sql: str, parameters=None):
    """The whole result of a statement as an Arrow table."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetch_arrow_table()


def rows(connection, sql: str, parameters=None) -> list[tuple]:
    """The rows of a statement as Python values."""
    table = query(connection, sql, parameters)
    columns = [column.to_pylist() for column in table.columns]
    return list(zip(*columns)) if columns else []


def execute(connection, sql: str, parameters=None) -> int:
    """Run a statement that gives a count; the count (-1 for unknown)."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.rowcount


def one(connection, sql: str, parameters=None):
    """The single value of a statement."""
    found = rows(connection, sql, parameters)
    assert len(found) == 1 and len(found[0]) == 1, f"{sql}: expected one value, got {found}"
    return found[0][0]


def wait_until(what: str, condition, seconds: float = 20.0, pause: float = 0.05):
    """Poll until `condition()` is true; fails by name when it never is."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(pause)
    raise AssertionError(f"did not happen within {seconds} s: {what}")
