"""Computes functions of large batches in the memory of a microbatch.

A batch of n·m rows is divided into n microbatches of m rows: microbatch i has the rows
i, n + i, 2n + i, …, so that rows of a sharded batch stay on their devices.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import dtypes, typeof
from fxflow.core.arrays.aval import ShapeDtypeStruct
from fxflow.core.boundary import public as _public
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.optim.numerics import widened
from fxflow.transforms.grad import value_and_grad
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.vmap import vmap

__all__ = [
    "AccumulationType",
    "Accumulator",
    "Aux",
    "micro_grad",
    "micro_vmap",
    "microbatch",
    "reshape_batch_axis",
]


class AccumulationType(enum.Enum):
    """How to combine the results of microbatches.

    Attributes:
      MEAN: their sum, divided by the number of all microbatches, including those that
        `num_real_microbatches` leaves out.
      SUM: their sum.
      RUNNING_MEAN: the mean of the computed microbatches, without a large sum.
      CONCAT: their rows, in the order of the batch; zeros for those left out.
    """

    MEAN = 1
    SUM = 2
    RUNNING_MEAN = 3
    CONCAT = 4


@dataclasses.dataclass(frozen=True)
class Accumulator:
    """Functions that combine the results of microbatches.

    Attributes:
      init: maps the types of a result (a pytree of `ShapeDtypeStruct`) to the initial
        carry.
      update: `update(carry, result, i)` returns the next carry; i is an i32[].
      finalize: maps the last carry to the result of the whole batch.
      aggregate: maps the results of rows, along axis 0, to a microbatch's result; used
        by `micro_vmap`.
    """

    init: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], Any]
    finalize: Callable[[Any], Any]
    aggregate: Callable[[Any], Any]


class Aux(NamedTuple):
    """Results of `micro_grad` in addition to gradients, for each row of the batch.

    Attributes:
      values: the function's values.
      metrics: the results of `metrics_fn`.
      aux: the function's auxiliary results; None without `has_aux`.
    """

    values: Any
    metrics: Any
    aux: Any


def reshape_batch_axis(tree_: Any, microbatch_size: int, axis: int = 0) -> Any:
    """Divides an axis of all leaves into microbatches.

    Args:
      tree_: pytree of arrays with an axis of n·m rows.
      microbatch_size: m, the number of rows of a microbatch.
      axis: the axis of the rows.

    Returns:
      The pytree with two axes `[n, m]` in place of that axis: row j of microbatch i is
      row i + j·n of the batch.

    Raises:
      ArgumentError: `microbatch_size` is not a positive integer.
      ShapeError: a leaf has no such axis, or its length is not a multiple of the size.

    Example:
      >>> optim.microbatching.reshape_batch_axis(fnp.arange(6), 2).tolist()
      [[0, 3], [1, 4], [2, 5]]

    Source: optax's function of this name.
    """
    size = _size("reshape_batch_axis", microbatch_size)

    def cut(leaf: Any) -> Any:
        place, count = _place("reshape_batch_axis", leaf, axis, size)
        shape = typeof(leaf).shape
        split = fnp.reshape(leaf, (*shape[:place], size, count, *shape[place + 1 :]))
        return fnp.swapaxes(split, place, place + 1)

    return tree.map(cut, tree_)


def microbatch(
    fun: Callable[..., Any],
    argnums: int | Sequence[int],
    microbatch_size: int | None,
    accumulator: Any = AccumulationType.SUM,
    *,
    argnames: str | Sequence[str] = (),
    in_axes: int | Sequence[int] = 0,
    num_real_microbatches: Any = None,
) -> Callable[..., Any]:
    """Makes a function that computes one microbatch after the other.

    It needs memory for one microbatch at a time, and for the accumulated results.

    Args:
      fun: the function, from and to pytrees of arrays.
      argnums: the positional arguments with an axis of rows.
      microbatch_size: the number of rows of a microbatch; None means all rows.
      accumulator: how to combine the results: an `AccumulationType`, an `Accumulator`,
        or a pytree of these that is a prefix of the result.
      argnames: the keyword arguments with an axis of rows.
      in_axes: the axis of the rows: one for all, or one for each of `argnums` and then
        each of `argnames`.
      num_real_microbatches: number of microbatches to compute, an integer or an i32[]
        array: a padded batch needs no other program. None means all.

    Returns:
      A function of the same arguments.

    Raises:
      ArgumentError: the size is below 1, an argument is missing, `in_axes` has another
        length, or `num_real_microbatches` is too large.
      ShapeError: (when called) the number of rows is not a multiple of the size, or
        differs between arguments.

    Special cases:
      MEAN and RUNNING_MEAN of integers are floats. Results of 16 bits are accumulated
      in float32.

    Example:
      >>> f = optim.microbatching.microbatch(fnp.sum, 0, 2)
      >>> float(f(fnp.arange(6.0)))
      15.0

    Source: optax's function of this name.
    """
    positions = _each(argnums)
    names = _each(argnames)
    if isinstance(in_axes, int):
        axes = [in_axes] * (len(positions) + len(names))
    else:
        axes = list(in_axes)
    if len(axes) != len(positions) + len(names) or not axes:
        raise ArgumentError(
            f"microbatch: in_axes must have an entry for each of {len(positions)} "
            f"argnums and {len(names)} argnames, and at least one, got {in_axes!r}"
        )
    if microbatch_size is None:
        return fun
    size = _size("microbatch", microbatch_size)

    def microbatched(*args: Any, **kwargs: Any) -> Any:
        """Computes `fun` for one microbatch after the other."""
        keys = [*positions, *names]
        for key in positions:
            if not -len(args) <= key < len(args):
                raise ArgumentError(
                    f"microbatch: argnums has {key}, but {len(args)} positional "
                    "arguments were given"
                )
        for key in names:
            if key not in kwargs:
                raise ArgumentError(f"microbatch: no argument {key!r} was given")
        given = [args[k] if isinstance(k, int) else kwargs[k] for k in keys]
        count = _count("microbatch", given, axes, size)
        parts = [
            reshape_batch_axis(one, size, axis)
            for one, axis in zip(given, axes, strict=True)
        ]

        def of_part(i: Any) -> Any:
            own, named = list(args), dict(kwargs)
            for key, part, axis in zip(keys, parts, axes, strict=True):
                taken = tree.map(functools.partial(_taken, i, axis), part)
                if isinstance(key, int):
                    own[key] = taken
                else:
                    named[key] = taken
            return fun(*own, **named)

        result = eval_shape(of_part, 0)
        rules = tree.map(lambda rule: _accumulator(rule, count), accumulator)
        carry = tree.map(lambda rule, like: rule.init(like), rules, result)

        def step(i: Any, carry: Any) -> Any:
            return tree.map(
                lambda rule, c, v: rule.update(c, v, i), rules, carry, of_part(i)
            )

        real = _real(num_real_microbatches, count)
        carry = lax.fori_loop(0, real, step, carry)
        found = tree.map(lambda rule, c: rule.finalize(c), rules, carry)
        return tree.map(_narrowed, accumulator, found, result)

    return microbatched


def micro_vmap(
    fun: Callable[..., Any],
    in_axes: int | Sequence[int | None] = 0,
    out_axes: int = 0,
    *,
    microbatch_size: int | None = None,
    vmap_fn: Callable[..., Callable[..., Any]] = vmap,
    accumulator: Any = AccumulationType.CONCAT,
    num_real_microbatches: Any = None,
) -> Callable[..., Any]:
    """Vectorizes a function of rows: `vmap` in the memory of a microbatch.

    Args:
      fun: a function of single rows.
      in_axes: the axis of the rows in the arguments, at least 0; None for an argument
        without rows. One for all, or one for each.
      out_axes: 0: results have rows along their first axis.
      microbatch_size: number of rows to compute at once; None means all.
      vmap_fn: a function of `vmap`'s arguments `(fun, in_axes, out_axes)`.
      accumulator: how to combine the results of rows, see `microbatch`: CONCAT returns
        the result of `vmap`, the others reduce it.
      num_real_microbatches: see `microbatch`.

    Returns:
      A function of batches; results have rows along axis 0, unless they are reduced.

    Raises:
      ArgumentError: an axis is invalid.
      ShapeError: (when called) see `microbatch`.

    Example:
      >>> square = lambda x: x**2
      >>> f = optim.microbatching.micro_vmap(square, microbatch_size=2)
      >>> f(fnp.arange(6)).tolist()
      [0, 1, 4, 9, 16, 25]

    Source: optax's function of this name.
    """
    if out_axes != 0:
        raise ArgumentError(f"micro_vmap: out_axes must be 0, got {out_axes!r}")
    listed = [in_axes] if in_axes is None or isinstance(in_axes, int) else [*in_axes]
    if any(axis is not None and axis < 0 for axis in listed):
        raise ArgumentError(
            f"micro_vmap: in_axes must be 0 or more, or None, got {in_axes!r}"
        )

    def mapped(*args: Any) -> Any:
        """Computes `fun` for each row of a batch."""
        axes = listed * len(args) if isinstance(in_axes, int) else listed
        if len(axes) != len(args):
            raise ArgumentError(
                f"micro_vmap: in_axes has {len(axes)} entries for {len(args)} arguments"
            )
        inner = vmap_fn(fun, tuple(axes), 0)

        def aggregated(*parts: Any) -> Any:
            rows = inner(*parts)
            return tree.map(
                lambda rule, value: _accumulator(rule, 1).aggregate(value),
                accumulator,
                rows,
            )

        batched = [i for i, axis in enumerate(axes) if axis is not None]
        return microbatch(
            aggregated,
            batched,
            microbatch_size,
            accumulator,
            in_axes=[axis for axis in axes if axis is not None],
            num_real_microbatches=num_real_microbatches,
        )(*args)

    return mapped


def micro_grad(
    fun: Callable[..., Any],
    has_aux: bool = False,
    argnums: int | Sequence[int] = 0,
    *,
    batch_argnums: int | Sequence[int] = 1,
    keep_batch_dim: bool = True,
    microbatch_size: int | None = None,
    accumulator: Any = AccumulationType.SUM,
    transform_fn: Callable[[Any], Any] = lambda gradient: gradient,
    metrics_fn: Callable[[Any], Any] = lambda gradient: None,
    num_real_microbatches: Any = None,
) -> Callable[..., Any]:
    """Makes a function that transforms, measures and accumulates the rows' gradients.

    For example, it can clip or square each row's gradient before adding them. It needs
    memory for the gradients of one microbatch.

    Args:
      fun: a function whose value is a scalar.
      has_aux: whether it also returns auxiliary results.
      argnums: the arguments to differentiate with respect to.
      batch_argnums: the arguments with rows, along axis 0.
      keep_batch_dim: whether `fun` gets batches of one row instead of rows.
      microbatch_size: number of rows to compute at once; None means all.
      accumulator: how to combine the transformed gradients, see `microbatch`.
      transform_fn: transforms a row's gradient, before accumulation.
      metrics_fn: returns metrics of a row's gradient, before its transformation.
      num_real_microbatches: see `microbatch`.

    Returns:
      A function of `fun`'s arguments that returns the accumulated, transformed
      gradients, and an `Aux` with values for each row.

    Raises:
      ArgumentError, ShapeError: (when called) see `microbatch`.

    Example:
      >>> loss = lambda w, x: fnp.mean((w - x) ** 2)
      >>> f = optim.microbatching.micro_grad(loss, transform_fn=fnp.sign)
      >>> gradient, aux = f(1.5, fnp.arange(4.0))
      >>> float(gradient), aux.values.tolist()
      (0.0, [2.25, 0.25, 0.25, 2.25])

    Source: optax's function of this name.
    """
    batched = set(_each(batch_argnums))
    slope = value_and_grad(fun, argnums, has_aux=has_aux)

    def of_row(*args: Any) -> Any:
        if keep_batch_dim:
            args = tuple(
                tree.map(lambda x: fnp.expand_dims(x, 0), arg) if i in batched else arg
                for i, arg in enumerate(args)
            )
        found, gradient = slope(*args)
        value, aux = found if has_aux else (found, None)
        return transform_fn(gradient), Aux(value, metrics_fn(gradient), aux)

    def gradients(*args: Any) -> Any:
        """Computes and accumulates the rows' gradients."""
        mapped = micro_vmap(
            of_row,
            [0 if i in batched else None for i in range(len(args))],
            microbatch_size=microbatch_size,
            accumulator=(accumulator, AccumulationType.CONCAT),
            num_real_microbatches=num_real_microbatches,
        )
        return mapped(*args)

    return gradients


