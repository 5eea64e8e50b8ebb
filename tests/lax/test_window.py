"""Windowed reductions."""

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.linearize import linearize_flat
from fxflow.core.interpreters.transpose import backward
from fxflow.core.ir.staging import trace_flat
from tests.conformance.harness import array

X = np.float32([[1, 5, 2, 5], [7, 0, 3, 3]])


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: lax.reduce_window(X, 0.0, lax.add, (1, 2)), X[:, 1:] + X[:, :-1]),
        (
            lambda: lax.reduce_window(X, -np.inf, lax.max, (2, 2), (2, 2)),
            [[7, 5]],
        ),
        (
            lambda: lax.reduce_window(X, np.inf, lax.min, (1, 3), padding="SAME"),
            [[1, 1, 2, 2], [0, 0, 0, 3]],
        ),
        (
            lambda: lax.reduce_window(X, 1.0, lax.mul, (2, 1)),
            [X[0] * X[1]],
        ),
    ],
)
def test_windows_are_reduced_as_by_hand(got, expected) -> None:
    np.testing.assert_array_equal(got(), expected)


@pytest.mark.parametrize(
    ("init", "computation", "name"),
    [
        (0.0, lax.add, "reduce_window_sum"),
        (-np.inf, lax.max, "reduce_window_max"),
        (np.inf, lax.min, "reduce_window_min"),
        (0.0, lax.max, "reduce_window"),
        (1.0, lax.mul, "reduce_window"),
    ],
)
def test_named_ones_are_found(init: float, computation, name: str) -> None:
    graph, _ = trace_flat(
        lambda x: [lax.reduce_window(x, init, computation, (1, 2))],
        [Aval((2, 4), np.dtype("f4"))],
    )
    assert [node.primitive.name for node in graph.nodes] == [name]


@pytest.mark.parametrize("size", [2, 3])
def test_the_first_of_equals_gets_the_derivative(size: int) -> None:
    x = array(np.ones((size, size), "f4"))
    lin = linearize_flat(
        lambda v: [lax.reduce_window(v, -np.inf, lax.max, (size, size))], [x]
    )
    (ct,) = backward(
        lin.nodes, lin.inputs, lin.tangents, [array(np.ones((1, 1), "f4"))]
    )
    expected = np.zeros((size, size))
    expected[0, 0] = 1
    np.testing.assert_array_equal(ct, expected)


@pytest.mark.parametrize("padding", [(0, 0), (1, 2), (-1, 1)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize(
    "computation",
    [lambda a, b: a * b, lambda a, b: a - b, lambda a, b: a + b + a * b],
    ids=["mul", "sub", "both"],
)
def test_derivatives_of_a_computation_and_its_start(
    computation, dilations, padding
) -> None:
    """What is started with counts once, wherever there is padding."""
    rng = np.random.default_rng(0)

    def f(x, start):
        return lax.reduce_window(
            x, start, computation, (3,), (1,), [padding], dilations[:1], dilations[1:]
        )

    with fxflow.config.override(x64=True):
        x, dx = rng.uniform(0.5, 2, 5), rng.normal(size=5)
        start, ds = np.float64(1.5), np.float64(0.7)
        value, slope = fxflow.jvp(f, (x, start), (dx, ds))
        np.testing.assert_allclose(value, f(x, start), 1e-12)
        above, below = (f(x + h * dx, start + h * ds) for h in (1e-6, -1e-6))
        np.testing.assert_allclose(slope, (above - below) / 2e-6, 1e-7, 1e-7)
        ct = rng.normal(size=slope.shape)
        by_x, by_start = fxflow.jit(lambda *a: fxflow.vjp(f, *a)[1](ct))(x, start)
        total = np.vdot(by_x, dx) + float(by_start) * ds
        np.testing.assert_allclose(total, np.vdot(ct, slope), 1e-10)


def test_starts_may_be_mapped() -> None:
    x = np.arange(1, 5, dtype=np.float32)
    run = lambda s: lax.reduce_window(x, s, lambda a, b: a * b, (2,), padding=[(0, 1)])
    starts = np.array([1.0, 1.5], np.float32)
    want = [run(s).tolist() for s in starts]
    assert fxflow.vmap(run)(starts).tolist() == want
    assert want[1] == [3.0, 9.0, 18.0, 6.0]
