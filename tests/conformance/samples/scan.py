"""Samples of `scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from tests.conformance.harness import Sample, uniform


def recurrence(weight: Any, carry: Any, xs: Any, **options: Any) -> Any:
    """A constant, a carry that is differentiated and one that counts, two outputs."""

    def body(state: Any, x: Any) -> Any:
        hidden, count = state
        new = lax.tanh(lax.add(lax.mul(weight, hidden), x))
        return (new, lax.add(count, 1)), (lax.mul(new, x), count)

    return lax.scan(body, (carry, 0), xs, **options)


def plain(weight: Any, carry: Any, xs: Any) -> Any:
    return recurrence(weight, carry, xs)


def reverse(weight: Any, carry: Any, xs: Any) -> Any:
    return recurrence(weight, carry, xs, reverse=True)


def unrolled(weight: Any, carry: Any, xs: Any) -> Any:
    return recurrence(weight, carry, xs, unroll=2)


def unrolled_reverse(weight: Any, carry: Any, xs: Any) -> Any:
    return recurrence(weight, carry, xs, unroll=2, reverse=True)


def written_out(weight: Any, carry: Any, xs: Any) -> Any:
    return recurrence(weight, carry, xs, unroll=True)


def invariant(weight: Any, xs: Any) -> Any:
    """What is the same in all steps is computed outside and not stacked."""

    def body(carry: Any, x: Any) -> Any:
        gain = lax.exp(lax.sin(weight))
        return lax.add(lax.mul(gain, carry), x), gain

    return lax.scan(body, lax.full((3,), 0.5, xs.dtype), xs)


def swapping(a: Any, b: Any, xs: Any) -> Any:
    """Dependence that takes two rounds to reach all of the carry."""

    def body(carry: Any, x: Any) -> Any:
        first, second, third = carry
        return (lax.sin(second), lax.mul(third, x), first), None

    return lax.scan(body, (a, b, lax.full_like(a, 1.0)), xs)[0]


def without_xs(carry: Any) -> Any:
    return lax.scan(lambda c, _: (lax.mul(c, c), c), carry, None, length=3)


def nested(weight: Any, carry: Any, xs: Any) -> Any:
    def outer(c: Any, x: Any) -> Any:
        inner = lax.scan(
            lambda d, _: (lax.sin(lax.mul(d, weight)), d), lax.add(c, x), None, length=2
        )
        return inner[0], inner[1]

    return lax.scan(outer, carry, xs)


def _scan(rng: np.random.Generator) -> list[Sample]:
    def args(length: int, dtype: str = "float32", shape: tuple[int, ...] = (3,)) -> Any:
        return (
            uniform(rng, shape, dtype),
            uniform(rng, shape, dtype),
            uniform(rng, (length, *shape), dtype),
        )

    return [
        Sample(args(5), function=plain),
        Sample(args(4, "float64", ()), function=plain, second=False),
        Sample(args(3, "complex64"), function=plain, second=False),
        Sample(args(4, "bfloat16"), function=plain, diff=False, tol=0.1),
        Sample(args(0), function=plain, name="empty"),
        Sample(args(1), function=plain, name="one step", second=False),
        Sample(args(5), function=reverse, second=False),
        Sample(args(5), function=unrolled, second=False),
        Sample(args(5), function=unrolled_reverse, second=False),
        Sample(args(3), function=written_out, second=False),
        Sample(args(4)[::2], function=invariant),
        Sample(args(4), function=swapping, second=False),
        Sample((uniform(rng, (2,), low=0.5),), function=without_xs),
        Sample(args(3), function=nested, second=False),
        Sample(
            (np.int32(1), np.arange(6, dtype=np.int32)),
            function=lambda c, xs: lax.scan(
                lambda c, x: (lax.add(c, x), lax.mul(c, x)), c, xs
            ),
            name="integers",
        ),
    ]


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {"scan": _scan}
