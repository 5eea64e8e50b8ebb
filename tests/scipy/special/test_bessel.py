"""Bessel functions against SciPy."""

from typing import Any

import pytest
import scipy.special

import fxflow
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
def test_one_argument(name: str) -> None:
    suite.one_argument(name, ONE[name])


@pytest.mark.parametrize("name", ["i0", "i0e", "i1", "i1e"])
def test_edges(name: str) -> None:
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
