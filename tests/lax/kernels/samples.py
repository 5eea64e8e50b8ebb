"""Kernels that several tests use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.lax.kernels.host import run_programs
from fxflow.lax.kernels.native import why_not
from fxflow.lax.kernels.params import KernelParams


def params_of(function: Any, *args: Any) -> KernelParams:
    graph = fxflow.make_graph(function)(*args).graph
    (node,) = (n for n in graph.nodes if n.primitive.name == "kernel_call")
    return KernelParams(**node.params)


def accumulate(x: Any) -> Any:
    def body(x: Any, o: Any, total: Any) -> None:
        total[...] += fnp.sum(x[...])
        o[...] = total[...]

    return kernels.call(
        body,
        kernels.like(x, shape=(3,)),
        grid=(3, 2),
        kinds=("parallel", "arbitrary"),
        in_specs=[kernels.BlockSpec((1, 2), lambda i, j: (i, j))],
        out_specs=kernels.BlockSpec((1,), lambda i, j: (i,)),
        scratch=[kernels.like(x, shape=(1,))],
    )(x)


@kernels.kernel("h:1 q:4 d, h:1 k d, h:1 k d -> h:1 q:4 d", out=lambda q, k, v: q)
def flash(q: Any, k: Any, v: Any, o: Any, *, keys: int = 8) -> None:
    x = q[0] * q.shape[-1] ** -0.5

    def step(j: Any, carry: Any) -> Any:
        top, total, acc = carry
        at = kernels.ds(j * keys, keys)
        inside = j * keys + fnp.arange(keys) < k.shape[1]
        s = fnp.where(inside, kernels.dot(x, k[0, at].T), -fnp.inf)
        new = fnp.maximum(top, s.max(1))
        p, scale = fnp.exp(s - new[:, None]), fnp.exp(top - new)
        acc = acc * scale[:, None] + kernels.dot(p, v[0, at])
        return new, total * scale + p.sum(1), acc

    rows = fnp.zeros(x.shape[0])
    start = (rows - fnp.inf, rows, fnp.zeros(x.shape))
    rounds = kernels.cdiv(k.shape[1], keys)
    _, total, acc = lax.fori_loop(0, rounds, step, start)
    o[0] = acc / total[:, None]


def attention(q: Any, k: Any, v: Any) -> Any:
    s = fnp.einsum("hqd,hkd->hqk", q, k) * q.shape[-1] ** -0.5
    p = fnp.exp(s - s.max(-1, keepdims=True))
    return fnp.einsum("hqk,hkd->hqd", p / p.sum(-1, keepdims=True), v)


def arrays(*lead: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [fnp.asarray(rng.normal(size=(*lead, 2, 10, 3)), "float32") for _ in "qkv"]


@kernels.kernel(
    "n:rows f, n:rows -> s f",
    out=lambda x, ids, *, segments: kernels.like(x, shape=(segments, x.shape[1])),
    sums="n",
)
def segment_sum(x: Any, ids: Any, o: Any, *, rows: int = 16) -> None:
    """Adds rows by their ids."""

    @kernels.loop(0, x.shape[0])
    def _(i: Any) -> None:
        o[ids[i]] += x[i]


#: Bodies of one operand, and the types of their results.
Bodies = dict[str, tuple[Callable[..., Any], Any]]


def noting(bodies: Bodies, like: Any) -> Callable[..., Any]:
    """Returns a decorator `body(out=like)` that notes bodies by their names."""

    def body(out: Any = like) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def note(function: Callable[..., Any]) -> Callable[..., Any]:
            bodies[function.__name__] = function, out
            return function

        return note

    return body


def called(function: Callable[..., Any], out: Any) -> Callable[..., Any]:
    """Returns the kernel of one program of a body."""
    outs = out if isinstance(out, tuple) else (out,)
    return kernels.call(function, tuple(map(kernels.like, outs)), grid=1)


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
