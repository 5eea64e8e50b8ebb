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
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from fxflow.core.arrays import Array, Aval
from fxflow.core.ir.rules import Batched, Dual, Flags, GraphRules, HostRules, Values
from fxflow.core.ir.trace import state
from fxflow.core.spmd.rules import AxisRules, MemoryRules
from fxflow.errors import NotDifferentiableError


class Zero:
    """A tangent or cotangent that is zero, of a known type."""

    __slots__ = ("aval",)

    aval: Aval

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


class Primitive(HostRules, GraphRules, AxisRules, MemoryRules):
    """Base of all operations, with the rules that each has.

    The bases have rules that few operations answer in their own way.

    Attributes:
      name: as printed in graphs.
      multi: whether results come as a list.
      nondifferentiable: why there is no derivative, or None.
      linear: whether the operation is linear in all its array arguments.
      lowerings: platform → what writes it there in place of `lower`; see
        `register_lowering`.
    """

    name: ClassVar[str]
    multi: ClassVar[bool] = False
    nondifferentiable: ClassVar[str | None] = None
    linear: ClassVar[bool] = False
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

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
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

    # -- vectorization -----------------------------------------------------------------

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
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
