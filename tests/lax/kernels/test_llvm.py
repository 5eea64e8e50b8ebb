"""Modules of kernels: names, windows of blocks, coverage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm import kernel_module
from tests.lax.kernels.samples import accumulate, arrays, flash, params_of

pytest.importorskip("llvmlite")


def test_a_module_is_named_after_its_text() -> None:
    given = arrays()
    p = params_of(flash, *given)
    avals = [x.aval for x in given]
    one, other = kernel_module(p, avals, 8), kernel_module(p, avals, 16)
    assert one.target != other.target
    assert f"define ptr @{one.target}(" in one.text
    again = params_of(flash, *given)
    assert kernel_module(again, avals, 8).target == one.target


def test_programs_in_order_with_scratch() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(fxflow.jit(accumulate)(x), x.sum(1))


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 16, 23])
def test_blocks_over_the_end(rows: int) -> None:
    @kernels.kernel("i:8 v -> i:8 v, v", out=lambda x: (x, x[0]), sums="i")
    def f(x: Any, y: Any, total: Any) -> None:
        y[...] = fnp.exp(x[...])
        total[...] = x[...].sum(0)

    x = np.random.default_rng(rows).normal(size=(rows, 5)).astype(np.float32)
    y, total = fxflow.jit(f)(x)
    np.testing.assert_allclose(y, np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(total, x.sum(0), rtol=1e-5, atol=1e-6)


def test_an_index_map_chooses_blocks_of_an_operand() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...] * 2

    x = fnp.arange(12.0).reshape(6, 2)
    f = kernels.call(
        body,
        x,
        grid=3,
        in_specs=[kernels.BlockSpec((2, 2), lambda i: (3 - i, 0))],
        out_specs=kernels.BlockSpec((2, 2), lambda i: (i, 0)),
    )
    # The first program's block is behind the end.
    expected = np.concatenate([np.zeros((2, 2)), x[4:] * 2, x[2:4] * 2])
    np.testing.assert_array_equal(fxflow.jit(f)(x), expected)


def test_all_elements_of_results_are_in_a_block() -> None:
    spec = kernels.BlockSpec((2,), lambda i: (i,))

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    f = kernels.call(body, fnp.ones(7), grid=2, in_specs=[spec], out_specs=spec)
    x = fnp.ones(7)
    with pytest.raises(UnsupportedError, match="in no program's block"):
        kernel_module(params_of(f, x), [x.aval], 8)
