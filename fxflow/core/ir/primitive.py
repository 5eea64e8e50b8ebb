"""Primitives: operations, each with all its rules in one class.

A primitive is one class; its rules are its methods; `register` makes the single
instance, puts it in the one table and refuses a class that lacks a rule. Families
(`lax/families`, `core/ir/higher_order`) derive most rules from what is mathematically
true.

Conventions of the rules:

- *Values* are arrays, tracers or NumPy scalars; *avals* are types.
- A primitive gives one result, or a list of results if `multi`.
- A tangent or cotangent that is known to be zero is a `Zero`.
- In `transpose`, an argument that is a `Var` is linear (its value is unknown); every
  other argument is a value.
- In `batch`, mapped arguments have the mapped axis in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from fxflow.core.arrays import Array, Aval, Axes, dtypes
from fxflow.core.arrays.aval import NOWHERE, _Typed
from fxflow.core.ir.trace import state
from fxflow.core.spmd import layouts
from fxflow.devices.meshes import explicit
from fxflow.errors import NotDifferentiableError

if TYPE_CHECKING:
    from fxflow.core.ir.graph import Node

# In the signatures of rules.
Values = Sequence[Any]  # arrays, tracers, NumPy scalars; tangents may be `Zero`s
Flags = Sequence[bool]  # one for each value
Dual = tuple[Any, Any]  # results and their tangents: lists if `multi`
Batched = tuple[Any, Any]  # results and whether they are mapped: lists if `multi`


class Zero(_Typed):
    """A tangent or cotangent that is zero, of a known type."""

    __slots__ = ("aval",)

    aval: Aval

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


# -- rules that only some operations have, with the answers of all others --------------


# What an operation may do besides computing its results. An effect keeps its node from
# dead-code elimination. Ordered effects keep the order of the program: in a compiled
# program each takes a token from the one before and hands one on, through calls, loops
# and branches.
IO = "io"
ORDERED = "ordered io"
DEBUG = "debug"
CHECK = "check"


class HostCall(NamedTuple):
    """A call of NumPy in a plan.

    Attributes:
      function: takes the operands, then `constants`.
      noisy: whether NumPy may warn of infinities and NaN.
      constants: what else it takes.
      order: positions of the operands as the function takes them; None: as they are.
    """

    function: Callable[..., Any]
    noisy: bool
    constants: tuple[Any, ...] = ()
    order: tuple[int, ...] | None = None


class HostRules:
    """How NumPy runs the operation when it is eager; see `core/runtime/eager.py`.

    Attributes:
      is_view: whether its NumPy evaluation only makes a view (so size does not matter).
      host_kinds: of which dtypes `evaluate` gives what XLA gives, special values
        included, and may replace it when eager: letters of `dtypes.host_kinds`.
      host_bytes: bytes in and out above which XLA runs it when eager, if less than
        usual.
      keeps_plan: whether its plan may be kept; not if parameters hold functions of the
        user's, which may close over arrays.
      inlines: whether it only runs the graph in its parameter `graph`, so that
        NumPy may run it where it may run that graph.
    """

    is_view: ClassVar[bool] = False
    host_kinds: ClassVar[frozenset[str]] = frozenset("biuf")
    host_bytes: ClassVar[int | None] = None
    keeps_plan: ClassVar[bool] = True
    inlines: ClassVar[bool] = False

    if TYPE_CHECKING:

        def evaluate(self, *values: Any, **params: Any) -> Any:
            """See `Primitive.evaluate`."""

    def runs_on_host(self, node: Node) -> bool:
        """Returns whether `evaluate` may run it when eager, whatever its size."""
        known = self.host_kinds
        return bool(known) and all(
            dtypes.host_kinds[atom.aval.dtype] in known
            for atom in (*node.inputs, *node.outputs)
        )

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Returns the cheapest callable that computes `evaluate` with these params."""
        if not params:
            return self.evaluate
        evaluate = self.evaluate

        def call(*values: Any) -> Any:
            return evaluate(*values, **params)

        return call

    def host_call(self, node: Node) -> HostCall:
        """Returns how a plan calls NumPy for a node, whose types are known by then."""
        atoms = (*node.inputs, *node.outputs)
        noisy = any(atom.aval.dtype in dtypes.INEXACT for atom in atoms)
        return HostCall(self.host_function(**node.params), noisy and not self.is_view)

    def planned(self, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the parameters that matter to a plan, if it holds graphs."""
        return params

    def plan(
        self, arg_types: Sequence[Any], params: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """Returns a custom eager implementation, or None for the default one.

        Args:
          arg_types: of the arguments.
          params: as bound.

        Returns:
          A function of concrete arrays that gives what `bind` gives.
        """
        return None


class GraphRules:
    """What passes over graphs ask: effects, pruning, printing, cost."""

    if TYPE_CHECKING:

        def out_avals(
            self, avals: Sequence[Aval], params: dict[str, Any]
        ) -> list[Aval]:
            """See `Primitive.out_avals`."""

    def effects(self, **params: Any) -> frozenset[Any]:
        """Returns its side effects."""
        return frozenset()

    def masked(
        self, active: Any, args: Values, params: dict[str, Any]
    ) -> Sequence[Any] | None:
        """Binds an operation with effects so that they happen where a flag holds.

        Args:
          active: bool[]; where it does not hold, the results are any values.
          args: the operands.
          params: as bound.

        Returns:
          The results. None: there is no rule, and rows run it one after the other.
        """
        return None

    def dce(self, node: Node, wanted: Sequence[bool]) -> Node:
        """Returns a node that does not compute dead results.

        It may have fewer outputs (all wanted ones) and fewer inputs; a primitive that
        cannot save anything returns `node`.
        """
        return node

    def flows(
        self, sources: Sequence[bool], count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Sequence[bool]]]:
        """Returns which results may depend on some operands; see `flow_through`.

        Args:
          sources: those operands.
          count: the number of results.
          params: as bound.

        Returns:
          A flag for each result, and for each graph among the parameters flags of its
          inputs; no flags of graphs if nothing is known of their inputs.
        """
        return [any(sources)] * count, []

    def forwarded(self, **params: Any) -> list[int | None]:
        """Returns for each result the index of the operand it forwards, or None.

        Empty: no operand is forwarded.
        """
        return []

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the parameters as they are to be printed."""
        return params

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """Returns an estimate: `flops` and `bytes`."""
        outs = self.out_avals(avals, params)
        moved = sum(a.nbytes for a in (*avals, *outs))
        return {"flops": float(sum(a.size for a in outs)), "bytes": float(moved)}


class AxisRules:
    """Named axes (of `vmap`, `pmap`, meshes), and along which of them results differ.

    Attributes:
      axis_params: names of parameters that hold named axes.
      names_layout: whether it has an `own_layout`.
      layout: the rule of how results are divided, one of `core/spmd/layouts`.
      sums: the rule of sums over devices that are put off, one of `core/spmd/layouts`.
      types_inside: whether `abstract` takes the results' types from a graph, `vma` and
        `layout` included.
    """

    # Rules that operations share, which others compare by identity.
    _called_inside: ClassVar[tuple[str, ...]] = ("layout", "sums")
    axis_params: ClassVar[tuple[str, ...]] = ()
    names_layout: ClassVar[bool] = False
    layout: Callable[..., Any] = layouts.refused
    sums: Callable[..., layouts.Sums] = layouts.whole
    types_inside: ClassVar[bool] = False

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        """Returns whether the operation names the axis."""
        for param in self.axis_params:
            names = params[param]
            if names == axis_name or (isinstance(names, tuple) and axis_name in names):
                return True
        return False

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        /,
        **params: Any,
    ) -> tuple[Any, Any]:
        """Like `batch`, when `axis_name` is one that the operation itself names."""
        raise NotImplementedError

    def vma(self, given: Sequence[Axes], params: dict[str, Any]) -> Axes:
        """Returns the tracked axes along which the results may vary.

        See `core/spmd/varying`.

        Args:
          given: those of the operands' types.
          params: as bound.
        """
        return NOWHERE.union(*given)

    def own_layout(self, params: dict[str, Any], outs: Sequence[Aval]) -> Any:
        """Returns how the results are divided where the operation itself says, or None.

        Args:
          params: as bound.
          outs: types of the results.
        """
        return None

    def mesh(self, params: dict[str, Any]) -> Any:
        """Returns the mesh that the operation itself names, or None."""
        return None

    def inside(self, params: dict[str, Any]) -> AbstractContextManager[Any]:
        """Returns the scope in which the graphs of its parameters stand."""
        return nullcontext()


