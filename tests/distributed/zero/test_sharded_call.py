"""A function of unsharded arrays gives the same result on pieces as on one device."""

import re

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, lax
from fxflow.distributed.zero.sharded_call import sharded_call
from fxflow.distributed.zero.shards import (
    ShardAxis,
    Sharded,
    is_sharded,
)

COUNT = 4
AXIS = ShardAxis("s", COUNT)


def compiled(function, *args):
    """Returns a jitted function that runs `function` on pieces, and its arguments."""
    mesh = fxflow.make_mesh((COUNT,), ("s",))
    structure = []

    def local(*args):
        cut = fxflow.tree.map(lambda x: AXIS.cut(x) if x.ndim else x, args)
        out = sharded_call(function, AXIS, *cut, name="f")
        leaves, treedef = fxflow.tree.flatten(out, is_sharded)
        structure[:] = [treedef, [is_sharded(x) for x in leaves]]
        return [AXIS.whole(x) for x in leaves]

    mapped = fxflow.shard_map(
        local, mesh=mesh, in_specs=P(), out_specs=P(), check=False
    )
    return fxflow.jit(mapped), structure


def check(function, *args) -> list[bool]:
    """Compares the results; returns which of them are sharded."""
    jitted, structure = compiled(function, *args)
    found = jitted(*args)
    expected = fxflow.tree.leaves(fxflow.jit(function)(*args))
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return structure[1]


X = fnp.asarray(np.random.default_rng(0).standard_normal((3, 5)), fnp.float32)
Y = fnp.asarray(np.random.default_rng(1).standard_normal((3, 5)), fnp.float32)


def test_elementwise_operations_run_on_pieces() -> None:
    def function(x, y, n):
        z = fnp.where(n > 0, fnp.exp(x) * 2 + y / n, 0.0)
        bounded = lax.clamp(-n, x, n)
        return z, bounded, z > 1, (z.reshape(15) * n).astype(fnp.bfloat16), x[None]

    assert check(function, X, Y, fnp.asarray(2.0)) == [True] * 5


def test_reductions_ignore_padding() -> None:
    def function(x):
        one = x - x + 1  # padding becomes 1, too
        return (
            one.sum(),
            (x - 10).max(),
            (x + 10).min(),
            fnp.mean(one, keepdims=True),
            fnp.all(x + 10 > 0),
            fnp.any(x > 100),
            x / fnp.sqrt(fnp.sum(x * x)),
        )

    assert check(function, X) == [False, False, False, True, False, False, True]


def test_operations_on_rows_gather_the_array() -> None:
    def function(x, y):
        rows = x.mean(1, keepdims=True)
        return x - rows, x @ y.T, fnp.sort(x, axis=0), fnp.cumsum(y), x[1, 2], x.prod()

    assert check(function, X, Y) == [True, True, True, True, False, False]


def test_shapes_and_captured_arrays_are_unsharded() -> None:
    weights = fnp.arange(15.0).reshape(3, 5)

    def function(x):
        assert x.shape == (3, 5)
        return x * weights + (x.ndim > 1), fnp.zeros((2, 2)), fnp.full(3, x.sum())

    assert check(function, X) == [True, True, True]


def test_branches_and_calls_run_on_pieces() -> None:
    inner = fxflow.jit(lambda x: (x * 2, x.sum()))

    def function(x, n):
        y, total = inner(x)
        return lax.cond(
            n > 0,
            lambda x, y: (x + y, total, n),
            lambda x, y: (x, x[0, 0], n + 1),
            x,
            y,
        )

    assert check(function, X, fnp.asarray(1.0)) == [True, False, False]
    assert check(function, X, fnp.asarray(-1.0)) == [True, False, False]


def test_scalars_keys_and_loops_are_not_sharded() -> None:
    def function(x, n):
        key = fxflow.random.fold_in(fxflow.random.key(0), n.astype(fnp.int32))
        noise = fxflow.random.normal(key, x.shape)
        looped = lax.fori_loop(0, 3, lambda i, v: v * 2, x)
        return n + 1, x + noise, looped

    assert check(function, X, fnp.asarray(1.0)) == [False, True, True]


def test_elementwise_operations_do_not_communicate() -> None:
    """Adam-like arithmetic with one norm: one sum over the devices, no gather."""
    mesh = fxflow.make_mesh((COUNT,), ("s",))

    def function(x, y):
        norm = fnp.sqrt(fnp.sum(x * x))
        return x / norm + y * 0.9, fnp.sqrt(fnp.square(y) + 1e-8)

    def local(x, y):
        return sharded_call(function, AXIS, x, y, name="f")

    mapped = fxflow.jit(
        fxflow.shard_map(
            local, mesh=mesh, in_specs=P("s"), out_specs=P("s"), check=False
        )
    )
    where = fxflow.NamedSharding(mesh, P("s"))
    x = Sharded(fxflow.ShapeDtypeStruct((16,), fnp.float32, sharding=where), (3, 5))
    text = mapped.lower(x, x).compile().as_text()
    found = re.findall(r" (all-\w+|reduce-scatter)(?:-start)?\(", text)
    assert found == ["all-reduce"]


def test_results_must_be_arrays() -> None:
    with pytest.raises(TypeError, match="f returned"):
        check(lambda x: "text", X)
