"""References to arrays that change: what they are to each interpreter.

A reference belongs to the interpreter under which it was made. There it is a *cell*: a
Python object that holds a value of that interpreter (an array, or a tracer), which a
write replaces. Since the values have tangents, or a mapped axis, so have the contents,
and no interpreter needs rules for references.

Only a graph that is being recorded knows operations on references: a reference made in
it, given to it or captured from outside is a variable of type `Ref{f32[3]}` there
(`GraphRef`), and reads and writes are nodes in the order of the program. Before such a
graph is run or derived, `discharge` turns it into one of arrays alone.

Between the current interpreter and the one that a reference belongs to there may be
others; a value that one of these computes with (that is being differentiated, say)
cannot be written to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import AbstractRef, Array, Aval, as_array, dtypes, promotion
from fxflow.core.arrays.array import (
    is_arraylike,
    not_an_array,
    typeof,
    unwrapped,
)
from fxflow.core.arrays.aval import _Typed
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import table
from fxflow.core.ir.ref_index import (
    WHOLE,
    Index,
    composed,
    read_index,
    taken,
    updated,
)
from fxflow.core.ir.trace import Trace, Tracer, state
from fxflow.core.source import at_fault
from fxflow.errors import (
    ArgumentError,
    DeletedArrayError,
    DtypeError,
    LeakedTracerError,
    ShapeError,
    ShardingTypeError,
)

# From this many bytes on a write to a part is done in place: a call of a program costs
# as much as a copy of half as much.
IN_PLACE_BYTES = 1 << 18


class Ref(_Typed):
    """A mutable reference to an array. Made by `fxflow.new_ref`.

    `ref[index]` reads, `ref[index] = value` writes, also inside of transformed
    functions, which it may be passed to or captured by.

    Attributes:
      aval: its type, such as `Ref{f32[3]}`.

    Example:
      >>> ref = fxflow.new_ref(fnp.zeros(2))
      >>> ref[1] += 3.0
      >>> ref[...]
      Array([0., 3.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_lent", "_trace", "_value", "aval")

    # Writes to an array from which a NumPy array is on the left are not NumPy's.
    __array_ufunc__ = None
    aval: AbstractRef
    _trace: Trace | None
    _value: Any
    _lent: bool

    def __init__(self, aval: AbstractRef, trace: Trace | None, value: Any) -> None:
        self.aval, self._trace, self._value = aval, trace, value
        # Whether someone else has the array that it holds, too: then its memory is not
        # ours to reuse.
        self._lent = True

    # -- type --------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.aval.dtype  # type: ignore[no-any-return]

    @property
    def sharding(self) -> Any:
        """How the contents are divided over devices."""
        return contents(self).sharding

    @property
    def committed(self) -> bool:
        """Whether the contents stay on their device."""
        return bool(contents(self).committed)

    @property
    def _type(self) -> Any:
        """What a compiled call is known by; only of a cell of an array."""
        # Asked by the short path of `jit`: after an AttributeError the call goes the
        # long way.
        return self._value._type.of_ref

    def unsafe_buffer_pointer(self) -> int:
        """Returns the address of the contents in the memory of their device."""
        return int(contents(self).unsafe_buffer_pointer())

    # -- reads and writes --------------------------------------------------------------

    def __getitem__(self, index: Any) -> Array:
        return get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        swap(self, index, value, wanted=False)

    def get(self) -> Array:
        """Returns the contents, as `ref[...]`."""
        return get(self)

    def set(self, value: Any) -> None:
        """Replaces the contents, as `ref[...] = value`."""
        swap(self, ..., value, wanted=False)

    def swap(self, value: Any) -> Array:
        """Replaces the contents; returns what they were."""
        old: Array = swap(self, ..., value)
        return old

    def addupdate(self, value: Any) -> None:
        """Adds to the contents."""
        addupdate(self, ..., value)

    @property
    def at(self) -> At:
        """Parts as references: `ref.at[index]`."""
        return At(self, ())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{at_fault(self)}len() of a 0-d reference ({self.aval})")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TypeError(
            f"{at_fault(self)}a reference ({self.aval}) is neither true nor false: "
            "read it with ref[...]"
        )

    def __repr__(self) -> str:
        value = self._value
        if type(value) is Array:
            return "Ref" + repr(value).removeprefix("Array")
        return f"Traced<{self.aval}>"

    def __copy__(self) -> Ref:
        return Ref(self.aval, self._trace, contents(self))

    def __deepcopy__(self, memo: Any) -> Ref:
        return self.__copy__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.aval, contents(self))


