"""Roots of functions of one number, beside SciPy's, and their derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import optimize

ROOT = 2.0945514815423265
BRACKETING = ["bisect", "brentq", "brenth", "ridder", "toms748"]


def wallis(x: Any, a: Any = 2.0) -> Any:
    return x**3 - a * x - 5


@pytest.mark.parametrize("name", BRACKETING)
def test_roots_in_a_bracket(name: str) -> None:
    with fxflow.config.override(x64=True):
        find = getattr(optimize, name)
        found, info = find(wallis, 2.0, 3.0, full_output=True)
        assert float(found) == pytest.approx(ROOT, abs=3e-12)
        assert bool(info.converged) and info.flag == "Converged."
        theirs = getattr(scipy.optimize, name)(wallis, 2, 3, full_output=True)[1]
        assert int(info.function_calls) <= theirs.function_calls + 4
        assert float(find(wallis, 3.0, 2.0)) == pytest.approx(ROOT, abs=3e-12)


@pytest.mark.parametrize(
    "given",
    [
        {"bracket": (2.0, 3.0)},
        {"x0": 2.0},
        {"x0": 2.0, "x1": 3.0},
        {"x0": 2.0, "fprime": lambda x: 3 * x**2 - 2, "fprime2": lambda x: 6 * x},
    ],
    ids=["brentq", "newton", "secant", "halley"],
)
def test_root_scalar_chooses_a_method(given: Any) -> None:
    with fxflow.config.override(x64=True):
        found = optimize.root_scalar(wallis, **given)
        assert bool(found.converged)
        assert float(found.root) == pytest.approx(ROOT, abs=1e-9)
        assert int(found.iterations) < 10


def test_arrays_are_problems_of_their_own() -> None:
    with fxflow.config.override(x64=True):
        a, b = np.array([[1.0], [4.0]]), np.array([[2.0], [5.0]])
        found = optimize.brentq(fnp.cos, a, b)
        np.testing.assert_allclose(found, np.pi * np.array([[0.5], [1.5]]), rtol=1e-12)
        found = optimize.newton(lambda x: x**2 - 2, np.array([1.0, -1.0]))
        np.testing.assert_allclose(found, np.sqrt(2) * np.array([1, -1]), rtol=1e-9)


def test_derivatives_in_both_modes_and_of_second_order() -> None:
    with fxflow.config.override(x64=True):
        find = lambda a: optimize.brentq(wallis, 2.0, 3.0, (a,))
        slope = ROOT / (3 * ROOT**2 - 2)
        assert float(fxflow.grad(find)(2.0)) == pytest.approx(slope, rel=1e-9)
        assert float(fxflow.jvp(find, (2.0,), (1.0,))[1]) == pytest.approx(slope)
        second = (fxflow.grad(find)(2.001) - fxflow.grad(find)(1.999)) / 0.002
        found = fxflow.hessian(find)(2.0)
        assert float(found) == pytest.approx(float(second), rel=1e-4)
        many = fxflow.vmap(fxflow.grad(find))(np.array([2.0, 2.5]))
        assert float(many[0]) == pytest.approx(slope)


def test_what_has_no_root_is_nan_or_says_so() -> None:
    assert np.isnan(float(optimize.brentq(wallis, 3.0, 4.0)))
    found = optimize.root_scalar(wallis, bracket=(3.0, 4.0))
    assert int(found.status) == 3 and "signs" in found.flag
    few, info = optimize.bisect(
        wallis, 2.0, 3.0, maxiter=3, full_output=True, disp=False
    )
    assert int(info.status) == 1 and 2 < float(few) < 3
    flat = optimize.newton(lambda x: x * 0 + 1.0, 1.0)
    assert np.isnan(float(flat))
    small = optimize.brentq(wallis, np.float32(2), np.float32(3))
    assert small.dtype == np.float32 and float(small) == pytest.approx(ROOT, rel=1e-6)


def test_arguments_that_do_not_fit_are_refused() -> None:
    for wrong in (
        {"method": "muller", "x0": 1.0},
        {"method": "brentq"},
        {"method": "newton"},
        {"method": "secant", "x0": 1.0},
        {"bracket": (1.0,)},
        {"x0": 1.0, "options": {"eps": 1}},
    ):
        with pytest.raises(ArgumentError):
            optimize.root_scalar(wallis, **wrong)
    with pytest.raises(ArgumentError, match="x1"):
        optimize.newton(wallis, 1.0, lambda x: x, x1=2.0)
    with pytest.raises(ArgumentError, match="maxiter"):
        optimize.brentq(wallis, 1.0, 2.0, maxiter=0)
    with pytest.raises(ArgumentError, match="real"):
        optimize.brentq(wallis, 1j, 2.0)
    with pytest.raises(ShapeError, match="f must return"):
        optimize.brentq(lambda x: fnp.ones(2), 1.0, 2.0)


def test_starts_in_lists() -> None:
    found = optimize.newton(lambda x: x**2 - 2, [1, -1])
    np.testing.assert_allclose(found, [2**0.5, -(2**0.5)], 1e-6)
