"""Inserting and deleting against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.errors import (
    ConcretizationError,
)
from tests.numpy.oracle import same

X = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(5, dtype=np.int32)
S = np.s_


@pytest.mark.parametrize(
    "obj", (1, -1, [0, 2], S[::2], np.array([True, False, True]), [], [1, 1])
)
def test_delete(obj: Any) -> None:
    want = np.delete(X, obj, 0)
    assert same(want, fnp.delete(X, obj, 0))
    assert same(want, fxflow.jit(lambda x: fnp.delete(x, obj, 0))(X))


def test_delete_at_traced_places() -> None:
    one = fxflow.jit(lambda x, i: fnp.delete(x, i))
    assert same(np.delete(V, -2), one(V, -2))
    many = fxflow.jit(lambda x, i: fnp.delete(x, i, assume_unique_indices=True))
    assert same(np.delete(V, [3, 0]), many(V, np.array([3, 0])))
    with pytest.raises(ConcretizationError, match="places must be known"):
        fxflow.jit(lambda x, i: fnp.delete(x, i))(V, np.array([1, 2]))


@pytest.mark.parametrize(
    ("x", "obj", "values", "axis"),
    [
        (V, 1, 9, None),
        (V, [1, 3], [8, 9], None),
        (V, 2, [7, 8], None),
        (V, [2, 2], [5, 6], None),
        (V, -1, 3, None),
        (V, S[1:4:2], 7, None),
        (X, 2, 7, None),
        (X, 1, 5, 0),
        (X, 1, np.arange(4.0), 0),
        (X, [0, 2], np.array([[1.0], [2.0], [3.0]]), 1),
        (X, 1, np.array([1.0, 2, 3]), 1),
        (X, 5 - 1, 0, 1),
    ],
)
def test_insert(x: Any, obj: Any, values: Any, axis: Any) -> None:
    want = np.insert(x, obj, values, axis)
    assert same(want, fnp.insert(x, obj, values, axis))
    assert same(want, fxflow.jit(lambda a: fnp.insert(a, obj, values, axis))(x))
