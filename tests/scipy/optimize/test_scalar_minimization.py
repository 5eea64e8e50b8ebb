"""Minima of functions of one number, beside SciPy's results."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.scipy.optimize import bracket, minimize_scalar


def curve(x: Any, a: Any = 1.0) -> Any:
    return (x - 2) * x * (x + 2) ** 2 + a * x


@pytest.mark.parametrize(
    "given",
    [
        {"method": "brent"},
        {"method": "golden"},
        {"bracket": (-3.0, -2.0)},
        {"bracket": (0.0, 1.0, 3.0)},
        {"bounds": (-3.0, -1.0)},
    ],
    ids=str,
)
def test_minima_match_scipy(given: Any) -> None:
    with fxflow.config.override(x64=True):
        want = scipy.optimize.minimize_scalar(curve, **given)
        found = minimize_scalar(curve, **given)
        assert bool(found.success) and found.message == "Converged."
        np.testing.assert_allclose(found.x, want.x, atol=2e-6)
        np.testing.assert_allclose(found.fun, want.fun, rtol=1e-9)
        assert int(found.nfev) <= want.nfev + 2


def test_derivatives_and_many_at_once() -> None:
    with fxflow.config.override(x64=True):

        def lowest(a: Any) -> Any:
            return minimize_scalar(curve, args=(a,)).x

        slope = fxflow.grad(lowest)
        second = fxflow.hessian(curve)(lowest(1.0), 1.0)
        assert float(slope(1.0)) == pytest.approx(-1 / float(second), rel=1e-6)
        many = fxflow.vmap(slope)(np.array([0.5, 1.0]))
        np.testing.assert_allclose(many[1], slope(1.0), rtol=1e-6)
        bound = lambda b: minimize_scalar(lambda x: x, bounds=(b, 2.0)).x
        assert float(fxflow.grad(bound)(1.0)) == pytest.approx(1.0)


def test_functions_without_a_minimum_say_so() -> None:
    few = minimize_scalar(curve, options={"maxiter": 2})
    assert int(few.status) == 1 and not few.success
    lost = minimize_scalar(lambda x: x * fnp.nan)
    assert not lost.success
    rises = minimize_scalar(lambda x: x, bracket=(0.0, 1.0, 2.0))
    assert int(rises.status) == 3


def test_arguments_that_do_not_fit_are_refused() -> None:
    for wrong in (
        {"method": "newton"},
        {"method": "bounded"},
        {"method": "brent", "bounds": (0.0, 1.0)},
        {"bracket": (1.0,)},
        {"options": {"gtol": 1.0}},
    ):
        with pytest.raises(ArgumentError):
            minimize_scalar(curve, **wrong)


def test_brackets_have_the_minimum() -> None:
    bowl = lambda x, a: (x - a) ** 2 + 1
    with fxflow.config.override(x64=True):
        for a, points in ((20.0, ()), (-3.0, (0.5, 0.7)), (0.2, (0.0, 1.0))):
            got = bracket(bowl, *points, args=(a,))
            assert min(got.a, got.c) < a < max(got.a, got.c)
            assert got.fb < min(got.fa, got.fc) and got.calls < 10
            np.testing.assert_allclose(got.fb, bowl(got.b, a))
            # SciPy's first points.
            want = scipy.optimize.bracket(bowl, *points, args=(a,))
            np.testing.assert_allclose(got.b, want[1], 1e-6)
