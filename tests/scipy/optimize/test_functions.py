"""Rosenbrock's function and differences, beside SciPy's."""

import numpy as np
import pytest
import scipy.optimize

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.optimize import (
    approx_fprime,
    check_grad,
    rosen,
    rosen_der,
    rosen_hess,
    rosen_hess_prod,
)

X = np.array([0.5, 1.0, 2.0, -1.0])


def test_rosenbrock_and_its_derivatives() -> None:
    with fxflow.config.override(x64=True):
        for ours in (rosen, rosen_der, rosen_hess):
            want = getattr(scipy.optimize, ours.__name__)(X)
            np.testing.assert_allclose(ours(X), want, rtol=1e-12)
        np.testing.assert_allclose(fxflow.grad(rosen)(X), rosen_der(X), rtol=1e-12)
        many = np.stack([X, X + 1], 1)
        np.testing.assert_allclose(
            rosen_der(many), scipy.optimize.rosen_der(many), rtol=1e-12
        )


def test_differences_are_close_to_derivatives() -> None:
    with fxflow.config.override(x64=True):
        found = approx_fprime(X, lambda x: x**2 * x[0])
        np.testing.assert_allclose(
            found, fxflow.jacfwd(lambda x: x**2 * x[0])(X), atol=1e-6
        )
        assert float(check_grad(rosen, rosen_der, X)) < 1e-3
        one = check_grad(rosen, rosen_der, X, direction="random", key=random.key(0))
        assert float(one) < 1e-3
        wrong = check_grad(rosen, lambda x: rosen_der(x) + 1, X)
        assert float(wrong) == pytest.approx(2, rel=1e-3)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError):
        rosen(np.float32(1))
    for function in (rosen_der, rosen_hess):
        with pytest.raises(ShapeError, match="n ≥ 2"):
            function(np.ones(1))
    with pytest.raises(ShapeError, match=r"must be float\[n\]"):
        rosen_hess(np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="key="):
        check_grad(rosen, rosen_der, X, direction="random")


def test_products_with_the_hessian() -> None:
    x, p = np.array([0.3, -1.2, 0.8]), np.array([1.0, 2.0, -0.5])
    want = scipy.optimize.rosen_hess_prod(x, p)
    np.testing.assert_allclose(rosen_hess_prod(x, p), want, 1e-5)
    with pytest.raises(ShapeError, match="x and p must be"):
        rosen_hess_prod(x, p[:2])
