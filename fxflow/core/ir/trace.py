"""Interpreters and the one that is current.

Every operation is a primitive that is *bound* to arguments; `bind` hands them to the
current interpreter, a `Trace`. The interpreter decides what happens (run it, record it,
differentiate it, vectorize it), not the data: values carry no levels. An interpreter
that does not recognise an argument passes it to its parent as a constant.

`state` is this thread's current interpreter, named axes and scope.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fxflow.core.arrays import Array, Aval
from fxflow.core.source import Source, at_fault, is_internal
from fxflow.errors import (
    ConcretizationError,
    LeakedTracerError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)

if TYPE_CHECKING:
    from fxflow.core.ir.primitive import Primitive


class Trace:
    """An interpreter of primitives.

    Attributes:
      final: whether what is recorded is run as it is, never differentiated or
        vectorized: then 0-d operands of elementwise operations need no broadcast.
      parent: the interpreter that it hands operations to, or None.
      records_refs: whether operations on references become nodes; else references
        made under it are cells of values (see `references`).
    """

    __slots__ = ()
    final = False
    records_refs = False
    parent: Any = None

    def process(
        self, primitive: Primitive, args: tuple[Any, ...], params: dict[str, Any]
    ) -> Any:
        """Interprets one operation.

        Args:
          primitive: the operation.
          args: arrays, tracers or scalars.
          params: what is known when tracing (axes, shapes, graphs).

        Returns:
          One result, or a list of results if `primitive.multi`.
        """
        raise NotImplementedError


class State(threading.local):
    """What is current in this thread.

    Attributes:
      trace: the interpreter.
      axes: the named axes: name, size, whether it is tracked, and the mesh of one that
        is manual (in `shard_map`), else None.
      tracked: names of the tracked axes; see `core/spmd/varying`.
      open_layouts: whether types leave open how results are divided; see
        `core/spmd/layouts`.
      spmd: while an operation is vectorized, the mesh axes that the mapped axis is to
        be divided over (`vmap(spmd_axis_name=)`).
      scope: see `named_scope`.
      source: the user's line that an operation comes from which is derived or run
        again; None: the line that is being run.
    """

    trace: Trace
    axes: tuple[tuple[Any, int, bool, Any], ...] = ()
    tracked: frozenset[Any] = frozenset()
    open_layouts: bool = False
    spmd: tuple[Any, ...] = ()
    scope: tuple[str, ...] = ()
    source: Source | None = None


state: State = State()


def under(trace: Trace, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls `function` with `trace` as the current interpreter."""
    previous = state.trace
    state.trace = trace
    try:
        return function(*args, **kwargs)
    finally:
        state.trace = previous


def by_user(function: Callable[..., Any], *args: Any) -> Any:
    """Calls a rule; operations of one that the user wrote come from its own lines."""
    code = getattr(function, "__code__", None)
    previous = state.source
    if code is None or not is_internal(code.co_filename):
        state.source = None
    try:
        return function(*args)
    finally:
        state.source = previous


class named_axes:
    """Declares named axes within a `with` block.

    A class, not a generator: one that an interrupt stops half-way is ended when the
    exception is dropped, and would put back then what held long ago.

    Args:
      axes: names and sizes.
      tracked: whether types tell what differs along them; see `core/spmd/varying`.
      mesh: that they are axes of, if they are manual.
    """

    __slots__ = ("_added", "_before")

    def __init__(
        self, axes: Iterable[tuple[Any, int]], tracked: bool = False, mesh: Any = None
    ) -> None:
        self._added = tuple((name, size, tracked, mesh) for name, size in axes)

    def __enter__(self) -> None:
        # An axis hides one of the same name around it.
        new = {name for name, *_ in self._added}
        axes = (*(axis for axis in state.axes if axis[0] not in new), *self._added)
        tracked = frozenset(name for name, _, is_tracked, _ in axes if is_tracked)
        self._before = state.axes, state.tracked
        state.axes, state.tracked = axes, tracked

    def __exit__(self, *exc: object) -> None:
        state.axes, state.tracked = self._before


def manual_meshes() -> dict[Any, Any]:
    """Returns the manual axes in scope: from name to mesh."""
    return {name: mesh for name, *_, mesh in state.axes if mesh is not None}


def axis_size_of(name: Any) -> int:
    """Returns the size of a named axis.

    Raises:
      NameError: no transformation in progress has an axis of this name.
    """
    for known, size, *_ in state.axes:
        if known == name:
            return size
    names = ", ".join(repr(known) for known, *_ in state.axes)
    scope = f"axes in scope are {names}" if names else "no axis is in scope"
    raise NameError(
        f"unbound axis name {name!r}: {scope}; name it in the enclosing "
        f"vmap(..., axis_name={name!r}), pmap or shard_map"
    )


