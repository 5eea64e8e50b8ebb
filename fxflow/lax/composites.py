"""`composite`: a function that compilers may know by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Aval, dtypes, typeof, unwrapped
from fxflow.core.boundary import require_callable
from fxflow.core.interpreters.calls import GraphCall
from fxflow.core.ir.graph import Graph, Node
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, register
from fxflow.core.runtime.bodies import trace_body
from fxflow.core.runtime.lowering import Context, dense
from fxflow.errors import ArgumentError
from fxflow.lax.calls import JitCall
from fxflow.lax.control_flow.carry import leaves_of

P = ParamSpec("P")
R = TypeVar("R")


# `register` has made it an instance, which mypy does not see.
_call: Any = JitCall


@register
class Composite(GraphCall):
    """Call of a graph by a name. dtypes: any. StableHLO: composite.

    A compiler that does not know the name takes the graph. Derivatives and vectorized
    forms are those of the graph, without the name: what it stands for says nothing of
    them.

    Params:
      graph: the decomposition.
      composite: its name.
      version: of what the name means.
      attributes: names and values, as MLIR writes them.
    """

    name = "composite"

    def lower(
        self,
        ctx: Context,
        *operands: str,
        graph: Graph,
        composite: str,
        version: int,
        attributes: tuple[tuple[str, str], ...],
    ) -> list[str]:
        """`composite`, with a private function; in place where that cannot be."""
        module = ctx.module
        # As calls: see `Module.indices`; and a composite passes no token on.
        if module.indices or (module.ordered and graph.effects):
            return ctx.graph(graph, operands)
        if module.ordered:
            return ctx.call(graph, operands)
        function = module.function(graph, ctx.scope)
        listed = [f"decomposition = @{function}"]
        if version:
            listed.append(f"version = {version} : i32")
        if attributes:
            pairs = ", ".join(f"{k} = {v}" for k, v in attributes)
            listed.insert(0, f"composite_attributes = {{{pairs}}}")
        ins = ", ".join(a.mlir for a in graph.in_avals)
        outs = ", ".join(a.mlir for a in graph.out_avals)
        text = f"stablehlo.composite {_quoted(composite)} {', '.join(operands)}"
        return ctx.emit_many(
            len(graph.outputs), f"{text} {{{', '.join(listed)}}} : ({ins}) -> ({outs})"
        )

    def jvp(
        self, primals: Values, tangents: Values, *, graph: Graph, **params: Any
    ) -> Dual:
        """The decomposition's."""
        return _call.jvp(primals, tangents, graph=graph)  # type: ignore[no-any-return]

    def linearize(
        self, primals: Values, tangents: Values, *, graph: Graph, **params: Any
    ) -> Dual:
        """The decomposition's."""
        return _call.linearize(primals, tangents, graph=graph)  # type: ignore[no-any-return]

    def transpose(
        self, cotangent: Values, *args: Any, graph: Graph, **params: Any
    ) -> list[Any]:
        """The decomposition's."""
        return _call.transpose(cotangent, *args, graph=graph)  # type: ignore[no-any-return]

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        graph: Graph,
        **params: Any,
    ) -> Batched:
        """The decomposition's."""
        return _call.batch_over(axis_name, size, args, mapped, graph=graph)  # type: ignore[no-any-return]

    def dce(self, node: Node, wanted: Flags) -> Node:
        """The node: its operands and results are what the name says."""
        return node


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _attribute(value: Any, name: str) -> str:
    """Returns a value as MLIR writes it, as an attribute.

    Raises:
      ArgumentError: it cannot be one.
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(_attribute(item, name) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{k} = {_attribute(v, name)}" for k, v in sorted(value.items()))
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, float | np.generic | np.ndarray):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            text = dense(array, array.dtype)
            if array.ndim:
                return f"{text} : {Aval(array.shape, array.dtype).mlir}"
            inner = text.removeprefix("dense<").removesuffix(">")
            return f"{inner} : {dtypes.mlir_name(array.dtype)}"
    raise ArgumentError(
        f"composite: the attribute {name} must be a number, a string, a NumPy array or "
        f"a tuple, list or dict of them, got {value!r}"
    )


def composite(
    decomposition: Callable[P, R], name: str, version: int = 0
) -> Callable[P, R]:
    """Names a function, so that a compiler may put one of its own in its place.

    The program calls it by a StableHLO composite. XLA takes the function itself unless
    a backend knows the name. Differentiated or vectorized, it is the function.

    Args:
      decomposition: function of arrays, or pytrees of them, by position, and of
        attributes by keyword: numbers, strings, NumPy arrays, and tuples, lists and
        dicts of them; None is left out.
      name: with a namespace, as in `"my_lib.softmax"`.
      version: of what the name means.

    Returns:
      A function of the same arguments.

    Raises:
      ArgumentError: `decomposition` is not callable, or an attribute is something else.

    Example:
      >>> def tangent(x, *, factor):
      ...     return lax.mul(lax.tan(x), factor)
      >>> named = composite(tangent, "my.tangent", version=1)
      >>> text = fxflow.jit(lambda x: named(x, factor=2.0)).lower(1.0).as_text()
      >>> 'stablehlo.composite "my.tangent"' in text
      True

    Source: StableHLO composite.
    """
    require_callable(decomposition, "composite: decomposition")
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"composite: name must be a string, got {name!r}")

    def call(*args: P.args, **attributes: P.kwargs) -> R:
        leaves, in_tree = leaves_of(tree.map(unwrapped, args), f"composite {name}")
        written = tuple(
            (k, _attribute(v, k))
            for k, v in sorted(attributes.items())
            if v is not None
        )

        def function(*values: Any) -> Any:
            return decomposition(*values, **attributes)

        body = trace_body(function, in_tree, [typeof(x) for x in leaves], name=name)
        results = Composite.bind(
            *body.consts,
            *leaves,
            graph=body.graph,
            composite=name,
            version=int(version),
            attributes=written,
        )
        result: R = body.out_tree.unflatten(results)
        return result

    return call
