"""Labels and their statistics beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.ndimage as want

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import ndimage

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("size", [(30,), (25, 30), (7, 8, 9)])
def test_labels_agree_with_scipy(size: tuple[int, ...]) -> None:
    for share in (0.0, 0.3, 0.6, 0.8, 1.0):
        shape = RNG.random(size) < share
        for near in range(1, len(size) + 1):
            structure = want.generate_binary_structure(len(size), near)
            labels, count = ndimage.label(shape, structure)
            expected, number = want.label(shape, structure)
            assert int(count) == number and labels.dtype == np.int32
            np.testing.assert_array_equal(labels, expected)
            assert ndimage.find_objects(labels) == want.find_objects(expected)


def test_a_spiral_is_one_part() -> None:
    spiral = np.zeros((31, 31), bool)
    at, way, left = np.array([0, 0]), np.array([0, 1]), 31
    for turn in range(40):
        for _ in range(left - 1):
            spiral[tuple(at)] = True
            at = at + way
        way = np.array([way[1], -way[0]])
        left -= 2 * (turn % 2 == 0 and turn > 0)
        if left < 2:
            break
    labels, count = fxflow.jit(ndimage.label)(spiral)
    assert int(count) == 1 and ((labels == 1) == spiral).all()
    both, counts = fxflow.vmap(ndimage.label)(np.stack([spiral, ~spiral]))
    assert counts.tolist() == [1, want.label(~spiral)[1]]
    np.testing.assert_array_equal(both[1], want.label(~spiral)[0])


X = RNG.normal(size=(12, 13))
LABELS = want.label(RNG.random((12, 13)) < 0.4)[0]
ONE_VALUE = ["sum_labels", "sum", "mean", "variance", "standard_deviation", "median"]
ONE_VALUE += ["minimum", "maximum", "minimum_position", "maximum_position"]
ONE_VALUE += ["center_of_mass"]


@pytest.mark.parametrize("name", ONE_VALUE)
def test_statistics_agree_with_scipy(name: str) -> None:
    asked: list[tuple[Any, Any]] = [
        (None, None),
        (LABELS, None),
        (LABELS, 2),
        (LABELS, np.array([3, 1, 2, 1])),
        (LABELS[0], np.array([1, 2])),
    ]
    with fxflow.config.override(x64=True):
        for labels, index in asked:
            got = getattr(ndimage, name)(X, labels, index)
            expected = getattr(want, name)(X, labels, index)
            np.testing.assert_allclose(got, expected, 1e-10, 1e-12)
        got = fxflow.jit(getattr(ndimage, name))(X, LABELS, np.array([2, 3]))
        expected = getattr(want, name)(X, LABELS, np.array([2, 3]))
        np.testing.assert_allclose(got, expected, 1e-10, 1e-12)


def test_labels_that_no_element_has() -> None:
    absent = np.array([1, 99])
    assert ndimage.sum_labels(X, LABELS, absent)[1] == 0
    assert np.isnan(ndimage.mean(X, LABELS, absent)[1])
    assert np.isnan(ndimage.median(X, LABELS, absent)[1])
    assert ndimage.minimum(X, LABELS, absent)[1] == 0
    assert ndimage.mean(X, LABELS, np.zeros(0, int)).shape == (0,)


def test_extrema_and_histograms_agree_with_scipy() -> None:
    index = np.array([1, 2, 3])
    got = ndimage.extrema(X.astype(np.float32), LABELS, index)
    expected = want.extrema(X.astype(np.float32), LABELS, index)
    for g, e in zip(got, expected, strict=True):
        np.testing.assert_array_equal(g, e)
    counts = ndimage.histogram(X, -1.0, 1.0, 5, LABELS, index)
    expected = np.stack(list(want.histogram(X, -1.0, 1.0, 5, LABELS, index)))
    np.testing.assert_array_equal(counts, expected)


def test_statistics_have_derivatives() -> None:
    index = np.array([1, 2])
    with fxflow.config.override(x64=True):
        for name in ("standard_deviation", "center_of_mass", "maximum", "median"):
            run = getattr(ndimage, name)
            total = lambda x, run=run: (run(x, LABELS, index) ** 2).sum()
            way = RNG.normal(size=X.shape)
            rise = float(total(X + 1e-6 * way) - total(X - 1e-6 * way)) / 2e-6
            slope = fxflow.grad(total)(X)
            assert float((slope * way).sum()) == pytest.approx(rise, 1e-4), name


def test_bad_measurements_are_refused() -> None:
    shape = X > 0
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: ndimage.label(shape, np.ones(3)), "structure must have"),
        (ArgumentError, lambda: ndimage.label([1]), "not an array"),
        (ArgumentError, lambda: ndimage.find_objects(X), "integers"),
        (ArgumentError, lambda: ndimage.mean(X, None, 1), "index needs labels"),
        (ShapeError, lambda: ndimage.mean(X, LABELS[:5]), "broadcast"),
        (ShapeError, lambda: ndimage.minimum(X[:0]), "no values"),
        (ArgumentError, lambda: ndimage.histogram(X, 0, 1, 0), "bins"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
    lopsided = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]])
    with pytest.raises(ArgumentError, match="symmetric"):
        ndimage.label(shape, lopsided)


def test_value_indices() -> None:
    x = np.random.default_rng(0).integers(-2, 3, (4, 5))
    for ignored in (None, 0):
        expected = want.value_indices(x, ignore_value=ignored)
        got = ndimage.value_indices(x, ignore_value=ignored)
        assert list(got) == [int(k) for k in expected]
        for value, places in expected.items():
            np.testing.assert_array_equal(places, got[int(value)])
    assert ndimage.value_indices(np.zeros((0, 2), int)) == {}
    with pytest.raises(ArgumentError, match="must have integers, got float64"):
        ndimage.value_indices(x * 1.0)


def test_labeled_comprehension() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    labels = np.arange(20).reshape(4, 5) % 4
    for index in (None, 2, [1, 3, 0, 9]):
        expected = want.labeled_comprehension(x, labels, index, np.mean, "f4", -1)
        got = ndimage.labeled_comprehension(x, labels, index, fnp.mean, "f4", -1)
        np.testing.assert_allclose(got, expected, 1e-6)
        assert got.dtype == np.float32

    def centre(values: Any, places: Any) -> Any:
        return (values * places).sum() / 10

    given = ([1, 2], np.float32, 0, True)
    expected = want.labeled_comprehension(x, labels, given[0], centre, *given[1:])
    run = fxflow.jit(
        lambda x: ndimage.labeled_comprehension(x, labels, given[0], centre, *given[1:])
    )
    np.testing.assert_allclose(run(x), expected, 1e-5)
    slopes = fxflow.grad(lambda x: run(x).sum())(x)
    np.testing.assert_allclose(slopes[0], [0, 0.1, 0.2, 0, 0], 1e-6)
    whole = ndimage.labeled_comprehension(x, None, None, fnp.sum, float, 0)
    np.testing.assert_allclose(whole, x.sum(), 1e-5)
    with pytest.raises(ArgumentError, match="index needs labels"):
        ndimage.labeled_comprehension(x, None, [1], fnp.sum, float, 0)
    with pytest.raises(ArgumentError, match="func must be a function, got 3"):
        ndimage.labeled_comprehension(x, labels, [1], 3, float, 0)
    with pytest.raises(ShapeError, match="labels must broadcast"):
        ndimage.labeled_comprehension(x, labels[:3], [1], fnp.sum, float, 0)
    with pytest.raises(ArgumentError, match="labels must be known"):
        fxflow.jit(
            lambda x, y: ndimage.labeled_comprehension(x, y, [1], fnp.sum, float, 0)
        )(x, labels)
