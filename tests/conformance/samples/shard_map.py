"""Samples of `fxflow.lax.shard_map`: functions of parts, over two and four devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import P, lax, make_mesh, shard_map
from tests.conformance.harness import Sample, uniform

PAIR = make_mesh((2,), ("x",))
SQUARE = make_mesh((2, 2), ("x", "y"))


def over(mesh: Any, in_specs: Any, out_specs: Any) -> Callable[[Any], Any]:
    return shard_map(mesh=mesh, in_specs=in_specs, out_specs=out_specs)


@over(PAIR, P("x"), P("x"))
def alone(x: Any) -> Any:
    return fnp.sin(x)


@over(PAIR, (P("x"), P()), (P("x"), P()))
def shared(x: Any, w: Any) -> Any:
    return fnp.cos(x) * w, lax.psum(fnp.sum(x * w), "x")


@over(SQUARE, (P("x", "y"), P("y")), P("x"))
def product(a: Any, b: Any) -> Any:
    return lax.psum(a @ fnp.sin(b), "y")


def _shard_map(rng: np.random.Generator) -> list[Sample]:
    x = uniform(rng, (4,))
    return [
        Sample((x,), name="alone", function=alone),
        Sample((x, uniform(rng, (2,))), name="shared", function=shared),
        Sample(
            (uniform(rng, (2, 4)), uniform(rng, (4, 3))),
            name="product",
            function=product,
        ),
    ]


def _pcast(rng: np.random.Generator) -> list[Sample]:
    def cast(x: Any) -> Any:
        return lax.pcast(x, "x", to="varying")

    function = over(PAIR, P(), P("x"))(cast)
    return [Sample((uniform(rng, (3,)),), function=function)]


SAMPLES = {"pcast": _pcast, "shard_map": _shard_map}
