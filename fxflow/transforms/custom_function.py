"""What `custom_jvp`, `custom_vjp`, `custom_vmap` share: calls, and rules, checked."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import (
    Any,
    ClassVar,
    NamedTuple,
    ParamSpec,
    TypeVar,
)

from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.arrays.array import as_array, is_arraylike, not_an_array
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.references import Ref
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.labels import parameter_names, signature_of
from fxflow.core.runtime.bodies import Body, trace_body
from fxflow.core.runtime.eager import EvalTrace
from fxflow.core.source import name_of
from fxflow.core.tree.paths import difference
from fxflow.errors import ArgumentError, TreeError
from fxflow.lax.custom_rules import DeferredRule, memo_beside
from fxflow.transforms.arguments import (
    Bindable,
    as_indices,
    as_names,
    global_name,
    normalize_indices,
    with_fixed,
    without,
)
from fxflow.transforms.tangents import require_type

P = ParamSpec("P")
R = TypeVar("R")
SymbolicZero = Zero
"""A tangent or cotangent known to be zero, as rules with `symbolic_zeros` get it."""


class Call(NamedTuple):
    """What rules know of a call; nothing that it was called with, which they outlive.

    Attributes:
      positions: of the arguments that are passed to the rule as they are.
      fixed: these arguments.
      in_tree: structure of the others.
      in_avals: types of their leaves.
      out_tree: structure of the result.
      out_avals: types of its leaves.
    """

    positions: tuple[int, ...]
    fixed: tuple[Any, ...]
    in_tree: Any
    in_avals: list[Aval]
    out_tree: Any
    out_avals: list[Aval]


class CustomFunction(Bindable[P, R]):
    """A function with a derivative of its own.

    Args:
      fun: function of arrays or pytrees of them.
      nondiff_argnums: positions of arguments that are passed to the rule as they are
        and have no derivative (functions, options).
      nondiff_argnames: the same by name.
    """

    name: str
    kind: ClassVar[str]
    setter: ClassVar[str]
    primitive: ClassVar[Any]
    captures: ClassVar[bool] = True  # whether operations carry what a rule captured
    symbolic_zeros: bool = False

    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: int | Sequence[int] = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        require_callable(fun, self.kind)
        functools.update_wrapper(self, fun)  # gives `__wrapped__`, name, docstring
        self.fun: Callable[..., R] = fun
        self.name = name_of(fun)
        self._signature = signature_of(fun)
        self._fixed = as_indices(nondiff_argnums, f"{self.kind}: nondiff_argnums")
        names = as_names(nondiff_argnames, f"{self.kind}: nondiff_argnames")
        if names:
            known = parameter_names(
                fun, len(getattr(self._signature, "parameters", ()))
            )
            for name in names:
                if name not in known:
                    raise ArgumentError(
                        f"{self.kind}: {self.name} has no argument {name!r} "
                        f"(nondiff_argnames): it has {', '.join(known)}"
                    )
            self._fixed += tuple(
                i for i in map(known.index, names) if i not in self._fixed
            )
        self._count = self._plain_count()
        self._tracing: list[tuple[Any, Any, list[Any]]] = []

    def _plain_count(self) -> int | None:
        """Number of arguments if all are positional, else None."""
        if self._signature is None:
            return None
        parameters = self._signature.parameters.values()
        if all(
            p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters
        ):
            return len(parameters)
        return None

    # -- what the two say --------------------------------------------------------------

    def _passes(self) -> tuple[Callable[..., Any] | None, ...]:
        """Returns the user's functions of the rule; None where they are not set."""
        raise NotImplementedError

    def _rule(self, call: Call) -> Any:
        """Returns the rule that operations carry; it calls the user's functions."""
        raise NotImplementedError

    def _recorded(self, rule: Any, call: Call) -> Any:
        """Returns a rule as graphs, for it captured traced values."""
        raise NotImplementedError

    # -- calls -------------------------------------------------------------------------

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function.

        Raises:
          ArgumentError: it has no rule, or an argument is not an array.
        """
        passes = self._passes()
        if any(function is None for function in passes):
            raise ArgumentError(
                f"{self.kind}: {self.name} has no rule: set one with its method "
                f"{self.setter}"
            )
        values = self.positional(args, kwargs)
        # Nothing differentiates the call, so no rule is needed.
        if isinstance(state.trace, EvalTrace) or state.trace.final:
            return self.fun(*values)
        call, leaves, body = self.traced(values)
        captured: list[Any] = []
        # Calls share the graph; a rule that captures tracers is for this one alone.
        if self.captures and (tracers := captured_tracers((*passes, call.fixed))):
            direct = self._rule(call)
            rule, captured = self.as_traced(
                (*passes, *call.fixed, *call.in_avals),
                direct,
                lambda: self._recorded(direct, call),
                tracers,
            )
        else:
            rule = self._rule_beside(body.graph, passes, call)
        counts = {"num_consts": len(body.consts)}
        if self.captures:
            counts["num_rule_consts"] = len(captured)
        outs = self.primitive.bind(
            *body.consts, *captured, *leaves, graph=body.graph, rule=rule, **counts
        )
        result: R = body.out_tree.unflatten(outs)
        return result

    def _rule_beside(self, graph: Graph, passes: tuple[Any, ...], call: Call) -> Any:
        """Returns the rule of all calls that share a graph."""
        key = (self.kind, *passes, self.symbolic_zeros)
        # Functions that close over nothing may be kept by the graph, for all functions
        # that have them; others, and the arrays in them, go with this one.
        if call.fixed or any(
            getattr(f, "__closure__", key) is not None for f in passes
        ):
            memo = memo_beside(self, graph)
        else:
            memo = graph.memo
        rule = memo.get(key)
        if rule is None:
            rule = memo[key] = self._rule(call)
        return rule

    def __getstate__(self) -> dict[str, Any]:
        """What it is made of, without what it remembers."""
        return {name: v for name, v in self.__dict__.items() if name != "_memo"}

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As its name, if that is in its module."""
        named = global_name(self)
        return super().__reduce_ex__(protocol) if named is None else named

    def positional(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, ...]:
        """Returns all arguments by position, defaults included.

        What can only be given by keyword is left to its default, or to the `partial`
        that has fixed it.

        Raises:
          ArgumentError: a keyword-only argument is given.
        """
        # The usual call: all by position, so no (slow) `Signature.bind`.
        if not kwargs and len(args) == self._count:
            return args
        if self._signature is None:
            if kwargs:
                raise ArgumentError(
                    f"{self.kind}: {self.name} takes arguments by position only, got "
                    f"{', '.join(kwargs)}"
                )
            return args
        bound = self._signature.bind(*args, **kwargs)
        # Rules are called with every argument, whether the caller gave it or not.
        bound.apply_defaults()
        named = [name for name in bound.kwargs if name in kwargs]
        if named:
            raise ArgumentError(
                f"{self.kind}: arguments of {self.name} must have positions, but "
                f"{', '.join(named)} can only be given by keyword"
            )
        return bound.args

    def traced(self, args: tuple[Any, ...]) -> tuple[Call, list[Any], Body]:
        """Returns what is known of a call, its leaves, and the traced function.

        Raises:
          ArgumentError: a leaf is not an array.
        """
        what = f"{self.kind}: nondiff_argnums"
        found = normalize_indices(self._fixed, len(args), what, self.name)
        positions = tuple(sorted(found))
        fixed, others = tuple(args[i] for i in positions), without(args, positions)
        leaves, in_tree = tree.flatten(others)
        for i, leaf in enumerate(leaves):
            if not is_arraylike(leaf) and not isinstance(leaf, Ref):
                path = tree.keystr(tree.leaves_with_path(others)[i][0])
                error = not_an_array(
                    leaf, f"{self.kind}: {self.name} got (at args{path})"
                )
                raise ArgumentError(
                    f"{error}; or name it in nondiff_argnums if it is an option"
                )
        avals = [typeof(x) for x in leaves]
        fun = with_fixed(self.fun, positions, fixed)
        body = trace_body(fun, in_tree, avals, name=self.name)
        outs = body.graph.out_avals
        return Call(positions, fixed, in_tree, avals, body.out_tree, outs), leaves, body

    def as_traced(
        self,
        key: tuple[Any, ...],
        direct: Any,
        make: Callable[[], Any],
        tracers: list[Any],
    ) -> tuple[Any, list[Any]]:
        """Returns a rule that captured traced values as graphs, and those values.

        A rule may call its own function. While it is traced, that call must not trace
        it once more: it first refers to the user's rule, and if there was such a call,
        the rule is traced a second time, with the call referring to the result. If it
        calls its function with ever new functions (the backward pass of a fixed point
        is one of another function), the rules of those are traced when they are used:
        only as many as there are orders of derivatives.

        Args:
          key: what the rule depends on.
          direct: the user's rule.
          make: traces it.
          tracers: what it captured, as far as one can see.
        """
        for known, rule, consts in reversed(self._tracing):
            if len(known) == len(key) and all(map(operator.is_, known, key)):
                # The rule calls its own function, from within `make` below.
                self._called = True
                return rule, consts
        if self._tracing:
            return DeferredRule(make, tracers), tracers
        self._called = False
        self._tracing.append((key, direct, []))
        try:
            rule = make()
            if self._called:
                self._tracing[-1] = (key, rule, rule.consts)
                rule.trace()
        finally:
            self._tracing.pop()
        return rule, rule.consts