class GraphRef(Ref):
    """A reference in a graph that is being recorded: a variable."""

    __slots__ = ("_var",)

    _var: Any

    def __init__(self, trace: Any, var: Any) -> None:
        super().__init__(var.aval, trace, None)
        self._var = var

    def origin(self) -> str:
        """Names the argument, or the line that made the reference."""
        trace: Any = self._trace
        return str(trace.origin(self._var))


# What Python calls it in its own errors.
GraphRef.__name__ = "Ref"


class At:
    """What `ref.at` is: index it to get a part."""

    __slots__ = ("_indices", "_ref")

    def __init__(self, ref: Ref, indices: tuple[Any, ...]) -> None:
        self._ref, self._indices = ref, indices

    def __getitem__(self, index: Any) -> RefView:
        return RefView(self._ref, (*self._indices, index))


class RefView(_Typed):
    """A part of a reference, itself read and written by indexing.

    Attributes:
      aval: the type that a reference to the part alone would have.
    """

    __slots__ = ("_indices", "_ref", "aval")

    aval: AbstractRef

    def __init__(self, ref: Ref, indices: tuple[Any, ...]) -> None:
        # Parts of parts are one part, where that can be said.
        index, rest = composed(indices, ref.aval.shape)
        self._ref, self._indices = ref, (index, *rest)
        self.aval = AbstractRef(typeof(self._part(get(ref))))

    def _part(self, value: Any) -> Any:
        for index in self._indices:
            value = taken(value, index)
        return value

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return self.aval.dtype  # type: ignore[no-any-return]

    @property
    def at(self) -> At:
        """Parts of the part."""
        return At(self._ref, self._indices)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"{at_fault(self)}len() of a 0-d reference ({self.aval})")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Array:
        joined, rest = self._joined(index)
        if not rest:
            return get(self._ref, joined)
        return taken(self._part(get(self._ref)), index)  # type: ignore[no-any-return]

    def _joined(self, index: Any) -> tuple[Any, list[Any]]:
        """Returns an index into the part as one into the whole, as far as it goes."""
        if len(self._indices) == 1 and index is Ellipsis:
            return self._indices[0], []
        return composed((*self._indices, index), self._ref.aval.shape)

    def __setitem__(self, index: Any, value: Any) -> None:
        joined, rest = self._joined(index)
        if not rest:
            swap(self._ref, joined, value, wanted=False)
            return
        # From the inside out: each part is written into the one around it.
        parts = [get(self._ref)]
        for item in self._indices:
            parts.append(taken(parts[-1], item))
        new = written(parts.pop(), index, value)
        for item in reversed(self._indices):
            new = written(parts.pop(), item, new)
        swap(self._ref, ..., new, wanted=False)

    def get(self) -> Array:
        """Returns the part, as `view[...]`."""
        return self[...]

    def set(self, value: Any) -> None:
        """Replaces the part, as `view[...] = value`."""
        self[...] = value

    def swap(self, value: Any) -> Array:
        """Replaces the part; returns what it was."""
        old = self[...]
        self[...] = value
        return old

    def addupdate(self, value: Any) -> None:
        """Adds to the part."""
        self[...] = table["add"].bind(self[...], fitted(value, self.aval.inner_aval))

    def __repr__(self) -> str:
        return f"View<{self.aval}>"


def _restored(aval: AbstractRef, value: Any) -> Ref:
    return Ref(aval, None, value)


def _unread(symbol: str) -> Any:
    """Returns an operator of references that says to read them first."""

    def method(self: _Typed, *others: Any) -> Any:
        raise TypeError(
            f"{symbol}: a reference ({self.aval}) is not an array: read it first: "
            "ref[...]"
        )

    return method


