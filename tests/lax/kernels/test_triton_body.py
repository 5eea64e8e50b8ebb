"""Loops and branches in Triton's IR."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from tests.lax.kernels.samples import arrays, attention, flash
from tests.lax.kernels.triton_samples import module_of, on_gpu, same, whole

N = np.random.default_rng(2).integers(-9, 9, (5, 7)).astype(np.int32)


def of(body: Any, *args: Any) -> str:
    f = whole(body, fxflow.eval_shape(body, *args))
    same(f, *args)
    return module_of(f, *args).text


def test_loops() -> None:
    of(lambda x: lax.fori_loop(2, 5, lambda i, c: c * 2 + x[i - 2], x[0]), N)
    step = lambda c, row: (c + row, c * 2)
    for reverse in (False, True):
        of(lambda x, r=reverse: lax.scan(step, x[0], x, reverse=r)[1], N)
    text = of(
        lambda x: lax.while_loop(
            lambda c: fnp.sum(c) < 1000, lambda c: c * 2 + 1, abs(x)
        ),
        N,
    )
    assert "scf.while" in text


def test_a_loop_with_computed_bounds_counts() -> None:
    # XLA's Triton reads ahead in loops that count, and in no others.
    text = of(lambda x: lax.fori_loop(x[0, 0], x[1, 1], lambda i, c: c + i, x), N)
    assert "scf.for" in text and "scf.while" not in text

    def body(x: Any) -> Any:
        return lax.fori_loop(0, abs(x[0, 0]), lambda i, c: c + i, x)

    of(body, N)


def test_branches() -> None:
    branches = [lambda x: x, lambda x: x * 2, lambda x: x - 1]
    for first in range(3):
        n = N.copy()
        n[0, 0] = first
        of(lambda x: lax.switch(x[0, 0], branches, x), n)


def test_references_change_in_loops_and_branches() -> None:
    def body(x: Any, o: Any, total: Any) -> None:
        @kernels.loop(0, x.shape[0])
        def _(i: Any) -> None:
            @kernels.when(x[i, 0] > 0)
            def _() -> None:
                total[...] += x[i]
                total[1] = i

        o[...] = total[...]

    row = kernels.like(N, shape=(7,))
    same(kernels.call(body, row, scratch=[row]), N)


def test_flash_attention() -> None:
    given = arrays()
    (got,) = on_gpu(flash, *given)
    np.testing.assert_allclose(got, attention(*given), rtol=1e-5, atol=1e-6)
    text = module_of(flash, *given).text
    assert text.count("tt.dot") == 2 and text.count("scf.for") == 1
