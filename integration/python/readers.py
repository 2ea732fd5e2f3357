"""Other engines reading what asof wrote."""

from functools import cache
from pathlib import Path

import deltalake
import duckdb
import duckdb_extension_delta
import pyarrow as pa


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    extension = Path(duckdb_extension_delta.__file__).parent / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension"
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def duckdb_rows(path: Path, schema: pa.Schema, version: int | None = None) -> pa.Table:
    """The rows of a Delta table as DuckDB reads them, cast to `schema`."""
    selector = "" if version is None else f", version := {version}"
    table = _duckdb().execute(f"SELECT * FROM delta_scan('{path}'{selector})").to_arrow_table()
    return table.cast(schema) if table.column_names == schema.names else table


def delta_rs_rows(path: Path, schema: pa.Schema, version: int | None = None) -> pa.Table:
    """The rows of a Delta table as delta-rs reads them (through its own DataFusion, which knows deletion vectors), cast to `schema`."""
    table = deltalake.DeltaTable(str(path), version=version)
    found = pa.table(deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())
    return found.cast(schema) if found.column_names == schema.names else found