def _missing(self: _Typed, name: str) -> Any:
    """Says to read a reference first whose attribute is one of arrays."""
    hint = f": read it first: ref[...].{name}" if hasattr(Array, name) else ""
    raise AttributeError(
        f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
    )


#: Python's operators of arrays; `==` and `!=` compare references as objects.
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<",
    "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "neg": "-",
    "abs": "abs()", "invert": "~",
}  # fmt: skip
_COMPARISONS = {"lt", "le", "gt", "ge"}
for _kind in (Ref, RefView):
    for _name, _symbol in _OPERATORS.items():
        setattr(_kind, f"__{_name}__", _unread(_symbol))
        if _name not in {*_COMPARISONS, "neg", "abs", "invert"}:
            setattr(_kind, f"__r{_name}__", _unread(_symbol))
    _kind.__getattr__ = _missing  # type: ignore[union-attr]


# -- which interpreter -----------------------------------------------------------------


def _home(ref: Ref) -> tuple[Trace, list[Trace]]:
    """Finds the trace that carries out operations on a reference.

    Returns:
      The interpreter that the reference belongs to, or one that records before that,
      and those from the current one up to it.

    Raises:
      LeakedTracerError: it belongs to a transformation that is over.
    """
    trace: Trace | None = state.trace
    owner = ref._trace
    passed: list[Trace] = []
    while trace is not None:
        if trace is owner or trace.records_refs:
            return trace, passed
        if owner is None and _runs(trace):
            return trace, passed
        passed.append(trace)
        trace = trace.parent
    if owner is None:
        raise ArgumentError(
            f"{at_fault(ref)}a rule or a derivative uses a reference {ref.aval} from "
            "outside, which it cannot capture here: pass it as an argument"
        )
    raise LeakedTracerError(
        f"{at_fault(ref)}a reference {ref.aval} is used outside the transformed "
        "function that made it, or was given it: return its contents (ref[...]) "
        "instead"
    )


def _is_of(value: Any, traces: Sequence[Trace]) -> bool:
    return isinstance(value, Tracer) and any(value._trace is t for t in traces)


def _require_plain(value: Any, ref: Ref, passed: Sequence[Trace]) -> None:
    """Checks that no trace on the way to a reference computes with a value."""
    if not _is_of(value, passed):
        return
    what = "vectorized" if hasattr(value._trace, "axis_name") else "differentiated"
    fix = (
        "pass the reference to the vectorized function as an argument that is mapped"
        if what == "vectorized"
        else "write lax.stop_gradient(value), or make the reference inside of the "
        "differentiated function"
    )
    raise ArgumentError(
        f"{at_fault(value)}a value {value.aval} that is being {what} cannot be written "
        f"to a reference {ref.aval} from outside: {fix}"
    )


# -- operations ------------------------------------------------------------------------


def require_ref(value: Any, what: str) -> None:
    """Checks that an argument is a reference.

    Raises:
      ArgumentError: it is something else.
    """
    if not isinstance(value, Ref | RefView):
        kind = typeof(value) if is_arraylike(value) else type(value).__name__
        raise ArgumentError(
            f"{what}: ref must be a reference, got {kind}: make one with "
            "fxflow.new_ref(x)"
        )


def new(value: Any, kind: str | None = None) -> Ref:
    """Makes a reference; see `fxflow.new_ref`."""
    if isinstance(value, Ref | RefView):
        raise ArgumentError(
            f"new_ref: init is a reference {value.aval}: references to references do "
            "not exist; copy its contents, new_ref(ref[...])"
        )
    if not is_arraylike(value):
        raise not_an_array(value, "new_ref: init is")
    value = as_array(value)
    trace = state.trace
    if trace.records_refs:
        made: Any = trace.process(table["new_ref"], (value,), {"kind": kind})
        return GraphRef(trace, made._var)
    aval = AbstractRef(typeof(value), None, kind)
    return Ref(aval, None if _runs(trace) else trace, value)


def _runs(trace: Trace) -> bool:
    """Returns whether it runs operations at once, and cells of arrays are its."""
    return trace.parent is None and not hasattr(trace, "consts")


