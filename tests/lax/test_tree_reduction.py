"""The tree that derivatives of reductions use."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.staging import trace_flat
from fxflow.lax.tree_reduction import (
    apply_elements,
    combine_pairs,
    rows_of,
    tree_reduce,
)


@pytest.mark.parametrize("length", range(1, 10))
def test_the_order_of_elements_is_kept(length: int) -> None:
    # Affine maps x → a x + b compose associatively, but not commutatively.
    rng = np.random.default_rng(length)
    a, b = rng.uniform(0.5, 1.5, (2, length, 2)).astype("f4")

    def then(x, y):
        return [lax.mul(x[0], y[0]), lax.add(lax.mul(y[0], x[1]), y[1])]

    got = combine_pairs(rows_of([a, b], (0,)), then)
    slope, offset = a[0], b[0]
    for k in range(1, length):
        slope, offset = slope * a[k], a[k] * offset + b[k]
    np.testing.assert_allclose(np.asarray(got[0])[0], slope, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(got[1])[0], offset, rtol=1e-5)


def test_graph_of_scalars_on_arrays() -> None:
    scalar = Aval((), np.dtype("f4"))
    graph, _ = trace_flat(lambda x, y: [lax.sub(x, y)], [scalar, scalar])
    x, y = np.ones((2, 3), "f4"), np.full((2, 3), 4, "f4")
    (out,) = apply_elements(graph, [x, y])
    np.testing.assert_array_equal(out, x - y)
    (total,) = tree_reduce(graph, [x[:0], np.float32(7)], (0,))
    np.testing.assert_array_equal(total, [7, 7, 7])
