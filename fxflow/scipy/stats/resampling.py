"""Resampling: the bootstrap, permutation tests, tests and power by simulation.

Each resample is one element of a batch that the statistic is vectorized over, and all
of them are one compiled program. A key takes the place of SciPy's generator.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.kernels.gallery.resamples import resampled, shuffled, words_of
from fxflow.lax.axes import canonical_axis, natural
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.normal import ndtr, ndtri
from fxflow.scipy.stats._samples import (
    one_of,
    operands,
    require_alternative,
    require_choice,
    together,
)
from fxflow.scipy.stats.results import (
    BootstrapResult,
    ConfidenceInterval,
    MonteCarloTestResult,
    PermutationTestResult,
    PowerResult,
    require_level,
)
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jit import jit
from fxflow.transforms.vmap import vmap

#: How many numbers the resamples that are worked on at a time have together: they fit
#: the cache.
_ROOM = 1 << 18
#: Samples of no more rows are moved whole, others by places.
_MOST_ROWS = 16

_docs = shared("""
    Args:
      data: a tuple of real array-likes[..., n]: the samples.
      statistic: a pure function of the samples, of rows of numbers, which returns a
        number; if it has an argument `axis`, it is called with arrays and `axis=-1`.
      key: a key of `fxflow.random`, in place of SciPy's generator.
      vectorized: whether the statistic has an argument `axis`; None looks.
      n_resamples: the number of resamples.
      batch: how many of them are worked on at a time; None is what 262,144 numbers
        make.
      alternative: "two-sided", "less" or "greater".
      axis: axis of the samples.

    Raises:
      ArgumentError: unknown option, or an argument is not what it should be.
      ShapeError: the shapes are incompatible.

    Source: `scipy.stats.{name}`.
""")


def _samples_of(name: str, data: Any, axis: int, paired: bool) -> list[Any]:
    """Returns samples along the last axis, whose other axes are broadcast."""
    if not isinstance(data, tuple | list) or not data:
        raise ArgumentError(f"{name}: data must be a tuple of samples, got {data!r}")
    found, _ = operands(name, *data)
    arrays = [a if a.aval.ndim else a[None] for a in found]
    rows = [
        fnp.moveaxis(a, canonical_axis(name, axis, a.aval.ndim), -1) for a in arrays
    ]
    if any(not a.aval.shape[-1] for a in rows):
        listed = ", ".join(str(a.aval) for a in rows)
        raise ShapeError(f"{name}: samples must have elements, got {listed}")
    return together(name, rows, paired)


def _require_count(name: str, n: Any, batch: Any) -> None:
    natural(name, "n_resamples", n)
    if batch is not None:
        natural(name, "batch", batch)


def _of_arrays(statistic: Any, vectorized: bool | None, rank: int) -> Any:
    """Returns a statistic of samples along the last axis."""
    if vectorized is None:
        try:
            vectorized = "axis" in inspect.signature(statistic).parameters
        except (TypeError, ValueError):
            vectorized = False
    if vectorized:
        return lambda *rows: fnp.asarray(statistic(*rows, axis=-1))
    found = lambda *rows: fnp.asarray(statistic(*rows))
    for _ in range(rank):
        found = vmap(found)
    return found


def _by_blocks(block: Any, keys: Any, size: int, batch: int | None) -> Any:
    """Returns what a function of keys returns, which gets some of them at a time.

    Args:
      block: a function of keys that returns an array with a first axis of their number.
      keys: for each resample one, or what takes its place.
      size: how many numbers a resample has.
      batch: how many resamples to work on at a time.
    """
    count = keys.shape[0]
    room = batch or max(1, _ROOM // max(size, 1))
    steps = -(-count // room)
    if steps == 1:
        return block(keys)
    # Blocks of one size: the last one has some resamples twice.
    room = -(-count // steps)
    places = np.minimum(np.arange(steps * room), count - 1)
    blocks = fnp.reshape(keys[places], (steps, room, *keys.shape[1:]))
    found = lax.map(block, blocks)
    return fnp.reshape(found, (steps * room, *found.shape[2:]))[:count]


def _many(one: Any, xs: Any, size: int, batch: int | None) -> Any:
    """Returns a function of each, some of them at a time."""
    return _by_blocks(vmap(one), xs, size, batch)


@functools.lru_cache(64)
def _compiled(function: Any, settings: Any) -> Any:
    return jit(functools.partial(function, **dict(settings)))


def _program(function: Any, operands: Any, **settings: Any) -> Any:
    """Runs a function compiled for its settings, the user's functions among them."""
    try:
        made = _compiled(function, tuple(settings.items()))
    except TypeError:  # a statistic without a hash
        made = jit(functools.partial(function, **settings))
    return made(*operands)


