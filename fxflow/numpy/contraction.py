"""Products of arrays summed over axes: `matmul`, `dot`, `tensordot`.

Everything is said in labels: an axis of an operand has a label, axes of one label are
multiplied index by index, and labels that the result does not have are summed over.
`product` makes of two labelled operands one `dot_general`, which is the one operation
that XLA runs at full speed.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.core.errors import ArgumentError, AxisError, ShapeError
from fxflow.numpy import reductions
from fxflow.numpy._operands import (
    convert,
    promote_dtypes,
)
from fxflow.numpy.shapes import canonical_axis, moveaxis
from fxflow.numpy.ufuncs import Binary

Labels = tuple[Hashable, ...]


_MATRICES = (((1,), (0,)), ((), ()))


# -- two labelled operands -----------------------------------------------------------


def _without(labels: Labels, gone: Collection[Hashable]) -> Labels:
    return tuple([n for n in labels if n not in gone])


def summed(x: Any, labels: Labels, gone: Collection[Hashable]) -> tuple[Any, Labels]:
    """Returns an operand summed over some of its labels, in its own dtype."""
    axes = tuple([i for i, n in enumerate(labels) if n in gone])
    if not axes:
        return x, labels
    total = reductions.sum(x, axis=axes, promote_integers=False)
    return total, _without(labels, gone)


def ordered(x: Any, labels: Labels, wanted: Labels) -> Any:
    """Returns an operand with its axes in the order of some labels."""
    if labels == wanted:
        return x
    return lax.transpose(x, tuple([labels.index(n) for n in wanted]))


def product(
    x: Any,
    xs: Labels,
    y: Any,
    ys: Labels,
    keep: Labels,
    precision: Any,
    preferred: Any,
) -> tuple[Any, Labels]:
    """Multiplies two operands of one dtype and sums over what is not kept.

    Args:
      x: array or tracer.
      xs: label of each of its axes; distinct.
      y: array or tracer of the same dtype.
      ys: label of each of its axes; distinct, of the same lengths as in `x`.
      keep: labels that the result has.
      precision: as for `lax.dot_general`.
      preferred: dtype of the result, or None.

    Returns:
      The product and its labels, in an order of its own (that of `keep`, if that is
      as cheap).
    """
    x, xs = summed(x, xs, set(xs) - set(ys) - set(keep))
    y, ys = summed(y, ys, set(ys) - set(xs) - set(keep))
    shared = [n for n in xs if n in ys]
    batch = [n for n in shared if n in keep]
    contracted = [n for n in shared if n not in keep]
    left, right = _without(xs, shared), _without(ys, shared)
    if not contracted and not (left and right):
        # Element by element: nothing to gain from a product of matrices.
        return _scaled(x, xs, y, ys, preferred)
    if right and tuple(n for n in keep if n in left or n in right) == right + left:
        x, xs, left, y, ys, right = y, ys, right, x, xs, left
    numbers = (
        (
            tuple([xs.index(n) for n in contracted]),
            tuple([ys.index(n) for n in contracted]),
        ),
        (tuple([xs.index(n) for n in batch]), tuple([ys.index(n) for n in batch])),
    )
    out = lax.dot_general(x, y, numbers, precision, preferred)
    return out, (*batch, *left, *right)


def _scaled(
    x: Any, xs: Labels, y: Any, ys: Labels, preferred: Any
) -> tuple[Any, Labels]:
    if len(ys) > len(xs):
        x, xs, y, ys = y, ys, x, xs
    if preferred is not None:
        x, y = convert(x, preferred), convert(y, preferred)
    else:
        x, y = convert(x, x.aval.dtype), convert(y, y.aval.dtype)
    if ys != xs:
        y = ordered(y, ys, tuple([n for n in xs if n in ys]))
        places = tuple([i for i, n in enumerate(xs) if n in ys])
        y = lax.broadcast_in_dim(y, x.aval.shape, places)
    if dtypes.is_bool(x.aval.dtype):
        return lax.bitwise_and(x, y), xs
    return lax.mul(x, y), xs


def preferred_dtype(dtype: Any) -> Any:
    """Returns the dtype a product was asked for, or None."""
    return None if dtype is None else dtypes.dtype(dtype)


# -- matrices ------------------------------------------------------------------------


def _labelled_product(
    name: str,
    x: Any,
    xs: Labels,
    y: Any,
    ys: Labels,
    core: Labels,
    precision: Any,
    preferred: Any,
) -> Any:
    """Returns a product over core axes, the axes before them broadcast.

    Args:
      name: of the function, for messages.
      x: array or tracer.
      xs: labels of its last axes.
      y: array or tracer of the same dtype.
      ys: labels of its last axes.
      core: labels of the last axes of the result.
      precision: as for `lax.dot_general`.
      preferred: as for `lax.dot_general`.
    """
    a, b = x.aval, y.aval
    before = a.shape[: a.ndim - len(xs)], b.shape[: b.ndim - len(ys)]
    loop = before[0]
    if before[0] != before[1]:
        try:
            loop = lax.broadcast_shapes(*before)
        except ValueError:
            loop = None
        except TypeError:
            loop = None
        if loop is None:
            raise ShapeError(
                f"{name}: the axes before the last {len(xs)} of {a} and before the "
                f"last {len(ys)} of {b} do not broadcast together"
            )
    for n in xs:
        if n in ys:
            i, j = xs.index(n) - len(xs), ys.index(n) - len(ys)
            if a.shape[i] != b.shape[j]:
                raise ShapeError(
                    f"{name}: axis {i} of {a} and axis {j} of {b} are multiplied and "
                    f"summed over, but their lengths {a.shape[i]} and {b.shape[j]} "
                    "differ"
                )
    names = tuple(range(len(loop)))
    keep = (*names, *core)
    operands = []
    for value, own, labels in ((x, before[0], xs), (y, before[1], ys)):
        lead = len(loop) - len(own)
        # Axes of length 1 are left to the other operand.
        ones = [d for d, n in enumerate(own) if n == 1 and loop[d + lead] != 1]
        if ones:
            value = lax.squeeze(value, tuple(ones))
        left = tuple([d + lead for d in range(len(own)) if d not in ones])
        operands += [value, (*left, *labels)]
    out, labels = product(*operands, keep, precision, preferred)
    return ordered(out, labels, keep)


@library("precision", "preferred_element_type")
def matmul(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Multiplies matrices: the operator `@`.

    Args:
      a: array-like[..., m, k], or [k].
      b: array-like[..., k, n], or [k].
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Returns:
      Array[..., m, n] of the common dtype, the axes before broadcast; without `m` or
      `n` where that operand is a vector.

    Raises:
      ShapeError: an operand has no axes, or the shapes do not fit.
      ArgumentError: an operand is no array.

    Example:
      >>> matmul(np.array([[1, 2], [3, 4]]), np.array([1, 10]))
      Array([21, 43], dtype=int32)

    Source: `numpy.matmul`.
    """
    x, y = promote_dtypes("matmul", a, b)
    m, n = x.aval.ndim, y.aval.ndim
    preferred = preferred_dtype(preferred_element_type)
    if m == n == 2 and x.aval.shape[1] == y.aval.shape[0]:
        return lax.dot_general(x, y, _MATRICES, precision, preferred)  # type: ignore[no-any-return]
    if not m or not n:
        raise ShapeError(
            f"matmul: operands need at least one axis, got {x.aval} and {y.aval}: use *"
        )
    xs = ("m", "k") if m > 1 else ("k",)
    ys = ("k", "n") if n > 1 else ("k",)
    core = xs[:-1] + ys[1:]
    return _labelled_product("matmul", x, xs, y, ys, core, precision, preferred)  # type: ignore[no-any-return]


