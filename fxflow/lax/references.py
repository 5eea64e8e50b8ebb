"""Operations on references, as graphs have them, and what users call.

The primitives are only ever recorded: `core/ir/references` says what a read or a write
does under any other interpreter, and `core/ir/discharge` how they leave a graph before
it is run or derived. So they have types, and no other rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from fxflow.core.arrays import AbstractRef, Array, Aval, as_array
from fxflow.core.arrays.array import forget, like_type, release
from fxflow.core.boundary import boundary
from fxflow.core.caches import Cache
from fxflow.core.ir import references
from fxflow.core.ir.graph import STATE
from fxflow.core.ir.primitive import Batched, Flags, Primitive, Values, register
from fxflow.core.ir.ref_index import OPERAND, Index, taken, updated
from fxflow.core.ir.references import Ref, RefView, require_ref
from fxflow.core.ir.staging import closed, trace_flat
from fxflow.core.runtime.execute import LoweredProgram, Program
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError
from fxflow.lax.creation import empty

_parts: Cache[Any, Aval] = Cache("parts of references", 1024)
_updates: Cache[Any, Program] = Cache("writes to references", 1024, by_options=True)


class RefOperation(Primitive):
    """Base of the operations on references."""

    takes_refs = True
    types_inside = True
    nondifferentiable: ClassVar[str | None] = (
        "operations on references are discharged before"
    )
    host_kinds: ClassVar[frozenset[str]] = frozenset()

    def _is_recorded(self) -> NoReturn:
        raise ArgumentError(
            f"{self.name} is an operation on references, which stands in graphs and "
            "never runs: `core.ir.discharge.discharge` replaces it"
        )

    def lower(self, ctx: Context, *operands: str, **params: Any) -> Any:
        """Raises: it is replaced before."""
        self._is_recorded()

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """Raises: it is replaced before."""
        self._is_recorded()

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Raises: it is replaced before."""
        self._is_recorded()

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """What is not the default."""
        return {
            name: value
            for name, value in params.items()
            if value is not None and not (type(value) is Index and value.is_whole)
        }


@register
class NewRef(RefOperation):
    """A reference to a value. dtypes: any."""

    name = "new_ref"

    def bind(self, value: Any, *, kind: str | None = None) -> Any:
        """A reference of the current interpreter."""
        return references.new(value, kind)

    def abstract(self, value: Aval, *, kind: str | None) -> Aval:
        """The type of a reference to a value of this type."""
        return AbstractRef(value, None, kind)


class _Part(RefOperation):
    """Reads or writes a part of what a reference holds.

    Operands are the reference, what is written, and the arrays in the index.

    Params:
      index: of the part.
    """

    def part(self, ref: Aval, operands: Sequence[Aval], index: Index) -> Aval:
        """Returns the type of the part.

        Raises:
          ArgumentError: the first operand is not a reference.
          OutOfRangeError, ArgumentError: the index does not fit.
        """
        if type(ref) is not AbstractRef:
            raise ArgumentError(f"{self.name} takes a reference, got {ref}")
        inner = ref.inner_aval
        if index.is_whole:
            return inner
        key = (inner, index, *operands)
        known = _parts.get(key)
        if known is None:
            graph, _ = trace_flat(
                lambda x, *arrays: [taken(x, index.filled(arrays))],
                [inner, *operands],
            )
            known = _parts.keep(key, graph.out_avals[0])
        return known


