"""Elementwise functions in blocks of similar elements."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.scipy.special._blocks import BLOCK, in_blocks, where_needed

COUNTS = [1, BLOCK, BLOCK + 1, 3 * BLOCK - 1]


def powers(x: Any, n: Any) -> Any:
    """Returns x multiplied n times with itself, and how often its block did so."""

    def step(state: Any) -> Any:
        k, value = state
        return k + 1, fnp.where(k < n, value * x, value)

    top = fnp.max(n)
    start = (fnp.zeros((), n.dtype), fnp.ones_like(x))
    return lax.while_loop(lambda s: s[0] < top, step, start)[1], top + 0 * n


def operands(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    n = np.float32(rng.permutation(np.arange(count) % 50))
    return np.float32(rng.uniform(0.5, 1.0, count)), n


@pytest.mark.parametrize("count", COUNTS)
def test_elements_return_to_their_places(count: int) -> None:
    x, n = operands(count)
    run = fxflow.jit(lambda x, n: in_blocks(powers, lambda x, n: n, x, n))
    value, steps = run(x, n)
    np.testing.assert_allclose(value, x**n, 1e-5)
    # A block does not run longer than its last element needs.
    assert np.all(np.asarray(steps) >= n)
    if count > BLOCK:
        assert np.min(steps) < 50 * BLOCK / count + 1


def test_derivatives_and_batches() -> None:
    x, n = (a.reshape(2, -1) for a in operands(2 * BLOCK))
    function = lambda x, n: in_blocks(powers, lambda x, n: n, x, n)[0]
    slope = fxflow.jvp(lambda x: function(x, n), (x,), (np.ones_like(x),))[1]
    np.testing.assert_allclose(slope, n * x ** (n - 1), 1e-4)
    np.testing.assert_allclose(fxflow.vmap(function)(x, n), x**n, 1e-5)


def test_divided_arrays_stay_divided() -> None:
    """A program for several devices would collect all elements to sort them."""
    mesh = fxflow.make_mesh((2,), ("x",))
    x, n = operands(2 * BLOCK)
    divided = fxflow.NamedSharding(mesh, fxflow.P("x"))
    placed = [fxflow.device_put(a, divided) for a in (x, n)]
    function = fxflow.jit(lambda x, n: in_blocks(powers, lambda x, n: n, x, n)[0])
    assert "all-gather" not in function.lower(*placed).compile().as_text()
    found = function(*placed)
    assert found.sharding == divided
    np.testing.assert_allclose(found, x**n, 1e-5)


def test_methods_run_where_needed() -> None:
    x = np.float32([1, 4, 9])

    def root(x: Any) -> tuple[Any]:
        return (lax.sqrt(x),)

    def of(mask: Any) -> Any:
        (out,) = where_needed(mask, root, 1, (x, 16.0))
        return out

    some = np.array([True, False, True])
    assert fxflow.jit(of)(some).tolist() == [1, 4, 3]
    assert fxflow.jit(of)(np.zeros(3, bool)).tolist() == [0, 0, 0]
