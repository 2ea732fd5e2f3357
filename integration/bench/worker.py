"""One engine in one process. Reads requests from stdin, one JSON object a line, and answers each with one line on stdout.

{"do": "open", "tables": {…}} · {"do": "query", "sql": …, "answer": bool} · {"do": "travel", "folder": …, "version": …, "moment": …} ·
{"do": "sessions", "sql": […], "sessions": n, "queries": n} · {"do": "close"}
"""

import json
import os
import sys
import threading
import time

from answers import plain
from engines import ENGINES
from measure import Meter

# Whatever libraries print goes to stderr: stdout is for answers.
out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def measured(engine, work, answer: bool) -> dict:
    meter = Meter(engine.pids())
    table = work()
    reading = meter.read()
    return reading | {"rows": table.num_rows} | ({"answer": plain(table)} if answer else {})


def sessions(engine, request: dict) -> dict:
    """Latencies of short queries from many sessions at once, in seconds."""
    latencies: list[float] = []
    failures: list[str] = []
    barrier = threading.Barrier(request["sessions"])

    def session(number: int) -> None:
        try:
            with engine.server.connect() as connection:
                barrier.wait()
                for query in range(request["queries"]):
                    sql = request["sql"][(number + query) % len(request["sql"])]
                    start = time.perf_counter()
                    with connection.cursor() as cursor:
                        cursor.execute(sql)
                        cursor.fetch_arrow_table()
                        latencies.append(time.perf_counter() - start)
        except Exception as error:  # counted and told, whatever it is
            failures.append(str(error))
            barrier.abort()

    threads = [threading.Thread(target=session, args=(number,)) for number in range(request["sessions"])]
    meter = Meter(engine.pids())
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise RuntimeError(failures[0])
    return meter.read() | {"latencies": sorted(latencies)}


def answer(engine, request: dict) -> dict:
    match request["do"]:
        case "open":
            meter = Meter(engine.pids())
            engine.open(request["tables"])
            return meter.read()
        case "query":
            return measured(engine, lambda: engine.query(request["sql"]), request.get("answer", False))
        case "travel":
            work = lambda: engine.travel(request["folder"], request.get("version"), request.get("moment"))  # noqa: E731
            return measured(engine, work, True)
        case "sessions":
            return sessions(engine, request)
        case other:
            raise ValueError(f"unknown request {other}")


def main() -> None:
    engine = ENGINES[sys.argv[1]](sys.argv[2])
    print(json.dumps({"ready": True}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "close":
            break
        try:
            reply = answer(engine, request)
        except Exception as error:  # told to the asker, who leaves the engine out by name
            reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(reply), file=out, flush=True)
    engine.close()


main()
