"""Library functions: functions of arrays that are one plan when eager.

A library function (`@library`) called with concrete arrays is one plan, found by its
arguments: Python numbers, NumPy data and arrays become the arrays that the plan takes,
and what tells two plans apart becomes its key. Under any other interpreter the function
just runs, and its operations land where they belong.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from math import copysign
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from fxflow._config import config
from fxflow.core import source, tree
from fxflow.core.arrays import (
    Array,
    ArrayType,
    Aval,
    as_array,
    dtypes,
    unwrapped,
)
from fxflow.core.arrays.array import put_host
from fxflow.core.arrays.protocol import array_method
from fxflow.core.caches import Cache
from fxflow.core.ir.graph import Graph, Var
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import Tracer, leaked, state
from fxflow.core.runtime.eager import (
    EVAL,
    OVERRIDDEN,
    PLAN_BYTES,
    PLANS,
    Plan,
    graph_plan,
    options,
)
from fxflow.core.runtime.execute import check_finite
from fxflow.core.sizes import Size
from fxflow.devices.buffers import default_placement
from fxflow.errors import NonFiniteError

F = TypeVar("F", bound=Callable[..., Any])


def library(*static: str, quick: bool = False) -> Callable[[F], F]:
    """Makes a function of arrays one plan when eager, and inlined when traced.

    Args:
      *static: names of the arguments that are not arrays (axes, shapes, dtypes).
        Arguments that are None, strings or types are always static.
      quick: whether its program takes XLA long, so that for few numbers it is better
        compiled fast than run fast.

    Returns:
      A decorator for a pure function of arrays, numbers and sequences of them that
      returns an array or a pytree of arrays.
    """

    def decorate(function: F) -> F:
        plans: Cache[Any, Plan] = Cache("eager functions", room=PLANS)
        code = function.__code__
        positional = code.co_varnames[: code.co_argcount]
        fixed = frozenset(static)
        fixed_positions = frozenset(
            i for i, name in enumerate(positional) if name in fixed
        )

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                trace = state.trace
                if trace is OVERRIDDEN:
                    if config.debug_nans or config.debug_infs:
                        return _debugged(function, args, kwargs)
                elif trace is not EVAL:
                    kinds = wide_kinds((*args, *kwargs.values()))
                    if kinds:
                        args = tuple(
                            a if i in fixed_positions else with_all_bits(a, kinds)
                            for i, a in enumerate(args)
                        )
                        kwargs = {
                            name: a if name in fixed else with_all_bits(a, kinds)
                            for name, a in kwargs.items()
                        }
                    if Size in map(type, args):
                        args = tuple(
                            a if i in fixed_positions else unwrapped(a)
                            for i, a in enumerate(args)
                        )
                        return function(*args, **kwargs)
                    return function(*map(unwrapped, args), **kwargs)
                # The key of arrays alone is what the loop below makes of them.
                elif not kwargs:
                    types = []
                    for a in args:
                        if type(a) is not Array:
                            break
                        types.append(a._type)
                    else:
                        plan = plans.get(tuple(types))
                        if plan is not None:
                            return plan(*args)
                key: list[Any] = [] if trace is EVAL else [options()]
                arrays: list[Any] = []
                add = key.append
                beside = (*args, *kwargs.values()) if kwargs else args
                for i, a in enumerate(args):
                    if type(a) is Array:
                        add(a._type)
                        arrays.append(a)
                    elif i in fixed_positions:
                        # Not by equality alone: 1, 1.0 and True are equal.
                        add(exact(a))
                        add(a)
                    else:
                        classify(a, key, arrays, beside)
                for name, a in kwargs.items():
                    add(name)
                    if name in fixed:
                        add(exact(a))
                        add(a)
                    else:
                        classify(a, key, arrays, beside)
                frozen = tuple(key)
                try:
                    plan = plans.get(frozen)
                except TypeError:
                    # A static argument without a hash: run operation by operation.
                    return function(*args, **kwargs)
                if plan is None:
                    if any(
                        i in fixed_positions and type(a) is Array
                        for i, a in enumerate(args)
                    ):
                        # The key names its type only, and the function asks its value.
                        return function(*args, **kwargs)
                    plan = _library_plan(
                        function, args, kwargs, fixed_positions, fixed, quick
                    )
                    plans.keep(frozen, plan, PLAN_BYTES)
                return plan(*arrays)
            except Exception as error:
                wrong = call.leave(error, args, kwargs)  # type: ignore[attr-defined]
                if wrong is not None:
                    try:
                        raise wrong from None
                    except Exception as told:  # without this frame
                        source.shorten(told)
                        raise
                raise
            except BaseException:
                source.interrupted()
                raise

        call.plans = plans  # type: ignore[attr-defined]
        call.leave = _leave  # type: ignore[attr-defined]
        return cast(F, call)

    return decorate


def _leave(error: Exception, args: Any, kwargs: Any) -> None:
    """What leaves a library function: `boundary` has words for public ones."""
    if not source.is_internal(sys._getframe(2).f_code.co_filename):
        source.shorten(error)


def _debugged(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Runs a library function operation by operation.

    Only NaN and infinity in its results are the caller's.
    """
    with config.override(debug_nans=False, debug_infs=False):
        out = function(*args, **kwargs)
    try:
        arrays = [x for x in tree.leaves(out) if type(x) is Array]
        check_finite(f"{function.__name__} at {source.user_line()}", arrays)
    except NonFiniteError:
        function(*args, **kwargs)  # again, for the operation's name
        raise
    return out


