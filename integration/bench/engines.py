"""The engines under measure: asof through Flight SQL with ADBC, as users reach it, and its peers, each as its own users run it.

An engine is opened over tables (name → folder of a Delta table), then asked in SQL; `travel` counts a table as it was at a version or a moment,
opening it anew. Engines that cannot do something say so by raising.
"""

import os
import sys
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parent.parent / "python"))


class Asof:
    """asofd in a process of its own, asked over loopback."""

    def __init__(self, warehouse: str):
        from asofd import Asofd

        log = Path(os.environ["BENCH_SCRATCH"]) / "asofd.log"
        self.server = Asofd(Path(warehouse), log, environment={"TZ": "UTC"})
        self.connection = self.server.connect()
        # One cursor for all: what the driver takes to close one is no part of a query.
        self.cursor = self.connection.cursor()
        self.warehouse = Path(warehouse)

    def pids(self) -> list[int]:
        return [os.getpid(), self.server.process.pid]

    def open(self, tables: dict[str, str]) -> None:
        schemas = {Path(folder).parent.name for folder in tables.values()}
        if len(schemas) == 1:
            self.query(f'USE "{schemas.pop()}"')

    def query(self, sql: str) -> pa.Table:
        self.cursor.execute(sql)
        return self.cursor.fetch_arrow_table()

    def travel(self, folder: str, version: int | None, moment: str | None) -> pa.Table:
        name = ".".join(f'"{part}"' for part in Path(folder).relative_to(self.warehouse).parts)
        at = f"VERSION AS OF {version}" if version is not None else f"TIMESTAMP AS OF '{moment}'" if moment else ""
        return self.query(f"SELECT count(*) AS n FROM {name} {at}")

    def close(self) -> None:
        self.cursor.close()
        self.connection.close()
        self.server.stop()


class Embedded:
    """An engine in the asking process."""

    def __init__(self, warehouse: str):
        self.start()

    def pids(self) -> list[int]:
        return [os.getpid()]

    def close(self) -> None:
        pass


class DuckDb(Embedded):
    """DuckDB with its delta extension, loaded from its package."""

    def start(self) -> None:
        import duckdb
        import duckdb_extension_delta

        self.connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        found = next(Path(duckdb_extension_delta.__file__).parent.rglob("delta.duckdb_extension"))
        self.connection.execute(f"LOAD '{found}'")

    def open(self, tables: dict[str, str]) -> None:
        for name, folder in tables.items():
            self.connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM delta_scan('file://{folder}')")

    def query(self, sql: str) -> pa.Table:
        return self.connection.execute(sql).to_arrow_table()

    def travel(self, folder: str, version: int | None, moment: str | None) -> pa.Table:
        if moment is not None:
            raise NotImplementedError("delta_scan takes no moment")
        at = "" if version is None else f", version := {version}"
        return self.query(f"SELECT count(*) AS n FROM delta_scan('file://{folder}'{at})")


class DeltaRs(Embedded):
    """delta-rs with its own query engine."""

    def start(self) -> None:
        import deltalake

        self.deltalake = deltalake
        self.builder = None

    def open(self, tables: dict[str, str]) -> None:
        self.builder = self.deltalake.QueryBuilder()
        for name, folder in tables.items():
            self.builder.register(name, self.deltalake.DeltaTable(folder))

    def query(self, sql: str) -> pa.Table:
        return pa.table(self.builder.execute(sql).read_all())

    def travel(self, folder: str, version: int | None, moment: str | None) -> pa.Table:
        table = self.deltalake.DeltaTable(folder, version=version)
        if moment is not None:
            table.load_as_version(moment.replace(" ", "T") + "Z")
        builder = self.deltalake.QueryBuilder().register("t", table)
        return pa.table(builder.execute("SELECT count(*) AS n FROM t").read_all())


