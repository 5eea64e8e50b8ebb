"""`kernel_call` under transformations; values and rules are the conformance suite's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.errors import ArgumentError
from tests.lax.kernels.samples import arrays, attention, flash, params_of


def test_a_gradient_is_a_kernel_whose_sums_follow() -> None:
    given = arrays()

    def loss(*args: Any) -> Any:
        return fnp.sum(fnp.sin(flash(*args)))

    graph = fxflow.make_graph(fxflow.grad(loss, argnums=(0, 1, 2)))(*given).graph
    derived = [n for n in graph.nodes if n.primitive.name == "kernel_call"][-1]
    # Queries are a parallel axis of their own cotangent, and summed in the others.
    assert derived.params["kinds"] == ("parallel", "sum")
    found = fxflow.grad(loss, argnums=(0, 1, 2))(*given)
    expected = fxflow.grad(
        lambda *args: fnp.sum(fnp.sin(attention(*args))), argnums=(0, 1, 2)
    )(*given)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_second_derivatives_and_forward_mode() -> None:
    q, k, v = arrays()

    def f(of: Any) -> Any:
        return lambda q: fnp.sum(fnp.sin(of(q, k, v)))

    found = fxflow.jvp(fxflow.grad(f(flash)), (q,), (v,))
    expected = fxflow.jvp(fxflow.grad(f(attention)), (q,), (v,))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_vectorized_under_jit_in_a_scan() -> None:
    q, k, v = arrays(3)

    @fxflow.jit
    def f(q: Any, k: Any, v: Any) -> Any:
        def step(total: Any, row: Any) -> Any:
            out = fxflow.vmap(flash, in_axes=(0, None, 0))(row, k[0], v)
            return total + fnp.sum(out), out

        return lax.scan(step, fnp.zeros(()), fnp.stack([q, 2 * q]))

    total, found = f(q, k, v)
    expected = [[attention(s * q[i], k[0], v[i]) for i in range(3)] for s in (1, 2)]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(total, np.sum(expected), rtol=1e-4, atol=1e-4)


def test_gradients_of_a_vectorized_kernel() -> None:
    q, k, v = arrays(2)

    def loss(of: Any) -> Any:
        return lambda k: fnp.sum(fxflow.vmap(of, in_axes=(0, None, 0))(q, k, v) ** 2)

    found, expected = (fxflow.grad(loss(of))(k[0]) for of in (flash, attention))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_in_a_branch_and_under_checkpoint() -> None:
    given = arrays()

    @fxflow.jit
    def f(flag: Any, *args: Any) -> Any:
        return lax.cond(flag, fxflow.checkpoint(flash), lambda q, k, v: q, *args)

    np.testing.assert_allclose(f(True, *given), attention(*given), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(f(False, *given), given[0])
    slope = fxflow.grad(lambda q: fnp.sum(f(True, q, *given[1:])))(given[0])
    expected = fxflow.grad(lambda q: fnp.sum(attention(q, *given[1:])))(given[0])
    np.testing.assert_allclose(slope, expected, rtol=1e-3, atol=1e-5)


def test_over_devices() -> None:
    mesh = fxflow.make_mesh((2,), ("x",))
    spec = fxflow.P("x")
    given = arrays()
    found = fxflow.shard_map(flash, mesh=mesh, in_specs=(spec,) * 3, out_specs=spec)(
        *given
    )
    np.testing.assert_allclose(found, attention(*given), rtol=1e-4, atol=1e-5)
    sharding = fxflow.NamedSharding(mesh, spec)
    divided = [fxflow.device_put(x, sharding) for x in given]
    np.testing.assert_allclose(
        fxflow.jit(flash)(*divided), attention(*given), rtol=1e-4, atol=1e-5
    )


def test_aliases_start_with_an_operand_s_contents() -> None:
    def body(x: Any, old: Any, o: Any) -> None:
        o[0] = x[0]

    spec = kernels.BlockSpec((2,), lambda i: i)
    f = kernels.call(body, fnp.ones(4), grid=2, in_specs=[spec] * 2, out_specs=spec,
                     aliases={1: 0})  # fmt: skip
    x, old = fnp.arange(4.0), fnp.full(4, 9.0)
    np.testing.assert_array_equal(f(x, old), [0, 9, 2, 9])
    _, slopes = fxflow.vjp(f, x, old)
    for ours, theirs in zip(slopes(fnp.ones(4)), ([1, 0, 1, 0], [0, 1, 0, 1]),
                            strict=True):  # fmt: skip
        np.testing.assert_array_equal(ours, theirs)
    rows = fxflow.vmap(f, in_axes=(0, None))(fnp.stack([x, 2 * x]), old)
    np.testing.assert_array_equal(rows, [[0, 9, 2, 9], [0, 9, 4, 9]])


def test_captured_arrays_are_operands() -> None:
    table = fnp.arange(6.0).reshape(2, 3)

    def f(table: Any, x: Any) -> Any:
        def body(x: Any, o: Any) -> None:
            o[...] = x[...] * table[1]

        return kernels.call(body, kernels.like(x))(x)

    x = fnp.ones(3)
    np.testing.assert_array_equal(f(table, x), [3, 4, 5])
    np.testing.assert_array_equal(
        fxflow.grad(lambda t: fnp.sum(f(t, x)))(table), [[0, 0, 0], [1, 1, 1]]
    )
    found = fxflow.vmap(f, in_axes=(0, None))(fnp.stack([table, 2 * table]), x)
    np.testing.assert_array_equal(found, [[3, 4, 5], [6, 8, 10]])


def test_costs_count_all_programs() -> None:
    x = np.ones((8, 4), np.float32)

    @kernels.kernel("i:2 v -> i:2 v", out=lambda x: x)
    def double(x: Any, y: Any) -> None:
        y[...] = x[...] * 2

    node = next(
        n for n in fxflow.make_graph(double)(x).graph.nodes if n.primitive.multi
    )
    cost = node.primitive.cost(*(a.aval for a in node.inputs), **node.params)
    assert cost == {"flops": 32.0, "bytes": 256.0}
    assert params_of(double, x).num_programs == 4


def test_programs_cannot_communicate() -> None:
    def body(x: Any, o: Any) -> None:
        o[...] = lax.psum(x[...], "i")

    def f(x: Any) -> Any:
        return kernels.call(body, kernels.like(x))(x)

    with pytest.raises(ArgumentError, match="cannot communicate"):
        fxflow.vmap(f, axis_name="i")(fnp.ones((2, 3)))
