"""The golden tables: tables written by other engines, with the answers Spark gives for them.

The layout of a case is told in ``integration/golden/delta/README.md``. A table is always copied into a warehouse first, and the
modification times of its commit files are set from ``mtimes``, because Delta dates versions by them.
"""

import collections
import datetime
import decimal
import json
import os
import re
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(os.environ.get("ASOF_GOLDEN", Path(__file__).parent.parent / "golden" / "delta"))


@dataclass(frozen=True)
class Case:
    """One golden table. Cases of ``malformed/`` lie in a schema of that name, the others in ``golden``."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def schema(self) -> str:
        return "malformed" if self.id.startswith("malformed/") else "golden"

    @property
    def name(self) -> str:
        return f"{self.schema}.{self.path.name}"

    @cached_property
    def _content(self) -> dict:
        return json.loads((self.path / "case.json").read_text())

    def __getitem__(self, key):
        return self._content[key]

    def get(self, key, default=None):
        return self._content.get(key, default)

    def __hash__(self):
        return hash(self.path)

    @property
    def versions(self) -> dict[int, dict]:
        return {v["version"]: v for v in self["versions"]}

    @property
    def readable(self) -> list[int]:
        """Versions whose rows are recorded."""
        return [v for v, told in self.versions.items() if told["readable"] and not told.get("refuse")]

    @property
    def last(self) -> int:
        return max(commit_version(path) for path in self["mtimes"])

    def rows(self, version: int) -> pa.Table:
        return pq.read_table(self.path / "expect" / f"v{version}.parquet")

    def expect(self, name: str):
        return json.loads((self.path / "expect" / f"{name}.json").read_text())

    def copy(self, warehouse: Path, upto: int | None = None, name: str | None = None) -> str:
        """Copy the table into a warehouse as it was at version `upto` (by default whole); its name in SQL."""
        schema, _, table = (name or self.name).partition(".")
        target = Path(warehouse) / schema / table
        shutil.copytree(self.path / "table", target)
        for told, milliseconds in self["mtimes"].items():
            os.utime(target / told, ns=(milliseconds * 1_000_000, milliseconds * 1_000_000))
        if upto is not None:
            cut_log(target / "_delta_log", upto)
        if self.path.name == "path_escapes":
            # The file outside the table that its log points to (../../secret.parquet).
            shutil.copy(self.path.parent / "secret.parquet", Path(warehouse) / "secret.parquet")
        return f"{schema}.{table}"


def commit_version(path: str) -> int:
    return int(Path(path).name.split(".")[0])


def cut_log(log: Path, upto: int) -> None:
    """Make the log end with version `upto`: later commits, checkpoints and checksums go."""
    for file in list(log.iterdir()):
        if file.name == "_last_checkpoint":
            try:
                later = json.loads(file.read_text())["version"] > upto
            except (ValueError, KeyError):
                later = True
            if later:
                file.unlink()
        elif re.match(r"^\d{20}\.", file.name) and commit_version(file.name) > upto:
            file.unlink()


def cases(malformed: bool | None = None) -> list[Case]:
    """All cases; only malformed ones with True, only sound ones with False."""
    found = [Case(path.parent) for path in sorted(ROOT.glob("**/case.json"))]
    return [case for case in found if malformed is None or (case.schema == "malformed") == malformed]


def case(name: str) -> Case:
    return Case(ROOT / name)


def at(table: str, selector: str) -> str:
    """A table with a selector behind it; `@…` is part of the name."""
    return table + selector if selector.startswith("@") else f"{table} {selector}"


def select(table: str, selector: str, columns: str = "*") -> str:
    return f"SELECT {columns} FROM {at(table, selector)}"


# --- rows ---------------------------------------------------------------------------------------------------------------------------


def plain(value: pa.Scalar):
    """A scalar as something hashable that keeps what Python would lose: NaN, the sign of zero, years outside Python's."""
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_floating(kind):
        number = value.as_py()
        return "NaN" if number != number else repr(number)
    if pa.types.is_timestamp(kind):
        return ("ts" if kind.tz else "ntz", value.cast(pa.timestamp("us", kind.tz)).value)
    if pa.types.is_date(kind):
        return ("date", value.value)
    if pa.types.is_decimal(kind):
        with decimal.localcontext(prec=80):
            return ("decimal", value.as_py().normalize().as_tuple())
    if pa.types.is_map(kind):
        return ("map", tuple(sorted(((plain(entry["key"]), plain(entry["value"])) for entry in value.values), key=repr)))
    if pa.types.is_struct(kind):
        return ("struct", tuple((field.name, plain(value[field.name])) for field in kind))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return ("list", tuple(plain(item) for item in value.values))
    return value.as_py()


def multiset(table: pa.Table) -> collections.Counter:
    columns = [[plain(value) for value in column] for column in table.columns]
    return collections.Counter(zip(*columns)) if columns else collections.Counter()


