"""Polar factors: slopes at equal singular values, against points nearby."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
import fxflow.scipy.linalg as fsl
from fxflow.numpy.polar_factors import nuclear_norm, unitary_factor

RNG = np.random.default_rng(0)


def weighted(f: Any, shape: tuple[int, ...]) -> Any:
    weights = np.random.default_rng(1).normal(size=shape)
    return lambda x: fnp.sum(fnp.real(f(x)) * weights)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [((3, 3), "float64"), ((3, 2), "float64"), ((2, 3), "complex128")],
)
def test_slopes_at_equal_singular_values(shape: tuple[int, int], dtype: str) -> None:
    with fxflow.config.override(x64=True):
        x = 2 * np.eye(*shape, dtype=dtype)
        near = x + 1e-6 * RNG.normal(size=shape)
        for f in (
            weighted(unitary_factor, shape),
            weighted(lambda x: fsl.polar(x)[1], (shape[1],) * 2),
            nuclear_norm,
        ):
            first = fxflow.grad(f)(x)
            np.testing.assert_allclose(first, fxflow.grad(f)(near), 0, 1e-4)
            if dtype == "float64":
                second = fxflow.jit(fxflow.hessian(f))(x)
                np.testing.assert_allclose(
                    second, fxflow.jit(fxflow.hessian(f))(near), 0, 1e-3
                )


def test_values_are_those_of_the_singular_vectors() -> None:
    x = RNG.normal(size=(2, 4, 3)).astype("f4")
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    np.testing.assert_allclose(unitary_factor(fnp.asarray(x)), u @ vh, 1e-5, 1e-5)
    np.testing.assert_allclose(nuclear_norm(fnp.asarray(x)), s.sum(-1), 1e-5)


def test_slopes_of_a_zero_are_finite() -> None:
    zero = fnp.zeros((3, 3))
    assert np.isfinite(fxflow.grad(nuclear_norm)(zero)).all()
    assert np.isfinite(fxflow.hessian(nuclear_norm)(zero)).all()
