"""Filters of images beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.ndimage as want

import fxflow
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import ndimage

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6, 5))
MODES = ["reflect", "mirror", "nearest", "wrap", "constant", "grid-wrap"]


def close(got: Any, expected: Any, tolerance: float = 1e-10) -> None:
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("mode", MODES)
def test_filters_agree_with_scipy(mode: str) -> None:
    s: dict[str, Any] = {"mode": mode, "cval": 1.5}
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("correlate1d", (RNG.normal(size=4), 1), {"origin": 1}),
        ("convolve1d", (RNG.normal(size=4), 0), {"origin": -1}),
        ("convolve1d", (RNG.normal(size=11), 2), {}),
        ("correlate", (RNG.normal(size=(2, 3, 4)),), {"origin": (0, -1, 1)}),
        ("convolve", (RNG.normal(size=(2, 3, 4)),), {"origin": (0, -1, 1)}),
        ("gaussian_filter1d", (1.3, 1, 3), {}),
        ("gaussian_filter", (0.8,), {"order": (0, 1, 2)}),
        ("gaussian_filter", ((0, 1.0),), {"axes": (0, 2), "radius": 2}),
        ("uniform_filter1d", (4, 1), {"origin": 1}),
        ("uniform_filter", ((3, 1, 2),), {}),
        ("sobel", (1,), {}),
        ("prewitt", (0,), {}),
        ("laplace", (), {}),
        ("laplace", (), {"axes": (2, 0)}),
        ("correlate", (RNG.normal(size=(2, 3)),), {"axes": (0, 2), "origin": (0, 1)}),
        ("convolve", (RNG.normal(size=(2, 4)),), {"axes": (-2, 2), "origin": (-1, 1)}),
        ("gaussian_laplace", ((0.7, 1.1),), {"axes": (0, 2)}),
        ("gaussian_gradient_magnitude", (0.9,), {"axes": 1}),
    ]
    with fxflow.config.override(x64=True):
        for name, args, options in calls:
            got = getattr(ndimage, name)(X, *args, **options, **s)
            close(got, getattr(want, name)(X, *args, **options, **s))


def test_modes_of_some_axes() -> None:
    w, modes = RNG.normal(size=(2, 3)), ("wrap", "nearest")
    rows = lambda f: np.stack([f(x, w, mode="wrap") for x in X])
    with fxflow.config.override(x64=True):
        for name in ("correlate", "convolve"):
            got = getattr(ndimage, name)(X, w, mode="wrap", axes=(1, 2))
            close(got, rows(getattr(want, name)))
            got = getattr(ndimage, name)(X, w, mode=modes, axes=(1, 2))
            # The kernel's axes are those of the list, in its order.
            again = getattr(ndimage, name)(X, w.T, mode=modes[::-1], axes=(2, 1))
            close(again, np.asarray(got))
        got = ndimage.laplace(X, mode=modes, axes=(0, 2))
        close(got, want.laplace(X, mode=modes, axes=(0, 2)))


def test_modes_of_each_axis_and_dtypes() -> None:
    modes = ("wrap", "nearest", "constant")
    with fxflow.config.override(x64=True):
        close(
            ndimage.gaussian_filter(X, 1.0, mode=modes),
            want.gaussian_filter(X, 1.0, mode=modes),
        )
        close(ndimage.laplace(X, mode=modes), want.laplace(X, mode=modes))
        z = X + 1j * X[::-1]
        close(ndimage.uniform_filter(z), want.uniform_filter(z))
    image = np.arange(20, dtype=np.uint8).reshape(4, 5)
    assert ndimage.sobel(image).dtype == np.float32
    close(ndimage.sobel(image), want.sobel(image.astype(float)), 1e-5)
    weights = np.array([0.5, 0.0, 1.0])
    whole = ndimage.correlate1d(image, weights, output=np.int32)
    np.testing.assert_array_equal(
        whole, want.correlate1d(image, weights, output=np.int32)
    )
    assert ndimage.gaussian_filter(np.zeros((0, 3)), 1.0).shape == (0, 3)


def test_transforms_and_a_learned_width() -> None:
    x = X[0]
    with fxflow.config.override(x64=True):
        each = fxflow.jit(fxflow.vmap(ndimage.sobel))(X)
        close(each[1], want.sobel(X[1]))

        def energy(sigma: Any) -> Any:
            return (ndimage.gaussian_filter(x, sigma, radius=4) ** 2).sum()

        h = 1e-6
        difference = (energy(1.2 + h) - energy(1.2 - h)) / (2 * h)
        np.testing.assert_allclose(fxflow.grad(energy)(1.2), difference, 1e-6)
        slope = fxflow.grad(lambda x: ndimage.laplace(x, mode="wrap").sum())(x)
        np.testing.assert_allclose(slope, 0, atol=1e-12)


def test_bad_filters_are_refused() -> None:
    with pytest.raises(ArgumentError, match="mode"):
        ndimage.laplace(X, mode="bounce")
    with pytest.raises(ArgumentError, match="origin must lie in -1 … 1"):
        ndimage.correlate1d(X, np.ones(3), origin=2)
    with pytest.raises(AxisError):
        ndimage.sobel(X, 3)
    with pytest.raises(ShapeError, match="weights must have as many axes"):
        ndimage.correlate(X, np.ones(3))
    with pytest.raises(ShapeError, match="weights must be a vector"):
        ndimage.convolve1d(X, np.ones((3, 3)))
    with pytest.raises(ArgumentError, match="sigma must be positive"):
        ndimage.gaussian_filter1d(X, -1.0)
    with pytest.raises(ArgumentError, match="give radius"):
        fxflow.jit(ndimage.gaussian_filter)(X, 1.0)
    with pytest.raises(ArgumentError, match="size must be at least 1"):
        ndimage.uniform_filter(X, 0)
    with pytest.raises(ArgumentError, match="output must be a dtype"):
        ndimage.gaussian_filter(X, 1.0, output=np.zeros_like(X))