def _words(keys: Any, n: int) -> Any:
    """Returns the random bits that draw n places of n for each key."""
    return vmap(lambda k: random.bits(k, (words_of(n),), "uint64"))(keys)


def _moved(move: Any, keys: Any, rows: Sequence[Any]) -> list[Any]:
    """Returns samples drawn anew, for each key, whose places are drawn together.

    Args:
      move: `resampled` or `shuffled`.
      keys: b keys.
      rows: samples [..., n].

    Returns:
      For each sample an array [b, ..., n].
    """
    n = rows[0].shape[-1]
    words, counts = _words(keys, n), [math.prod(r.shape[:-1]) for r in rows]
    if not 0 < sum(counts) <= _MOST_ROWS:
        places = move(words, fnp.arange(n, dtype="int32")[None])[:, 0]
        return [fnp.moveaxis(r[..., places], -2, 0) for r in rows]
    flat = fnp.concatenate([fnp.reshape(r, (-1, n)) for r in rows])
    found = move(words, flat)
    ends = np.cumsum([0, *counts]).tolist()
    return [
        fnp.reshape(found[:, i:j], (found.shape[0], *r.shape))
        for r, (i, j) in zip(rows, itertools.pairwise(ends), strict=True)
    ]


def orders(keys: Any, n: int) -> Any:
    """Returns the first n integers in a random order for each key, int32[b, n]."""
    return shuffled(_words(keys, n), fnp.arange(n, dtype="int32")[None])[:, 0]


