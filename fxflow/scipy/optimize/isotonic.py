"""Isotonic regression: the nearest numbers that ascend."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.kernels.gallery.pools import ascending_blocks
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jit import jit
from fxflow.transforms.jvp import jvp


class IsotonicResult(NamedTuple):
    """What `isotonic_regression` returns.

    Attributes:
      x: float[n]: the solution.
      weights: float[n]: the total weights of blocks of equal numbers, then zeros.
      blocks: int32[n + 1]: where blocks begin, and n after the last one.
      number: int: the number of blocks: `blocks[: number + 1]` are SciPy's.
    """

    x: Array
    weights: Array
    blocks: Array
    number: Array


#: Rounds that pool violators before a stack does; a few suffice for most data.
_ROUNDS = 48
#: So many numbers are worth compiling a kernel.
_LEAST = 512


class _Pools(NamedTuple):
    """A stack of blocks: their means, weights and beginnings; the next element."""

    means: Any
    weights: Any
    starts: Any
    top: Any
    following: Any


def isotonic_regression(
    y: ArrayLike, *, weights: ArrayLike | None = None, increasing: bool = True
) -> IsotonicResult:
    """Returns the ascending numbers that are nearest to given ones.

    They minimize the weighted sum of squares, by pooling adjacent violators. They have
    derivatives with respect to `y` and `weights`: each is the mean of its block.

    Args:
      y: float[n].
      weights: float[n], positive; None means ones.
      increasing: whether the result ascends; else it descends.

    Returns:
      An `IsotonicResult`.

    Raises:
      ArgumentError: a weight is known and not positive.
      DtypeError: numbers are complex.
      ShapeError: `y` is not a vector, or there are not as many weights.

    Example:
      >>> isotonic_regression(fnp.array([1.0, 3.0, 2.0, 4.0])).x
      Array([1. , 2.5, 2.5, 4. ], dtype=float32)

    Source: `scipy.optimize.isotonic_regression`; F. Busing 2022.
    """
    name = "isotonic_regression"
    if weights is None:
        (values,) = promote_inexact(name, fnp.asarray(y))
        heavy = fnp.ones_like(values)
    else:
        values, heavy = promote_inexact(name, fnp.asarray(y), fnp.asarray(weights))
    if dtypes.is_complex(values.dtype):
        raise DtypeError(f"{name}: y must be real, got {values.aval}")
    if values.ndim != 1 or heavy.shape != values.shape:
        raise ShapeError(
            f"{name}: y and weights must be vectors of one length, got {values.aval} "
            f"and {heavy.aval}"
        )
    if (
        weights is not None
        and not isinstance(heavy, Tracer)
        and np.any(np.asarray(heavy) <= 0)
    ):
        raise ArgumentError(f"{name}: weights must be positive, got {heavy}")
    n = values.size
    dtype = fnp.promote_types(values.dtype, "float32")
    values, heavy = convert(values, dtype), convert(heavy, dtype)
    if not n:
        return IsotonicResult(values, heavy, fnp.zeros(1, np.int32), fnp.int32(0))
    found: IsotonicResult = _regressed(values, heavy, increasing)
    return found


@functools.partial(jit, static_argnames="increasing")
def _regressed(values: Array, heavy: Array, increasing: bool) -> IsotonicResult:
    n = values.size
    if not increasing:
        values, heavy = values[::-1], heavy[::-1]
    fixed = [lax.stop_gradient(v) for v in (values, heavy)]
    if n < _LEAST:
        starts, label, count, x, weight = _blocks(*fixed)
    else:
        found = ascending_blocks(*fixed, reference=_blocks)
        starts, label, count, x, weight = found
    x, weight = _attached(label, (x, weight), values, heavy)
    starts = fnp.append(starts, np.int32(n))
    if not increasing:
        x = x[::-1]
        place = fnp.arange(n + 1)
        turn = count - place
        starts = fnp.where(turn >= 0, n - starts[fnp.maximum(turn, 0)], n)
        turn = turn - 1
        weight = fnp.where(turn[:n] >= 0, weight[fnp.maximum(turn[:n], 0)], 0)
    return IsotonicResult(x, weight, starts.astype(np.int32), count)


@custom_jvp
def _attached(label: Array, found: Any, values: Array, heavy: Array) -> Any:
    """Returns means and weights that are found, with the derivatives of `_means`."""
    return found


@_attached.defjvp
def _(primals: Any, tangents: Any) -> Any:
    label, _, *given = primals
    move = lambda *given: _means(label, *given)
    return _attached(*primals), jvp(move, tuple(given), tuple(tangents[2:]))[1]


def _means(label: Array, values: Array, heavy: Array) -> tuple[Array, Array]:
    """Returns the mean of the block of each number, and the weights of blocks."""
    total, weight = (
        fnp.zeros(values.size, values.dtype).at[label].add(v, indices_are_sorted=True)
        for v in (values * heavy, heavy)
    )
    return (total / fnp.where(weight > 0, weight, 1))[label], weight


def _blocks(values: Array, weights: Array) -> tuple[Array, ...]:
    """Returns where blocks begin, the block of each number, how many there are.

    Then their means and weights.
    """
    pools, n = _pooled(values, weights), values.size
    begins = (
        fnp.zeros(n, np.int32)
        .at[pools.starts]
        .add((np.arange(n) <= pools.top).astype(np.int32), mode="drop")
    )
    label = fnp.cumsum(begins, dtype=np.int32) - 1
    count = (pools.top + 1).astype(np.int32)
    return pools.starts.astype(np.int32), label, count, *_means(label, values, weights)


def _pooled(values: Array, weights: Array) -> _Pools:
    """Returns the stack of blocks; beyond them beginnings are n.

    Rounds pool all runs of violators at once; a stack pools one pair after the other
    what they leave.
    """
    n = values.size
    place = fnp.arange(n, dtype=np.int32)
    products = values * weights

    def blocks(begins: Array) -> tuple[Array, Array, Array, Array]:
        """The block of each element, the means, the weights, which blocks violate."""
        label = fnp.cumsum(begins, dtype=np.int32) - 1
        zero = fnp.zeros_like(values)
        weight = zero.at[label].add(weights, indices_are_sorted=True)
        total = zero.at[label].add(products, indices_are_sorted=True)
        mean = total / fnp.where(weight > 0, weight, 1)
        bad = (mean[1:] <= mean[:-1]) & (weight[1:] > 0)
        return label, mean, weight, fnp.concatenate([fnp.zeros(1, bool), bad])

    def pool(c: Any) -> Any:
        begins, steps, _ = c
        label, _, _, bad = blocks(begins)
        return begins & ~bad[label], steps + 1, fnp.any(bad)

    every = (fnp.ones(n, bool), np.int32(0), np.bool_(True))
    begins, _, left = lax.while_loop(lambda c: c[2] & (c[1] < _ROUNDS), pool, every)
    label, means, heavy, _ = blocks(begins)
    starts = fnp.full(n, n, np.int32).at[label].min(place)
    count = label[-1] + 1

    def more(s: _Pools) -> Any:
        violated = (s.top > 0) & (s.means[s.top] <= s.means[fnp.maximum(s.top - 1, 0)])
        return violated | (s.following < count)

    def step(s: _Pools) -> _Pools:
        top, below = s.top, fnp.maximum(s.top - 1, 0)
        merge = (top > 0) & (s.means[top] <= s.means[below])
        both = s.weights[below] + s.weights[top]
        mean = (
            s.means[below] * s.weights[below] + s.means[top] * s.weights[top]
        ) / both
        at = fnp.where(merge, below, top + 1)
        # Blocks that are not on the stack lie behind it.
        new = fnp.minimum(s.following, n - 1)
        return _Pools(
            s.means.at[at].set(fnp.where(merge, mean, s.means[new])),
            s.weights.at[at].set(fnp.where(merge, both, s.weights[new])),
            s.starts.at[at].set(fnp.where(merge, s.starts[at], s.starts[new])),
            at.astype(np.int32),
            (s.following + ~merge).astype(np.int32),
        )

    # Without violators all blocks are on the stack.
    top = fnp.where(left, 0, count - 1).astype(np.int32)
    start = _Pools(means, heavy, starts, top, top + 1)
    out: _Pools = lax.while_loop(more, step, start)
    return out._replace(starts=fnp.where(place <= out.top, out.starts, n))
