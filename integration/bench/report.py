"""The outcome as text, Markdown, JSON and a chart."""

import json
import platform
import os
from pathlib import Path

from cases import Case

COLOURS = {"asof": "#1f6feb", "duckdb": "#c9a227", "delta-rs": "#a0522d", "polars": "#7a5195", "sail": "#2a9d8f", "datafusion": "#888888", "flight": "#888888"}


def as_json(cases: list[Case], about: dict) -> dict:
    def one(case: Case) -> dict:
        rows = [{"work": row.work, "engines": {name: runs.summary() for name, runs in row.runs.items()}} for row in case.rows]
        return {"title": case.title, "rows": rows, "notes": case.notes}

    return about | {"cases": {case.name: one(case) for case in cases}}


def about(pool, version: str) -> dict:
    machine = {"cores": os.cpu_count(), "machine": platform.machine()}
    return {"asof": version, "peers": pool.versions(), "left_out": pool.missing, "scale": pool.scale, "quick": pool.quick, "on": machine}


def shown(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _cell(summary: dict | None, ours: dict | None) -> str:
    if summary is None:
        return ""
    if "error" in summary:
        return "–"
    ratio = "" if ours is None or ours is summary or "error" in ours else f" ({summary['wall'] / ours['wall']:.2f}×)"
    return f"{shown(summary['wall'])}{ratio}, {summary['cpu']:.2f} s"


def markdown(result: dict) -> str:
    peers = ", ".join(f"{name} {version}" for name, version in result["peers"].items())
    lines = [
        "# Benchmarks",
        "",
        f"Made by `make bench` on {result['on']['cores']} cores. asof {result['asof']} answers through Flight SQL and ADBC, as its users ask; peers: {peers}.",
        "Each engine runs in a process of its own, in turn with the others; each cell holds the median wall time, in brackets as a multiple of asof's",
        "(above 1: asof is faster), and CPU seconds of all its processes. Machines vary: compare within a row, never across runs. `–`: it cannot do it.",
        "",
        "![Wall time as a multiple of asof's](benchmarks.svg)",
        "",
    ]
    if result["left_out"]:
        lines += ["Left out: " + "; ".join(f"{name} ({why})" for name, why in result["left_out"].items()) + ".", ""]
    for name, case in result["cases"].items():
        engines = list(dict.fromkeys(engine for row in case["rows"] for engine in row["engines"]))
        lines += [f"## {name}: {case['title']}", "", "| work | " + " | ".join(engines) + " |", "|---" * (len(engines) + 1) + "|"]
        for row in case["rows"]:
            found = row["engines"]
            lines.append(f"| {row['work']} | " + " | ".join(_cell(found.get(e), found.get("asof")) for e in engines) + " |")
        peaks = {e: max((row["engines"].get(e, {}).get("peak", 0) for row in case["rows"]), default=0) for e in engines}
        lines += ["", "Peak memory: " + ", ".join(f"{e} {peak / 1e9:.2f} GB" for e, peak in peaks.items() if peak) + ".", ""]
        lines += [f"* {note}" for note in case["notes"]] + ([""] if case["notes"] else [])
    return "\n".join(lines).rstrip() + "\n"


def chart(result: dict) -> str:
    """For each piece of work, each engine's wall time as a multiple of asof's, on a logarithmic scale."""
    import math

    bars = []
    for name, case in result["cases"].items():
        for row in case["rows"]:
            ours = row["engines"].get("asof", {})
            is_detail = name in ("P1", "P2") and not row["work"].startswith("sum")
            if "wall" not in ours or is_detail:
                continue
            others = [(e, s["wall"] / ours["wall"]) for e, s in row["engines"].items() if e != "asof" and "wall" in s]
            if others:
                bars.append((f"{name} {row['work']}", others))
    left, width, height, gap = 260, 520, 12, 10
    span = max((abs(math.log10(ratio)) for _, others in bars for _, ratio in others), default=1)
    middle = left + width * 0.3
    scale = width * 0.7 / max(span, 1)
    body, y = [], 30
    for label, others in bars:
        body.append(f'<text x="{left - 8}" y="{y + height * len(others) / 2 + 4:.0f}" text-anchor="end">{label}</text>')
        for engine, ratio in others:
            end = max(middle + math.log10(ratio) * scale, left)
            x, w = min(middle, end), max(abs(end - middle), 1)
            body.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{height - 2}" fill="{COLOURS.get(engine, "#555")}"/>')
            body.append(f'<text x="{max(end, middle) + 4:.1f}" y="{y + height - 3}">{engine} {ratio:.2f}×</text>')
            y += height
        y += gap
    axis = f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="24" y2="{y}" stroke="#444"/><text x="{middle:.1f}" y="18" text-anchor="middle">asof = 1 (logarithmic; to the right: asof is faster)</text>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 140}" height="{y + 10}" font-family="sans-serif" font-size="11">'
    return f'{head}<rect width="100%" height="100%" fill="white"/>{axis}{"".join(body)}</svg>\n'


def text(result: dict) -> str:
    """For the terminal: one line for each piece of work."""
    lines = []
    for name, case in result["cases"].items():
        lines.append(f"\n{name}: {case['title']}")
        for row in case["rows"]:
            ours = row["engines"].get("asof")
            cells = [f"{e} {_cell(s, ours)}" for e, s in row["engines"].items()]
            lines.append(f"  {row['work']:<26} " + " | ".join(cells))
        lines += [f"  * {note}" for note in case["notes"]]
    return "\n".join(lines)


def write(result: dict, folder: Path) -> None:
    (folder / "benchmarks.json").write_text(json.dumps(result, indent=1, sort_keys=False) + "\n")
    (folder / "benchmarks.md").write_text(markdown(result))
    (folder / "benchmarks.svg").write_text(chart(result))
