"""Samples of `kernel_call`: parallel, summed and ordered axes, ragged ends."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import kernels
from tests.conformance.harness import Sample, uniform


@kernels.kernel(
    "i:2 v, v -> i:2 v, i:2", out=lambda x, s: (x, kernels.like(x, shape=x.shape[:1]))
)
def scaled(x: Any, s: Any, y: Any, total: Any) -> None:
    value = fnp.sin(x[...]) * s[...]
    y[...] = value
    total[...] = fnp.sum(value * value, 1)


@kernels.kernel(
    "i:2 v -> v", out=lambda x: kernels.like(x, shape=x.shape[1:]), sums="i"
)
def squares(x: Any, y: Any) -> None:
    y[...] = fnp.sum(x[...] ** 2, 0)


def product(a: Any, b: Any) -> Any:
    def body(a: Any, b: Any, o: Any) -> None:
        o[...] += kernels.dot(a[...], b[...])

    blocks = [
        kernels.BlockSpec((2, 2), lambda i, k: (i, k)),
        kernels.BlockSpec((2, 3), lambda i, k: (k, 0)),
    ]
    return kernels.call(
        body,
        kernels.like(a, shape=(a.shape[0], b.shape[1])),
        grid=(2, 2),
        in_specs=blocks,
        out_specs=kernels.BlockSpec((2, 3), lambda i, k: (i, 0)),
    )(a, b)


def chosen(x: Any) -> Any:
    """Blocks by an index map: each pair of programs reads one block."""

    def body(x: Any, y: Any) -> None:
        y[...] = x[...] * x[...]

    return kernels.call(
        body,
        kernels.like(x, shape=(2 * x.shape[0],)),
        grid=(4,),
        in_specs=[kernels.BlockSpec((2,), lambda i: (i // 2,))],
        out_specs=kernels.BlockSpec((2,), lambda i: (i,)),
    )(x)


def _kernel_call(rng: np.random.Generator) -> list[Sample]:
    x, s = uniform(rng, (5, 3)), uniform(rng, (3,))
    return [
        Sample((x, s), function=scaled, name="parallel, ragged"),
        Sample((x,), function=squares, name="summed"),
        Sample(
            (uniform(rng, (4, 3)), uniform(rng, (3, 3))),
            function=product,
            name="in order",
        ),
        Sample((uniform(rng, (4,)),), function=chosen, name="index map"),
    ]


SAMPLES = {"kernel_call": _kernel_call}
