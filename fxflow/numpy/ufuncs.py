"""`ufunc`: functions that act on each element, with NumPy's methods of them.

A call on concrete arrays looks up one plan by the types and shardings of its arguments;
under a trace the function just runs. `x + 1.0` with a Python number is the same plan
with a 0-d constant of the array's dtype.

Functions are declared by one call each, with all that is true of them:

    sin = float_unary(
        "sin",
        "Sine of `x` in radians.",
        special="±inf → nan",
        example=("sin(np.array([0.0]))", "Array([0.], dtype=float32)"),
    )

makes the ufunc, its promotion rule and its docstring.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from fxflow.core.arrays import (
    Array,
    ArrayType,
    Aval,
    dtypes,
    not_an_array,
    type_on,
    unwrapped,
)
from fxflow.core.arrays.aval import common_placement
from fxflow.core.arrays.promotion import lub
from fxflow.core.arrays.protocol import array_method
from fxflow.core.caches import Cache
from fxflow.core.ir.primitive import Primitive, table
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import (
    EVAL,
    PLAN_BYTES,
    EvalTrace,
    plans_of,
    primitive_plan,
)
from fxflow.core.runtime.library import library
from fxflow.core.source import leave
from fxflow.errors import ArgumentError, DtypeError
from fxflow.numpy._operands import SCALARS, array_of, convert, host_beside, promote

# What a call returns: an array, or a tuple of arrays.
R = TypeVar("R")

#: A call in a docstring, and what it prints.
Example = tuple[str, str]

_new = object.__new__


class ufunc(Generic[R]):
    """A function that acts on each element of its arguments, which are broadcast.

    Attributes:
      nin: number of arguments.
      nout: number of results.
      nargs: both together.
      identity: what leaves an element unchanged, or None.

    Source: `numpy.ufunc`.
    """

    nargs: int
    nin: int
    nout: int

    def __init__(
        self,
        function: Callable[..., R],
        *,
        name: str,
        nin: int,
        nout: int = 1,
        identity: Any = None,
        doc: str = "",
        key: Any = None,
    ) -> None:
        self.function = function
        # What it is equal by, if not by being the same object.
        self._key = key
        self.nin, self.nout, self.nargs = nin, nout, nin + nout
        self.identity = identity
        self.__name__ = self.__qualname__ = name
        self.__module__ = "fxflow.numpy"  # where pickle finds it
        self.__doc__ = doc or function.__doc__
        self.__wrapped__ = function
        named = _named(function, name)
        self._eager = library()(named)
        self._plans = cast("Cache[Any, Callable[..., R]]", plans_of(self._eager))

    def __call__(self, *args: Any) -> R:
        """Applies the function."""
        try:
            if len(args) != self.nin:
                raise ArgumentError(
                    f"{self.__name__} takes {self.nin} arguments, got {len(args)}"
                )
            return self._apply(*args)
        except Exception as error:
            leave(error)
            raise

    def _apply(self, *args: Any) -> R:
        if isinstance(state.trace, EvalTrace):
            return self._eager(*args)
        return self.function(*map(unwrapped, args))

    if TYPE_CHECKING:
        # NumPy's methods, which `ufunc_methods` puts on the class.

        def reduce(
            self,
            a: Any,
            axis: Any = 0,
            dtype: Any = None,
            out: None = None,
            keepdims: bool = False,
            initial: Any = None,
            where: Any = None,
        ) -> Array:
            """Applies the function between the elements along axes."""

        def accumulate(
            self, a: Any, axis: int = 0, dtype: Any = None, out: None = None
        ) -> Array:
            """Returns all that `reduce` passes through along an axis."""

        def outer(self, A: Any, B: Any, /) -> Array:
            """Applies the function to each pair of elements."""

        def at(
            self, a: Any, indices: Any, b: Any = None, /, *, inplace: bool = True
        ) -> Array:
            """Applies the function to the elements that an index names."""

        def reduceat(
            self,
            a: Any,
            indices: Any,
            axis: int = 0,
            dtype: Any = None,
            out: None = None,
        ) -> Array:
            """Reduces slices that begin at given indices."""

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not type(self):
            return self is other
        return self._key is not None and bool(self._key == other._key)

    def __hash__(self) -> int:
        return id(self) if self._key is None else hash(self._key)

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__name__


def _named(function: Callable[..., R], name: str) -> Callable[..., R]:
    """Returns the function under the name that graphs and messages show."""

    @functools.wraps(function)
    def call(*args: Any) -> R:
        return function(*args)

    call.__name__ = name
    return call


class Unary(ufunc[R]):
    """A ufunc of one argument."""

    def __call__(self, x: Any, /) -> R:
        """Applies the function to each element."""
        try:
            if state.trace is EVAL:
                try:
                    plan = self._plans[(x._type,)]
                except (AttributeError, KeyError):
                    plan = self._eager
                return plan(x)
            return self._apply(x)
        except Exception as error:
            leave(error)
            raise


class Binary(ufunc[R]):
    """A ufunc of two arguments.

    Attributes:
      mixed: whether the arguments are not promoted to one dtype: then a Python number
        does not take that of an array.
      primitive: what it is for arrays of one inexact type; None: more than that.
    """

    mixed: bool
    primitive: Primitive | None

    def __init__(
        self,
        function: Callable[..., R],
        *,
        mixed: bool = False,
        primitive: Primitive | None = None,
        **options: Any,
    ) -> None:
        options.setdefault("nin", 2)
        super().__init__(function, **options)
        self.mixed, self.primitive = mixed, primitive
        # For an array and the type of a Python number: what the number becomes.
        self._numbers: Cache[Any, tuple[Callable[..., R], Any, ArrayType]]
        self._numbers = Cache("numbers beside arrays")

    def __call__(self, x: Any, y: Any, /) -> R:
        """Applies the function to each pair of elements."""
        try:
            if state.trace is not EVAL:
                return self._apply(x, y)
            if self.mixed:
                return self._eager(x, y)
            if type(x) is Array:
                if type(y) is Array:
                    try:
                        plan = self._plans[x._type, y._type]
                    except KeyError:
                        plan = self._plan(x._type, y._type)
                    return plan(x, y)
                if type(y) in SCALARS:
                    return self._beside(x, y, False)
                if isinstance(y, np.ndarray | np.generic):
                    return self(x, host_beside(y, x))
            elif type(y) is Array:
                if type(x) in SCALARS:
                    return self._beside(y, x, True)
                if isinstance(x, np.ndarray | np.generic):
                    return self(host_beside(x, y), y)
            return self._eager(x, y)
        except Exception as error:
            leave(error)
            raise

    def _plan(self, x: ArrayType, y: ArrayType) -> Callable[..., R]:
        """Returns what runs the function on arrays for which there is no plan yet."""
        # Nothing to promote or to broadcast: no function is traced.
        if self.primitive is None or x is not y or x.aval.dtype not in dtypes.INEXACT:
            return self._eager
        plan = primitive_plan(self.primitive, (x, y), {}, self.__name__)
        return self._plans.keep((x, y), plan, PLAN_BYTES)

    def _beside(self, array: Array, number: Any, reflected: bool) -> R:
        """Applies the function to a concrete array and a Python number.

        The number becomes a 0-d array of the dtype that it gets beside the array, so
        that all numbers of one type share a plan.
        """
        key = (array._type, type(number), reflected)
        try:
            plan, dtype, array_type = self._numbers[key]
        except KeyError:
            plan, dtype, array_type = self._prepare(array, number, key)
        try:
            host = np.array(number, dtype)
        except OverflowError:
            dtypes.of_python(number, dtype)  # says it in words
            raise
        made: Array = _new(Array)
        made._host = host
        made._type = array_type
        return plan(made, array) if reflected else plan(array, made)

    def _prepare(
        self, array: Array, number: Any, key: Any
    ) -> tuple[Callable[..., R], Any, ArrayType]:
        dtype, array_type = _number_type(array, number)
        pair = (array_type, array._type) if key[2] else (array._type, array_type)
        plan = self._plans.get(pair)
        if plan is None:
            # Known from the next call on.
            return self._eager, dtype, array_type
        return self._numbers.keep(key, (plan, dtype, array_type))

    def operators(self, symbol: str) -> tuple[Any, Any]:
        """Returns the methods for the operator: of the left and of the right operand.

        They hold the look-up of a plan themselves, which saves a call.

        Args:
          symbol: of the operator, for messages.
        """
        plans, function, beside = self._plans, self.function, self._beside
        make = self._plan

        def forward(self: Any, other: Any) -> Any:
            try:
                if state.trace is EVAL:
                    if type(other) is Array:
                        try:
                            plan = plans[self._type, other._type]
                        except KeyError:
                            plan = make(self._type, other._type)
                        except AttributeError:
                            plan = slow
                        return plan(self, other)
                    if type(other) in SCALARS and type(self) is Array:
                        return beside(self, other, False)
                elif isinstance(other, Array):
                    return function(self, other)
                if not is_operand(other):
                    return _refused(symbol, other)
                return slow(self, other)
            except Exception as error:
                leave(error)
                raise

        def reflected(self: Any, other: Any) -> Any:
            try:
                if not is_operand(other):
                    return _refused(symbol, other)
                return slow(other, self)
            except Exception as error:
                leave(error)
                raise

        slow = self.__call__
        return forward, reflected


def is_operand(value: Any) -> bool:
    """Returns whether an operator takes a value beside an array."""
    return (
        type(value) in SCALARS
        or isinstance(
            value, Array | np.ndarray | np.generic | bool | int | float | complex
        )
        or array_method(value) is not None
    )


def _refused(symbol: str, other: Any) -> Any:
    """Raises for what is Python's own; lets Python ask any other operand."""
    if isinstance(other, list | tuple):
        raise ArgumentError(
            f"{symbol}: a {type(other).__name__} is not an array: convert it with "
            "fnp.asarray"
        )
    if symbol not in ("==", "!=") and type(other).__module__ == "builtins":
        raise not_an_array(other, f"{symbol}: got")
    return NotImplemented


