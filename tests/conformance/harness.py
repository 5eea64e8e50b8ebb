"""What every primitive must fulfil, as checks on samples.

`tests/conformance/samples/<module>.py` gives for each primitive of
`fxflow/lax/<module>.py` a list of `Sample`s; `test_conformance.py` runs each through
every check below. The checks use the machine (`fxflow.core`) directly, not the public
transforms.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import itertools
import pkgutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

import fxflow.lax
from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array, host_of, put_host
from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.batching import batch_flat, batch_graph, materialize
from fxflow.core.interpreters.jvp import jvp_flat, jvp_graph
from fxflow.core.interpreters.linearize import linearize_flat, linearize_graph
from fxflow.core.interpreters.transpose import backward, transpose_graph
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Primitive, Zero, table
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.eager import host_plan, runs_on_host
from fxflow.core.runtime.execute import compile_graph
from fxflow.core.runtime.lowering import lower_graph
from fxflow.core.spmd.partition import common_place, mesh_in
from fxflow.devices import mlir
from fxflow.lax.families import Elementwise

Flat = Callable[..., list[Any]]
Vary = Callable[[Any, int], Any]

BATCH = 3


def reverse_and_scale(value: Any, i: int) -> Any:
    """The i-th slice of a batch: the value, reversed, smaller (integers: rolled)."""
    if i == 0:
        return value
    if i == 1:
        return np.flip(value).copy()
    if dtypes.is_inexact(value.dtype):
        with np.errstate(all="ignore"):
            return (value * np.asarray(0.75, dtypes.to_real(value.dtype))).astype(
                value.dtype
            )
    return np.roll(value.reshape(-1), 1).reshape(value.shape)


def scale(value: Any, i: int) -> Any:
    """The i-th slice of a batch where only multiples of the value are valid."""
    factor = np.asarray((1.0, 0.75, 1.5)[i], dtypes.to_real(value.dtype))
    return (value * factor).astype(value.dtype)


def same(value: Any, i: int) -> Any:
    """The i-th slice of a batch where no other value is valid."""
    return value


@dataclass(frozen=True)
class Sample:
    """Arguments to check a primitive, or a function of the public API, with.

    Attributes:
      args: NumPy arrays (their 64 bits are kept), or `Array`s of keys.
      params: of `bind`.
      name: shown in the test's name.
      diff: whether to check derivatives here (False near kinks and in flat places).
      tol: relative and absolute tolerance of values (None: by dtype).
      function: a function of the public API that binds the primitive (None: `bind`).
      constant: positions of arguments that are never traced (None: 0-d ones beside
        larger ones, if the primitive is elementwise).
      active: positions to differentiate by (None: all inexact ones).
      batch: positions that may be mapped (None: all that are not constant).
      vary: how the slices of a batch differ.
      second: whether to check second derivatives.
      widen: whether derivatives are checked in 64 bits (False: the function casts).
      oracle: computes the results with NumPy (None: the primitive's `evaluate`; for a
        function, nothing).
      slack: factor on the tolerance of finite differences.
      platforms: for which it lowers.
    """

    args: tuple[Any, ...]
    params: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    diff: bool = True
    tol: float | None = None
    function: Callable[..., Any] | None = None
    constant: tuple[int, ...] | None = None
    active: tuple[int, ...] | None = None
    batch: tuple[int, ...] | None = None
    vary: Vary = reverse_and_scale
    second: bool = True
    widen: bool = True
    oracle: Callable[..., Any] | None = None
    slack: float = 1.0
    platforms: tuple[str, ...] = ("cpu", "gpu", "tpu")


# -- making samples --------------------------------------------------------------------


def uniform(
    rng: np.random.Generator,
    shape: Any = (3, 4),
    dtype: Any = "float32",
    low: float = -2.0,
    high: float = 2.0,
) -> Any:
    """Random floats or complex numbers, or integers in the same interval."""
    dtype = dtypes.dtype(dtype)
    value = rng.uniform(low, high, shape)
    if dtypes.is_complex(dtype):
        value = value + 1j * rng.uniform(low, high, shape)
    elif dtypes.is_bool(dtype):
        return np.asarray(value > (low + high) / 2)
    elif dtypes.is_integer(dtype):
        low = max(low, 0) if dtypes.is_unsigned(dtype) else low
        return np.asarray(rng.integers(int(low), int(high) + 1, shape)).astype(dtype)
    return np.asarray(value).astype(dtype)


def away_from_zero(value: Any, gap: float = 0.2) -> Any:
    """Moves real numbers away from 0."""
    sign = np.where(value < 0, -1.0, 1.0)
    return (value.astype(np.float64) + gap * sign).astype(value.dtype)


# -- discovery -------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A primitive with one of its samples."""

    primitive: Primitive
    sample: Sample
    index: int

    @property
    def id(self) -> str:
        types = ",".join(
            f"{dtypes.short_name(a.dtype)}{list(a.shape)}" for a in self.sample.args
        )
        label = self.sample.name or types
        return f"{self.primitive.name}-{self.index}-{label}".replace(" ", "")


