"""The logistic function and entropies against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special
from tests.scipy.special import suite
from tests.scipy.special.suite import P, U, X

ONE: dict[str, Any] = {
    "expit": X,
    "logit": U,
    "log_expit": X * 20,
    "entr": P,
}
TWO: dict[str, Any] = {
    "xlogy": (P - P[0], P[:, None]),
    "xlog1py": (P - P[0], U[:, None]),
    "rel_entr": (P, U[:, None]),
    "kl_div": (P, U[:, None]),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_argument_agree_with_scipy(name: str) -> None:
    suite.one_argument(name, ONE[name])


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name: str) -> None:
    suite.two_arguments(name, *TWO[name])


@pytest.mark.parametrize("name", ["expit", "logit", "entr"])
def test_limits_agree_with_scipy(name: str) -> None:
    suite.edges(name)


@pytest.mark.parametrize("name", ("xlogy", "xlog1py"))
def test_complex_products_with_logarithms(name: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (
        (rng.normal(size=9) + 1j * rng.normal(size=9)).astype("complex64")
        for _ in range(2)
    )
    x[0] = 0
    expected = getattr(scipy.special, name)(x, y)
    for run in (getattr(special, name), fxflow.jit(getattr(special, name))):
        np.testing.assert_allclose(run(x, y), expected, rtol=1e-4)


def test_complex_logistic_function() -> None:
    z = np.array([1 + 2j, -30 - 1j, 0, 50j], "complex64")
    for run in (special.expit, fxflow.jit(special.expit)):
        np.testing.assert_allclose(run(z), 1 / (1 + np.exp(-z)), rtol=1e-4)


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit])
def test_derivatives_where_x_is_0(run: Any) -> None:
    three = np.float32(3)
    for name, log in (("xlogy", np.log(3)), ("xlog1py", np.log(4))):
        f = getattr(special, name)
        for jacobian in (fxflow.jacfwd, fxflow.jacrev):
            by_x, by_y = run(jacobian(f, (0, 1)))(0.0, three)
            assert (float(by_x), float(by_y)) == (pytest.approx(log), 0)
        second = np.array(run(fxflow.hessian(f, (0, 1)))(0.0, three))
        mixed = 1 / np.exp(log)
        np.testing.assert_allclose(second, [[0, mixed], [mixed, 0]], 1e-6)
        assert np.isnan(f(0.0, np.nan))
        assert float(f(0.0, np.inf)) == float(f(0.0, -2.0)) == 0
    assert float(run(fxflow.grad(special.xlogy, 1))(0.0, 0.0)) == 0
    assert float(run(fxflow.grad(special.xlog1py, 1))(0.0, -1.0)) == 0
    slope = fxflow.grad(special.entr)
    assert float(run(slope)(0.0)) == float(run(fxflow.jacfwd(special.entr))(0.0))
    assert float(run(slope)(0.0)) == np.inf
    assert float(run(fxflow.grad(slope))(0.5)) == -2
    assert fxflow.vmap(slope)(np.float32([0, 1])).tolist() == [np.inf, -1]


def test_slope_of_log_expit_at_0() -> None:
    for slope in (fxflow.grad(special.log_expit), fxflow.jacfwd(special.log_expit)):
        assert float(slope(0.0)) == 0.5
    assert float(fxflow.grad(fxflow.grad(special.log_expit))(0.0)) == -0.25


def test_entropy_without_a_negative_zero() -> None:
    out = special.entr(np.array([0.0, 1.0]))
    assert not np.signbit(np.asarray(out)).any()
