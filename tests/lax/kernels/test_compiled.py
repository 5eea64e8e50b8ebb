"""What the compilers of kernels share."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.core.arrays import typeof
from fxflow.lax.kernels.compiled import caller, module_or_why
from fxflow.lax.kernels.errors import UnsupportedError
from tests.lax.kernels.samples import params_of


def doubled(*, prints: bool = False) -> Any:
    def body(x: Any, o: Any) -> None:
        if prints:
            fxflow.debug.print("x")
        o[...] = x[...] * 2

    return kernels.kernel("i:4 v -> i:4 v", out=lambda x: x)(body)


def why(function: Any, x: Any, compile: Any) -> Any:
    return module_or_why(params_of(function, x), [typeof(x)], compile)


def refuse() -> str:
    raise UnsupportedError("sort")


def test_a_kernel_is_compiled_or_says_what_prevents_it() -> None:
    x = fnp.ones((8, 3))
    assert why(doubled(), x, lambda: 7) == 7
    assert why(doubled(prints=True), x, lambda: 7) == "the body has effects"
    assert why(doubled(), fnp.ones((8, 0)), lambda: 7) == "an array is empty"
    assert why(doubled(), x, refuse) == "the compiler does not know sort"


def test_partial_sums_are_added_by_the_caller() -> None:
    x = np.ones((8, 3), np.float32)
    params = params_of(doubled(), x)
    for parts, inside in (([0], (8, 3)), ([5], (5, 8, 3))):
        call = caller(params, [typeof(x)], parts, "unknown", "{}")
        graph = fxflow.make_graph(lambda x, call=call: call(x)[0])(x).graph
        assert graph.nodes[0].outputs[0].aval.shape == inside
        assert [n.primitive.name for n in graph.nodes[1:]] == ["reduce_sum"] * (
            parts[0] > 0
        )
        assert graph.out_avals[0].shape == (8, 3)
