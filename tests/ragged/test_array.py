"""Ragged arrays agree with lists of NumPy arrays, whatever lies behind the last row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow import ragged
from fxflow.errors import (
    ArgumentError,
    AxisError,
    DtypeError,
    OutOfRangeError,
    ShapeError,
)
from fxflow.ragged import RaggedArray
from tests.ragged.arrays import LENGTHS, assert_rows, rows, sample

REDUCTIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "sum": lambda r: r.sum(0),
    "prod": lambda r: r.prod(0),
    "mean": lambda r: r.mean(0) if len(r) else np.full(r.shape[1:], np.nan),
    "var": lambda r: r.var(0) if len(r) else np.full(r.shape[1:], np.nan),
    "std": lambda r: r.std(0) if len(r) else np.full(r.shape[1:], np.nan),
    "max": lambda r: r.max(0, initial=-np.inf),
    "min": lambda r: r.min(0, initial=np.inf),
    "any": lambda r: r.any(0),
    "all": lambda r: r.all(0),
    "argmax": lambda r: r.argmax(0) if len(r) else np.zeros(r.shape[1:], int),
    "argmin": lambda r: r.argmin(0) if len(r) else np.zeros(r.shape[1:], int),
    "logsumexp": lambda r: (
        np.log(np.exp(r).sum(0)) if len(r) else np.full(r.shape[1:], -np.inf)
    ),
}
OF_ROWS: dict[str, Callable[[np.ndarray], Any]] = {
    "softmax": lambda r: np.exp(r) / np.exp(r).sum(0),
    "cumsum": lambda r: np.cumsum(r, 0),
    "flip": lambda r: r[::-1],
}


@pytest.mark.parametrize("inner", [(), (3,)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_by_row(name: str, inner: tuple[int, ...]) -> None:
    x = sample(inner)
    expected = np.array([REDUCTIONS[name](r) for r in rows(x)])

    def reduce(x: RaggedArray) -> Any:
        return getattr(x, name)()

    np.testing.assert_allclose(reduce(x), expected, rtol=1e-5)
    np.testing.assert_allclose(fxflow.jit(reduce)(x), expected, rtol=1e-5)
    if not name.startswith("arg"):
        kept = getattr(x, name)(keepdims=True)
        assert kept.shape == (4, 1, *inner)


@pytest.mark.parametrize("inner", [(), (3,)])
@pytest.mark.parametrize("name", OF_ROWS)
def test_functions_of_rows(name: str, inner: tuple[int, ...]) -> None:
    x = sample(inner)
    expected = [OF_ROWS[name](r) if len(r) else r for r in rows(x)]
    assert_rows(getattr(x, name)(), expected)
    assert_rows(fxflow.jit(lambda x: getattr(x, name)())(x), expected)


@pytest.mark.parametrize("descending", [False, True])
def test_sort(descending: bool) -> None:
    x = sample()
    step = -1 if descending else 1
    assert_rows(x.sort(descending), [np.sort(r)[::step] for r in rows(x)])


@pytest.mark.parametrize("dtype", ["i4", "u1", "bool", "f8", "c8"])
def test_other_dtypes(dtype: str) -> None:
    x = sample(dtype="i4").astype(dtype)
    if dtype != "c8":
        np.testing.assert_array_equal(x.max()[0], rows(x)[0].max())
    expected = [r.sum(dtype="i4" if dtype == "bool" else r.dtype) for r in rows(x)]
    np.testing.assert_array_equal(x.sum(), expected)
    np.testing.assert_allclose(x.mean()[0], rows(x)[0].mean(), rtol=1e-6)


def test_values_beside_those_of_rows() -> None:
    x = sample((3,))
    per_row = np.arange(12, dtype="f4").reshape(4, 1, 3)
    assert_rows(x + per_row, [r + p for r, p in zip(rows(x), per_row, strict=True)])
    assert_rows(x * per_row[:1], [r * per_row[0] for r in rows(x)])
    assert_rows(x * per_row[0, 0], [r * per_row[0, 0] for r in rows(x)])
    assert_rows(np.float32(2) * x, [2 * r for r in rows(x)])
    assert_rows(
        x - x.mean(keepdims=True), [r - r.mean(0) if len(r) else r for r in rows(x)]
    )


def test_products_with_matrices() -> None:
    x = sample((3,))
    rng = np.random.default_rng(0)
    shared, each = rng.normal(size=(3, 2)), rng.normal(size=(4, 3, 2)).astype("f4")
    assert_rows(x @ shared.astype("f4"), [r @ shared for r in rows(x)])
    assert_rows(x @ each, [r @ m for r, m in zip(rows(x), each, strict=True)])


def test_other_forms() -> None:
    x = sample()
    padded = np.asarray(x.to_padded(4, -1))
    for row, found in zip(rows(x), padded, strict=True):
        np.testing.assert_array_equal(found, [*row, *[-1] * (4 - len(row))])
    assert_rows(ragged.from_padded(padded, x.lengths, 7), rows(x))
    assert_rows(fxflow.jit(lambda x: x.with_capacity(6))(x), rows(x))
    assert x.with_capacity(20).capacity == 20
    assert x.tolist() == [row.tolist() for row in rows(x)]
    assert len(x) == x.rows == 4
    assert x.shape == (4, None) and x.ndim == 2
    np.testing.assert_array_equal(x.row_ids, [0, 0, 2, 2, 2, 3, 4, 4, 4])
    np.testing.assert_array_equal(x.positions[:6], [0, 1, 0, 1, 2, 0])
    np.testing.assert_array_equal(x.count(), LENGTHS)


def test_rows() -> None:
    x = sample((2,))
    np.testing.assert_array_equal(x[2], rows(x)[2])
    np.testing.assert_array_equal(x[-1], rows(x)[3])
    assert_rows(x[1:], rows(x)[1:])
    assert_rows(x[[2, 0]], [rows(x)[2], rows(x)[0]])
    assert_rows(x[np.array([True, False, False, True])], [rows(x)[0], rows(x)[3]])
    padded = fxflow.jit(lambda x, i: x.row(i, 4, 7))(x, 2)
    np.testing.assert_array_equal(padded[:3], rows(x)[2])
    np.testing.assert_array_equal(padded[3], [7, 7])
    np.testing.assert_array_equal(x.row(2, 1)[0], rows(x)[2][0])


def test_rows_that_do_not_exist() -> None:
    x = sample()
    for wrong in ([0, 7], [-5, 0]):
        with pytest.raises(OutOfRangeError, match="does not exist"):
            x[wrong]
    with pytest.raises(OutOfRangeError, match="row 4"):
        x.row(4, 2)
    np.testing.assert_array_equal(x.row(-2, 3), rows(x)[2])
    found = fxflow.jit(lambda x, i: x.row(i, 3))(x, -2)
    np.testing.assert_array_equal(found, rows(x)[2])


def test_text() -> None:
    assert repr(sample((3,))) == "RaggedArray(f32[4,(2, 0, 3, 1),3], capacity=9)"
    shown = []
    fxflow.jit(lambda x: shown.append(repr(x)) or x.values)(sample())
    assert shown == ["RaggedArray(f32[4,?], capacity=9)"]


# -- gradients -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sum", "mean", "max", "logsumexp", "var", "softmax"])
def test_gradients_do_not_see_what_is_in_no_row(name: str) -> None:
    def loss(values: Any, junk: Any) -> Any:
        x = RaggedArray(values.at[6:].set(junk), LENGTHS)
        out = getattr(1 / x, name)()
        if isinstance(out, RaggedArray):
            out = (out * x).sum()
        return fnp.sum(fnp.where(fnp.isfinite(out), out, 0))

    values = fnp.asarray(np.random.default_rng(0).uniform(0.5, 2, 9), "f8")
    for junk in (np.nan, np.inf, 0.0):
        found = fxflow.grad(loss)(values, junk)
        np.testing.assert_array_equal(found[6:], 0)
        step = 1e-6 * np.eye(9)[:6]
        moved = [(loss(values + d, junk) - loss(values - d, junk)) / 2e-6 for d in step]
        np.testing.assert_allclose(found[:6], moved, rtol=1e-5, atol=1e-7)
        assert float(fxflow.grad(loss, 1)(values, junk)) == 0


# Rows of one value, of equal values, and none at all.
DEGENERATE = [
    ([1, 0, 2, 3], 8),
    pytest.param([0, 0], 3, marks=pytest.mark.slow),
    pytest.param([1, 0], 1, marks=pytest.mark.slow),
]
SMOOTH = [
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "logsumexp",
    "softmax",
    "cumsum",
    "flip",
    "sort",
]
MASKED: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in SMOOTH]


@pytest.mark.parametrize(
    ("name", "options"), [*MASKED, ("var", {"ddof": 1}), ("std", {"ddof": 1})]
)
@pytest.mark.parametrize(("lengths", "capacity"), DEGENERATE)
def test_gradients_of_rows_of_no_or_equal_values(
    name: str, options: dict[str, Any], lengths: list[int], capacity: int
) -> None:
    def loss(values: Any) -> Any:
        out = getattr(RaggedArray(values, lengths), name)(**options)
        if isinstance(out, RaggedArray):
            out = (out**2).sum()
        return fnp.where(fnp.isfinite(out), out, 0)

    values = fnp.asarray([3.0, 2.0, 2.0, 1.0, 4.0, 2.0, 9.0, 9.0][:capacity])
    for slopes in (fxflow.jacrev(loss)(values), fxflow.jacfwd(loss)(values)):
        assert fnp.all(fnp.isfinite(slopes))
    assert fnp.all(fnp.isfinite(fxflow.hessian(lambda v: loss(v).sum())(values)))


def test_standard_deviation_of_small_and_large_values() -> None:
    values = np.array([1e-30, 3e-30, 1e30, 3e30, 5.0], "f4")
    x = RaggedArray(values, [2, 2, 1])
    np.testing.assert_allclose(x.std(), np.array([1e-30, 1e30, 0], "f4"), rtol=1e-5)
    np.testing.assert_array_equal(np.isnan(x.std(ddof=1)), [False, False, True])
    slope = fxflow.grad(lambda v: RaggedArray(v, [2, 2, 1]).std().sum())(values)
    np.testing.assert_allclose(slope, [-0.5, 0.5, -0.5, 0.5, 0], rtol=1e-5)


def test_gradient_of_a_matrix_beside_nan() -> None:
    x = sample((3,))
    slope = fxflow.grad(lambda m: (x @ m).sum().sum())(fnp.ones((3, 2)))
    expected = np.concatenate(rows(x)).sum(0)
    np.testing.assert_allclose(slope, np.stack([expected] * 2, 1), rtol=1e-5)


def test_gradient_is_a_ragged_array() -> None:
    x = sample()
    grads = fxflow.grad(lambda x: fnp.sum((x * x).sum()), allow_int=True)(x)
    assert isinstance(grads, RaggedArray)
    np.testing.assert_allclose(grads.values[:6], 2 * x.values[:6], rtol=1e-6)


# -- transforms ------------------------------------------------------------------------


def test_one_program_for_all_lengths() -> None:
    traced = []

    @fxflow.jit
    def step(x: RaggedArray) -> Any:
        traced.append(1)
        return x.softmax().sum()

    for lengths in ([2, 0, 3, 1], [9, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]):
        out = step(RaggedArray(fnp.arange(9.0), lengths))
        np.testing.assert_allclose(out, [float(n > 0) for n in lengths], rtol=1e-6)
    assert len(traced) == 1


def test_vmap_and_scan() -> None:
    x, y = sample(seed=1), sample(seed=2)
    both = fxflow.tree.map(lambda *leaves: fnp.stack(leaves), x, y)
    found = fxflow.vmap(lambda x: x.softmax().max())(both)
    np.testing.assert_allclose(found[1], y.softmax().max(), rtol=1e-6)
    end, _ = fxflow.lax.scan(lambda c, _: (c * 2, None), x, length=3)
    assert_rows(end, [8 * r for r in rows(x)])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(st.floats(-4, 4, width=32), max_size=4), max_size=5),
    st.integers(0, 3),
)
def test_any_lengths(lists: list[list[float]], spare: int) -> None:
    x = ragged.array(lists, "f4", sum(map(len, lists)) + spare)
    assert x.tolist() == [np.float32(row).tolist() for row in lists]
    np.testing.assert_allclose(
        x.sum(), [sum(row) for row in lists], rtol=1e-4, atol=1e-4
    )
    assert ragged.concatenate([x, x], 1).tolist() == [r + r for r in x.tolist()]
    assert ragged.concatenate([x, x]).tolist() == x.tolist() * 2
    assert x.flip().tolist() == [r[::-1] for r in x.tolist()]
    assert x.sort().tolist() == [sorted(r) for r in x.tolist()]
    padded = x.to_padded(5)
    assert ragged.from_padded(padded, x.lengths).tolist() == x.tolist()


# -- bad input -------------------------------------------------------------------------


def test_bad_input() -> None:
    x = sample()
    with pytest.raises(ShapeError, match="axis of values"):
        RaggedArray(1.0, [1])
    with pytest.raises(ShapeError, match="one integer for each row"):
        RaggedArray(fnp.ones(3), 1)
    with pytest.raises(DtypeError, match="must be integers"):
        RaggedArray(fnp.ones(3), [1.0])
    with pytest.raises(ArgumentError, match="4 values, more than the capacity of 3"):
        RaggedArray(fnp.ones(3), [2, 2])
    with pytest.raises(ArgumentError, match="negative, got -1"):
        RaggedArray(fnp.ones(3), [2, -1])
    with pytest.raises(ArgumentError, match="same lengths"):
        x + RaggedArray(x.values, [1, 1, 1, 1])
    with pytest.raises(ShapeError, match=r"\(4, 1\)"):
        x + fnp.ones((4, 9))
    with pytest.raises(ShapeError, match="9 values"):
        x.map(lambda v: v[:3])
    with pytest.raises(ArgumentError, match="3 values, more than length=2"):
        x.to_padded(2)
    with pytest.raises(ArgumentError, match="pass length="):
        fxflow.jit(lambda x: x.to_padded())(x)
    with pytest.raises(ArgumentError, match="6 values, more than the capacity of 2"):
        x.with_capacity(2)
    with pytest.raises(OutOfRangeError, match="row 4"):
        x[4]
    with pytest.raises(ArgumentError, match="row\\(i, length\\)"):
        fxflow.jit(lambda x: x[0])(x)
    with pytest.raises(AxisError, match="one axis"):
        x[0, 1]
    with pytest.raises(ShapeError, match="a matrix for each of 4"):
        sample((3,)) @ fnp.ones((2, 3, 2))
    with pytest.raises(ShapeError, match="vectors"):
        x @ fnp.ones((3, 2))
    with pytest.raises(ShapeError, match="numbers"):
        sample((2,)).sort()
    with pytest.raises(ArgumentError, match="to_padded"):
        np.asarray(x)
    with pytest.raises(ArgumentError, match="to_padded"):
        fnp.sin(x)
    with pytest.raises(ArgumentError, match=r"\.any\(\)"):
        bool(x)


def test_room_is_checked_where_lengths_are_traced() -> None:
    def fun(lengths: Any) -> Any:
        return RaggedArray(fnp.ones(3), lengths).sum()

    check = fxflow.checkify.checkify(fun)
    error, _ = fxflow.jit(check)(fnp.array([1, 2]))
    error.throw()
    error, _ = fxflow.jit(check)(fnp.array([2, 2]))
    with pytest.raises(Exception, match="4 values, more than the capacity of 3"):
        error.throw()