class DataFusion(Embedded):
    """DataFusion over the tables' Parquet files, without their logs: what a query costs when there is nothing to look up."""

    def start(self) -> None:
        from datafusion import SessionContext

        self.context = SessionContext()

    def open(self, tables: dict[str, str]) -> None:
        for name, folder in tables.items():
            self.context.register_parquet(name, folder)

    def query(self, sql: str) -> pa.Table:
        return self.context.sql(sql).to_arrow_table()

    def travel(self, folder: str, version: int | None, moment: str | None) -> pa.Table:
        raise NotImplementedError("Parquet files have no versions")


class Polars(Embedded):
    """polars' lazy frames under its SQL."""

    def start(self) -> None:
        import polars

        self.polars = polars
        self.context = polars.SQLContext()

    def open(self, tables: dict[str, str]) -> None:
        for name, folder in tables.items():
            self.context.register(name, self.polars.scan_delta(folder))

    def query(self, sql: str) -> pa.Table:
        return self.context.execute(sql, eager=True).to_arrow()

    def travel(self, folder: str, version: int | None, moment: str | None) -> pa.Table:
        at = version if version is not None else moment and moment.replace(" ", "T") + "Z"
        return self.polars.scan_delta(folder, version=at).select(n=self.polars.len()).collect().to_arrow()


class WithSparkSession(Embedded):
    """What is asked through Spark's Python API."""

    def open(self, tables: dict[str, str]) -> None:
        for name, folder in tables.items():
            self.session.read.format("delta").load(folder).createOrReplaceTempView(name)

    def query(self, sql: str) -> pa.Table:
        return self.session.sql(sql).toArrow()


class Sail(WithSparkSession):
    """Sail's Spark Connect server, asked by Spark's client."""

    def start(self) -> None:
        from pysail.spark import SparkConnectServer
        from pyspark.sql import SparkSession

        self.server = SparkConnectServer()
        self.server.start(background=True)
        host, port = self.server.listening_address
        self.session = SparkSession.builder.remote(f"sc://{host}:{port}").getOrCreate()

    def travel(self, folder: str, version: int | None, moment: str | None) -> pa.Table:
        reader = self.session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        if moment is not None:
            reader = reader.option("timestampAsOf", moment)
        reader.load(folder).createOrReplaceTempView("t")
        return self.query("SELECT count(*) AS n FROM t")


class Spark(WithSparkSession):
    """Spark with Delta, in a JVM beside the asking process."""

    def start(self) -> None:
        import spark_session

        self.session = spark_session.start(Path(os.environ["BENCH_SCRATCH"]))
        self.session.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")

    def pids(self) -> list[int]:
        return [os.getpid(), self.session.sparkContext._gateway.proc.pid]

    def travel(self, folder: str, version: int | None, moment: str | None) -> pa.Table:
        at = f"VERSION AS OF {version}" if version is not None else f"TIMESTAMP AS OF '{moment}'" if moment else ""
        return self.query(f"SELECT count(*) AS n FROM delta.`{folder}` {at}")

    def close(self) -> None:
        self.session.stop()


class FlightMemory(Embedded):
    """Arrow's own Flight server (C++), sending batches that lie in its memory: what the wire and the driver cost."""

    def start(self) -> None:
        import subprocess

        import adbc_driver_flightsql.dbapi as flightsql

        self.flightsql = flightsql
        self.subprocess = subprocess
        self.server = None
        self.connection = None

    def pids(self) -> list[int]:
        return [os.getpid()] + ([self.server.pid] if self.server else [])

    def open(self, tables: dict[str, str]) -> None:
        (folder,) = tables.values()
        script = Path(__file__).parent / "flight_memory.py"
        self.server = self.subprocess.Popen([sys.executable, str(script), folder], stdout=self.subprocess.PIPE, text=True)
        port = int(self.server.stdout.readline())
        self.connection = self.flightsql.connect(f"grpc://127.0.0.1:{port}", autocommit=True)

    def query(self, sql: str) -> pa.Table:
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetch_arrow_table()

    def close(self) -> None:
        self.connection.close()
        self.server.kill()
        self.server.wait()


ENGINES = {
    "asof": Asof,
    "duckdb": DuckDb,
    "delta-rs": DeltaRs,
    "datafusion": DataFusion,
    "polars": Polars,
    "sail": Sail,
    "spark": Spark,
    "flight": FlightMemory,
}
