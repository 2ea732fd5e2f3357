"""What is measured: one function for each case of the design's table of targets.

A case is given the pool of engines and gives rows: what was done, and what each engine took for it. The answers of all engines are compared
with asof's before anything is timed; an engine that cannot do the work is told by name with its own words.
"""

import random
import statistics
from dataclasses import dataclass, field
from pathlib import Path

import data
from answers import difference
from measure import Runs
from pool import Pool, Worker

DATA_ENGINES = ["asof", "duckdb", "delta-rs", "polars", "sail", "spark"]


@dataclass
class Row:
    """One piece of work and what each engine took."""

    work: str
    runs: dict[str, Runs] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class Case:
    """A case's outcome."""

    name: str
    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _interleaved(workers: dict[str, Worker], row: Row, request: dict, rounds: int) -> None:
    """First once each, to warm and to compare; then in turn, in another order each round."""
    first = {}
    for name, worker in workers.items():
        row.runs[name] = Runs()
        first[name] = worker.ask(request | {"answer": True})
        row.runs[name].error = first[name].get("error")
    ours = first["asof"].get("answer")
    for name, reply in first.items():
        if ours is not None and "answer" in reply and (differs := difference(ours, reply["answer"])):
            row.notes.append(f"{row.work}: asof and {name} answer differently: {differs[:300]}")
    order = [name for name in workers if row.runs[name].error is None]
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            row.runs[name].add(workers[name].ask(request))


def _queries() -> list[tuple[str, str]]:
    import duckdb
    import duckdb_extension_tpch

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    found = next(Path(duckdb_extension_tpch.__file__).parent.rglob("tpch.duckdb_extension"))
    connection.execute(f"LOAD '{found}'")
    return [(f"Q{number}", sql.strip().rstrip(";")) for number, sql in connection.execute("FROM tpch_queries()").fetchall()]


def _tpch(pool: Pool, case: Case, schema: Path, engines: list[str]) -> Case:
    tables = data.tables(schema)
    with pool.workers(engines) as workers:
        for name in list(workers):
            if error := workers[name].ask({"do": "open", "tables": tables}).get("error"):
                case.notes.append(f"{name} is left out: {error}")
                workers.pop(name).close()
        for query, sql in _queries():
            row = Row(query)
            _interleaved(workers, row, {"do": "query", "sql": sql}, pool.rounds(3))
            case.rows.append(row)
            case.notes += row.notes
    case.rows.append(_sum(case.rows))
    return case


def _sum(rows: list[Row]) -> Row:
    """The sum of the medians, for engines that answered everything."""
    total = Row("sum of medians")
    for name in rows[0].runs:
        summaries = [row.runs[name].summary() for row in rows]
        if failed := [row.work for row, summary in zip(rows, summaries) if "error" in summary]:
            total.runs[name] = Runs(error=f"does not answer {', '.join(failed)}")
        else:
            sums = {key: sum(summary[key] for summary in summaries) for key in ["wall", "cpu"]}
            total.runs[name] = Runs([sums["wall"]], [sums["cpu"]], max(summary["peak"] for summary in summaries))
    return total


def p1(pool: Pool) -> Case:
    case = Case("P1", f"TPC-H at scale {pool.scale} over Delta, and P12: beside DataFusion on the same Parquet files")
    return _tpch(pool, case, data.tpch(pool.data, pool.scale), [*DATA_ENGINES, "datafusion"])


def p2(pool: Pool) -> Case:
    case = Case("P2", f"TPC-H at scale {pool.scale}, 1% of lineitem and orders deleted by vectors")
    return _tpch(pool, case, data.with_vectors(pool.data, pool.scale), DATA_ENGINES)


