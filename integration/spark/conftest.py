"""Spark with Delta beside a server: Spark reads what asof writes."""

import os
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from asofd import Asofd

JARS = re.compile(r"(delta|unitycatalog)-.*\.jar")


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    jars = [str(jar) for jar in sorted(Path(os.environ["DELTA_JARS"]).iterdir()) if JARS.fullmatch(jar.name)]
    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", os.pathsep.join(jars))
        .config("spark.jars", ",".join(jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.extraJavaOptions", f"-Duser.timezone=UTC -Dderby.system.home={scratch}")
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
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
