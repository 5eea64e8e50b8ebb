"""Reading between elements, beside SciPy's."""

import numpy as np
import pytest
import scipy.ndimage

import fxflow
from fxflow.errors import ArgumentError, ShapeError
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
    for args in [(x, [places], 2), (x, [places], 1, "edge")]:
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
