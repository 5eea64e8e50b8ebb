"""Kernels become calls of machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.lax.kernels.native import is_enabled
from fxflow.transforms.passes.kernels import compile_kernels
from tests.lax.kernels.samples import arrays, flash, segment_sum

pytest.importorskip("llvmlite")


def is_native(f: Any, *args: Any) -> bool:
    """Whether a jitted function calls a compiled kernel."""
    return "fxflow_kernel_" in fxflow.jit(f).lower(*args).as_text()


def test_jitted_functions_call_machine_code() -> None:
    given = arrays()
    assert is_native(flash, *given)

    def slopes(*args: Any) -> Any:
        return fxflow.grad(lambda *a: fnp.sum(flash(*a) ** 2), argnums=(0, 1, 2))(*args)

    assert is_native(slopes, *given)
    assert is_native(fxflow.vmap(flash), *arrays(2))
    with fxflow.config.override(passes="none"):
        assert not is_enabled()
        assert not is_native(lambda *args: flash(*args), *given)


def test_other_platforms_get_the_portable_form() -> None:
    given = arrays()
    text = fxflow.jit(flash).trace(*given).lower(platforms=("cuda",)).as_text()
    assert "fxflow_kernel_" not in text


def test_a_graph_without_kernels_is_left_as_it_is() -> None:
    graph = fxflow.make_graph(fnp.sin)(1.0).graph
    assert compile_kernels(graph) is graph


def test_kernels_in_a_shard_map_call_machine_code_on_each_device() -> None:
    mesh = fxflow.sharding.Mesh(np.array(fxflow.devices()), ("x",))
    rows, whole = fxflow.sharding.PartitionSpec("x"), fxflow.sharding.PartitionSpec()
    where = fxflow.sharding.NamedSharding(mesh, rows)
    count = 4 * len(fxflow.devices())
    x = np.arange(count * 3, dtype=np.float32).reshape(count, 3)
    ids = np.arange(count, dtype=np.int32) % 3

    def sums(x: Any, ids: Any) -> Any:
        return fxflow.lax.psum(segment_sum(x, ids, segments=3, rows=2), "x")

    f = fxflow.shard_map(sums, mesh=mesh, in_specs=(rows, rows), out_specs=whole)
    given = fxflow.device_put(x, where), fxflow.device_put(ids, where)
    assert is_native(f, *given)
    expected = np.zeros((3, 3), np.float32)
    np.add.at(expected, ids, x)
    np.testing.assert_allclose(fxflow.jit(f)(*given), expected)

    def slope(x: Any, ids: Any) -> Any:
        return fxflow.grad(lambda x: fnp.sum(f(x, ids) ** 2))(x)

    assert is_native(slope, *given)
    np.testing.assert_allclose(fxflow.jit(slope)(*given), 2 * expected[ids])


def test_kernels_that_the_partitioner_divides_are_operations_on_arrays() -> None:
    mesh = fxflow.sharding.Mesh(np.array(fxflow.devices()), ("x",))
    where = fxflow.sharding.NamedSharding(mesh, fxflow.sharding.PartitionSpec(None))
    given = [fxflow.device_put(x, where) for x in arrays()]
    if len(fxflow.devices()) > 1:
        assert not is_native(flash, *given)
    np.testing.assert_allclose(
        fxflow.jit(flash)(*given), flash(*arrays()), rtol=1e-4, atol=1e-5
    )
