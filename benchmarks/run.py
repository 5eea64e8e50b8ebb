"""Compares fxflow with JAX and PyTorch on this machine.

    python benchmarks/run.py                       # everything
    python benchmarks/run.py --only 'eager *'      # some cases
    python benchmarks/run.py --rounds 3 --libraries fxflow,jax

Each library lives in an environment of its own, made outside the repository at the
first run and kept (`$FXFLOW_BENCH_DIR`, else `fxflow/benchmarks` in the user's cache
directory). `$FXFLOW_BENCH_FXFLOW`, `_JAX` and `_TORCH` name interpreters to use
instead. One worker process per library runs from beginning to end; the libraries take
turns within each round, so that a machine that slows down slows all of them. What is
printed is Markdown, which `pages.py` keeps.
"""

import argparse
import fnmatch
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple

HERE = Path(__file__).parent.resolve()
REQUIREMENTS = {
    "fxflow": ["--editable", f"{HERE.parent}[arrow,kernels]"],
    "jax": [
        "jax==0.10.2",
        "jaxlib==0.10.2",
    ],  # the version that the aims are stated for
    "torch": ["torch==2.13.0", "numpy"],
    "pandas": ["torch==2.13.0", "pandas", "pyarrow", "grain"],
}
UNITS = {"s": 1.0, "ms": 1e3, "µs": 1e6, "MB": 1.0}


