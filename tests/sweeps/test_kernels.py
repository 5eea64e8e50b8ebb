"""Random kernels: compiled, as operations on arrays, and by NumPy they agree."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax

FLOATS = ("float32", "float16", "bfloat16", "float64")
KINDS = (*FLOATS, "int32", "int8", "uint16", "bool")


def random_kernel(seed, kind):
    """Returns a kernel of two operands, and the operands."""
    rng = np.random.default_rng(seed)
    n, d, k = (int(v) for v in rng.integers(1, 12, 3))
    rows, columns = (int(v) for v in rng.integers(1, 6, 2))
    shape = [(n, d), (d, k)]
    if kind == "bool":
        x, w = (rng.random(s) < 0.5 for s in shape)
    elif kind in FLOATS:
        x, w = (fnp.asarray(rng.uniform(-1, 1, s), kind) for s in shape)
    else:
        x, w = (rng.integers(0, 5, s).astype(kind) for s in shape)
    form = ("elementwise", "product", "reduction", "sum", "row")[seed % 5]
    if form == "elementwise":

        def body(x, w, o):
            v = x[...]
            o[...] = v ^ fnp.any(w[...]) if kind == "bool" else v * v + w[0, 0]

        made = kernels.kernel(f"n:{rows} d, d k -> n:{rows} d", out=lambda x, w: x)
    elif form == "product":

        def body(x, w, o):
            if kind in FLOATS:
                o[...] = fnp.tanh(kernels.dot(x[...], w[...])).astype(o.dtype)
            else:
                o[...] = fnp.any(w[...], 0)[None, :].astype(o.dtype) | fnp.zeros(
                    o.shape, o.dtype
                )

        out = lambda x, w: kernels.like(x, shape=(x.shape[0], w.shape[1]))
        made = kernels.kernel(
            f"n:{rows} d, d k:{columns} -> n:{rows} k:{columns}", out=out
        )
    elif form == "reduction":

        def body(x, w, o):
            o[...] = fnp.max(x[...], 1)

        out = lambda x, w: kernels.like(x, shape=x.shape[:1])
        made = kernels.kernel(f"n:{rows} d, d k -> n:{rows}", out=out)
    elif form == "sum":

        def body(x, w, o):
            inside = kernels.program_id(0) * rows + fnp.arange(x.shape[0]) < n
            v = fnp.where(inside[:, None], x[...] * x[...], x.dtype.type(0))
            o[...] = fnp.sum(v, 0).astype(o.dtype)

        out = lambda x, w: kernels.like(
            x, "int32" if kind == "bool" else None, shape=x.shape[1:]
        )
        made = kernels.kernel(f"n:{rows} d, d k -> d", out=out, sums="n")
    else:

        def body(x, w, o):
            @kernels.loop(0, x.shape[0])
            def _(i):
                o[i] = x[i]

            @kernels.when(kernels.program_id(0) > 0)
            def _():
                o[0] = x[0] | x[0] if kind not in FLOATS else x[0] + x[0]

        made = kernels.kernel(f"n:{rows} d, d k -> n:{rows} d", out=lambda x, w: x)
    return made(body), x, w


def close(a, b, kind):
    """Checks that two results agree as far as the dtype goes."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.shape == b.shape
    if kind not in FLOATS:
        np.testing.assert_array_equal(a, b)
        return
    tolerance = {"float64": 1e-9, "float32": 1e-4}.get(kind, 4e-2)
    np.testing.assert_allclose(
        a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance
    )


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