def _library_plan(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    fixed_positions: frozenset[int],
    fixed: frozenset[str],
    quick: bool,
) -> Plan:
    arrays: list[Array] = []
    integers: dict[int, int] = {}
    beside = (*args, *kwargs.values())

    def collect(value: Any) -> Callable[[list[Any]], Any]:
        """Returns how to rebuild an argument from the list of traced arrays."""
        key: list[Any] = []
        found: list[Any] = []
        if isinstance(value, list | tuple):
            parts = [collect(item) for item in value]
            kind = type(value)
            # A namedtuple takes its fields one by one.
            if hasattr(value, "_fields"):
                return lambda traced: kind(*(part(traced) for part in parts))
            return lambda traced: kind(part(traced) for part in parts)
        classify(value, key, found, beside)
        if not found:
            return lambda traced: value
        position = len(arrays)
        arrays.append(found[0])
        if type(value) is int:
            integers[position] = value
        return lambda traced: traced[position]

    rebuilt = [
        (lambda traced, a=a: a) if i in fixed_positions else collect(a)
        for i, a in enumerate(args)
    ]
    named = {
        name: (lambda traced, a=a: a) if name in fixed else collect(a)
        for name, a in kwargs.items()
    }
    structure: list[Any] = []

    def flat(*traced: Any) -> Sequence[Any]:
        given = list(traced)
        out = function(
            *(make(given) for make in rebuilt),
            **{name: make(given) for name, make in named.items()},
        )
        leaves, treedef = tree.flatten(out)
        structure.append(treedef)
        return leaves

    name = function.__name__
    # Final: nothing differentiates a plan, so 0-d operands need no broadcast.
    graph, consts = trace_flat(flat, [a.aval for a in arrays], name=name, final=True)
    for position, integer in integers.items():
        _check_fits(integer, graph.inputs[len(consts) + position], graph)
    constants = [as_array(c) for c in consts]
    treedef = structure[0]
    single = tree.treedef_is_leaf(treedef)
    arg_types = [a._type for a in (*constants, *arrays)]
    plan = graph_plan(graph, arg_types, name, single, quick)
    if constants:
        plan = functools.partial(plan, *constants)
    if single:
        return plan
    unflatten = treedef.unflatten
    return lambda *values: unflatten(plan(*values))


def _check_fits(integer: int, var: Var, graph: Graph) -> None:
    """Refuses a Python int that wraps around where it is made an array's dtype.

    Under a trace the same number is a constant, which is refused as well.

    Raises:
      OverflowError: it does not fit.
    """
    for node in graph.nodes:
        if var in node.inputs and node.primitive.name == "convert_element_type":
            dtype = node.params["new_dtype"]
            if dtypes.is_integer(dtype):
                dtypes.of_python(integer, dtype)


# -- arguments as operands -------------------------------------------------------------

SCALARS: tuple[type, ...] = (bool, int, float, complex)
_new = object.__new__


def classify(
    value: Any, key: list[Any], arrays: list[Any], beside: Sequence[Any]
) -> None:
    """Adds an argument to the key of a plan, and its arrays to the plan's arguments.

    Args:
      value: the argument.
      key: of the plan.
      arrays: the plan's arguments.
      beside: all arguments. Beside an array of 64 bits, numbers and NumPy data keep
        all of theirs.
    """
    kind = type(value)
    if kind is Array:
        key.append(value._type)
        arrays.append(value)
    elif kind in SCALARS:
        array = number(value, kind, bool(wide_kinds(beside)))
        key.append(array._type)
        if kind is int:
            # Whether it fits a narrow dtype is found out when the plan is made.
            key.append(_size_class(value))
        arrays.append(array)
    elif kind is list or kind is tuple:
        key.append((kind, len(value)))
        for item in value:
            classify(item, key, arrays, beside)
    elif value is None or kind is str or isinstance(value, type | np.dtype):
        key.append(kind)
        key.append(value)
    elif isinstance(value, Tracer):
        raise leaked(value)
    elif isinstance(value, np.ndarray | np.generic) or array_method(value):
        array = _host_data(value, wide_kinds(beside))
        key.append(array._type)
        arrays.append(array)
    else:
        key.append(exact(value))
        key.append(value)


