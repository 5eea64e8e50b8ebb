"""Runs programs and says, line by line, what it is at: whatever ends it is then known.

    python -m tests.programs.child JOB.json

The job says which library, which programs, and in which ways; a line of JSON is
printed before each way (`{"seed": 3, "way": "compiled"}`) and one with what was found
after each program (`{"seed": 3, "found": [["compiled", "result 0: …"]]}`).
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.programs.comparing import changed, differences, jittered, precision
from tests.programs.drawing import Program
from tests.programs.operations import Api
from tests.programs.running import (
    PEER,
    WAYS,
    Answer,
    Way,
    applies,
    rewriting_small_programs,
    wide,
)


def say(**line: Any) -> None:
    """Prints a line that the parent reads."""
    print(json.dumps(line), flush=True)


def answer_file(folder: str, program: Program, way: str) -> Path:
    """Where JAX's answer lies."""
    return Path(folder) / f"{program.seed}-{way.replace(' ', '-')}.npz"


def peer(api: Api, program: Program, folder: str) -> None:
    """Writes JAX's answers, where it gives any."""
    for name, (way, _) in PEER.items():
        if not applies(name, program):
            continue
        say(seed=program.seed, way=name)
        try:
            answer = way(api, program, program.arguments())
        except Exception:
            continue  # JAX refuses: nothing to compare with
        np.savez(answer_file(folder, program, name), *answer)


def check(api: Api, program: Program, ways: list[str], folder: str) -> None:
    """Runs one program in the given ways and says what was found."""
    arguments = program.arguments()
    right: dict[Way, Answer | str] = {}

    def expected(way: Way) -> Answer | str:
        if way not in right:
            right[way] = attempt(way, arguments)
        return right[way]

    def attempt(way: Way, given: list[Any]) -> Answer | str:
        try:
            return way(api, program, given)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {str(error)[:400]}"
            return f"{text} ({Path(place.filename).name}:{place.lineno})"

    def near(way: Way, size: float) -> Callable[[], list[Answer]]:
        # In 64 bits rounding is 1e-16: 1e-12 stands for what it may become.
        def compute() -> list[Answer]:
            moved = [changed(arguments, size, s) for s in range(2)]
            moved.append(jittered(arguments, size, 2))
            answers = [attempt(way, given) for given in moved]
            return [a for a in answers if not isinstance(a, str)]

        return compute

    found: list[tuple[str, str]] = []
    asked: list[tuple[str, Any, Way]] = [(w, WAYS[w][0], WAYS[w][1]) for w in ways]
    if folder:
        for name, (_, reference) in PEER.items():
            path = answer_file(folder, program, name)
            if path.exists():
                with np.load(path) as stored:
                    answer = [stored[k] for k in stored.files]
                asked.append((name, answer, reference))
    for name, way, reference in asked:
        say(seed=program.seed, way=name)
        want = expected(reference)
        got = attempt(way, arguments) if callable(way) else way
        if isinstance(want, str):
            found.append((reference.__name__, want))
            continue
        if isinstance(got, str):
            found.append((name, got))
            continue
        tolerance = precision(program, want)
        # What rounding may come to, which is what is looked past.
        size = 1e-2 if tolerance > 1e-2 else 1e-5 if tolerance > 1e-6 else 1e-11
        if name == "differences":
            tolerance, size = 1e-4, 1e-5
        # JAX counts in 32 bits where NumPy and we use the default integer.
        strict = callable(way)
        lines = differences(got, want, tolerance, near(reference, size), strict)
        found += [(name, line) for line in lines]
    say(seed=program.seed, found=sorted(set(found)))


def main(job: str) -> None:
    """Does the job that a file describes."""
    with open(job, encoding="utf-8") as file:
        wanted = json.load(file)
    warnings.simplefilter("ignore")
    if wanted["extra"]:
        importlib.import_module(wanted["extra"])
    api = Api(wanted["library"])
    if api.name == "fxflow":
        rewriting_small_programs()
    for entry in wanted["programs"]:
        program = Program.of(entry["program"])
        with wide(api):
            if api.name == "jax":
                peer(api, program, wanted["answers"])
                say(seed=program.seed, found=[])
            else:
                check(api, program, entry["ways"], wanted["answers"])


if __name__ == "__main__":
    main(sys.argv[1])
