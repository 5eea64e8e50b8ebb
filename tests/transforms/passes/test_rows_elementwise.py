"""Elementwise functions and searches that XLA is slow at become kernels, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, make_graph, nn
from fxflow.transforms.passes.rewriting import SLOW_IN_XLA
from fxflow.transforms.passes.rows import fuse_rows
from tests.transforms.passes.graphs import before_and_after

pytest.importorskip("llvmlite")
RNG = np.random.default_rng(0)


def values(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def kernels_of(graph: Any) -> int:
    return sum(node.primitive.name == "kernel_call" for node in graph.nodes)


def flat(f: Any) -> Any:
    return lambda *args: fxflow.tree.leaves(f(*args))


CHAINS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "one axis": (lambda x: fnp.sin(x) * 2, [(70_001,)]),
    "a bias": (lambda x, b: fnp.tan(fnp.tanh(x + b)) + b, [(256, 300), (300,)]),
    "a factor of rows": (
        lambda x, s: fnp.cos(x * s[:, None]) - s[:, None], [(256, 300), (256,)],
    ),
    "short rows": (lambda x: fnp.cbrt(x) + x, [(20_000, 5)]),
    "long rows": (lambda x: fnp.arcsin(fnp.tanh(x)), [(3, 30_000)]),
    "three axes": (lambda x, y: fnp.arctan2(x, y), [(4, 100, 200), (4, 100, 200)]),
    "a number": (lambda x, s: fnp.sinh(x) * s, [(70_000,), ()]),
    "a choice": (lambda x: fnp.where(x > 0, x**1.5, fnp.cos(x)), [(70_000,)]),
    "two results": (lambda x: (fnp.sin(x), fnp.cos(x)), [(70_000,)]),
    "read elsewhere": (lambda x: (fnp.sin(x), fnp.cumsum(fnp.sin(x))), [(70_000,)]),
    "half precision": (lambda x: fnp.sin(x.astype("bfloat16")), [(70_000,)]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_chains_with_slow_functions_are_one_kernel(name: str) -> None:
    f, shapes = CHAINS[name]
    args = [values(*shape) for shape in shapes]
    _, new = before_and_after(fuse_rows, flat(f), *args, tolerance=1e-5)
    assert kernels_of(new) == 1
    assert SLOW_IN_XLA.isdisjoint(node.primitive.name for node in new.nodes)


def test_gradients_and_vectorized_functions() -> None:
    x = values(256, 300)
    slope = fxflow.grad(lambda x: fnp.sum(fnp.sin(x * x) ** 2))
    _, new = before_and_after(fuse_rows, flat(slope), x, tolerance=1e-4)
    assert kernels_of(new) == 1
    mapped = fxflow.vmap(lambda row: fnp.arctan(row) * 2)
    _, new = before_and_after(fuse_rows, flat(mapped), x, tolerance=1e-5)
    assert kernels_of(new) == 1


@pytest.mark.parametrize(
    ("function", "dtype"),
    [(fnp.argmin, "float32"), (fnp.argmax, "int32"), (fnp.argmax, "bfloat16")],
)
def test_searches_of_rows(function: Any, dtype: str) -> None:
    x = (values(300, 300) * 8).astype("int32").astype(dtype)  # with equal elements
    if dtype != "int32":
        x[3, 7] = x[3, 90] = np.nan
        x[4] = -np.inf
    _, new = before_and_after(fuse_rows, flat(lambda x: function(x, 1)), x)
    assert kernels_of(new) == 1
    # A function of the rows before joins it.
    both = flat(lambda x: function(fnp.maximum(x, -3), 1, keepdims=True))
    assert kernels_of(before_and_after(fuse_rows, both, x)[1]) == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x: fnp.max(x, 1),
        lambda x: fnp.min(x * 2, -1, keepdims=True),
        lambda x: fnp.sum(fnp.exp(x), 1),
        lambda x: fnp.mean(nn.sigmoid(x) * 2 + x, 1),
    ],
)
def test_single_reductions_whose_loops_xla_does_not_vectorize(f: Any) -> None:
    x = values(300, 300)
    x[2, 5], x[3, 4] = np.nan, np.inf
    _, new = before_and_after(fuse_rows, flat(f), x, tolerance=1e-5)
    assert kernels_of(new) == 1


def test_others_are_left_to_xla() -> None:
    x = fnp.asarray(values(300, 300))
    for f in (
        lambda x: fnp.exp(x) * 2,
        lambda x: fnp.sum(x * x, 1),
        lambda x: fnp.sin(x[:100, :100]),
        lambda x: fnp.argmax(x, 0),
        lambda x: lax.rem(x, 2.0),
    ):
        graph = make_graph(f)(x).graph
        assert kernels_of(fuse_rows(graph)) == 0
    wide = x.astype("float64") if fxflow.config.x64 else x.astype("complex64")
    assert kernels_of(fuse_rows(make_graph(fnp.sin)(wide).graph)) == 0


def test_they_run_in_programs() -> None:
    x = fnp.asarray(values(70_000))
    f = fxflow.jit(lambda x: lax.fori_loop(0, 3, lambda _, y: fnp.sin(y) + 1, x))
    assert "fxflow_kernel_" in f.lower(x).as_text()
    expected = np.asarray(x, np.float64)
    for _ in range(3):
        expected = np.sin(expected) + 1
    np.testing.assert_allclose(f(x), expected, 1e-5)
    with fxflow.config.override(passes="none"):
        assert "fxflow_kernel_" not in fxflow.jit(fnp.sin).lower(x).as_text()
