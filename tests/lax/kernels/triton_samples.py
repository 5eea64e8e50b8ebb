"""Kernels compiled for GPUs, run by the interpreter of their text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.core.ir.graph import interpret
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.kernels.triton import TritonModule, triton_module
from fxflow.lax.remat import CALLS, inlined
from tests.lax.kernels.triton_interpreter import run_module


def module_of(function: Callable[..., Any], *args: Any) -> TritonModule:
    """Returns the module of the only kernel that a function calls."""
    graph = inlined(fxflow.make_graph(function)(*args).graph, CALLS)
    (node,) = (n for n in graph.nodes if n.primitive.name == "kernel_call")
    return _module(node)


def _module(node: Any) -> TritonModule:
    params, avals = KernelParams(**node.params), [a.aval for a in node.inputs]
    # Tests change the limits that the module depends on.
    params.graph.memo.pop(("triton", params, tuple(avals)), None)
    return triton_module(params, avals)


def on_gpu(function: Callable[..., Any], *args: Any) -> list[Any]:
    """Returns the leaves of a function's result, its kernels run as Triton's IR."""
    traced = fxflow.make_graph(lambda *a: fxflow.tree.leaves(function(*a)))(*args)

    def step(node: Any, values: list[Any]) -> Any:
        if node.primitive.name != "kernel_call":
            out = node.primitive.bind(*values, **node.params)
            return out if node.primitive.multi else [out]
        given = [np.asarray(x) for x in values]
        found = run_module(_module(node), given, node.params["outs"])
        return [fnp.asarray(x) for x in found]

    graph = inlined(traced.graph, CALLS)
    return interpret(graph, [*traced.consts, *map(fnp.asarray, args)], step)


def same(function: Callable[..., Any], *args: Any, rtol: float = 1e-5) -> None:
    """Checks that a kernel gives on a GPU what its programs give in NumPy."""
    expected = fxflow.tree.leaves(function(*args))
    for got, want in zip(on_gpu(function, *args), expected, strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        a, b = (np.asarray(x) for x in (got, want))
        if a.dtype.kind not in "biu":
            a, b = a.astype(np.float64), b.astype(np.float64)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def whole(body: Callable[..., Any], out: Any) -> Callable[..., Any]:
    """Returns a kernel of one program, from a function of values.

    Args:
      body: returns what the result holds.
      out: like the result.
    """

    def write(*refs: Any) -> None:
        *xs, o = refs
        o[...] = body(*(x[...] for x in xs))

    return kernels.call(write, out)
