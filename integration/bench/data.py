"""The tables under measure, made once and kept: TPC-H, the same with deletion vectors, a long log, a wide log, many rows.

Everything lies under one folder, which is asof's warehouse and every peer's source alike: `<folder>/<schema>/<table>` is a Delta table.
"""

import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TPCH = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]
EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
COMMITS = 10_000
CHECKPOINT_EACH = 100
WIDE_FILES = 1_000_000
WIDE_ROWS = 1_000
MANY_ROWS = 10_000_000


def once(folder: Path, make) -> Path:
    """Make a folder whole, or not at all."""
    if not folder.exists():
        print(f"making {folder.name} …", file=sys.stderr, flush=True)
        unfinished = folder.with_name(folder.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


def tables(schema: Path) -> dict[str, str]:
    return {folder.name: str(folder) for folder in sorted(schema.iterdir()) if (folder / "_delta_log").exists()}


def tpch(root: Path, scale: str) -> Path:
    """TPC-H's tables as delta-rs writes them."""

    def make(folder: Path) -> None:
        import deltalake

        generated = folder / "generated"
        generator = Path(sys.executable).with_name("tpchgen-cli")
        subprocess.run([generator, "parquet", "-s", scale, "--output-dir", generated], check=True, stdout=subprocess.DEVNULL)
        for name in TPCH:
            source = pq.ParquetFile(generated / f"{name}.parquet")
            batches = pa.RecordBatchReader.from_batches(_delta_schema(source.schema_arrow), _delta_batches(source))
            deltalake.write_deltalake(str(folder / name), batches)
        shutil.rmtree(generated)

    return once(root / f"tpch_{scale}", make)


def _delta_schema(schema: pa.Schema) -> pa.Schema:
    plain = {pa.string_view(): pa.string(), pa.large_string(): pa.string()}
    return pa.schema([pa.field(f.name, plain.get(f.type, f.type), f.nullable) for f in schema])


def _delta_batches(source: pq.ParquetFile):
    schema = _delta_schema(source.schema_arrow)
    for batch in source.iter_batches(batch_size=65_536):
        yield pa.RecordBatch.from_arrays([column.cast(field.type) for column, field in zip(batch.columns, schema)], schema=schema)


def with_vectors(root: Path, scale: str) -> Path:
    """The same tables, of which lineitem and orders have lost 1% of their rows to deletion vectors, written by the kernel's writer."""
    source = tpch(root, scale)

    def make(folder: Path) -> None:
        for name in TPCH:
            shutil.copytree(source / name, folder / name, copy_function=os.link)
        for name in ["lineitem", "orders"]:
            subprocess.run([os.environ["DELETE_ROWS"], folder / name, folder.with_suffix("") / name, "100"], check=True)

    return once(root / f"tpch_{scale}_vectors", make)


def _schema_string(fields: dict[str, str]) -> str:
    return json.dumps({"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in fields.items()]})


def _heads(fields: dict[str, str]) -> list[dict]:
    metadata = {"id": "3f0c2f4e-0000-4000-8000-000000000001", "format": {"provider": "parquet", "options": {}}}
    metadata |= {"schemaString": _schema_string(fields), "partitionColumns": [], "configuration": {}, "createdTime": 0}
    return [{"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}, {"metaData": metadata}]


def long_log(root: Path) -> Path:
    """A table of 10,000 commits, each of one file of one row, a checkpoint each 100, a minute between commits."""

    def make(schema: Path) -> None:
        import deltalake

        folder = schema / "long"
        log = folder / "_delta_log"
        log.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([1]), "v": pa.array(["one"])}), folder / "first.parquet")
        size = (folder / "first.parquet").stat().st_size
        stats = json.dumps({"numRecords": 1, "minValues": {"id": 1, "v": "one"}, "maxValues": {"id": 1, "v": "one"}, "nullCount": {"id": 0, "v": 0}})
        for version in range(COMMITS):
            at = EPOCH + datetime.timedelta(minutes=version)
            millis = int(at.timestamp() * 1000)
            name = f"part-{version:05}.parquet"
            os.link(folder / "first.parquet", folder / name)
            actions = [{"commitInfo": {"timestamp": millis, "operation": "WRITE", "operationParameters": {"mode": "Append"}}}]
            actions += _heads({"id": "long", "v": "string"}) if version == 0 else []
            add = {"path": name, "partitionValues": {}, "size": size, "modificationTime": millis, "dataChange": True, "stats": stats}
            commit = log / f"{version:020}.json"
            commit.write_text("\n".join(map(json.dumps, [*actions, {"add": add}])) + "\n")
            os.utime(commit, (at.timestamp(), at.timestamp()))
            if version and version % CHECKPOINT_EACH == 0:
                deltalake.DeltaTable(str(folder), version=version).create_checkpoint()

    return once(root / "logs", make) / "long"


def wide_log(root: Path) -> Path:
    """A table of 1,000,000 files in one checkpoint, with statistics as text and as columns; the files that a selective query reads are there."""

    def make(schema: Path) -> None:
        folder = schema / "wide"
        log = folder / "_delta_log"
        log.mkdir(parents=True)
        for number in WIDE_READ:
            ids = pa.array(range(number * WIDE_ROWS, (number + 1) * WIDE_ROWS), pa.int64())
            pq.write_table(pa.table({"id": ids, "v": pa.array([float(i % 97) for i in range(WIDE_ROWS)])}), folder / f"part-{number:07}.parquet")
        sizes = {number: (folder / f"part-{number:07}.parquet").stat().st_size for number in WIDE_READ}
        heads = _heads({"id": "long", "v": "double"})
        (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, heads)) + "\n")
        info = {"commitInfo": {"timestamp": 0, "operation": "WRITE", "operationParameters": {}}}
        (log / f"{1:020}.json").write_text(json.dumps(info) + "\n")
        writer = None
        for first in range(0, WIDE_FILES, 100_000):
            rows = _checkpoint_adds(range(first, first + 100_000), sizes)
            if writer is None:
                writer = pq.ParquetWriter(log / f"{1:020}.checkpoint.parquet", rows.schema, compression="snappy")
                writer.write_table(_checkpoint_heads(heads, rows.schema))
            writer.write_table(rows)
        writer.close()
        (log / "_last_checkpoint").write_text(json.dumps({"version": 1, "size": WIDE_FILES + 2}))

    return once(root / "wide_logs", make) / "wide"


