"""Products of labelled operands, summed over axes.

Products are said in labels: an axis of an operand has a label, axes of one label are
multiplied index by index, and labels that the result does not have are summed over.
`product` makes of two labelled operands one `dot_general`, which is the one operation
that XLA runs at full speed.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes
from fxflow.errors import ShapeError
from fxflow.numpy import reductions
from fxflow.numpy._operands import DTypeLike, convert

Labels = tuple[Hashable, ...]


def _without(labels: Labels, gone: Collection[Hashable]) -> Labels:
    return tuple([n for n in labels if n not in gone])


def summed(
    x: Array, labels: Labels, gone: Collection[Hashable]
) -> tuple[Array, Labels]:
    """Returns an operand summed over some of its labels, in its own dtype."""
    axes = tuple([i for i, n in enumerate(labels) if n in gone])
    if not axes:
        return x, labels
    dtype = x.aval.dtype
    total = reductions.sum(
        x,
        axis=axes,
        dtype=dtype if dtypes.is_bool(dtype) else None,
        promote_integers=False,
    )
    total = convert(total, dtype, x.aval.weak_type)
    return total, _without(labels, gone)


def ordered(x: Array, labels: Labels, wanted: Labels) -> Array:
    """Returns an operand with its axes in the order of some labels."""
    if labels == wanted:
        return x
    return lax.transpose(x, tuple([labels.index(n) for n in wanted]))


def product(
    x: Array,
    xs: Labels,
    y: Array,
    ys: Labels,
    keep: Labels,
    precision: Any,
    preferred: DTypeLike,
) -> tuple[Array, Labels]:
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
        return scaled(x, xs, y, ys, preferred)
    # With the operands exchanged the result needs no transposition.
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


def scaled(
    x: Array, xs: Labels, y: Array, ys: Labels, preferred: Any
) -> tuple[Array, Labels]:
    """Returns a product without sums, by elementwise multiplication."""
    if len(ys) > len(xs):
        x, xs, y, ys = y, ys, x, xs
    if preferred is not None:
        x, y = convert(x, preferred), convert(y, preferred)
    elif x.aval.weak_type != y.aval.weak_type:
        x, y = convert(x, x.aval.dtype), convert(y, y.aval.dtype)
    if ys != xs:
        y = ordered(y, ys, tuple([n for n in xs if n in ys]))
        dims = tuple([i for i, n in enumerate(xs) if n in ys])
        y = lax.broadcast_in_dim(y, x.aval.shape, dims)
    if dtypes.is_bool(x.aval.dtype):
        return lax.bitwise_and(x, y), xs
    return lax.mul(x, y), xs


def lengths_differ(name: str, a: Aval, i: int, b: Aval, j: int) -> ShapeError:
    """Returns the error for axes that are summed over together and differ."""
    return ShapeError(
        f"{name}: axis {i} of {a} and axis {j} of {b} are multiplied and summed over, "
        f"but their lengths {a.shape[i]} and {b.shape[j]} differ"
    )


def preferred_dtype(dtype: Any) -> Any:
    """Returns the dtype a product was asked for, or None."""
    return None if dtype is None else dtypes.dtype(dtype)


def labelled_product(
    name: str,
    x: Array,
    xs: Labels,
    y: Array,
    ys: Labels,
    core: Labels,
    precision: Any,
    preferred: Any,
) -> Array:
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
    try:
        loop = lax.broadcast_shapes(*before) if before[0] != before[1] else before[0]
    except ShapeError:
        raise ShapeError(
            f"{name}: the axes before the last {len(xs)} of {a} and before the last "
            f"{len(ys)} of {b} do not broadcast together"
        ) from None
    for n in xs:
        if n in ys:
            i, j = xs.index(n) - len(xs), ys.index(n) - len(ys)
            if a.shape[i] != b.shape[j]:
                raise lengths_differ(name, a, i, b, j)
    names = tuple(range(len(loop)))
    keep = (*names, *core)
    operands: list[tuple[Any, Labels]] = []
    for value, own, labels in ((x, before[0], xs), (y, before[1], ys)):
        lead = len(loop) - len(own)
        # Axes of length 1 are left to the other operand.
        ones = [d for d, n in enumerate(own) if n == 1 and loop[d + lead] != 1]
        if ones:
            value = lax.squeeze(value, tuple(ones))
        left = tuple([d + lead for d in range(len(own)) if d not in ones])
        operands.append((value, (*left, *labels)))
    (x, xs), (y, ys) = operands
    out, labels = product(x, xs, y, ys, keep, precision, preferred)
    return ordered(out, labels, keep)