# -- parts of a batch ------------------------------------------------------------------


def _each(given: Any) -> list[Any]:
    return [given] if isinstance(given, int | str) else list(given)


def _size(name: str, size: Any) -> int:
    return natural(name, "microbatch_size", size)


def _place(name: str, leaf: Any, axis: int, size: int) -> tuple[int, int]:
    """Returns the axis of rows, at least 0, and its number of microbatches."""
    aval = typeof(leaf)
    if not -aval.ndim <= axis < aval.ndim:
        raise ShapeError(f"{name}: {aval} has no axis {axis} of rows")
    place = axis % aval.ndim
    count, rest = divmod(aval.shape[place], size)
    if rest:
        raise ShapeError(
            f"{name}: the {aval.shape[place]} rows of {aval} (axis {axis}) cannot be "
            f"divided into microbatches of {size}"
        )
    return place, count


def _count(name: str, given: Sequence[Any], axes: Sequence[int], size: int) -> int:
    """Returns the number of microbatches; raises if arguments differ in it."""
    counts = {
        _place(name, leaf, axis, size)[1]: f"{typeof(leaf)} (axis {axis})"
        for arg, axis in zip(given, axes, strict=True)
        for leaf in tree.leaves(arg)
    }
    if len(counts) > 1:
        raise ShapeError(
            f"{name}: arguments differ in their rows: {', '.join(counts.values())}"
        )
    if not counts:
        raise ShapeError(f"{name}: the arguments with rows hold no array")
    return next(iter(counts))


