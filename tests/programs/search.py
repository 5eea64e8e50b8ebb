"""Draws programs, has them run in child processes, and shrinks what is found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import fxflow
from tests.programs.drawing import Program, Refused, draw
from tests.programs.operations import Api
from tests.programs.running import drawn_ways
from tests.programs.shrinking import shrunk

ROOT = Path(__file__).parents[2]
#: Seconds that a child may take for a program before it counts as hanging.
DEADLINE = 90.0
#: Programs that one child runs: its start costs as much as several of them.
BATCH = 50


@dataclass(frozen=True)
class Finding:
    """A program that has more than one answer, or none.

    Attributes:
      program: what was run.
      way: how.
      text: what was wrong.
    """

    program: Program
    way: str
    text: str

    def __str__(self) -> str:
        return f"{self.way}: {self.text}\n{self.program}"


Job = list[tuple[Program, list[str]]]


def _environment(library: str) -> dict[str, str]:
    environment = dict(os.environ)
    environment["PYTHONPATH"] = str(ROOT)
    if library == "jax":
        environment |= {"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    else:
        environment["FXFLOW_NUM_CPU_DEVICES"] = "8"
    return environment


def run(
    job: Job,
    library: str = "fxflow",
    python: str = sys.executable,
    answers: str = "",
    extra: str = "",
) -> list[Finding]:
    """Runs programs in one child after another until all are done.

    Args:
      job: programs, each with the ways to run it.
      library: `"fxflow"` or `"jax"`.
      python: the interpreter.
      answers: the folder of JAX's answers, or `""`.
      extra: a module with further operations, or `""`.

    Returns:
      What was found; a crash and a hang are findings.
    """
    found: list[Finding] = []
    while job:
        with tempfile.TemporaryDirectory(prefix="fxflow-programs-") as folder:
            path = Path(folder, "job.json")
            entries = [{"program": p.data(), "ways": ways} for p, ways in job]
            wanted = {
                "library": library,
                "programs": entries,
                "answers": answers,
                "extra": extra,
            }
            path.write_text(json.dumps(wanted), encoding="utf-8")
            command = [python, "-X", "faulthandler", "-m", "tests.programs.child", path]
            child = subprocess.Popen(
                command,
                cwd=ROOT,
                env=_environment(library),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            try:
                out, err = child.communicate(timeout=60 + DEADLINE * len(job) / 5)
                end = f"ended with {child.returncode}: {err[-1500:]}"
            except subprocess.TimeoutExpired:
                child.kill()
                out, err = child.communicate()
                end = "does not end"
        programs = {program.seed: program for program, _ in job}
        done: set[int] = set()
        last = None
        for line in map(json.loads, filter(None, out.splitlines())):
            last = line
            if "found" in line:
                done.add(line["seed"])
                program = programs[line["seed"]]
                found += [Finding(program, way, text) for way, text in line["found"]]
        rest = [entry for entry in job if entry[0].seed not in done]
        if rest:
            if last is None:
                raise RuntimeError(f"the child did not start: {end}")
            at = rest[0][0].seed
            way = last["way"] if last["seed"] == at and "way" in last else "?"
            if library == "fxflow":
                found.append(Finding(programs[at], way, end))
            rest = [entry for entry in rest if entry[0].seed != at]
        job = rest
    return found


def programs(seed: int, count: int) -> Iterator[Program | Finding]:
    """Draws programs; what an operation refuses is a finding by itself."""
    api = Api("fxflow")
    for number in range(seed * 100_000, seed * 100_000 + count):
        with fxflow.config.override(x64=True):
            try:
                yield draw(api, number)
            except Refused as error:
                yield Finding(Program(number, (), ()), "drawing", str(error))


def search(
    seed: int,
    count: int,
    *,
    jax: str | None = None,
    whole: bool = False,
    shrink: bool = True,
    processes: int = 2,
) -> list[Finding]:
    """Draws and runs programs.

    Args:
      seed: of all of them.
      count: how many.
      jax: an interpreter that has JAX and what fxflow needs, to compare with.
      whole: whether each program is run in every way.
      shrink: whether to drop what findings do not need.
      processes: how many run at a time.

    Returns:
      The findings, one for each program and way.
    """
    found: list[Finding] = []
    job: Job = []
    for drawn in programs(seed, count):
        if isinstance(drawn, Finding):
            found.append(drawn)
        elif drawn.steps:
            job.append((drawn, drawn_ways(drawn, whole)))
    batches = [job[i : i + BATCH] for i in range(0, len(job), BATCH)]
    with tempfile.TemporaryDirectory(prefix="fxflow-programs-") as folder:

        def work(batch: Job) -> list[Finding]:
            if jax is not None:
                run(batch, "jax", jax, folder)
            return run(batch, answers=folder if jax is not None else "")

        with ThreadPoolExecutor(processes) as pool:
            for result in pool.map(work, batches):
                found += result
        if shrink:
            found = [_shrink(one, jax) for one in found]
    return found


def _shrink(finding: Finding, jax: str | None) -> Finding:
    if finding.way == "drawing":
        return finding
    ways = [finding.way] if not finding.way.startswith("jax") else []

    def still(candidates: Sequence[Program]) -> list[Finding]:
        with tempfile.TemporaryDirectory(prefix="fxflow-programs-") as folder:
            job = [(c, ways or ["compiled"]) for c in candidates]
            if not ways and jax is not None:
                run(job, "jax", jax, folder)
            found = run(job, answers="" if ways else folder)
        return [one for one in found if one.way == finding.way]

    return shrunk(finding, still)