def import_all() -> None:
    """Imports every family, so that the table is complete."""
    for module in pkgutil.walk_packages(fxflow.lax.__path__, "fxflow.lax."):
        importlib.import_module(module.name)


@cache
def sample_makers() -> dict[str, list[Callable[..., list[Sample]]]]:
    """Returns for each primitive's name the functions that make its samples."""
    package = importlib.import_module("tests.conformance.samples")
    makers: dict[str, list[Callable[..., list[Sample]]]] = {}
    for module in pkgutil.iter_modules(package.__path__):
        loaded = importlib.import_module(f"{package.__name__}.{module.name}")
        for name, maker in loaded.SAMPLES.items():
            makers.setdefault(name, []).append(maker)
    return makers


@cache
def cases() -> list[Case]:
    """Returns every sample of every primitive."""
    import_all()
    found = []
    for name, makers in sorted(sample_makers().items()):
        if name not in table:
            continue
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        samples = [s for maker in makers for s in maker(rng)]
        found += [Case(table[name], s, i) for i, s in enumerate(samples)]
    return found


# -- running ---------------------------------------------------------------------------


def array(value: Any) -> Array:
    """Returns a NumPy array as an `Array` of exactly its dtype."""
    if isinstance(value, Array):
        return value
    value = np.array(value)
    return put_host(value, Aval(value.shape, value.dtype))


def constants_of(case: Case) -> frozenset[int]:
    """Returns the positions of arguments that are never traced."""
    sample = case.sample
    if sample.constant is not None:
        return frozenset(sample.constant)
    elementwise = isinstance(case.primitive, Elementwise) and sample.function is None
    if elementwise and any(a.ndim for a in sample.args):
        return frozenset(i for i, a in enumerate(sample.args) if not a.ndim)
    return frozenset()


@dataclass(frozen=True)
class Problem:
    """A flat function of arrays, and arrays to call it with."""

    function: Flat
    args: list[Any]
    positions: list[int]


def problem(case: Case, wide: bool = False) -> Problem:
    """Returns the function and arguments of a case.

    Args:
      case: which.
      wide: whether to use 64 bits.
    """
    sample = case.sample
    fixed = constants_of(case)
    values = [widened(a) if wide else a for a in sample.args]
    params = {
        name: _wide_param(value) if wide else value
        for name, value in sample.params.items()
    }
    constants = {i: array(v) for i, v in enumerate(values) if i in fixed}
    positions = [i for i in range(len(values)) if i not in fixed]

    def function(*args: Any) -> list[Any]:
        given = iter(args)
        full = [constants[i] if i in fixed else next(given) for i in range(len(values))]
        if sample.function is not None:
            return list(tree.leaves(sample.function(*full)))
        out = case.primitive.bind(*full, **params)
        return list(out) if case.primitive.multi else [out]

    return Problem(function, [values[i] for i in positions], positions)


_WIDE = {d: np.dtype("float64") for d in dtypes.ALL if dtypes.is_floating(d)} | {
    np.dtype("complex64"): np.dtype("complex128")
}


def widened(value: Any) -> Any:
    """Returns floats and complex numbers in 64 bits, all else as it is."""
    if isinstance(value, Array):
        return value
    return value.astype(_WIDE.get(value.dtype, value.dtype))


def _wide_param(value: Any) -> Any:
    if isinstance(value, np.dtype):
        return _WIDE.get(value, value)
    return value


def trace(function: Flat, args: Sequence[Any]) -> tuple[Graph, list[Array]]:
    """Traces a flat function; returns the graph and all its arguments."""
    arrays = [array(a) for a in args]
    graph, consts = trace_flat(function, [a.aval for a in arrays])
    return graph, [*map(array, consts), *arrays]


