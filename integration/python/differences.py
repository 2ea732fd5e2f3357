"""Where asof answers otherwise than Spark, on purpose: the only place that says so.

The golden answers are Spark's. `server/docs` and the reasons below say why asof differs; a test that needs an exception looks it up here
and nowhere else. Everything not listed must be as recorded.
"""

import datetime
import re

import pyarrow as pa

# --- versions ---------------------------------------------------------------------------------------------------------------------


def numbered(upto: int) -> list[tuple]:
    """Rows of the tables in malformed/: version N adds (N, 'row N')."""
    return [(n, f"row {n}") for n in range(1, upto + 1)]


# (case, version) -> the rows asof gives where Spark gives none.
MORE_VERSIONS: dict[tuple[str, int], list[tuple]] = {}
# The newest commit has an unknown reader feature; the versions before it have not. A version reads by its own protocol.
MORE_VERSIONS |= {
    ("future_reader", 0): [],
    ("future_reader", 1): [(1, "a"), (2, "b")],
    ("future_reader", 2): [(1, "a"), (2, "b"), (3, "c")],
}
# The last commit is torn. What lies before it is intact, and is given when asked for by number or time.
MORE_VERSIONS |= {("malformed/truncated_commit", n): numbered(n) for n in range(4)}
# A commit is missing. What lies before the gap is intact.
MORE_VERSIONS |= {("malformed/version_gap", n): numbered(n) for n in range(2)}

# (case, version) -> what the refusal names, where Spark answers.
REFUSED_VERSIONS = {
    # Paths that leave the table are refused: a table must not read the server's other files.
    ("malformed/path_escapes", 4): ["secret.parquet", "outside"],
    ("malformed/path_absolute", 4): ["/etc/hostname", "outside"],
}

# Refused or answered as Spark does; both are right. (case, version) -> what a refusal has to name.
EITHER_VERSIONS = {
    # A commit of no bytes: Spark takes it as a commit of nothing.
    ("malformed/zero_byte_commit", 4): ["00000000000000000004.json"],
}

# --- moments ------------------------------------------------------------------------------------------------------------------------


def is_in_the_future(selector: str) -> bool:
    """Whether a recorded selector names a moment later than now."""
    found = re.search(r"(\d{4})-?(\d\d)-?(\d\d)", selector)
    if not found:
        return False
    return datetime.date(*map(int, found.groups())) > datetime.datetime.now(datetime.timezone.utc).date()


def answers_with_latest(error: dict) -> bool:
    """A moment after the last commit and not in the future is the latest version. Spark refuses it; but nothing was committed since, so
    the latest version is what the table held then. A moment in the future stays an error: most likely a slip."""
    return error["why"].startswith("after the last") and not is_in_the_future(error["sql"])


# (case, selector) -> version, where Spark refuses the spelling.
MORE_SELECTORS = {
    # People type it (the seed's article does), and it can mean only one thing.
    ("seed_001b_recover", "VERSION AS OF timestamp '2024-06-26T12:34:53.000Z'"): 0,
}

# --- errors -------------------------------------------------------------------------------------------------------------------------

# Statements that asof does not have yet; they must be refused and change nothing.
NOT_YET = re.compile(r"^\s*(MERGE|WITH\b.*\bMERGE)\b", re.IGNORECASE | re.DOTALL)

