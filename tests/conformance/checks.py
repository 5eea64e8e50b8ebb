"""Checks of values, lowering, derived graphs and vectorization."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array, host_of
from fxflow.core.arrays.aval import common_placement
from fxflow.core.interpreters.batching import batch_flat, batch_graph, materialize
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import linearize_graph
from fxflow.core.interpreters.transpose import transpose_graph
from fxflow.core.runtime.eager import runs_on_host
from fxflow.core.runtime.lowering import lower_graph
from fxflow.devices import mlir
from tests.conformance.cases import (
    Case,
    Flat,
    Problem,
    active_positions,
    assert_close,
    compiled,
    differentiable,
    prepared,
    problem,
    run,
    trace,
    value_cases,
)
from tests.conformance.harness import array

BATCH = 3
GROUP = 48


def compiled_results(case: Case) -> list[Any]:
    """Returns what XLA gives for a case.

    Samples of a primitive are compiled several at a time, which takes much less time
    than one by one; if that fails, the error should name the case, so it is alone.
    """
    known = _group_results(case.primitive.name, case.index // GROUP)
    if known is not None and case.index in known:
        return known[case.index]
    made = problem(case)
    return compiled(*trace(made.function, made.args))


@cache
def _group_results(name: str, group: int) -> dict[int, list[Any]] | None:
    members = [
        c
        for c in value_cases()
        if c.primitive.name == name and c.index // GROUP == group
    ]
    problems = [problem(c) for c in members]
    counts: list[int] = []

    def everything(*values: Any) -> list[Any]:
        given = iter(values)
        parts = [p.function(*(next(given) for _ in p.args)) for p in problems]
        counts[:] = map(len, parts)
        return [value for part in parts for value in part]

    try:
        graph, arrays = trace(everything, [a for p in problems for a in p.args])
        flattened = iter(compiled(graph, arrays))
    except Exception:
        return None
    return {
        c.index: [next(flattened) for _ in range(count)]
        for c, count in zip(members, counts, strict=True)
    }


def check_value(case: Case) -> None:
    """NumPy's result = XLA's = the eager one, of the type `abstract` says."""
    sample = case.sample
    made = problem(case)
    graph, arrays = trace(made.function, made.args)
    graph.check()
    assert str(graph)
    outs = compiled_results(case)
    for out, aval in zip(outs, graph.out_avals, strict=True):
        assert out.shape == aval.physical.shape, f"abstract says {aval}"
        assert out.dtype == aval.physical.dtype, f"abstract says {aval}"
    with np.errstate(all="ignore"):
        expected = _expected(case)
    if expected is not None:
        assert len(expected) == len(outs)
        for out, want in zip(outs, expected, strict=True):
            assert_close(out, want, "XLA and evaluate differ", sample.tol)
    placement, _ = common_placement([a._type for a in arrays], graph.name, graph.mesh)
    if runs_on_host(graph, placement) or (sample.function and case.index < 2):
        eager = [host_of(array(a)) for a in made.function(*map(array, made.args))]
        for out, got in zip(outs, eager, strict=True):
            assert_close(got, out, "eager and XLA differ", sample.tol)


def _expected(case: Case) -> list[Any] | None:
    sample = case.sample
    values = [host_of(a) if isinstance(a, Array) else a for a in sample.args]
    if sample.oracle is not None:
        out = sample.oracle(*values)
        return list(out) if isinstance(out, tuple | list) else [out]
    if sample.function is not None:
        return None
    out = case.primitive.evaluate(*values, **sample.params)
    return list(out) if case.primitive.multi else [out]


def check_lowering(case: Case) -> None:
    """It lowers for each of its platforms to text that parses."""
    made = problem(case)
    graph, _ = trace(made.function, made.args)
    seen = set()
    mesh = graph.mesh
    devices = mesh.flat if mesh else ()
    for platform in case.sample.platforms:
        text, _ = lower_graph(
            graph, name=case.primitive.name, platform=platform, devices=devices
        )
        if platform != "cpu" and text not in seen:
            parse(text)
        seen.add(text)


def parse(text: str) -> None:
    """Parses and verifies a StableHLO module (what the CPU runs is parsed there)."""
    mlir.parse(text)


def check_graphs(case: Case) -> None:
    """Inside a call, loop or branch: graphs derived from the graph are well formed."""
    made = problem(case)
    graph, _ = trace(made.function, made.args)
    captured = [False] * graph.num_consts
    active = [*captured, *active_positions(case, made)]
    if differentiable(case):
        inexact = [dtypes.is_inexact(a.dtype) for a in graph.out_avals]
        jvp_graph(graph, active, inexact)[0].check()
        split = linearize_graph(graph, active)
        split.primal.check()
        split.tangent.check()
        count = len(split.residual_inputs)
        linear = [i >= count for i in range(len(split.tangent.inputs))]
        wanted = [True] * len(split.tangent.outputs)
        if wanted:
            transpose_graph(split.tangent, linear, wanted, True)[0].check()
    allowed = case.sample.batch
    mapped = [
        (allowed is None or p in allowed) and not isinstance(a, Array)
        for p, a in zip(made.positions, made.args, strict=True)
    ]
    if any(mapped):
        batch_graph(graph, BATCH, [*captured, *mapped], True)[0].check()


def subsets(positions: Sequence[int]) -> list[tuple[int, ...]]:
    """Returns the non-empty subsets of the positions of arguments."""
    return [
        chosen
        for size in range(1, len(positions) + 1)
        for chosen in itertools.combinations(positions, size)
    ]


def check_batching(case: Case) -> None:
    """Vectorized over every subset of the operands = a loop.

    All subsets are one program.
    """
    made = problem(case)
    allowed = case.sample.batch
    choices = [
        i
        for i, p in enumerate(made.positions)
        if (allowed is None or p in allowed) and not isinstance(made.args[i], Array)
    ]
    if not choices:
        return
    graph, arrays = trace(made.function, made.args)
    plan = prepared(graph, arrays)
    consts = arrays[: len(arrays) - len(made.args)]
    count = len(made.args)
    slices = [
        [case.sample.vary(a, i) for i in range(BATCH)] if k in choices else [a] * BATCH
        for k, a in enumerate(made.args)
    ]
    chosen = subsets(choices)
    masks = [[k in subset for k in range(count)] for subset in chosen]

    def everything(*values: Any) -> list[Any]:
        plain, stacked = values[:count], values[count:]
        outs: list[Any] = []
        for mapped in masks:
            args = [b if m else a for a, b, m in zip(plain, stacked, mapped)]
            outs += _batched(made.function, mapped, BATCH)(*args)
        return outs

    stacked = [
        np.stack(parts) if k in choices else a
        for k, (a, parts) in enumerate(zip(made.args, slices, strict=True))
    ]
    flattened = iter(run(everything, [*made.args, *stacked]))
    for subset, mapped in zip(chosen, masks, strict=True):
        whole = [next(flattened) for _ in graph.outputs]
        for i in range(BATCH):
            one = [
                parts[i] if m else a
                for a, parts, m in zip(made.args, slices, mapped, strict=True)
            ]
            for got, want in zip(whole, plan(*consts, *map(array, one)), strict=True):
                assert_close(
                    got[i],
                    host_of(want),
                    f"slice {i}, mapped {subset}",
                    case.sample.tol,
                )
    _check_batching_twice(case, made, choices)


def _batched(flat: Flat, mapped: Sequence[bool], size: int) -> Flat:
    def function(*values: Any) -> list[Any]:
        outs, have = batch_flat(flat, size, values, mapped)
        return [materialize(o, size, m) for o, m in zip(outs, have, strict=True)]

    return function


def _check_batching_twice(case: Case, made: Problem, choices: Sequence[int]) -> None:
    """All operands mapped twice: the types come out right (values: as once)."""
    mapped = [k in choices for k in range(len(made.args))]
    inner = _batched(made.function, mapped, BATCH)
    outer = _batched(inner, mapped, 2)
    args = [
        np.broadcast_to(a, (2, BATCH, *a.shape)) if m else a
        for a, m in zip(made.args, mapped, strict=True)
    ]
    graph, _ = trace(outer, args)
    once, _ = trace(made.function, made.args)
    for twice, aval in zip(graph.out_avals, once.out_avals, strict=True):
        assert twice.shape == (2, BATCH, *aval.shape)
        assert twice.dtype == aval.dtype
