"""What follows from the parameters of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.params import as_references, require_covered
from tests.lax.kernels.samples import accumulate, params_of


def test_parts_of_a_kernel() -> None:
    p = params_of(accumulate, np.ones((3, 4), np.float32))
    assert p.num_programs == 6
    assert p.num_inputs == 1
    assert [str(a) for a in p.scratch] == ["f32[1]"]
    assert [len(part) for part in p.split(p.graph.inputs)] == [2, 1, 1, 1]
    assert p.mapped_axes() == [0]
    assert p.is_in_order()
    assert p.sums() == [False]


def test_the_body_on_values() -> None:
    p = params_of(accumulate, np.ones((3, 4), np.float32))
    block, total = fnp.full((1, 2), 3.0), fnp.full((1,), 10.0)
    result, scratch = p.pure.evaluate(0, 0, block, fnp.zeros(1), total)
    assert float(result[0]) == float(scratch[0]) == 16.0
    again = p.replace(graph=as_references(p.pure, p))
    assert [str(a) for a in again.pure.in_avals] == [str(a) for a in p.pure.in_avals]
    found, _ = again.pure.evaluate(0, 0, block, fnp.zeros(1), total)
    assert float(found[0]) == 16.0


def test_an_axis_that_counts_two_axes_of_an_array_is_a_loop() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[0]

    def diagonal(x: Any) -> Any:
        return kernels.call(
            body,
            kernels.like(x, shape=x.shape[:1]),
            grid=4,
            in_specs=[kernels.BlockSpec((1, 1), lambda i: (i, i))],
            out_specs=kernels.BlockSpec((1,), lambda i: i),
        )(x)

    x = np.arange(16.0, dtype=np.float32).reshape(4, 4)
    assert params_of(diagonal, x).mapped_axes() == []
    np.testing.assert_array_equal(diagonal(x), np.diag(x))


def test_results_on_a_diagonal_are_zeros_beside_it() -> None:
    spec = kernels.BlockSpec((2, 2), lambda i: (i, i))
    out = fxflow.ShapeDtypeStruct((6, 6), "float32")
    f = kernels.call(
        lambda x, o: o.set(x[...] + 1), out, grid=3, in_specs=[spec], out_specs=spec
    )
    with pytest.raises(UnsupportedError, match="on a diagonal"):
        require_covered(params_of(f, np.ones((6, 6), np.float32)))
    expected = np.kron(np.eye(3), np.full((2, 2), 2.0))
    np.testing.assert_array_equal(fxflow.jit(f)(fnp.ones((6, 6))), expected)