def run(function: Flat, args: Sequence[Any]) -> list[Any]:
    """Traces and runs a flat function; returns its results as NumPy arrays."""
    graph, arrays = trace(function, args)
    return run_graph(graph, arrays)


# Derivatives and batches are compiled by the older of XLA's two code generators for
# CPUs, as long as there are two, in a third of the time; values by what users get.
_TWO_GENERATORS = importlib.metadata.version("jaxlib").startswith("0.10.")
QUICK = {"xla_cpu_use_fusion_emitters": False} if _TWO_GENERATORS else {}


def prepared(graph: Graph, arrays: Sequence[Array]) -> Callable[..., list[Array]]:
    """Returns what runs a graph: NumPy where the eager interpreter would, else XLA.

    Args:
      graph: to run.
      arrays: like those it will be called with.
    """
    placeds = [a._placed for a in arrays]
    placement, committed = common_place(placeds, graph.name, mesh_in(graph))
    if runs_on_host(graph, placement):
        return host_plan(graph, placement, committed)
    program = compile_graph(graph, placeds, name=graph.name, options=QUICK)
    return lambda *given: program(given)


def run_graph(graph: Graph, arrays: Sequence[Array]) -> list[Any]:
    """Runs a graph; returns its results as NumPy arrays."""
    outs = prepared(graph, arrays)(*arrays)
    return [np.asarray(host_of(a)) for a in outs]


def compiled(graph: Graph, arrays: Sequence[Array]) -> list[Any]:
    """Runs a graph with XLA."""
    program = compile_graph(graph, [a._placed for a in arrays], name=graph.name)
    return [np.asarray(host_of(a)) for a in program(arrays)]


# -- comparing -------------------------------------------------------------------------

_TOLERANCE = {
    np.dtype("float64"): 1e-10,
    np.dtype("complex128"): 1e-10,
    np.dtype("float32"): 2e-5,
    np.dtype("complex64"): 4e-5,
    np.dtype("float16"): 4e-3,
    np.dtype(ml_dtypes.bfloat16): 2e-2,
}


def assert_close(
    actual: Any, expected: Any, what: str, tol: float | None = None
) -> None:
    """Checks shape, dtype and values."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (what, actual.shape, expected.shape)
    assert actual.dtype == expected.dtype, (what, actual.dtype, expected.dtype)
    if not dtypes.is_inexact(actual.dtype):
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    if tol is None:
        tol = _TOLERANCE.get(actual.dtype, 0.3)
    kind = np.complex128 if dtypes.is_complex(actual.dtype) else np.float64
    np.testing.assert_allclose(
        actual.astype(kind), expected.astype(kind), tol, tol, err_msg=what
    )


# -- checks ----------------------------------------------------------------------------


GROUP = 24


def compiled_results(case: Case) -> list[Any]:
    """Returns what XLA gives for a case.

    Samples of a primitive are compiled several at a time, which takes much less time
    than one by one; if that fails, the error should name the case, so it is alone.
    """
    known = _group_results(case.primitive.name, case.index // GROUP)
    if known is not None:
        return known[case.index]
    made = problem(case)
    return compiled(*trace(made.function, made.args))


@cache
def _group_results(name: str, group: int) -> dict[int, list[Any]] | None:
    members = [
        c for c in cases() if c.primitive.name == name and c.index // GROUP == group
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
    placement, _ = common_place([a._placed for a in arrays], graph.name, mesh_in(graph))
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
    mesh = mesh_in(graph)
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


def active_positions(case: Case, made: Problem) -> list[bool]:
    """Returns which traced arguments have a tangent."""
    wanted = case.sample.active
    return [
        dtypes.is_inexact(a.dtype) and (wanted is None or i in wanted)
        for i, a in zip(made.positions, made.args, strict=True)
    ]


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
        cts = [next(given) if _live(t) else None for t in _typed(lin)]
        cts = [
            Zero(t.aval) if ct is None else ct
            for ct, t in zip(cts, lin.tangents, strict=True)
        ]
        return [
            instantiate(ct) for ct in backward(lin.nodes, lin.inputs, lin.tangents, cts)
        ]

    return function


def _typed(lin: Any) -> list[Any]:
    return list(lin.tangents)


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


def check_graphs(case: Case) -> None:
    """Inside a call, loop or branch: graphs derived from the graph are well formed."""
    made = problem(case)
    graph, _ = trace(made.function, made.args)
    captured = [False] * graph.num_consts
    active = [*captured, *active_positions(case, made)]
    if _differentiable(case):
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
    """Vectorised over every subset of the operands = a loop.

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


