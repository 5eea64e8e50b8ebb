"""Counts of events: Poisson, binomial, multinomial. Drawn by rejection, in loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, Shape, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.errors import ShapeError
from fxflow.lax import sampling
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.random._arguments import (
    float_dtype,
    int_dtype,
    key_data_of,
    parameter,
    result_shape,
)
from fxflow.random._layout import sampler


def _any(flags: Any) -> Any:
    return lax.reduce_or(flags, tuple(range(typeof(flags).ndim)))


def _repeated(
    key_data: Any,
    shape: Shape,
    dtype: Any,
    roles: tuple[int, ...],
    step: Callable[..., tuple[Any, ...]],
    going: Callable[..., Any],
    start: tuple[Any, ...],
) -> tuple[Any, ...]:
    """Makes steps with new uniform numbers until nothing is going.

    XLA copies the arithmetic of what a loop draws into each of its results that depend
    on it, and the generator is long: hundreds of operations, up to eight times. So
    nothing drawn is used in the turn that draws it. A turn makes its step with the
    numbers of the turn before, draws numbers with the keys of the turn before, and
    splits the key: then each of these is a result of the loop, made once. The first two
    turns have no numbers yet and change nothing. (A loop over the rounds of the
    generator was no faster to compile, and slower to run.)

    Args:
      key_data: of one key.
      shape: shape of the numbers.
      dtype: dtype of the numbers.
      roles: positions in a split of the key: of that which goes on, and of those of the
        numbers.
      step: takes an array of numbers in [0, 1) for each role but the first, and the
        state; returns the next state.
      going: takes the state, says of each element whether it goes on.
      start: the first state, a tuple of arrays.
    """
    rest, *used = roles
    count = len(roles)

    def again(state: Any) -> Any:
        turn, keys, numbers, kept = state
        ready = lax.gt(turn, 1)
        stepped = step(*numbers, *kept)
        kept = [lax.select(ready, a, b) for a, b in zip(stepped, kept, strict=True)]
        of = [lax.index_in_dim(keys, i, 0, keepdims=False) for i in range(count)]
        numbers = tuple([sampling.uniform(of[i], shape, dtype) for i in used])
        return lax.add(turn, 1), _keys(of[rest], count), numbers, tuple(kept)

    inner = typeof(key_data).shape
    keys = lax.broadcast_in_dim(key_data, (count, *inner), (1,) if inner else ())
    nothing = (lax.full(shape, 0.5, dtype),) * len(used)
    state = (lax.full((), 0, dtypes.int32), keys, nothing, start)
    last = lax.while_loop(lambda state: _any(going(*state[3])), again, state)
    return tuple(last[3])


def _keys(key_data: Any, count: int) -> Any:
    """Returns the data u32[count, 2] of new keys."""
    return sampling.new_keys(key_data, (count,))


def _summed(
    key_data: Any,
    shape: Shape,
    dtype: Any,
    going: Callable[[Any], Any],
    step: Callable[[Any], Any],
    key_first: bool,
) -> Any:
    """Adds random steps until no sum is `going`; returns the number of steps of each.

    Args:
      key_data: of one key.
      shape: shape of the result.
      dtype: dtype of the sums.
      going: says of each sum whether it goes on.
      step: makes a step of a uniform number.
      key_first: which half of a split goes on as the key.
    """

    def further(u: Any, count: Any, total: Any) -> tuple[Any, ...]:
        more = lax.convert_element_type(going(total), dtypes.int32)
        return lax.add(count, more), lax.add(total, step(u))

    def unfinished(count: Any, total: Any) -> Any:
        return going(total)

    start = (lax.full(shape, 0, dtypes.int32), lax.full(shape, 0, dtype))
    roles = (0, 1) if key_first else (1, 0)
    return _repeated(key_data, shape, dtype, roles, further, unfinished, start)[0]


def _rejected(
    key_data: Any,
    shape: Shape,
    dtype: Any,
    propose: Callable[[Any, Any], tuple[Any, Any]],
) -> Any:
    """Proposes until every element is accepted; returns what was accepted last.

    Args:
      key_data: of one key.
      shape: shape of the result.
      dtype: dtype of the uniform numbers and of the result.
      propose: takes uniform numbers in [-½, ½) and [0, 1), returns proposals and
        whether they are accepted.
    """

    def further(u: Any, v: Any, kept: Any, done: Any) -> tuple[Any, ...]:
        proposal, accept = propose(lax.sub(u, 0.5), v)
        return lax.select(accept, proposal, kept), lax.bitwise_or(done, accept)

    def unfinished(kept: Any, done: Any) -> Any:
        return lax.bitwise_not(done)

    start = (lax.full(shape, -1, dtype), lax.full(shape, False))
    return _repeated(key_data, shape, dtype, (0, 1, 2), further, unfinished, start)[0]


# -- Poisson ---------------------------------------------------------------------------


@sampler("shape", "dtype")
def poisson(
    key: Any,
    lam: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws Poisson counts: :math:`e^{-\lambda} \lambda^k / k!` for k ≥ 0.

    Args:
      lam: λ ≥ 0, any shape.
      shape: shape of the result, to which `lam` is broadcast; None means its shape.
      dtype: an integer dtype; None means the default.

    Returns:
      An array of that shape and dtype; -1 where λ is nan.

    Raises:
      DtypeError: `dtype` is not an integer dtype.
      ShapeError: `lam` does not broadcast to `shape`.

    Example:
      >>> random.poisson(random.key(0), 4.0, (3,)).dtype
      dtype('int32')

    Source: for λ < 10 Knuth's product of uniforms; else Hörmann 1993, "The transformed
    rejection method for generating Poisson random variables", algorithm PTRS.
    """
    chosen = int_dtype("poisson", dtype)
    rate = parameter("poisson", lam, dtypes.float32)
    full = result_shape("poisson", shape, rate)
    rate = arith.repeated(rate, full)
    key_data = key_data_of("poisson", key)
    # Hörmann's method is for rates of 10 and more; below, Knuth's takes few steps. Each
    # runs on all elements, those of the other method with a rate that ends soon.
    few = lax.bitwise_or(lax.ne(rate, rate), lax.lt(rate, 10.0))
    small = _few_events(key_data, lax.select(few, rate, lax.full_like(rate, 0)), full)
    # What is beyond the integers anyhow must not be infinite.
    rate = lax.select(lax.gt(rate, 1e30), lax.full_like(rate, 1e30), rate)
    large = _many_events(
        key_data, lax.select(few, lax.full_like(rate, 1e5), rate), full
    )
    large = lax.convert_element_type(large, chosen)
    small = lax.convert_element_type(small, chosen)
    count = lax.select(few, small, large)
    return lax.select(lax.eq(rate, 0.0), lax.full_like(count, 0), count)


