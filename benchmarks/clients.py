"""Times programs written for JAX on fxflow and on JAX: from nothing to 100 steps.

    python benchmarks/clients.py --rounds 9

Each measurement is a process: import, build, first step, 100 steps of a program of
`clients_worker.py`. The libraries take turns within each round. *First run*: nothing is
on disk, both with their defaults. *Again*: the caches on disk hold the programs; JAX's
is switched on. The packages (`clients.txt`) are one folder for both.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases.start import JAX_CACHE
from clients_worker import PROGRAMS, STEPS
from run import HERE, environment

LIST = HERE / "clients.txt"
TOTAL, STEP, IMPORT = 0.6, 1.0, 0.1
# What the redirection adds to an import of fxflow.
IMPORTS = {
    "import fxflow.numpy": "import fxflow.numpy",
    "import jax.numpy, redirected": "import fxflow.compat.jax as c; c.install(); "
    "import jax, jax.numpy",
}


def folder(python: str) -> Path:
    """Where the packages are; installs them where they are not."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    base = Path(os.environ.get("FXFLOW_BENCH_DIR") or Path(cache, "fxflow/benchmarks"))
    text = LIST.read_bytes() + (HERE / "../tests/compat/jax/clients.txt").read_bytes()
    found = base / f"clients-{hashlib.sha256(text).hexdigest()[:8]}"
    if not found.exists():
        print(f"installing the packages in {found}", file=sys.stderr)
        part = found.with_suffix(".part")
        command = [python, "-m", "pip", "install", "-q", "--no-deps", "--target", part]
        subprocess.run([*command, "-r", LIST], check=True)
        part.rename(found)
    return found


def surroundings(packages: Path, cache: str, again: bool) -> dict[str, str]:
    """The environment of a program: the defaults, and where caches are."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "FXFLOW"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    # The checkout first: what is measured is this fxflow; JAX does not look at it.
    kept["PYTHONPATH"] = f"{HERE.parent}{os.pathsep}{packages}"
    kept["FXFLOW_CACHE_DIR"] = cache
    # numpyro adds up in the order of a set of names: otherwise each run would have
    # another program, which no cache holds.
    kept["PYTHONHASHSEED"] = "0"
    if again:
        kept |= {**JAX_CACHE, "JAX_COMPILATION_CACHE_DIR": cache}
    return kept


def run(library: str, python: str, name: str, given: dict[str, str]) -> list[float]:
    """Wall and processor seconds of everything, import and 100 steps."""
    redirect = ["-m", "fxflow.compat.jax"] if library == "fxflow" else []
    command = [python, *redirect, str(HERE / "clients_worker.py"), name]
    done = subprocess.run(
        [*command, repr(time.time())], env=given, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{library}, {name}:\n{done.stderr[-3000:]}")
    marks = json.loads(done.stdout.splitlines()[-1])
    (imported, first, last) = marks[0], marks[2], marks[3]
    return [
        *last,
        *imported,
        (last[0] - first[0]) / STEPS,
        (last[1] - first[1]) / STEPS,
    ]


def least(samples: list[list[float]]) -> list[float]:
    """The minimum of each figure over the rounds."""
    return [min(column) for column in zip(*samples, strict=True)]


def measured(
    rounds: int, pythons: dict[str, str], again: bool
) -> dict[str, dict[str, list[float]]]:
    packages = folder(pythons["fxflow"])
    found: dict[str, dict[str, list[list[float]]]] = {}
    with tempfile.TemporaryDirectory() as base:
        for turn in range(-1 if again else 0, rounds):
            for name in PROGRAMS:
                order = list(pythons) if turn % 2 else list(reversed(pythons))
                for library in order:
                    cache = Path(base, "kept" if again else f"{turn}-{name}-{library}")
                    given = surroundings(packages, str(cache), again)
                    values = run(library, pythons[library], name, given)
                    if turn >= 0:  # before that, the caches are filled
                        rows = found.setdefault(name, {})
                        rows.setdefault(library, []).append(values)
    return {
        name: {library: least(s) for library, s in rows.items()}
        for name, rows in found.items()
    }


def imports(rounds: int, python: str) -> dict[str, float]:
    """Least processor seconds of each import."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, code in IMPORTS.items():
            text = f"{code}\nimport time; print(time.process_time())"
            done = subprocess.run(
                [python, "-c", text],
                env={**os.environ, "PYTHONPATH": str(HERE.parent)},
                capture_output=True,
                text=True,
                check=True,
            )
            found.setdefault(name, []).append(float(done.stdout))
    return {name: min(values) for name, values in found.items()}


def table(title: str, found: dict[str, dict[str, list[float]]]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        "| program | | fxflow | jax | ratio | processor: fxflow | jax | ratio |"
        " at most | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, rows in found.items():
        ours, theirs = rows["fxflow"], rows["jax"]
        for label, i, scale, limit in (
            ("all, s", 0, 1.0, TOTAL),
            ("import, s", 2, 1.0, None),
            ("a step, ms", 4, 1e3, STEP),
        ):
            ratio, of_cpu = ours[i] / theirs[i], ours[i + 1] / theirs[i + 1]
            verdict = "" if limit is None else "ok" if ratio <= limit else "**over**"
            lines.append(
                f"| {name} | {label} | {scale * ours[i]:.3g} | {scale * theirs[i]:.3g} "
                f"| {ratio:.2f} | {scale * ours[i + 1]:.3g} | "
                f"{scale * theirs[i + 1]:.3g} | {of_cpu:.2f} | {limit or ''} "
                f"| {verdict} |"
            )
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    pythons = {library: environment(library) for library in ("fxflow", "jax")}
    lines = [f"- {given.rounds} rounds", ""]
    lines += table("First run", measured(given.rounds, pythons, again=False))
    lines += table("Again", measured(given.rounds, pythons, again=True))
    lines += ["## The redirected import, processor seconds", ""]
    took = imports(2 * given.rounds, pythons["fxflow"])
    lines += [f"- {name}: {value:.3f}" for name, value in took.items()]
    first, second = took.values()
    verdict = "ok" if second - first <= IMPORT else "**over**"
    lines += [f"- more: {second - first:.3f}, at most {IMPORT}: {verdict}", ""]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