def as_recorded(actual: pa.Table, expected: pa.Table) -> pa.Table:
    """`actual` with nested columns written as JSON text where the recorded rows have such text: variants inside structs and lists."""

    def text(value, kind: pa.DataType):
        # On the wire a variant is JSON text; Spark's to_json leaves NULL fields out.
        if value is None or pa.types.is_string(kind):
            return None if value is None else json.loads(value)
        if pa.types.is_struct(kind):
            return {field.name: text(value[field.name], field.type) for field in kind if value[field.name] is not None}
        return [text(item, kind.value_type) for item in value]

    for number, (have, want) in enumerate(zip(actual.schema, expected.schema)):
        if pa.types.is_string(want.type) and pa.types.is_nested(have.type):
            values = [None if v is None else json.dumps(text(v, have.type), separators=(",", ":")) for v in actual.column(number).to_pylist()]
            actual = actual.set_column(number, have.name, pa.array(values, pa.string()))
    return actual


def same_rows(actual: pa.Table, expected: pa.Table) -> None:
    """Fails with the rows that are too few and too many."""
    assert actual.column_names == expected.column_names, f"columns {actual.column_names}, expected {expected.column_names}"
    have, want = multiset(as_recorded(actual, expected)), multiset(expected)
    if have != want:
        missing, extra = list((want - have).elements()), list((have - want).elements())
        raise AssertionError(
            f"{actual.num_rows} rows, expected {expected.num_rows}; {len(missing)} missing, {len(extra)} too many\n"
            f"missing: {missing[:5]}\ntoo many: {extra[:5]}"
        )


def as_text(value):
    """A Python value as `session` results in case.json spell it."""
    if isinstance(value, datetime.datetime):
        if value.tzinfo:
            value = value.astimezone(datetime.timezone.utc)
            return value.strftime("%Y-%m-%dT%H:%M:%S.") + f"{value.microsecond // 1000:03d}Z"
        return value.isoformat(sep=" ")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, tuple) for item in value):
        # A map; no recorded answer that is compared this way holds a list.
        return {key: as_text(item) for key, item in value}
    return value


def records(table: pa.Table) -> list[dict]:
    """Rows as dictionaries, spelled as in case.json."""
    names = table.column_names
    return [dict(zip(names, map(as_text, row))) for row in zip(*[column.to_pylist() for column in table.columns])]


# --- schemas ------------------------------------------------------------------------------------------------------------------------

SIMPLE = {
    "STRING": pa.string(),
    "BIGINT": pa.int64(),
    "INT": pa.int32(),
    "SMALLINT": pa.int16(),
    "TINYINT": pa.int8(),
    "DOUBLE": pa.float64(),
    "FLOAT": pa.float32(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
    "BINARY": pa.binary(),
    "BOOLEAN": pa.bool_(),
    # On the wire a variant is its JSON text.
    "VARIANT": pa.string(),
}


class Ddl:
    """Reads the DDL of a schema as Spark prints it (`StructType.toDDL`)."""

    TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|[A-Za-z_0-9]+|[<>(),:])")

    def __init__(self, text: str):
        self.tokens = self.TOKEN.findall(text)
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        assert token is not None and (wanted is None or token == wanted), f"{self.tokens[self.at:]}: expected {wanted}"
        self.at += 1
        return token

    def fields(self, end: str | None) -> list[pa.Field]:
        found = []
        while self.peek() != end:
            if found:
                self.take(",")
            name = self.take()
            if name.startswith("`"):
                name = name[1:-1].replace("``", "`")
            if self.peek() == ":":
                self.take()
            kind, nullable = self.type(), True
            while self.peek() not in (end, ",", None):
                word = self.take().upper()
                if word == "NOT":
                    self.take("NULL")
                    nullable = False
                elif word in ("DEFAULT", "COMMENT", "COLLATE"):
                    self.take()
            found.append(pa.field(name, kind, nullable))
        return found

    def type(self) -> pa.DataType:
        word = self.take().upper()
        if word == "DECIMAL":
            self.take("(")
            precision = int(self.take())
            self.take(",")
            scale = int(self.take())
            self.take(")")
            return pa.decimal128(precision, scale)
        if word == "ARRAY":
            self.take("<")
            item = self.type()
            self.take(">")
            return pa.list_(item)
        if word == "MAP":
            self.take("<")
            key = self.type()
            self.take(",")
            value = self.type()
            self.take(">")
            return pa.map_(key, value)
        if word == "STRUCT":
            self.take("<")
            fields = self.fields(">")
            self.take(">")
            return pa.struct(fields)
        return SIMPLE[word]


def schema_of(ddl: str) -> list[pa.Field]:
    return Ddl(ddl).fields(None)


def shape(kind: pa.DataType) -> str:
    """A type by what it means, without the names Arrow gives to list items and map entries."""
    if pa.types.is_list(kind):
        return f"array<{shape(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{shape(kind.key_type)}, {shape(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"{field.name}: {shape(field.type)}" for field in kind) + ">"
    return str(kind)


def same_schema(actual: pa.Schema, ddl: str) -> None:
    have = [(field.name, shape(field.type)) for field in actual]
    want = [(field.name, shape(field.type)) for field in schema_of(ddl)]
    assert have == want
