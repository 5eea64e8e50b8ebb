"""Index sets agree with dense matrices of flags."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fxflow.sparse.index_sets import Dependence, empty, from_coords, same, union

RNG = np.random.default_rng(0)


def sets(shape: tuple[int, ...], count: int = 7) -> tuple[Dependence, np.ndarray]:
    """Returns random index sets, and the same as flags [elements, inputs]."""
    flags = RNG.random((int(np.prod(shape)), count)) < 0.3
    rows, sources = np.nonzero(flags)
    return from_coords(rows, sources, shape, count), flags


def flags_of(s: Any) -> np.ndarray:
    out = np.zeros((len(s.starts) - 1, s.count), bool)
    out[s.coords()] = True
    return out


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 3), (2, 0)])
def test_unions(shape: tuple[int, ...]) -> None:
    (a, fa), (b, fb) = sets(shape), sets(shape)
    np.testing.assert_array_equal(flags_of(a), fa)
    np.testing.assert_array_equal(flags_of(a | b), fa | fb)
    assert (a | a) is a and same(a | empty(shape, 7), a)
    found = union([None, a, None, b])
    assert found is not None
    np.testing.assert_array_equal(flags_of(found), fa | fb)
    assert union([None, None]) is None


def test_entries_may_repeat() -> None:
    found = from_coords(np.array([1, 0, 1]), np.array([2, 0, 2]), (2,), 3)
    np.testing.assert_array_equal(found.starts, [0, 1, 2])
    np.testing.assert_array_equal(found.sources, [0, 2])


def test_taken_and_spread() -> None:
    a, flags = sets((2, 3))
    ids = np.array([[5, -1], [0, 0]])
    expected = np.where(ids.reshape(-1, 1) >= 0, flags[ids.reshape(-1)], False)
    assert a.taken(ids).shape == (2, 2)
    np.testing.assert_array_equal(flags_of(a.taken(ids)), expected)
    b, flags = sets((2, 1))
    wide = np.broadcast_to(flags.reshape(2, 1, 7), (2, 4, 7)).reshape(8, 7)
    np.testing.assert_array_equal(flags_of(b.spread((2, 4))), wide)
    nothing = empty((0,), 7).taken(np.array([-1, -1]))
    assert nothing.shape == (2,) and not len(nothing.sources)


@pytest.mark.parametrize("axes", [(), (0,), (1,), (0, 1)])
def test_pooled(axes: tuple[int, ...]) -> None:
    a, flags = sets((2, 3))
    expected = flags.reshape(2, 3, 7).any(axes, keepdims=True)
    found = a.pooled(axes)
    assert found.shape == expected.shape[:2]
    np.testing.assert_array_equal(flags_of(found), expected.reshape(-1, 7))
    assert empty((0, 3), 7).pooled((0,)).shape == (1, 3)


def test_joined() -> None:
    a, flags = sets((3,))
    found = a.joined(np.array([1, 1, 0]), np.array([0, 2, -1]), (2,))
    np.testing.assert_array_equal(flags_of(found), [np.zeros(7), flags[0] | flags[2]])


def test_inputs_themselves() -> None:
    each = Dependence.each((2, 2), 3, 9)
    np.testing.assert_array_equal(flags_of(each), np.eye(4, 9, 3) > 0)
