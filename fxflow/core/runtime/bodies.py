"""Functions of pytrees traced into graphs, with a cache.

The body of a loop or a branch is traced when the operation is used. In an eager loop
that happens again and again with the same function, or with a new one of the same code
(a lambda written in the loop). `trace_body` remembers the graph as long as everything
the function refers to is the same: values that cannot change by what they are, lists
and dicts by what they hold now. A function that refers to anything else (an object with
state, say) is traced each time, which is always right; a `jit` around saves that.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow._frozen import Frozen
from fxflow.core import source, tree
from fxflow.core.arrays import Array, Aval
from fxflow.core.caches import Cache
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Primitive
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.labels import tree_labels
from fxflow.core.runtime.eager import options, plans_of

# Graphs kept; the oldest half goes when there are more.
MAX_BODIES = 1024
# Lists and dicts with more items are not looked through.
MAX_ITEMS = 1000
# Larger arrays are not kept alive by a key.
MAX_CONST_BYTES = 1 << 16


class Body(Frozen, eq=False):
    """A traced function.

    Attributes:
      graph: its first inputs are captured values.
      consts: the captured values.
      out_tree: structure of the result.
    """

    graph: Graph
    consts: list[Any]
    out_tree: Any


_bodies: Cache[Any, Body] = Cache("traced bodies", MAX_BODIES, by_options=True)


def trace_body(
    function: Callable[..., Any],
    in_tree: Any,
    avals: Sequence[Aval],
    *,
    name: str,
    check: Callable[[Any], Any] | None = None,
    keywords: bool = False,
) -> Body:
    """Traces a function of pytrees, or finds it traced.

    Args:
      function: to trace.
      in_tree: structure of its positional arguments; see `keywords`.
      avals: types of the leaves.
      name: of the graph.
      check: called with the result when it is traced; raises if it is not wanted.
      keywords: whether `in_tree` is of `(args, kwargs)`.
    """
    key: Any = function_key(function)
    if key is not None:
        key = (key, name, in_tree, tuple(avals), state.axes, options())
        known = _bodies.get(key)
        if known is not None:
            return known
    structure: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        given = in_tree.unflatten(leaves)
        args, kwargs = given if keywords else (given, {})
        out = function(*args, **kwargs)
        if check is not None:
            check(out)
        outs, treedef = tree.flatten(out)
        structure.append(treedef)
        return outs

    graph, consts = trace_flat(
        flat,
        avals,
        name=name,
        labels=lambda: tree_labels(function, in_tree, keywords),
        called=source.name_of(function),
    )
    body = Body(graph, consts, structure[0])
    # A tracer belongs to one trace; a large array would be kept alive by the cache.
    if key is not None and not any(
        isinstance(c, Tracer) or c.nbytes > MAX_CONST_BYTES for c in consts
    ):
        _bodies.keep(key, body)
    return body


# -- what a function does, as a key ----------------------------------------------------


class _Same:
    """A cache key by identity, which keeps its object alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.value is self.value


class _Changeable(Exception):
    """A function refers to mutable state, of which a key can say nothing."""


_FIXED = (
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    np.ufunc,
    Graph,
    Primitive,
    Aval,
    np.dtype,
)
_names: dict[types.CodeType, tuple[str, ...]] = {}


def function_key(function: Any) -> Any:
    """Returns a key equal for functions that do the same, or None.

    Two functions do the same if they have the same code and everything they refer to
    (captured variables, defaults, globals, functions called) is the same, which is
    looked up at each call. None means that it cannot be told.
    """
    try:
        return _value_key(function, ())
    except _Changeable:
        return None


def _function_key(function: types.FunctionType, inside: tuple[Any, ...]) -> Any:
    code = function.__code__
    for i, outer in enumerate(inside):
        if outer is function:
            return "recursion", i
    if plans_of(function) is not None:  # a library function: its closure is a cache
        return _Same(function)
    # Our own globals do not change.
    if source.is_internal(code.co_filename) and function.__closure__ is None:
        return _Same(function)
    inside = (*inside, function)
    parts: list[Any] = [code]
    parts += [_value_key(value, inside) for value in function.__defaults__ or ()]
    for name, default in (function.__kwdefaults__ or {}).items():
        parts += [name, _value_key(default, inside)]
    for cell in function.__closure__ or ():
        try:
            content = cell.cell_contents
        except ValueError:
            # The cell is empty: the function refers to a name that is bound later.
            raise _Changeable from None
        parts.append(_value_key(content, inside))
    if not source.is_internal(code.co_filename):
        scope = function.__globals__
        parts += [
            (name, _value_key(scope[name], inside))
            for name in _referred(code)
            if name in scope
        ]
    return tuple(parts)


def _referred(code: types.CodeType) -> tuple[str, ...]:
    """Returns the names that code, and the code of functions in it, looks up."""
    known = _names.get(code)
    if known is None:
        found = dict.fromkeys(code.co_names)
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                found.update(dict.fromkeys(_referred(const)))
        known = _names[code] = tuple(found)
    return known


def _calls_own_code(metaclass: type) -> bool:
    """Returns whether a class makes its instances in a way of its user's.

    Modules of some libraries take their names and their parameters from a state there.
    """
    if issubclass(metaclass, enum.EnumMeta):
        return False
    code = getattr(metaclass.__call__, "__code__", None)
    return code is not None and not source.is_internal(code.co_filename)


def _value_key(value: Any, inside: tuple[Any, ...]) -> Any:
    kind = type(value)
    if kind is types.FunctionType:
        return _function_key(value, inside)
    if value is None or kind in (bool, int, str, bytes):
        return kind, value
    if kind in (float, complex):
        return kind, repr(value)  # 0.0 equals -0.0, but does not do the same
    if kind is tuple:
        return kind, *(_value_key(item, inside) for item in value)
    if kind is list or kind is dict:
        if len(value) > MAX_ITEMS or any(value is outer for outer in inside):
            raise _Changeable
        inside = (*inside, value)
        items = value if kind is list else (x for pair in value.items() for x in pair)
        return kind, *(_value_key(item, inside) for item in items)
    if isinstance(value, type) and _calls_own_code(kind):
        raise _Changeable
    if isinstance(value, _FIXED) or (kind is Array and value.nbytes <= MAX_CONST_BYTES):
        return _Same(value)
    if isinstance(value, tree.PyTreeDef):
        return value
    if isinstance(value, enum.Enum):
        return _Same(value)
    if isinstance(value, functools.partial):
        return (
            functools.partial,
            _value_key(value.func, inside),
            *(_value_key(item, inside) for item in value.args),
            *((k, _value_key(v, inside)) for k, v in sorted(value.keywords.items())),
        )
    try:
        # What the object has: to ask its class's `__getattr__` may run the user's code.
        wrapped = object.__getattribute__(value, "__wrapped__")
    except AttributeError:
        wrapped = None
    if wrapped is not None and not isinstance(value, types.MethodType):
        # A jitted function, say: the object itself, and what it calls.
        return _Same(value), _value_key(wrapped, inside)
    raise _Changeable
