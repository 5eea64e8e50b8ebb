"""A `shard_map` and its gradient become one."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, config, make_graph, nn
from fxflow.lax import psum
from fxflow.transforms.passes.joining import join_maps

WHOLE = P()
MESH = fxflow.make_mesh((4,), ("d",))
RNG = np.random.default_rng(0)
X = fnp.asarray(RNG.normal(size=(8, 6)).astype(np.float32))
PARAMS = {
    "scale": fnp.asarray(RNG.normal(size=6).astype(np.float32)),
    "bias": fnp.asarray(RNG.normal(size=6).astype(np.float32)),
}


def part(params: Any, x: Any) -> Any:
    return psum(fnp.sum(nn.softmax(nn.layer_norm(params, x)) ** 2), "d")


def plain(params: Any, x: Any) -> Any:
    return fnp.sum(nn.softmax(nn.layer_norm(params, x)) ** 2)


def mapped(f: Any = part, outs: Any = WHOLE, check: bool = True) -> Any:
    return fxflow.shard_map(
        f, mesh=MESH, in_specs=(P(), P("d")), out_specs=outs, check=check
    )


def maps(graph: Any) -> int:
    return sum(node.primitive.name == "shard_map" for node in graph.nodes)


def joined(f: Any, *args: Any) -> tuple[int, int]:
    """How many maps there are before and after; the numbers are the same."""
    graph = make_graph(f)(*args).graph
    after = join_maps(graph)
    after.check()
    values = fxflow.tree.leaves(args)
    for a, b in zip(graph.evaluate(*values), after.evaluate(*values), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-5)
    return maps(graph), maps(after)


@pytest.mark.parametrize("check", [True, False])
def test_a_gradient_is_one_map(check: bool) -> None:
    f = mapped(check=check)
    found = fxflow.grad(f, argnums=(0, 1))
    assert joined(found, PARAMS, X) == (2, 1)
    assert joined(fxflow.value_and_grad(f, argnums=(0, 1)), PARAMS, X) == (2, 1)
    expected = fxflow.grad(plain, argnums=(0, 1))(PARAMS, X)
    for a, b in zip(
        *map(fxflow.tree.leaves, (found(PARAMS, X), expected)), strict=True
    ):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)


def test_operations_between_run_before_or_behind() -> None:
    f = mapped(lambda params, x: x * params["scale"], P("d"))

    def slopes(params: Any, x: Any, factor: Any) -> Any:
        out, pull = fxflow.vjp(lambda x: f(params, x), x)
        # The first is needed by the gradient, the second needs the values.
        return pull(fnp.sin(factor) + fnp.ones_like(x)), fnp.cos(out)

    assert joined(slopes, PARAMS, X, fnp.ones(())) == (2, 1)


def test_a_result_that_the_outside_changes_keeps_maps_apart() -> None:
    f = mapped()
    assert joined(fxflow.grad(lambda p, x: fnp.log(f(p, x))), PARAMS, X) == (2, 2)


def test_a_result_that_is_divided_otherwise_keeps_maps_apart() -> None:
    rows = fxflow.shard_map(
        fnp.sin, mesh=MESH, in_specs=P("d"), out_specs=P("d"), check=True
    )
    whole = fxflow.shard_map(
        lambda x: fnp.sum(x, 0), mesh=MESH, in_specs=P(), out_specs=P(), check=True
    )
    assert joined(lambda x: whole(rows(x)), X) == (2, 2)
    assert joined(lambda x: rows(fnp.cos(rows(x))), X) == (2, 2)
    assert joined(lambda x: rows(rows(rows(x))), X) == (3, 1)


def test_compiled_gradients_have_one_kernel_and_no_residuals() -> None:
    pytest.importorskip("llvmlite")
    x = fnp.asarray(RNG.normal(size=(1024, 256)).astype(np.float32))
    params = nn.layer_norm_init(256)
    found = {}
    for passes in ("all", "none"):
        with config.override(passes=passes):
            slopes = fxflow.jit(fxflow.grad(mapped(), argnums=(0, 1)))
            where = fxflow.NamedSharding(MESH, P()), fxflow.NamedSharding(MESH, P("d"))
            args = fxflow.device_put((params, x), where)
            lowered = slopes.lower(*args)
            compiled = lowered.compile()
            found[passes] = compiled(*args)
        if passes == "all":
            assert len(re.findall("fxflow_kernel_", lowered.as_text())) == 1
            used = compiled.memory_analysis()["temp_size_in_bytes"]
            assert used < x.nbytes // MESH.size
    for a, b in zip(*map(fxflow.tree.leaves, found.values()), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)