def contents(ref: Ref) -> Any:
    """Returns what a reference holds, as a value of the current interpreter."""
    home, _ = _home(ref)
    if home.records_refs:
        return home.process(table["get"], (ref,), {"index": WHOLE})
    return _held(ref)


def _held(ref: Ref) -> Any:
    """Returns what a cell holds.

    Raises:
      DeletedArrayError: it was freed.
    """
    if ref._value is None:
        raise DeletedArrayError(
            f"{at_fault(ref)}the memory of this reference {ref.aval} was freed by "
            "free_ref"
        )
    return ref._value


def free(ref: Ref | RefView) -> None:
    """Frees the memory of a cell; nothing in a graph."""
    if isinstance(ref, RefView):
        raise ArgumentError(
            f"free_ref: a part {ref.aval} of a reference has no memory of its own"
        )
    home, _ = _home(ref)
    if home.records_refs:
        return
    if not ref._lent and type(ref._value) is Array:
        ref._value.delete()
    ref._value = None


def get(ref: Ref, index: Any = ...) -> Array:
    """Returns a part of what a reference holds."""
    home, passed = _home(ref)
    static, operands = read_index(index)
    if home.records_refs:
        plain = not any(_is_of(x, passed) for x in operands)
        if static is not None and plain:
            return home.process(  # type: ignore[no-any-return]
                table["get"], (ref, *operands), {"index": static}
            )
        whole = home.process(table["get"], (ref,), {"index": WHOLE})
    else:
        whole = _held(ref)
    if static is WHOLE:
        ref._lent = True
        return whole  # type: ignore[no-any-return]
    return taken(whole, index)  # type: ignore[no-any-return]


def swap(ref: Ref, index: Any, value: Any, *, wanted: bool = True) -> Any:
    """Writes to a part of what a reference holds.

    Args:
      ref: the reference.
      index: of the part.
      value: broadcasts to the part.
      wanted: whether to return what was there.
    """
    home, passed = _home(ref)
    static, operands = read_index(index)
    _require_plain(value, ref, passed)
    for x in operands:
        _require_plain(x, ref, passed)
    if home.records_refs and static is not None:
        part = table["get"].abstract(ref.aval, *map(typeof, operands), index=static)
        return home.process(
            table["swap"], (ref, fitted(value, part), *operands), {"index": static}
        )
    whole = contents(ref)
    inner = ref.aval.inner_aval
    if static is WHOLE:
        _store(ref, home, fitted(value, inner), True)
        return whole
    old = taken(whole, index) if wanted else None
    new = _in_place("swap", ref, static, operands, value)
    if new is None:
        new = written(whole, index, value)
    _store(ref, home, new)
    return old


def addupdate(ref: Ref, index: Any, value: Any) -> None:
    """Adds to a part of what a reference holds."""
    home, passed = _home(ref)
    static, operands = read_index(index)
    _require_plain(value, ref, passed)
    for x in operands:
        _require_plain(x, ref, passed)
    if home.records_refs and static is not None:
        part = table["get"].abstract(ref.aval, *map(typeof, operands), index=static)
        home.process(
            table["addupdate"], (ref, fitted(value, part), *operands), {"index": static}
        )
        return
    whole = contents(ref)
    inner = ref.aval.inner_aval
    if static is WHOLE:
        new = table["add"].bind(whole, fitted(value, inner))
    else:
        new = _in_place("addupdate", ref, static, operands, value)
        if new is None:
            value = fitted(value, inner, shape=False)
            new = updated(whole, index, lambda part, at: part.at[at].add(value))
    _store(ref, home, new)


def replace(ref: Ref, value: Any) -> None:
    """Replaces what a reference holds, as `ref[...] = value`."""
    home, passed = _home(ref)
    _require_plain(value, ref, passed)
    _store(ref, home, value, True)


