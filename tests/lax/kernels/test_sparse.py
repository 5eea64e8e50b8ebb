"""Products of sparse matrices as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.lax.kernels import sparse
from fxflow.lax.sparse_products import SparseProduct, native_call
from fxflow.sparse import Pattern

pytest.importorskip("llvmlite")


def random_pattern(m: int, n: int, count: int, seed: int = 0) -> Pattern:
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, m, count), rng.integers(0, n, count)
    row[: count // 3] = m // 2  # one long row
    return Pattern("coo", (m, n), (row, col), (count,))


def dense(pattern: Pattern, values: np.ndarray) -> np.ndarray:
    out = np.zeros(pattern.shape, values.dtype)
    np.add.at(out, (pattern.arrays["row"], pattern.arrays["col"]), values)
    return out


def program(pattern: Pattern) -> Any:
    arrays, layout = pattern.operands, pattern.layout
    return lambda v, x: SparseProduct.bind(v, x, *arrays, layout=layout)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("threads", [False, True])
def test_rows_of_any_length(
    dtype: str, threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "_WORK", 7 if threads else 10**9)
    sparse._registered.cache_clear()
    rng = np.random.default_rng(1)
    for m, n, count in ((1, 1, 1), (20, 7, 3), (13, 30, 90), (5, 4, 60)):
        pattern = random_pattern(m, n, count)
        values = fnp.asarray(rng.normal(size=count), dtype)
        want = dense(pattern, np.asarray(values))
        f = program(pattern)
        assert (
            "fxflow_sparse"
            in fxflow.jit(f).lower(values, fnp.ones(n, dtype)).compile().as_text()
        )
        for shape in ((n,), (n, 1), (n, 5)):
            x = fnp.asarray(rng.normal(size=shape), dtype)
            for run in (f, fxflow.jit(f)):
                np.testing.assert_allclose(
                    run(values, x), want @ x, rtol=1e-4, atol=1e-4
                )
    sparse._registered.cache_clear()


def test_batches_of_values_and_of_matrices() -> None:
    pattern = random_pattern(6, 5, 20)
    rng = np.random.default_rng(2)
    values = rng.normal(size=(3, 20)).astype(np.float32)
    x = rng.normal(size=(3, 5, 2)).astype(np.float32)
    wide = np.stack([dense(pattern, v) for v in values])
    f = program(pattern)
    both = fxflow.jit(fxflow.vmap(f))(values, x)
    np.testing.assert_allclose(both, wide @ x, rtol=1e-4, atol=1e-5)
    one = fxflow.jit(fxflow.vmap(f, in_axes=(0, None)))(values, x[0])
    np.testing.assert_allclose(one, wide @ x[0], rtol=1e-4, atol=1e-5)


def test_equal_shapes_share_machine_code() -> None:
    a = random_pattern(40, 50, 200, seed=1)
    b = random_pattern(40, 50, 200, seed=2)
    before = sparse._registered.cache_info().misses
    for pattern in (a, b):
        fxflow.jit(program(pattern))(fnp.ones(200), fnp.ones(50))
    assert sparse._registered.cache_info().misses <= before + 1


def test_other_dtypes_and_empty_arrays_are_left_to_xla() -> None:
    pattern = random_pattern(4, 5, 6)

    def call(dtype: str, width: int) -> Any:
        avals = [
            fxflow.typeof(np.ones(6, dtype)),
            fxflow.typeof(np.ones((5, width), dtype)),
            *(a.aval for a in pattern.operands),
        ]
        return native_call(avals, layout=pattern.layout)

    assert call("float32", 2) is not None
    assert call("int32", 2) is None and call("float32", 0) is None


def test_passes_can_be_turned_off() -> None:
    pattern = random_pattern(4, 5, 6)
    with fxflow.config.override(passes=""):
        lowered = fxflow.jit(program(pattern)).lower(fnp.ones(6), fnp.ones(5))
        assert "fxflow_sparse" not in lowered.compile().as_text()


def test_in_a_loop() -> None:
    pattern = random_pattern(5, 5, 12)
    values = np.full(12, 0.1, np.float32)
    f = fxflow.jit(
        lambda x: fxflow.lax.fori_loop(
            0, 3, lambda _, x: program(pattern)(values, x), x
        )
    )
    want = np.linalg.matrix_power(dense(pattern, values), 3) @ np.ones(5)
    np.testing.assert_allclose(f(fnp.ones(5)), want, rtol=1e-5)
