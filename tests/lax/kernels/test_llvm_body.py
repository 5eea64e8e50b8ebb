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
from tests.lax.kernels.samples import params_of

pytest.importorskip("llvmlite")

X = np.random.default_rng(0).normal(size=(6, 16)).astype(np.float32)
BODIES: dict[str, tuple[Callable[..., Any], Any]] = {}


def body(out: Any = X) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Notes a body of `X`, and a result of the type of `out`."""

    def note(function: Callable[..., Any]) -> Callable[..., Any]:
        BODIES[function.__name__] = function, out
        return function

    return note


def same(f: Any, *args: Any, tolerance: float = 2e-6) -> None:
    """Checks that a kernel is compiled, and gives what NumPy gives."""
    args = tuple(fnp.asarray(a, a.dtype) for a in args)
    p = params_of(f, *args)
    assert why_not(p, [a.aval for a in args]) == ""
    expected = run_programs(p, args)
    found = fxflow.tree.leaves(fxflow.jit(f)(*args))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(
            np.asarray(ours, np.float64), np.asarray(theirs, np.float64),
            tolerance, tolerance,
        )  # fmt: skip


# -- moving elements -------------------------------------------------------------------


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


@body()
def read_after_write(x: Any, o: Any) -> None:
    o[...] = x[...]
    before = o[...]
    o[...] = o[...] * 2
    o[1:3, ::2] += before[1:3, ::2]
    o[0] = before[5]
    fxflow.ref.addupdate(o, (4, slice(2, 6)), before[4, 2:6])


@body()
def swapped(x: Any, o: Any) -> None:
    cell = fxflow.new_ref(x[...] * 2)
    old = fxflow.ref.swap(cell, (slice(0, 2),), fnp.zeros((2, 16)))
    o[...] = cell[...]
    o[2:4] += old


@body()
def indices_are_wrapped_and_clamped(x: Any, o: Any) -> None:
    o[...] = x[...]

    @kernels.loop(0, 9)
    def _(i: Any) -> None:
        # From the end, and behind it: reads are clamped, writes are dropped.
        o[i] = x[-1 - i % 6]
        o[2, i + 9] = x[i, 3]


@body()
def slices_behind_the_end(x: Any, o: Any) -> None:
    o[...] = x[...]
    start = kernels.program_id(0) + 4
    o[kernels.ds(start, 4)] = x[kernels.ds(start - 1, 4)] * 2
    o[0, kernels.ds(start + 7, 8)] = x[1, kernels.ds(start + 5, 8)]
    o[:2, kernels.ds(14, 4)] = x[2:4, kernels.ds(13, 4)]


# -- control flow ----------------------------------------------------------------------


@body((X, X[0], np.zeros((5, 16), np.float32)))
def loops(x: Any, o: Any, last: Any, rows: Any) -> None:
    def step(carry: Any, i: Any) -> Any:
        a, b, n = carry
        # Each takes the place of the other, and rows of one are read in the other.
        return (b + a[0], a * 0.5, n + 1), b[n % 6]

    start = (x[...], fnp.sin(x[...]), fnp.int32(0))
    (a, b, n), ys = lax.scan(step, start, fnp.arange(5))
    o[...] = a + b * n
    last[...] = a[-1]
    rows[...] = ys


@body()
def backward_loops(x: Any, o: Any) -> None:
    def step(total: Any, row: Any) -> Any:
        return total * 0.5 + row, total

    _, ys = lax.scan(step, fnp.zeros(16), x[...], reverse=True)
    o[...] = ys


@body()
def loops_until(x: Any, o: Any) -> None:
    def halve(carry: Any) -> Any:
        return carry[0] + 1, carry[1] / 2

    n, v = lax.while_loop(lambda c: fnp.max(c[1]) > 0.1, halve, (0, x[...]))
    o[...] = v + n


@body()
def branches(x: Any, o: Any) -> None:
    v = x[...]
    up = lax.cond(v[0, 0] > 0, lambda v: v + 1, lambda v: v * v, v)
    chosen = lax.switch(
        kernels.program_id(0) + 1, [lambda v: v, lambda v: -v, fnp.exp], up
    )
    o[...] = chosen

    @kernels.when(v[0, 1] < 0)
    def _() -> None:
        o[2] = v[3]


@pytest.mark.parametrize("name", BODIES)
def test_a_compiled_body_gives_what_numpy_gives(name: str) -> None:
    function, out = BODIES[name]
    outs = out if isinstance(out, tuple) else (out,)
    f = kernels.call(function, tuple(map(kernels.like, outs)), grid=1)
    same(f, X)


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
