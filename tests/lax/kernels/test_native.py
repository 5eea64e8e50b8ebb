"""Kernels as machine code: which are compiled, and on how many threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.lax.kernels import llvm
from fxflow.lax.kernels.native import native_call, why_not
from tests.lax.kernels.samples import arrays, attention, flash, params_of

pytest.importorskip("llvmlite")


@kernels.kernel("i:4 v, v -> i:4 v, v", out=lambda x, s: (x, s), sums="i")
def scaled(x: Any, s: Any, y: Any, total: Any) -> None:
    y[...] = x[...] * s[...]
    total[...] = fnp.sum(x[...] * x[...], 0)


@pytest.mark.parametrize("rows", [4, 5, 17, 64, 68, 129])
def test_sums_on_several_threads(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "_WORK", 1.0)
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, 24)).astype(np.float32)
    s = rng.normal(size=24).astype(np.float32)
    p = params_of(scaled, x, s)
    module = llvm.kernel_module(p, [fxflow.typeof(x), fxflow.typeof(s)], 8)
    assert module.chunks == min(16, -(-rows // 4))
    y, total = fxflow.jit(scaled)(x, s)
    np.testing.assert_allclose(y, x * s, rtol=1e-6)
    np.testing.assert_allclose(total, (x * x).sum(0), rtol=1e-5)


def test_parallel_programs_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "_WORK", 1.0)
    given = arrays(6)
    f = fxflow.jit(fxflow.vmap(flash))
    for _ in range(20):
        np.testing.assert_allclose(
            f(*given), fxflow.vmap(attention)(*given), rtol=1e-4, atol=1e-5
        )


def test_why_a_kernel_is_not_compiled() -> None:
    x = fnp.ones((4, 3))

    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    spec = kernels.BlockSpec((2, 3), lambda i: (1 - i, 0))
    f = kernels.call(body, x, grid=2, in_specs=[kernels.BlockSpec((2, 3),
                     lambda i: (i, 0))], out_specs=spec)  # fmt: skip
    assert "index map chooses" in why_not(params_of(f, x), [x.aval])
    assert native_call(params_of(f, x), [x.aval]) is None
    empty = fnp.ones((0, 3))
    g = kernels.call(body, empty, grid=0, in_specs=[kernels.BlockSpec((1, 3),
                     lambda i: (i, 0))], out_specs=kernels.BlockSpec((1, 3),
                     lambda i: (i, 0)))  # fmt: skip
    assert why_not(params_of(g, empty), [empty.aval]) == "an array is empty"

    def printing(x: Any, o: Any) -> None:
        fxflow.debug.print("{}", x[0, 0])
        o[...] = x[...]

    h = kernels.call(printing, x)
    assert why_not(params_of(h, x), [x.aval]) == "the body has effects"
