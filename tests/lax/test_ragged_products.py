"""Ragged products against one product for each group; options and errors."""

from typing import Any

import numpy as np
import pytest

from fxflow import grad, jit, lax, vmap
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax import RaggedDotDimensionNumbers as Numbers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 3)).astype("f4")
W = RNG.normal(size=(4, 3, 2)).astype("f4")
SIZES = np.array([2, 0, 5, 1], "i4")
ROWS = Numbers((((1,), (1,)), ((), ())), [0], [0])
SUMS = Numbers((((0,), (0,)), ((), ())), [0], [])


def close(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-5)


def by_rows(x: Any, w: Any, sizes: Any, first: int = 0) -> Any:
    out = np.zeros((len(x), w.shape[-1]), x.dtype)
    ends = np.cumsum(sizes)
    for g, matrix in enumerate(w, first):
        rows = slice(ends[g] - sizes[g], ends[g])
        out[rows] = x[rows] @ matrix
    return out


@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_rows(run: Any) -> None:
    close(run(lax.ragged_dot)(X, W, SIZES), by_rows(X, W, SIZES))
    wide = np.concatenate([X] * 30), np.array([100, 1, 149, 7], "i4")
    close(run(lax.ragged_dot)(wide[0], W, wide[1]), by_rows(wide[0], W, wide[1]))


def test_sums_over_groups() -> None:
    y = RNG.normal(size=(9, 4)).astype("f4")
    got = np.asarray(jit(lax.ragged_dot_general, static_argnums=3)(X, y, SIZES, SUMS))
    assert got.shape == (4, 3, 4)
    ends = np.cumsum(SIZES)
    for g, matrix in enumerate(got):
        rows = slice(ends[g] - SIZES[g], ends[g])
        close(matrix, X[rows].T @ y[rows])


def test_a_ragged_batch_axis_is_an_ordinary_product() -> None:
    # As JAX has it, rows behind the last group are products, too.
    x, y = X[:, None], RNG.normal(size=(9, 3, 2)).astype("f4")
    numbers = Numbers((((2,), (1,)), ((0,), (0,))), [0], [])
    close(lax.ragged_dot_general(x, y, SIZES, numbers), x @ y)


def test_groups_that_differ_along_the_axes_before() -> None:
    x = RNG.normal(size=(2, 6, 3)).astype("f4")
    sizes = np.array([[1, 2, 0, 3], [0, 1, 1, 1]], "i4")
    numbers = Numbers((((2,), (1,)), ((), ())), [1], [0])
    expected = [by_rows(a, W, s) for a, s in zip(x, sizes, strict=True)]
    close(lax.ragged_dot_general(x, W, sizes, numbers), expected)
    close(vmap(lax.ragged_dot, (0, None, 0))(x, W, sizes), expected)
    same = [by_rows(a, W, sizes[0]) for a in x]
    close(lax.ragged_dot_general(x, W, sizes[0], numbers), same)
    both = Numbers((((2,), (2,)), ((0,), (0,))), [1], [1])
    twice = np.stack([W, 2 * W])
    expected[1] = 2 * expected[1]
    close(lax.ragged_dot_general(x, twice, sizes, both), expected)
    close(vmap(lax.ragged_dot)(x, twice, sizes), expected)


def test_group_offset() -> None:
    whole = by_rows(X, W, SIZES)
    parts = [
        lax.ragged_dot(X, W[at : at + 2], SIZES, group_offset=np.array([at], "i4"))
        for at in (0, 2)
    ]
    close(parts[1], by_rows(X, W[2:], SIZES, 2))
    close(lax.add(*parts), whole)
    y = RNG.normal(size=(9, 2)).astype("f4")
    every = np.asarray(lax.ragged_dot_general(X, y, SIZES, SUMS))
    later = lax.ragged_dot_general(X, y, SIZES, SUMS, group_offset=np.int32(3))
    close(later, [every[3], *3 * [0 * every[3]]])


def test_gradient_with_respect_to_some_matrices() -> None:
    def loss(w: Any) -> Any:
        out = lax.ragged_dot(X, w, SIZES, group_offset=np.array([1], "i4"))
        return lax.reduce_sum(lax.mul(out, out), (0, 1))

    rows = X[2:7]
    expected = np.zeros_like(W[:2])
    expected[1] = 2 * rows.T @ (rows @ W[1])
    close(grad(loss)(W[:2]), expected)


