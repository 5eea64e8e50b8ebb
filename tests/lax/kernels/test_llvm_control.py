"""Loops and branches in compiled kernels: against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.core.ir.primitive import table
from fxflow.lax.kernels.llvm_control import RULES
from tests.lax.kernels.samples import Bodies, called, noting, same

pytest.importorskip("llvmlite")

X = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)
BODIES: Bodies = {}
body = noting(BODIES, X)


@body((X, X[0], np.zeros((5, 16), np.float32)))
def loops(x: Any, o: Any, last: Any, rows: Any) -> None:
    def step(carry: Any, i: Any) -> Any:
        a, b, n = carry
        # Each takes the place of the other, and rows of one are read in the other.
        return (b + a[0], a * 0.5, n + 1), b[n % 6]

    start = (x[...], fnp.sin(x[...]), fnp.int32(0))
    (a, b, n), ys = lax.scan(step, start, fnp.arange(5))
    o[...] = a + b * n
    last[...] = a[-1]
    rows[...] = ys


@body()
def backward_loops(x: Any, o: Any) -> None:
    def step(total: Any, row: Any) -> Any:
        return total * 0.5 + row, total

    _, ys = lax.scan(step, fnp.zeros(16), x[...], reverse=True)
    o[...] = ys


@body()
def loops_until(x: Any, o: Any) -> None:
    def halve(carry: Any) -> Any:
        return carry[0] + 1, carry[1] / 2

    n, v = lax.while_loop(lambda c: fnp.max(c[1]) > 0.1, halve, (0, x[...]))
    o[...] = v + n


@body()
def branches(x: Any, o: Any) -> None:
    v = x[...]
    up = lax.cond(v[0, 0] > 0, lambda v: v + 1, lambda v: v * v, v)
    chosen = lax.switch(
        kernels.program_id(0) + 1, [lambda v: v, lambda v: -v, fnp.exp], up
    )
    o[...] = chosen

    @kernels.when(v[0, 1] < 0)
    def _() -> None:
        o[2] = v[3]


@pytest.mark.parametrize("name", BODIES)
def test_a_compiled_body_gives_what_numpy_gives(name: str) -> None:
    same(called(*BODIES[name]), X)


def test_rules_are_of_primitives() -> None:
    assert set(RULES) <= set(table)
