"""Reports on `jax.lax`, as programs for `fxflow.lax`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from tests.reports.modes import check_both

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("i, j", [(9, 0), (3, 5), (6, 0)])
def test_a_slice_of_a_slice_starts_where_both_are_clamped(i: int, j: int) -> None:
    """Each start is clamped to its own operand, compiled too (jax#40849)."""

    def read(x: fxflow.Array, i: fxflow.Array, j: fxflow.Array) -> fxflow.Array:
        return lax.dynamic_slice(lax.dynamic_slice(x, (i,), (4,)), (j,), (1,))

    check_both(read, [6], fnp.arange(10.0), fnp.array(i), fnp.array(j))


def test_slices_take_unsigned_starts() -> None:
    """A start of 128 in uint8 is not taken for -128 (jax#6122)."""
    start = fnp.array(128, dtype=np.uint8)
    check_both(
        lambda x, i: lax.dynamic_slice(x, [i], [1]), [128], fnp.arange(200), start
    )


def test_a_negative_start_is_counted_once_under_grad() -> None:
    """Values and slopes of a slice from -7 of 5 elements agree (jax#11580)."""
    weights = np.array([1.0, 2.0], np.float32)
    total = lambda x: fnp.sum(lax.dynamic_slice(x, (-7,), (2,)) * weights)
    ask = fxflow.value_and_grad(total)
    check_both(ask, (2, [1, 2, 0, 0, 0]), fnp.arange(5.0))


def test_scatter_max_differentiates_clipped_indices() -> None:
    """Indices that are clipped to the ends have finite slopes (jax#40626)."""
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    at = np.array([[-3], [8]])
    weights = np.array([2.0, -1.0, 3.0], np.float32)

    def total(t: fxflow.Array) -> fxflow.Array:
        x = fnp.array([1.0, 3.0, 4.0])
        updates = fnp.stack([1 + t, 4 - t])
        return fnp.sum(lax.scatter_max(x, at, updates, numbers, mode="clip") * weights)

    check_both(fxflow.value_and_grad(total), (11.0625, 2.0), fnp.array(0.03125))


def test_scatter_mul_differentiates_equal_indices() -> None:
    """Factors that meet in one element have each other as slopes (jax#12469)."""
    times = lambda v: fnp.ones(2).at[fnp.array([0, 0])].mul(v)
    check_both(fxflow.jacrev(times), [[3, 2], [0, 0]], fnp.array([2.0, 3.0]))
    check_both(fxflow.jacfwd(times), [[3, 2], [0, 0]], fnp.array([2.0, 3.0]))


def test_a_window_of_a_scalar_is_the_scalar() -> None:
    """`reduce_window` takes arrays without axes, and differentiates (jax#10834)."""
    window = lambda x: lax.reduce_window(x, 0.0, lax.add, (), (), ())
    check_both(fxflow.value_and_grad(window), (3, 1), fnp.array(3.0))


def test_a_padded_window_has_a_jacobian_under_jit() -> None:
    """A window that is larger than the operand is padded (jax#7860)."""
    window = lambda x: lax.reduce_window(
        x, 0.0, lax.add, (1, 1), (2, 1), [(0, 0), (1, 0)]
    )
    check_both(fxflow.jacrev(fxflow.jit(window)), [[[[0]], [[1]]]], fnp.ones((1, 1)))


def test_a_dilated_window_has_a_forward_jacobian() -> None:
    """`jacfwd` of a dilated window equals `jacrev` (jax#10315)."""
    window = lambda x: lax.reduce_window(
        x, 0.0, lax.add, (3, 1), (1, 2), "VALID", window_dilation=(2, 1)
    )
    x = fnp.ones((5, 3))
    right = np.zeros((1, 2, 5, 3))
    right[0, 0, ::2, 0] = right[0, 1, ::2, 2] = 1
    check_both(fxflow.jacfwd(window), right, x)
    check_both(fxflow.jacrev(window), right, x)


def test_nan_is_the_largest_of_top_k() -> None:
    """NaN comes first, with its own index (jax#21397)."""
    x = fnp.array([NAN, -INF, INF, 0.0])
    check_both(lambda x: tuple(lax.top_k(x, 3)), ([NAN, INF, 0], [0, 2, 3]), x)
