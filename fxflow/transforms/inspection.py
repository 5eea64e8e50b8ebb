"""Looking at functions without running them: graphs, shapes, scopes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass
from typing import Any, Self, TypeVar, cast

from fxflow.core import tree
from fxflow.core.arrays import ShapeDtypeStruct, is_arraylike, not_an_array, typeof
from fxflow.core.arrays.aval import struct_of
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir.graph import Graph, format_graph
from fxflow.core.ir.primitive import Primitive
from fxflow.core.ir.references import Ref
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import Trace, Tracer, state, under
from fxflow.core.labels import leaf_labels
from fxflow.core.runtime.eager import EvalTrace, interpreter
from fxflow.core.source import name_of, wraps
from fxflow.transforms.arguments import (
    FlatFunction,
    as_indices,
    normalize_indices,
    with_fixed,
    without,
)

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(eq=False, repr=False)
class FunctionGraph:
    """The dataflow graph of a function for arguments of given types.

    Attributes:
      graph: nodes, inputs (captured values first) and outputs.
      consts: the captured values.
      in_tree: structure of `(args, kwargs)`.
      out_tree: structure of the result.
    """

    graph: Graph
    consts: list[Any]
    in_tree: Any
    out_tree: Any

    @property
    def in_avals(self) -> list[Any]:
        """Types of the arguments' leaves."""
        return self.graph.in_avals[self.graph.num_consts :]

    @property
    def out_avals(self) -> list[Any]:
        """Types of the result's leaves."""
        return self.graph.out_avals

    @property
    def nodes(self) -> list[Any]:
        """The operations, in an order that can be run."""
        return self.graph.nodes

    @property
    def effects(self) -> frozenset[Any]:
        """What running it does besides computing its results."""
        return self.graph.effects

    def check(self) -> None:
        """Derives every type again; see `Graph.check`."""
        self.graph.check()

    def to_text(self, *, lines: bool = False) -> str:
        """Returns the graph as text, one node a line.

        Args:
          lines: whether to add the user's line to each node.
        """
        return format_graph(self.graph, lines=lines)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluates the graph; see `make_graph`."""
        leaves = tree.leaves((args, kwargs))
        return self.out_tree.unflatten(self.graph.evaluate(*self.consts, *leaves))

    def __str__(self) -> str:
        return self.to_text()

    __repr__ = __str__


def make_graph(
    fun: Callable[..., Any],
    static_argnums: int | Sequence[int] = (),
    *,
    literals: bool = True,
) -> Callable[..., FunctionGraph]:
    """Makes a function that returns the dataflow graph of `fun`.

    Args:
      fun: function of arrays or pytrees of them.
      static_argnums: positions of arguments that are Python values, not arrays.
      literals: whether a 0-d array that `fun` captures is written into the graph. If
        not, it is among the `consts`, as larger ones are.

    Returns:
      A function of the same arguments (arrays or `ShapeDtypeStruct`s) that returns a
      `FunctionGraph`, which prints as text and can be called. That of a function of
      `dataflow.jit` shows its fragments, and what they send and receive.

    Raises:
      ArgumentError: an argument is not an array.

    Example:
      >>> print(make_graph(lambda x: fnp.sin(x) * 2)(1.0))
      graph lambda_(a: f32[]~) {
        b: f32[]~ = sin a
        c: f32[]~ = mul b 2.0:f32[]~
        return c
      }
    """
    require_callable(fun, "make_graph")
    if hasattr(fun, "cut_graph"):
        return cast(Callable[..., FunctionGraph], fun.cut_graph)
    name = name_of(fun)
    indices = as_indices(static_argnums, "static_argnums")

    @boundary
    @wraps(fun)
    def graph_of(*args: Any, **kwargs: Any) -> FunctionGraph:
        fixed = sorted(normalize_indices(indices, len(args), "static_argnums", name))
        dynamic = [i for i in range(len(args)) if i not in fixed]
        leaves, in_tree = tree.flatten((without(args, fixed), kwargs))
        for leaf in leaves:
            if not is_arraylike(leaf) and not isinstance(leaf, ShapeDtypeStruct | Ref):
                raise not_an_array(leaf, f"make_graph: an argument of {name} is")
        labels = leaf_labels(fun, args, kwargs, dynamic)
        partial = with_fixed(fun, fixed, [args[i] for i in fixed])
        flat = FlatFunction(partial, in_tree, name, keywords=True)
        graph, consts = trace_flat(
            flat,
            [typeof(x) for x in leaves],
            name=name,
            labels=labels,
            literals=literals,
        )
        return FunctionGraph(graph, consts, in_tree, flat.out_tree)

    return graph_of


@boundary
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns shapes and dtypes of a function's result, without computing it.

    Args:
      fun: function of arrays or pytrees of them.
      *args: arrays or `ShapeDtypeStruct`s.
      **kwargs: likewise.

    Returns:
      The result with a `ShapeDtypeStruct` for each array.

    Raises:
      ArgumentError: an argument is not an array.

    Example:
      >>> eval_shape(fnp.dot, ShapeDtypeStruct((3, 4), float), fnp.ones((4, 5)))
      ShapeDtypeStruct(f32[3,5])

      The shapes of a model's parameters, which are not made:

      >>> from fxflow import nn, random
      >>> make = lambda key: nn.linear_init(key, 1_000_000, 1_000_000)
      >>> eval_shape(make, random.key(0))["w"].shape
      (1000000, 1000000)
    """
    graph = make_graph(fun)(*args, **kwargs)
    outs = [struct_of(a) for a in graph.out_avals]
    return graph.out_tree.unflatten(outs)


