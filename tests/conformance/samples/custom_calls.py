"""Samples of `custom_jvp` and `custom_vjp`: rules that are the true derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import custom_jvp, custom_vjp, lax
from tests.conformance.harness import Sample, uniform


@custom_jvp
def product(x: Any, y: Any) -> Any:
    return {"sin": lax.sin(lax.mul(x, y)), "x": x}


@product.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (tx, ty) = primals, tangents
    inner = lax.add(lax.mul(tx, y), lax.mul(x, ty))
    return product(x, y), {"sin": lax.mul(lax.cos(lax.mul(x, y)), inner), "x": tx}


@custom_jvp
def by_argument(x: Any, y: Any) -> Any:
    return lax.mul(lax.mul(x, x), y)


by_argument.defjvps(
    lambda t, out, x, y: lax.mul(t, lax.mul(lax.mul(x, y), 2.0)),
    lambda t, out, x, y: lax.mul(t, lax.mul(x, x)),
)


@custom_vjp
def reversed_only(x: Any, y: Any) -> Any:
    return lax.mul(x, y)


reversed_only.defvjp(
    lambda x, y: (lax.mul(x, y), (x, y)),
    lambda kept, ct: (lax.mul(ct, kept[1]), lax.mul(ct, kept[0])),
)


def captured(x: Any, y: Any) -> Any:
    """A function and a rule that use a value from outside."""

    @custom_jvp
    def scaled(x: Any) -> Any:
        return lax.mul(x, y)

    scaled.defjvp(lambda primals, tangents: (scaled(*primals), lax.mul(tangents[0], y)))
    return scaled(x)


def _jvp(rng: np.random.Generator) -> list[Sample]:
    x, y = uniform(rng, (3,)), uniform(rng, (3,))
    return [
        Sample((x, y), function=product),
        Sample((x.astype("f8"), y.astype("f8")), function=product),
        Sample((x[0], y[0]), function=product, name="0-d"),
        Sample((x.astype("c8"), y.astype("c8")), function=product),
        Sample((x[:0], y[:0]), function=product),
        Sample((x, y), function=by_argument),
        Sample((x, y), function=captured, active=(0,)),
    ]


def _vjp(rng: np.random.Generator) -> list[Sample]:
    x, y = uniform(rng, (3,)), uniform(rng, (3,))
    return [
        Sample((x, y), function=reversed_only, diff=False),
        Sample((x[0], y[0]), function=reversed_only, diff=False, name="0-d"),
        Sample(
            (x.astype("bfloat16"), y.astype("bfloat16")),
            function=reversed_only,
            diff=False,
        ),
    ]


def _vjp_linear(rng: np.random.Generator) -> list[Sample]:
    """None: it never runs, it is only transposed (`tests/lax/test_custom_calls`)."""
    return []


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "custom_jvp": _jvp,
    "custom_vjp": _vjp,
    "custom_vjp_linear": _vjp_linear,
}
