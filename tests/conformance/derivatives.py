"""Checks of derivatives: against finite differences, in both modes, and their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.jvp import jvp_flat
from fxflow.core.interpreters.linearize import linearize_flat
from fxflow.core.interpreters.transpose import backward
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.primitive import Zero
from tests.conformance.cases import (
    Case,
    Flat,
    active_positions,
    assert_close,
    problem,
    run,
    trace,
)
from tests.conformance.harness import array, uniform


def tangents_of(
    flat: Flat, args: Sequence[Any], active: Sequence[bool]
) -> Callable[..., list[Any]]:
    """Returns the function from `args` and active tangents to tangents of results."""
    count = len(args)

    def function(*values: Any) -> list[Any]:
        given = iter(values[count:])
        primals = values[:count]
        tangents = [
            next(given) if live else Zero(array(a).aval.tangent())
            for a, live in zip(args, active, strict=True)
        ]
        _, outs = jvp_flat(flat, primals, tangents)
        return [instantiate(t) for t in outs if _live(t)]

    return function


def _live(tangent: Any) -> bool:
    aval = tangent.aval if type(tangent) is Zero else None
    return aval is None or aval.dtype != dtypes.float0


def cotangents_of(
    flat: Flat, args: Sequence[Any], active: Sequence[bool]
) -> Callable[..., list[Any]]:
    """Returns the function from `args` and cotangents to cotangents of arguments."""
    count = len(args)

    def function(*values: Any) -> list[Any]:
        lin = linearize_flat(flat, values[:count], active)
        given = iter(values[count:])
        cts = [next(given) if _live(t) else None for t in lin.tangents]
        cts = [
            Zero(t.aval) if ct is None else ct
            for ct, t in zip(cts, lin.tangents, strict=True)
        ]
        return [
            instantiate(ct) for ct in backward(lin.nodes, lin.inputs, lin.tangents, cts)
        ]

    return function


def directions(rng: np.random.Generator, values: Sequence[Any]) -> list[Any]:
    """Returns random tangents or cotangents of the types of the values."""
    return [uniform(rng, v.shape, v.dtype, -1.0, 1.0).astype(v.dtype) for v in values]


def pairing(xs: Sequence[Any], ys: Sequence[Any]) -> float:
    """Returns the real part of Σ x y: how tangents and cotangents are paired."""
    return float(
        sum(np.real(np.sum(x * y, dtype=x.dtype)) for x, y in zip(xs, ys, strict=True))
    )


def check_derivatives(case: Case) -> None:
    """Forward = finite differences; reverse = forward; the same of the gradient."""
    sample = case.sample
    made = problem(case, wide=sample.widen)
    active = active_positions(case, made)
    rng = np.random.default_rng(0)
    cts = check_first_order(made.function, made.args, active, rng, sample.slack)
    if not sample.second or cts is None:
        return
    gradient = cotangents_of(made.function, made.args, active)

    def second(*values: Any) -> list[Any]:
        return gradient(*values, *map(array, cts))

    check_first_order(second, made.args, active, rng, sample.slack * 10)


def check_first_order(
    flat: Flat,
    args: Sequence[Any],
    active: Sequence[bool],
    rng: np.random.Generator,
    slack: float,
) -> list[Any] | None:
    """Checks both modes of the first derivative; returns the cotangents used.

    All that is needed is computed by one program, since compiling is what takes time.
    """
    live = [a for a, on in zip(args, active, strict=True) if on]
    vs = directions(rng, live)
    avals = trace(flat, args)[0].out_avals
    inexact = [i for i, aval in enumerate(avals) if dtypes.is_inexact(aval.dtype)]
    results = [np.zeros(avals[i].shape, avals[i].dtype) for i in inexact]
    cts = directions(rng, results)
    steps = [1e-3 * k for k in (1, -1, 2, -2)]
    moved = [(a + h * v).astype(a.dtype) for h in steps for a, v in zip(live, vs)]
    alone = [
        [j == i for j in range(len(args))] for i, on in enumerate(active) if on
    ] * (len(live) > 1)
    counts: list[int] = []

    def everything(*values: Any) -> list[Any]:
        given = iter(values)
        xs = [next(given) for _ in args]
        ts = [next(given) for _ in vs]
        ws = [next(given) for _ in cts]
        parts = [tangents_of(flat, args, active)(*xs, *ts)]
        parts += [
            tangents_of(flat, args, one)(*xs, t)
            for one, t in zip(alone, ts, strict=False)
        ]
        for _ in steps:
            outs = flat(
                *(next(given) if on else x for x, on in zip(xs, active, strict=True))
            )
            parts.append([outs[i] for i in inexact])
        if inexact:
            parts.append(cotangents_of(flat, args, active)(*xs, *ws))
        counts[:] = map(len, parts)
        return [value for part in parts for value in part]

    flattened = iter(run(everything, [*args, *vs, *cts, *moved]))
    parts = [[next(flattened) for _ in range(count)] for count in counts]
    tangents, *parts = parts
    assert len(tangents) == len(inexact), "a tangent for each inexact result"
    if not inexact:
        return None
    for t, result in zip(tangents, results, strict=True):
        assert (t.shape, t.dtype) == (result.shape, result.dtype), "tangent's type"
    back = parts.pop()
    high, low, higher, lower = parts[-4:]
    with np.errstate(all="ignore"):
        slopes = [
            (8 * (high[k] - low[k]) - (higher[k] - lower[k])) / (12 * steps[0])
            for k in range(len(tangents))
        ]
    for t, slope in zip(tangents, slopes, strict=True):
        assert_close(
            t, slope.astype(t.dtype), "jvp and finite differences differ", 2e-6 * slack
        )
    # One operand at a time: the others' tangents are symbolic zeros.
    if alone:
        for t, *ones in zip(tangents, *parts[:-4], strict=True):
            assert_close(t, sum(ones), "tangents do not add up", 1e-8 * slack)
    for b, a in zip(back, live, strict=True):
        assert (b.shape, b.dtype) == (a.shape, a.dtype), "cotangent's type"
    left, right = pairing(tangents, cts), pairing(vs, back)
    scale_ = 1 + sum(float(np.sum(np.abs(t * c))) for t, c in zip(tangents, cts))
    assert abs(left - right) <= 1e-8 * slack * scale_, (
        f"<Jv, w> = {left} but <v, Jᵀw> = {right}"
    )
    return cts


def check_derivative_types(case: Case) -> None:
    """In the sample's own precision, tangents and cotangents have the values' types."""
    made = problem(case)
    active = active_positions(case, made)
    live = [a for a, on in zip(made.args, active, strict=True) if on]
    graph, _ = trace(made.function, made.args)
    outs = [a for a in graph.out_avals if dtypes.is_inexact(a.dtype)]
    forward, _ = trace(
        tangents_of(made.function, made.args, active), [*made.args, *live]
    )
    assert [a.strong() for a in forward.out_avals] == [a.strong() for a in outs]
    if not outs:
        return
    cts = [np.ones(a.shape, a.dtype) for a in outs]
    back, _ = trace(cotangents_of(made.function, made.args, active), [*made.args, *cts])
    assert [a.strong() for a in back.out_avals] == [
        Aval(a.shape, a.dtype) for a in live
    ]