def _times(x1: Any, x2: Any) -> Any:
    return matmul(x1, x2)


matmul_operator = Binary(_times, name="matmul", doc=matmul.__doc__)
"""The operator `@`: `matmul` without options, by the fast path of operators."""


@library("precision", "preferred_element_type")
def matvec(
    x1: Any,
    x2: Any,
    /,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Multiplies matrices by vectors.

    Args:
      x1: array-like[..., m, k].
      x2: array-like[..., k]; the axes before broadcast.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Returns:
      Array[..., m].

    Raises:
      ShapeError: the shapes do not fit.

    Example:
      >>> matvec(np.array([[1, 2], [3, 4]]), np.array([[1, 0], [0, 1]]))
      Array([[1, 3],
             [2, 4]], dtype=int32)

    Source: `numpy.matvec`.
    """
    x, y = promote_dtypes("matvec", x1, x2)
    _require_axes("matvec", x, 2, y, 1)
    preferred = preferred_dtype(preferred_element_type)
    return _labelled_product(  # type: ignore[no-any-return]
        "matvec", x, ("m", "k"), y, ("k",), ("m",), precision, preferred
    )


@library("precision", "preferred_element_type")
def vecmat(
    x1: Any,
    x2: Any,
    /,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Multiplies vectors, conjugated, by matrices.

    Args:
      x1: array-like[..., k].
      x2: array-like[..., k, n]; the axes before broadcast.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Returns:
      Array[..., n].

    Raises:
      ShapeError: the shapes do not fit.

    Example:
      >>> vecmat(np.array([1, 10]), np.array([[1, 2], [3, 4]]))
      Array([31, 42], dtype=int32)

    Source: `numpy.vecmat`.
    """
    x, y = promote_dtypes("vecmat", x1, x2)
    _require_axes("vecmat", x, 1, y, 2)
    preferred = preferred_dtype(preferred_element_type)
    return _labelled_product(  # type: ignore[no-any-return]
        "vecmat", _conjugate(x), ("k",), y, ("k", "n"), ("n",), precision, preferred
    )


def _require_axes(name: str, x: Any, m: int, y: Any, n: int) -> None:
    if x.aval.ndim < m or y.aval.ndim < n:
        raise ShapeError(
            f"{name}: operands need at least {m} and {n} axes, got {x.aval} and "
            f"{y.aval}"
        )


# -- vectors -------------------------------------------------------------------------


@library("precision", "preferred_element_type")
def dot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Sums products over the last axis of `a` and the last but one of `b`.

    Args:
      a: array-like[..., k], or a number.
      b: array-like[..., k, n], [k], or a number.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Returns:
      Array of shape `a.shape[:-1] + b.shape[:-2] + b.shape[-1:]`.

    Raises:
      ShapeError: the lengths of the summed axes differ.
      ArgumentError: an operand is no array.

    Example:
      >>> dot(np.array([1, 2, 3]), np.array([4, 5, 6]))
      Array(32, dtype=int32)

    Source: `numpy.dot`.
    """
    x, y = promote_dtypes("dot", a, b)
    m, n = x.aval.ndim, y.aval.ndim
    preferred = preferred_dtype(preferred_element_type)
    if not m or not n:
        labels = tuple(range(m + n))
        return _scaled(x, labels[:m], y, labels[m:], preferred)[0]  # type: ignore[no-any-return]
    j = 0 if n == 1 else n - 2
    return _over_pairs("dot", x, (m - 1,), y, (j,), precision, preferred)  # type: ignore[no-any-return]


def _over_pairs(
    name: str,
    x: Any,
    left: Sequence[int],
    y: Any,
    right: Sequence[int],
    precision: Any,
    preferred: Any,
) -> Any:
    """Sums products over pairs of axes, whose lengths must be the same."""
    a, b = x.aval, y.aval
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j]:
            raise ShapeError(
                f"{name}: axis {i} of {a} and axis {j} of {b} are multiplied and "
                f"summed over, but their lengths {a.shape[i]} and {b.shape[j]} differ"
            )
    numbers = ((tuple(left), tuple(right)), ((), ()))
    return lax.dot_general(x, y, numbers, precision, preferred)


@library("precision", "preferred_element_type")
def inner(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Sums products over the last axes of both.

    Args:
      a: array-like[..., k], or a number.
      b: array-like[..., k], or a number.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Returns:
      Array of shape `a.shape[:-1] + b.shape[:-1]`.

    Raises:
      ShapeError: the lengths of the last axes differ.

    Example:
      >>> inner(np.array([[1, 2], [3, 4]]), np.array([1, 10]))
      Array([21, 43], dtype=int32)

    Source: `numpy.inner`.
    """
    x, y = promote_dtypes("inner", a, b)
    m, n = x.aval.ndim, y.aval.ndim
    preferred = preferred_dtype(preferred_element_type)
    if not m or not n:
        labels = tuple(range(m + n))
        return _scaled(x, labels[:m], y, labels[m:], preferred)[0]  # type: ignore[no-any-return]
    return _over_pairs("inner", x, (m - 1,), y, (n - 1,), precision, preferred)  # type: ignore[no-any-return]


@library("precision", "preferred_element_type")
def vdot(
    a: Any, b: Any, *, precision: Any = None, preferred_element_type: Any = None
) -> Array:
    """Sums the products of all elements, those of `a` conjugated.

    Args:
      a: array-like.
      b: array-like with as many elements.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sum.

    Returns:
      0-d array.

    Raises:
      ShapeError: the numbers of elements differ.

    Example:
      >>> vdot(np.array([1 + 2j]), np.array([3 + 4j]))
      Array(11.-2.j, dtype=complex64)

    Source: `numpy.vdot`.
    """
    x, y = promote_dtypes("vdot", a, b)
    if x.aval.size != y.aval.size:
        raise ShapeError(
            f"vdot: operands need as many elements, got {x.aval} and {y.aval}"
        )
    x = lax.reshape(_conjugate(x), (x.aval.size,))
    y = lax.reshape(y, (y.aval.size,))
    preferred = preferred_dtype(preferred_element_type)
    return _over_pairs("vdot", x, (0,), y, (0,), precision, preferred)  # type: ignore[no-any-return]


def _conjugate(x: Any) -> Any:
    return lax.conj(x) if dtypes.is_complex(x.aval.dtype) else x


@library("axis", "precision", "preferred_element_type")
def vecdot(
    x1: Any,
    x2: Any,
    /,
    *,
    axis: int = -1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Sums products along an axis, those of `x1` conjugated.

    Args:
      x1: array-like[..., k].
      x2: array-like[..., k]; the other axes broadcast.
      axis: of both, before broadcasting; negative, if their numbers of axes differ.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Returns:
      Array of the broadcast shape without the axis.

    Raises:
      AxisError: the axis is out of range.
      ShapeError: the shapes do not fit.

    Example:
      >>> vecdot(np.array([[1, 2], [3, 4]]), np.array([1, 10]))
      Array([21, 43], dtype=int32)

    Source: `numpy.vecdot`.
    """
    x, y = promote_dtypes("vecdot", x1, x2)
    x = moveaxis(x, canonical_axis("vecdot", axis, x.aval.ndim), -1)
    y = moveaxis(y, canonical_axis("vecdot", axis, y.aval.ndim), -1)
    core = ("k",)
    preferred = preferred_dtype(preferred_element_type)
    return _labelled_product(  # type: ignore[no-any-return]
        "vecdot", _conjugate(x), core, y, core, (), precision, preferred
    )


# -- any axes ------------------------------------------------------------------------


def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """Sums products over some axes of both.

    Args:
      a: array-like.
      b: array-like.
      axes: how many axes (the last ones of `a`, the first ones of `b`), or a pair of
        axes or of sequences of axes: those of `a`, and with which of `b`.
      precision: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result and of the sums.

    Returns:
      Array with the remaining axes of `a`, then those of `b`.

    Raises:
      AxisError: an axis is out of range or named twice.
      ShapeError: the lengths of the summed axes differ.
      ArgumentError: `axes` is of no such form.

    Example:
      >>> tensordot(np.ones((2, 3, 4)), np.ones((4, 3, 5)), ((1, 2), (1, 0))).shape
      (2, 5)

    Source: `numpy.tensordot`.
    """
    if isinstance(axes, int | np.integer):
        return _tensordot(a, b, int(axes), precision, preferred_element_type)
    try:
        left, right = axes
        fixed = tuple(
            (int(n),) if isinstance(n, int | np.integer) else tuple(int(i) for i in n)
            for n in (left, right)
        )
    except (TypeError, ValueError):
        raise ArgumentError(
            "tensordot: axes must be a number of axes or a pair of axes or of "
            f"sequences of axes, got {axes!r}"
        ) from None
    return _tensordot(a, b, fixed, precision, preferred_element_type)


@library("axes", "precision", "preferred_element_type")
def _tensordot(
    a: Any, b: Any, axes: Any, precision: Any, preferred_element_type: Any
) -> Any:
    x, y = promote_dtypes("tensordot", a, b)
    m, n = x.aval.ndim, y.aval.ndim
    if isinstance(axes, int):
        if not 0 <= axes <= min(m, n):
            raise AxisError(
                f"tensordot: cannot sum over {axes} axes of {x.aval} and {y.aval}"
            )
        axes = tuple(range(m - axes, m)), tuple(range(axes))
    left, right = axes
    if len(left) != len(right):
        raise ShapeError(
            f"tensordot: axes must name as many axes of both, got {left} and {right}"
        )
    left = tuple(canonical_axis("tensordot", i, m) for i in left)
    right = tuple(canonical_axis("tensordot", i, n) for i in right)
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise AxisError(f"tensordot: axes name an axis twice: {left}, {right}")
    preferred = preferred_dtype(preferred_element_type)
    return _over_pairs("tensordot", x, left, y, right, precision, preferred)
