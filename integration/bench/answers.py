"""Do two engines give the same rows?

Engines differ in types (an average is a DOUBLE here and a DECIMAL there) and in the order of rows that ORDER BY leaves open: so rows are
compared as multisets, numbers within a relative 1e-6.
"""

import datetime
import decimal
import math

import pyarrow as pa


def plain(table: pa.Table) -> list[list]:
    """Rows as JSON can carry them: numbers as floats, moments as text."""
    columns = [[_plain(value) for value in column.to_pylist()] for column in table.columns]
    return [list(row) for row in zip(*columns)]


def _plain(value):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float, decimal.Decimal)):
        return float(value)
    if isinstance(value, datetime.datetime):
        return value.isoformat() if any((value.hour, value.minute, value.second, value.microsecond)) else value.date().isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value)


def _order(row: list) -> tuple:
    return tuple((value is None, str(type(value)), f"{value:.4g}" if isinstance(value, float) else str(value)) for value in row)


def _same(a, b) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6)
    return a == b


def difference(ours: list[list], theirs: list[list]) -> str | None:
    """The first difference in words, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows against {len(theirs)}"
    for a, b in zip(sorted(ours, key=_order), sorted(theirs, key=_order)):
        if len(a) != len(b) or not all(map(_same, a, b)):
            return f"{a} against {b}"
    return None
