"""Fixtures: servers over temporary warehouses, connections, a fresh schema for each test that writes."""

import itertools
import os

import pytest

import golden
from asofd import Asofd

_numbers = itertools.count()


def pytest_report_header():
    return f"asofd: {os.environ.get('ASOFD', 'not set')}"


@pytest.fixture(scope="session")
def golden_server(tmp_path_factory):
    """One server over a warehouse with every golden table in it. Tests that use it must not write."""
    folder = tmp_path_factory.mktemp("golden")
    for case in golden.cases():
        case.copy(folder / "warehouse")
    with Asofd(folder / "warehouse", folder / "asofd.log") as server:
        yield server
        assert server.alive(), f"asofd died; its log ends:\n{server.log_end()}"


@pytest.fixture(scope="session")
def golden_connection(golden_server):
    with golden_server.connect() as connection:
        yield connection


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server over an empty warehouse, for tests that write to schemas of their own."""
    folder = tmp_path_factory.mktemp("work")
    with Asofd(folder / "warehouse", folder / "asofd.log") as server:
        yield server
        assert server.alive(), f"asofd died; its log ends:\n{server.log_end()}"


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection


@pytest.fixture
def schema(server, connection):
    """A new schema, in use by `connection`."""
    from asofd import execute

    name = f"s{next(_numbers)}"
    execute(connection, f"CREATE SCHEMA {name}")
    execute(connection, f"USE {name}")
    return name


@pytest.fixture
def own_server(tmp_path):
    """Starts servers that belong to one test: `own_server()`, or with another warehouse, arguments, environment."""
    started = []

    def start(warehouse=None, **options):
        server = Asofd(warehouse or tmp_path / "warehouse", tmp_path / f"asofd{len(started)}.log", **options)
        started.append(server)
        return server

    yield start
    for server in started:
        server.kill()
