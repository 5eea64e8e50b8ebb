"""`out_sharding` of functions of NumPy: the same values, laid out over devices."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P
from fxflow.devices import PlacementError
from fxflow.errors import ArgumentError
from tests.layouts import check_laid_out, on

X = np.arange(64, dtype=np.float32).reshape(8, 8)


CREATION = {
    "zeros": (lambda **k: fnp.zeros((8, 4), "int8", **k), P("x", "y")),
    "ones": (lambda **k: fnp.ones((8, 4), **k), P("y", "x")),
    "empty": (lambda **k: fnp.empty((8, 4), **k), P("x")),
    "full": (lambda **k: fnp.full((8, 4), 7, **k), P(("x", "y"))),
    "full of an array": (lambda **k: fnp.full((8, 8), X[0], **k), P("x", "y")),
    "zeros_like": (lambda **k: fnp.zeros_like(X, **k), P("x")),
    "ones_like": (lambda **k: fnp.ones_like(X, shape=(8,), **k), P("x")),
    "full_like": (lambda **k: fnp.full_like(X, 3, **k), P(None, "x")),
    "array": (lambda **k: fnp.array(X, **k), P("x", "y")),
    "array of a list": (lambda **k: fnp.array([1, 2, 3, 4], **k), P("x")),
    "asarray": (lambda **k: fnp.asarray(X, **k), P("y")),
    "asarray of an array": (lambda **k: fnp.asarray(fnp.asarray(X), **k), P("y")),
    "arange": (lambda **k: fnp.arange(8, **k), P("x")),
    "arange of floats": (lambda **k: fnp.arange(1.0, 9.0, 0.5, **k), P("y")),
}
CASES = {
    **CREATION,
    "reshape": (lambda **k: fnp.reshape(X, (4, -1), **k), P("x", "y")),
    "reshape by columns": (lambda **k: fnp.reshape(X, (4, -1), "F", **k), P("x")),
    "ravel": (lambda **k: fnp.ravel(X, **k), P(("x", "y"))),
    "ravel by columns": (lambda **k: fnp.ravel(X, "F", **k), P("x")),
    "broadcast_to": (lambda **k: fnp.broadcast_to(X, (2, 8, 8), **k), P("y", "x")),
    "repeat": (lambda **k: fnp.repeat(X, 2, 0, **k), P("x")),
    "repeat each": (
        lambda **k: fnp.repeat(X[0], np.arange(8), total_repeat_length=28, **k),
        P("x"),
    ),
    "dot": (lambda **k: fnp.dot(X, X, **k), P("x", "y")),
    "dot with a number": (lambda **k: fnp.dot(X, 2, **k), P("x", "y")),
    "matmul": (lambda **k: fnp.matmul(X, X, **k), P("y", "x")),
    "matmul in int": (
        lambda **k: fnp.matmul(X, X, preferred_element_type="float32", **k),
        P("x"),
    ),
    "tensordot": (lambda **k: fnp.tensordot(X, X, 1, **k), P("x")),
    "tensordot of axes": (
        lambda **k: fnp.linalg.tensordot(X, X, axes=((0,), (1,)), **k),
        P("y"),
    ),
    "einsum": (lambda **k: fnp.einsum("ij,jk->ki", X, X, **k), P("x", "y")),
    "bincount": (lambda **k: fnp.bincount(np.arange(8), length=8, **k), P("x")),
    "percentile": (lambda **k: fnp.percentile(X, 30, axis=0, **k), P("x")),
    "quantile": (lambda **k: fnp.quantile(X, 0.3, axis=0, **k), P("x")),
}


@pytest.mark.parametrize("name", CASES)
def test_laid_out(name):
    check_laid_out(*CASES[name])


@pytest.mark.parametrize("name", CREATION)
def test_device_or_sharding(name):
    function, spec = CREATION[name]
    short = name.split()[0]
    with pytest.raises(ArgumentError, match=f"{short}: give device or out_sharding"):
        function(device=fxflow.devices()[0], out_sharding=on(*spec))


def test_parts_are_made_where_they_lie():
    with pytest.raises(PlacementError):
        fnp.zeros((7, 2), out_sharding=on("x"))
    got = fnp.zeros((8, 2), out_sharding=on("x", "y"))
    assert {s.data.shape for s in got.addressable_shards} == {(2, 1)}


def test_products_without_options():
    """The fast path gives what the long one does."""
    a, b = fnp.asarray(X), fnp.asarray(X[:, 0])
    for function in (fnp.dot, fnp.matmul):
        np.testing.assert_array_equal(function(a, b), X @ X[:, 0])
        np.testing.assert_array_equal(function(a=a, b=b), X @ X[:, 0])
        got = function(a, b, precision="highest")
        np.testing.assert_array_equal(got, X @ X[:, 0])
    assert fnp.dot(fnp.arange(3), 1.5).dtype == np.float32
    np.testing.assert_array_equal(fnp.dot(fnp.arange(3), 2), [0, 2, 4])


def test_invalid_out_shardings_are_refused():
    with pytest.raises(ArgumentError, match="ravel: out_sharding: expected a Sharding"):
        fnp.ravel(X, out_sharding=5)
    with pytest.raises(ArgumentError, match="ones: out_sharding: expected a Sharding"):
        fnp.ones(8, out_sharding=5)
    with pytest.raises(PlacementError, match="no current mesh"):
        fnp.einsum("ij->j", X, out_sharding=P("x"))
    with pytest.raises(PlacementError, match="at least 2 axes"):
        fnp.arange(8, out_sharding=on("x", "y"))
