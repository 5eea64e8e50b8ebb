"""Jaxprs: fxflow's graphs as JAX's programs read, print and evaluate them.

A `Jaxpr` is made of a `Graph` and shares its variables; a parameter that is a graph
becomes a `ClosedJaxpr`. Back again, `graph_of` makes the graph that fxflow runs. So a
client may walk equations, drop or add some, and evaluate what it made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.compat.jax import _primitives
from fxflow.compat.jax._primitives import Primitive, own, wrapped
from fxflow.compat.jax.extend.source_info_util import SourceInfo, of_scopes
from fxflow.core.arrays import ShapeDtypeStruct
from fxflow.core.ir import graph as graphs
from fxflow.core.ir.graph import Graph, Node, Var
from fxflow.core.ir.trace import named_axes
from fxflow.transforms.inspection import make_graph

Atom = Any


class Literal(graphs.Literal):
    """A 0-d constant written into a jaxpr."""

    __slots__ = ("hash",)

    @property
    def val(self) -> Any:
        """The value, a NumPy scalar."""
        return self.value

    def __repr__(self) -> str:
        return f"Literal({self.value})"


class DropVar(Var):
    """A result that nothing uses; fxflow leaves such results out where it can."""

    __slots__ = ()


class DebugInfo:
    """Where a jaxpr comes from."""

    def __init__(
        self,
        traced_for: str = "",
        func_src_info: str = "",
        arg_names: Any = None,
        result_paths: Any = None,
    ) -> None:
        self.traced_for: str = traced_for
        self.func_src_info: str = func_src_info
        self.arg_names: Any = arg_names
        self.result_paths: Any = result_paths

    @property
    def func_name(self) -> str:
        """Name of the function."""
        return self.func_src_info.partition(" ")[0]


class JaxprEqn:
    """One operation of a jaxpr.

    Attributes:
      invars: variables and literals.
      outvars: variables.
      primitive: what is done.
      params: with jaxprs in place of graphs.
      effects: side effects.
      source_info: the user's line.
    """

    __slots__ = (
        "ctx", "effects", "invars", "outvars", "params", "primitive", "source_info",
    )  # fmt: skip

    def __init__(
        self,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        primitive: Primitive,
        params: dict[str, Any],
        effects: Any = frozenset(),
        source_info: Any = None,
        ctx: Any = None,
    ) -> None:
        self.invars: list[Atom] = list(invars)
        self.outvars: list[Var] = list(outvars)
        self.primitive: Primitive = primitive
        self.params: dict[str, Any] = params
        self.effects: Any = effects
        self.source_info: Any = source_info
        self.ctx: Any = ctx

    def replace(self, **parts: Any) -> JaxprEqn:
        """Returns a copy with some parts replaced."""
        return JaxprEqn(**{n: parts.get(n, getattr(self, n)) for n in self.__slots__})

    def __repr__(self) -> str:
        return "\n".join(_equation(self, _Names(), ""))


class Jaxpr:
    """A program: constants, arguments, equations, results.

    Attributes:
      constvars: variables of the constants.
      invars: variables of the arguments.
      outvars: variables and literals.
      eqns: in an order that can be run.
      effects: side effects.
      debug_info: where it comes from.
    """

    __slots__ = (
        "__weakref__", "_graph", "constvars", "debug_info", "effects", "eqns",
        "invars", "is_high", "outvars",
    )  # fmt: skip

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[JaxprEqn],
        effects: Any = frozenset(),
        debug_info: Any = None,
        is_high: bool = False,
    ) -> None:
        self.constvars: list[Var] = list(constvars)
        self.invars: list[Var] = list(invars)
        self.outvars: list[Atom] = list(outvars)
        self.eqns: list[JaxprEqn] = list(eqns)
        self.effects: Any = effects
        self.debug_info: Any = debug_info or DebugInfo()
        self.is_high: bool = is_high
        self._graph: Graph | None = None

    @property
    def in_avals(self) -> list[Any]:
        """Types of the arguments."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Any]:
        """Types of the results."""
        return [v.aval for v in self.outvars]

    def replace(self, **parts: Any) -> Jaxpr:
        """Returns a copy with some parts replaced."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        return Jaxpr(**{n: parts.get(n, getattr(self, n)) for n in names})

    def pretty_print(self, **options: Any) -> str:
        """Returns the text; options have no effect."""
        return str(self)

    def __str__(self) -> str:
        return "\n".join(_lines(self, _Names(), ""))

    __repr__ = __str__


class ClosedJaxpr:
    """A jaxpr with the values of its constants.

    Attributes:
      jaxpr: the program.
      consts: one value for each of its `constvars`.
    """

    __slots__ = ("__weakref__", "consts", "jaxpr")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        self.jaxpr: Jaxpr = jaxpr
        self.consts: list[Any] = list(consts)

    in_avals: property = property(lambda self: self.jaxpr.in_avals)
    out_avals: property = property(lambda self: self.jaxpr.out_avals)
    eqns: property = property(lambda self: self.jaxpr.eqns)
    effects: property = property(lambda self: self.jaxpr.effects)
    literals: property = property(lambda self: self.consts)
    constvars: property = property(lambda self: self.jaxpr.constvars)
    invars: property = property(lambda self: self.jaxpr.invars)
    outvars: property = property(lambda self: self.jaxpr.outvars)
    debug_info: property = property(lambda self: self.jaxpr.debug_info)

    def replace(self, *, jaxpr: Any = None, consts: Any = None) -> ClosedJaxpr:
        """Returns a copy with some parts replaced."""
        return ClosedJaxpr(
            self.jaxpr if jaxpr is None else jaxpr,
            self.consts if consts is None else consts,
        )

    def map_jaxpr(self, f: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """Returns the same with another program."""
        return ClosedJaxpr(f(self.jaxpr), self.consts)

    def pretty_print(self, **options: Any) -> str:
        """Returns the text; options have no effect."""
        return str(self)

    def __str__(self) -> str:
        return str(self.jaxpr)

    __repr__ = __str__


# -- from graphs and back --------------------------------------------------------------


def jaxpr_of(graph: Graph) -> Jaxpr:
    """Returns a graph as a jaxpr; captured values are its constants."""
    known = graph.memo.get("jaxpr")
    if known is None:
        count = graph.num_consts
        known = Jaxpr(
            graph.inputs[:count],
            graph.inputs[count:],
            [_atom(a) for a in graph.outputs],
            [_equation_of(node) for node in graph.nodes],
            graph.effects,
            DebugInfo("make_jaxpr", graph.name),
        )
        known._graph = graph
        graph.memo["jaxpr"] = known
    result: Jaxpr = known
    return result


def _atom(atom: Any) -> Any:
    return Literal(atom.value, atom.aval) if isinstance(atom, graphs.Literal) else atom


def _equation_of(node: Node) -> JaxprEqn:
    primitive = wrapped(node.primitive)
    return JaxprEqn(
        [_atom(a) for a in node.inputs],
        node.outputs,
        primitive,
        primitive.params_of(node.params, closed_of),
        node.effects,
        SourceInfo(node.source, of_scopes(node.scope)),
    )


def closed_of(value: Any) -> Any:
    """Returns a parameter with jaxprs in place of graphs."""
    if isinstance(value, Graph):
        return ClosedJaxpr(jaxpr_of(value), ())
    if isinstance(value, tuple) and any(isinstance(v, Graph) for v in value):
        return tuple(closed_of(v) for v in value)
    return value


def graph_of(jaxpr: Any) -> Any:
    """Returns a parameter with graphs in place of jaxprs.

    Raises:
      TypeError: a jaxpr in it brings constants that are not part of it.
    """
    if isinstance(jaxpr, tuple) and any(
        isinstance(v, Jaxpr | ClosedJaxpr) for v in jaxpr
    ):
        return tuple(graph_of(v) for v in jaxpr)
    if isinstance(jaxpr, ClosedJaxpr):
        if jaxpr.consts:
            closed = jaxpr
            return make_graph(lambda *args: jaxpr_as_fun(closed)(*args))(
                *[ShapeDtypeStruct(a.shape, a.dtype) for a in closed.in_avals]
            ).graph
        return graph_of(jaxpr.jaxpr)
    if not isinstance(jaxpr, Jaxpr):
        return jaxpr
    if jaxpr._graph is None:
        jaxpr._graph = Graph(
            [*jaxpr.constvars, *jaxpr.invars],
            [_node_of(eqn) for eqn in jaxpr.eqns],
            [_back(a) for a in jaxpr.outvars],
            num_consts=len(jaxpr.constvars),
        )
    return jaxpr._graph


def _back(atom: Any) -> Any:
    return graphs.Literal(atom.value, atom.aval) if type(atom) is Literal else atom


def _node_of(eqn: JaxprEqn) -> Node:
    return Node(
        own(eqn.primitive),
        [_back(a) for a in eqn.invars],
        eqn.outvars,
        eqn.primitive.own_params(eqn.params, graph_of),
    )


_primitives._graph_of.append(graph_of)

# -- making and running ----------------------------------------------------------------


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
) -> Callable[..., Any]:
    """Makes a function that returns the jaxpr of `fun` for its arguments.

    Args:
      fun: function of arrays or pytrees of them.
      static_argnums: positions of arguments that are Python values.
      axis_env: named axes and their sizes that `fun` may use.
      return_shape: whether to return the shapes of the result as well.

    Returns:
      A function of the same arguments that returns a `ClosedJaxpr`, or with
      `return_shape` that and a pytree of `ShapeDtypeStruct`s.
    """

    def jaxpr_for(*args: Any, **kwargs: Any) -> Any:
        made = _graph_with(axis_env, fun, static_argnums, args, kwargs)
        closed = ClosedJaxpr(jaxpr_of(made.graph), made.consts)
        if not return_shape:
            return closed
        shapes = [
            ShapeDtypeStruct(a.shape, a.dtype, weak_type=a.weak_type)
            for a in made.out_avals
        ]
        return closed, made.out_tree.unflatten(shapes)

    return jaxpr_for


def _graph_with(
    axis_env: Any, fun: Any, static_argnums: Any, args: Any, kwargs: Any
) -> Any:
    from_types = make_graph(fun, static_argnums, literals=False)
    if not axis_env:
        return from_types(*args, **kwargs)
    with named_axes(axis_env):
        return from_types(*args, **kwargs)


def eval_jaxpr(
    jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, **options: Any
) -> list[Any]:
    """Evaluates a jaxpr.

    Args:
      jaxpr: to run.
      consts: one value for each of its constants.
      *args: one value for each of its arguments.
      **options: JAX's (`propagate_source_info`), which have no effect.

    Returns:
      The list of its results.
    """
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.array if isinstance(atom, graphs.Literal) else values[atom]

    for eqn in jaxpr.eqns:
        out = eqn.primitive.bind(*map(read, eqn.invars), **eqn.params)
        outs = out if eqn.primitive.multiple_results else [out]
        values.update(zip(eqn.outvars, outs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def jaxpr_as_fun(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """Returns a function of arrays that evaluates a jaxpr.

    Args:
      closed: a `ClosedJaxpr`.

    Returns:
      A function that returns the list of its results.
    """
    return lambda *args: eval_jaxpr(closed.jaxpr, closed.consts, *args)


def jaxprs_in_params(params: dict[str, Any]) -> Any:
    """Yields the jaxprs among the parameters of an equation.

    Args:
      params: of an equation.

    Returns:
      An iterator over `Jaxpr`s.
    """
    for value in params.values():
        for item in value if isinstance(value, tuple | list) else (value,):
            if isinstance(item, Jaxpr):
                yield item
            elif isinstance(item, ClosedJaxpr):
                yield item.jaxpr


def subjaxprs(jaxpr: Jaxpr) -> Any:
    """Yields the jaxprs that are parameters of a jaxpr's equations.

    Args:
      jaxpr: a `Jaxpr`.

    Returns:
      An iterator over `Jaxpr`s.
    """
    for eqn in jaxpr.eqns:
        yield from jaxprs_in_params(eqn.params)


def new_jaxpr_eqn(
    invars: Sequence[Atom],
    outvars: Sequence[Var],
    primitive: Primitive,
    params: dict[str, Any],
    effects: Any = frozenset(),
    source_info: Any = None,
    ctx: Any = None,
) -> JaxprEqn:
    """Makes an equation; see `JaxprEqn`.

    Args:
      invars: operands.
      outvars: variables of the results.
      primitive: what is done.
      params: its parameters.
      effects: side effects.
      source_info: where it comes from.
      ctx: has no effect.

    Returns:
      A `JaxprEqn`.
    """
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info, ctx)


def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Derives every type again.

    Args:
      jaxpr: a `Jaxpr`.

    Raises:
      JaxprTypeError: a type is not what the operation gives.
    """
    graph_of(jaxpr).check()


