"""Products in compiled kernels: all shapes around the tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.lax.kernels.llvm_products import functions, is_own
from fxflow.lax.kernels.native import why_not
from tests.lax.kernels.samples import params_of

pytest.importorskip("llvmlite")


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 1, 1), (3, 5, 7), (8, 8, 32), (9, 16, 33), (17, 24, 64), (4, 40, 16)],
)
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_sizes_and_transposes(m: int, k: int, n: int, left: bool, right: bool) -> None:
    rng = np.random.default_rng(m * n)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
    x, y = (a.T if left else a), (b.T if right else b)

    def body(x: Any, y: Any, o: Any, computed: Any) -> None:
        p, q = (x[...].T if left else x[...]), (y[...].T if right else y[...])
        o[...] = kernels.dot(p, q)
        computed[...] = kernels.dot(p * 2, q + 1)

    out = kernels.like(a, shape=(m, n))
    f = kernels.call(body, (out, out))
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    assert why_not(params_of(f, x, y), [fxflow.typeof(x), fxflow.typeof(y)]) == ""
    plain, computed = fxflow.jit(f)(x, y)
    np.testing.assert_allclose(plain, a @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(computed, (a * 2) @ (b + 1), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("columns", [64, 40])
def test_what_a_loop_multiplies_by_is_packed_before_it(columns: int) -> None:
    rng = np.random.default_rng(columns)
    a = rng.normal(size=(4, 8, 24)).astype(np.float32)
    b = rng.normal(size=(columns, 24)).astype(np.float32)

    def body(a: Any, b: Any, o: Any) -> None:
        right, twice = b[...].T, (b[...] * 2).T
        zeros = fnp.zeros(o.shape, np.float32)

        def step(i: Any, total: Any) -> Any:
            x = a[i]
            more = kernels.dot(x, right) + kernels.dot(x, twice)
            return total + more + fnp.sum(right)  # its elements stay where they were

        o[...] = lax.fori_loop(0, 4, step, zeros)

    f = kernels.call(body, kernels.like(a, shape=(8, columns)))
    assert why_not(params_of(f, a, b), [fxflow.typeof(x) for x in (a, b)]) == ""
    expected = 3 * np.einsum("ijk,lk->jl", a, b) + 4 * b.sum()
    np.testing.assert_allclose(fxflow.jit(f)(a, b), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(16, 8), (24, 40), (10, 8)])
def test_a_transposed_result_is_written_by_squares_where_they_fit(
    shape: tuple[int, int],
) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    def body(x: Any, o: Any) -> None:
        o[1] = (x[...] + 1).T
        o[0] = x[...].T

    f = kernels.call(body, kernels.like(x, shape=(2, *shape[::-1])))
    np.testing.assert_array_equal(fxflow.jit(f)(x), np.stack([x.T, x.T + 1]))


def test_functions_are_written_once_for_each_shape() -> None:
    text = functions(["fx_tile_4_8", "fx_tile_3_8", "fx_transpose_8"])
    assert text.count("define internal") == 3
    assert text.count("declare") == 1
    assert is_own("fx_tile_4_8")
    assert not is_own("fx_exp")
    assert functions(["fx_exp"]) == ""
