"""Selection and clamping."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError, ShapeError

X = np.array([1.0, 2.0, 3.0], "f4")


def test_numbers_out_of_range_name_the_ends() -> None:
    which = np.array([7, -1, 1], "i4")
    for run in (lax.select_n, fxflow.jit(lax.select_n)):
        out = run(which, X, X + 10, X + 20)
        assert np.asarray(out).tolist() == [21, 2, 13]


def test_constants_stay_0d() -> None:
    graph = str(fxflow.make_graph(lambda p, x: lax.select(p, x, 0.0))(X > 1, X))
    assert "broadcast" not in graph
    assert np.asarray(lax.select(X > 1, X, 0.0)).tolist() == [0, 2, 3]
    assert np.asarray(lax.select(X > 1, 1, 2)).tolist() == [2, 1, 1]


def test_no_gradient_through_the_other_case() -> None:
    def safe_log(x):
        positive = lax.gt(x, 0.0)
        return lax.select(positive, lax.log(lax.select(positive, x, 1.0)), 0.0)

    assert float(fxflow.grad(safe_log)(-1.0)) == 0
    assert float(fxflow.grad(safe_log)(2.0)) == 0.5


def test_vectorized_scalar_predicate() -> None:
    pred = np.array([True, False])
    cases = np.ones((2, 3), "f4"), np.zeros((2, 3), "f4")
    out = fxflow.vmap(lax.select)(pred, *cases)
    assert np.asarray(out).tolist() == [[1, 1, 1], [0, 0, 0]]
    out = fxflow.vmap(lax.select, (0, None, None))(pred, X, -X)
    assert np.asarray(out).tolist() == [[1, 2, 3], [-1, -2, -3]]


def test_keys_are_selected() -> None:
    keys = fxflow.random.split(fxflow.random.key(0), 3)
    other = fxflow.random.split(fxflow.random.key(1), 3)
    out = lax.select_n(np.array([False, True, False]), keys, other)
    data = np.asarray(fxflow.random.key_data(out))
    np.testing.assert_array_equal(data[1], np.asarray(fxflow.random.key_data(other))[1])
    np.testing.assert_array_equal(data[0], np.asarray(fxflow.random.key_data(keys))[0])
    assert lax.select_n(True, keys, other).dtype == keys.dtype


@pytest.mark.parametrize(
    ("x", "slopes"),
    [
        (0.0, [0, 0, 0]),
        (1.0, [0, 0, 0]),
        (0.5, [0, 1, 0]),
        (-1.0, [1, 0, 0]),
        (2.0, [0, 0, 1]),
    ],
)
def test_slopes_of_clamp(x: float, slopes: list[float]) -> None:
    found = fxflow.grad(lax.clamp, (0, 1, 2))(0.0, x, 1.0)
    assert [float(g) for g in found] == slopes


def test_clamp_with_crossed_bounds_and_nan() -> None:
    x = np.array([0.0, np.nan], "f4")
    out = np.asarray(lax.clamp(2.0, x, 1.0))
    assert out[0] == 1 and np.isnan(out[1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.select_n(True), ArgumentError, "at least one case"),
        (lambda: lax.select_n(True, X, X, X), ShapeError, "at most 2 cases, got 3"),
        (
            lambda: lax.select_n(X, X, X),
            DtypeError,
            r"which must be bool or i32, got f32\[3\]",
        ),
        (
            lambda: lax.select_n(True, X, X.astype("i4")),
            DtypeError,
            r"cases must have one dtype, got f32\[3\], i32\[3\]",
        ),
        (
            lambda: lax.select_n(True, X, X[:2]),
            ShapeError,
            r"cases must have one shape, got f32\[3\], f32\[2\]",
        ),
        (
            lambda: lax.select_n(X[:2] > 1, X, X),
            ShapeError,
            r"which must be 0-d or as large as the cases, got bool\[2\]",
        ),
        (
            lambda: lax.clamp(0.0, np.arange(3, dtype="i4"), 1),
            DtypeError,
            r"clamp: the number 0.0 cannot become i32",
        ),
    ],
)
def test_cases_and_selectors_that_do_not_fit_are_refused(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


def test_clamp_keeps_the_sign_of_zero_that_xla_gives() -> None:
    zeros = np.array([0.0, -0.0, 0.0, -0.0] * 5, np.float32)
    other = np.array([0.0, 0.0, -0.0, -0.0] * 5, np.float32)
    for low, x, high in ((zeros, other, 1.0), (-1.0, zeros, other)):
        args = [np.broadcast_to(np.float32(a), (20,)) for a in (low, x, high)]
        np.testing.assert_array_equal(
            np.signbit(lax.clamp(*args)), np.signbit(fxflow.jit(lax.clamp)(*args))
        )
