"""Resampling: known images, what holds for every method, derivatives."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow import image
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.image import ResizeMethod

RNG = np.random.default_rng(0)
X = np.array([1.0, 5, 2, 7, 3], np.float32)
SMOOTH = [m for m in ResizeMethod if m is not ResizeMethod.NEAREST]

# Computed with jax.image 0.10.2.
KNOWN = [
    ("linear", 3, True, [2.4285715, 3.7142856, 4.428572]),
    ("linear", 3, False, [2.3333333, 2.0, 5.6666665]),
    ("cubic-pytorch", 4, True, [1.9102619, 3.6768210, 5.0193844, 4.0141253]),
    ("cubic-pytorch", 4, False, [1.4487305, 4.0288086, 5.4399414, 3.4692383]),
    ("area", 4, True, [1.8, 3.8, 5.0, 3.8]),
    ("nearest", 8, True, [1, 1, 5, 2, 2, 7, 3, 3]),
]


@pytest.mark.parametrize(("method", "n", "antialias", "want"), KNOWN)
def test_known_values(method: str, n: int, antialias: bool, want: Any) -> None:
    if (method, n) == ("linear", 3):
        # Weights of triangles of width 5/3, or of interpolation, by hand.
        width = 5 / 3 if antialias else 1
        centers = (np.arange(3) + 0.5) * 5 / 3 - 0.5
        w = np.maximum(0, 1 - abs(centers - np.arange(5)[:, None]) / width)
        want = X @ (w / w.sum(0))
    got = image.resize(X, (n,), method, antialias)
    np.testing.assert_allclose(got, want, 1e-5)


@pytest.mark.parametrize("method", ResizeMethod)
@settings(max_examples=10)
@given(n=st.integers(1, 6), m=st.integers(0, 9), antialias=st.booleans())
def test_constants_stay(method: Any, n: int, m: int, antialias: bool) -> None:
    got = image.resize(np.full((n, 2), 3, np.float32), (m, 2), method, antialias)
    np.testing.assert_allclose(got, np.full((m, 2), 3), 1e-4)
    x = RNG.normal(size=(n, 3)).astype(np.float32)
    np.testing.assert_array_equal(image.resize(x, (n, 3), method, antialias), x)


@pytest.mark.parametrize("method", SMOOTH)
def test_resize_is_a_scale(method: ResizeMethod) -> None:
    x = RNG.normal(size=(6, 5)).astype(np.float32)
    for shape in ((3, 8), (13, 2)):
        scale = np.array(shape, np.float32) / x.shape
        for antialias in (False, True):
            got = image.scale_and_translate(
                x, shape, (0, 1), scale, np.zeros(2, np.float32), method, antialias
            )
            want = image.resize(x, shape, method, antialias)
            np.testing.assert_allclose(got, want, 1e-4, 1e-5)
    jitted = fxflow.jit(lambda x: image.resize(x, (3, 8), method))(x)
    np.testing.assert_allclose(jitted, image.resize(x, (3, 8), method), 1e-5, 1e-6)
    rows = fxflow.vmap(lambda row: image.resize(row, (7,), method))(x)
    np.testing.assert_allclose(rows, image.resize(x, (6, 7), method), 1e-5, 1e-6)


@pytest.mark.parametrize("method", SMOOTH)
def test_derivatives_agree_with_differences(method: ResizeMethod) -> None:
    with fxflow.config.override(x64=True):
        x, w = RNG.normal(size=(6,)), RNG.normal(size=(7,))

        def total(x: Any, scale: Any, shift: Any) -> Any:
            out = image.scale_and_translate(x, (7,), (0,), scale, shift, method)
            return (out * w).sum()

        args = (x, np.array([0.83]), np.array([0.71]))
        got = fxflow.grad(total, (0, 1, 2))(*args)
        h = 1e-6
        for i, a in enumerate(args):
            step = RNG.normal(size=a.shape)
            up, down = list(args), list(args)
            up[i], down[i] = a + h * step, a - h * step
            want = (float(total(*up)) - float(total(*down))) / (2 * h)
            assert float((got[i] * step).sum()) == pytest.approx(want, rel=1e-5)


def test_window() -> None:
    scale, shift = np.array([1.0]), np.array([2.0])
    got = image.scale_and_translate(X, (4,), (-1,), scale, shift, "linear")
    np.testing.assert_array_equal(got, [0, 0, 1, 5])
    nothing = image.scale_and_translate(X, (4,), (0,), scale, shift + 50, "cubic")
    assert not nothing.any()
    nan = image.scale_and_translate(X, (4,), (0,), scale * np.nan, shift, "linear")
    assert not nan.any()


def test_integers_become_floats_and_floats_stay() -> None:
    for dtype, want in [
        ("int32", "float32"),
        ("bool", "float32"),
        ("bfloat16", "bfloat16"),
        ("float16", "float16"),
        ("complex64", "complex64"),
    ]:
        x = fnp.asarray(X).astype(dtype)
        assert image.resize(x, (3,), "cubic").dtype == want
        assert image.resize(x, (3,), "nearest").dtype == dtype
    # Places of pixels are computed in more than 16 bits.
    wide = fnp.arange(600).astype("bfloat16")
    got = np.asarray(image.resize(wide, (1200,), "linear").astype("float32"))
    np.testing.assert_allclose(got[1:], (np.arange(1200)[1:] - 0.5) / 2, 2e-2)
    assert image.resize(np.zeros((0, 2)), (3, 1), "linear").shape == (3, 1)


def test_invalid_methods_shapes_and_axes_are_refused() -> None:
    one = np.ones(1)
    with pytest.raises(ArgumentError, match='"linear"'):
        ResizeMethod.from_string("Linear")
    assert ResizeMethod.from_string("bicubic") is ResizeMethod.CUBIC
    with pytest.raises(ArgumentError):
        image.resize(X, (3,), 7)  # type: ignore[arg-type]
    with pytest.raises(ShapeError):
        image.resize(X, (3, 2), "linear")
    with pytest.raises(ArgumentError, match="differentiable"):
        image.scale_and_translate(X, (3,), (0,), one, one, "nearest")
    with pytest.raises(ShapeError, match="scale"):
        image.scale_and_translate(X, (3,), (0,), 2.0, one, "linear")
    with pytest.raises(ShapeError, match="spatial_dims"):
        image.scale_and_translate(X[:, None], (3, 2), (0,), one, one, "linear")
    with pytest.raises(AxisError):
        image.scale_and_translate(X, (3,), (1,), one, one, "linear")
