"""NumPy's rules of operations against XLA, on special values.

Eagerly, small operations on the CPU run by NumPy where a primitive says so
(`Primitive.host_kinds`). Every such rule must give what the compiled operation gives:
infinities, nan and the signs of zeros in the same places, the same bits where IEEE 754
says which, and functions up to some units in the last place.
"""

from __future__ import annotations

import functools
import zlib
from typing import Any

import numpy as np
import pytest

from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import host_of, put_host
from fxflow.core.arrays.aval import Aval, common_placement
from fxflow.core.ir.graph import Graph, Node, Var
from fxflow.core.ir.primitive import table
from fxflow.core.runtime.eager import host_plan, runs_on_host
from fxflow.core.runtime.execute import compile_graph
from fxflow.errors import DtypeError
from fxflow.lax.families import Elementwise, kind
from tests.conformance import cases
from tests.sweeps.sampling import sample
from tests.sweeps.special_values import differing, drawn, explained, grid, special

# -- elementwise -----------------------------------------------------------------------

# IEEE 754 leaves the last bits of these open; the methods of NumPy and XLA differ.
FUNCTIONS = """
    acos acosh asin asinh atan atan2 atanh cbrt cos cosh exp exp2 expm1 log log1p
    logistic pow rsqrt sin sinh tan tanh
"""
ROUNDED = dict.fromkeys(FUNCTIONS.split(), 16.0)
ROUNDED |= {"integer_pow": 2.0}  # XLA may contract products

cases.import_all()


@functools.cache
def counts() -> dict[str, int]:
    """How many operands each elementwise primitive has."""
    found = {}
    for case in cases.cases():
        if isinstance(case.primitive, Elementwise) and case.sample.function is None:
            found.setdefault(case.primitive.name, len(case.sample.args))
    return found


def params_of(name: str) -> list[dict[str, Any]]:
    if name == "integer_pow":
        return [{"y": y} for y in (-3, -2, -1, 0, 1, 2, 3, 7)]
    if name == "round":
        return [{"rounding_method": m} for m in lax.RoundingMethod]
    if name == "reduce_precision":
        return [
            {"exponent_bits": e, "mantissa_bits": m}
            for e, m in ((5, 10), (8, 7), (4, 3), (5, 2))
        ]
    return [{}]


def node_of(name: str, dtype: Any, size: int, params: dict[str, Any]) -> Node | None:
    """The operation on arrays of a dtype, if it is one that NumPy runs."""
    primitive = table[name]
    inputs = [Var(Aval((size,), dtype)) for _ in range(counts()[name])]
    try:
        outs = primitive.out_avals([v.aval for v in inputs], params)
    except DtypeError:
        return None
    node = Node(primitive, inputs, [Var(a) for a in outs], params)
    return node if primitive.runs_on_host(node) else None


ELEMENTWISE = [
    (name, dtype, params)
    for name in sorted(counts())
    for dtype in dtypes.ALL
    for params in params_of(name)
    if node_of(name, dtype, 1, params) is not None
]


def both_ways(graph: Graph, arrays: Any) -> list[tuple[Any, Any]]:
    """NumPy's and XLA's results of a graph."""
    arg_types = [a._type for a in arrays]
    placement, committed = common_placement(arg_types, graph.name, graph.mesh)
    assert runs_on_host(graph, placement)
    by_numpy = host_plan(graph, placement, committed)(*arrays)
    by_xla = compile_graph(graph, arg_types, name=graph.name)(arrays)
    return [
        (np.asarray(host_of(a)), np.asarray(host_of(b)))
        for a, b in zip(by_numpy, by_xla, strict=True)
    ]


def name_of(value: Any) -> str:
    name, dtype, params = value
    return "-".join([name, dtypes.short_name(dtype), *map(str, params.values())])


