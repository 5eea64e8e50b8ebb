"""Random kernels: compiled, as operations on arrays, and by NumPy they agree."""

from __future__ import annotations

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from tests.sweeps.random_kernels import FLOATS, KINDS, close, random_kernel


def forms(function, *args, kind):
    """Compares the ways to run a function; `check` runs it by NumPy."""
    compiled = fxflow.jit(function)(*args)
    with fxflow.config.override(passes="none"):
        plain = fxflow.jit(lambda *given: function(*given))(*args)
    close(compiled, plain, kind)
    if kind in FLOATS:
        loose = 1e-4 if kind in ("float32", "float64") else 4e-2
        kernels.check(function, *args, rtol=loose, atol=loose)
    else:
        kernels.check(function, *args)
    return compiled


def compare(seed, kind):
    """Compares a random kernel, and what transformations make of it."""
    f, x, w = random_kernel(seed, kind)
    expected = forms(f, x, w, kind=kind)
    xs = fnp.stack([x, x[::-1]], 1)
    mapped = lambda xs, w: fxflow.vmap(f, in_axes=(1, None), out_axes=-1)(xs, w)
    got = forms(mapped, xs, w, kind=kind)
    close(got[..., 0], expected, kind)
    close(
        lax.scan(lambda c, v: (c, f(v, w)), 0, fnp.stack([x, x]))[1][1], expected, kind
    )
    close(fxflow.jit(lambda x, w: lax.cond(True, f, f, x, w))(x, w), expected, kind)
    if kind not in FLOATS:
        return
    loss = lambda x, w: fnp.sum(f(x, w).astype("float32") ** 2)
    slope = fxflow.grad(loss)
    got = forms(slope, x, w, kind=kind)
    close(fxflow.jit(fxflow.grad(fxflow.checkpoint(loss)))(x, w), got, kind)
    along = lambda x, w: fxflow.grad(
        lambda x: fnp.sum(slope(x, w).astype("float32") ** 2)
    )(x)
    forms(along, x, w, kind=kind)
    tangent = fxflow.jvp(lambda x: loss(x, w), (x,), (x,))[1]
    dot = fnp.sum(got.astype("float32") * x.astype("float32"))
    close(tangent, dot, "float32" if kind in ("float32", "float64") else kind)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["float32", "int32"])
def test_random_kernels_agree_in_all_forms(seed, kind):
    compare(seed, kind)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5, 10))
@pytest.mark.parametrize("kind", KINDS)
def test_more_random_kernels_agree_in_all_forms(seed, kind):
    with fxflow.config.override(x64=kind == "float64"):
        compare(seed, kind)
