"""Reductions and products of many shapes: compiled, they are what NumPy has.

XLA's kernels change with the number of axes, with sizes around powers of two and with
what is fused before and after. Cases run in processes of their own, because a fault may
be a crash (jax#39103, jax#39257).
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from tests.processes import ROOT
from tests.sweeps import reductions_child, sampling

COUNT = 2000
#: Cases in one process, and in CI.
BATCH, DRAWN = 100, 16


def batches() -> list[list[int]]:
    """Returns the numbers of the cases that run, those of a process together."""
    if sampling.whole:
        return [list(range(i, i + BATCH)) for i in range(0, COUNT, BATCH)]
    rng = np.random.default_rng(sampling.seed)
    return [sorted(rng.choice(COUNT, DRAWN, replace=False).tolist())]


def ends(cases: list[dict]) -> list[str]:
    """Returns how each case ended: the number of wrong elements, or the crash."""
    found: list[str] = []
    while len(found) < len(cases):
        lines = "\n".join(map(json.dumps, cases[len(found) :]))
        done = subprocess.run(
            [sys.executable, "-m", "tests.sweeps.reductions_child"],
            cwd=ROOT,
            input=lines,
            capture_output=True,
            text=True,
            timeout=600,
        )
        found += done.stdout.split()
        if len(found) < len(cases):
            found.append(f"exit status {done.returncode}: {done.stderr[-500:]}")
    return found


@pytest.mark.parametrize("numbers", batches(), ids=lambda n: f"{n[0]}-{n[-1]}")
def test_compiled_reductions_are_those_of_numpy(numbers: list[int]):
    cases = [reductions_child.draw(np.random.default_rng(n)) for n in numbers]
    wrong = [(e, c) for e, c in zip(ends(cases), cases, strict=True) if e != "0"]
    assert not wrong, "\n".join(f"{end}: {case}" for end, case in wrong)


def test_a_wrong_element_is_seen(monkeypatch: pytest.MonkeyPatch):
    case = reductions_child.draw(np.random.default_rng(0))
    case |= {"sizes": [4, 3], "axes": [0], "order": None, "repeated": [False, False]}
    case |= {"dtype": "float32", "before": "square", "after": "plain"}
    case["reduction"] = "sum"
    assert reductions_child.wrong(case) == 0
    compute = reductions_child.compute

    def halved(case, np_, a, b):
        out, scale = compute(case, np_, a, b)
        return (out if np_ is np else out * 0.999), scale

    monkeypatch.setattr(reductions_child, "compute", halved)
    assert reductions_child.wrong(case) == 3
