"""Finite differences beside SciPy's and exact derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.differentiate as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import differentiate


@pytest.mark.parametrize("order", [2, 8])
def test_derivatives_of_elements(order: int) -> None:
    x = np.linspace(0.3, 4, 5)
    side = np.array([0, 1, -1, 0, 1])
    power = np.array([[1.5], [-0.5]])
    settings: dict[str, Any] = {
        "order": order,
        "step_direction": side,
        "initial_step": 0.2,
        "maxiter": 12,
    }
    with fxflow.config.override(x64=True):
        run = fxflow.jit(
            lambda x, p: differentiate.derivative(
                lambda x, p: x**p, x, args=(p,), **settings
            )
        )
        got = run(x, power)
        exact = want.derivative(lambda x, p: x**p, x, args=(power,), **settings)
        np.testing.assert_allclose(got.df, exact.df, 1e-5)
        assert got.df.shape == (2, 5)
        right = np.abs(got.df - power * x ** (power - 1))
        good = np.asarray(got.success)
        assert good.mean() > 0.8 and np.all(right[good] <= 1e-6)


def test_statuses() -> None:
    with fxflow.config.override(x64=True):
        rough = differentiate.derivative(fnp.exp, 1.0, maxiter=1)
        assert rough.status == -2 and rough.nit == 1 and rough.nfev == 9
        lost = differentiate.derivative(fnp.log, 0.1, initial_step=1.0)
        assert lost.status == -3
        exact = differentiate.derivative(
            fnp.exp, 1.0, tolerances={"rtol": 1e-30, "atol": 0.0}, maxiter=20
        )
        assert exact.status == -1 and abs(exact.df - np.e) < 1e-9


def _curves(m: Any) -> Any:
    return lambda x: m.stack([x[0] * m.sin(x[1]), x[1] ** 2, m.exp(x[0] - x[1])])


def test_jacobians() -> None:
    x = np.array([[0.3, 1.2, 2.0], [1.0, -0.4, 0.1]])
    with fxflow.config.override(x64=True):
        got = differentiate.jacobian(_curves(fnp), x)
        exact = want.jacobian(_curves(np), x)
        assert got.df.shape == (3, 2, 3) and bool(got.success.all())
        np.testing.assert_allclose(got.df, exact.df, 1e-8, 1e-10)
        for i in range(3):
            right = fxflow.jacfwd(_curves(fnp))(fnp.asarray(x[:, i]))
            np.testing.assert_allclose(got.df[..., i], right, 1e-7, 1e-8)
        single = differentiate.jacobian(lambda x: fnp.sum(x**3, 0), x[:, 0])
        np.testing.assert_allclose(single.df, 3 * x[:, 0] ** 2, 1e-7)


def test_hessians() -> None:
    def wave(x: Any) -> Any:
        return fnp.sin(x[0]) * x[1] ** 2 + x[0]

    x = fnp.asarray([0.7, 1.3], "float32")
    with fxflow.config.override(x64=True):
        x = fnp.asarray([0.7, 1.3], "float64")
        got = differentiate.hessian(wave, x)
        np.testing.assert_allclose(got.ddf, fxflow.hessian(wave)(x), 1e-5, 1e-7)
        assert bool(got.success.all())


def test_bad_arguments_are_refused() -> None:
    for settings, message in (
        ({"order": 3}, "order must be even"),
        ({"maxiter": 0}, "maxiter must be at least 1"),
        ({"step_factor": 1.0}, "step_factor must be above 1"),
        ({"tolerances": {"xtol": 1.0}}, "tolerances are atol and rtol, got xtol"),
        ({"tolerances": {"atol": -1.0}}, "must not be negative"),
    ):
        with pytest.raises(ArgumentError, match=message):
            differentiate.derivative(fnp.exp, 1.0, **settings)
    with pytest.raises(DtypeError, match="x must be real"):
        differentiate.derivative(fnp.exp, 1j)
    with pytest.raises(ShapeError, match="f must return f32"):
        differentiate.derivative(lambda x: x[0], fnp.ones(3))
    with pytest.raises(ShapeError, match=r"x must be float\[n, ...\]"):
        differentiate.jacobian(fnp.exp, 1.0)
    with pytest.raises(ShapeError, match="must be vectorized"):
        differentiate.jacobian(
            lambda x: fnp.stack([x.ravel()[0], x.ravel()[1]]), [1.0, 2.0]
        )


def test_callbacks_and_shapes_of_derivatives() -> None:
    seen: list[Any] = []
    x = np.array([0.5, 1.0, 2.0])

    def mixed(m: Any) -> Any:
        stack = np.stack if m is np else fnp.stack
        return lambda x, c: stack([m.sin(x[0]), x[1] ** 3, c[2] * m.exp(x[2])])

    with fxflow.config.override(x64=True):
        got = differentiate.derivative(
            *(mixed(fnp), x), args=(x,), preserve_shape=True, callback=seen.append
        )
        exact = want.derivative(mixed(np), x, args=(x,), preserve_shape=True)
    np.testing.assert_allclose(got.df, exact.df, 1e-8)
    assert len(seen) == int(got.nit.max()) + 1 and seen[0].nfev.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(seen[-1].df, got.df)
    with pytest.raises(ArgumentError, match="derivative: callback must be a function"):
        differentiate.derivative(fnp.sin, 1.0, callback="f")  # type: ignore[arg-type]
