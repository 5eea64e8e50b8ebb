"""Pytrees as vectors."""

import functools
import pickle

import numpy as np
import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.flatten_util import ravel_pytree

TREE = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": (np.float32(7.0), np.zeros((0, 2), np.float32)),
}


def test_round_trip() -> None:
    vector, unravel = ravel_pytree(TREE)
    np.testing.assert_array_equal(vector, np.arange(8)[[0, 1, 2, 3, 4, 5, 7]])
    back = unravel(vector * 2)
    np.testing.assert_array_equal(back["a"], 2 * TREE["a"])
    assert float(back["b"][0]) == 14.0
    assert back["b"][1].shape == (0, 2)


def test_dtypes_are_promoted_and_restored() -> None:
    given = [np.ones(2, np.int8), np.ones(1, np.float16), np.array([True])]
    vector, unravel = ravel_pytree(given)
    assert vector.dtype == "float16"
    assert [x.dtype for x in unravel(vector)] == [x.dtype for x in given]
    mixed, unmix = ravel_pytree([np.ones(1, np.complex64), np.ones(1, np.float32)])
    assert mixed.dtype == "complex64"
    assert unmix(mixed)[1].dtype == "float32"


def test_empty_and_single() -> None:
    vector, unravel = ravel_pytree({})
    assert vector.shape == (0,)
    assert unravel(vector) == {}
    vector, unravel = ravel_pytree(3.0)
    assert vector.shape == (1,)
    assert unravel(vector).shape == ()


def test_under_transformations() -> None:
    vector, unravel = ravel_pytree(TREE)

    def loss(vector: object) -> object:
        parts = unravel(vector)
        return fnp.add(fnp.multiply(parts["b"][0], 3.0), parts["a"][0, 1])

    slope = fxflow.jit(fxflow.grad(loss))(vector)
    np.testing.assert_array_equal(slope, [0, 1, 0, 0, 0, 0, 3])
    turned = fxflow.jit(lambda tree: ravel_pytree(tree)[0])(TREE)
    np.testing.assert_array_equal(turned, vector)


def test_vectors_and_leaves_that_do_not_fit_are_refused() -> None:
    vector, unravel = ravel_pytree(TREE)
    with pytest.raises(ShapeError, match=r"a vector of length 7, got f32\[3\]"):
        unravel(vector[:3])
    with pytest.raises(
        DtypeError, match=r"expected f32, as ravel_pytree gave, got i32"
    ):
        unravel(np.arange(7))
    with pytest.raises(ArgumentError, match="ravel_pytree: a leaf is 'a' of type str"):
        ravel_pytree(["a"])


def test_unravel_is_equal_for_pytrees_of_one_type() -> None:
    traces = []

    @functools.partial(fxflow.jit, static_argnums=1)
    def total(vector, unravel):
        traces.append(1)
        return unravel(vector)["a"].sum()

    for factor in (1.0, 2.0):
        one = {"a": fnp.ones(2) * factor, "b": fnp.ones(3)}
        assert float(total(*ravel_pytree(one))) == 2 * factor
    assert len(traces) == 1
    unravel = ravel_pytree(one)[1]
    assert pickle.loads(pickle.dumps(unravel)) == unravel
    assert unravel != ravel_pytree({"a": fnp.ones(2)})[1]