def _taken(i: Any, axis: int, parts: Any) -> Any:
    """Returns microbatch i; the axis of microbatches precedes that of rows."""
    place = axis if axis >= 0 else typeof(parts).ndim + axis - 1
    return lax.dynamic_index_in_dim(parts, i, place, keepdims=False)


def _real(real: Any, count: int) -> Any:
    """Returns the number of microbatches to compute."""
    if real is None:
        return count
    if isinstance(real, int) and not 0 <= real <= count:
        raise ArgumentError(
            f"microbatch: num_real_microbatches must be 0 to {count}, got {real}"
        )
    return real if isinstance(real, int) else fnp.clip(real, 0, count)


# -- accumulators ----------------------------------------------------------------------


def _accumulator(rule: Any, count: int) -> Accumulator:
    """Returns the `Accumulator` of a rule for `count` microbatches."""
    if isinstance(rule, Accumulator):
        return rule
    if not isinstance(rule, AccumulationType):
        raise ArgumentError(
            "microbatch: accumulator must hold AccumulationType or Accumulator, got "
            f"{rule!r}"
        )
    return _MAKERS[rule](count)


def _narrowed(rule: Any, found: Any, result: Any) -> Any:
    """Returns accumulated values in the dtypes of the results."""
    if isinstance(rule, Accumulator):
        return found

    def leaf(x: Any, like: Any) -> Any:
        return fnp.astype(x, like.dtype) if dtypes.is_floating(like.dtype) else x

    return tree.map(leaf, found, result)