def arrays(values: Sequence[Any]) -> list[Any]:
    """Returns values as rules get them: Python and NumPy numbers become arrays."""
    return [
        v
        if isinstance(v, Array | Zero | Ref) or typeof(v).dtype == dtypes.float0
        else as_array(v)
        for v in values
    ]


def captured_tracers(function: Any) -> list[Tracer]:
    """Returns the traced values from outside that a function refers to."""
    found: dict[int, Tracer] = {}
    _add_captured(function, found, set())
    return list(found.values())


def _add_captured(value: Any, found: dict[int, Tracer], seen: set[int]) -> None:
    if isinstance(value, Tracer):
        found[id(value)] = value
        return
    if id(value) in seen:
        return
    # Functions refer to each other, and to themselves.
    seen.add(id(value))
    parts: list[Any] = []
    if isinstance(value, functools.partial):
        parts = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, types.MethodType):
        parts = [value.__self__, value.__func__]
    elif isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            with suppress(ValueError):  # the name is bound later
                parts.append(cell.cell_contents)
        parts += value.__defaults__ or ()
    elif isinstance(value, list | tuple | dict) or tree.is_tree_node(type(value)):
        parts = tree.leaves(value)
    for part in parts:
        _add_captured(part, found, seen)


# -- what rules return -----------------------------------------------------------------


def same_structure(expected: Any, value: Any, what: str) -> list[Any]:
    """Returns the leaves of what a rule returned.

    Raises:
      TreeError: it has not the structure of the function's result.
    """
    leaves, treedef = tree.flatten(value)
    if treedef != expected:
        where = difference(expected, value) or (
            f"expected {tree.written(expected)}, got {tree.written(treedef)}"
        )
        raise TreeError(f"{what} must have the structure of the result, but {where}")
    return leaves


def checked_values(
    values: Sequence[Any], avals: Sequence[Aval], what: str
) -> list[Any]:
    """Returns values of a rule.

    Raises:
      ArgumentError: one is not an array.
      ShapeError, DtypeError: one has not the type it must have.
    """
    for value, aval in zip(values, avals, strict=True):
        if not is_arraylike(value):
            raise not_an_array(value, f"{what} holds")
        require_type(typeof(value), aval, what)
    return list(values)
