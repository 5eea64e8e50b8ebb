"""Reductions by any computation."""

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.conformance.harness import array

X = np.arange(6, dtype="f4").reshape(2, 3)
Y = array(X[0])


@pytest.mark.parametrize(
    ("computation", "init", "name"),
    [
        (lax.add, 0.0, "reduce_sum"),
        (lax.mul, 1.0, "reduce_prod"),
        (lax.max, -np.inf, "reduce_max"),
        (lambda a, b: lax.max(b, a), -np.inf, "reduce_max"),
        (lax.min, np.inf, "reduce_min"),
        (lax.add, 1.0, "reduce"),
        (lambda a, b: lax.add(a, a), 0.0, "reduce"),
    ],
)
def test_named_ones_are_found(computation, init: float, name: str) -> None:
    def function(x):
        return [lax.reduce(x, init, computation, (0,))]

    graph, _ = trace_flat(function, [Aval((2, 3), np.dtype("f4"))])
    assert [node.primitive.name for node in graph.nodes] == [name]


def test_a_pytree_is_reduced_at_once() -> None:
    out = lax.reduce(
        {"a": X, "b": X},
        {"a": 0.0, "b": np.float32(1)},
        lambda x, y: {"a": lax.add(x["a"], y["a"]), "b": lax.mul(x["b"], y["b"])},
        (1,),
    )
    np.testing.assert_array_equal(out["a"], X.sum(1))
    np.testing.assert_array_equal(out["b"], X.prod(1))


def test_an_initial_value_other_than_the_identity_counts() -> None:
    np.testing.assert_array_equal(lax.reduce(X, 1.0, lax.add, (0, 1)), 16)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.reduce(X, (0.0,), lax.add, (0,)), ArgumentError, "one structure"),
        (lambda: lax.reduce((), (), lax.add, (0,)), ArgumentError, "at least one"),
        (
            lambda: lax.reduce((X, X[0]), (0.0, 0.0), lax.add, (0,)),
            ShapeError,
            "one shape",
        ),
        (lambda: lax.reduce(X, X, lax.add, (0,)), ShapeError, "must be 0-d"),
        (
            lambda: lax.reduce(X, np.int32(0), lax.add, (0,)),
            DtypeError,
            "value i32",
        ),
        (
            lambda: lax.reduce(X, 0.0, lambda a, b: (a, b), (0,)),
            ArgumentError,
            "must return the structure",
        ),
        (
            lambda: lax.reduce(X, 0.0, lambda a, b: lax.eq(a, b), (0,)),
            DtypeError,
            r"types it takes, f32\[\], got bool\[\]",
        ),
        (
            lambda: lax.reduce(X, 0.0, lambda a, b: lax.dot(Y, Y), (0,)),
            ArgumentError,
            "may not capture arrays",
        ),
        (lambda: lax.reduce("x", 0.0, lax.add, (0,)), ArgumentError, "not an array"),
    ],
)
def test_operands_and_functions_that_do_not_fit_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_over_several_devices():
    mesh = fxflow.make_mesh((4,), ("x",))
    numbers = np.arange(32, dtype=np.float32).reshape(8, 4) % 5
    x = fxflow.device_put(numbers, fxflow.NamedSharding(mesh, fxflow.P("x")))
    closest = lambda a, b: lax.select(lax.abs(a - 3) < lax.abs(b - 3), a, b)
    for operand in (numbers, x):
        got = lax.reduce(operand, np.float32(9), closest, (0,))
        assert got.tolist() == [3.0] * 4
