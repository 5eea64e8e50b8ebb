"""Powers and roots: dtypes, errors, slopes at special points."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError


def slope(function, x: float) -> float:
    return float(fxflow.grad(function)(x))


def test_a_python_integer_is_an_integer_power() -> None:
    graph = str(fxflow.make_graph(lambda x: lax.pow(x, 3))(np.float32(2)))
    assert "integer_pow" in graph
    assert float(lax.pow(np.float32(-2), 3)) == -8


def test_integer_exponents_keep_their_dtype() -> None:
    x, y = np.array([2, -2, 0], "f4"), np.array([3, -1, 0], "i4")
    np.testing.assert_allclose(np.asarray(lax.pow(x, y)), [8, -0.5, 1])


@pytest.mark.parametrize("power", [-3, -1, 0, 1, 2, 3, 5, 10])
def test_integer_pow_is_numpys(power: int) -> None:
    x = np.array([-1.5, -1, 0.5, 2], "f8")
    out = lax.integer_pow(fxflow.numpy.asarray(x, "float64"), power)
    np.testing.assert_allclose(np.asarray(out), x**power, 1e-14)


@pytest.mark.parametrize(
    ("x", "y", "by_x", "by_y"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (0.0, 1.0, 1.0, 0.0),
        (0.0, 2.0, 0.0, 0.0),
        (0.0, 0.5, np.inf, 0.0),
        (-2.0, 2.0, -4.0, np.nan),
        (2.0, 0.0, 0.0, np.log(2)),
        (np.inf, 0.0, 0.0, np.inf),
    ],
)
def test_slopes_of_pow(x: float, y: float, by_x: float, by_y: float) -> None:
    found = [float(g) for g in fxflow.grad(lax.pow, (0, 1))(x, y)]
    np.testing.assert_allclose(found, [by_x, by_y], 1e-6)


def test_slopes_at_zero() -> None:
    assert slope(lax.sqrt, 0.0) == np.inf
    assert slope(lax.cbrt, 0.0) == np.inf
    assert slope(lax.rsqrt, 0.0) == -np.inf
    assert slope(lax.square, 0.0) == 0
    assert [slope(lambda x, n=n: lax.integer_pow(x, n), 0.0) for n in (0, 1, 2)] == [
        0.0,
        1.0,
        0.0,
    ]


def test_operands_and_exponents_of_a_wrong_dtype_are_refused() -> None:
    n = np.arange(3, dtype="i4")
    with pytest.raises(DtypeError, match=r"i32\[3\] cannot be raised to the negative"):
        lax.integer_pow(n, -1)
    with pytest.raises(DtypeError, match=r"i32\[3\] cannot be raised"):
        lax.reciprocal(n)
    with pytest.raises(ArgumentError, match=r"Python integer, got 2.5: use lax.pow"):
        lax.integer_pow(np.float32(1), 2.5)
    with pytest.raises(DtypeError, match=r"pow: takes .*, got i32\[3\]"):
        lax.pow(n, n)
    with pytest.raises(DtypeError, match=r"pow: .*one dtype, got f32\[\], f16\[\]"):
        lax.pow(np.float32(1), np.float16(1))
    with pytest.raises(DtypeError, match=r"sqrt: takes .*, got i32\[3\]"):
        lax.sqrt(n)
    with pytest.raises(DtypeError, match=r"cbrt: takes .*, got c64\[\]"):
        lax.cbrt(np.complex64(1))


@pytest.mark.parametrize("outer", [fxflow.jacfwd, fxflow.jacrev])
@pytest.mark.parametrize("inner", [fxflow.jacfwd, fxflow.jacrev])
def test_second_slopes_of_pow(outer, inner) -> None:
    def second(x, y):
        return np.array(outer(inner(lax.pow, (0, 1)), (0, 1))(x, y))

    log = np.log(4.0)
    want = [[0, 0.25], [0.25, log**2]]
    np.testing.assert_allclose(second(4.0, 0.0), want, 1e-6)
    np.testing.assert_allclose(second(0.0, 2.0), [[2, 0], [0, 0]], 1e-6)
    by_x = fxflow.grad(fxflow.grad(lax.pow))
    for x, y, want in [(0.0, 0.0, 0), (0.0, 1.0, 0), (-2.0, 3.0, -12), (-2.0, 0.0, 0)]:
        assert float(by_x(x, y)) == float(fxflow.jit(by_x)(x, y)) == want


@pytest.mark.parametrize("x", [0.0, 1e-40, -1.0, np.inf, np.nan])
def test_the_power_0_is_flat(x: float) -> None:
    assert float(fxflow.grad(lax.pow)(x, 0.0)) == 0
