"""Integrals over several variables, beside closed forms."""

import math
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy import integrate


@pytest.fixture(autouse=True)
def wide() -> Any:
    with fxflow.config.override(x64=True):
        yield


@pytest.mark.slow
def test_a_triangle_has_derivatives_by_its_corner_and_arguments() -> None:
    def moment(corner: Any, power: Any) -> Any:
        return integrate.dblquad(
            lambda y, x, p: x * y**p, 0.0, corner, 0.0, lambda x: x, (power,)
        )[0]

    # ∫ x · x^(p + 1) / (p + 1) dx
    value, slopes = fxflow.value_and_grad(moment, (0, 1))(2.0, 1.0)
    np.testing.assert_allclose(value, 2.0)
    exact = 2**4 / 8 * (math.log(2) - 1 / 2 - 1 / 4)
    np.testing.assert_allclose(slopes, [4.0, exact], 1e-7)


@pytest.mark.slow
def test_infinite_ranges_options_and_three_variables() -> None:
    value, error, info = integrate.nquad(
        lambda x, y: fnp.exp(-x * x - y * y),
        [(-fnp.inf, fnp.inf), (0.0, fnp.inf)],
        opts=[{"limit": 20}, {"epsabs": 1e-6}],
        full_output=True,
    )
    np.testing.assert_allclose(value, math.pi / 2, 1e-6)
    assert error < 1e-5 and info["neval"] >= 21
    volume = integrate.tplquad(
        *(lambda z, y, x: 1.0 + 0 * z, 0.0, 1.0, 0.0, lambda x: 1 - x),
        *(0.0, lambda x, y: 1 - x - y),
    )[0]
    np.testing.assert_allclose(volume, 1 / 6)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match="a range for each variable"):
        integrate.nquad(lambda: 1.0, [])
    with pytest.raises(ArgumentError, match="range 0 must be two bounds"):
        integrate.nquad(lambda x: x, [(0.0,)])
    with pytest.raises(ArgumentError, match="options are epsabs"):
        integrate.nquad(lambda x: x, [(0.0, 1.0)], opts={"weight": "cos"})
    with pytest.raises(ArgumentError, match="one for each of 1 ranges"):
        integrate.nquad(lambda x: x, [(0.0, 1.0)], opts=[{}, {}])
