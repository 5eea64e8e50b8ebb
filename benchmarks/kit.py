"""Times what surrounds a step: pipelines, the loop, checkpoints.

    python benchmarks/kit.py --rounds 7

Pipelines beside grain's and PyTorch's loader on the same images; `train.loop.run`
beside the plain loop; checkpoints beside safetensors and TensorStore writing the same
bytes, which are on the disk (`fsync`) when the clock stops. Each measurement is a
process; the libraries take turns within each round, and in which goes first.
"""

import argparse
import subprocess
from typing import Any, NamedTuple

from run import HERE, REQUIREMENTS, environment, number

REQUIREMENTS["fxflow"] = ["--editable", f"{HERE.parent}[checkpoint]"]
REQUIREMENTS["grain"] = ["grain==0.2.18"]
FXFLOW, GRAIN, TORCH = "fxflow", "grain", "torch"


class Figure(NamedTuple):
    """One number: of a library, in a case."""

    library: str
    case: str
    #: Whose environment it runs in; a peer may come with fxflow's extras.
    python: str = ""


def pipeline(case: str, *others: str) -> list[Figure]:
    return [Figure(library, case) for library in (FXFLOW, *others)]


#: By family: figures that are shown side by side, the first one being ours.
GROUPS: list[tuple[str, list[Figure]]] = [
    ("pipeline", pipeline("rows", GRAIN, TORCH)),
    ("pipeline", pipeline("mapped", GRAIN, TORCH)),
    ("pipeline", pipeline("2 threads", GRAIN)),
    ("pipeline", pipeline("2 processes", GRAIN, TORCH)),
    ("loop", [Figure(FXFLOW, "run"), Figure(FXFLOW, "plain")]),
    ("loop", [Figure(FXFLOW, "run, checked and logged"), Figure(FXFLOW, "plain")]),
    ("fed", pipeline("elsewhere", GRAIN, TORCH)),
    ("fed", pipeline("on a core", GRAIN, TORCH)),
    *(
        (family, [Figure(FXFLOW, case), Figure(peer, case, FXFLOW)])
        for peer, form in (("safetensors", "one file"), ("tensorstore", "zarr"))
        for family, case in (
            ("save", f"{form}, first"),
            ("save", f"{form}, repeated"),
            ("restore", f"{form}, repeated"),
        )
    ),
    ("stop", [Figure(FXFLOW, "Checkpointer.save"), Figure("numpy", "copy", FXFLOW)]),
]
UNITS = {
    "pipeline": ("elements/s", 1.0),
    "loop": ("µs a step", 1e6),
    "fed": ("% more for a step of 5 ms", 1e2),
    "save": ("ms", 1e3),
    "restore": ("ms", 1e3),
    "stop": ("ms", 1e3),
}


def measured(family: str, figure: Figure) -> float:
    """Runs a worker."""
    python = environment(figure.python or figure.library)
    command = [python, str(HERE / "kit_worker.py")]
    done = subprocess.run(
        [*command, figure.library, family, figure.case],
        capture_output=True,
        text=True,
        cwd=HERE,
    )
    if done.returncode:
        raise SystemExit(f"{figure}:\n{done.stderr[-3000:]}")
    return float(done.stdout.splitlines()[-1])


def verdict(family: str, best: list[float]) -> str:
    """Our figure beside the others', and what was aimed at."""
    ours, *others = best
    if family == "pipeline":
        return f"{ours / max(others):.2f} of the best"
    if family == "stop":
        return f"{ours / others[0]:.3f} of a copy"
    if family in ("save", "restore"):
        return f"{ours / others[0]:.2f} (at most 1.3)"
    if family == "loop":
        return f"{1e6 * (ours - others[0]):+.1f} µs (at most 20)"
    return f"{100 * ours:+.1f} % (at most 2)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="families, with commas between")
    given = parser.parse_args()
    chosen = [g for g in GROUPS if not given.only or g[0] in given.only.split(",")]
    samples: dict[Any, list[float]] = {}
    for turn in range(given.rounds):
        for family, figures in chosen:
            # The second one may find memory and files of the first.
            for figure in figures if turn % 2 == 0 else figures[::-1]:
                found = measured(family, figure)
                samples.setdefault((family, figure), []).append(found)
    print(f"- {given.rounds} interleaved rounds\n")
    print("| what | case | library | best | unit | fxflow |")
    print("| --- | --- | --- | --: | --- | --- |")
    for family, figures in chosen:
        pick = max if family == "pipeline" else min
        best = [pick(samples[family, figure]) for figure in figures]
        unit, scale = UNITS[family]
        for figure, value in zip(figures, best, strict=True):
            ours = verdict(family, best) if figure is figures[0] else ""
            cells = [family, figure.case, figure.library, number(value * scale)]
            print(f"| {' | '.join([*cells, unit, ours])} |")


if __name__ == "__main__":
    main()