def _signs(keys: Any, n: int) -> Any:
    """Returns n random bits for each key, bool[b, n]."""
    words = vmap(lambda k: random.bits(k, (-(-n // 32),), "uint32"))(keys)
    bits = words[:, :, None] >> np.arange(32, dtype=np.uint32) & 1
    return fnp.reshape(bits, (bits.shape[0], -1))[:, :n] > 0


#: Statistics of one sample that are one or two of its ordered elements.
_MEDIANS = (fnp.median, np.median)


def _resampled_medians(row: Any, key: Any, n: int) -> Any:
    """Returns medians of n resamples, along the first axis.

    The k-th of m uniform numbers is a beta variable of k and m - k + 1, and the next
    one is the least of those that are left above it: they say which of the ordered
    elements are in the middle of a resample, without the others.
    """
    m = row.shape[-1]
    k = (m + 1) // 2
    first, second = random.split(key)
    dtype = row.dtype
    ends = [random.beta(first, float(k), float(m - k + 1), (n,), dtype)]
    if m % 2 == 0:
        log = -random.exponential(second, (n,), dtype)
        ends.append(ends[0] - (1 - ends[0]) * lax.expm1(log / (m - k)))
    ordered = fnp.sort(row, axis=-1)
    found = [
        fnp.take(ordered, fnp.clip((m * u).astype("int32"), 0, m - 1), axis=-1)
        for u in ends
    ]
    value = sum(found[1:], found[0]) / len(found)
    lost = fnp.any(row != row, axis=-1, keepdims=True)
    return fnp.moveaxis(fnp.where(lost, math.nan, value), -1, 0)


def _medians_left(row: Any) -> Any:
    """Returns the medians without each element, along the first axis."""
    m = row.shape[-1]
    ordered = fnp.sort(row, axis=-1)
    out = np.arange(m)
    # Behind the element that is left out the others move up.
    places = [j + (j >= out) for j in ((m - 2) // 2, (m - 1) // 2)]
    low, high = (ordered[..., np.minimum(p, m - 1)] for p in places)
    lost = fnp.any(row != row, axis=-1, keepdims=True)
    return fnp.moveaxis(fnp.where(lost, math.nan, (low + high) / 2), -1, 0)


def _resampled(
    rows: Any, key: Any, statistic: Any, vectorized: Any, n: int, batch: Any, pair: bool
) -> Any:
    """Returns the statistic of resamples, along the first axis."""
    if statistic in _MEDIANS and len(rows) == 1:
        return _resampled_medians(rows[0], key, n)
    of = _of_arrays(statistic, vectorized, rows[0].ndim - 1)

    def block(keys: Any) -> Any:
        if pair or len(rows) == 1:
            return vmap(of)(*_moved(resampled, keys, rows))
        each = vmap(lambda k: random.split(k, len(rows)))(keys)
        drawn = [_moved(resampled, each[:, i], [r])[0] for i, r in enumerate(rows)]
        return vmap(of)(*drawn)

    size = sum(math.prod(r.shape) for r in rows)
    return _by_blocks(block, random.split(key, n), size, batch)


def _left_out(rows: Any, which: int, of: Any, pair: bool, batch: Any) -> Any:
    """Returns the statistic without each element of a sample, along the first axis."""
    n = rows[which].shape[-1]

    def one(i: Any) -> Any:
        places = fnp.arange(n - 1)
        places = places + (places >= i)
        held = [
            r[..., places] if pair or at == which else r for at, r in enumerate(rows)
        ]
        return of(*held)

    size = sum(math.prod(r.shape) for r in rows)
    return _many(one, fnp.arange(n), size, batch)


@custom_jvp
def _ranked(x: Any, ordered: Any, place: Any) -> Any:
    """Returns the element of a rank, of numbers along the last axis and in order."""
    place = place.astype("int32")[..., None]
    return fnp.take_along_axis(ordered, place, axis=-1)[..., 0]


@_ranked.defjvp
def _ranked_rule(primals: Any, tangents: Any) -> Any:
    x = primals[0]
    value = _ranked(*primals)
    own = fnp.argmax(x == value[..., None], axis=-1, keepdims=True)
    change = fnp.take_along_axis(tangents[0], own, axis=-1)[..., 0]
    return value, fnp.where(value == value, change, math.nan)


def _bootstrap(
    rows: Any,
    key: Any,
    before: Any,
    statistic: Any,
    vectorized: Any,
    n: int,
    batch: Any,
    pair: bool,
    level: float,
    side: str,
    method: str,
) -> BootstrapResult:
    of = _of_arrays(statistic, vectorized, rows[0].ndim - 1)
    theta = of(*rows)
    parts = [] if before is None else [before]
    if n:
        new = _resampled(rows, key, statistic, vectorized, n, batch, pair)
        parts.append(fnp.moveaxis(new, 0, -1))
    spread = fnp.concatenate(parts, axis=-1)
    alpha = (1 - level) / (2 if side == "two-sided" else 1)
    ends: list[Any] = [fnp.full_like(theta, q) for q in (alpha, 1 - alpha)]
    if method == "BCa":
        share = fnp.mean((spread < theta[..., None]) * 1.0, axis=-1)
        share = (share + fnp.mean((spread <= theta[..., None]) * 1.0, axis=-1)) / 2
        z0 = ndtri(share.astype(theta.dtype))
        top: Any = 0
        under: Any = 0
        for which in range(1 if pair else len(rows)):
            m = rows[which].shape[-1]
            if statistic in _MEDIANS and len(rows) == 1 and m > 1:
                left = _medians_left(rows[0])
            else:
                left = _left_out(rows, which, of, pair, batch)
            u = (m - 1) * (fnp.mean(left, axis=0) - left)
            top = top + fnp.sum(u**3, axis=0) / m**3
            under = under + fnp.sum(u**2, axis=0) / m**2
        a = top / (6 * under**1.5)
        ends = [z0 + (z0 + ndtri(q)) / (1 - a * (z0 + ndtri(q))) for q in ends]
        ends = [ndtr(z) for z in ends]
    ordered = fnp.sort(lax.stop_gradient(spread), axis=-1)
    count = ordered.shape[-1]

    def at(q: Any) -> Any:
        place = fnp.where(q == q, q, 0) * (count - 1)
        low = fnp.clip(fnp.floor(place), 0, count - 1)
        first, second = (
            _ranked(spread, ordered, fnp.minimum(p, count - 1)) for p in (low, low + 1)
        )
        value = first + (place - low) * (second - first)
        return fnp.where(q == q, value, math.nan)

    low, high = (at(q) for q in ends)
    if method == "basic":
        low, high = 2 * theta - high, 2 * theta - low
    if side == "less":
        low = fnp.full_like(low, -math.inf)
    if side == "greater":
        high = fnp.full_like(high, math.inf)
    error = fnp.std(spread, ddof=1, axis=-1)
    return BootstrapResult(ConfidenceInterval(low, high), spread, error)


@_docs
def bootstrap(
    data: Sequence[ArrayLike],
    statistic: Callable[..., Any],
    *,
    key: Any,
    n_resamples: int = 9999,
    batch: int | None = None,
    vectorized: bool | None = None,
    paired: bool = False,
    axis: int = 0,
    confidence_level: float = 0.95,
    alternative: str = "two-sided",
    method: str = "BCa",
    bootstrap_result: BootstrapResult | None = None,
) -> BootstrapResult:
    """Returns a confidence interval of a statistic, by resampling the samples.

    Args:
      n_resamples: the number of resamples; 0 with a `bootstrap_result`.
      paired: whether elements of the samples belong together.
      confidence_level: a probability.
      alternative: "two-sided"; "less" and "greater" have one end, the other is
        infinite.
      method: "BCa", corrected for bias and skewness, "basic" or "percentile".
      bootstrap_result: of a former call, whose resamples are added to the new ones.

    Returns:
      A named tuple of `confidence_interval`, `bootstrap_distribution` and
      `standard_error`.

    For `fnp.median` itself (or `np.median`) of a single sample, a resample is not drawn
    element by element: which of the ordered elements are in its middle is drawn, with
    the same distribution, from beta variables.

    Example:
      >>> from fxflow import random
      >>> x = np.array([1.0, 2.0, 4.0, 5.0, 8.0])
      >>> found = bootstrap((x,), fnp.mean, key=random.key(0), n_resamples=999)
      >>> bool(found.confidence_interval.low < 4 < found.confidence_interval.high)
      True
    """
    name = "bootstrap"
    require_alternative(name, alternative)
    require_choice(name, "method", method, ("BCa", "basic", "percentile"))
    require_level(name, confidence_level)
    if bootstrap_result is None or n_resamples:
        _require_count(name, n_resamples, batch)
    rows = _samples_of(name, data, axis, paired)
    before = None
    if bootstrap_result is not None:
        before = bootstrap_result.bootstrap_distribution
    found: BootstrapResult = _program(
        _bootstrap,
        (rows, key, before),
        statistic=statistic,
        vectorized=vectorized,
        n=int(n_resamples),
        batch=batch,
        pair=paired,
        level=float(confidence_level),
        side=alternative,
        method=method,
    )
    return found


# -- permutations ----------------------------------------------------------------------


def _pvalue(null: Any, observed: Any, side: str, more: int) -> Any:
    """Returns the part of a null distribution that is at least as extreme."""
    eps = 100 * float(fnp.finfo(null.dtype).eps)
    near = abs(observed * eps)
    count = null.shape[0] + more
    less, greater = (
        ((fnp.sum(v, axis=0) + more) / count).astype(null.dtype)
        for v in (null <= observed + near, null >= observed - near)
    )
    value = one_of(side, less, greater)
    return fnp.where(observed == observed, value, math.nan)


def _all_orders(kind: str, sizes: list[int], most: int) -> Any:
    """Returns every rearrangement, as places, if there are at most `most`.

    For "independent" a row is the places of the pooled elements; for "samples", of one
    sample, signs; of several, for each element which sample it comes from; for
    "pairings", places in each sample.
    """
    k, n = len(sizes), sizes[0]
    if kind == "independent":
        logs = [math.lgamma(m + 1) for m in (sum(sizes), *sizes)]
        if 2 * logs[0] - sum(logs) > math.log(most) + 1:
            return None  # the number itself would have as many digits as elements
        total, count = sum(sizes), 1
        for size in sizes:
            count *= math.comb(total, size)
            total -= size
        if count > most:
            return None

        def parts(left: tuple[int, ...], rest: list[int]) -> Any:
            if len(rest) == 1:
                yield left
                return
            for chosen in itertools.combinations(left, rest[0]):
                held = set(chosen)
                others = tuple(i for i in left if i not in held)
                for more in parts(others, rest[1:]):
                    yield (*chosen, *more)

        return np.array(list(parts(tuple(range(sum(sizes))), sizes)))
    if kind == "samples":
        if k == 1:
            if n > 40 or 2**n > most:
                return None
            return np.array(list(itertools.product((1, -1), repeat=n)))
        if math.factorial(k) ** n > most:
            return None
        orders = list(itertools.permutations(range(k)))
        return np.array(list(itertools.product(orders, repeat=n)))
    if n > 20 or math.factorial(n) ** k > most:
        return None
    orders = list(itertools.permutations(range(n)))
    return np.array(list(itertools.product(orders, repeat=k)))


def _permutations(
    rows: Any,
    given: Any,
    statistic: Any,
    vectorized: Any,
    kind: str,
    batch: Any,
    exact: bool,
    side: str,
) -> PermutationTestResult:
    of = _of_arrays(statistic, vectorized, rows[0].ndim - 1)
    observed = of(*rows)
    sizes = [r.shape[-1] for r in rows]
    pooled = fnp.concatenate(rows, axis=-1) if kind == "independent" else None
    k, n = len(rows), sizes[0]

    def one(x: Any) -> Any:
        """Returns the statistic of a rearrangement that is given."""
        if kind == "independent":
            return of(*parted(pooled[..., x]))  # type: ignore[index]
        if kind == "pairings":
            return of(*(r[..., p] for r, p in zip(rows, x, strict=True)))
        if k == 1:
            return of(rows[0] * x.astype(rows[0].dtype))
        return of(*exchanged(x))

    def parted(whole: Any) -> list[Any]:
        ends = np.cumsum([0, *sizes]).tolist()
        return [whole[..., i:j] for i, j in itertools.pairwise(ends)]

    def exchanged(places: Any) -> list[Any]:
        """Returns samples whose i-th elements are of the samples `places[i]`."""
        stacked = fnp.stack(rows, axis=-1)
        wide = fnp.broadcast_to(places, stacked.shape)
        mixed = fnp.take_along_axis(stacked, wide, axis=-1)
        return [mixed[..., i] for i in range(k)]

    def block(keys: Any) -> Any:
        if kind == "independent":
            (whole,) = _moved(shuffled, keys, [pooled])
            return vmap(of)(*parted(whole))
        if kind == "pairings":
            each = vmap(lambda q: random.split(q, k))(keys)
            moved = [_moved(shuffled, each[:, i], [r])[0] for i, r in enumerate(rows)]
            return vmap(of)(*moved)
        if k > 2:
            each = vmap(lambda q: random.split(q, n))(keys)
            places = vmap(lambda q: orders(q, k))(each)
            return vmap(lambda p: of(*exchanged(p)))(places)
        turned = _signs(keys, n)
        if k == 1:
            return vmap(lambda t: of(fnp.where(t, -rows[0], rows[0])))(turned)
        swapped = lambda t: of(*(fnp.where(t, *p) for p in (rows, rows[::-1])))
        return vmap(swapped)(turned)

    size = sum(math.prod(r.shape) for r in rows)
    null = _many(one, given, size, batch) if exact else None
    if null is None:
        null = _by_blocks(block, given, size, batch)
    value = _pvalue(null, observed, side, 0 if exact else 1)
    return PermutationTestResult(observed, value, null)


@_docs
def permutation_test(
    data: Sequence[ArrayLike],
    statistic: Callable[..., Any],
    *,
    key: Any = None,
    permutation_type: str = "independent",
    vectorized: bool | None = None,
    n_resamples: int = 9999,
    batch: int | None = None,
    alternative: str = "two-sided",
    axis: int = 0,
) -> PermutationTestResult:
    """Tests a hypothesis by the statistic of rearranged samples.

    Args:
      key: a key of `fxflow.random`; None only where all rearrangements are made.
      permutation_type: "independent": elements change between the samples; "samples":
        elements at one place change between them, and those of a single sample their
        signs; "pairings": elements change within their sample.
      n_resamples: how many rearrangements are drawn. If there are no more than that,
        each is made once, and the p-value is exact.

    Returns:
      A named tuple of `statistic`, `pvalue` and `null_distribution`, along the first
      axis.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
      >>> apart = lambda x, y: fnp.mean(x) - fnp.mean(y)
      >>> permutation_test((x, y), apart).pvalue.round(4)
      Array(0.1, dtype=float32)
    """
    name = "permutation_test"
    require_alternative(name, alternative)
    kinds = ("independent", "samples", "pairings")
    require_choice(name, "permutation_type", permutation_type, kinds)
    _require_count(name, n_resamples, batch)
    rows = _samples_of(name, data, axis, permutation_type != "independent")
    if permutation_type == "independent" and len(rows) < 2:
        raise ArgumentError(f"{name}: takes two or more samples, got {len(rows)}")
    sizes = [r.aval.shape[-1] for r in rows]
    orders = _all_orders(permutation_type, sizes, int(n_resamples))
    if orders is None and key is None:
        raise ArgumentError(
            f"{name}: key must be given, because there are more than {n_resamples} "
            "rearrangements, and some are drawn"
        )
    given = None if orders is None else fnp.asarray(orders)
    if given is None:
        given = random.split(key, int(n_resamples))
    found: PermutationTestResult = _program(
        _permutations,
        (rows, given),
        statistic=statistic,
        vectorized=vectorized,
        kind=permutation_type,
        batch=batch,
        exact=orders is not None,
        side=alternative,
    )
    return found


# -- simulation ------------------------------------------------------------------------


def _functions(name: str, rvs: Any, count: int) -> tuple[Any, ...]:
    given = tuple(rvs) if isinstance(rvs, tuple | list) else (rvs,)
    if len(given) != count or not all(map(callable, given)):
        raise ArgumentError(
            f"{name}: rvs must be a function `rvs(key, shape)` for each of the {count} "
            f"samples, got {rvs!r}"
        )
    return given


def _simulated(
    rows: Any,
    key: Any,
    rvs: Any,
    statistic: Any,
    vectorized: Any,
    n: int,
    batch: Any,
    side: str,
) -> MonteCarloTestResult:
    rank = rows[0].ndim - 1
    observed = _of_arrays(statistic, vectorized, rank)(*rows)
    of = _of_arrays(statistic, vectorized, 0)

    def one(k: Any) -> Any:
        keys = random.split(k, len(rows))
        drawn = [f(q, r.shape[-1:]) for f, q, r in zip(rvs, keys, rows, strict=True)]
        return of(*(fnp.asarray(d).astype(rows[0].dtype) for d in drawn))

    size = sum(r.shape[-1] for r in rows)
    null = _many(one, random.split(key, n), size, batch)
    wide = fnp.reshape(null, (n, *[1] * observed.ndim))
    return MonteCarloTestResult(observed, _pvalue(wide, observed, side, 1), null)


@_docs
def monte_carlo_test(
    data: ArrayLike | Sequence[ArrayLike],
    rvs: Any,
    statistic: Callable[..., Any],
    *,
    key: Any,
    vectorized: bool | None = None,
    n_resamples: int = 9999,
    batch: int | None = None,
    alternative: str = "two-sided",
    axis: int = 0,
) -> MonteCarloTestResult:
    """Tests a hypothesis by the statistic of samples that are drawn under it.

    Args:
      data: a sample, real array-like[..., n], or a tuple of them.
      rvs: a function `rvs(key, shape)` that draws a sample, or one for each sample, as
        those of `fxflow.random` are.

    Returns:
      A named tuple of `statistic`, `pvalue` and `null_distribution`.

    Example:
      >>> from fxflow import random
      >>> x = np.array([0.3, -1.0, 0.5, 6.0])
      >>> found = monte_carlo_test(x, random.normal, fnp.max, key=random.key(0))
      >>> bool(found.pvalue < 0.01)
      True
    """
    name = "monte_carlo_test"
    require_alternative(name, alternative)
    _require_count(name, n_resamples, batch)
    given = data if isinstance(data, tuple | list) else (data,)
    rows = _samples_of(name, given, axis, False)
    found: MonteCarloTestResult = _program(
        _simulated,
        (rows, key),
        rvs=_functions(name, rvs, len(rows)),
        statistic=statistic,
        vectorized=vectorized,
        n=int(n_resamples),
        batch=batch,
        side=alternative,
    )
    return found


@_docs
def power(
    test: Callable[..., Any],
    rvs: Any,
    n_observations: Any,
    *,
    key: Any,
    significance: ArrayLike = 0.01,
    vectorized: bool | None = None,
    n_resamples: int = 10000,
    batch: int | None = None,
    kwargs: dict[str, Any] | None = None,
) -> PowerResult:
    """Returns how often a test rejects its hypothesis for samples that are drawn.

    Args:
      test: a pure function of samples, which returns a p-value or what has a `pvalue`.
      rvs: a function `rvs(key, shape)` that draws a sample, or one for each sample.
      n_observations: how many elements each sample has: an int, or one for each.
      significance: real array-like: p-values that are not greater reject.
      vectorized: not used: the test is always vectorized over rows.
      kwargs: extra keyword arguments of the test.

    Returns:
      A named tuple of `power`, of the shape of `significance`, and `pvalues`.

    Example:
      >>> from fxflow import random
      >>> from fxflow.scipy import stats
      >>> shifted = lambda key, shape: random.normal(key, shape) + 1
      >>> test = lambda x: stats.ttest_1samp(x, 0.0)
      >>> found = power(test, shifted, 20, key=random.key(0), n_resamples=500)
      >>> bool(found.power > 0.9)
      True
    """
    name = "power"
    _require_count(name, n_resamples, batch)
    several = isinstance(n_observations, tuple | list)
    sizes = tuple(n_observations) if several else (n_observations,)
    for size in sizes:
        if not isinstance(size, int | np.integer) or size < 1:
            raise ArgumentError(
                f"{name}: n_observations must be positive ints, got {n_observations!r}"
            )
    functions = _functions(name, rvs, len(sizes))
    if kwargs is not None and not isinstance(kwargs, dict):
        raise ArgumentError(f"{name}: kwargs must be a dict, got {kwargs!r}")
    options = dict(kwargs or {})

    def one(k: Any) -> Any:
        keys = random.split(k, len(sizes))
        drawn = [
            f(q, (int(m),)) for f, q, m in zip(functions, keys, sizes, strict=True)
        ]
        found = test(*drawn, **options)
        return fnp.asarray(getattr(found, "pvalue", found))

    @jit
    def all_of(key: Any) -> Any:
        keys = random.split(key, int(n_resamples))
        return _many(one, keys, sum(map(int, sizes)), batch)

    pvalues: Array = all_of(key)
    level = fnp.asarray(significance, pvalues.dtype)
    share = fnp.mean((pvalues <= level[..., None]) * 1.0, axis=-1)
    return PowerResult(share.astype(pvalues.dtype), pvalues)
