"""Bessel functions of real order against mpmath, and their limits against SciPy's."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError
from fxflow.scipy import special

EXACT: dict[str, Callable[..., Any]] = {
    "jv": mpmath.besselj,
    "yv": mpmath.bessely,
    "iv": mpmath.besseli,
    "kv": mpmath.besselk,
    "ive": lambda v, x: mpmath.besseli(v, x) * mpmath.exp(-x),
    "kve": lambda v, x: mpmath.besselk(v, x) * mpmath.exp(x),
}
EDGES = np.array([-2.0, -0.0, 0.0, np.nan])


def samples(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Orders and arguments, with the borders between the methods first."""
    rng = np.random.default_rng(27)
    borders = [2, np.nextafter(2, 0), 25, 25.1, 1e-300, 1e8, 10, 30.0]
    orders = [0, 1, -1, 24.9, 25, 0.5, -0.5, 3]
    v = np.concatenate([orders, rng.uniform(-5, 60, count)])
    return v, np.concatenate([borders, 10 ** rng.uniform(-4, 3, count)])


def compare(name: str, v: Any, x: Any, got: Any, eps: float) -> None:
    """Compares with mpmath, relative to what rounding the arguments can move."""
    info = np.finfo(np.float32 if eps > 1e-10 else np.float64)
    with mpmath.workdps(30):
        for order, at, value in zip(v.tolist(), x.tolist(), got.tolist(), strict=True):
            exact = EXACT[name](mpmath.mpf(order), mpmath.mpf(at))
            size = abs(float(exact))
            most, least = float(info.max), float(info.tiny)
            if size > most or size < least:
                assert abs(value) > 0.99 * most or abs(value) <= 2 * least
                continue
            waves = name[0] in "jy" and at > abs(order)
            amplitude = (2 / np.pi / at) ** 0.5 if waves else size
            scale = max(size, amplitude)
            moves = 1 + abs(order) * max(1, abs(np.log(at / (1 + abs(order))))) / 8
            error = abs(value - float(exact)) / scale / (eps * moves)
            assert error < 24, (name, order, at, value, float(exact), error)


@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kve"])
def test_agree_with_mpmath(name: str) -> None:
    v, x = samples(40)
    with fxflow.config.override(x64=True):
        compare(name, v, x, np.asarray(getattr(special, name)(v, x)), 2.0**-52)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_many_agree_with_mpmath(name: str) -> None:
    v, x = samples(800)
    with fxflow.config.override(x64=True):
        compare(name, v, x, np.asarray(getattr(special, name)(v, x)), 2.0**-52)
    v, x = v.astype(np.float32), np.clip(x, 1e-30, None).astype(np.float32)
    compare(name, v, x, np.asarray(getattr(special, name)(v, x)), 2.0**-23)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["jv", "yv", "iv", "kv"])
def test_limits_agree_with_scipy(name: str) -> None:
    v = np.array([0, 1, 2, 0.5, 1.5, -1, -2, np.nan])[:, None]
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        want = getattr(scipy.special, name)(v, EDGES)
        if name == "kv":  # infinite at 0 for SciPy, though the order is nan
            want[-1] = np.nan
        got = getattr(special, name)(v, EDGES)
        np.testing.assert_allclose(got, want, 1e-14)
        far = np.asarray(getattr(special, name)(v[:-1], np.inf))
        assert (far == (np.inf if name == "iv" else 0)).all()


@pytest.mark.parametrize(
    "names", [["jv"], pytest.param(["yv", "iv", "kve"], marks=pytest.mark.slow)]
)
def test_derivatives_by_order_and_argument(names: list[str]) -> None:
    v, x = np.array([0.0, 1.0, 2.7, -0.6, 26.0]), np.array([0.5, 3.0, 40.0, 1.5, 20.0])
    with fxflow.config.override(x64=True), mpmath.workdps(25):
        for name in names:
            function = getattr(special, name)
            total = lambda v, x, f=function: f(v, x).sum()
            by_v, by_x = fxflow.jit(fxflow.grad(total, (0, 1)))(v, x)
            for i, at in enumerate(zip(v.tolist(), x.tolist(), strict=True)):
                of_order = mpmath.diff(EXACT[name], at, (1, 0))
                of_argument = mpmath.diff(EXACT[name], at, (0, 1))
                near = {"rel": 1e-11, "abs": 1e-13}
                assert float(by_v[i]) == pytest.approx(float(of_order), **near)
                assert float(by_x[i]) == pytest.approx(float(of_argument), **near)


@pytest.mark.slow
def test_derivatives_at_zero() -> None:
    assert fxflow.grad(special.j0)(0.0) == 0
    assert fxflow.grad(special.j1)(0.0) == 0.5
    assert fxflow.grad(special.iv, 1)(1.0, 0.0) == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", EXACT)