class _Write(_Part):
    """Writes to a part."""

    def effects(self, **params: Any) -> frozenset[Any]:
        """It writes."""
        return frozenset((STATE,))

    def updated(self, whole: Any, index: Any, value: Any) -> Any:
        """Returns an array after the operation."""
        raise NotImplementedError

    def in_place(
        self, whole: Array, value: Array, arrays: Sequence[Array], index: Index
    ) -> Array:
        """Runs the operation on an array whose memory its result takes.

        Args:
          whole: on one device; deleted.
          value: what is written.
          arrays: those in the index.
          index: of the part.
        """
        if not arrays and whole.size < 1 << 31:
            # One program for all integers.
            self.part(AbstractRef(whole.aval), (), index)
            numbers = [item for item in index.items if type(item) is int]
            arrays = [as_array(np.int32(number)) for number in numbers]
            items = [OPERAND if type(i) is int else i for i in index.items]
            index = Index(tuple(items))
        given = [whole, value, *arrays]
        types = [a._type for a in given]
        key = (self.name, index, *types)
        program = _updates.get(key)
        if program is None:
            aval = whole.aval

            def update(x: Any, value: Any, *arrays: Any) -> list[Any]:
                new = self.updated(x, index.filled(arrays), value)
                return [references.retyped(new, aval)]

            graph, consts = trace_flat(update, [t.aval for t in types], name=self.name)
            program = LoweredProgram(
                closed(graph, consts),
                types,
                name=self.name,
                donated=[True] + [False] * (len(given) - 1),
                labels=lambda: ["ref", *[""] * (len(given) - 1)],
            ).compile()
            _updates.keep(key, program)
        release(whole)
        (out,) = program(given)
        forget(whole)
        return out


@register
class Get(_Part):
    """Reads a part of what a reference holds. dtypes: any."""

    name = "get"

    def bind(self, ref: Ref, *arrays: Any, index: Index) -> Any:
        """See `references.get`."""
        return references.get(ref, index.filled(arrays))

    def abstract(self, ref: Aval, *operands: Aval, index: Index) -> Aval:
        """The part's type."""
        return self.part(ref, operands, index)


@register
class Swap(_Write):
    """Writes to a part of what a reference holds; gives what it was. dtypes: any."""

    name = "swap"

    def bind(self, ref: Ref, value: Any, *arrays: Any, index: Index) -> Any:
        """See `references.swap`."""
        return references.swap(ref, index.filled(arrays), value)

    def abstract(self, ref: Aval, value: Aval, *operands: Aval, index: Index) -> Aval:
        """The part's type."""
        return self.part(ref, operands, index)

    def updated(self, whole: Any, index: Any, value: Any) -> Any:
        """With the part replaced."""
        return updated(whole, index, lambda x, at: x.at[at].set(value))


@register
class AddUpdate(_Write):
    """Adds to a part of what a reference holds. dtypes: any."""

    name = "addupdate"
    multi = True

    def bind(self, ref: Ref, value: Any, *arrays: Any, index: Index) -> Any:
        """See `references.addupdate`."""
        references.addupdate(ref, index.filled(arrays), value)
        return []

    def abstract(self, ref: Aval, value: Aval, *operands: Aval, index: Index) -> Any:
        """No results."""
        self.part(ref, operands, index)
        return []

    def updated(self, whole: Any, index: Any, value: Any) -> Any:
        """With the value added to the part."""
        return updated(whole, index, lambda x, at: x.at[at].add(value))


# -- public ----------------------------------------------------------------------------


@boundary
def new_ref(init: Any, *, memory_space: Any = None, kind: str | None = None) -> Ref:
    """Makes a mutable reference to an array.

    Pure functions over immutable arrays stay the rule; a reference is for what would
    otherwise have to be passed through everything: counters, statistics, a large buffer
    that is filled piece by piece. Reads and writes keep the order of the program inside
    of `jit`, loops, branches and derivatives. A compiled function may take references
    or capture them, and writes into their memory; it cannot return them.

    Args:
      init: the first contents: an array or a number.
      memory_space: None, the device's own memory: there is no other for references.
      kind: a name for the kind of reference, which is kept and means nothing.

    Returns:
      The reference: read it with `ref[...]` or `ref[index]`, write to it with
      `ref[...] = value`.

    Raises:
      ArgumentError: `init` is not an array, or another memory is asked for.

    Example:
      >>> count = new_ref(0)
      >>> @fxflow.jit
      ... def f(x):
      ...     count[...] += 1
      ...     return 2 * x
      >>> float(f(1.0)), float(f(2.0)), int(count[...])
      (2.0, 4.0, 2)
    """
    if memory_space is not None:
        raise ArgumentError(
            f"new_ref: memory_space must be None, got {memory_space!r}: references "
            "are in the device's own memory"
        )
    return references.new(init, kind)


