"""Modules of kernels in Triton's IR: blocks, grids and sums."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, nn
from fxflow.kernels.gallery import attention as attention_kernels
from fxflow.lax.kernels import triton
from fxflow.lax.kernels.errors import UnsupportedError
from tests.lax.kernels.samples import accumulate, arrays, flash, segment_sum
from tests.lax.kernels.triton_samples import module_of, on_gpu, same
from tests.sweeps.random_kernels import close, random_kernel

N = np.random.default_rng(2).integers(-9, 9, (5, 7)).astype(np.int32)
X = N.astype(np.float32)


@pytest.mark.parametrize("kind", ["float32", "int8", "bfloat16", "bool"])
@pytest.mark.parametrize("seed", range(5))
def test_random_kernels(seed: int, kind: str) -> None:
    f, x, w = random_kernel(seed, kind)
    close(on_gpu(f, x, w)[0], f(x, w), kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "uint16", "bool"])
def test_more_random_kernels_and_their_gradients(kind: str) -> None:
    for seed in range(5, 30):
        f, x, w = random_kernel(seed, kind)
        close(on_gpu(f, x, w)[0], f(x, w), kind)
        if kind == "float32":
            slope = fxflow.grad(lambda x, w, f=f: fnp.sum(f(x, w) ** 2), (0, 1))
            for a, b in zip(on_gpu(slope, x, w), slope(x, w), strict=True):
                close(a, b, kind)


def scaled() -> Any:
    """Returns a kernel with two sums; a new one, whose text nothing remembers."""

    def body(x: Any, s: Any, y: Any, total: Any, most: Any) -> None:
        y[...] = x[...] * s[...]
        total[...] = fnp.sum(x[...] * x[...], 0)
        most[0] += x[1, 2]

    notation = "i:2 v, v -> i:2 v, v, v"
    return kernels.kernel(notation, out=lambda x, s: (x, s, s), sums="i")(body)


def test_partial_sums_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, parts in ((1024, 3), (2, 2), (1, 1)):
        monkeypatch.setattr(triton, "_PROGRAMS", limit)
        f = scaled()
        module = module_of(f, X, X[0])
        assert module.programs == parts and module.parts == (0, parts, parts)
        same(f, X, X[0])


def test_a_large_sum_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x, ids = X[:, :2], np.arange(5) % 3
    for limit, rows in ((100, 4), (4, 2)):
        monkeypatch.setattr(triton, "_REGISTERS", limit)
        f = lambda x, i, rows=rows: segment_sum(x, i, segments=3, rows=rows)
        assert ("gpu.barrier" in module_of(f, x, ids).text) == (limit == 4)
        same(f, x, ids)


def test_sums_along_one_of_two_axes() -> None:
    def body(x: Any, rows: Any, columns: Any) -> None:
        rows[...] = fnp.sum(x[...], 1)
        columns[...] = fnp.sum(x[...], 0)

    f = kernels.call(
        body,
        (kernels.like(X, shape=(5,)), kernels.like(X, shape=(7,))),
        grid=(3, 4),
        kinds=("sum", "sum"),
        in_specs=[kernels.BlockSpec((2, 2), lambda i, j: (i, j))],
        out_specs=[
            kernels.BlockSpec((2,), lambda i, j: (i,)),
            kernels.BlockSpec((2,), lambda i, j: (j,)),
        ],
    )
    assert module_of(f, X).parts == (4, 3)
    same(f, X)


def test_vectorized_kernels_and_gradients() -> None:
    given = arrays(2)
    same(fxflow.vmap(flash), *given)
    slopes = fxflow.grad(lambda *a: fnp.sum(flash(*a) ** 2), argnums=(0, 1, 2))
    same(slopes, *arrays(), rtol=1e-4)


@pytest.fixture
def small_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    """`nn.dot_product_attention` runs its kernels, with small blocks."""
    module = importlib.import_module("fxflow.nn.attention")
    monkeypatch.setattr(module, "_prefers_kernels", lambda *args: True)
    for name in ("_ROWS", "_KEYS", "_KEYS_BACK", "_ROWS_BACK"):
        monkeypatch.setattr(attention_kernels, name, 8)


@pytest.mark.usefixtures("small_attention")
def test_attention_of_the_gallery_and_its_gradient() -> None:
    rng = np.random.default_rng(0)
    q = rng.normal(size=(1, 11, 4, 3)).astype(np.float32)
    k, v = (rng.normal(size=(1, 11, 2, 3)).astype(np.float32) for _ in "kv")
    mask = rng.random((1, 4, 11, 11)) < 0.8

    def loss(*args: Any) -> Any:
        out = nn.dot_product_attention(*args, is_causal=True, mask=mask)
        return fnp.sum(out**2)

    slopes = fxflow.grad(loss, argnums=(0, 1, 2))
    # They were measured on CPUs alone, where fxflow uses them.
    assert kernels.explain(slopes, q, k, v).count("(it is not for GPUs)") == 2
    same(slopes, q, k, v, rtol=1e-4)


def test_an_index_map_chooses_blocks_of_operands() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = x[...]

    spec = kernels.BlockSpec((2, 7), lambda i: (2 - i, 0))
    f = kernels.call(
        body,
        kernels.like(N, shape=(6, 7)),
        grid=3,
        in_specs=[spec],
        out_specs=kernels.BlockSpec((2, 7), lambda i: (i, 0)),
    )
    same(f, N)


def test_results_that_start_with_an_operand() -> None:
    def body(x: Any, o: Any) -> None:
        o[1] = x[0]
        o[:, 2] += 1

    same(kernels.call(body, N, aliases={0: 0}), N)


def test_what_is_not_compiled() -> None:
    with pytest.raises(UnsupportedError, match=r"programs in order \(axis 1"):
        module_of(accumulate, fnp.ones((3, 4)))
    spec = kernels.BlockSpec((1, 7), lambda i: (4 - i, 0))
    body = lambda x, o: o.set(x[...])
    block = kernels.BlockSpec((1, 7), lambda i: (i, 0))
    f = kernels.call(body, N, grid=5, in_specs=[block], out_specs=spec)
    with pytest.raises(UnsupportedError, match="an index map chooses"):
        module_of(f, N)
    square = fnp.ones((4, 4))
    both = kernels.BlockSpec((2, 2), lambda i: (i, i))
    f = kernels.call(body, square, grid=2, in_specs=[both], out_specs=both)
    with pytest.raises(UnsupportedError, match="on a diagonal"):
        module_of(f, square)
    large = fnp.ones((400, 400))
    with pytest.raises(UnsupportedError, match="262,144 elements in one program"):
        module_of(kernels.call(lambda x, o: o.set(x[...]), large), large)
