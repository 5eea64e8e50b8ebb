"""`out_sharding` of operations: the same values, laid out over devices."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, lax
from fxflow.devices import PlacementError
from fxflow.errors import ArgumentError
from tests.layouts import check_laid_out, on

X = np.arange(64, dtype=np.float32).reshape(8, 8)
IMAGE, KERNEL = X.reshape(1, 1, 8, 8), np.ones((2, 1, 3, 3), np.float32)
W = np.ones((2, 8, 4), np.float32)
SIZES = np.array([3, 5], np.int32)
RAGGED = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
MATRICES = (((1,), (0,)), ((), ()))


CASES = {
    "reshape": (lambda **k: lax.reshape(X, (4, 16), **k), P("x", "y")),
    "reshape order": (lambda **k: lax.reshape(X, (4, 16), (1, 0), **k), P("x")),
    "broadcast": (lambda **k: lax.broadcast(X, (4,), **k), P("x", None, "y")),
    "broadcast_in_dim": (
        lambda **k: lax.broadcast_in_dim(X, (8, 4, 8), (0, 2), **k),
        P(None, "x"),
    ),
    "same shape": (lambda **k: lax.broadcast_in_dim(X, (8, 8), (0, 1), **k), P("x")),
    "broadcasted_iota": (
        lambda **k: lax.broadcasted_iota("int32", (8, 2), 0, **k),
        P("x", "y"),
    ),
    "empty": (lambda **k: lax.empty((8, 2), "float32", **k), P("x")),
    "dot": (lambda **k: lax.dot(X, X, **k), P("y", "x")),
    "dot_general": (lambda **k: lax.dot_general(X, X, MATRICES, **k), P(("x", "y"))),
    "conv_general_dilated": (
        lambda **k: lax.conv_general_dilated(IMAGE, KERNEL, (1, 1), "SAME", **k),
        P(None, "y", "x"),
    ),
    "reduce": (
        lambda **k: lax.reduce(X, np.float32(0), lax.add, (0,), **k),
        P("x"),
    ),
    "reduce_sum": (lambda **k: lax.reduce_sum(X, (0,), **k), P("y")),
    "ragged_dot": (lambda **k: lax.ragged_dot(X, W, SIZES, **k), P("x", "y")),
    "ragged_dot_general": (
        lambda **k: lax.ragged_dot_general(X, W, SIZES, RAGGED, **k),
        P("x"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_laid_out(name):
    check_laid_out(*CASES[name])


def test_out_sharding_is_taken_by_position():
    """Where JAX takes it by position, so does this."""
    where = on("x")
    args = (X, W, SIZES, None, None, None, where)
    assert lax.ragged_dot(*args).sharding == where
    args = (X, W, SIZES, RAGGED, None, None, None, where)
    assert lax.ragged_dot_general(*args).sharding == where
    args = (X, np.float32(0), lax.add, (0,), where)
    assert lax.reduce(*args).sharding == where
    more = (None,) * 3 + (1, 1, None, None)
    args = (IMAGE, KERNEL, (1, 1), "SAME", *more, on(None, None, "x"))
    assert lax.conv_general_dilated(*args).sharding == on(None, None, "x")


def test_reduce_several():
    def both(a, b):
        return lax.add(a[0], b[0]), lax.max(a[1], b[1])

    operands, inits = (X, X), (np.float32(0), np.float32(-np.inf))
    one = lax.reduce(operands, inits, both, (0,), on("x"))
    assert [a.sharding for a in one] == [on("x")] * 2
    each = lax.reduce(operands, inits, both, (0,), (on("x"), None))
    assert each[0].sharding == on("x")
    assert len(each[1].devices()) == 1
    np.testing.assert_array_equal(each[1], X.max(0))


def test_derivatives_go_through():
    def loss(x):
        return fnp.sum(lax.dot(x, x, out_sharding=on("x", "y")) ** 2)

    def plain(x):
        return fnp.sum(lax.dot(x, x) ** 2)

    x = fnp.asarray(X / 64)
    got = fxflow.jit(fxflow.grad(loss))(x)
    np.testing.assert_allclose(got, fxflow.grad(plain)(x), rtol=1e-5)


def test_invalid_out_shardings_are_refused():
    with pytest.raises(ArgumentError, match="reshape: out_sharding: expected a Shard"):
        lax.reshape(X, (64,), out_sharding=5)
    with pytest.raises(PlacementError, match="at least 2 axes"):
        lax.reduce_sum(X, (0,), out_sharding=on("x", "y"))
    with pytest.raises(PlacementError):
        lax.broadcast(X, (3,), out_sharding=on("x"))
    with pytest.raises(PlacementError, match="no current mesh"):
        lax.dot(X, X, out_sharding=P("x"))
