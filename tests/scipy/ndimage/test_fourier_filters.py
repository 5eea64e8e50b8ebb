"""Filters of Fourier coefficients against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import fxflow
from fxflow import numpy as fnp
from fxflow.compat.jax.test_util import check_grads
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import ndimage

RNG = np.random.default_rng(6)
NAMES = ["fourier_gaussian", "fourier_uniform", "fourier_shift", "fourier_ellipsoid"]
RUNS = pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])


@RUNS
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_scipy(name: str, run: Any) -> None:
    given: list[tuple[tuple[int, ...], Any, int, int]] = [
        ((6,), 1.3, -1, -1),
        ((5,), 2.0, 9, 0),
        ((4, 5), (0.7, 2.5), -1, -1),
        ((4, 3), 1.25, 5, 1),
        ((4, 3), 1.25, 6, -2),
        ((3, 4, 2), (2.5, 1.0, 0.3), -1, -1),
    ]
    function = getattr(ndimage, name)
    with fxflow.config.override(x64=True):
        for shape, number, n, axis in given:
            x = RNG.normal(size=shape) + 1j * RNG.normal(size=shape)
            want = getattr(scipy.ndimage, name)(x, number, n, axis)
            got = run(lambda x, p=number, n=n, a=axis: function(x, p, n, a))(x)
            np.testing.assert_allclose(got, want, 1e-13, 1e-13)
            if name != "fourier_shift":
                np.testing.assert_allclose(
                    function(x.real, number, n, axis), want.real, 1e-13, 1e-13
                )


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name: str) -> None:
    function = getattr(ndimage, name)
    with fxflow.config.override(x64=True):
        for shape in ((5,), (4, 3), (2, 3, 3)):
            x = RNG.normal(size=shape)
            numbers = RNG.uniform(0.5, 2, len(shape))
            check_grads(lambda x, p, f=function: fnp.real(f(x, p)), (x, numbers), 2)


def test_shapes_dtypes_and_batches() -> None:
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    for name in NAMES:
        function = getattr(ndimage, name)
        got = function(x, 1)
        assert got.dtype == ("complex64" if name == "fourier_shift" else "float32")
        rows = fxflow.vmap(lambda v, f=function: f(v, 1.5))(x)
        np.testing.assert_allclose(rows[1], function(x[1], 1.5), 1e-6)
        assert function(x[:0], 1.0).shape == (0, 4)
    whole = ndimage.fourier_gaussian(x, 1, output="f2")
    assert whole.dtype == np.float16


def test_wrong_arguments() -> None:
    x = np.ones((3, 4))
    with pytest.raises(ArgumentError, match="sigma must be one or 2"):
        ndimage.fourier_gaussian(x, (1, 2, 3))
    with pytest.raises(ArgumentError, match=r"size must be one number or 2.*f32\[2\]"):
        ndimage.fourier_uniform(x, [np.ones(2), 1.0])
    with pytest.raises(AxisError):
        ndimage.fourier_shift(x, 1, 4, 2)
    with pytest.raises(ArgumentError, match="output must be a dtype"):
        ndimage.fourier_shift(x, 1, output=np.zeros(3))
    with pytest.raises(ShapeError, match=r"one, two or three axes, got f32\[1,1,1,1\]"):
        ndimage.fourier_ellipsoid(np.ones((1, 1, 1, 1)), 1)
