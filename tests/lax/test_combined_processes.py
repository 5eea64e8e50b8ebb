"""Small sums over two processes are written as one, and mean the same."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import distributed, lax, pmap
from tests.processes import check_two_processes


def many(x, y, n):
    """Reductions that may be joined, and others that must not be."""
    a = lax.psum(x, "i")
    b = lax.pmax(y, "i")
    c = lax.psum(y + 1, "i")
    d = lax.psum(a * x, "i")  # needs the first
    e = lax.psum(n, "i")
    f = lax.pmax(x, "i")
    g = lax.psum(x + 1j, "i")
    h = lax.psum(x[:0], "i")
    groups = [[0, 3], [1, 2]]
    k = [lax.psum(v, "i", axis_index_groups=groups) for v in (x, y)]
    uneven = [[0, 3, 1], [2]]
    m = [lax.pmax(v, "i", axis_index_groups=uneven) for v in (x, y)]

    def body(carry, v):
        one, two = lax.psum((v, v * v), "i")
        return carry + one, lax.pmin((carry, two), "i")

    loop = lax.scan(body, fnp.zeros(()), x)
    inner = fxflow.jit(lambda u, v: lax.psum((u, v), "i"))(x, y)
    means = lax.pmean({"x": x, "y": y, "n": n}, "i")
    return a, b, c, d, e, f, g, h, k, m, loop, inner, means


def loss(w, x):
    for weights in w:
        x = fnp.tanh(x @ weights)
    return fnp.sum(x * x)


def step(w, x):
    value, gradient = fxflow.value_and_grad(loss)(w, x)
    return lax.pmean((value, gradient), "i")


def run() -> None:
    """What each process runs: two of the four slices are its own."""
    distributed.initialize()
    first = 2 * fxflow.process_index()
    own = slice(first, first + 2)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4, 3)).astype(np.float32)
    y = rng.normal(size=(4, 2, 3)).astype(np.float32)
    n = rng.integers(0, 9, (4, 2), np.int32)
    f = pmap(many, "i")
    got = fxflow.tree.leaves(f(x[own], y[own], n[own]))
    meant = fxflow.vmap(many, axis_name="i")(x, y, n)
    for out, want in zip(got, fxflow.tree.leaves(meant), strict=True):
        assert out.dtype == want.dtype
        np.testing.assert_allclose(out, np.asarray(want)[own], rtol=1e-5, atol=1e-5)

    g = pmap(step, "i")
    w = [rng.normal(size=(3, 3)).astype(np.float32) for _ in range(4)]
    copies = [np.stack([v, v]) for v in w]
    text = g.lower(copies, y[own]).as_text()
    assert text.count('"stablehlo.all_reduce"') == 1, text
    value, gradient = g(copies, y[own])
    want, expected = fxflow.value_and_grad(
        lambda w: sum(loss(w, v) for v in y) / 4  # type: ignore[misc]
    )(w)
    np.testing.assert_allclose(value, np.full(2, want), rtol=1e-5)
    for out, mean in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(out[1], mean, rtol=1e-4, atol=1e-5)

    # What is large goes by itself.
    big = [np.ones((2, 2**20 + 1), np.float32)] * 2
    h = pmap(lambda xs: lax.psum(xs, "i"), "i")
    assert h.lower(big).as_text().count('"stablehlo.all_reduce"') == 2
    print("done")


def test_one_process_leaves_it_to_the_compiler():
    x = np.ones((8, 2), np.float32)
    f = pmap(lambda xs: lax.psum(xs, "i"), "i")
    assert f.lower([x, x]).as_text().count('"stablehlo.all_reduce"') == 2


@pytest.mark.slow
def test_two_processes():
    check_two_processes("tests.lax.test_combined_processes")


if __name__ == "__main__":
    run()