def _leafwise(
    zero: Callable[[Any], Any],
    update: Callable[[Any, Any, Any], Any],
    finalize: Callable[[Any], Any],
    aggregate: Callable[[Any], Any],
) -> Accumulator:
    """Returns the accumulator that applies these functions to each leaf."""
    return Accumulator(
        lambda likes: tree.map(zero, likes),
        lambda carry, values, i: tree.map(lambda c, v: update(c, v, i), carry, values),
        lambda carry: tree.map(finalize, carry),
        lambda values: tree.map(aggregate, values),
    )


def _zeros(like: ShapeDtypeStruct) -> Any:
    return fnp.zeros(like.shape, widened(like).dtype)


def _inexact_zeros(like: ShapeDtypeStruct) -> Any:
    return fnp.zeros(like.shape, dtypes.to_inexact(widened(like).dtype))


def _sum(count: int) -> Accumulator:
    return _leafwise(
        _zeros,
        lambda carry, value, i: fnp.add(carry, value),
        lambda carry: carry,
        lambda rows: fnp.sum(rows, 0, dtype=typeof(rows).dtype),
    )


def _mean(count: int) -> Accumulator:
    return _leafwise(
        _inexact_zeros,
        lambda carry, value, i: fnp.add(carry, value),
        lambda carry: fnp.divide(carry, count),
        lambda rows: fnp.mean(rows, 0),
    )


def _running_mean(count: int) -> Accumulator:
    def update(carry: Any, value: Any, i: Any) -> Any:
        number = fnp.astype(fnp.add(i, 1), dtypes.to_real(typeof(carry).dtype))
        return fnp.add(carry, fnp.divide(fnp.subtract(value, carry), number))

    return _leafwise(
        _inexact_zeros, update, lambda carry: carry, lambda rows: fnp.mean(rows, 0)
    )


def _concat(count: int) -> Accumulator:
    def zero(like: ShapeDtypeStruct) -> Any:
        if not like.shape:
            raise ShapeError(
                "microbatch: AccumulationType.CONCAT needs results with rows, got a "
                f"scalar {typeof(like)}"
            )
        return fnp.zeros((like.shape[0], count, *like.shape[1:]), like.dtype)

    return _leafwise(
        zero,
        lambda carry, value, i: lax.dynamic_update_index_in_dim(carry, value, i, 1),
        lambda carry: fnp.reshape(carry, (-1, *typeof(carry).shape[2:])),
        lambda rows: rows,
    )


_MAKERS = {
    AccumulationType.SUM: _sum,
    AccumulationType.MEAN: _mean,
    AccumulationType.RUNNING_MEAN: _running_mean,
    AccumulationType.CONCAT: _concat,
}

_public(globals(), __all__)
