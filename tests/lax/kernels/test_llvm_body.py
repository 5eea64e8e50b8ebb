"""Bodies of compiled kernels: against the programs run one by one with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.lax.kernels.host import run_programs
from fxflow.lax.kernels.native import why_not
from tests.lax.kernels.samples import Bodies, called, noting, params_of, same

pytest.importorskip("llvmlite")

X = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)
BODIES: Bodies = {}
body = noting(BODIES, X)


@body(X.T)
def transposed(x: Any, o: Any) -> None:
    o[...] = fnp.sin(x[...]).T + x[...].T


@body(X.reshape(4, 24))
def reshaped(x: Any, o: Any) -> None:
    o[...] = (x[...] * 2).reshape(4, 24)


@body(X.reshape(16, 6))
def reshaped_view(x: Any, o: Any) -> None:
    o[...] = x[...].T.reshape(16, 6)


@body(X[1:5, 2:9:3])
def sliced(x: Any, o: Any) -> None:
    o[...] = (x[...] + 1)[1:5, 2:9:3]


@body()
def reversed_axes(x: Any, o: Any) -> None:
    o[...] = fnp.exp(x[...])[::-1] + x[...][::-1, ::-1]


@body(np.zeros((8, 20), np.float32))
def padded(x: Any, o: Any) -> None:
    o[...] = fnp.pad(fnp.exp(x[...]), ((1, 1), (0, 4)), constant_values=3.0)


@body(X[:5])
def cropped(x: Any, o: Any) -> None:
    o[...] = lax.pad(x[...] * 3, np.float32(0), [(0, -1, 0), (0, 0, 0)])


@body(np.zeros((12, 16), np.float32))
def joined(x: Any, o: Any) -> None:
    o[...] = fnp.concatenate([fnp.exp(x[...]), -x[...]], 0)


@body()
def counted(x: Any, o: Any) -> None:
    o[...] = x[...] * lax.broadcasted_iota("int32", (6, 16), 1) + fnp.arange(16.0)


@body(np.zeros((3, 6, 16), np.float32))
def broadcast(x: Any, o: Any) -> None:
    o[...] = fnp.broadcast_to(fnp.cos(x[...]), (3, 6, 16)) * 2


@body(X[:2, :4])
def moved_slices(x: Any, o: Any) -> None:
    at = fnp.int32(3) + kernels.program_id(0)
    part = lax.dynamic_slice(x[...] * 2, (at, at), (2, 4))
    o[...] = part + lax.dynamic_slice(x[...], (at + 90, at), (2, 4))


@body()
def updated_slices(x: Any, o: Any) -> None:
    at = fnp.int32(4) + kernels.program_id(0)
    o[...] = lax.dynamic_update_slice(x[...], fnp.ones((3, 2)), (at, at))


@body((X[:3], X[:, :2], X[0]))
def picked(x: Any, rows: Any, columns: Any, one: Any) -> None:
    at = (fnp.arange(3) * 5) % 7 - 1
    rows[...] = fnp.sin(x[...])[at]
    columns[...] = x[...][:, fnp.arange(2) * 9]
    one[...] = x[...][fnp.abs(at[1:2])][0]


@body((X[:, 0].astype(np.int32), X[0].astype(np.int32), X[0, 0].astype(np.int32)))
def largest(x: Any, a: Any, b: Any, c: Any) -> None:
    v = fnp.round(x[...] * 2)
    a[...] = fnp.argmax(v, 1)
    b[...] = fnp.argmin(fnp.where(v > 2, fnp.nan, v), 0)
    c[...] = fnp.argmax(v.ravel()) + fnp.argmax(v > 1, 1).sum()


# -- reductions ------------------------------------------------------------------------


@body((X[:, 0], X[0], X[0, 0], X[:, 0] > 0, X[0] > 0))
def reductions(x: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    v = x[...]
    a[...] = fnp.sum(v * v, 1) + fnp.max(v, 1) - fnp.min(fnp.exp(v), 1)
    b[...] = fnp.sum(v * v, 0) + fnp.max(v, 0) - fnp.min(fnp.exp(v), 0)
    c[...] = fnp.prod(v) + fnp.sum(v) + fnp.max(v - 1)
    d[...] = fnp.all(v > -1, 1)
    e[...] = fnp.any(v > 1, 0)


@body((X[:, 0].astype(np.int32), X[0].astype(np.int32)))
def integer_reductions(x: Any, a: Any, b: Any) -> None:
    v = (x[...] * 10).astype("int32")
    a[...] = fnp.sum(v, 1) + fnp.max(v, 1) - fnp.min(v, 1)
    b[...] = fnp.sum(v, 0) * fnp.prod(v, 0)


@body((X[:, 0], X[0]))
def nan_is_the_largest(x: Any, a: Any, b: Any) -> None:
    v = fnp.where(x[...] > 1, fnp.nan, x[...])
    a[...], b[...] = fnp.max(v, 1), fnp.min(v, 0)


@body(np.zeros((6, 1), np.float32))
def several_axes(x: Any, o: Any) -> None:
    v = (x[...] + 1).reshape(6, 4, 4)
    o[...] = fnp.sum(v, (1, 2))[:, None] + fnp.sum(v, (0, 2)).sum()


# -- products --------------------------------------------------------------------------


@body(np.zeros((6, 6), np.float32))
def rows_by_rows(x: Any, o: Any) -> None:
    o[...] = kernels.dot(x[...], x[...].T)


@body(np.zeros((16, 16), np.float32))
def columns_by_columns(x: Any, o: Any) -> None:
    o[...] = kernels.dot(fnp.tanh(x[...]).T, x[...] + 1)


@body(np.zeros((6, 40), np.float32))
def wide_products(x: Any, o: Any) -> None:
    right = fnp.concatenate([x[...], x[...], x[:4, :8].reshape(2, 16), x[...]], 0)
    o[...] = kernels.dot(x[...], fnp.concatenate([right, right], 0).T)


@body(np.zeros((6, 6), np.float32))
def half_precision_products(x: Any, o: Any) -> None:
    v = x[...].astype("bfloat16")
    o[...] = kernels.dot(v, v.T)


# -- references ------------------------------------------------------------------------


@pytest.mark.parametrize("name", BODIES)
def test_a_compiled_body_gives_what_numpy_gives(name: str) -> None:
    same(called(*BODIES[name]), X)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int16", "bool"])
def test_dtypes_in_memory(dtype: str) -> None:
    x = np.asarray(fnp.asarray(X > 0 if dtype == "bool" else X * 5).astype(dtype))

    def copied(x: Any, o: Any, total: Any) -> None:
        o[...] = x[...].T
        total[...] = x[...][:, 3]

    same(kernels.call(copied, (kernels.like(x.T), kernels.like(x[:, 0]))), x)
    if dtype != "bool":

        def summed(x: Any, o: Any) -> None:
            o[...] = (fnp.sum(x[...], 1) * 2).astype(dtype)

        same(kernels.call(summed, kernels.like(x[:, 0])), x, tolerance=2e-2)


UNKNOWN: dict[str, tuple[Callable[..., Any], str]] = {
    "sort": (lambda x, o: o.set(fnp.sort(x[...])), "sort"),
    "complex": (lambda x, o: o.set(fnp.real(x[...] + 1j)), "complex64"),
    "indices": (lambda x, o: o.set(x[fnp.arange(6) // 2]), "array of indices"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_other_bodies_are_not_compiled(name: str) -> None:
    function, why = UNKNOWN[name]
    f = kernels.call(function, kernels.like(X))
    p = params_of(f, X)
    assert why in why_not(p, [fxflow.typeof(X)])
    (expected,) = run_programs(p, [X])
    np.testing.assert_allclose(f(X), expected, rtol=1e-6)
