"""Cases: each primitive with each of its samples, and how they are run.

The machine (`fxflow.core`) is used directly, not the public transforms.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import pkgutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

import fxflow.lax
from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array, host_of
from fxflow.core.arrays.aval import common_placement
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Primitive, table
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.eager import host_plan, runs_on_host
from fxflow.core.runtime.execute import compile_graph
from fxflow.lax.families import Elementwise
from tests.conformance.harness import Sample, array
from tests.sweeps import sampling

Flat = Callable[..., list[Any]]

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


# Derivatives and batches are compiled without LLVM's optimizations, and by the older of
# XLA's two code generators for CPUs, as long as there are two: in a fifth of the time.
# Values are compiled as users have it.
QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0}
if importlib.metadata.version("jaxlib").startswith("0.10."):
    QUICK["xla_cpu_use_fusion_emitters"] = False


def prepared(graph: Graph, arrays: Sequence[Array]) -> Callable[..., list[Array]]:
    """Returns what runs a graph: NumPy where the eager interpreter would, else XLA.

    Args:
      graph: to run.
      arrays: like those it will be called with.
    """
    arg_types = [a._type for a in arrays]
    placement, committed = common_placement(arg_types, graph.name, graph.mesh)
    if runs_on_host(graph, placement):
        return host_plan(graph, placement, committed)
    program = compile_graph(graph, arg_types, name=graph.name, options=QUICK)
    return lambda *given: program(given)


def run_graph(graph: Graph, arrays: Sequence[Array]) -> list[Any]:
    """Runs a graph; returns its results as NumPy arrays."""
    outs = prepared(graph, arrays)(*arrays)
    return [np.asarray(host_of(a)) for a in outs]


def compiled(graph: Graph, arrays: Sequence[Array]) -> list[Any]:
    """Runs a graph with XLA."""
    program = compile_graph(graph, [a._type for a in arrays], name=graph.name)
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


# -- which checks concern a case -------------------------------------------------------


def active_positions(case: Case, made: Problem) -> list[bool]:
    """Returns which traced arguments have a tangent."""
    wanted = case.sample.active
    return [
        dtypes.is_inexact(a.dtype) and (wanted is None or i in wanted)
        for i, a in zip(made.positions, made.args, strict=True)
    ]


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


#: Samples of a primitive that are drawn at least.
LEAST = 4


def drawn(found: list[Case], share: int, of: str) -> list[Case]:
    """Returns one in `share` of each primitive's cases, and `LEAST` at least."""
    groups: dict[str, list[Case]] = {}
    for case in found:
        groups.setdefault(case.primitive.name, []).append(case)
    return [
        case
        for name, group in groups.items()
        for case in sampling.sample(
            group, max(LEAST, math.ceil(len(group) / share)), f"{of} of {name}"
        )
    ]


@cache
def value_cases() -> list[Case]:
    """Returns the cases whose values are computed."""
    return drawn(cases(), 2, "values")


def differentiable(case: Case) -> bool:
    """Returns whether there is something to differentiate."""
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
    return _distinct([c for c in cases() if differentiable(c)])


def typed_cases() -> list[Case]:
    """Returns the cases with something to differentiate, in every width."""
    return [c for c in cases() if differentiable(c)]


def batch_cases() -> list[Case]:
    """Returns the cases to vectorize, once for all widths."""
    return _distinct(cases())