def _number_type(array: Array, number: Any) -> tuple[Any, ArrayType]:
    """Returns the dtype that a number gets beside an array, and its array type."""
    aval = array.aval
    kind = type(number)
    own = dtypes.default(kind)
    dtype, _ = lub((aval.dtype, own), (aval.weak_type, kind is not bool))
    # A number that makes the array change its dtype keeps its own.
    if dtype != aval.dtype:
        dtype = own
    weak = dtype != np.bool_
    where, _ = common_placement([array._type], "number")
    return dtype, type_on(Aval((), dtype, weak), where)


# -- declarations ----------------------------------------------------------------------

_PAIR = (
    "x1: array-like; broadcast against `x2`, both converted to one dtype.",
    "x2: array-like.",
)
_KINDS = {
    "any": "array-like of any dtype",
    "numeric": "array-like of any numeric dtype",
    "float": "array-like; integers and bools are converted to floats",
    "real": "array-like of a real dtype",
}


def describe(
    name: str,
    summary: str,
    args: tuple[str, ...],
    returns: str,
    special: str = "",
    raises: str = "",
    *,
    example: Example,
) -> str:
    """Returns the docstring of a declared function."""
    parts = [summary, "", "Args:", *(f"  {a}" for a in args), ""]
    parts += ["Returns:", f"  {returns}", "", "Raises:"]
    parts += ["  ArgumentError: an argument is not an array; lists are not accepted."]
    if raises:
        parts += [f"  DtypeError: {raises}"]
    if len(args) > 1:
        parts += ["  ShapeError: the shapes do not broadcast."]
    if special:
        parts += ["", "Special cases:", f"  {special}"]
    call, printed = example
    parts += ["", "Example:", f"  >>> {call}", textwrap.indent(printed, "  ")]
    parts += ["", f"Source: `numpy.{name}`."]
    return "\n".join(parts)


