"""Spark with Delta beside a server: Spark reads what asof writes."""

import pytest

import spark_session
from asofd import Asofd


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    session = spark_session.start(tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asof")
    with Asofd(folder / "warehouse", folder / "asofd.log") as server:
        yield server


@pytest.fixture
def connection(server):
    with server.connect() as connection:
        yield connection