def exact(value: Any) -> Any:
    """Returns what tells a static value from others that are equal to it.

    1, 1.0 and True are equal and hash alike, and so are 0.0 and -0.0, but a function
    may do something else with each; also within tuples, frozen sets and dataclasses.
    For any other type its own equality decides: this is the type.
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind
    if kind is float:
        return kind if value else (kind, copysign(1.0, value))
    if kind is complex:
        return kind, exact(value.real), exact(value.imag)
    if isinstance(value, np.inexact):
        return kind, value.tobytes()
    if isinstance(value, tuple):
        return kind, *map(exact, value)
    if kind is frozenset:
        return kind, frozenset((item, exact(item)) for item in value)
    if is_dataclass(value) and _compares_fields(kind):
        parts = (getattr(value, f.name) for f in fields(value) if f.compare)
        return kind, *map(exact, parts)
    return kind


_PLAIN = frozenset({int, bool, str, bytes, type(None), FunctionType})


def _compares_fields(kind: type) -> bool:
    """Returns whether a class has the equality that `dataclass` writes for it."""
    code = getattr(kind.__eq__, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _size_class(value: int) -> int:
    """Returns a number that is equal for integers that the same dtypes hold."""
    if value < 0:
        return ~_SIZES[min((~value).bit_length(), 64)]
    return _SIZES[min(value.bit_length(), 64)]


# For each number of bits, the least number of value bits of a dtype that has them.
_SIZES = tuple(
    next(n for n in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64) if bits <= n)
    for bits in range(65)
)

_numbers: Cache[Any, ArrayType] = Cache("types of Python numbers")


def wide_kinds(values: Sequence[Any]) -> str:
    """Returns the kinds, f (inexact) and i (integer), of 64-bit arrays and dtypes."""
    found = ""
    for value in values:
        if isinstance(value, Array):
            dtype = value.aval.dtype
            if dtypes.is_wide(dtype):
                found += "f" if dtypes.is_inexact(dtype) else "i"
        elif type(value) is list or type(value) is tuple:
            found += wide_kinds(value)
        elif isinstance(value, str | type | np.dtype) and value in _WIDE_NAMES:
            found += "f" if np.dtype(value).kind in "fc" else "i"
    return found


_WIDE = tuple(d for d in dtypes.ALL if dtypes.is_wide(d))
# What a user may write for a dtype of 64 bits.
_WIDE_NAMES = {*_WIDE, *(d.type for d in _WIDE), *(d.name for d in _WIDE)}


def with_all_bits(value: Any, kinds: str) -> Any:
    """Returns an argument beside 64-bit arrays of some kinds, under a trace."""
    if type(value) is float or type(value) is complex:
        return number(value, type(value), True)
    if isinstance(value, np.ndarray | np.generic):
        return _host_data(value, kinds)
    return value


def _host_data(value: Any, kinds: str) -> Array:
    """Returns NumPy data as an array, of 64 bits beside 64-bit arrays of its kind."""
    if not (isinstance(value, np.ndarray | np.generic) and dtypes.is_wide(value.dtype)):
        return as_array(value)
    if ("f" if value.dtype.kind in "fc" else "i") not in kinds:
        return as_array(value)
    host = np.array(value)
    return put_host(host, Aval(host.shape, dtypes.dtype(host.dtype)))


def number(value: Any, kind: type, wide: bool) -> Array:
    """Returns a Python number as a weak 0-d array; `as_array` without its questions."""
    where = default_placement()
    overridden = state.trace is OVERRIDDEN  # by options that may change the dtype
    array_type = None if overridden else _numbers.get((kind, where, wide))
    try:
        if array_type is None or not where.is_host:
            dtype = dtypes.default(kind, wide=wide or None)
            dtypes.of_python(value, dtype)
            aval = Aval((), dtype, kind is not bool)
            array = put_host(np.array(value, dtype), aval)
            if not overridden:
                _numbers[kind, where, wide] = array._type
            return array
        host = np.array(value, array_type.aval.dtype)
    except OverflowError:
        dtypes.of_python(value)  # says it in words
        raise
    made: Array = _new(Array)
    made._host = host
    made._type = array_type
    return made