@boundary
def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Makes a reference whose contents do not matter (they are zero).

    Args:
      ty: a type: anything with a shape and a dtype, such as a `ShapeDtypeStruct`.
      memory_space: see `new_ref`.

    Returns:
      The reference.

    Raises:
      ArgumentError: `ty` has no shape or dtype.
    """
    aval = like_type(ty)
    return new_ref(empty(aval.shape, aval.dtype), memory_space=memory_space)


@boundary
def freeze(ref: Ref) -> Array:
    """Returns what a reference holds, for good.

    Args:
      ref: the reference, which is not to be used any more: then nothing is copied.

    Returns:
      The contents.

    Raises:
      ArgumentError: `ref` is not a reference.

    Example:
      >>> ref = fxflow.new_ref(fnp.zeros(2))
      >>> ref[0] = 1.0
      >>> freeze(ref)
      Array([1., 0.], dtype=float32)
    """
    require_ref(ref, "freeze")
    return ref[...]


@boundary
def free_ref(ref: Ref) -> None:
    """Frees the memory of a reference now; reading it afterwards is an error.

    Args:
      ref: the reference.

    Raises:
      ArgumentError: `ref` is not a reference.
    """
    require_ref(ref, "free_ref")
    references.free(ref)


@boundary
def get(ref: Ref | RefView, idx: Any = None) -> Array:
    """Returns a part of what a reference holds, as `ref[idx]`.

    Args:
      ref: the reference, or a view of a part (`ref.at[...]`).
      idx: which part; None: all of it.

    Returns:
      The part.

    Raises:
      ArgumentError: `ref` is not a reference.
      OutOfRangeError: an integer is out of range.
    """
    require_ref(ref, "get")
    return ref[... if idx is None else idx]


@boundary
def set(ref: Ref | RefView, idx: Any, value: Any) -> None:
    """Writes to a part of what a reference holds, as `ref[idx] = value`.

    Args:
      ref: the reference, or a view of a part (`ref.at[...]`).
      idx: which part; None: all of it.
      value: of the reference's dtype (a Python number takes it); broadcasts.

    Raises:
      ArgumentError: `ref` is not a reference, or `value` is being differentiated or
        vectorized and the reference is not.
      DtypeError, ShapeError: `value` has an incompatible shape.
      OutOfRangeError: an integer is out of range.
    """
    require_ref(ref, "set")
    ref[... if idx is None else idx] = value


@boundary
def swap(ref: Ref | RefView, idx: Any, value: Any) -> Array:
    """Writes to a part of what a reference holds; returns what it was.

    Args:
      ref: the reference, or a view of a part (`ref.at[...]`).
      idx: which part; None: all of it.
      value: see `set`.

    Returns:
      The part before.

    Raises:
      ArgumentError, DtypeError, ShapeError, OutOfRangeError: see `set`.
    """
    require_ref(ref, "swap")
    index = ... if idx is None else idx
    if isinstance(ref, Ref):
        return references.swap(ref, index, value)  # type: ignore[no-any-return]
    old = ref[index]
    ref[index] = value
    return old


@boundary
def addupdate(ref: Ref | RefView, idx: Any, x: Any) -> None:
    """Adds to a part of what a reference holds.

    Where an index occurs twice, both are added.

    Args:
      ref: the reference, or a view of a part (`ref.at[...]`).
      idx: which part; None: all of it.
      x: what to add, see `set`.

    Raises:
      ArgumentError, DtypeError, ShapeError, OutOfRangeError: see `set`.
    """
    require_ref(ref, "addupdate")
    index = ... if idx is None else idx
    if isinstance(ref, Ref):
        references.addupdate(ref, index, x)
    else:
        ref[index] += x
