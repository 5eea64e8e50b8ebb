"""Elliptic integrals against SciPy and mpmath."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import DtypeError
from fxflow.scipy import special

RNG = np.random.default_rng(27)
CARLSON = {"elliprc": 2, "elliprf": 3, "elliprd": 3, "elliprg": 3, "elliprj": 4}
EXACT: dict[str, Callable[..., Any]] = {
    "ellipk": mpmath.ellipk,
    "ellipe": mpmath.ellipe,
    "ellipkinc": mpmath.ellipf,
    "ellipeinc": mpmath.ellipe,
    **{name: getattr(mpmath, name) for name in CARLSON},
}


def close(got: Any, want: Any, units: float) -> None:
    """Compares to some units of the last place of 64 bits."""
    np.testing.assert_allclose(got, want, units * 2.0**-52, equal_nan=True)


@pytest.mark.parametrize("name", CARLSON)
def test_carlsons_forms(name: str) -> None:
    # The same numbers, whichever other tests run.
    rng = np.random.default_rng(27)
    args = 10.0 ** rng.uniform(-8, 8, (CARLSON[name], 60))
    args[0, :5] = 0
    args[-1] = np.minimum(args[-1], 1e4)
    args[0, 5], args[1, 6], args[:2, 7] = np.nan, -1, 0
    args[-1, 6] = 2
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    want = theirs(*args)
    if name == "elliprj":  # of which SciPy's loses digits where p is large
        with mpmath.workdps(25):
            for i in range(8, 60):
                want[i] = float(mpmath.elliprj(*args[:, i].tolist()))
    if name == "elliprc":
        want[6] = theirs(args[0, 6], 2.0)
    with fxflow.config.override(x64=True):
        # Where arguments are 16 powers of ten apart, terms of R_J cancel.
        close(function(*args), want, 8000 if name == "elliprj" else 12)
    narrow = args.astype(np.float32)[:, 8:]
    got = function(*narrow)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, want[8:], 2e-6)


def test_complete_integrals() -> None:
    near = 1 - 10 ** RNG.uniform(-15, 0, 30)
    m = np.concatenate([near, -(10 ** RNG.uniform(-5, 10, 30)), [0, 1, -np.inf, 2]])
    p = np.concatenate([10 ** RNG.uniform(-300, 5, 30), [0, 1, np.inf, -1, np.nan]])
    with fxflow.config.override(x64=True):
        close(special.ellipk(m), scipy.special.ellipk(m), 8)
        close(special.ellipe(m), scipy.special.ellipe(m), 8)
        close(special.ellipkm1(p), scipy.special.ellipkm1(p), 8)


@pytest.mark.parametrize("name", ["ellipkinc", "ellipeinc"])
def test_incomplete_integrals(name: str) -> None:
    phi = RNG.uniform(-9, 9, 40)
    phi[:4] = np.pi / 2
    m = np.concatenate([RNG.uniform(-3, 1, 30), 1 - 10 ** RNG.uniform(-12, 0, 10)])
    with mpmath.workdps(25):
        pairs = zip(phi.tolist(), m.tolist(), strict=True)
        want = [float(mpmath.re(EXACT[name](*pair))) for pair in pairs]
    edges = [np.inf, -np.inf, 0.0, 2.0, 1.0, np.nan], [0.5, 0.5, 2.0, 2.0, 1.0, 0.0]
    with fxflow.config.override(x64=True):
        close(getattr(special, name)(phi, m), want, 12)
        got = getattr(special, name)(*map(np.array, edges))
        close(got, getattr(scipy.special, name)(*map(np.array, edges)), 8)


def arguments(name: str) -> tuple[float, ...]:
    """Ordinary arguments of a function."""
    if name in CARLSON:
        return (0.3, 1.7, 2.9, 0.8)[: CARLSON[name]]
    return (4.0, 0.6) if name.endswith("inc") else (0.6,)


@pytest.mark.parametrize("name", ["ellipk", "ellipeinc", "elliprj"])
def test_derivatives(name: str) -> None:
    check_derivatives(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_all_derivatives(name: str) -> None:
    check_derivatives(name)
    args = arguments(name)
    with fxflow.config.override(x64=True), mpmath.workdps(25):
        last = len(args) - 1
        twice = fxflow.grad(fxflow.grad(getattr(special, name), 0), last)(*args)
        orders = [0] * len(args)
        orders[0] += 1
        orders[last] += 1
        want = mpmath.re(mpmath.diff(EXACT[name], args, tuple(orders)))
        assert float(twice) == pytest.approx(float(want), rel=1e-11)


def check_derivatives(name: str) -> None:
    """Compares the derivative by each argument with mpmath's."""
    args = arguments(name)
    with fxflow.config.override(x64=True), mpmath.workdps(25):
        every = tuple(range(len(args)))
        slopes = fxflow.jit(fxflow.grad(getattr(special, name), every))(*args)
        for i, slope in enumerate(slopes):
            orders = tuple(int(j == i) for j in every)
            want = mpmath.re(mpmath.diff(EXACT[name], args, orders))
            assert float(slope) == pytest.approx(float(want), rel=1e-13)


def test_derivatives_at_the_ends() -> None:
    with fxflow.config.override(x64=True):
        assert float(fxflow.grad(special.ellipk)(0.0)) == pytest.approx(np.pi / 8)
        assert float(fxflow.grad(special.ellipe)(0.0)) == pytest.approx(-np.pi / 8)
        slope = fxflow.grad(special.ellipkinc, 1)(np.pi / 2, 0.3)
        assert float(slope) == pytest.approx(float(fxflow.grad(special.ellipk)(0.3)))


def test_shapes_and_dtypes() -> None:
    assert special.elliprc(np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    assert special.ellipe(np.zeros((0, 2))).shape == (0, 2)
    assert special.ellipk(np.float16(0.5)).dtype == np.float16
    batch = fxflow.vmap(special.ellipkinc, in_axes=(0, None))(np.float32([0, 1]), 0.5)
    np.testing.assert_allclose(batch, scipy.special.ellipkinc([0, 1], 0.5), 1e-6)
    with pytest.raises(DtypeError, match="real"):
        special.ellipk(1j)