def _in_place(
    name: str, ref: Ref, index: Index | None, operands: Sequence[Any], value: Any
) -> Any:
    """Returns new contents that have taken the memory of the old ones, or None.

    Only a large array without another owner is worth a program of its own.
    """
    whole = ref._value
    if (
        index is None
        or type(whole) is not Array
        or ref._lent
        or whole.nbytes < IN_PLACE_BYTES
        or not whole._type.placement.is_single
    ):
        return None
    value = as_array(fitted(value, ref.aval.inner_aval, shape=False))
    update: Any = table[name]
    return update.in_place(whole, value, [*map(as_array, operands)], index)


def _store(ref: Ref, home: Trace, value: Any, lent: bool = False) -> None:
    """Replaces what a reference holds by a value of the same shape and dtype.

    Args:
      ref: the reference.
      home: where to.
      value: the value.
      lent: whether the array may have another owner, too.
    """
    value = retyped(as_array(value), ref.aval.inner_aval)
    if home.records_refs:
        home.process(table["swap"], (ref, value), {"index": WHOLE})
        return
    ref._value, ref._lent = value, lent


def written(whole: Any, index: Any, value: Any) -> Any:
    """Returns an array with a part replaced."""
    value = fitted(value, typeof(whole), shape=False)
    return updated(whole, index, lambda part, at: part.at[at].set(value))


def fitted(value: Any, aval: Aval, *, shape: bool = True) -> Any:
    """Returns a value as one of a type, which it is written to.

    Args:
      value: array-like.
      aval: the type.
      shape: whether to broadcast it to the type's shape.

    Raises:
      ArgumentError: it is not an array.
      DtypeError: its dtype is not that of the type, and does not yield.
      ShapeError: it does not broadcast.
    """
    if not is_arraylike(value):
        raise not_an_array(value, "ref[...] = value: value is")
    if not isinstance(value, Array):
        value = _of_host(unwrapped(value), aval.dtype)
    given = typeof(value)
    same = given.dtype == aval.dtype
    if not (same or _yields(given.dtype, given.weak_type, aval.dtype)):
        raise DtypeError(
            f"{at_fault(value)}{given} is written to a reference that holds "
            f"{dtypes.short_name(aval.dtype)}: convert the value with "
            ".astype(ref.dtype)"
        )
    if shape and given.shape != aval.shape:
        lead = aval.shape[aval.ndim - given.ndim :] if given.ndim else ()
        fits = given.ndim <= aval.ndim and all(
            n in (1, m) for n, m in zip(given.shape, lead, strict=True)
        )
        if not fits:
            raise ShapeError(
                f"{at_fault(value)}{given} does not broadcast to the part of the "
                f"reference that it is written to, {aval.strong()}"
            )
        value = arith.repeated(value, aval.shape)
    return retyped(value, aval) if shape else _cast(value, aval)


def _of_host(value: Any, dtype: Any) -> Array:
    """Returns host data that is written to a reference of a dtype as an array."""
    weak = type(value) is not bool and not isinstance(value, np.ndarray | np.generic)
    if weak and _yields(promotion.dtype_and_weak(value)[0], True, dtype):
        return as_array(np.array(value, dtypes.of_python(value, dtype)), dtype)
    return as_array(value, dtype)


def _yields(given: Any, weak: bool, dtype: Any) -> bool:
    """Returns whether a weakly typed value of one dtype becomes another."""
    if not weak or dtypes.is_key(dtype):
        return False
    return bool(promotion.lub((given, dtype), (True, False))[0] == dtype)


def _cast(value: Any, aval: Aval) -> Any:
    have = typeof(value)
    return retyped(value, have.update(dtype=aval.dtype, weak_type=aval.weak_type))


def retyped(value: Any, aval: Aval) -> Any:
    """Returns a value of the right shape with a dtype and weakness."""
    have = typeof(value)
    if have.layout != aval.layout:
        raise ShardingTypeError(
            f"{at_fault(value)}{have} is written to a reference that holds {aval}: "
            "divide it in the same way (fxflow.sharding.reshard)"
        )
    if dtypes.is_key(aval.dtype) or (
        have.dtype == aval.dtype and have.weak_type == aval.weak_type
    ):
        return value
    return table["convert_element_type"].bind(
        value, new_dtype=aval.dtype, weak_type=aval.weak_type
    )
