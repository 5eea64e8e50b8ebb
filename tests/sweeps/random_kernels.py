"""Random kernels, and when two results of one agree."""

from __future__ import annotations

import numpy as np

import fxflow.numpy as fnp
from fxflow import kernels

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