def p3(pool: Pool) -> Case:
    """Cold: server up, table never seen; for peers: library loaded, table opened. Then the same again in the same process."""
    folder = str(data.long_log(pool.data))
    case = Case("P3", f"Open a version of a table of {data.COMMITS:,} commits and count it")
    moment = (data.EPOCH + data.datetime.timedelta(minutes=data.COMMITS // 2, seconds=30)).strftime("%Y-%m-%d %H:%M:%S")
    asked = {
        "latest": {},
        "the middle version": {"version": data.COMMITS // 2},
        "version 50": {"version": 50},
        "by timestamp": {"moment": moment},
    }
    for what, at in asked.items():
        cold, warm = Row(f"{what}, cold"), Row(f"{what}, again")
        answers = {}
        for _ in range(pool.rounds(3)):
            for name in pool.available(DATA_ENGINES):
                with pool.worker(name) as worker:
                    request = {"do": "travel", "folder": folder} | at
                    first = worker.ask(request)
                    cold.runs.setdefault(name, Runs(error=first.get("error")))
                    warm.runs.setdefault(name, Runs(error=first.get("error")))
                    if "error" in first:
                        continue
                    answers[name] = first["answer"]
                    cold.runs[name].add(first)
                    again = sorted((worker.ask(request) for _ in range(5)), key=lambda reading: reading["wall"])
                    warm.runs[name].add(again[2])
        for name, answer in answers.items():
            if answer != answers["asof"]:
                case.notes.append(f"{what}: asof counts {answers['asof']}, {name} {answer}")
        case.rows += [cold, warm]
    return case


def p4(pool: Pool) -> Case:
    """The files' statistics rule out all but one or two files."""
    folder = data.wide_log(pool.data)
    case = Case("P4", f"A selective query on a table of {data.WIDE_FILES:,} files")
    first = data.WIDE_READ[0] * data.WIDE_ROWS
    queries = {
        "one file": f"SELECT count(*) AS n, sum(v) AS s FROM wide WHERE id = {first + 5}",
        "two files": f"SELECT count(*) AS n, sum(v) AS s FROM wide WHERE id BETWEEN {first + 900} AND {first + 1099}",
    }
    cold, rows = Row("one file, cold"), [Row(f"{what}, again") for what in queries]
    engines = ["asof", "duckdb", "delta-rs", "polars"]
    for name in pool.available(engines):
        with pool.worker(name) as worker:
            opened = worker.ask({"do": "open", "tables": {"wide": str(folder)}})
            reading = worker.ask({"do": "query", "sql": queries["one file"], "answer": True}) if "error" not in opened else opened
            cold.runs[name] = Runs(error=reading.get("error"))
            if "error" in reading:
                case.notes.append(f"{name}: {reading['error']}")
                continue
            both = {key: opened[key] + reading[key] for key in ["wall", "cpu"]} | {"peak": reading["peak"]}
            cold.runs[name].add(both)
            for row, sql in zip(rows, queries.values()):
                row.runs[name] = Runs()
                for _ in range(pool.rounds(5)):
                    again = worker.ask({"do": "query", "sql": sql, "answer": True})
                    if "error" in again:
                        row.runs[name].error = again["error"]
                        break
                    row.runs[name].add(again)
                if (answer := again.get("answer")) and answer[0][0] != (1.0 if row is rows[0] else 200.0):
                    case.notes.append(f"{row.work}: {name} answers {answer}")
    case.rows = [cold, *rows]
    return case


def p8(pool: Pool) -> Case:
    folder = data.many_rows(pool.data)
    case = Case("P8", f"SELECT * of {data.MANY_ROWS:,} rows through Flight, beside Arrow's Flight server sending the same rows from memory")
    row = Row("SELECT *")
    with pool.workers(["asof", "flight"]) as workers:
        for worker in workers.values():
            worker.ask({"do": "open", "tables": {"many": str(folder)}})
        for name in workers:
            row.runs[name] = Runs()
        for number in range(pool.rounds(5) + 1):
            for name, worker in workers.items():
                reading = worker.ask({"do": "query", "sql": "SELECT * FROM many"})
                row.runs[name].error = reading.get("error")
                if reading.get("rows") not in (None, data.MANY_ROWS):
                    case.notes.append(f"{name} sent {reading['rows']} rows")
                if number and "error" not in reading:
                    row.runs[name].add(reading)
    case.rows = [row]
    return case


def p9(pool: Pool) -> Case:
    """Short queries from 64 sessions, beside one session."""
    schema = data.tpch(pool.data, pool.scale)
    case = Case("P9", "Short queries from 64 sessions, beside one")
    keys = [1, 7, 32, 1_000, 5_000, 100_000]
    sql = [f'SELECT count(*), sum(o_totalprice) FROM "{schema.name}".orders WHERE o_orderkey = {key}' for key in keys]
    with pool.worker("asof") as worker:
        worker.ask({"do": "sessions", "sql": sql, "sessions": 1, "queries": 12})
        one = worker.ask({"do": "sessions", "sql": sql, "sessions": 1, "queries": 100})
        many = worker.ask({"do": "sessions", "sql": sql, "sessions": 64, "queries": 25})
    if error := one.get("error") or many.get("error"):
        case.notes.append(error)
        return case
    for what, reply in {"1 session": one, "64 sessions": many}.items():
        taken = reply["latencies"]
        p50, p99 = statistics.median(taken), taken[int(len(taken) * 0.99)]
        for quantile, seconds in {"p50": p50, "p99": p99}.items():
            row = Row(f"{what}, {quantile}")
            row.runs["asof"] = Runs([seconds], [reply["cpu"] / len(taken)], reply["peak"])
            case.rows.append(row)
    return case


CASES = {"P1": p1, "P2": p2, "P3": p3, "P4": p4, "P8": p8, "P9": p9}