def test_nan_stays_in_its_group() -> None:
    x = X.copy()
    x[0], x[8] = np.nan, np.inf
    close(lax.ragged_dot(x, W, SIZES)[1:8], by_rows(X, W, SIZES)[1:8])
    assert not np.asarray(lax.ragged_dot(x, W, SIZES))[8].any()
    sums = np.asarray(jit(lambda x: lax.ragged_dot_general(x, X, SIZES, SUMS))(x))
    assert np.isnan(sums).any((1, 2)).tolist() == [True, False, False, False]


def test_groups_are_cut_off_at_the_last_row() -> None:
    sizes = np.array([4, 9, 3, 1], "i4")
    expected = np.concatenate([X[:4] @ W[0], X[4:] @ W[1]])
    close(lax.ragged_dot(X, W, sizes), expected)
    close(jit(lax.ragged_dot)(X, W, sizes), expected)


def test_results_have_the_preferred_dtype() -> None:
    small = lax.ragged_dot(X.astype("f2"), W.astype("f2"), SIZES)
    assert small.dtype == np.float16
    wide = lax.ragged_dot(
        X.astype("f2"), W.astype("f2"), SIZES.astype("u1"), None, "float32"
    )
    assert wide.dtype == np.float32
    np.testing.assert_allclose(wide, by_rows(X, W, SIZES), rtol=1e-2, atol=1e-2)
    ones = np.ones((600, 1), "f2")
    total = lax.ragged_dot_general(ones, 8 * ones, np.array([600], "i4"), SUMS)
    assert float(total[0, 0, 0]) == 4800


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.ragged_dot(X, W, SIZES[:3]),
            ShapeError,
            r"rhs has 4 matrices and group_sizes i32\[3\] are of 3 groups",
        ),
        (lambda: lax.ragged_dot(X, W[:2], SIZES), ShapeError, "say by group_offset"),
        (
            lambda: lax.ragged_dot(X, W, SIZES.astype("f4")),
            DtypeError,
            r"group_sizes must be integers, got f32\[4\]",
        ),
        (lambda: lax.ragged_dot(X, W[0], SIZES), ShapeError, r"rows \[m, k\] and matr"),
        (
            lambda: lax.ragged_dot(X[:, :2], W, SIZES),
            ShapeError,
            r"contracting dimensions differ: lhs f32\[9,2\] axis 1 is 2",
        ),
        (
            lambda: lax.ragged_dot(X, W.astype("f2"), SIZES),
            DtypeError,
            "must have one dtype",
        ),
        (
            lambda: lax.ragged_dot(X, W, SIZES, group_offset=np.zeros(2, "i4")),
            ShapeError,
            r"group_offset must be one integer \[1\], got i32\[2\]",
        ),
        (
            lambda: lax.ragged_dot_general(X, W, SIZES, ((1,), (1,))),
            ArgumentError,
            "must be RaggedDotDimensionNumbers",
        ),
        (
            lambda: lax.ragged_dot_general(
                X, W, SIZES, Numbers((((1,), (1,)), ((), ())), [0, 1], [0])
            ),
            ArgumentError,
            "lhs_ragged_dimensions names one axis",
        ),
        (
            lambda: lax.ragged_dot_general(
                X, W, SIZES, Numbers((((1,), (1,)), ((), ())), [0], [1])
            ),
            AxisError,
            "cannot hold the groups and be a contracting",
        ),
        (
            lambda: lax.ragged_dot_general(
                X, X, SIZES, Numbers((((0,), (0,)), ((), ())), [0], [1])
            ),
            ArgumentError,
            "only if the ragged axis of lhs is neither",
        ),
        (
            lambda: lax.ragged_dot_general(X, W, np.ones((9, 4), "i4"), ROWS),
            ShapeError,
            r"group_sizes must be \[g\] for g groups",
        ),
        (lambda: Numbers(3, [0], [0]), ArgumentError, "dot_dimension_numbers must be"),
    ],
)
def test_operands_and_group_sizes_that_do_not_fit_are_refused(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
