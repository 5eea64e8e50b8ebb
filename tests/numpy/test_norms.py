"""Norms against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, AxisError, ShapeError
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4)).astype(np.float32)
Z = (X + 1j * X[::-1]).astype(np.complex64)
inf = np.inf


@pytest.mark.parametrize("order", [None, 0, 1, 2, 3, 0.5, -1, inf, -inf])
def test_vectors(order: Any) -> None:
    for x in (X, Z):
        want = np.linalg.norm(x, order, axis=1)
        assert same(want, fnp.linalg.norm(x, order, axis=1), 1e-4)
        want = np.linalg.norm(x[0, 0], order, keepdims=True)
        assert same(want, fnp.linalg.norm(x[0, 0], order, keepdims=True), 1e-4)
        if order is not None:
            want = np.linalg.vector_norm(x, axis=(0, 2), ord=order)
            assert same(want, fnp.linalg.vector_norm(x, axis=(0, 2), ord=order), 1e-4)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, inf, -inf])
def test_matrices(order: Any) -> None:
    for x in (X, Z):
        for axis in ((0, 1), (2, 0), (-1, -2)):
            for keep in (False, True):
                want = np.linalg.norm(x, order, axis, keep)
                assert same(want, fnp.linalg.norm(x, order, axis, keep), 1e-4)
        if order is not None:
            want = np.linalg.matrix_norm(x, ord=order)
            assert same(want, fnp.linalg.matrix_norm(x, ord=order), 1e-4)
        assert same(np.linalg.norm(x[0], order), fnp.linalg.norm(x[0], order), 1e-4)


def test_norms_of_vectors_integers_and_rows() -> None:
    assert same(np.linalg.norm(X), fnp.linalg.norm(X), 1e-5)
    assert same(5.0, fnp.linalg.norm(np.array([3, 4])))
    g = fxflow.grad(fnp.linalg.norm)(X[0, 0])
    assert same(X[0, 0] / np.linalg.norm(X[0, 0]), g, 1e-5)
    got = fxflow.vmap(lambda x: fnp.linalg.norm(x, "nuc"))(X)
    assert same(np.linalg.norm(X, "nuc", (1, 2)), got, 1e-4)


def test_orders_and_axes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArgumentError, match="ord"):
        fnp.linalg.norm(X, 3, axis=(0, 1))
    with pytest.raises(ArgumentError, match="matrices"):
        fnp.linalg.norm(X, "fro", axis=0)
    with pytest.raises(ShapeError):
        fnp.linalg.norm(X, 2)
    with pytest.raises(AxisError):
        fnp.linalg.norm(X, 2, axis=(0, 1, 2))
    with pytest.raises(ShapeError):
        fnp.linalg.matrix_norm(X[0, 0])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0)])
@pytest.mark.parametrize("order", [None, 0, 1, -1, 2, -2, 3, inf, -inf, "fro", "nuc"])
def test_no_elements(shape: tuple[int, ...], order: Any) -> None:
    x = np.zeros(shape, np.float32)
    try:
        with np.errstate(all="ignore"):
            want = np.linalg.norm(x, order)
    except ValueError:
        with pytest.raises((ShapeError, ArgumentError)):
            fnp.linalg.norm(x, order)
        return
    for run in (lambda f: f, fxflow.jit):
        assert same(want, run(lambda x: fnp.linalg.norm(x, order))(x))
    assert fxflow.grad(lambda x: fnp.linalg.norm(x, order))(x).shape == shape


@pytest.mark.parametrize("order", [0, 1, 2, 3, inf])
def test_vectors_of_no_elements(order: Any) -> None:
    for shape, axis in (((0, 3), 0), ((0, 3), 1), ((2, 0, 3), (0, 1))):
        x = np.zeros(shape, np.float32)
        want = np.linalg.vector_norm(x, axis=axis, ord=order)
        assert same(want, fnp.linalg.vector_norm(x, axis=axis, ord=order))


@pytest.mark.parametrize("order", [None, 1.5, 2, 3])
def test_slope_at_zero(order: Any) -> None:
    zero = np.zeros(3, np.float32)
    for slope in (fxflow.grad, fxflow.jacfwd):
        assert slope(lambda x: fnp.linalg.norm(x, order))(zero).tolist() == [0, 0, 0]


RUNS = pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])


@RUNS
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("order", [None, 2, 3, -2])
def test_squares_do_not_over_or_underflow(order: Any, dtype: str, run: Any) -> None:
    with fxflow.config.override(x64=True):
        far = float(np.finfo(dtype).max) ** 0.7
        unit = np.array([3, 4j if dtype == "complex64" else 4], dtype)
        f = lambda x: fnp.linalg.norm(x, order)
        for size in (1 / far, 1.0, far):
            x = (unit * size).astype(dtype)
            value, slope = run(fxflow.value_and_grad(f))(x)
            want, direction = fxflow.value_and_grad(f)(unit)
            np.testing.assert_allclose(value / size, want, 1e-5)
            np.testing.assert_allclose(slope, direction, 1e-5, 1e-6)
            if dtype != "complex64":
                bend = np.asarray(run(fxflow.hessian(f))(x)) * size
                np.testing.assert_allclose(bend, fxflow.hessian(f)(unit), 1e-4, 1e-6)


@RUNS
def test_the_norm_of_16_bits_is_taken_in_32(run: Any) -> None:
    x = np.float16([300, 400])
    assert float(run(fnp.linalg.norm)(x)) == 500
    assert float(run(fnp.linalg.norm)(x * np.float16(1e-7))) == pytest.approx(
        np.linalg.norm((x * np.float16(1e-7)).astype("f4")), rel=1e-3
    )
    assert np.asarray(run(fxflow.grad(fnp.linalg.norm))(x)).tolist() == [
        *np.float16([0.6, 0.8])
    ]


def test_norms_of_infinities() -> None:
    inf, nan = np.inf, np.nan
    for order in (None, 3):
        assert float(fnp.linalg.norm(np.float32([inf, 1]), order)) == inf
        assert np.isnan(float(fnp.linalg.norm(np.float32([nan, 1]), order)))
        assert float(fnp.linalg.norm(np.float32([0, 0]), order)) == 0
