"""Functions of pytrees traced into graphs, with a cache.

The body of a loop or a branch is traced when the operation is used. In an eager loop
that happens again and again with the same function, or with a new one of the same code
(a lambda written in the loop). `trace_body` remembers the graph as long as everything
the function refers to is the same: values that cannot change by what they are, lists
and dicts by what they hold now. It keeps nothing of that alive: when an object that the
function refers to is freed, the graph is forgotten. A function that refers to anything
else (an object with state, say) is traced each time, which is always right; a `jit`
around saves that.
"""

from __future__ import annotations

import enum
import functools
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fxflow._frozen import Frozen
from fxflow.core import source, tree
from fxflow.core.arrays import Array, Aval
from fxflow.core.caches import Cache, Room
from fxflow.core.ir.graph import Graph, Node, any_node
from fxflow.core.ir.primitive import Primitive
from fxflow.core.ir.staging import placing_scopes, trace_flat
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.labels import tree_labels
from fxflow.core.runtime.eager import options, plans_of

# Graphs kept; the oldest half goes when there are more.
MAX_BODIES = 1024
# Lists and dicts with more items are not looked through.
MAX_ITEMS = 1000
# Larger arrays that were made in tracing are not kept with a graph.
MAX_CONST_BYTES = 1 << 16
# Bytes of all graphs together; of a node of one, about.
MAX_BYTES = 64 << 20
NODE_BYTES = 2048


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


def trace_body(
    function: Callable[..., Any],
    in_tree: Any,
    avals: Sequence[Aval],
    *,
    name: str,
    check: Callable[[Any], Any] | None = None,
    keywords: bool = False,
    labels: Callable[[], list[str]] | None = None,
) -> Body:
    """Traces a function of pytrees, or finds it traced.

    Args:
      function: to trace.
      in_tree: structure of its positional arguments; see `keywords`.
      avals: types of the leaves.
      name: of the graph.
      check: called with the result when it is traced; raises if it is not wanted.
      keywords: whether `in_tree` is of `(args, kwargs)`.
      labels: gives what messages call the leaves of `name`; None: the function's names.
    """
    key: Any = function_key(function)
    if key is not None:
        scopes = placing_scopes()
        key = (key, name, in_tree, tuple(avals), state.axes, scopes, options())
        known = _bodies.get(key)
        if known is not None:
            graph, refs, out_tree = known
            consts = [ref() for ref in refs]
            # An array may be freed just now, in another thread.
            if all(c is not None for c in consts):
                return Body(graph, consts, out_tree)
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
        labels=labels or (lambda: tree_labels(function, in_tree, keywords)),
        called=name if labels else source.name_of(function),
    )
    body = Body(graph, consts, structure[0])
    if key is not None:
        _keep(key, body)
    return body


_Kept = tuple[Graph, list[Callable[[], Any]], Any]
_bodies: Cache[Any, _Kept] = Cache(
    "traced bodies", MAX_BODIES, by_options=True, room=Room(MAX_BYTES)
)


def _keep(key: Any, body: Body) -> None:
    """Keeps a traced function, if that keeps nothing of the user's alive.

    Captured arrays that the function refers to are the user's; any other was made when
    it was traced, and is freed with the graph.
    """
    # A tracer belongs to one trace.
    if any(isinstance(c, Tracer) for c in body.consts):
        return
    if any_node(body.graph, "closes over arrays", _closes_over_arrays):
        return
    known = list(_same_in(key))
    theirs = {id(same.value()) for same in known}
    refs: list[Callable[[], Any]] = []
    own = 0
    for const in body.consts:
        if id(const) in theirs:
            refs.append(weakref.ref(const))
        else:
            own += const.nbytes
            refs.append(functools.partial(_itself, const))
    if own > MAX_CONST_BYTES:
        return
    nbytes = own + NODE_BYTES * (1 + len(body.graph.nodes))
    _bodies.keep(key, (body.graph, refs, body.out_tree), nbytes)
    for same in known:
        same.forget(key)


def _itself(value: Any) -> Any:
    return value


def _closes_over_arrays(node: Node) -> bool:
    """Returns whether a node holds a function of the user's that may do so."""
    return any(
        _may_hold(value, 0)
        for name, value in node.params.items()
        if name in ("rule", "function")
    )


def _may_hold(value: Any, depth: int) -> bool:
    if callable(value) and isinstance(
        value, types.FunctionType | types.MethodType | functools.partial
    ):
        key = function_key(getattr(value, "__wrapped__", value))
        return key is None or any(
            isinstance(same.value(), Array) for same in _same_in(key)
        )
    if isinstance(value, Array):
        return True
    if depth > 8 or isinstance(value, Graph | Aval | tree.PyTreeDef | type | str):
        return False
    if isinstance(value, tuple | list):
        return any(_may_hold(item, depth + 1) for item in value)
    # A rule, which holds the user's functions or another rule.
    return any(_may_hold(v, depth + 1) for v in getattr(value, "__dict__", {}).values())


# -- what a function does, as a key ----------------------------------------------------


class _Same:
    """A cache key by identity.

    It does not keep its object alive, if there are weak references to such objects.
    """

    __slots__ = ("_hash", "value")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        try:
            self.value: Callable[[], Any] = weakref.ref(value)
        except TypeError:
            self.value = functools.partial(_itself, value)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Same:
            return False
        value = self.value()
        return value is not None and other.value() is value

    def forget(self, key: Any) -> None:
        """Forgets an entry when the object is freed."""
        value = self.value()
        if isinstance(self.value, weakref.ref) and value is not None:
            # The module's names are cleared first when the process ends.
            cache = _bodies
            self.value = weakref.ref(value, lambda _: cache.pop(key, None))


def _same_in(key: Any) -> Iterator[_Same]:
    """Returns what a key compares by identity."""
    if type(key) is _Same:
        yield key
    elif type(key) is tuple:
        for part in key:
            yield from _same_in(part)


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
    looked up at each call. None means that this is unknown.
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
    if isinstance(value, _FIXED) or kind is Array:
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
