"""The largest elements of long rows are found by chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.lax.sort import TopK
from fxflow.transforms.passes.selecting import select_by_chunks

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(0)


def lengths(shape: Any, k: int, **options: Any) -> list[int]:
    """Returns the lengths of rows that the pass leaves to `top_k`."""
    graph = fxflow.make_graph(lambda x: lax.top_k(x, k, **options))(
        fxflow.ShapeDtypeStruct(shape, options.pop("dtype", "float32"))
    ).graph
    found = select_by_chunks(graph)
    return [
        node.inputs[0].aval.shape[-1]
        for node in found.nodes
        if node.primitive.name == TopK.name
    ]


def test_rows_that_are_long_enough() -> None:
    assert lengths((64, 10000), 10) == [400, 250]
    assert lengths((4, 16, 2048), 1) == [32, 64]
    assert lengths((65536 // 512, 512), 1) == [16, 32]
    for shape, k in (
        ((64, 10000), 100),  # XLA is as fast
        ((64, 10007), 10),  # a prime number has no chunks
        ((6, 10000), 10),  # small
        ((0, 10000), 10),
        ((64, 10000), 0),
    ):
        assert lengths(shape, k) == [shape[-1]]
    assert lengths((10000, 64), 10, axis=0) == [64]


def compared(x: Any, k: int) -> None:
    with fxflow.config.override(passes="none"):
        expected = fxflow.jit(lambda x: lax.top_k(x, k))(x)
    found = fxflow.jit(lambda x: lax.top_k(x, k))(x)
    for a, b in zip(found, expected, strict=True):
        assert a.aval == b.aval
        np.testing.assert_array_equal(
            np.asarray(a).view("i4"), np.asarray(b).view("i4")
        )


@pytest.mark.parametrize("k", [1, 3])
def test_elements_are_ordered_as_without_chunks(k: int) -> None:
    x = RNG.normal(size=(33, 2048)).astype(np.float32)
    compared(x, k)
    # Equal elements, in one chunk and in several.
    compared(np.round(x), k)
    compared(np.zeros_like(x), k)
    special = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45])
    compared(RNG.choice(special, x.shape), k)
    compared(RNG.choice(special[[0, 1, 3, 5]], x.shape), k)
    compared(np.full_like(x, -np.nan), k)


def test_more_axes_and_derivatives() -> None:
    x = RNG.normal(size=(2, 16, 4096)).astype(np.float32)
    compared(x, 4)

    def loss(x: Any) -> Any:
        values, order = lax.top_k(x, 4)
        return fnp.sum(values**2 * (order % 3))

    with fxflow.config.override(passes="none"):
        expected = fxflow.jit(fxflow.grad(loss))(x)
    np.testing.assert_array_equal(fxflow.jit(fxflow.grad(loss))(x), expected)
    assert "fxflow_kernel_" in fxflow.jit(loss).lower(x).as_text()


def test_a_graph_without_long_rows_is_left_as_it_is() -> None:
    graph = fxflow.make_graph(lambda x: lax.top_k(x, 2))(np.ones((4, 8))).graph
    assert select_by_chunks(graph) is graph
