"""Wall time, CPU time and memory of processes, and what several runs of them say together.

Machines that run this are shared, and vary twofold between runs: so CPU seconds (user + system, all threads) stand beside wall time, runs of
all engines are interleaved, and medians are compared.
"""

import os
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, ended children included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(ticks) for ticks in fields[11:15]) / TICKS


def peak_bytes(pid: int) -> int:
    """The most memory that a process ever had resident."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


class Meter:
    """Time and CPU between two moments, of several processes together."""

    def __init__(self, pids: list[int]):
        self.pids = pids
        self.cpu = sum(map(cpu_seconds, pids))
        self.start = time.perf_counter()

    def read(self) -> dict:
        wall = time.perf_counter() - self.start
        cpu = sum(map(cpu_seconds, self.pids)) - self.cpu
        return {"wall": wall, "cpu": cpu, "peak": sum(map(peak_bytes, self.pids))}


@dataclass
class Runs:
    """What one engine took for one piece of work, over several runs."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak: int = 0
    error: str | None = None

    def add(self, reading: dict) -> None:
        self.wall.append(reading["wall"])
        self.cpu.append(reading["cpu"])
        self.peak = max(self.peak, reading["peak"])

    def summary(self) -> dict:
        if self.error or not self.wall:
            return {"error": self.error or "not run"}
        return {"wall": statistics.median(self.wall), "cpu": statistics.median(self.cpu), "peak": self.peak, "runs": len(self.wall)}
