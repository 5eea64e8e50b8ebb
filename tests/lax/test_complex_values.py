"""Functions of complex numbers at infinities, NaN, signed zeros and branch cuts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import lax

SAME = "exp exp2 log log1p sqrt sinh cosh tanh sin cos tan abs"
INVERSE = "sin cos tan sinh cosh tanh"
FUNCTIONS = {
    **{name: name for name in SAME.split()},
    **{f"a{name}": f"arc{name}" for name in INVERSE.split()},
}
NUMBERS = [0.0, 1e-3, 0.5, 1.0, 2.0, 2.2, 10.0, 1e30, math.inf]
RUNS = pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
WIDTHS = pytest.mark.parametrize(
    ("dtype", "run"),
    [("complex64", fxflow.jit), ("complex128", lambda f: f)],
    ids=["c64-jit", "c128-eager"],
)


def points(dtype: str) -> Any:
    parts = [*NUMBERS, *(-n for n in NUMBERS), math.nan]
    return np.array([complex(*p) for p in itertools.product(parts, parts)], dtype)


def require_equal(got: Any, want: Any, z: Any, what: str) -> None:
    """Checks both parts: numbers, signs of zeros, infinities and nan.

    C99 leaves a sign open where the other part of the result, or both parts of the
    argument, are not numbers.
    """
    parts = [(got, want)]
    if got.dtype.kind == "c":
        parts = [(got.real, want.real), (got.imag, want.imag)]
    eps = float(np.finfo(got.dtype).eps)
    size = np.abs(want)
    unsigned = np.isnan(want) | ~(np.isfinite(z.real) | np.isfinite(z.imag))
    for a, b in parts:
        a, b = np.where(unsigned, np.abs(a), a), np.where(unsigned, np.abs(b), b)
        scale = np.where(np.isfinite(size), size, np.abs(b))
        with np.errstate(invalid="ignore"):
            near = np.abs(a - b) <= 40 * eps * scale + 1e-37
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
        bad = ~(same | near & np.isfinite(b) & (b != 0))
        shown = [(z[i], got[i], want[i]) for i in np.flatnonzero(bad)[:8]]
        assert not bad.any(), f"{what}: {bad.sum()} differ: {shown}"


@WIDTHS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_annex_g(name: str, dtype: str, run: Any) -> None:
    """NumPy calls the C library, or does as it does."""
    z = points(dtype)
    if name == "log1p":
        # NumPy's cancels where |1 + z| is near 1.
        z = z[~((np.abs(z.real) < 0.1) & (np.abs(z.imag) < 0.1))]
    with np.errstate(all="ignore"):
        want = getattr(np, FUNCTIONS[name])(z)
    with fxflow.config.override(x64=True):
        got = np.asarray(run(getattr(lax, name))(z))
    require_equal(got, want, z, name)


@WIDTHS
def test_expm1_is_as_the_array_api_has_it(dtype: str, run: Any) -> None:
    """NumPy's gives nan for most of these."""
    inf, nan = math.inf, math.nan
    cases = [
        (0 + 0j, 0 + 0j),
        (complex(0, -0.0), complex(0, -0.0)),
        (complex(inf, 0), complex(inf, 0)),
        (complex(-inf, 1), complex(-1, 0)),
        (complex(-inf, 2), complex(-1, 0)),
        (complex(inf, 1), complex(inf, inf)),
        (complex(-inf, inf), complex(-1, 0)),
        (complex(inf, inf), complex(inf, nan)),
        (complex(-inf, nan), complex(-1, 0)),
        (complex(inf, nan), complex(inf, nan)),
        (complex(nan, 0), complex(nan, 0)),
        (complex(nan, 1), complex(nan, nan)),
        (complex(1, inf), complex(nan, nan)),
        (complex(-40, 1), complex(np.expm1(-40.0), np.exp(-40.0) * np.sin(1.0))),
        (complex(1e-6, 1e-6), complex(np.exp(1e-6 + 1e-6j) - 1)),
    ]
    z, want = (np.array(side, dtype) for side in zip(*cases, strict=True))
    with fxflow.config.override(x64=True):
        got = np.asarray(run(lax.expm1)(z))
    eps = 40 * float(np.finfo(dtype).eps)
    np.testing.assert_allclose(got.real, want.real, eps, 1e-12)
    np.testing.assert_allclose(got.imag, want.imag, eps, 0)