# -- one argument ----------------------------------------------------------------------


def float_unary(
    name: str,
    summary: str,
    *,
    primitive: str = "",
    special: str = "",
    example: Example,
) -> Unary[Array]:
    """Declares a function of one argument that computes in floats."""
    bind = table[primitive or name].bind

    def function(x: Any) -> Any:
        aval = getattr(x, "aval", None)
        if aval is None:
            x = array_of(x, name)
            aval = x.aval
        if not dtypes.is_inexact(aval.dtype):
            x = convert(x, _inexact(name, aval), aval.weak_type)
        return bind(x)

    doc = describe(
        name,
        summary,
        (f"x: {_KINDS['float']}.",),
        "Array of the shape of `x`, of its dtype or a float one.",
        special,
        "the dtype has no float counterpart.",
        example=example,
    )
    return Unary(function, name=name, nin=1, doc=doc)


def _inexact(name: str, aval: Any) -> Any:
    try:
        return dtypes.to_inexact(aval.dtype)
    except DtypeError:
        raise DtypeError(f"{name}: takes numbers, got {aval}") from None


def unary(
    summary: str,
    *,
    returns: str = "",
    kind: str = "any",
    special: str = "",
    example: Example,
) -> Callable[[Callable[..., R]], Unary[R]]:
    """Declares a function of one array, given what computes it from an array."""

    def decorate(compute: Callable[..., R]) -> Unary[R]:
        name = compute.__name__

        def function(x: Any) -> Any:
            array = x if hasattr(x, "aval") else array_of(x, name)
            if dtypes.is_key(array.aval.dtype):
                raise DtypeError(f"{name}: takes numbers, got {array.aval}")
            return compute(array)

        doc = describe(
            name,
            summary,
            (f"x: {_KINDS[kind]}.",),
            returns or "Array of the shape and dtype of `x`.",
            special,
            example=example,
        )
        return Unary(function, name=name, nin=1, doc=doc)

    return decorate