def _refused(
    error: type[ConcretizationError], what: str, fix: str, inside: str = ""
) -> Any:
    """Returns a method that says why a tracer cannot do what an array can.

    Args:
      error: its class.
      what: needs the value.
      fix: what to do.
      inside: what to do where a public function of ours asks for the value, if that is
        something else.
    """

    def method(self: Tracer, *args: Any, **options: Any) -> Any:
        function = at_fault(self)
        raise error(
            f"{function}{what} needs a concrete value, but {self.aval} is traced: only "
            f"its type is known here. {self.origin()} "
            f"{inside if function and inside else fix}"
        )

    method.__doc__ = f"Raises: {what} needs a concrete value."
    return method


def _not_an_integer(what: str) -> Any:
    return _refused(
        TracerIntegerConversionError,
        what,
        "Make the argument static (jit(..., static_argnames=...)), or index with "
        "fxflow.lax.dynamic_slice.",
        "Make the argument static (jit(..., static_argnames=...)).",
    )


def _not_a_scalar(what: str) -> Any:
    return _refused(
        ConcretizationError,
        what,
        "Keep it an array (x.astype(...)), or compute it outside the transformed "
        "function.",
    )


class Tracer(Array):
    """An abstract array: its type is known, its value is not.

    Subclasses belong to one kind of interpreter each. `aval` is the type seen inside
    that interpreter.
    """

    # Names with an underscore: those of array methods (`x.trace()`) are theirs.
    __slots__ = ("_trace", "aval")

    aval: Aval
    _trace: Any

    def __init_subclass__(cls) -> None:
        # What Python calls it in its own errors ('...' object has no attribute ...).
        cls.__name__ = "TracedArray"

    @property
    def _type(self) -> Any:  # type: ignore[override]
        """Raises an error: `device`, `sharding` and the like are absent."""
        raise AttributeError(
            "a traced value has no device, sharding or shards: where its function runs "
            "is decided when it is compiled. To compute something where this value is, "
            "use fxflow.dataflow.colocate"
        )

    def origin(self) -> str:
        """Says in words where this value comes from."""
        return "It is an intermediate value of a transformed function."

    def depends_on(self) -> list[str]:
        """Says which arguments of which functions it is known to be computed from."""
        return []

    _value = _refused(
        TracerArrayConversionError,
        "conversion to a NumPy array",
        "Use fxflow.numpy functions, or fxflow.pure_callback to call NumPy.",
    )
    __dlpack__: Any = _refused(
        TracerArrayConversionError,
        "DLPack",
        "Use fxflow.numpy functions, or fxflow.pure_callback to call others.",
    )
    __bool__: Any = _refused(
        TracerBoolConversionError,
        "Python control flow (if, while, and, or, not, assert)",
        "Use fnp.where, fxflow.lax.cond or fxflow.lax.while_loop, or make the "
        "argument static (jit(..., static_argnames=...)).",
    )
    __index__: Any = _not_an_integer("a Python integer (an index, a length, a shape)")
    __int__: Any = _not_an_integer("int()")
    __float__: Any = _not_a_scalar("float()")
    __complex__: Any = _not_a_scalar("complex()")
    item: Any = _not_a_scalar("item()")
    tolist: Any = _not_a_scalar("tolist()")
    __reduce__: Any = _not_a_scalar("pickle")

    def __deepcopy__(self, memo: Any) -> Tracer:
        return self

    def __copy__(self) -> Tracer:
        return self

    def block_until_ready(self) -> Tracer:
        """Returns itself: there is nothing to wait for."""
        return self

    def __repr__(self) -> str:
        return f"Traced<{self.aval}>"

    def _repr_html_(self) -> str:
        return f"<code>Traced&lt;{self.aval}&gt;</code>"

    def __format__(self, spec: str) -> str:
        # Alignment alone, as in f"{x:>20}", does not need the value.
        if not spec or spec[-1].isdigit() or spec[-1] in "<>^=s":
            return format(repr(self), spec)
        raise ConcretizationError(
            f"formatting with {spec!r} needs a concrete value, but {self.aval} is "
            f"traced: only its type is known here. {self.origin()} Print it when the "
            f'program runs: fxflow.debug.print("{{x:{spec}}}", x=x).'
        )


def leaked(tracer: Tracer) -> LeakedTracerError:
    """Returns the error for a tracer met outside the transformation that made it."""
    return LeakedTracerError(
        f"a traced value {tracer.aval} is used outside the transformed function that "
        f"made it. {tracer.origin()} It was probably stored in a global, an attribute "
        "or a list: return it from the function instead (fxflow.config.check_leaks "
        "finds the line)."
    )