def test_second_derivatives(name: str) -> None:
    function = getattr(special, name)
    with fxflow.config.override(x64=True), mpmath.workdps(30):
        for wanted in ((2, 0), (1, 1), (0, 2)):
            slope = function
            for i in (0,) * wanted[0] + (1,) * wanted[1]:
                slope = fxflow.grad(slope, i)
            exact = mpmath.diff(EXACT[name], (1.3, 2.5), wanted)
            assert float(slope(1.3, 2.5)) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e"])
def test_of_fixed_orders(name: str) -> None:
    x = np.float32([0.0, 1e-3, 0.7, 1.99, 2.0, 5.0, 80.0, np.nan])
    want = getattr(scipy.special, name)(x.astype(float))
    np.testing.assert_allclose(getattr(special, name)(x), want, 3e-7, 1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sign"), [("hankel1", 1), ("hankel2", -1)])
def test_hankel(name: str, sign: int) -> None:
    v, x = np.array([0.3, -1.7, 2.0])[:, None], np.array([-3.0, 0.4, 9.0])
    with fxflow.config.override(x64=True):
        function = getattr(special, name)
        got = function(v, x)
        np.testing.assert_allclose(got, getattr(scipy.special, name)(v, x), 1e-13)
        slope = fxflow.grad(lambda x: fnp.imag(function(0.3, x)))(0.4)
        want = sign * scipy.special.yvp(0.3, 0.4)
        np.testing.assert_allclose(slope, want, 1e-13)
    assert function(fnp.float16(1), fnp.float16(2)).dtype == np.complex64


def test_derivatives_at_negative_arguments() -> None:
    x = np.array([-3.0, -0.5, -1e-3])
    with fxflow.config.override(x64=True):
        for order in (0.0, 1.0, 2.0, -3.0):
            function: Any = lambda x, v=order: fnp.sum(special.jv(v, x))
            found = fxflow.grad(function)(fnp.asarray(x))
            wanted = scipy.special.jvp(order, x)
            np.testing.assert_allclose(found, wanted, 1e-12)
            second = fxflow.jvp(fxflow.grad(function), (x,), (np.ones(3),))[1]
            np.testing.assert_allclose(second, scipy.special.jvp(order, x, 2), 1e-10)
        assert np.isnan(fxflow.grad(lambda x: special.jv(0.5, x))(-1.0))
        assert np.isnan(fxflow.grad(lambda x: special.yv(1.0, x))(-1.0))


def test_operands_of_32_bits() -> None:
    v, x = (a.astype(np.float32) for a in (np.array([16.0, 0.3]), np.array([3.3, 4])))
    np.testing.assert_allclose(special.jv(v, x), scipy.special.jv(v, x), 1e-6)


def test_shapes_and_dtypes() -> None:
    assert special.j0(np.ones((2, 1))).shape == (2, 1)
    assert special.kve(np.zeros((0, 2)), 1.0).shape == (0, 2)
    assert special.yv(1, np.float16(2)).dtype == np.float16
    batch = fxflow.vmap(special.jve, in_axes=(0, None))(np.float32([0, 1]), 2.0)
    np.testing.assert_allclose(batch, scipy.special.jv([0, 1], 2.0), 1e-6)
    assert np.isnan(special.jv(20_000.0, 1.0))
    with pytest.raises(DtypeError, match="real"):
        special.kv(1.0, 1j)


def test_functions_of_whole_orders() -> None:
    n, x = np.array([0, 1, 2, 5]), np.array([0.5, 2.0, 7.0, 0.0])
    with fxflow.config.override(x64=True):
        for name in ("jn", "yn", "kn"):
            got = getattr(special, name)(n, x)
            want = getattr(scipy.special, name)(n, x)
            np.testing.assert_allclose(got, want, 1e-13, 1e-15)
        np.testing.assert_allclose(special.yn(-3, 2.0), scipy.special.yn(-3, 2.0))
        assert np.isnan(special.kn(0.5, 2.0)) and np.isnan(special.yn(0.5, 2.0))
        slope = fxflow.grad(special.kn, 1)(2.0, 1.5)
        assert float(slope) == pytest.approx(scipy.special.kvp(2, 1.5))


def test_values_whose_scaled_ones_are_out_of_range() -> None:
    # exp(-x) I is below the smallest number, exp(x) K above the largest.
    v, x = np.array([496.769, 499.041]), np.array([105.422, 103.24])
    with fxflow.config.override(x64=True):
        got = special.iv(v, x)
        np.testing.assert_allclose(got, scipy.special.iv(v, x), 1e-12)
        got = special.kv(np.array([400.637, 486.73]), np.array([56.589, 94.615]))
        want = [
            float(mpmath.besselk(*at)) for at in ((400.637, 56.589), (486.73, 94.615))
        ]
        np.testing.assert_allclose(got, want, 1e-12)