WIDE_READ = [123_456, 123_457, 777_777]


def _checkpoint_adds(numbers: range, sizes: dict[int, int]) -> pa.Table:
    low, high = [n * WIDE_ROWS for n in numbers], [(n + 1) * WIDE_ROWS - 1 for n in numbers]
    count = len(numbers)
    zeros, tops = [0.0] * count, [96.0] * count
    stats = [
        f'{{"numRecords":{WIDE_ROWS},"minValues":{{"id":{a},"v":0.0}},"maxValues":{{"id":{b},"v":96.0}},"nullCount":{{"id":0,"v":0}}}}'
        for a, b in zip(low, high)
    ]
    struct = lambda **columns: pa.StructArray.from_arrays(list(columns.values()), list(columns))  # noqa: E731
    parsed = struct(
        numRecords=pa.array([WIDE_ROWS] * count, pa.int64()),
        minValues=struct(id=pa.array(low, pa.int64()), v=pa.array(zeros)),
        maxValues=struct(id=pa.array(high, pa.int64()), v=pa.array(tops)),
        nullCount=struct(id=pa.array([0] * count, pa.int64()), v=pa.array([0] * count, pa.int64())),
    )
    add = struct(
        path=pa.array([f"part-{n:07}.parquet" for n in numbers]),
        partitionValues=pa.array([[]] * count, pa.map_(pa.string(), pa.string())),
        size=pa.array([sizes.get(n, 7_000) for n in numbers], pa.int64()),
        modificationTime=pa.array([0] * count, pa.int64()),
        dataChange=pa.array([True] * count),
        stats=pa.array(stats),
        stats_parsed=parsed,
    )
    return _checkpoint({"add": add}, count)


TEXTS = pa.map_(pa.string(), pa.string())
HEADS = {
    "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
    "metaData": pa.struct(
        [
            ("id", pa.string()),
            ("name", pa.string()),
            ("description", pa.string()),
            ("format", pa.struct([("provider", pa.string()), ("options", TEXTS)])),
            ("schemaString", pa.string()),
            ("partitionColumns", pa.list_(pa.string())),
            ("configuration", TEXTS),
            ("createdTime", pa.int64()),
        ]
    ),
    "txn": pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())]),
    "remove": pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64()), ("dataChange", pa.bool_())]),
}


def _checkpoint(columns: dict[str, pa.Array], rows: int) -> pa.Table:
    return pa.table(columns | {name: pa.nulls(rows, kind) for name, kind in HEADS.items() if name not in columns})


def _checkpoint_heads(heads: list[dict], schema: pa.Schema) -> pa.Table:
    (protocol, metadata) = (heads[0]["protocol"], heads[1]["metaData"])
    metadata = metadata | {"configuration": [], "format": {"provider": "parquet", "options": []}, "name": None, "description": None}
    columns = {"protocol": pa.array([protocol, None], HEADS["protocol"]), "metaData": pa.array([None, metadata], HEADS["metaData"])}
    return _checkpoint(columns | {"add": pa.nulls(2, schema.field("add").type)}, 2).select(schema.names)


def many_rows(root: Path) -> Path:
    """10,000,000 rows of a few types, as delta-rs writes them."""

    def make(schema: Path) -> None:
        import deltalake
        import numpy as np

        random = np.random.default_rng(7)
        kind = pa.schema([("id", pa.int64()), ("k", pa.int32()), ("price", pa.float64()), ("name", pa.string()), ("day", pa.date32())])

        def batches():
            for first in range(0, MANY_ROWS, 100_000):
                names = [f"customer#{n:06}" for n in random.integers(0, 200_000, 100_000)]
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array(np.arange(first, first + 100_000)),
                        pa.array(random.integers(0, 100_000, 100_000).astype(np.int32)),
                        pa.array(random.random(100_000)),
                        pa.array(names),
                        pa.array(np.full(100_000, first // 100_000, dtype=np.int32)).cast(pa.date32()),
                    ],
                    schema=kind,
                )

        deltalake.write_deltalake(str(schema / "many"), pa.RecordBatchReader.from_batches(kind, batches()))

    return once(root / "many_rows", make) / "many"
