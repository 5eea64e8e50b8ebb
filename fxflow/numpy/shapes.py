"""The same elements under another shape."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, overload

from fxflow import lax
from fxflow.core.arrays import Array, ArrayType, Aval, Shape
from fxflow.core.caches import Cache
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL, host_types, open_layouts
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axes, hashable, int_tuple, shape_or_length
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import ArrayLike, ShapeLike, array_of
from fxflow.numpy.axis_order import transpose

_new = object.__new__

_reshaped: Cache[Any, tuple[Shape, ArrayType]] = Cache("types of reshaped arrays")


def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: Any = None,
) -> Array:
    """Gives an array another shape; the order of the elements stays.

    Args:
      a: array-like.
      shape: int or sequence of ints; one of them may be -1, which is inferred.
      order: "C" (last axis fastest) or "F" (first axis fastest).
      copy: False is refused if the layout could need a copy; arrays never change, so
        it makes no other difference.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array of that shape and the dtype of `a`.

    Raises:
      ShapeError: the number of elements differs.
      ArgumentError: `order` is neither "C" nor "F".
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> reshape(np.arange(4), (2, -1))
      Array([[0, 1],
             [2, 3]], dtype=int32)

    Source: `numpy.reshape`.
    """
    if out_sharding is not None:
        with open_layouts(out_sharding):
            out = reshape(a, shape, order)
        return laid_out("reshape", out, out_sharding)
    # Repeated eager reshapes of host arrays: the result's type comes from a cache and
    # only NumPy's view is new. Anything that is not cached or not on the host takes the
    # general path.
    if type(a) is Array and order == "C" and state.trace is EVAL:
        try:
            wanted, array_type = _reshaped[a._type, shape]
            view = a._host.reshape(wanted)
        except (KeyError, TypeError, AttributeError):
            return _reshape(a, shape)
        made: Array = _new(Array)
        made._host = view
        made._type = array_type
        return made
    if order == "C":
        return _reshape(a, shape)
    if order != "F":
        raise ArgumentError(f"reshape: order must be 'C' or 'F', got {order!r}")
    a = array_of(a, "reshape")
    wanted = inferred("reshape", shape, a.aval)
    # Order F is order C of the reversed axes.
    flipped = lax.reshape(transpose(a), wanted[::-1])
    return transpose(flipped)


def _reshape(a: Any, shape: Any) -> Array:
    a = array_of(a, "reshape")
    wanted = inferred("reshape", shape, a.aval)
    if state.trace is EVAL and type(a) is Array:
        lengths = shape if type(shape) is tuple else (shape,)
        made = host_types[a._type, wanted]
        if made is not None and all(type(n) is int for n in lengths):
            _reshaped.keep((a._type, shape), (wanted, made))
    return lax.reshape(a, wanted)


def inferred(name: str, shape: ShapeLike, aval: Aval) -> Shape:
    """Returns a shape with -1 replaced by the length that it must be.

    Args:
      name: of the function, for messages.
      shape: int or sequence of ints.
      aval: of the array.

    Raises:
      ShapeError: the number of elements differs.
    """
    many = isinstance(shape, tuple | list) or getattr(shape, "ndim", 0) == 1
    given = int_tuple(name, "shape", shape if many else (shape,))
    if -1 not in given:
        wanted = shape_or_length(name, shape)
    else:
        known = math.prod(n for n in given if n != -1)
        if given.count(-1) > 1:
            raise ShapeError(f"{name}: only one length can be -1, got {tuple(given)}")
        if known == 0 or aval.size % known:
            raise ShapeError(
                f"{name}: cannot reshape {aval} to {tuple(given)}: {aval.size} "
                f"elements do not divide by {known}"
            )
        wanted = shape_or_length(
            name, tuple(aval.size // known if n == -1 else n for n in given)
        )
    if math.prod(wanted) != aval.size:
        raise ShapeError(
            f"{name}: cannot reshape {aval} to {wanted}: that is {math.prod(wanted)} "
            f"elements instead of {aval.size}"
        )
    return wanted


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """Gives an array one axis.

    Args:
      a: array-like.
      order: "C" (last axis fastest) or "F" (first axis fastest).
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array of shape `(a.size,)`.

    Raises:
      ArgumentError: `order` is neither "C" nor "F".
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> ravel(np.array([[1, 2], [3, 4]]), order="F")
      Array([1, 3, 2, 4], dtype=int32)

    Source: `numpy.ravel`.
    """
    if out_sharding is not None:
        with open_layouts(out_sharding):
            out = ravel(a, order)
        return laid_out("ravel", out, out_sharding)
    return reshape(a, -1, order)


def expand_dims(a: ArrayLike, axis: Any) -> Array:
    """Adds axes of length 1.

    Args:
      a: array-like.
      axis: int or sequence of ints: where they are in the result.

    Returns:
      Array.

    Raises:
      AxisError: an axis is out of range or repeated.

    Example:
      >>> expand_dims(np.zeros((2, 3)), (0, -1)).shape
      (1, 2, 3, 1)

    Source: `numpy.expand_dims`.
    """
    return _expand_dims(a, hashable(axis))


@library("axis")
def _expand_dims(a: Any, axis: Any) -> Array:
    a = array_of(a, "expand_dims")
    count = len(axis) if isinstance(axis, tuple) else 1
    ndim = a.aval.ndim + count
    axes = canonical_axes("expand_dims", axis, ndim)
    rest = iter(a.aval.shape)
    return lax.reshape(a, tuple(1 if d in axes else next(rest) for d in range(ndim)))


def squeeze(a: ArrayLike, axis: Any = None) -> Array:
    """Drops axes of length 1.

    Args:
      a: array-like.
      axis: int or sequence of ints; None drops all of length 1.

    Returns:
      Array.

    Raises:
      ShapeError: an axis is not of length 1.
      AxisError: an axis is out of range or repeated.

    Example:
      >>> squeeze(np.zeros((1, 2, 1)), axis=0).shape
      (2, 1)

    Source: `numpy.squeeze`.
    """
    return _squeeze(a, hashable(axis))


@library("axis")
def _squeeze(a: Any, axis: Any) -> Array:
    a = array_of(a, "squeeze")
    shape = a.aval.shape
    if axis is None:
        return lax.reshape(a, tuple(n for n in shape if n != 1))
    axes = canonical_axes("squeeze", axis, a.aval.ndim)
    for d in axes:
        if shape[d] != 1:
            raise ShapeError(
                f"squeeze: axis {d} of {a.aval} has length {shape[d]}: only axes of "
                "length 1 can be dropped"
            )
    return lax.reshape(a, tuple(n for d, n in enumerate(shape) if d not in axes))


def _at_least(
    name: str, ndim: int, new_axes: tuple[tuple[int, ...], ...]
) -> Callable[[Any], Array]:
    @library()
    def one(a: Any) -> Array:
        x = array_of(a, name)
        if x.aval.ndim >= ndim:
            return x
        rest = iter(x.aval.shape)
        new = new_axes[x.aval.ndim]
        return lax.reshape(x, tuple(1 if d in new else next(rest) for d in range(ndim)))

    return one


_at_least_1d = _at_least("atleast_1d", 1, ((0,),))
_at_least_2d = _at_least("atleast_2d", 2, ((0, 1), (0,)))
_at_least_3d = _at_least("atleast_3d", 3, ((0, 1, 2), (0, 2), (2,)))


def _each(
    function: Callable[[Any], Array], arrays: tuple[Any, ...]
) -> Array | list[Array]:
    found = [function(a) for a in arrays]
    return found[0] if len(found) == 1 else found


@overload
def atleast_1d(ary: Any, /) -> Array: ...


@overload
def atleast_1d(ary: Any, other: Any, /, *arys: Any) -> list[Array]: ...


def atleast_1d(*arys: Any) -> Array | list[Array]:
    """Gives 0-d arrays one axis.

    Args:
      *arys: array-likes.

    Returns:
      The array, or a list of arrays if there are several.

    Example:
      >>> atleast_1d(np.float32(3.0))
      Array([3.], dtype=float32)

    Source: `numpy.atleast_1d`.
    """
    return _each(_at_least_1d, arys)


@overload
def atleast_2d(ary: Any, /) -> Array: ...


@overload
def atleast_2d(ary: Any, other: Any, /, *arys: Any) -> list[Array]: ...


def atleast_2d(*arys: Any) -> Array | list[Array]:
    """Gives arrays two axes at least; new ones come in front.

    Args:
      *arys: array-likes.

    Returns:
      The array, or a list of arrays if there are several.

    Example:
      >>> atleast_2d(np.array([1, 2]))
      Array([[1, 2]], dtype=int32)

    Source: `numpy.atleast_2d`.
    """
    return _each(_at_least_2d, arys)


@overload
def atleast_3d(ary: Any, /) -> Array: ...


@overload
def atleast_3d(ary: Any, other: Any, /, *arys: Any) -> list[Array]: ...


def atleast_3d(*arys: Any) -> Array | list[Array]:
    """Gives arrays three axes at least.

    A vector becomes `(1, n, 1)`, a matrix `(m, n, 1)`.

    Args:
      *arys: array-likes.

    Returns:
      The array, or a list of arrays if there are several.

    Example:
      >>> atleast_3d(np.array([1, 2])).shape
      (1, 2, 1)

    Source: `numpy.atleast_3d`.
    """
    return _each(_at_least_3d, arys)
