"""Kernels of arrays that are divided over CPU devices, under plain `jit`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, make_graph, nn
from fxflow.devices.shardings import NamedSharding
from fxflow.transforms.passes.dividing import divide_kernels

pytest.importorskip("llvmlite")
RNG = np.random.default_rng(0)
MESH = fxflow.make_mesh((2, 2), ("a", "b"))


def put(x: Any, *spec: Any) -> Any:
    return fxflow.device_put(x, fxflow.NamedSharding(MESH, fxflow.P(*spec)))


def numbers(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


@kernels.kernel("n:4 m:2 d, d -> n:4 m:2 d", out=lambda x, scale: x)
def normalized(x: Any, scale: Any, o: Any) -> None:
    z = x[...]
    o[...] = scale[...] * z / fnp.sqrt(fnp.sum(z * z, -1, keepdims=True))


@kernels.kernel("n:4 d, n:4 -> d, n:4", sums="n",
                out=lambda x, w: (kernels.like(x, shape=x.shape[1:]), w))  # fmt: skip
def total(x: Any, w: Any, o: Any, w2: Any) -> None:
    o[...] = fnp.sum(x[...] * w[...][:, None], 0)
    w2[...] = w[...] * 2


def lowered(f: Any, *args: Any) -> str:
    return fxflow.jit(f).lower(*args).as_text()


@pytest.mark.parametrize("spec", [("a",), (None, "b"), ("b", "a"), (("a", "b"),)])
def test_devices_run_the_programs_of_their_parts(spec: Any) -> None:
    x, scale = numbers(32, 8, 6), numbers(6)
    args = put(x, *spec), put(scale)
    found = fxflow.jit(normalized)(*args)
    expected = scale * x / np.sqrt(np.sum(x * x, -1, keepdims=True))
    np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
    assert found.sharding.spec == fxflow.P(*spec)
    text = lowered(normalized, *args)
    assert "fxflow_kernel_" in text and "manual_computation" in text


def test_sums_are_added_between_devices() -> None:
    x, w = numbers(32, 3), numbers(32)
    found, twice = fxflow.jit(total)(put(x, ("a", "b")), put(w, ("a", "b")))
    np.testing.assert_allclose(found, w @ x, 1e-5, 1e-5)
    np.testing.assert_allclose(twice, 2 * w, 1e-6)
    text = lowered(total, put(x, "a"), put(w))
    assert "fxflow_kernel_" in text and "all_reduce" in text


def test_gradients_and_results_of_kernels_are_divided() -> None:
    x, scale = numbers(32, 8, 6), numbers(6)

    def loss(x: Any, scale: Any) -> Any:
        return fnp.sum(normalized(fnp.sin(normalized(x, scale)) * 2, scale) ** 2 * x)

    slopes = fxflow.grad(loss, argnums=(0, 1))
    expected = slopes(fnp.asarray(x), fnp.asarray(scale))
    args = put(x, "a"), put(scale)
    for found, want in zip(fxflow.jit(slopes)(*args), expected, strict=True):
        np.testing.assert_allclose(found, want, 1e-4, 1e-4)
    assert lowered(slopes, *args).count("manual_computation") >= 4


def of_neither(x: Any, o: Any) -> None:
    o[...] = x[...] + kernels.program_id(0).astype(x.dtype)


WITH_ID = kernels.kernel("n:4 d -> n:4 d", out=lambda x: x)(of_neither)


@pytest.mark.parametrize(
    ("f", "shapes", "specs", "why"),
    [
        (normalized, [(32, 8, 6), (6,)], [(None, None, "a"), ()], "a whole axis"),
        (normalized, [(12, 8, 6), (6,)], [("a",), ()], "3 blocks for 2 devices"),
        (normalized, [(30, 8, 6), (6,)], [("a",), ()], "the last block is ragged"),
        (total, [(32, 3), (32,)], [("a",), ("b",)], "operands differ"),
        (WITH_ID, [(32, 4)], [("a",)], "the body reads an id"),
    ],
)
def test_other_kernels_are_operations_on_whole_arrays(
    f: Any, shapes: Any, specs: Any, why: str
) -> None:
    arrays = [numbers(*shape) for shape in shapes]
    args = [put(x, *spec) for x, spec in zip(arrays, specs, strict=True)]
    assert "fxflow_kernel_" not in lowered(f, *args), why
    expected = f(*map(fnp.asarray, arrays))
    for found, want in zip(
        fxflow.tree.leaves(fxflow.jit(f)(*args)), fxflow.tree.leaves(expected),
        strict=True,
    ):  # fmt: skip
        np.testing.assert_allclose(found, want, 1e-5, 1e-5)


def test_graphs_without_a_division_stay_as_they_are() -> None:
    x, scale = fnp.zeros((32, 8, 6)), fnp.zeros(6)
    graph = make_graph(normalized)(x, scale).graph
    assert divide_kernels(graph, [None, None]) is graph
    plain = NamedSharding(MESH, fxflow.P())
    assert divide_kernels(graph, [plain, None]) is graph
    divided = divide_kernels(graph, [NamedSharding(MESH, fxflow.P("a")), plain])
    assert "shard_map" in divided.facts.names
    assert divided.out_avals == graph.out_avals


def test_switched_off_with_the_pass() -> None:
    args = put(numbers(32, 8, 6), "a"), put(numbers(6))
    with fxflow.config.override(passes="none"):
        assert "fxflow_kernel_" not in lowered(normalized, *args)


def test_a_layer_with_rules_of_its_own() -> None:
    table = fnp.asarray(numbers(50, 64))
    ids = RNG.integers(0, 50, (256, 8))

    def loss(table: Any, ids: Any) -> Any:
        return fnp.sum(fnp.sin(nn.embedding_bag({"w": table}, ids)))

    slope = fxflow.jit(fxflow.grad(loss))
    expected = slope(table, ids)
    found = slope(put(table), put(ids, "a"))
    np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
