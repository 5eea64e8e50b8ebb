"""Trigonometric and hyperbolic functions: quadrants, branch cuts, slopes at ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import DtypeError


def test_quadrants() -> None:
    y = np.array([1, 1, -1, -1, 0.0, -0.0], "f4")
    x = np.array([1, -1, 1, -1, -1.0, -1.0], "f4")
    for run in (lax.atan2, fxflow.jit(lax.atan2)):
        np.testing.assert_allclose(np.asarray(run(y, x)), np.arctan2(y, x), 1e-6)


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "sin", "cos", "tan"])
def test_complex_values_are_numpys(name: str) -> None:
    z = (np.mgrid[-2:2:5j, -2:2:4j][0] + 1j * np.mgrid[-2:2:5j, -2:2:4j][1]).ravel()
    z = z.astype("c8")
    numpy_name = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name)
    out = np.asarray(fxflow.jit(getattr(lax, name))(z))
    np.testing.assert_allclose(out, getattr(np, numpy_name)(z), 1e-5, 1e-5)


def test_slopes_at_the_ends() -> None:
    assert float(fxflow.grad(lax.asin)(1.0)) == np.inf
    assert float(fxflow.grad(lax.acos)(1.0)) == -np.inf
    assert np.isnan(float(fxflow.grad(lax.atan2)(0.0, 0.0)))


def test_integers_and_mixed_dtypes_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"sin: takes .*got i32\[\]"):
        lax.sin(np.int32(0))
    with pytest.raises(DtypeError, match=r"atan2: .*one dtype"):
        lax.atan2(np.float32(0), np.float16(0))


def test_domains() -> None:
    x = np.array([0.5, 1.0, 2.0], "f4")
    assert np.isnan(np.asarray(lax.acosh(x))).tolist() == [True, False, False]
    assert np.isnan(np.asarray(lax.atanh(x))).tolist() == [False, False, True]
    assert float(lax.atanh(1.0)) == np.inf


@pytest.mark.parametrize("z", [1 + 2j, -1 + 2j, -1 - 2j, 0.5 - 1j])
def test_slope_of_complex_acosh(z: complex) -> None:
    # On the left half plane √(z² - 1) is on the other branch than √(z-1) √(z+1).
    h = 1e-6
    expected = (np.arccosh(z + h) - np.arccosh(z - h)) / (2 * h)
    point, one = np.complex64(z), np.complex64(1)
    _, slope = fxflow.jvp(lax.acosh, (point,), (one,))
    np.testing.assert_allclose(np.asarray(slope), expected, 1e-5)


def test_large_arguments() -> None:
    x = np.array([-50.0, 50.0], "f4")
    assert np.asarray(lax.tanh(x)).tolist() == [-1, 1]
    assert np.asarray(lax.sinh(x * 4)).tolist() == [-np.inf, np.inf]


#: Points, the derivative there and the second one, by factors that keep their digits.
SLOPES: dict[str, tuple[list[float], Any, Any]] = {
    "tanh": (
        [-40, -9, -0.3, -1e-4, 1e-4, 0.3, 9, 40],
        lambda x: np.cosh(x) ** -2,
        lambda x: -2 * np.tanh(x) * np.cosh(x) ** -2,
    ),
    "asin": (
        [-0.999, -0.9, -1e-4, 1e-4, 0.9, 0.999],
        lambda x: ((1 - x) * (1 + x)) ** -0.5,
        lambda x: x * ((1 - x) * (1 + x)) ** -1.5,
    ),
    "acos": (
        [-0.999, -0.9, -1e-4, 1e-4, 0.9, 0.999],
        lambda x: -(((1 - x) * (1 + x)) ** -0.5),
        lambda x: -x * ((1 - x) * (1 + x)) ** -1.5,
    ),
    "atanh": (
        [-0.99, -0.9, -1e-4, 1e-4, 0.9, 0.99],
        lambda x: 1 / ((1 - x) * (1 + x)),
        lambda x: 2 * x / ((1 - x) * (1 + x)) ** 2,
    ),
    "atan": (
        [-1e22, -1e12, -300, -1e-4, 1e-4, 300, 1e12, 1e22],
        lambda x: 1 / (1 + x * x),
        lambda x: -2 * x / (1 + x * x) ** 2,
    ),
    "asinh": (
        [-1e22, -1e12, -300, -1e-4, 1e-4, 300, 1e12, 1e22],
        lambda x: (1 + x * x) ** -0.5,
        lambda x: -x * (1 + x * x) ** -1.5,
    ),
}


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_neither_cancel_nor_overflow(name: str, dtype: str, run: Any) -> None:
    points, slope, bend = SLOPES[name]
    info = np.finfo(dtype)
    x = np.array([p for p in points if abs(p) < float(info.max)], dtype)
    with fxflow.config.override(x64=True):
        f = getattr(lax, name)
        for derivative, want in (
            (fxflow.grad(f), slope),
            (fxflow.grad(fxflow.grad(f)), bend),
            (fxflow.jacrev(fxflow.jacfwd(f)), bend),
        ):
            out = np.asarray(run(fxflow.vmap(derivative))(x)).astype("f8")
            want = want(x.astype("f8"))
            np.testing.assert_allclose(
                out, want, 40 * float(info.eps), 4 * float(info.tiny)
            )


def test_slopes_of_an_angle_do_not_overflow() -> None:
    for size in (1e-30, 1e30):
        y, x = np.float32(3 * size), np.float32(4 * size)
        dy, dx = fxflow.grad(lax.atan2, (0, 1))(y, x)
        assert float(dy) * size == pytest.approx(4 / 25, rel=1e-6)
        assert float(dx) * size == pytest.approx(-3 / 25, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "z", "want"),
    [
        ("asin", 1e25 + 1e25j, 1j / (1 + 1j) / 1e25),
        ("asinh", 1e25 - 1e25j, 1 / (1 - 1j) / 1e25),
        ("tan", 1 + 20j, 4 / (np.exp(20 - 1j) + np.exp(-20 + 1j)) ** 2),
        ("tanh", 20 + 1j, 4 / (np.exp(20 + 1j) + np.exp(-20 - 1j)) ** 2),
        ("atan", 1e12 + 0j, 1e-24),
    ],
)
def test_slopes_of_complex_numbers(name: str, z: complex, want: complex) -> None:
    f = fxflow.grad(getattr(lax, name), holomorphic=True)
    for run in (f, fxflow.jit(f)):
        got = complex(run(np.complex64(z)))
        assert abs(got - want) < 1e-5 * abs(want)