@pytest.mark.parametrize("case", sample(ELEMENTWISE, 160, "elementwise"), ids=name_of)
def test_elementwise(case: Any) -> None:
    name, dtype, params = case
    rng = np.random.default_rng(zlib.crc32(name_of(case).encode()))
    values = grid(dtype, counts()[name], 4000, rng)
    node = node_of(name, dtype, len(values[0]), params)
    assert node is not None
    graph = Graph(node.inputs, [node], node.outputs, name)
    arrays = [put_host(v, Aval(v.shape, dtype)) for v in values]
    ((got, want),) = both_ways(graph, arrays)
    assert got.dtype == want.dtype == node.outputs[0].aval.dtype
    bad = differing(got, want, ROUNDED.get(name, 0.0))
    assert not bad.any(), explained(bad, got, want, values, "NumPy, XLA")


@pytest.mark.parametrize(
    "source", sample(dtypes.ALL, 3, "conversions"), ids=dtypes.short_name
)
def test_conversions(source: Any) -> None:
    primitive = table["convert_element_type"]
    values = special(source)
    if kind(source) == "f":
        odd = [127.5, 128.5, 255.5, -128.9, 2.0**31, -(2.0**31), 2.0**63, 1e19, 2.0**64]
        with np.errstate(all="ignore"):
            values = np.append(values, np.array(odd).astype(source))
    (given,) = inputs = [Var(Aval(values.shape, source))]
    nodes = []
    for target in dtypes.ALL:
        out = Var(Aval(values.shape, target))
        params = {"new_dtype": target, "weak_type": False}
        nodes.append(Node(primitive, [given], [out], params))
    graph = Graph(inputs, nodes, [n.outputs[0] for n in nodes], "conversions")
    results = both_ways(graph, [put_host(values, given.aval)])
    for (got, want), target in zip(results, dtypes.ALL, strict=True):
        assert got.dtype == want.dtype == target
        # float4 has no nan: it becomes a zero of either sign.
        bad = differing(got, want, 0.0, zeros=target != dtypes.float4_e2m1fn)
        label = f"to {dtypes.short_name(target)}: NumPy, XLA"
        assert not bad.any(), explained(bad, got, want, [values], label)


# -- all others ------------------------------------------------------------------------

# What a sum of zeros is depends on whether it starts with a zero, and which of several
# elements come together first decides where it overflows: no extremes, any zero.
ADDED = {
    "cumsum",
    "dot_general",
    "fft",
    "psum",
    "ragged_dot",
    "reduce_sum",
    "scatter_add",
}
# Each element of a transform is a sum over all: of an infinite one every method makes
# nan and infinities, where its own order of additions puts them.
SCATTERED = {"fft"}
# Roundings of many steps, in another order.
STEPS = 64.0

OTHERS = [
    case
    for case in cases.cases()
    if not isinstance(case.primitive, Elementwise) and case.primitive.host_kinds
]


def filled(value: Any, rng: np.random.Generator, integers: bool) -> Any:
    """An operand of the shape and dtype of a sample's, of special values."""
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    if kind(value.dtype) in "fc" or (integers and kind(value.dtype) in "iu"):
        return drawn(rng, value.shape, value.dtype, extremes=False)
    return value


@pytest.mark.parametrize(
    "case", sample(OTHERS, 160, "others"), ids=lambda case: str(case.id)
)
def test_other_host_rules_give_the_bits_of_the_program(case: cases.Case) -> None:
    made = cases.problem(case)
    graph, arrays = cases.trace(made.function, made.args)
    placement, _ = common_placement([a._type for a in arrays], graph.name, graph.mesh)
    if not runs_on_host(graph, placement):
        return
    rng = np.random.default_rng(zlib.crc32(case.id.encode()))
    # Integers beside other numbers are indices and counts.
    kinds = {kind(a.dtype) for a in made.args if isinstance(a, np.ndarray)}
    integers = case.sample.function is None and kinds <= {"i", "u"}
    name = case.primitive.name
    for _ in range(3):
        operands = [filled(a, rng, integers) for a in made.args]
        graph, arrays = cases.trace(made.function, operands)
        for got, want in both_ways(graph, arrays):
            assert got.shape == want.shape and got.dtype == want.dtype
            bad = differing(
                got,
                want,
                STEPS,
                zeros=name not in ADDED,
                infinities=name not in SCATTERED,
            )
            assert not bad.any(), explained(bad, got, want, operands, "NumPy, XLA")
