"""What users may pass to an elementwise function, made what its primitive takes.

Primitives know neither promotion nor broadcasting. The public functions of `lax` accept
a little more than they do: Python numbers beside arrays (which take the array's dtype
and stay 0-d constants), Python numbers alone (`ge(0, 0.0)`: they combine as Python's
do), 0-d arrays beside larger ones, and axes of length one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.arrays.promotion import result_type
from fxflow.core.ir import arith
from fxflow.core.ir.trace import Tracer, state
from fxflow.errors import DtypeError, ShapeError

PYTHON_SCALARS = frozenset((bool, int, float, complex))

_RANK = {bool: 0, int: 1, float: 2, complex: 3}


def constant_like(value: Any, aval: Aval, name: str = "constant") -> Any:
    """Returns a Python number as a 0-d constant of an array's dtype.

    Args:
      value: a bool, int, float or complex.
      aval: type of the array it stands beside.
      name: of the operation, for messages.

    Raises:
      DtypeError: the dtype has no such values.
      OverflowError: the integer does not fit.
    """
    dtype = aval.dtype
    if dtypes.is_key(dtype) or _RANK[type(value)] > _rank(dtype):
        raise DtypeError(
            f"{name}: the number {value!r} cannot become {dtypes.short_name(dtype)} "
            f"to go with {aval}: convert the array with .astype(...) first"
        )
    if isinstance(value, int) and dtypes.is_integer(dtype):
        dtypes.of_python(int(value), dtype)
    return arith.constant(value, dtype, aval.weak_type)


def _rank(dtype: Any) -> int:
    if dtypes.is_bool(dtype):
        return 0
    if dtypes.is_integer(dtype):
        return 1
    return 3 if dtypes.is_complex(dtype) else 2


def operands(name: str, *args: Any) -> Sequence[Any]:
    """Returns the operands of an elementwise operation, as its primitive takes them.

    Args:
      name: of the operation, for messages.
      *args: arrays of one dtype and of shapes that are equal, 0-d or equal but for axes
        of length one; and Python numbers.

    Returns:
      Arrays of one dtype and shape, and 0-d constants.

    Raises:
      DtypeError: a number does not fit the arrays' dtype.
      ShapeError: the shapes are incompatible.
    """
    # The common cases first: every operation of two arguments comes by here.
    if len(args) == 2:
        x, y = args
        if isinstance(x, Array):
            if isinstance(y, Array):
                if x.aval.shape == y.aval.shape:
                    return args
            elif type(y) in PYTHON_SCALARS:
                return x, constant_like(y, x.aval, name)
    out = list(args)
    numbers = [i for i, a in enumerate(out) if type(a) in PYTHON_SCALARS]
    if numbers:
        if len(numbers) == len(out):
            dtype = result_type(*out)
            like = Aval((), dtype, type(out[0]) is not bool)
        else:
            like = next(typeof(a) for a in out if type(a) not in PYTHON_SCALARS)
        for i in numbers:
            out[i] = constant_like(out[i], like, name)
        if len(out) - len(numbers) <= 1:
            return out
    return aligned(name, *out)


def aligned(name: str, *args: Any) -> list[Any]:
    """Returns arrays made of one shape; 0-d constants stay as they are.

    Args:
      name: of the operation, for messages.
      *args: arrays of shapes that are equal, 0-d or equal but for axes of length one.

    Raises:
      ShapeError: the shapes are incompatible.
    """
    avals = [typeof(a) for a in args]
    shape = avals[0].shape
    if all(aval.shape == shape for aval in avals):
        return list(args)
    return stretched(args, common_shape(name, avals))


def stretched(args: Sequence[Any], shape: Shape) -> list[Any]:
    """Returns arrays broadcast to a shape; 0-d constants stay as they are."""
    # A traced 0-d operand could be differentiated or mapped, unless the trace is final.
    final = state.trace.final
    return [
        a
        if not typeof(a).ndim and (final or not isinstance(a, Tracer))
        else arith.repeated(a, shape)
        for a in args
    ]


def common_shape(name: str, avals: list[Aval]) -> Shape:
    """Returns the shape to which operands are broadcast.

    Raises:
      ShapeError: there is none.
    """
    full = [a.shape for a in avals if a.ndim]
    if len({len(shape) for shape in full}) == 1:
        out = tuple(
            next((n for n in sizes if n != 1), 1) for sizes in zip(*full, strict=True)
        )
        if all(n in (1, m) for shape in full for n, m in zip(shape, out, strict=True)):
            return out
    raise ShapeError(
        f"{name}: operands must have one shape, got {', '.join(map(str, avals))}: "
        "reshape or broadcast one, or use the function of fxflow.numpy, which "
        "broadcasts"
    )