def _few_events(key_data: Any, rate: Any, shape: Shape) -> Any:
    """Knuth: how many uniforms can be multiplied before the product is below e^-λ."""
    least = lax.neg(rate)
    dtype = typeof(rate).dtype

    def going(total: Any) -> Any:
        return lax.gt(total, least)

    steps = _summed(key_data, shape, dtype, going, lax.log, True)
    return lax.sub(steps, 1)


def _many_events(key_data: Any, rate: Any, shape: Shape) -> Any:
    """Hörmann's PTRS, his constants."""
    log_rate = lax.log(rate)
    b = lax.add(lax.mul(lax.sqrt(rate), 2.53), 0.931)
    a = lax.add(lax.mul(b, 0.02483), -0.059)
    inverse_alpha = lax.add(lax.div(1.1328, lax.sub(b, 3.4)), 1.1239)
    bound = lax.sub(0.9277, lax.div(3.6224, lax.sub(b, 2.0)))

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        us = lax.sub(0.5, lax.abs(u))
        slope = lax.add(lax.div(lax.mul(a, 2.0), us), b)
        k = lax.floor(lax.add(lax.add(lax.mul(slope, u), rate), 0.43))
        scale = lax.add(lax.div(a, lax.mul(us, us)), b)
        s = lax.log(lax.div(lax.mul(v, inverse_alpha), scale))
        log_k = lax.lgamma(lax.add(k, 1.0))
        t = lax.sub(lax.add(lax.neg(rate), lax.mul(k, log_rate)), log_k)
        squeezed = lax.bitwise_and(lax.ge(us, 0.07), lax.le(v, bound))
        tail = lax.bitwise_and(lax.lt(us, 0.013), lax.gt(v, us))
        never = lax.bitwise_or(lax.lt(k, 0.0), tail)
        exact = lax.bitwise_and(lax.bitwise_not(never), lax.le(s, t))
        return k, lax.bitwise_or(squeezed, exact)

    return _rejected(key_data, shape, typeof(rate).dtype, propose)


# -- binomial --------------------------------------------------------------------------