# -- printing --------------------------------------------------------------------------


class _Names(dict[Any, str]):
    def __missing__(self, var: Any) -> str:
        name, number = "", len(self) + 1
        while number:
            number, digit = divmod(number - 1, 26)
            name = chr(97 + digit) + name
        self[var] = name
        return name

    def typed(self, variables: Sequence[Var]) -> str:
        return " ".join(f"{self[v]}:{_type(v.aval)}" for v in variables)

    def atom(self, atom: Any) -> str:
        if isinstance(atom, graphs.Literal):
            return f"{np.asarray(atom.value)}:{_type(atom.aval)}"
        return self[atom]


def _type(aval: Any) -> str:
    return str(aval).replace("~", "")


def _lines(jaxpr: Jaxpr, names: _Names, indent: str) -> list[str]:
    head = f"{{ lambda {names.typed(jaxpr.constvars)}; {names.typed(jaxpr.invars)}. let"
    body = [
        line for eqn in jaxpr.eqns for line in _equation(eqn, names, indent + "    ")
    ]
    outs = [names.atom(a) for a in jaxpr.outvars]
    tail = f"in ({', '.join(outs)}{',' if len(outs) == 1 else ''}) }}"
    one = " ".join([head, "; ".join(map(str.strip, body)), tail])
    if "\n" not in one and len(one) + len(indent) <= 80 and len(body) < 4:
        return [one]
    return [head, *body, f"{indent}  {tail}"]