def environment(library: str) -> str:
    """The interpreter for `library`; makes its environment where there is none."""
    if given := os.environ.get(f"FXFLOW_BENCH_{library.upper()}"):
        return given
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(os.environ.get("FXFLOW_BENCH_DIR") or Path(cache, "fxflow/benchmarks"))
    wanted = REQUIREMENTS[library]
    mark = hashlib.sha256(" ".join([sys.version, *wanted]).encode()).hexdigest()[:8]
    folder = base / f"{library}-{mark}"
    python = folder / "bin" / "python"
    if not (folder / ".complete").exists():
        print(f"making the environment for {library} in {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *wanted], check=True)
        (folder / ".complete").touch()
    return str(python)


class Worker:
    """A process with one library in it, asked over pipes, one JSON object a line."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.python = environment(library)
        self.start()

    def start(self) -> None:
        # A worker that inherited cache settings would not measure the defaults.
        kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
        # Installed packages have byte code; a checkout must be let write its own.
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        if self.library == "fxflow":  # this checkout, also in a given interpreter
            kept["PYTHONPATH"] = str(HERE.parent)
        self.process = subprocess.Popen(
            [self.python, str(HERE / "worker.py"), self.library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=kept,
            cwd=HERE,
        )
        self.about = self.ask(action="about")

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to one request; `{"error": text}` when it failed."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            answer: dict[str, Any] = json.loads(line)
            return answer
        code = self.process.wait()
        if request["action"] == "about":
            raise SystemExit(
                f"the worker of {self.library} does not start (exit {code})"
            )
        self.start()
        return {"error": f"the worker ended with exit status {code}"}

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Row(NamedTuple):
    """One case with the samples that each library gave, in the unit of the case."""

    case: dict[str, Any]
    samples: dict[str, list[float]]
    errors: dict[str, str]
    work: Mapping[str, float] = MappingProxyType({})  # of a call, as far as known

    def ratio(self, reduce: Any, other: str = "jax") -> float | None:
        """The figure of fxflow over the other library's."""
        if not (self.samples.get("fxflow") and self.samples.get(other)):
            return None
        ratio: float = reduce(self.samples["fxflow"]) / reduce(self.samples[other])
        return ratio


def measure(workers: dict[str, Worker], case: dict[str, Any], rounds: int) -> Row:
    """Prepares a case in each worker that has it, then lets them take turns."""
    samples: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    work: dict[str, float] = {}
    able = [w for w in workers.values() if case["name"] in w.about["cases"]]
    for worker in able:
        answer = worker.ask(action="prepare", case=case["name"])
        if "error" in answer:
            errors[worker.library] = answer["error"]
        elif worker.library == "fxflow":
            work = answer
    for turn in range(min(rounds, case["most_rounds"])):
        # Each round begins with another library: none always follows the same one.
        start = turn % len(able)
        for worker in able[start:] + able[:start]:
            if worker.library in errors:
                continue
            answer = worker.ask(action="measure", case=case["name"])
            if "error" in answer:
                errors[worker.library] = answer["error"]
            else:
                samples.setdefault(worker.library, []).append(answer["value"])
    for worker in able:
        worker.ask(action="drop", case=case["name"])
    return Row(case, samples, errors, work)


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def figure(row: Row, library: str) -> str:
    """`minimum / median` of one library."""
    values = row.samples.get(library)
    if not values:
        return "failed" if library in row.errors else ""
    scale = UNITS[row.case["unit"]]
    return f"{number(min(values) * scale)} / {number(median(values) * scale)}"


def table(rows: list[Row], libraries: list[str]) -> list[str]:
    """The results as a Markdown table; the verdict is on the ratio of the minima."""
    head = [
        "case",
        "unit",
        *libraries,
        "fxflow/jax",
        "of medians",
        "at most",
        "aim",
        "",
    ]
    if "torch" in libraries:
        head.insert(-3, "fxflow/torch")
    lines = [" | ".join(head), " | ".join(["---"] * len(head))]
    for row in rows:
        ratio, limit = row.ratio(min), row.case["at_most"]
        verdict = ""
        if "fxflow" in row.errors:
            verdict = "failed"
        elif ratio is not None and limit is not None:
            verdict = "ok" if ratio <= limit else "**over**"
        ratios: list[Any] = [ratio, row.ratio(median)]
        if "torch" in libraries:
            ratios.append(row.ratio(min, "torch"))
        cells = [row.case["name"], row.case["unit"]]
        cells += [figure(row, library) for library in libraries]
        cells += ["" if r is None else f"{r:.3f}" for r in ratios]
        cells += [str(row.case[key] or "") for key in ("at_most", "aim")] + [verdict]
        lines.append(" | ".join(cells))
    return [f"| {line} |" for line in lines]


def growth(rows: list[Row], libraries: list[str]) -> list[str]:
    """How the cost of a chain of operations grows from 1,000 to 10,000 of them."""
    found = {row.case["name"]: row for row in rows}
    lines = []
    for what in ("trace", "lower"):
        small, large = (found.get(f"{what} chain of {n}") for n in ("1000", "10000"))
        if small is None or large is None:
            continue
        for library in libraries:
            if small.samples.get(library) and large.samples.get(library):
                times = min(large.samples[library]) / min(small.samples[library])
                lines.append(f"- {library}, {what}: {times:.1f} times (at most 12)")
    return lines


def roofline(rows: list[Row], peaks: dict[str, float]) -> list[str]:
    """What bounds each step: arithmetic or memory, at the rates of this machine."""
    lines = [
        "| case | GFLOP | at peak, ms | MB | at peak, ms | fxflow, ms | of the bound |",
        "| --- | --: | --: | --: | --: | --: | --- |",
    ]
    for row in rows:
        if not (row.work.get("flops") and row.samples.get("fxflow")):
            continue
        flops, nbytes = row.work["flops"], row.work["nbytes"]
        bounds = {
            "arithmetic": flops / peaks["flops"],
            "memory": nbytes / peaks["bytes"],
        }
        what = max(bounds, key=lambda name: bounds[name])
        taken = min(row.samples["fxflow"])
        cells = [row.case["name"], number(flops / 1e9)]
        cells += [number(bounds["arithmetic"] * 1e3), number(nbytes / 1e6)]
        cells += [number(bounds["memory"] * 1e3), number(taken * 1e3)]
        cells.append(f"{bounds[what] / taken:.0%}, {what}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines if len(lines) > 2 else []


def report(rows: list[Row], workers: dict[str, Worker], rounds: int) -> str:
    """What is printed at the end, as Markdown."""
    libraries = list(workers)
    lines = [
        f"- {', '.join(w.about['version'] for w in workers.values())}",
        f"- {rounds} interleaved rounds (fewer for the long cases)",
        "",
        *table(rows, libraries),
    ]
    peaks = workers["fxflow"].ask(action="peaks") if "fxflow" in workers else {}
    if "flops" in peaks and (bounded := roofline(rows, peaks)):
        lines += [
            "",
            f"What bounds the steps. fxflow reaches {peaks['flops'] / 1e9:.0f} GFLOP/s "
            f"(2048³) and {peaks['bytes'] / 1e9:.1f} GB/s (x + 1 in place, 256 MB) "
            "here; GFLOP are those of the program as it is written, MB what it must "
            "read and write. What a step takes beyond its bound are intermediate "
            "results that go through memory, and operations too small for all cores.",
            "",
            *bounded,
        ]
    if grown := growth(rows, libraries):
        lines += ["", "Ten times the operations cost:", "", *grown]
    failures = [
        f"- {library}, {row.case['name']}: {error.strip().splitlines()[-1]}"
        for row in rows
        for library, error in row.errors.items()
    ]
    if failures:
        lines += ["", "Failed:", "", *failures]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only", metavar="PATTERN", nargs="+", help="cases, as in 'eager *' 'step *'"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--libraries", default="fxflow,jax,torch")
    parser.add_argument("--list", action="store_true", help="print the names of cases")
    given = parser.parse_args()
    libraries = given.libraries.split(",")
    if unknown := set(libraries) - REQUIREMENTS.keys():
        parser.error(f"unknown libraries: {', '.join(sorted(unknown))}")
    if given.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {given.rounds}")

    workers = {library: Worker(library) for library in libraries}
    cases: dict[str, dict[str, Any]] = {}
    for worker in workers.values():
        cases.update({n: c for n, c in worker.about["cases"].items() if n not in cases})
    patterns = given.only or ["*"]
    chosen = [
        case
        for name, case in cases.items()
        if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
    ]
    if not chosen:
        parser.error(f"no case matches {' '.join(patterns)}; --list shows them")
    if given.list:
        print("\n".join(case["name"] for case in chosen))
        return

    rows = []
    for case in chosen:
        row = measure(workers, case, given.rounds)
        rows.append(row)
        figures = "   ".join(f"{name} {figure(row, name)}" for name in libraries)
        ratio = row.ratio(min)
        shown = "" if ratio is None else f"   ratio {ratio:.3f}"
        progress = f"{case['name']} [{case['unit']}]:   {figures}{shown}"
        print(progress, file=sys.stderr, flush=True)
        for library, error in row.errors.items():
            print(f"  {library} failed: {error.strip()}", file=sys.stderr)
    text = report(rows, workers, given.rounds)
    for worker in workers.values():
        worker.stop()
    print(text)


if __name__ == "__main__":
    main()
