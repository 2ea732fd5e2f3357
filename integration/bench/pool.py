"""Engines in processes of their own."""

import importlib.metadata
import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path

PACKAGES = {"duckdb": "duckdb", "delta-rs": "deltalake", "datafusion": "datafusion", "polars": "polars", "sail": "pysail", "flight": "pyarrow"}
# Spark is slow to fetch and to start: it is measured only when asked for, with the Python that has it.
SPARK_PYTHON = os.environ.get("BENCH_SPARK_PYTHON")


class Worker:
    """A process with one engine."""

    def __init__(self, engine: str, warehouse: Path, log: Path):
        self.engine = engine
        script = Path(__file__).parent / "worker.py"
        python = SPARK_PYTHON if engine == "spark" else sys.executable
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [python, str(script), engine, str(warehouse)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self._answer()

    def _answer(self) -> dict:
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": f"the process ended with {self.process.wait()}"}

    def ask(self, request: dict) -> dict:
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def close(self) -> None:
        try:
            self.process.stdin.write('{"do": "close"}\n')
            self.process.stdin.close()
            self.process.wait(30)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Pool:
    """Where the data lies, and which engines there are."""

    def __init__(self, data: Path, scratch: Path, scale: str, quick: bool, left_out: set[str]):
        self.data = data
        self.scratch = scratch
        self.scale = scale
        self.quick = quick
        self.missing: dict[str, str] = {name: "not asked for (PEERS)" for name in left_out}
        for name, package in PACKAGES.items():
            if name not in self.missing:
                try:
                    importlib.metadata.version(package)
                except importlib.metadata.PackageNotFoundError:
                    self.missing[name] = f"{package} is not installed"

        if not SPARK_PYTHON:
            self.missing["spark"] = "measured only where PEERS names it"

    def versions(self) -> dict[str, str]:
        found = {name: importlib.metadata.version(package) for name, package in PACKAGES.items() if name not in self.missing}
        if SPARK_PYTHON:
            asked = [SPARK_PYTHON, "-c", "import importlib.metadata as m; print(m.version('pyspark'))"]
            found["spark"] = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        return found

    def rounds(self, whole: int) -> int:
        return 1 if self.quick else whole

    def available(self, engines: list[str]) -> list[str]:
        return [name for name in engines if name not in self.missing]

    @contextmanager
    def worker(self, engine: str):
        os.environ["BENCH_SCRATCH"] = str(self.scratch)
        worker = Worker(engine, self.data, self.scratch / f"{engine}.log")
        try:
            yield worker
        finally:
            worker.close()

    @contextmanager
    def workers(self, engines: list[str]):
        with ExitStack() as stack:
            yield {name: stack.enter_context(self.worker(name)) for name in self.available(engines)}