@WIDTHS
def test_exponentials_that_overflow_alone(dtype: str, run: Any) -> None:
    """eˣ is infinite, eˣ times a small sine is not."""
    limit = math.log(float(np.finfo(dtype).max))
    z = np.array([complex(limit + 2, 1e-3), complex(-limit - 2, 1e-3)], dtype)
    with fxflow.config.override(x64=True):
        for name, ways in {"exp": [0], "sinh": [0, 1], "cosh": [0, 1]}.items():
            got = np.asarray(run(getattr(lax, name))(z))
            want = getattr(np, name)(z.astype(np.clongdouble)).imag.astype("f8")
            np.testing.assert_allclose(got.imag[ways], want[ways], 1e-4)


@WIDTHS
def test_exponentials_that_underflow(dtype: str, run: Any) -> None:
    limit = math.log(float(np.finfo(dtype).max))
    z = -limit * np.array([0.9, 1.02, 1.1, 1.5, 1.9, 2.1, math.inf]) + 0.5j
    with fxflow.config.override(x64=True):
        for name in ("exp", "expm1"):
            got = np.asarray(run(getattr(lax, name))(z.astype(dtype)))
            tiny = float(np.finfo(dtype).tiny)
            want = getattr(np, name)(z)
            np.testing.assert_allclose(got, want, 1e-4, 2 * tiny)


@RUNS
def test_signs_of_infinite_complex_numbers(run: Any) -> None:
    inf, nan = math.inf, math.nan
    z = np.array([complex(inf, 1), complex(2, -inf), complex(inf, nan), 3 + 4j], "c8")
    got = np.asarray(run(lax.sign)(z))
    np.testing.assert_allclose(got, [1, -1j, complex(nan, nan), 0.6 + 0.8j], 1e-6)


@RUNS
def test_powers_of_zero(run: Any) -> None:
    x = np.zeros(4, "c8")
    y = np.array([0, 1 + 1j, 2 - 3j, -1 + 1j], "c8")
    got = np.asarray(run(lax.pow)(x, y))
    np.testing.assert_array_equal(got[:3], [1, 0, 0])
    assert not np.isfinite(got[3])
    assert complex(fxflow.grad(lax.pow, holomorphic=True)(x[0], 2 + 0j)) == 0


@RUNS
def test_roots_on_their_cut(run: Any) -> None:
    """The sign of a zero tells on which side of the cut a number lies."""
    z = np.array([complex(-4, 0.0), complex(-4, -0.0)], "c8")
    np.testing.assert_array_equal(np.asarray(run(lax.sqrt)(z)), [2j, -2j])
    np.testing.assert_allclose(np.asarray(run(lax.rsqrt)(z)), [-0.5j, 0.5j], 1e-6)


def test_the_logistic_function_of_large_numbers_is_a_number() -> None:
    z = np.array([-200 + 1j, 200 + 1j, 0j, -1j * np.pi / 2], "c8")
    got = np.asarray(fxflow.jit(lax.logistic)(z))
    np.testing.assert_allclose(got, [0, 1, 0.5, 0.5 - 0.5j], 1e-6, 1e-7)


@RUNS
def test_an_accuracy_leaves_special_values_right(run: Any) -> None:
    z = np.complex64(complex(-1, -0.0))
    for name, want in (("sqrt", -1j), ("exp", np.exp(z)), ("log", np.log(z))):
        f = getattr(lax, name)
        got = np.asarray(run(lambda z, f=f: f(z, accuracy=lax.AccuracyMode.HIGHEST))(z))
        np.testing.assert_allclose(got, want, 1e-6)
        assert np.signbit(got.imag) == np.signbit(np.asarray(want).imag)


@RUNS
def test_inverse_functions_beside_their_poles(run: Any) -> None:
    """The square of the imaginary part is 0 in float32, the logarithm is not."""
    tiny = 1e-30
    z = np.array([complex(s, t) for s in (1, -1) for t in (tiny, -tiny)], "complex64")
    size, quarter = math.log(2 / tiny) / 2, math.pi / 4
    want = np.array([complex(s * size, t * quarter) for s in (1, -1) for t in (1, -1)])
    np.testing.assert_allclose(run(lax.atanh)(z), want, rtol=1e-6)
    got = run(lax.atan)(z * np.complex64(1j))
    np.testing.assert_allclose(got, want * 1j, rtol=1e-6)
    want = np.array([complex(math.log(tiny), s * math.pi / 2) for s in (1, -1)])
    np.testing.assert_allclose(run(lax.log1p)(z[2:]), want, rtol=1e-6)
