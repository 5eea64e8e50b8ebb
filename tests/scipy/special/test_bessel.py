"""Bessel functions against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError, DtypeError
from fxflow.scipy import special
from tests.scipy.special import suite
from tests.scipy.special.suite import X

ONE: dict[str, Any] = {
    "i0": X,
    "i0e": X,
    "i1": X,
    "i1e": X,
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument_agree_with_scipy(name: str) -> None:
    suite.one_argument(name, ONE[name])


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_limits_agree_with_scipy(name: str) -> None:
    suite.edges(name)


def test_declared_functions_look_like_written_ones() -> None:
    assert special.i0e.__name__ == "i0e"
    assert "order 1, times exp" in (special.i1e.__doc__ or "")


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("x", [-0.3, 0.0, 0.3, 2.0])
def test_four_derivatives(order: int, x: float) -> None:
    function: Any = (special.i0, special.i1)[order]
    with fxflow.config.override(x64=True):
        for k in range(5):
            want = scipy.special.ivp(order, x, k) if k else scipy.special.iv(order, x)
            assert float(function(x)) == pytest.approx(want, 1e-11, 1e-14)
            function = fxflow.grad(function)


def test_of_the_first_kind() -> None:
    rng = np.random.default_rng(0)
    z = np.concatenate(
        [rng.uniform(-40, 40, 60), 10.0 ** rng.uniform(-8, 4, 40), [0, 24.99, 25.01]]
    )
    for v in (1, 40):
        expected = scipy.special.jv(np.arange(v + 1)[:, None], z)
        with fxflow.config.override(x64=True):
            got = special.bessel_jn(z, v=v)
            # Relative where they fall with the order; else to their amplitude.
            np.testing.assert_allclose(got, expected, 1e-10, 1e-14)
            small = np.abs(expected) < 1e-15
            np.testing.assert_allclose(got[small], expected[small], 1e-10, 1e-280)
        single = special.bessel_jn(z.astype(np.float32), v=v)
        exact = scipy.special.jv(np.arange(v + 1)[:, None], z.astype(np.float32))
        np.testing.assert_allclose(single, exact, 2e-5, 2e-6)


def test_of_the_first_kind_in_transforms() -> None:
    with fxflow.config.override(x64=True):
        for z in (0.0, 3.0, -30.0):
            function = lambda z: special.bessel_jn(z, v=3)
            orders = np.arange(4)
            got = fxflow.jacrev(function)(z)
            np.testing.assert_allclose(got, scipy.special.jvp(orders, z), 1e-10, 1e-13)
        twice = fxflow.jacfwd(fxflow.jacrev(function))(3.0)
        np.testing.assert_allclose(twice, scipy.special.jvp(orders, 3.0, 2), 1e-9)
        assert special.bessel_jn(np.ones((2, 3)), v=4, n_iter=90).shape == (5, 2, 3)
        edges = special.bessel_jn(np.array([np.inf, -np.inf, np.nan]), v=1)
        np.testing.assert_array_equal(edges[:, :2], 0)
        assert np.isnan(edges[:, 2]).all()
    assert special.bessel_jn(np.float16(1), v=1).dtype == np.float16
    with pytest.raises(ArgumentError, match="negative"):
        special.bessel_jn(1.0, v=-1)
    with pytest.raises(DtypeError, match="real"):
        special.bessel_jn(1j, v=1)
