"""Runs the cases and writes what came out. See ../bench.sh for the settings."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import report
from cases import CASES
from pool import PACKAGES, Pool

ALWAYS = {"flight"}


def main() -> int:
    settings = os.environ
    wanted = [name for name in settings.get("CASE", "").replace(",", " ").split()] or list(CASES)
    if unknown := [name for name in wanted if name not in CASES]:
        print(f"no case {', '.join(unknown)}: there are {', '.join(CASES)}", file=sys.stderr)
        return 2
    peers = settings.get("PEERS", "").replace(",", " ").split()
    left_out = {name for name in PACKAGES if peers and name not in peers} - ALWAYS
    folder = Path(settings["BENCH_DATA"])
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([settings["ASOFD"], "--version"], check=True, capture_output=True, text=True).stdout.split()[-1]
    with tempfile.TemporaryDirectory() as scratch:
        pool = Pool(folder, Path(scratch), settings.get("SF", "1"), bool(settings.get("QUICK")), left_out)
        cases = []
        for name in wanted:
            cases.append(CASES[name](pool))
            print(report.text(report.as_json(cases[-1:], {})), flush=True)
        result = report.as_json(cases, report.about(pool, version))
        logs = {log.name: log.read_text(errors="replace")[-2000:] for log in Path(scratch).glob("*.log")}
    if settings.get("CASE") or settings.get("QUICK") or settings.get("PEERS"):
        print("\nOnly a whole run is written to server/docs/.")
    else:
        report.write(result, Path(settings["BENCH_DOCS"]))
    for name, why in pool.missing.items():
        print(f"left out: {name}, {why}")
    if settings.get("LOGS"):
        for name, log in logs.items():
            print(f"--- {name}\n{log}")
    wrong = [note for case in cases for note in case.notes if "differently" in note or "counts" in note]
    return 1 if wrong else 0


sys.exit(main())