# -- which checks concern a case -------------------------------------------------------


def _shape_key(case: Case) -> Any:
    sample = case.sample
    shapes = tuple(
        (a.shape, dtypes.is_complex(a.dtype), dtypes.is_inexact(a.dtype))
        for a in sample.args
    )
    params = {name: _wide_param(v) for name, v in sample.params.items()}
    return (
        case.primitive,
        shapes,
        repr(sorted(params.items(), key=str)),
        sample.function,
    )


def _distinct(found: Sequence[Case]) -> list[Case]:
    """Drops cases that differ from an earlier one in the width of dtypes alone."""
    return list({_shape_key(case): case for case in reversed(found)}.values())[::-1]


def _differentiable(case: Case) -> bool:
    sample = case.sample
    if sample.function is None and case.primitive.nondifferentiable:
        return False
    if not sample.diff:
        return False
    made = problem(case)
    return any(
        on and a.size
        for on, a in zip(active_positions(case, made), made.args, strict=True)
    )


def derivative_cases() -> list[Case]:
    """Returns the cases with something to differentiate, once for all widths."""
    return _distinct([c for c in cases() if _differentiable(c)])


def typed_cases() -> list[Case]:
    """Returns the cases with something to differentiate, in every width."""
    return [c for c in cases() if _differentiable(c)]


def batch_cases() -> list[Case]:
    """Returns the cases to vectorise, once for all widths."""
    return _distinct(cases())


# -- samples of elementwise operations -------------------------------------------------

_DTYPES = {
    "b": ("bool",),
    "i": ("int8", "int32", "int64"),
    "u": ("uint8", "uint32"),
    "f": ("float32", "float64", "bfloat16", "float16"),
    "c": ("complex64", "complex128"),
}
_SHAPES = ((3, 5), (7,), (), (2, 0, 3))


def elementwise_samples(
    count: int,
    kinds: str,
    low: float = -2.0,
    high: float = 2.0,
    *,
    prepare: Callable[[Any], Any] = lambda value: value,
    constant: Sequence[int] = (),
    **options: Any,
) -> Callable[[np.random.Generator], list[Sample]]:
    """Returns a maker of samples of an operation on `count` operands.

    Args:
      count: number of operands.
      kinds: of dtypes: letters of `families.kind`.
      low: least element.
      high: greatest element.
      prepare: applied to each operand.
      constant: operands that are also tried as 0-d constants beside larger ones.
      **options: of each `Sample`.
    """

    def make(rng: np.random.Generator) -> list[Sample]:
        samples = []
        for letter in kinds:
            for n, dtype in enumerate(_DTYPES[letter]):
                for shape in _SHAPES if n == 0 else _SHAPES[:1]:
                    args = tuple(
                        prepare(uniform(rng, shape, dtype, low, high))
                        for _ in range(count)
                    )
                    samples.append(Sample(args, **options))
        for position in constant:
            args_ = [
                prepare(uniform(rng, (2, 3), _DTYPES[kinds[-1]][0], low, high))
                for _ in range(count)
            ]
            args_[position] = args_[position].reshape(-1)[0].reshape(())
            samples.append(Sample(tuple(args_), name=f"constant{position}", **options))
        return samples

    return make


def special_samples(
    count: int, *values: float, dtype: Any = "float32", **options: Any
) -> Callable[[np.random.Generator], list[Sample]]:
    """Returns a maker of one sample: every combination of some special values."""

    def make(rng: np.random.Generator) -> list[Sample]:
        grid = np.meshgrid(*[np.array(values, dtypes.dtype(dtype))] * count)
        args = tuple(g.reshape(-1) for g in grid)
        return [Sample(args, name="special", diff=False, **options)]

    return make


def both(
    *makers: Callable[[np.random.Generator], list[Sample]],
) -> Callable[[np.random.Generator], list[Sample]]:
    """Returns a maker of the samples of several makers."""
    return lambda rng: [sample for make in makers for sample in make(rng)]
