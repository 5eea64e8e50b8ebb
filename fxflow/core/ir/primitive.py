"""Primitives: operations with all their rules in one place.

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

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import NOWHERE, Aval, Axes
from fxflow.core.ir.graph import Node
from fxflow.core.ir.trace import state
from fxflow.errors import NotDifferentiableError


class Zero:
    """A tangent or cotangent that is zero, of a known type."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.aval.dtype

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


class Primitive:
    """Base of all operations.

    Attributes:
      name: as printed in graphs.
      multi: whether results come as a list.
      nondifferentiable: why there is no derivative, or None.
      linear: whether the operation is linear in all its array arguments.
      is_view: whether its NumPy evaluation only makes a view (so size does not matter).
      host_kinds: of which dtypes `evaluate` gives what XLA gives, special values
        included, and may replace it when eager: letters of `dtypes.host_kind`.
      host_bytes: bytes in and out above which XLA runs it when eager, if less than
        usual.
      inlines: whether it only runs the graph in its parameter `graph`, so that
        NumPy may run it where it may run that graph.
      axis_params: names of parameters that hold named axes.
      types_inside: whether `abstract` takes the results' types from a graph, `vma`
        included.
    """

    name: ClassVar[str]
    multi: ClassVar[bool] = False
    nondifferentiable: ClassVar[str | None] = None
    linear: ClassVar[bool] = False
    is_view: ClassVar[bool] = False
    host_kinds: ClassVar[frozenset[str]] = frozenset("biuf")
    host_bytes: ClassVar[int | None] = None
    inlines: ClassVar[bool] = False
    axis_params: ClassVar[tuple[str, ...]] = ()
    types_inside: ClassVar[bool] = False

    if TYPE_CHECKING:
        # `register` puts the instance in the class's place, which mypy does not see.
        @classmethod
        def bind(cls, *args: Any, **params: Any) -> Any:
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
        """Returns what `abstract` says, with the axes that the results differ along."""
        out = self.abstract(*avals, **params)
        if not state.tracked or self.types_inside:
            return out
        vma = self.vma([a.vma for a in avals], params)
        return [a.update(vma=vma) for a in out] if self.multi else out.update(vma=vma)

    def out_avals(self, avals: Sequence[Aval], params: dict[str, Any]) -> list[Aval]:
        """Returns the types of the results as a list."""
        out = self.types(avals, params)
        return list(out) if self.multi else [out]

    def effects(self, **params: Any) -> frozenset[Any]:
        """Returns what running it does besides computing its results."""
        return frozenset()

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

    def joins(self, module: Any, node: Node) -> Any:
        """Returns the kind of operations that this one may be written as one with.

        Args:
          module: being written.
          node: the operation, of one operand and one result.

        Returns:
          Equal keys for operations of one kind; None: it is written by itself.
        """
        return None

    def lower_joined(
        self, ctx: Any, operands: Sequence[str], **params: Any
    ) -> Sequence[str]:
        """Writes operations of one kind as one; see `joins`.

        Args:
          ctx: a `lowering.Context`; `avals_in` are the types of all operands.
          operands: their names, one for each operation.
          **params: of the first of them.

        Returns:
          The names of the results.
        """
        raise NotImplementedError

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """Computes the result with NumPy; the oracle of the tests.

        Args:
          *values: NumPy arrays.
          **params: as bound.
        """
        raise NotImplementedError

    def runs_on_host(self, node: Node) -> bool:
        """Returns whether `evaluate` may run it when eager, whatever its size."""
        known = self.host_kinds
        return bool(known) and all(
            dtypes.host_kind(atom.aval.dtype) in known
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

    def plan(
        self, placeds: Sequence[Any], params: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """Returns an own way to run eagerly, or None for the usual one.

        Args:
          placeds: types and places of the arguments.
          params: as bound.

        Returns:
          A function of concrete arrays that gives what `bind` gives.
        """
        return None

    def mesh(self, params: dict[str, Any]) -> Any:
        """Returns the mesh that the operation itself names, or None."""
        return None

    def inside(self, params: dict[str, Any]) -> AbstractContextManager[Any]:
        """Returns the scope in which the graphs of its parameters stand."""
        return nullcontext()

    def varying(
        self, axes: Sequence[frozenset[Any]], params: dict[str, Any]
    ) -> frozenset[Any]:
        """Returns the named axes along which the results differ.

        Args:
          axes: those of each argument.
          params: as bound.
        """
        return frozenset().union(*axes)

    def vma(self, given: Sequence[Axes], params: dict[str, Any]) -> Axes:
        """Returns the tracked axes that the results' types shall have.

        It is what derivatives go by (see `core/spmd/varying`), on the safe side of
        `varying`: what is gathered is the same everywhere, but each device has a use
        of its own for it.

        Args:
          given: those of the operands' types.
          params: as bound.
        """
        return NOWHERE.union(*given)

    def names_memory(self, params: dict[str, Any]) -> bool:
        """Returns whether the operation itself puts values in another memory."""
        return False

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """Returns where operands must be and results are (see `core.memories`).

        Args:
          node: the operation.
          kinds: where its operands are.
          layout: rewrites the graphs of its parameters.

        Returns:
          A `Rewritten`; None for an operation that computes: all in the device's own.
        """
        return None

    # -- derivatives -------------------------------------------------------------------

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """Returns the results and their tangents.

        Args:
          primals: values.
          tangents: values or `Zero`s, not all `Zero`.
          **params: as bound.
        """
        why = self.nondifferentiable or "it has no derivative rule"
        raise NotDifferentiableError(f"{self.name} cannot be differentiated: {why}")

    def linearize(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """Like `jvp`, for reverse mode: whatever is nonlinear may not see tangents."""
        return self.jvp(primals, tangents, **params)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """Returns a cotangent, `Zero` or None for each argument.

        Args:
          cotangent: of the result (a list with `Zero`s if `multi`).
          *args: a `Var` for each linear argument, values for the others.
          **params: as bound.
        """
        raise NotDifferentiableError(
            f"{self.name} is not linear in what it is transposed with respect to"
        )

    # -- vectorisation -----------------------------------------------------------------

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[Any, Any]:
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

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        **params: Any,
    ) -> tuple[Any, Any]:
        """Like `batch`, when `axis_name` is one that the operation itself names."""
        raise NotImplementedError

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        """Returns whether the operation names the axis."""
        for param in self.axis_params:
            names = params[param]
            if names == axis_name or (isinstance(names, tuple) and axis_name in names):
                return True
        return False

    # -- graphs ------------------------------------------------------------------------

    def dce(self, node: Node, wanted: Sequence[bool]) -> Node:
        """Returns a node without the work of results that nobody wants.

        It may have fewer outputs (all wanted ones) and fewer inputs; a primitive that
        cannot save anything returns `node`.
        """
        return node

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the parameters as they are to be printed."""
        return params

    def forwarded(self, **params: Any) -> list[int | None]:
        """Returns for each result the operand that it is, or None.

        Empty: no result is an operand.
        """
        return []

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """Returns an estimate: `flops` and `bytes`."""
        outs = self.out_avals(avals, params)
        moved = sum(a.nbytes for a in (*avals, *outs))
        return {"flops": float(sum(a.size for a in outs)), "bytes": float(moved)}

    def __repr__(self) -> str:
        return self.name


P = TypeVar("P", bound=Primitive)

table: dict[str, Primitive] = {}
"""Every primitive by name: the only table there is."""

_REQUIRED = ("abstract", "lower", "evaluate", "batch")


def register(cls: type[P]) -> P:
    """Makes the one instance of a primitive and enters it in the table.

    Raises:
      TypeError: the class lacks a rule, or its name is taken.
    """
    missing = [r for r in _REQUIRED if getattr(cls, r) is getattr(Primitive, r)]
    if not cls.nondifferentiable:
        if cls.jvp is Primitive.jvp:
            missing.append("jvp (or nondifferentiable)")
        if cls.linear and cls.transpose is Primitive.transpose:
            missing.append("transpose")
    if missing:
        raise TypeError(f"{cls.__name__} lacks the rules {', '.join(missing)}")
    if cls.name in table:
        raise TypeError(f"two primitives are named {cls.name!r}")
    instance = cls()
    table[cls.name] = instance
    return instance
