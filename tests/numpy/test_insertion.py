"""Inserting and deleting against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import (
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
    with pytest.raises(ConcretizationError, match="indices must be known"):
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


def test_objects_that_stand_for_arrays() -> None:
    class Wrapper:
        def __init__(self, value: Any) -> None:
            self.value = value

        def __fxflow_array__(self) -> Any:
            return fnp.asarray(self.value)

    one, some = Wrapper(1), Wrapper(np.array([0, 2]))
    assert same(np.delete(X, 1, 0), fnp.delete(Wrapper(X), one, 0))
    assert same(np.delete(X, [0, 2], 1), fnp.delete(X, some, 1))
    assert same(np.insert(V, [0, 2], 7), fnp.insert(V, some, Wrapper(7)))
    assert same(np.roll(X, 1), fnp.roll(Wrapper(X), one))
    assert same(np.roll(X, (0, 2), (0, 1)), fnp.roll(X, some, (0, 1)))
    assert same(np.repeat(V[:2], [0, 2]), fnp.repeat(V[:2], some))
    assert same(np.split(V, [0, 2]), fnp.split(V, some))
    assert fnp.isrealobj(one) and not fnp.iscomplexobj(some)


def test_a_number_has_no_ends() -> None:
    for value in (0.0, 3.0):
        assert same(np.trim_zeros(np.array(value)), fnp.trim_zeros(fnp.array(value)))
