"""Running a kernel program by program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import kernels
from fxflow.lax.kernels.blocks import Block
from fxflow.lax.kernels.host import Run, cut, paste, run_programs
from tests.lax.kernels.samples import accumulate, params_of


def test_blocks_over_the_end_read_zeros_and_drop_writes() -> None:
    x = np.arange(10.0).reshape(5, 2)
    block = Block((3, None), (0, 1))
    np.testing.assert_array_equal(cut(x, block, (1, 1)), [7, 9, 0])
    np.testing.assert_array_equal(cut(x, block, (4, 0)), [0, 0, 0])
    paste(x, np.array([1.0, 2.0, 3.0]), block, (1, 0), added=False)
    np.testing.assert_array_equal(x[:, 0], [0, 2, 4, 1, 2])
    paste(x, np.array([1.0, 2.0, 3.0]), block, (1, 0), added=True)
    np.testing.assert_array_equal(x[:, 0], [0, 2, 4, 2, 4])


def test_scratch_lasts_along_ordered_axes_only() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    p = params_of(accumulate, x)
    (found,) = run_programs(p, [x])
    np.testing.assert_array_equal(found, x.sum(1))
    np.testing.assert_array_equal(accumulate(x), x.sum(1))


def test_what_is_not_written_is_as_it_was_filled() -> None:
    def body(x: Any, o: Any) -> None:
        o[0] = x[0]

    x = np.ones(3, np.float32)
    p = params_of(kernels.call(body, kernels.like(x)), x)
    run = Run(p, [x], lambda aval, shape: np.full(shape, 7, aval.dtype))
    np.testing.assert_array_equal(run.all([()])[0], [1, 7, 7])


@pytest.mark.parametrize("size", [0, 1, 5, 16, 17])
def test_evaluate_is_the_compiled_kernel(size: int) -> None:
    x = np.random.default_rng(size).normal(size=(size, 3)).astype(np.float32)

    @kernels.kernel("i:4 v -> i:4 v, v", out=lambda x: (x, kernels.like(x, shape=(3,))),
                    sums="i")  # fmt: skip
    def both(x: Any, y: Any, total: Any) -> None:
        y[...] = x[...] * 2
        total[...] = x[...].sum(0)

    p = params_of(both, x)
    expected = run_programs(p, [x])
    for found, wanted in zip(fxflow.jit(both)(x), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(expected[1], x.sum(0), rtol=1e-5, atol=1e-6)
