"""Work: the flops and bytes of operations, and the seconds that they take."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from fxflow.core.ir.graph import Graph, Node, Var, subgraphs
from fxflow.dataflow.rates import Rates
from fxflow.lax.families import Accurate, Exponential

# -- families --------------------------------------------------------------------------

#: By the module of the operation's class, or by the package around it.
_FAMILIES = {
    "dot": "dot",
    "scaled_products": "dot",
    "ragged_products": "dot",
    "convolution": "conv",
    "reduction": "reduce",
    "arg_extremum": "reduce",
    "custom_reduction": "reduce",
    "cumulative": "reduce",
    "window": "reduce",
    "window_selection": "reduce",
    "sort": "sort",
    "approximate": "sort",
    "fourier": "fft",
    "linalg": "linalg",
    "linear_solve": "linalg",
    "gather": "gather",
    "dynamic_slicing": "gather",
    "gather_scatter": "scatter",
    "threefry": "random",
    "random_bits": "random",
    "rbg": "random",
    "rng_bit_generator": "random",
    "callbacks": "callback",
    "collectives": "collective",
    "collective_reductions": "collective",
    "collective_movement": "collective",
    "special": "transcendental",
    "gammas": "transcendental",
    "bessel": "transcendental",
    "incomplete_gamma": "transcendental",
    "incomplete_beta": "transcendental",
    "trigonometric": "transcendental",
    "powers": "elementwise",
}
#: Families that XLA fuses with what comes before and after.
FUSED = frozenset({"elementwise", "transcendental", "random"})


@functools.cache
def family_of(primitive: Any) -> str:
    """Returns the family of an operation, by which rates are known.

    Args:
      primitive: of a node.

    Returns:
      "dot", "conv", "elementwise", "transcendental", "reduce", "gather", "scatter",
      "sort", "fft", "linalg", "random", "callback" or "collective".
    """
    cls = primitive if isinstance(primitive, type) else type(primitive)
    modules = cls.__module__.split(".")
    for module in reversed(modules):
        if module in _FAMILIES:
            return _FAMILIES[module]
    return (
        "transcendental" if issubclass(cls, Accurate | Exponential) else "elementwise"
    )


class Work:
    """Flops and bytes of nodes; types that were met before are looked up."""

    def __init__(self) -> None:
        self._nbytes: dict[Any, int] = {}
        self._products: dict[Any, tuple[str, float]] = {}

    def nbytes(self, atoms: Iterable[Any]) -> int:
        """Returns the bytes of values."""
        known, total = self._nbytes, 0
        for atom in atoms:
            aval = atom.aval
            found = known.get(aval)
            if found is None:
                found = known[aval] = int(aval.nbytes)
            total += found
        return total

    def fused(self, node: Node) -> float:
        """Returns the flops of an operation that XLA fuses: its elements."""
        aval = node.outputs[0].aval
        return self.nbytes(node.outputs) / max(1, int(aval.dtype.itemsize))

    def of(self, node: Node, family: str) -> tuple[str, float, float]:
        """Returns the family with the width of its numbers, flops and bytes."""
        if family == "gather":
            given = self.nbytes(node.outputs)
            return family, given / 4, 2.0 * given
        if family == "scatter":
            updates = self.nbytes(node.inputs[-1:])
            return family, updates / 4, 3.0 * updates
        moved = float(self.nbytes(node.inputs) + self.nbytes(node.outputs))
        if family == "callback":
            return family, 0.0, moved
        avals = [a.aval for a in node.inputs]
        if family == "dot":
            axes = node.params.get("dimension_numbers")
            key = (node.primitive, axes, *avals)
            product = self._products.get(key)
            if product is None:
                flops = _flops(node, avals)
                product = self._products[key] = _width(avals[0].dtype.itemsize), flops
            return (*product, moved)
        flops = _flops(node, avals)
        if family == "sort":
            longest = max(max(a.shape, default=1) for a in avals)
            flops *= math.log2(max(2, longest))
        return family, flops, moved


def work_of(node: Node) -> tuple[str, float, float]:
    """Returns the family of a node with the width of its numbers, flops and bytes.

    Args:
      node: of any graph; it holds no graphs itself.
    """
    family, work = family_of(node.primitive), Work()
    if family in FUSED:
        return family, work.fused(node), 0.0
    return work.of(node, family)


def _flops(node: Node, avals: Sequence[Any]) -> float:
    try:
        return float(node.primitive.cost(*avals, **node.params)["flops"])
    except Exception:  # a primitive of a user's need not have one
        return float(sum(v.aval.size for v in node.outputs))


def _width(itemsize: int) -> str:
    return "dot" if itemsize == 4 else "dot16" if itemsize < 4 else "dot64"


# -- graphs ----------------------------------------------------------------------------


def seconds_of(graph: Graph, rates: Rates) -> list[float]:
    """Returns the seconds of each node of a graph, by types.

    Args:
      graph: with its calls written out.
      rates: of a device.
    """
    work = Work()
    inside: set[Any] = set()  # what operations that are fused make
    outside: set[Any] = {a for a in graph.outputs if type(a) is Var}
    kinds: list[tuple[str, list[Graph]]] = []
    for node in graph.nodes:
        family = family_of(node.primitive)
        graphs = [g for _, g in subgraphs(node.params)]
        if family in FUSED and not graphs:
            inside.update(node.outputs)
        else:
            outside.update(a for a in node.inputs if type(a) is Var)
        kinds.append((family, graphs))
    found = []
    for node, (family, graphs) in zip(graph.nodes, kinds, strict=True):
        if graphs:
            found.append(_holder_seconds(node, graphs, rates))
            continue
        least = rates.operation
        if family in FUSED:
            read = [a for a in node.inputs if type(a) is Var and a not in inside]
            written = [v for v in node.outputs if v in outside]
            moved = work.nbytes(read) + work.nbytes(written)
            flops, nbytes = work.fused(node), float(moved)
            least = least if written else 0.0
        else:
            family, flops, nbytes = work.of(node, family)
        found.append(max(least, rates.seconds(family, flops, nbytes)))
    return found


def _holder_seconds(node: Node, graphs: Sequence[Graph], rates: Rates) -> float:
    """Returns the seconds of an operation that holds graphs: a loop, branch or call."""
    each = [_total(graph, rates) for graph in graphs]
    name = node.primitive.name
    if name == "scan":
        return float(node.params["length"]) * (sum(each) + rates.round)
    if name == "cond":
        return max(each) + rates.operation
    if name.startswith("while"):
        return sum(each) + rates.round
    return sum(each) + rates.operation


def _total(graph: Graph, rates: Rates) -> float:
    return graph.remembered(
        ("seconds", rates), lambda: float(sum(seconds_of(graph, rates)))
    )


def signature(node: Node) -> tuple[Any, ...]:
    """Returns what nodes of equal work on one device have in common.

    Args:
      node: of any graph.
    """
    function = node.params.get("function")  # of a host callback
    return (
        node.primitive.name,
        id(getattr(function, "__wrapped__", function)),
        *(str(a.aval) for a in node.inputs),
        None,
        *(str(v.aval) for v in node.outputs),
        *(fingerprint(g) for _, g in subgraphs(node.params)),
    )


def fingerprint(graph: Graph) -> int:
    """Returns a number that equal graphs share, whatever their variables are called.

    Args:
      graph: of a fragment.
    """

    def find() -> int:
        numbers: dict[Any, int] = {v: i for i, v in enumerate(graph.inputs)}
        text = []
        for node in graph.nodes:
            uses = [numbers.get(a, -1) for a in node.inputs if type(a) is Var]
            for var in node.outputs:
                numbers[var] = len(numbers)
            text.append((signature(node), *uses))
        results = [numbers.get(a, -1) for a in graph.outputs if type(a) is Var]
        return hash((*text, *results))

    return graph.remembered("fingerprint", find)
