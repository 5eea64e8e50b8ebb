"""Samples of `cond` and `cond_in_turn`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow
from fxflow import lax
from fxflow.core.ir.higher_order import zeros_graph
from fxflow.lax.control_flow.cond import CondInTurn
from tests.conformance.harness import Sample, uniform


def two(pred: Any, x: Any, y: Any) -> Any:
    """Branches that need different things of the values for their tangents."""
    return lax.cond(
        pred,
        lambda x, y: (lax.mul(lax.sin(x), y), x),
        lambda x, y: (lax.exp(y), lax.mul(x, x)),
        x,
        y,
    )


def three(index: Any, x: Any) -> Any:
    return lax.switch(
        index,
        [
            lambda x: (x, lax.full_like(x, 2.0)),
            lambda x: (lax.sin(lax.sin(x)), x),
            lambda x: (lax.mul(lax.mul(x, x), x), lax.neg(x)),
        ],
        x,
    )


def constant_branch(pred: Any, x: Any) -> Any:
    return lax.cond(
        pred, lambda: lax.full(x.shape, 3.0, x.dtype), lambda: lax.mul(x, x)
    )


def of_value(x: Any) -> Any:
    """A predicate that is computed from what is differentiated."""
    return lax.cond(
        lax.gt(lax.reduce_sum(x, (0,)), 0.0),
        lambda: lax.sin(x),
        lambda: lax.mul(x, 2.0),
    )


def loops(pred: Any, x: Any) -> Any:
    return lax.cond(
        pred,
        lambda x: lax.fori_loop(0, 3, lambda i, c: lax.sin(lax.mul(c, x)), x),
        lambda x: lax.neg(x),
        x,
    )


def _cond(rng: np.random.Generator) -> list[Sample]:
    true, false = np.bool_(True), np.bool_(False)
    flip = {"vary": lambda value, i: _next(value, i)}
    x, y = uniform(rng, (3,)), uniform(rng, (3,))
    return [
        Sample((np.asarray(true), x, y), function=two, **flip),
        Sample((np.asarray(false), x, y), function=two, **flip),
        Sample(
            (np.asarray(true), x.astype("c8"), y.astype("c8")),
            function=two,
            second=False,
            **flip,
        ),
        Sample((np.asarray(false), x[:0], y[:0]), function=two, **flip),
        *(
            Sample((np.int32(i), x), function=three, name=f"branch {i}", **flip)
            for i in (-1, 0, 1, 2, 5)
        ),
        Sample((np.uint8(1), x.astype("bfloat16")), function=three, diff=False, **flip),
        Sample((np.asarray(true), x), function=constant_branch, **flip),
        Sample((np.asarray(false), x), function=constant_branch, **flip),
        Sample((np.abs(x),), function=of_value),
        Sample((-np.abs(x),), function=of_value),
        Sample((np.asarray(true), x), function=loops, second=False, **flip),
    ]


def _next(value: Any, i: int) -> Any:
    if value.dtype == np.bool_:
        return np.asarray(bool(value) != bool(i % 2))
    if value.dtype.kind in "iu":
        return (value + value.dtype.type(i)).astype(value.dtype)
    return (value * np.asarray(1 + i, value.dtype)).astype(value.dtype)


def in_turn(index: Any, x: Any, y: Any) -> Any:
    """What a masked graph makes of an operation with effects; here, of a product."""
    graph = fxflow.make_graph(lambda x, y: (lax.mul(x, lax.sin(y)), y))(x, y).graph
    branches = (zeros_graph(graph), graph)
    return tuple(CondInTurn.bind(index, x, y, branches=branches))


def _cond_in_turn(rng: np.random.Generator) -> list[Sample]:
    x, y = uniform(rng, (3,)), uniform(rng, (3,))
    return [
        Sample((np.int32(1), x, y), function=in_turn),
        Sample((np.int32(0), x, y), function=in_turn),
        Sample((np.int32(1), x[:0], y[:0]), function=in_turn),
    ]


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "cond": _cond,
    "cond_in_turn": _cond_in_turn,
}
