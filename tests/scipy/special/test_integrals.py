"""Integrals of sines, logarithms and the normal density beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.special as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError
from fxflow.scipy import special

RNG = np.random.default_rng(0)
SIZES = np.float32(np.concatenate([2.0 ** RNG.uniform(-12, 12, 80), [3.999, 4, 1.5]]))
X = np.concatenate([SIZES, -SIZES, RNG.uniform(-6, 6, 100).astype(np.float32)])
EDGES = np.array([-np.inf, -0.0, 0.0, 1.0, np.inf, np.nan])
# Name, which of the results, its arguments, the derivative, an absolute error.
CASES: dict[str, Any] = {
    "spence": (None, np.abs(X), lambda x: -np.log(x) / (x - 1)),
    "sici-0": (0, X, lambda x: np.sin(x) / x),
    "sici-1": (1, np.abs(X), lambda x: np.cos(x) / x),
    "fresnel-0": (0, X[abs(X) < 50], lambda x: np.sin(np.pi / 2 * x * x)),
    "fresnel-1": (1, X[abs(X) < 50], lambda x: np.cos(np.pi / 2 * x * x)),
}


@pytest.mark.parametrize("case", CASES)
def test_of_one_argument(case: str) -> None:
    part, x, slope = CASES[case]
    name = case.partition("-")[0]

    def ours(x: Any) -> Any:
        out = getattr(special, name)(x)
        return out if part is None else out[part]

    def theirs(x: Any) -> Any:
        out = getattr(want, name)(x)
        return out if part is None else out[part]

    wide = x.astype(np.float64)
    expected = theirs(wide)
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(ours(wide), expected, 1e-13, 1e-15)
        grad = fxflow.jit(fxflow.vmap(fxflow.grad(ours)))
        np.testing.assert_allclose(grad(wide), slope(wide), 1e-9, 1e-12)
        assert np.isfinite(fxflow.grad(fxflow.grad(ours))(1.0))
        with np.errstate(all="ignore"):
            edges = theirs(EDGES)
        if name == "spence":
            edges[4] = -np.inf  # where SciPy's is nan
        np.testing.assert_allclose(ours(EDGES), edges, 1e-14)
    # Near a zero of Ci half a unit of its largest term is left.
    np.testing.assert_allclose(ours(x), expected, 5e-7, 3e-7)
    half = ours(x.astype(np.float16)[:5])
    assert half.dtype == np.float16
    assert ours(np.arange(3)).dtype == np.float32
    assert ours(np.zeros((0, 2))).shape == (0, 2)
    with pytest.raises(DtypeError, match="real"):
        ours(1j)


def test_derivatives_at_0_and_1() -> None:
    with fxflow.config.override(x64=True):
        si = lambda x: special.sici(x)[0]
        slopes = []
        for _ in range(4):
            si = fxflow.grad(si)
            slopes.append(float(si(0.0)))
        np.testing.assert_allclose(slopes, [1, 0, -1 / 3, 0], atol=1e-12)
        dilog = special.spence
        slopes = []
        for _ in range(4):
            dilog = fxflow.grad(dilog)
            slopes.append(float(dilog(1.0)))
        np.testing.assert_allclose(slopes, [-1, 1 / 2, -2 / 3, 3 / 2], 1e-9)


def test_owens_t() -> None:
    h = RNG.choice([0.1, 1.0, 3.0, 9.0], 300) * RNG.uniform(-1, 1, 300)
    a = RNG.choice([1.0, 1.1, 10.0], 300) * RNG.uniform(-1, 1, 300)
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(special.owens_t(h, a), want.owens_t(h, a), 1e-12)
        total = lambda h, a: special.owens_t(h, a).sum()
        by_h, by_a = fxflow.grad(total, (0, 1))(h, a)
        density = np.exp(-h * h / 2) / np.sqrt(2 * np.pi)
        expected = -density * (want.ndtr(a * h) - 0.5)
        np.testing.assert_allclose(by_h, expected, 1e-9, 1e-15)
        expected = np.exp(-h * h * (1 + a * a) / 2) / (2 * np.pi * (1 + a * a))
        np.testing.assert_allclose(by_a, expected, 1e-12)
        edges = np.array([-np.inf, -1.0, 0.0, 2.0, np.inf, np.nan])
        grid = np.meshgrid(edges, edges)
        expected = want.owens_t(*grid)
        np.testing.assert_allclose(special.owens_t(*grid), expected, 1e-14)
    single = special.owens_t(h.astype(np.float32), a.astype(np.float32))
    np.testing.assert_allclose(single, want.owens_t(h, a), 2e-4, 1e-9)
    assert special.owens_t(fnp.ones((2, 1)), fnp.ones(3)).shape == (2, 3)


def test_modified_fresnel_integrals() -> None:
    x = np.array([0.0, 0.3, 1.0, 4.0, 30.0])
    with fxflow.config.override(x64=True):
        for name in ("modfresnelp", "modfresnelm"):
            function, theirs = getattr(special, name), getattr(want, name)
            for got, known in zip(function(x), theirs(x), strict=True):
                np.testing.assert_allclose(got, known, 1e-12)
        # SciPy's are wrong below 0. Both sides together are √π exp(i π/4).
        both = special.modfresnelp(x)[0] + special.modfresnelp(-x)[0]
        np.testing.assert_allclose(both, np.sqrt(np.pi / 2) * (1 + 1j), 1e-12)
        ends = special.modfresnelp(np.array([np.inf, np.nan]))[0]
        assert ends[0] == 0 and np.isnan(ends[1])
        slope = fxflow.grad(lambda x: special.modfresnelp(x)[0].real)(0.7)
        assert float(slope) == pytest.approx(-np.cos(0.49))
    assert special.modfresnelm(np.float32(1))[1].dtype == np.complex64