def _equation(eqn: JaxprEqn, names: _Names, indent: str) -> list[str]:
    ins = " ".join(names.atom(a) for a in eqn.invars)
    graphs_in = {k: v for k, v in eqn.params.items() if [*jaxprs_in_params({k: v})]}
    plain = {k: _text(v) for k, v in eqn.params.items() if k not in graphs_in}
    start = f"{indent}{names.typed(eqn.outvars)} = {eqn.primitive.name}"
    if not graphs_in:
        shown = " ".join(f"{k}={v}" for k, v in sorted(plain.items()))
        return [f"{start}{f'[{shown}]' if shown else ''} {ins}".rstrip()]
    lines = [f"{start}["]
    for name, value in sorted({**plain, **graphs_in}.items()):
        if name in plain:
            lines.append(f"{indent}  {name}={value}")
        elif isinstance(value, tuple | list):
            lines.append(f"{indent}  {name}=(")
            for inner in jaxprs_in_params({name: value}):
                text = _lines(inner, names, indent + "    ")
                lines += [f"{indent}    {text[0]}", *text[1:]]
            lines.append(f"{indent}  )")
        else:
            (inner,) = jaxprs_in_params({name: value})
            text = _lines(inner, names, indent + "  ")
            lines += [f"{indent}  {name}={text[0]}", *text[1:]]
    return [*lines, f"{indent}] {ins}".rstrip()]


def _text(value: Any) -> str:
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return str(value)


__all__ = [
    "Atom",
    "ClosedJaxpr",
    "DebugInfo",
    "DropVar",
    "Jaxpr",
    "JaxprEqn",
    "Literal",
    "Var",
    "check_jaxpr",
    "eval_jaxpr",
    "jaxpr_as_fun",
    "jaxprs_in_params",
    "make_jaxpr",
    "new_jaxpr_eqn",
    "subjaxprs",
]