# -- two arguments ---------------------------------------------------------------------


def binary(
    summary: str,
    *,
    returns: str = "",
    identity: Any = None,
    special: str = "",
    raises: str = "",
    mixed: bool = False,
    promotion: Callable[..., Sequence[Array]] = promote,
    example: Example,
) -> Callable[[Callable[..., R]], Binary[R]]:
    """Declares a function of two arrays, given what computes it after promotion."""

    def decorate(compute: Callable[..., R]) -> Binary[R]:
        name = compute.__name__

        def function(x1: Any, x2: Any) -> Any:
            x, y = promotion(name, x1, x2)
            if x.aval.weak_type != y.aval.weak_type:
                # Whatever of the two the result is made of, it is not weak.
                x, y = convert(x, x.aval.dtype), convert(y, y.aval.dtype)
            return compute(x, y)

        return Binary(
            function,
            name=name,
            identity=identity,
            mixed=mixed,
            doc=describe(
                name,
                summary,
                _PAIR,
                returns or "Array of the broadcast shape and the common dtype.",
                special,
                raises or "the dtypes cannot be promoted to a common one.",
                example=example,
            ),
        )

    return decorate


def primitive_binary(
    name: str,
    summary: str,
    primitive: str,
    *,
    identity: Any = None,
    returns: str = "",
    special: str = "",
    on_bool: str = "",
    promotion: Callable[..., Sequence[Array]] = promote,
    example: Example,
) -> Binary[Array]:
    """Declares a function of two arrays that is one primitive.

    Args:
      name: of the function.
      summary: first line of its docstring.
      primitive: name of the primitive.
      identity: see `ufunc`.
      returns: what it returns, in words.
      special: special cases, in words.
      on_bool: name of the primitive for bools, if it is another one.
      promotion: from the arguments to arrays of one dtype and shape.
      example: of a call.
    """
    bind = table[primitive].bind
    bind_bool = table[on_bool].bind if on_bool else bind
    float_only = promotion is not promote

    def function(x1: Any, x2: Any) -> Any:
        aval: Any = getattr(x1, "aval", None)
        # Types are interned: operands of one type need neither promotion nor
        # broadcasting.
        if aval is None or aval is not getattr(x2, "aval", None) or float_only:
            x1, x2 = promotion(name, x1, x2)
            aval = x1.aval
        if on_bool and dtypes.is_bool(aval.dtype):
            return bind_bool(x1, x2)
        return bind(x1, x2)

    return Binary(
        function,
        name=name,
        primitive=None if float_only else table[primitive],
        identity=identity,
        doc=describe(
            name,
            summary,
            _PAIR,
            returns or "Array of the broadcast shape and the common dtype.",
            special,
            "the dtypes have no common dtype, or the operation does not support it.",
            example=example,
        ),
    )
