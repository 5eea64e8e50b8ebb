"""Slices at computed places."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.lax.key_arrays import keys, words

X = np.arange(10, dtype="f4")
M = np.arange(12, dtype="i4").reshape(3, 4)


@pytest.mark.parametrize(
    ("start", "expected"),
    [(0, 0), (3, 3), (8, 8), (9, 8), (99, 8), (-3, 7), (-1, 8), (-99, 0)],
)
@pytest.mark.parametrize("kind", [int, np.int32, np.int8, np.int64])
def test_starts_are_moved_inside(start: int, expected: int, kind: type) -> None:
    out = lax.dynamic_slice(X, (kind(start),), (2,))
    np.testing.assert_array_equal(out, X[expected : expected + 2])


def test_short_index_of_a_long_axis() -> None:
    x = np.arange(300, dtype="i4")
    for start in (np.uint8(250), np.int8(-6)):
        expected = 250 if start > 0 else 294
        assert np.asarray(lax.dynamic_slice(x, (start,), (2,)))[0] == expected


def test_negative_starts_may_be_forbidden() -> None:
    out = lax.dynamic_slice(X, (-3,), (2,), allow_negative_indices=False)
    np.testing.assert_array_equal(out, X[:2])
    out = lax.dynamic_slice(M, (-1, -1), (1, 1), allow_negative_indices=(True, False))
    np.testing.assert_array_equal(out, [[8]])


def test_starts_as_a_vector() -> None:
    out = lax.dynamic_slice(M, np.array([1, -2]), (2, 2))
    np.testing.assert_array_equal(out, M[1:, 2:])


def test_traced_starts() -> None:
    index = Aval((), np.dtype("i4"))
    graph, _ = trace_flat(lambda i: [lax.dynamic_slice(M, (i, 0), (1, 4))], [index])
    graph.check()
    for i in (0, 2, -1, 7):
        (out,) = graph.evaluate(M, np.int32(i)) if graph.num_consts else (None,)
        np.testing.assert_array_equal(out, M[min(i, 2)][None])


def test_update() -> None:
    out = lax.dynamic_update_slice(M, np.full((2, 2), -1, "i4"), (5, 1))
    expected = M.copy()
    expected[1:, 1:3] = -1
    np.testing.assert_array_equal(out, expected)
    assert M[1, 1] == 5


def test_in_one_dimension() -> None:
    got = lax.dynamic_slice_in_dim(M, -2, 2, axis=1)
    np.testing.assert_array_equal(got, M[:, 2:])
    got = lax.dynamic_index_in_dim(M, 1, axis=-1, keepdims=False)
    np.testing.assert_array_equal(got, M[:, 1])
    np.testing.assert_array_equal(lax.dynamic_index_in_dim(M, 9), M[2:])
    expected = M.copy()
    expected[:, 3] = 0
    zeros = np.zeros(3, "i4")
    got = lax.dynamic_update_index_in_dim(M, zeros, 3, 1)
    np.testing.assert_array_equal(got, expected)
    got = lax.dynamic_update_slice_in_dim(M, zeros[:, None], -1, 1)
    np.testing.assert_array_equal(got, expected)


def test_no_axes() -> None:
    assert float(lax.dynamic_slice(np.float32(3), (), ())) == 3
    assert float(lax.dynamic_update_slice(np.float32(3), np.float32(4), ())) == 4


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.dynamic_slice(M, (0,), (1, 1)),
            ShapeError,
            r"shape \(3, 4\) needs 2 start indices, one for each axis, got 1",
        ),
        (lambda: lax.dynamic_slice(M, M, (1, 1)), ShapeError, "must be a vector"),
        (lambda: lax.dynamic_slice(X, (1.0,), (2,)), DtypeError, "0-d integers"),
        (lambda: lax.dynamic_slice(X, (X,), (2,)), DtypeError, "0-d integers"),
        (lambda: lax.dynamic_slice(X, (0,), (11,)), ShapeError, r"slice_sizes \(11,\)"),
        (lambda: lax.dynamic_slice(X, (0,), (-1,)), ShapeError, "must not be negative"),
        (
            lambda: lax.dynamic_slice(X, (0,), (1,), allow_negative_indices=(True, 1)),
            ArgumentError,
            "a bool or one for each of 1 axes",
        ),
        (
            lambda: lax.dynamic_update_slice(X, M, (0,)),
            DtypeError,
            r"operand f32\[10\] and update i32\[3,4\] must have one dtype",
        ),
        (
            lambda: lax.dynamic_update_slice(X[:1], X, (0,)),
            ShapeError,
            r"update f32\[10\] does not fit into f32\[1\]",
        ),
        (lambda: lax.dynamic_slice_in_dim(X, 0, 1, 1), AxisError, "axis 1 is out of"),
        (lambda: lax.dynamic_index_in_dim(X[:0], 0), ShapeError, "do not fit f32"),
        (lambda: lax.dynamic_update_slice_in_dim(X, X, 0, 1), AxisError, "axis 1 is"),
    ],
)
def test_starts_sizes_and_updates_that_do_not_fit_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_keys_move_as_words() -> None:
    x = keys(3, 4)
    w = words(x)
    got = lax.dynamic_slice(x, (1, -2), (1, 2))
    np.testing.assert_array_equal(words(got), w[1:2, 2:])
    got = lax.dynamic_update_slice(x, lax.slice(x, (0, 0), (1, 1)), (2, 3))
    w = w.copy()
    w[2, 3] = w[0, 0]
    np.testing.assert_array_equal(words(got), w)


@pytest.mark.parametrize("kind", [tuple, np.asarray, fnp.asarray])
def test_sizes_may_be_an_array(kind) -> None:
    for run in (lambda f: f, fxflow.jit):
        got = run(lambda m: lax.dynamic_slice(m, (1, 1), kind([2, 3])))(M)
        np.testing.assert_array_equal(got, M[1:, 1:])


@pytest.mark.parametrize("spec", [P("a"), P(None, "b"), P("a", "b")], ids=str)
@pytest.mark.parametrize("start", [-9, -1, 0, 1, 5, 90])
def test_places_out_of_bounds_where_the_axis_is_divided(spec, start):
    mesh = fxflow.make_mesh((2, 4), ("a", "b"))
    x = np.arange(32.0, dtype="f").reshape(4, 8)
    update = -np.ones((3, 2), "f")
    divided = fxflow.device_put(x, NamedSharding(mesh, spec))
    for function in (
        lambda v, i: lax.dynamic_update_slice(v, update, (i, i)),
        lambda v, i: lax.dynamic_slice(v, (i, i), (3, 2)),
        lambda v, i: lax.dynamic_slice(v, (i.astype("int8"),) * 2, (3, 2)),
    ):
        index = fnp.asarray(start)
        want = function(fnp.asarray(x), index)
        np.testing.assert_array_equal(function(divided, index), want)
        np.testing.assert_array_equal(fxflow.jit(function)(divided, index), want)