class named_scope(ContextDecorator):
    """Names the operations within a `with` block, in graphs and profiles.

    Args:
      name: of the scope; scopes nest.

    Raises:
      TypeError: the name is not a string.

    Example:
      >>> with named_scope("attention"):
      ...     pass
    """

    name: str

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope: the name is a string, got {name!r}")
        # It goes into programs between quotes (`lowering.Context.graph`).
        self.name = name.replace('"', "'").replace("\\", "/")
        # A stack, since one decorator serves nested and repeated calls.
        self._previous: list[tuple[str, ...]] = []

    def __enter__(self) -> Self:
        self._previous.append(state.scope)
        state.scope = (*state.scope, self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        state.scope = self._previous.pop()


def named_call(fun: F, *, name: str | None = None) -> F:
    """Returns a function whose operations are named in graphs and profiles.

    Args:
      fun: to be called.
      name: of the scope; None is the function's own.

    Returns:
      A function of the same arguments.

    Raises:
      ArgumentError: `fun` is not callable.
      TypeError: the name is not a string.

    Example:
      >>> increment = named_call(lambda x: x + 1, name="increment")
      >>> "increment/add" in fxflow.jit(increment).lower(1).as_text()
      True
    """
    require_callable(fun, "named_call")
    label = named_scope(name_of(fun) if name is None else name).name

    @wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with named_scope(label):
            return fun(*args, **kwargs)

    return cast(F, call)


class _FoldingTrace(Trace):
    """Runs operations on concrete values at once, and leaves others to a trace."""

    __slots__ = ("parent",)

    def __init__(self, parent: Trace) -> None:
        self.parent = parent

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Interprets one operation; see `Trace.process`."""
        traced = any(isinstance(a, Tracer) for a in args)
        # Not `EVAL`: options may be overridden here.
        trace = self.parent if traced else interpreter()
        return under(trace, trace.process, primitive, args, params)


class ensure_compile_time_eval(ContextDecorator):
    """Runs operations on concrete values at once, even while tracing.

    Operations on traced values are traced as they are outside of it.

    Returns:
      A context manager.

    Example:
      >>> def f(x):
      ...     with ensure_compile_time_eval():
      ...         n = int(fnp.sum(fnp.arange(4)))
      ...     return x * n
      >>> print(make_graph(f)(1.0))
      graph f(a: f32[]~) {
        b: f32[]~ = mul a 6.0:f32[]~
        return b
      }
    """

    def __init__(self) -> None:
        self._previous: list[Trace] = []

    def __enter__(self) -> None:
        trace = state.trace
        self._previous.append(trace)
        eager = isinstance(trace, EvalTrace)
        state.trace = interpreter() if eager else _FoldingTrace(trace)

    def __exit__(self, *exc: object) -> None:
        state.trace = self._previous.pop()
