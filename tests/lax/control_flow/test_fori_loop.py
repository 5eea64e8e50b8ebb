"""`fori_loop`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import config, jit, lax, vmap
from fxflow.errors import ArgumentError, DtypeError, NotDifferentiableError

X = np.float32(0.5)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0.0, 3.0), (0.5, 3.2), (0, 2.5), (-1.5, 2), (2.0, 1.0), (1.0, 1.0)],
)
def test_float_bounds(lower: float, upper: float, traced: bool) -> None:
    expected, i = [], float(lower)
    while i < upper:
        expected.append(i)
        i += 1

    def run(lower, upper):
        return lax.fori_loop(
            lower, upper, lambda i, c: (c[0] + i, c[1] + 1), (np.float32(0), 0)
        )

    if traced:
        run = jit(run)
    total, steps = run(float(lower), upper) if traced else run(lower, upper)
    assert (float(total), int(steps)) == (sum(expected), len(expected))
    if not traced:
        with config.override(disable_jit=True):
            total, steps = run(lower, upper)
        assert (float(total), int(steps)) == (sum(expected), len(expected))


def test_fori_values() -> None:
    assert int(lax.fori_loop(0, 5, lambda i, c: lax.add(c, i), 0)) == 10
    assert int(lax.fori_loop(3, 5, lambda i, c: lax.add(c, i), 0)) == 7
    assert int(lax.fori_loop(5, 3, lambda i, c: lax.add(c, i), 1)) == 1
    assert int(lax.fori_loop(-2, 2, lambda i, c: lax.add(c, i), 0)) == -2
    total = lax.fori_loop(0, 5, lambda i, c: lax.add(c, i), 0, unroll=2)
    assert int(total) == 10
    big = lax.fori_loop(np.int32(0), np.int32(3), lambda i, c: lax.add(c, i), 0)
    assert int(big) == 3


def test_fori_traced_bounds() -> None:
    def run(start: Any, stop: Any) -> Any:
        return lax.fori_loop(start, stop, lambda i, c: lax.add(c, i), 0)

    assert int(jit(run)(2, 6)) == 14
    small = jit(lambda n: lax.fori_loop(0, n, lambda i, c: lax.add(c, i), n))
    assert small(np.uint8(4)).dtype == np.uint8
    assert int(small(np.uint8(4))) == 10
    stops = np.array([0, 3, 5], np.int32)
    assert vmap(lambda n: run(0, n))(stops).tolist() == [0, 3, 10]


def test_fori_gradient() -> None:
    run = lambda x: lax.fori_loop(0, 3, lambda i, c: lax.mul(c, x), 1.0)
    assert float(fxflow.grad(run)(2.0)) == 12.0
    with pytest.raises(NotDifferentiableError, match="Python ints"):
        jit(
            lambda n: fxflow.grad(
                lambda x: lax.fori_loop(0, n, lambda i, c: lax.mul(c, x), 1.0)
            )(2.0)
        )(3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.fori_loop(0j, 3, lambda i, c: c, X),
            ArgumentError,
            r"lower must be a real number, got c64\[\]",
        ),
        (
            lambda: lax.fori_loop(0.0, np.inf, lambda i, c: c, X),
            ArgumentError,
            "bounds must be finite, got lower 0.0 and upper inf",
        ),
        (
            lambda: lax.fori_loop(0.5, np.int32(3), lambda i, c: c, X),
            DtypeError,
            r"bounds must have one dtype, got lower f32\[\]~ and upper i32\[\]",
        ),
        (
            lambda: lax.fori_loop(np.int32(0), np.uint8(3), lambda i, c: c, X),
            DtypeError,
            r"bounds must have one dtype, got lower i32\[\] and upper u8\[\]",
        ),
        (
            lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, X, unroll=2))(3),
            ArgumentError,
            "unroll needs bounds that are known",
        ),
    ],
)
def test_invalid_bounds_are_refused(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
