"""Running combinations along axes whose length only a call says."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export, lax
from fxflow.lax.recurrence import tree_scan


def exported(function, *specs, constraints=(), platforms=None):
    scope = export.SymbolicScope(constraints)
    structs = [
        fxflow.ShapeDtypeStruct(export.symbolic_shape(s, scope=scope), "float32")
        for s in specs
    ]
    return export.export(fxflow.jit(function), platforms=platforms)(*structs)


def affine(first, then):
    """The composition of maps `y -> a y + u`, which does not commute."""
    return first[0] * then[0], first[1] * then[0] + then[1]


def sums_on_accelerators(x, reverse):
    total = lambda a, b: [lax.add(a[0], b[0])]
    return tree_scan(total, [x], 1, reverse)[0]


@pytest.mark.parametrize("constraints", [(), ("n <= 9",)], ids=["open", "bound"])
def test_all_combinations(constraints):
    made = exported(
        lambda a, u: lax.associative_scan(affine, (a, u), axis=1)[1],
        *("2, n", "2, n"),
        constraints=constraints,
    )
    for n in (1, 5, 9):
        a, u = np.random.default_rng(n).normal(size=(2, 2, n)).astype("f4")
        want = u.copy()
        for k in range(1, n):
            want[:, k] += a[:, k] * want[:, k - 1]
        np.testing.assert_allclose(made.call(a, u), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_accelerators(reverse):
    made = exported(lambda x: sums_on_accelerators(x, reverse), "2, n")
    x = np.arange(14, dtype="f4").reshape(2, 7)
    flip = (slice(None), slice(None, None, -1 if reverse else None))
    np.testing.assert_array_equal(made.call(x), np.cumsum(x[flip], 1)[flip])


def test_its_derivative():
    def loss(a, u):
        return (lax.associative_scan(affine, (a, u))[1] ** 2).sum()

    a, u = np.random.default_rng(0).normal(size=(2, 6)).astype("f4")
    found = exported(fxflow.grad(loss), "n", "n").call(a, u)
    np.testing.assert_allclose(found, fxflow.grad(loss)(a, u), rtol=1e-4)


def test_no_window_of_symbolic_size():
    def running(x):
        return fnp.cumsum(x, 0), lax.cummax(x, axis=1)

    made = exported(running, "n, t", platforms=("cuda", "tpu"))
    assert "reduce_window" not in str(made.mlir_module())