# What an error names, where "expect" of the case is prose that the rules of `words` do not understand.
WORDS = {
    "the number": ["99999999999999999999"],
    "NULL": ["(?i)null"],
    "the versions left": [r"\b1[01]\b", r"\b13\b"],
    "the earliest version left and its time": [r"\b11\b", "2026-01-01", "11:00:00"],
    "VERSION takes a whole number; use TIMESTAMP AS OF for a time": ["TIMESTAMP AS OF"],
    "alpha, and the columns of version 1": ["alpha", r"\bregion\b"],
    "a, and the columns of now": [r"\ba\b", "alpha"],
    "x, and the fields xx and y": [r"\bx\b", r"\bxx\b"],
    "amount, and id, name": ["amount", r"\bid\b", r"\bname\b"],
    "small_qty, its expression, the values": ["small_qty", "100"],
    "total, its expression": ["total"],
    "big, and how many rows": ["big", r"\b4 rows\b"],
    "the 30 days (720 hours) of retention and the check that forbids less": ["720 hours", "retentionDurationCheck"],
    "x > 3 and the value 3": ["x > 3", r"\b3\b"],
    "x > 3 and NULL": ["x > 3"],
    "the version and the file that is gone": [r"\b1\b", "part-00000-089ff0d2-0398-4d1b-9c04-8956874f1967"],
    "the files that are gone": ["part-00000-"],
    "00000000000000000010.checkpoint.parquet": ["00000000000000000010"],
    "00000000000000000002.json and the line": ["00000000000000000002.json"],
    "metaData is missing": ["(?i)metadata"],
    "the missing version 2": [r"\b0*2\b"],
    "00000000000000000004.json and that its JSON is broken": ["00000000000000000004.json"],
    "00000000000000000004.json is empty, if refused": ["00000000000000000004.json"],
    "00000000000000000000.json, no protocol or metadata": ["(?i)protocol|metadata|00000000000000000000.json"],
    "../../secret.parquet and that it lies outside the table": ["secret.parquet", "outside"],
    "file:///etc/hostname": ["/etc/hostname"],
    "p=a%2Fb/part-00000-82e65dba-1aa6-4a95-85b3-d3da737c4f35.c000.snappy.parquet": ["part-00000-82e65dba-1aa6-4a95-85b3-d3da737c4f35"],
    "version 3 and its time": [r"\b3\b", "2026-05-07"],
    "the latest version 5 and 2024-06-26 12:42:00": [r"\b5\b", "2024-06-26"],
}


def words(expect: str) -> list[str]:
    """Regular expressions that a good error's text must match, from the case's `expect`."""
    if expect in WORDS:
        return WORDS[expect]
    if found := re.fullmatch(r"the versions (\d+) to (\d+)", expect):
        return [rf"\b{number}\b" for number in found.groups()]
    if found := re.fullmatch(r"(?:the \w+ )?version (\d+)(?: and (?:its time )?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)\S*)?", expect):
        version, date, time = found.groups()
        return [rf"\b{version}\b"] + ([date, time] if date else [])
    return [re.escape(expect)]


# --- values -------------------------------------------------------------------------------------------------------------------------


def standard_literals(predicate: str) -> str:
    """A predicate of `filters.json` with Spark's backslash escapes in string literals written out. In asof, as in the SQL standard, a
    backslash in '…' is a backslash."""

    def literal(found: re.Match) -> str:
        body = found.group(0)
        body = re.sub(r"(?:\\u[0-9A-Fa-f]{4})+", lambda m: m.group(0).encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16"), body)
        return body.replace("\\n", "\n").replace("\\\\", "\\")

    return re.sub(r"'(?:[^'\\]|\\.)*'", literal, predicate)


# Values of the history that asof gives otherwise.
def same_history_value(column: str, actual, expected) -> bool:
    return actual == expected


# --- writes -------------------------------------------------------------------------------------------------------------------------

# (case, version) -> what the refusal of the statement behind that version names. asof keeps what a table's features demand of a writer,
# or refuses the write by name.
REFUSED_WRITES: dict[tuple[str, int], list[str]] = {}

# (case, version) -> why the statement is not run.
NOT_REPLAYED: dict[tuple[str, int], str] = {}


def table_of(rows: list[tuple], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows)) if rows else [[] for _ in schema]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, schema)], schema=schema)

# Writes that asof refuses by name for now, or on purpose, where Spark runs them.
REFUSED_WRITES |= {("optimize_cluster", n): ["rowTracking"] for n in (1, 2, 3, 4, 5, 6, 11)}
# Variants are read only.
REFUSED_WRITES |= {("variant", 1): ["variant"], ("variant", 2): ["variant"]}
REFUSED_WRITES |= {("optimize_cluster", n): ["CLUSTER BY"] for n in (7, 10)}
REFUSED_WRITES |= {("optimize_zorder", 5): ["ZORDER"]}
# map() without arguments: a limit of the planner.
REFUSED_WRITES |= {("mapping_id", 4): ["map"], ("nested", 1): ["map"]}

# (case, version) -> why the statement means something else in asof.
OTHER_WRITES = {("all_types", 2): "a backslash in a plain literal is a backslash, as in the standard; E'...' reads escapes"}
