"""Each public function gives the same on one device and with operands over several."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sweeps import sampling
from tests.sweeps.catalogue import catalogue
from tests.sweeps.layouts import LAYOUTS, applies

ROOT = Path(__file__).parents[2]
CASES = [
    (str(call), layout)
    for call in catalogue()
    for layout in LAYOUTS
    if applies(layout, call)
]
#: XLA's CPU runtime itself fails there: RET_CHECK in fft_thunk.cc.
REFUSED = {("numpy.fft.fftn-sizes", "last inside")}
#: Cases that one child runs: its start costs as much as several of them.
BATCH = 60
#: What the cases are, not how fast, is of interest: compile as fast as can be.
FLAGS = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"

Case = tuple[str, str]


def run(cases: list[Case]) -> list[str]:
    """Runs cases in one child after another; a crash and a hang are findings."""
    found: list[str] = []
    cases = [case for case in cases if case not in REFUSED]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "FXFLOW_NUM_CPU_DEVICES": "8",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}".strip(),
    }
    while cases:
        child = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-m", "tests.sweeps.sharded_child"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        job = json.dumps({"seed": sampling.seed, "cases": cases})
        try:
            out, err = child.communicate(job, timeout=120 + 15 * len(cases))
            end = f"ended with {child.returncode}: {err[-1500:]}"
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            end = "does not end"
        lines = [json.loads(line) for line in out.splitlines()]
        done = [line for line in lines if "done" in line]
        found += [
            f"{' '.join(line['done'])}: {line['found']}"
            for line in done
            if line["found"]
        ]
        cases = cases[len(done) :]
        if cases:
            found.append(f"{' '.join(cases[0])}: {end}")
            cases = cases[1:]
    return found


DRAWN = sampling.sample(CASES, 90, of="sharded")


@pytest.mark.parametrize("start", range(0, len(DRAWN), BATCH))
def test_sharded_operands(start: int) -> None:
    found = run(DRAWN[start : start + BATCH])
    assert not found, f"seed {sampling.seed}\n" + "\n".join(found)


def test_a_crash_is_found_and_the_rest_still_runs() -> None:
    found = run([("numpy.add", "no such layout"), ("numpy.add", "first")])
    assert len(found) == 1 and "KeyError" in found[0]