@sampler("shape", "dtype")
def binomial(
    key: Any,
    n: Any,
    p: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws binomial counts: :math:`\binom{n}{k} p^k (1-p)^{n-k}` for 0 ≤ k ≤ n.

    Args:
      n: number of trials ≥ 0, any shape.
      p: probability of success in [0, 1], any shape.
      shape: shape of the result, to which both are broadcast; None means their common
        shape.

    Returns:
      An array of that shape and dtype, of integers; nan where a parameter is
      outside its range or nan.

    Raises:
      ShapeError: a parameter does not broadcast to `shape`.

    Example:
      >>> random.binomial(random.key(0), 10, 0.3, (3,)).shape
      (3,)

    Source: where n min(p, 1 - p) ≤ 10 sums of geometric numbers (Devroye 1986); else
    Hörmann 1993, "The generation of binomial random variates", algorithm BTRS.
    """
    chosen = float_dtype("binomial", dtype)
    trials, chance = (parameter("binomial", x, chosen) for x in (n, p))
    full = result_shape("binomial", shape, trials, chance)
    key_data = key_data_of("binomial", key)
    return _binomial(
        key_data, arith.repeated(trials, full), arith.repeated(chance, full), full
    )


def _is_nan(x: Any) -> Any:
    return lax.ne(x, x)


def _binomial(key_data: Any, n: Any, p: Any, shape: Shape) -> Array:
    either = lax.bitwise_or
    # BTRS wants p ≤ 1/2: beyond that the failures are counted.
    swapped = lax.bitwise_not(lax.lt(p, 0.5))
    q = lax.select(swapped, lax.sub(1.0, p), p)
    bad_n = either(_is_nan(n), lax.lt(n, 0.0))
    infinite = lax.eq(lax.abs(n), math.inf)
    bad_q = either(_is_nan(q), lax.lt(q, 0.0))
    safe = lax.select(bad_q, lax.full_like(q, 0.01), q)
    few = either(bad_n, lax.le(lax.mul(n, safe), 10.0))
    whole = lax.floor(n)
    small = _few_successes(
        key_data, lax.select(few, whole, lax.full_like(n, 0)), safe, shape
    )
    large = _many_successes(
        key_data,
        lax.select(few, lax.full_like(n, 1e4), whole),
        lax.select(few, lax.full_like(n, 0.5), safe),
        shape,
    )
    bad = either(bad_q, bad_n)
    count = lax.select(few, small, large)
    count = lax.select(bad, lax.full_like(count, math.nan), count)
    endless = lax.bitwise_and(infinite, lax.bitwise_not(bad))
    count = lax.select(endless, lax.full_like(count, math.inf), count)
    keep = either(either(lax.bitwise_not(swapped), bad_n), either(_is_nan(q), infinite))
    return lax.select(keep, count, lax.sub(whole, count))


def _few_successes(key_data: Any, n: Any, p: Any, shape: Shape) -> Any:
    """How many waiting times for a success fit into n trials."""
    scale = lax.log1p(lax.neg(p))

    def step(u: Any) -> Any:
        return lax.ceil(lax.div(lax.log(u), scale))

    def going(total: Any) -> Any:
        return lax.le(total, n)

    dtype = typeof(n).dtype
    steps = _summed(key_data, shape, dtype, going, step, False)
    return lax.convert_element_type(lax.sub(steps, 1), dtype)


def _many_successes(key_data: Any, n: Any, p: Any, shape: Shape) -> Any:
    """Hörmann's BTRS, his constants."""
    deviation = lax.sqrt(lax.mul(lax.mul(n, p), lax.sub(1.0, p)))
    b = lax.add(lax.mul(deviation, 2.53), 1.15)
    a = lax.add(lax.add(lax.mul(b, 0.0248), -0.0873), lax.mul(p, 0.01))
    centre = lax.add(lax.mul(n, p), 0.5)
    bound = lax.sub(0.92, lax.div(4.2, b))
    odds = lax.div(p, lax.sub(1.0, p))
    alpha = lax.mul(lax.add(lax.div(5.1, b), 2.83), deviation)
    mode = lax.floor(lax.mul(lax.add(n, 1.0), p))

    def left(k: Any) -> Any:  # n - k + 1
        return lax.add(lax.sub(n, k), 1.0)

    def propose(u: Any, v: Any) -> tuple[Any, Any]:
        us = lax.sub(0.5, lax.abs(u))
        squeezed = lax.bitwise_and(lax.ge(us, 0.07), lax.le(v, bound))
        slope = lax.add(lax.div(lax.mul(a, 2.0), us), b)
        k = lax.floor(lax.add(lax.mul(slope, u), centre))
        outside = lax.bitwise_or(lax.lt(k, 0.0), lax.gt(k, n))
        scale = lax.add(lax.div(a, lax.mul(us, us)), b)
        s = lax.log(lax.div(lax.mul(v, alpha), scale))
        above = lax.div(lax.add(mode, 1.0), lax.mul(odds, left(mode)))
        t = lax.mul(lax.add(mode, 0.5), lax.log(above))
        ratio = lax.div(left(mode), left(k))
        t = lax.add(t, lax.mul(lax.add(n, 1.0), lax.log(ratio)))
        below = lax.div(lax.mul(odds, left(k)), lax.add(k, 1.0))
        t = lax.add(t, lax.mul(lax.add(k, 0.5), lax.log(below)))
        t = lax.add(t, _stirling_tail(mode))
        t = lax.add(t, _stirling_tail(lax.sub(n, mode)))
        t = lax.sub(t, _stirling_tail(k))
        t = lax.sub(t, _stirling_tail(lax.sub(n, k)))
        exact = lax.bitwise_and(lax.bitwise_not(outside), lax.le(s, t))
        return k, lax.bitwise_or(squeezed, exact)

    return _rejected(key_data, shape, typeof(n).dtype, propose)


def _tail(k: int) -> float:
    """Returns log k! - ((k + ½) log(k + 1) - (k + 1) + ½ log 2π), Stirling's error."""
    x = k + 1
    return math.lgamma(x) - (k + 0.5) * math.log(x) + x - 0.5 * math.log(2 * math.pi)


_TAILS = [_tail(k) for k in range(10)]


def _stirling_tail(k: Any) -> Any:
    """Returns the tail of Stirling's formula: exact to 9, beyond that as at 9.

    It enters four times, twice with each sign, so that constant tails cancel.
    """
    near = lax.clamp(0.0, k, 9.0)
    x = lax.add(near, 1.0)
    square = lax.mul(x, x)
    series = lax.div(lax.sub(1 / 360, lax.div(1 / 1260, square)), square)
    series = lax.div(lax.sub(1 / 12, series), x)
    index = lax.convert_element_type(lax.floor(near), dtypes.int32)
    exact = lax.full_like(k, _TAILS[0])
    for i in range(1, 10):
        tail = lax.full_like(k, _TAILS[i])
        exact = lax.select(lax.eq(index, i), tail, exact)
    return lax.select(lax.le(k, 9.0), exact, series)


# -- multinomial -----------------------------------------------------------------------


@sampler("shape", "dtype", "unroll")
def multinomial(
    key: Any,
    n: Any,
    p: Any,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
    out_sharding: Any = None,
) -> Array:
    r"""Draws multinomial counts: n trials among the categories of the last axis.

    Args:
      n: number of trials ≥ 0, any shape.
      p: probabilities, of shape `(..., k)`; they need not sum to 1.
      shape: shape of the result, `(..., k)`; None means that of `p`.
      unroll: how many categories one step of the loop handles.

    Returns:
      An array of that shape and dtype; the last axis sums to `n`.

    Raises:
      ShapeError: `n` or `p` does not broadcast to `shape`.

    Example:
      >>> int(random.multinomial(random.key(0), 10, np.ones(4) / 4).sum())
      10

    Source: one binomial number after the other, of the trials that are left.
    """
    chosen = float_dtype("multinomial", dtype)
    trials, chances = (parameter("multinomial", x, chosen) for x in (n, p))
    if not typeof(chances).ndim:
        raise ShapeError("multinomial: p must have an axis of categories, got 0-d")
    own = typeof(chances).shape
    if shape is None:
        front = lax.broadcast_shapes(typeof(trials).shape, own[:-1])
        full = (*front, own[-1])
    else:
        full = shape_or_length("multinomial", shape)
    full = result_shape("multinomial", full, chances)
    result_shape("multinomial", full[:-1], trials)
    axis = len(full) - 1
    order = (axis, *range(axis))
    ahead = lax.transpose(arith.repeated(chances, full), order)
    rest = lax.cumsum(ahead, 0, reverse=True)
    # Where no probability is left, 0 of 0 counts as 0.
    rest = lax.select(lax.eq(rest, 0.0), lax.full_like(rest, 1), rest)
    ratios = lax.clamp(0.0, lax.div(ahead, rest), 1.0)
    key_data = key_data_of("multinomial", key)
    each = sampling.new_keys(key_data, (full[-1],))

    def step(remaining: Any, category: Any) -> tuple[Any, Any]:
        ratio, own_key = category
        count = _binomial(own_key, remaining, ratio, full[:-1])
        return lax.sub(remaining, count), count

    start = arith.repeated(trials, full[:-1])
    _, counts = lax.scan(step, start, (ratios, each), unroll=unroll)
    return lax.transpose(counts, (*range(1, len(full)), 0))
