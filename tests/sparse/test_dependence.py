"""Patterns of loops, branches and calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from tests.sparse.patterns import mask, nonzero

X = np.random.default_rng(5).normal(size=12)


def _double_next(i: Any, y: Any) -> Any:
    return y.at[i + 1].add(y[i] * y[i])


EXACT: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "scan": (lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c * a), 0.0, x)[1], X),
    "scan without a carry": (lambda x: lax.map(fnp.sin, x), X),
    "loop with a counter": (lambda x: lax.fori_loop(0, 11, _double_next, x), X),
    "loop with a known end": (
        lambda x: lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + fnp.roll(s[1], 1)), (0, x)
        )[1],
        X,
    ),
    "known branch": (
        lambda x: lax.cond(fnp.arange(3)[1] > 0, lambda x: x, fnp.flip, x),
        X,
    ),
    "call": (fxflow.jit(lambda x: fnp.convolve(x, fnp.array([1.0, 2, 3]))), X),
    "checkpoint": (fxflow.checkpoint(lambda x: fnp.sin(fnp.sin(x))), X),
}


@pytest.mark.parametrize("name", EXACT)
def test_pattern_is_where_the_jacobian_is_not_zero(name: str) -> None:
    fun, x = EXACT[name]
    np.testing.assert_array_equal(mask(fun, x), nonzero(fun, x))


DATA: dict[str, tuple[Callable[..., Any], int]] = {
    "branch": (lambda x: lax.cond(x[0] > 0, lambda x: x, fnp.flip, x), 24),
    "end of a loop": (
        lambda x: lax.while_loop(
            lambda x: x[0] < 9, lambda x: x + fnp.roll(x, 1) ** 2 + 1, x
        ),
        144,
    ),
}


@pytest.mark.parametrize("name", DATA)
def test_pattern_covers_what_depends_on_data(name: str) -> None:
    fun, entries = DATA[name]
    found = mask(fun, X)
    assert found.sum() == entries
    assert not (nonzero(fun, X) & ~found).any()


def test_long_loop_is_settled_at_once() -> None:
    def mix(x: Any) -> Any:
        return lax.scan(lambda c, _: (c + fnp.roll(c, 1) ** 2, c[0]), x, length=10**6)

    pattern, _ = fxflow.sparse.jacobian_pattern(mix)(fnp.zeros(5))
    assert pattern.nnz == 25
