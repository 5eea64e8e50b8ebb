"""Samples drawn anew from samples: with replacement, and in another order.

Each program draws some of them, from words of 64 random bits that are made before. A
half of a word, read as a fraction, is multiplied by the number of elements: what is
before the point is a place, and what is behind it, again a fraction, draws the next
one. XLA, whose gathers and scatters look up each place on its own, takes several times
as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.kernels.body import loop
from fxflow.kernels.calling import BlockSpec, call
from fxflow.transforms.custom_jvp import custom_jvp

#: How many samples a program draws.
_ROWS = 16
#: The most values that the places drawn by one half of a word have together: none of
#: these is more than 2⁻¹² of itself likelier than another. If there are more elements
#: than this, a half draws one, and none is more than n / 2³² of itself likelier.
_VALUES = 1 << 20
_HALF = np.uint64(32)


def places_of_half(n: int) -> int:
    """Returns how many places of n a half of a word draws: 1 to 4."""
    return max(1, next(k for k in (4, 3, 2, 1, 0) if n**k <= _VALUES))


def words_of(n: int) -> int:
    """Returns how many words draw n places of n."""
    return -(-n // (2 * places_of_half(n)))


@custom_jvp
def resampled(words: Any, x: Any) -> Array:
    """Returns samples drawn with replacement.

    Args:
      words: uint64[b, words_of(n)]: random bits for each of them.
      x: array[m, n], with n < 2³²: m samples, whose places are drawn together.

    Returns:
      Array[b, m, n] of the dtype of `x`.
    """
    return _run("resampled", words, x, _draw, _resampled_by_gather)


@custom_jvp
def shuffled(words: Any, x: Any) -> Array:
    """Returns samples in random orders, by Durstenfeld's algorithm from inside out.

    Args:
      words: uint64[b, words_of(n)]: random bits for each order.
      x: array[m, n], with n < 2³²: m samples, in one order.

    Returns:
      Array[b, m, n] of the dtype of `x`.
    """
    return _run("shuffled", words, x, _swap, _shuffled_by_rounds)


def _with_derivative(function: Any) -> None:
    def rule(primals: Any, tangents: Any) -> Any:
        words, x = primals
        n = typeof(x).shape[-1]
        places = function(words, fnp.arange(n, dtype=dtypes.int32)[None])[:, 0]
        moved = fnp.moveaxis(tangents[1][..., places], 1, 0)
        return function(words, x), moved

    function.defjvp(rule)


_with_derivative(resampled)
_with_derivative(shuffled)


def _draw(x: Any, out: Any, r: Any, i: Any, place: Any) -> None:
    for row in range(x.shape[0]):
        out[r, row, i] = x[row, place]


def _swap(x: Any, out: Any, r: Any, i: Any, place: Any) -> None:
    for row in range(x.shape[0]):
        out[r, row, i] = out[r, row, place]
        out[r, row, place] = x[row, i]


def _run(name: str, words: Any, x: Any, move: Any, reference: Any) -> Array:
    (b, h), (m, n) = typeof(words).shape, typeof(x).shape
    each = places_of_half(n)
    rows = min(_ROWS, max(b, 1))
    grows = move is _swap

    def body(words: Any, x: Any, out: Any) -> None:
        def part(r: Any, q: Any, count: int) -> None:
            """Moves elements by the places of one word, of which `count` are used."""
            word, at = words[r, q], q * np.uint32(2 * each)
            for i in range(count):
                if i % each == 0:
                    fraction = word if i == 0 else word >> _HALF
                    fraction = fraction.astype(dtypes.uint32)
                new = at + np.uint32(i)
                size = new + np.uint32(1) if grows else fnp.full((), n, dtypes.uint32)
                product = fraction.astype(dtypes.uint64) * size.astype(dtypes.uint64)
                fraction = product.astype(dtypes.uint32)
                place = (product >> _HALF).astype(dtypes.uint32)
                move(x, out, r, new, place)

        @loop(0, rows)
        def _(r: Any) -> None:
            whole, rest = divmod(n, 2 * each)
            row = r.astype(dtypes.uint32)

            @loop(0, whole)
            def _(q: Any) -> None:
                part(row, q.astype(dtypes.uint32), 2 * each)

            if rest:
                part(row, fnp.full((), whole, dtypes.uint32), rest)

    run = call(
        body,
        Aval((b, m, n), typeof(x).dtype),
        grid=-(-b // rows),
        in_specs=[
            BlockSpec((rows, h), lambda i: (i, 0)),
            BlockSpec((m, n), lambda i: (0, 0)),
        ],
        out_specs=BlockSpec((rows, m, n), lambda i: (i, 0, 0)),
        reference=reference,
        name=name,
        platforms=("cpu",),
    )
    found: Array = run(words, x)
    return found


def _halves(words: Any) -> Any:
    """Returns both halves of each word, uint32[b, 2 h]."""
    both = fnp.stack([words, words >> _HALF], axis=-1).astype(dtypes.uint32)
    return fnp.reshape(both, (both.shape[0], -1))


def _upper(a: Any, n: Any) -> Any:
    """Returns the upper halves of products of 32 bits."""
    product = a.astype(dtypes.uint64) * n.astype(dtypes.uint64)
    return (product >> _HALF).astype(dtypes.int32)


def _resampled_by_gather(words: Any, x: Any) -> Array:
    n = typeof(x).shape[-1]
    each = places_of_half(n)
    # What is behind the point after each of the products.
    powers = np.array([n**k % 2**32 for k in range(each)], np.uint32)
    fractions = _halves(words)[:, :, None] * powers
    places = _upper(fractions, np.uint32(n))
    places = fnp.reshape(places, (places.shape[0], -1))[:, :n]
    return fnp.moveaxis(x[:, places], 1, 0)


def _shuffled_by_rounds(words: Any, x: Any) -> Array:
    n, b = typeof(x).shape[1], typeof(words).shape[0]
    each = places_of_half(n)
    halves, samples = _halves(words), fnp.arange(b)

    def step(i: Any, state: Any) -> Any:
        order, fraction = state
        fraction = fnp.where(i % each == 0, halves[:, i // each], fraction)
        size = (i + 1).astype(dtypes.uint32)
        place = _upper(fraction, size)
        moved = order.at[samples, place].get(mode="promise_in_bounds")
        order = order.at[:, i].set(moved)
        order = order.at[samples, place].set(i, mode="promise_in_bounds")
        return order, fraction * size

    order = fnp.zeros((b, n), dtypes.int32)
    start = order, fnp.zeros(b, dtypes.uint32)
    order, _ = lax.fori_loop(0, n, step, start)
    return fnp.moveaxis(x[:, order], 1, 0)
