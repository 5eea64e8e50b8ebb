"""Reading between elements, beside SciPy's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import ndimage
from fxflow.scipy.ndimage import map_coordinates

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 5))
WHERE = RNG.uniform(-9, 13, (2, 60))
NAMES = {"constant": "grid-constant", "wrap": "grid-wrap"}


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates_agrees_with_scipy(mode: str, order: int) -> None:
    with fxflow.config.override(x64=True):
        theirs = NAMES.get(mode, mode)
        want = scipy.ndimage.map_coordinates(X, WHERE, order=order, mode=theirs, cval=3)
        got = map_coordinates(X, WHERE, order, mode, 3)
        np.testing.assert_allclose(got, want, 1e-12, 1e-12)
        jitted = fxflow.jit(lambda x, c: map_coordinates(x, c, order, mode, 3))
        np.testing.assert_allclose(jitted(X, list(WHERE)), want, 1e-12, 1e-12)


def test_derivatives_agree_with_differences() -> None:
    with fxflow.config.override(x64=True):
        total = lambda x, c: (map_coordinates(x, c, 1, "mirror") ** 2).sum()
        dx, dc = fxflow.grad(total, (0, 1))(X, WHERE)
        h, x_way, c_way = 1e-6, RNG.normal(size=X.shape), RNG.normal(size=WHERE.shape)
        rise = total(X + h * x_way, WHERE) - total(X - h * x_way, WHERE)
        assert float((dx * x_way).sum()) == pytest.approx(float(rise) / (2 * h), 1e-6)
        rise = total(X, WHERE + h * c_way) - total(X, WHERE - h * c_way)
        assert float((dc * c_way).sum()) == pytest.approx(float(rise) / (2 * h), 1e-5)


def test_dtypes_and_mistakes() -> None:
    x = np.array([1, 2, 4], np.int32)
    places = np.array([-0.5, 0.4, 1.5, 1.9])
    got = map_coordinates(x, [places], 1)
    assert got.dtype == np.int32 and got.tolist() == [1, 1, 3, 4]
    assert map_coordinates(x, [np.array([0, 5])], 0, cval=9).tolist() == [1, 9]
    z = map_coordinates(np.array([1j, 2]), [places], 1)
    assert z.dtype == np.complex64
    for args in [(x, [places], 6), (x, [places], 1, "edge")]:
        with pytest.raises(ArgumentError):
            map_coordinates(*args)
    with pytest.raises(ShapeError):
        map_coordinates(X, [places], 1)


@pytest.mark.parametrize("mode", ["constant", "nearest", "wrap", "mirror", "reflect"])
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_halves(mode: str, order: int, dtype: type) -> None:
    x = np.array([0, 11, -20, 35, -41], dtype)
    places = np.arange(-25, 26) / 2
    want = scipy.ndimage.map_coordinates(
        x, [places], order=order, mode=NAMES.get(mode, mode), cval=7
    )
    read = lambda x, places: map_coordinates(x, [places], order, mode, 7)
    for run in (read, fxflow.jit(read)):
        got = np.asarray(run(x, places.astype(np.float32)))
        # Of -3.5 and 4.5, which are one place mirrored, SciPy takes two elements.
        tie = (mode == "mirror") & (order == 0) & (places > 0) & (places % 8 == 4.5)
        np.testing.assert_allclose(got[~tie], want[~tie], 1e-6, 1e-5)


@pytest.mark.parametrize("order", [0, 1])
def test_a_fractional_cval_beside_integers(order: int) -> None:
    x, places = np.array([5, -3, 8]), np.array([-2.0, -0.75, 0.0, 2.25, 2.75, 9.0])
    want = scipy.ndimage.map_coordinates(
        x, [places], order=order, mode="grid-constant", cval=2.5
    )
    got = map_coordinates(x, [places.astype(np.float32)], order, cval=2.5)
    np.testing.assert_array_equal(got, want)


def test_the_nearest_integers_are_exact() -> None:
    x = np.array([2**24 + 1, 2**31 - 1, -7], np.int32)
    got = map_coordinates(x, [np.array([0.0, 1.2, 2.0], np.float32)], 0)
    np.testing.assert_array_equal(got, x)


ALL_MODES = [
    *("reflect", "grid-mirror", "constant", "grid-constant"),
    *("nearest", "mirror", "grid-wrap", "wrap"),
]
LARGE = RNG.normal(size=(21, 26))
TURN = np.array([[0.9, 0.3], [-0.2, 1.2]])
CALLS: list[Callable[[Any, Any, dict[str, Any]], Any]] = [
    lambda n, x, s: n.spline_filter(x, max(s["order"], 2), mode=s["mode"]),
    lambda n, x, s: n.spline_filter1d(x, s["order"], 0, mode=s["mode"]),
    lambda n, x, s: n.shift(x, (1.3, -2.6), **s),
    lambda n, x, s: n.shift(x, 0.3, prefilter=False, **s),
    lambda n, x, s: n.zoom(x, (1.7, 0.6), **s),
    lambda n, x, s: n.zoom(x, 1.3, grid_mode=True, **s),
    lambda n, x, s: n.rotate(x, 33.0, **s),
    lambda n, x, s: n.rotate(x, -120.0, (0, 1), False, **s),
    lambda n, x, s: n.affine_transform(x, TURN, (1.03, -0.47), (5, 6), **s),
    lambda n, x, s: n.affine_transform(x, np.array([0.7, 1.3]), 0.37, **s),
    lambda n, x, s: n.affine_transform(x, np.c_[TURN, [1.03, -0.47]], **s),
    lambda n, x, s: n.geometric_transform(
        x,
        lambda at, k: (at[0] * 0.7 - k, at[1] * 1.1 + at[0] * 0.3),
        (7, 8),
        **s,
        extra_arguments=(1.1,),
    ),
]


@pytest.mark.filterwarnings("ignore:It is recommended:UserWarning")
@pytest.mark.parametrize("mode", ALL_MODES)
@pytest.mark.parametrize(
    "order", [1, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 2, 4, 5))]
)
def test_transformed_images_agree_with_scipy(order: int, mode: str) -> None:
    s: dict[str, Any] = {"order": order, "mode": mode}
    with fxflow.config.override(x64=True):
        for k, call in enumerate(CALLS):
            options = s if k < 2 else {**s, "cval": 1.5}
            got, want = (
                call(ndimage, LARGE, options),
                call(scipy.ndimage, LARGE, options),
            )
            assert got.shape == want.shape and got.dtype == want.dtype
            # SciPy's recursions begin with sums that are cut off, at the ends of some
            # samples that are added for these modes.
            near = 2e-4 if mode in ("nearest", "grid-constant") else 1e-7
            np.testing.assert_allclose(got, want, near, near, err_msg=f"call {k}")
        if order > 1:
            far = RNG.uniform(-15, 35, (2, 60))
            want = scipy.ndimage.map_coordinates(LARGE, far, **s)
            got = map_coordinates(LARGE, far, **s)
            np.testing.assert_allclose(got, want, 1e-4, 2e-4)


def test_long_axes_are_filtered_in_blocks() -> None:
    x = RNG.normal(size=(2, 1000))
    with fxflow.config.override(x64=True):
        for order, mode in ((3, "reflect"), (5, "mirror"), (2, "grid-wrap")):
            want = scipy.ndimage.spline_filter1d(x, order, 1, mode=mode)
            got = ndimage.spline_filter1d(x, order, 1, mode=mode)
            np.testing.assert_allclose(got, want, 1e-9, 1e-9)
    single = ndimage.spline_filter1d(x.astype(np.float32), 3)
    np.testing.assert_allclose(single, scipy.ndimage.spline_filter1d(x, 3), 1e-5, 1e-5)


def test_images_of_integers_of_planes_and_of_complex_numbers() -> None:
    whole = RNG.integers(-99, 99, (8, 9)).astype(np.int32)
    planes = RNG.normal(size=(4, 6, 7))
    with fxflow.config.override(x64=True):
        for order in range(4):
            want = scipy.ndimage.rotate(whole, 30, order=order)
            got = ndimage.rotate(whole, 30, order=order)
            assert got.dtype == np.int32
            np.testing.assert_array_equal(got, want)
        want = scipy.ndimage.rotate(planes, 20.0, (2, 0))
        np.testing.assert_allclose(
            ndimage.rotate(planes, 20.0, (2, 0)), want, 1e-9, 1e-9
        )
        z = LARGE + 1j * LARGE[::-1]
        np.testing.assert_allclose(
            ndimage.shift(z, 1.5), scipy.ndimage.shift(z, 1.5), 1e-8, 1e-8
        )
        halves = ndimage.zoom(whole, 0.5, output=np.float64)
        assert halves.dtype == np.float64 and halves.shape == (4, 4)


def test_images_have_derivatives() -> None:
    bump = np.exp(-0.1 * (np.arange(20.0) - 9) ** 2)
    image = bump[:, None] * bump
    programs: list[tuple[Callable[[Any], Any], Any]] = [
        (lambda by: ndimage.shift(image, by), np.array([0.3, -0.4])),
        (lambda x: ndimage.shift(x, 0.3), image),
        (lambda d: ndimage.rotate(image, d, reshape=False, mode="nearest"), 20.0),
        (lambda matrix: ndimage.affine_transform(image, matrix), TURN),
        (lambda x: ndimage.affine_transform(x, TURN), image),
    ]
    with fxflow.config.override(x64=True):
        for run, at in programs:
            total = lambda v, run=run: (run(v) ** 3).sum()
            way = RNG.normal(size=np.shape(at))
            rise = float(total(at + 1e-5 * way) - total(at - 1e-5 * way)) / 2e-5
            slope = fxflow.jit(fxflow.grad(total))(at)
            assert float((slope * way).sum()) == pytest.approx(rise, 1e-4, 1e-9)
        by = programs[0][1]
        second = fxflow.hessian(lambda by: (ndimage.shift(image, by) ** 3).sum())(by)
        assert second[0, 0] != 0 and abs(second[0, 1] - second[1, 0]) < 1e-8
        rows = fxflow.vmap(lambda x: ndimage.zoom(x, 1.5))(np.stack([image, image.T]))
        np.testing.assert_allclose(
            rows[1], scipy.ndimage.zoom(image.T, 1.5), 1e-8, 1e-9
        )


def test_bad_images_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: ndimage.spline_filter(X, 1), "order must be in 2 … 5"),
        (ArgumentError, lambda: ndimage.shift(X, 1, order=6), "order must be in 0 … 5"),
        (ArgumentError, lambda: ndimage.shift(X, 1, mode="cut"), "mode must be one of"),
        (ArgumentError, lambda: ndimage.shift(X, (1, 2, 3)), "one for each axis"),
        (ArgumentError, lambda: ndimage.zoom(X, 0), "zoom must be positive"),
        (ArgumentError, lambda: ndimage.zoom(X, 2, output=X), "must be a dtype"),
        (ArgumentError, lambda: ndimage.rotate(X, 9, (0,)), "two different axes"),
        (ShapeError, lambda: ndimage.rotate(X[0], 9), "at least two axes"),
        (
            ShapeError,
            lambda: ndimage.affine_transform(X, np.eye(4)),
            "matrix must have",
        ),
        (
            ShapeError,
            lambda: ndimage.affine_transform(X, TURN, output_shape=3),
            "as many",
        ),
        (
            ArgumentError,
            lambda: ndimage.affine_transform(X, np.ones((3, 3))),
            "last row",
        ),
        (
            ShapeError,
            lambda: ndimage.geometric_transform(X, lambda at: at[:1]),
            "each of",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
    with pytest.raises(ArgumentError, match="set reshape=False"):
        fxflow.jit(lambda angle: ndimage.rotate(X, angle))(3.0)