class MemoryRules:
    """Memories other than the device's own; see `core/spmd/memories.py`."""

    def names_memory(self, params: dict[str, Any]) -> bool:
        """Returns whether the operation itself puts values in another memory."""
        return False

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """Returns where operands must be and results are (see `core/spmd/memories`).

        Args:
          node: the operation.
          kinds: where its operands are.
          layout: rewrites the graphs of its parameters.

        Returns:
          A `Rewritten`; None for an operation that computes: all in the device's own.
        """
        return None


# -- every operation -------------------------------------------------------------------


class Primitive(HostRules, GraphRules, AxisRules, MemoryRules):
    """Base of all operations, with the rules that each has.

    The bases have rules that few operations answer in their own way; what concerns
    several devices (`AxisRules`, `MemoryRules`) a reader of one-device code may skip.

    Attributes:
      name: as printed in graphs.
      multi: whether results come as a list.
      nondifferentiable: why there is no derivative, or None.
      linear: whether the operation is linear in all its array arguments.
      linear_in_inexact: whether it is linear in those together that have derivatives,
        whatever the others (indices, masks) are.
      is_constant: whether derivatives take its results for constants.
      takes_refs: whether an operand may be a reference.
      owns_refs: whether its graphs take references that exist only there.
      repeats_numbers: whether 0-d operands stand for arrays of the result's shape; then
        a program has constants of that shape in their place.
      lowerings: platform → what writes it there in place of `lower`; see
        `register_lowering`.
    """

    name: ClassVar[str]
    multi: ClassVar[bool] = False
    nondifferentiable: ClassVar[str | None] = None
    linear: ClassVar[bool] = False
    linear_in_inexact: ClassVar[bool] = False
    is_constant: ClassVar[bool] = False
    takes_refs: ClassVar[bool] = False
    owns_refs: ClassVar[bool] = False
    repeats_numbers: ClassVar[bool] = False
    lowerings: Mapping[str, Callable[..., Any]] = {}

    if TYPE_CHECKING:
        # `register` replaces the class by its instance, which mypy does not see.
        @classmethod
        def bind(cls, *args: Any, **params: Any) -> Array:
            """See below."""

    else:

        def bind(self, *args: Any, **params: Any) -> Any:
            """Interprets the operation under the current interpreter.

            Args:
              *args: arrays, tracers or scalars.
              **params: hashable values known when tracing.

            Returns:
              One result, or a list of results if `multi`.
            """
            return state.trace.process(self, args, params)

    # -- types -------------------------------------------------------------------------

    def abstract(self, *avals: Aval, **params: Any) -> Any:
        """Returns the type of the result (a list of types if `multi`).

        Raises:
          ShapeError, DtypeError: the user's mistake, in words.
        """
        raise NotImplementedError

    def types(self, avals: Sequence[Aval], params: dict[str, Any]) -> Any:
        """Returns what `abstract` says, with what types say of several devices."""
        out = self.abstract(*avals, **params)
        if self.types_inside:
            return out
        if explicit.used:
            is_open = state.open_layouts
            out = layouts.typed(self, avals, params, out, is_open=is_open)
        if not state.tracked:
            return out
        vma = self.vma([a.vma for a in avals], params)
        return [a.update(vma=vma) for a in out] if self.multi else out.update(vma=vma)

    def out_avals(self, avals: Sequence[Aval], params: dict[str, Any]) -> list[Aval]:
        """Returns the types of the results as a list."""
        out = self.types(avals, params)
        return list(out) if self.multi else [out]

    # -- values ------------------------------------------------------------------------

    def lower(self, ctx: Any, *operands: str, **params: Any) -> Any:
        """Writes the operation as StableHLO.

        Args:
          ctx: a `lowering.Context`: `emit`, `avals_in`, `avals_out`, `platform`.
          *operands: names of the operands.
          **params: as bound.

        Returns:
          The name of the result (a list of names if `multi`).
        """
        raise NotImplementedError

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """Computes the result with NumPy; the oracle of the tests.

        Args:
          *values: NumPy arrays.
          **params: as bound.
        """
        return self.host_function(**params)(*values)

    # -- derivatives -------------------------------------------------------------------

    def jvp(self, primals: Values, tangents: Values, /, **params: Any) -> Dual:
        """Returns the results and their tangents.

        Args:
          primals: values.
          tangents: values or `Zero`s, not all `Zero`.
          **params: as bound.
        """
        why = self.nondifferentiable or "it has no derivative rule"
        raise NotDifferentiableError(f"{self.name} cannot be differentiated: {why}")

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Like `jvp`, for reverse mode: whatever is nonlinear may not see tangents."""
        return self.jvp(primals, tangents, **params)

    def without_tangents(
        self, avals: Sequence[Aval], known: Flags, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Returns parameters for the operands that are not tangents.

        Reverse mode runs no operation on tangents forwards. One that has no results,
        such as a breakpoint, may run on its other operands instead.

        Args:
          avals: types of the operands.
          known: which are not tangents.
          params: as bound.

        Returns:
          What to bind the known operands with, or None: nothing runs.
        """
        return None

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """Returns a cotangent, `Zero` or None for each argument.

        Args:
          cotangent: of the result (a list with `Zero`s if `multi`).
          *args: a `Var` for each linear argument, values for the others.
          **params: as bound.
        """
        raise NotDifferentiableError(
            f"{self.name} is not linear in what it is transposed with respect to"
        )

    def taylor(
        self, out: Any, operands: Sequence[Any], /, **params: Any
    ) -> Callable[[int], Any] | None:
        """Returns the rule of the result's Taylor coefficients, if there is a formula.

        Args:
          out: the result's: `out[0]` is the value, and `out[j]` may be asked for j < k.
          operands: those of each operand (`interpreters/jet.Series`).
          **params: as bound.

        Returns:
          A function of k > 0 that gives coefficient k, or `Zero`. None: it follows from
          `jvp`, or from being linear.
        """
        return None

    # -- vectorization -----------------------------------------------------------------

    def batch(
        self, size: int, args: Values, mapped: Flags, /, **params: Any
    ) -> Batched:
        """Applies the operation to each slice along the mapped axis.

        Args:
          size: length of the mapped axis.
          args: values; where `mapped`, with the mapped axis in front.
          mapped: which arguments are mapped (at least one is).
          **params: as bound.

        Returns:
          `(result, is_mapped)`, lists if `multi`; mapped axes in front.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.name


class MultipleResults(Primitive):
    """Base of operations that give a list of results."""

    multi = True

    if TYPE_CHECKING:

        @classmethod
        def bind(  # type: ignore[override]
            cls, *args: Any, **params: Any
        ) -> list[Array]:
            """See `Primitive.bind`."""


P = TypeVar("P", bound=Primitive)

table: dict[str, Primitive] = {}
"""Every primitive by name: the only table there is."""

_REQUIRED = ("abstract", "lower", "batch")


def register(cls: type[P]) -> P:
    """Makes the one instance of a primitive and enters it in the table.

    A class that is defined again, as by a cell of a notebook that is run twice, takes
    the place of the earlier one.

    Args:
      cls: the class, with its rules.

    Returns:
      The instance; what stands under the name of the class where this decorates it.

    Raises:
      TypeError: the class lacks a rule, or its name is taken.
    """
    missing = [r for r in _REQUIRED if getattr(cls, r) is getattr(Primitive, r)]
    values = cls.evaluate, cls.host_function
    if values == (Primitive.evaluate, Primitive.host_function):
        missing.append("evaluate (or host_function)")
    if not cls.nondifferentiable:
        if cls.jvp is Primitive.jvp:
            missing.append("jvp (or nondifferentiable)")
        if cls.linear and cls.transpose is Primitive.transpose:
            missing.append("transpose")
    if missing:
        raise TypeError(f"{cls.__name__} lacks the rules {', '.join(missing)}")
    known = type(table.get(cls.name, cls))
    if cls.name in table and not (
        known.__module__ == cls.__module__ and known.__qualname__ == cls.__qualname__
    ):
        raise TypeError(
            f"two primitives are named {cls.name!r}: {cls.__module__}."
            f"{cls.__qualname__} and {known.__module__}.{known.__qualname__}; give one "
            "another name"
        )
    instance = cls()
    table[cls.name] = instance
    return instance
