"""`associative_scan`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
from fxflow import jit, lax, vmap
from fxflow.errors import ArgumentError, AxisError, ShapeError, TreeError


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 12), st.booleans(), st.sampled_from([0, -1]))
def test_sums(count, reverse, axis):
    rng = np.random.default_rng(count)
    values = rng.integers(-5, 5, (count, 2) if axis == 0 else (2, count))
    values = values.astype(np.int32)
    got = lax.associative_scan(lax.add, values, reverse=reverse, axis=axis)
    line = np.flip(values, axis) if reverse else values
    want = np.cumsum(line, axis)
    want = np.flip(want, axis) if reverse else want
    np.testing.assert_array_equal(np.asarray(got), want)


def test_order_of_a_function_that_does_not_commute():
    # Affine maps x -> a x + b, composed from left to right.
    a = np.array([2.0, 3.0, -1.0, 0.5, 4.0], np.float32)
    b = np.array([1.0, -2.0, 0.5, 3.0, -1.0], np.float32)

    def compose(f, g):
        (a1, b1), (a2, b2) = f, g
        return lax.mul(a1, a2), lax.add(lax.mul(a2, b1), b2)

    for reverse in (False, True):
        got_a, got_b = lax.associative_scan(compose, (a, b), reverse=reverse)
        order = range(5)[::-1] if reverse else range(5)
        x, y = 1.0, 0.0
        for i in order:
            x, y = x * a[i], a[i] * y + b[i]
            np.testing.assert_allclose(float(np.asarray(got_a)[i]), x, rtol=1e-6)
            np.testing.assert_allclose(float(np.asarray(got_b)[i]), y, rtol=1e-6)


def test_gradient_and_vmap():
    xs = np.array([1.0, 2.0, 3.0], np.float32)
    total = lambda x: lax.reduce_sum(lax.associative_scan(lax.mul, x), (0,))
    # 1·(x + xy + xyz): derivatives 1 + y + yz, x + xz, xy
    assert jit(fxflow.grad(total))(xs).tolist() == [9.0, 4.0, 2.0]
    assert vmap(total)(np.stack([xs, xs])).tolist() == [9.0, 9.0]


def test_elements_and_functions_of_another_shape_or_structure_are_refused():
    xs = np.ones((3, 2), np.float32)
    with pytest.raises(ArgumentError, match="fn must be a function"):
        lax.associative_scan(1, xs)
    with pytest.raises(ArgumentError, match="no arrays"):
        lax.associative_scan(lax.add, ())
    with pytest.raises(AxisError, match=r"axis 2 is out of range for 2 axes"):
        lax.associative_scan(lax.add, xs, axis=2)
    with pytest.raises(ShapeError, match="one length along axis 0"):
        lax.associative_scan(lambda x, y: x, (xs, xs[:2]))
    with pytest.raises(ShapeError, match="must return the shapes it takes"):
        lax.associative_scan(lambda x, y: lax.reduce_sum(x, (1,)), xs)
    with pytest.raises(TreeError, match="must return the structure of elems"):
        lax.associative_scan(lambda x, y: (x,), xs)
