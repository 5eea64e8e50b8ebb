"""Graph passes change no answer of programs that are made of what they look for.

Graphs are run by NumPy, so that many are; `test_search` compiles programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.ir.higher_order import run_host
from fxflow.transforms.passes.pipeline import PASSES, optimized
from tests.programs.comparing import differences, precision
from tests.programs.drawing import Input, Program, Step
from tests.programs.operations import OPERATIONS, Api, Type
from tests.programs.running import applies, rewriting_small_programs

#: All that NumPy can run the graphs of: one calls a kernel of our own.
ON_HOST = tuple(name for name in PASSES if name != "pack_products")
API = Api("fxflow")
NAMES = sorted(n for n, o in OPERATIONS.items() if o.family == "passes")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    rewriting_small_programs(monkeypatch.setattr)


def drawn(name: str, seed: int) -> tuple[Program, Callable[[Any], Any]]:
    """A program of one operation, and it or a derivative as a function."""
    rng = np.random.default_rng(seed)
    values = "special" if rng.random() < 0.1 else "ordinary"
    x = Input(((4,), (2, 3), (5,))[rng.integers(3)], "float64", values, seed)
    parameters = OPERATIONS[name].parameters(rng, Type(x.shape, np.dtype(x.dtype)))
    program = Program(seed, (x,), (Step(name, (0,), parameters),))

    def run(v: Any) -> Any:
        (result,) = program(API, v)
        return result

    def total(v: Any) -> Any:
        result = run(v)
        return fnp.sum(result * np.cos(np.arange(result.size)))

    slope = fxflow.grad(total)

    def curvature(v: Any) -> Any:
        return fxflow.grad(lambda u: fnp.sum(slope(u) * u))(v)

    def rows(v: Any) -> Any:
        return fxflow.vmap(run)(fnp.stack([v, v * 0.5, -v]))

    kinds = [run, slope, slope, rows]
    if applies("forwards", program):
        kinds.append(curvature)
    return program, kinds[rng.integers(len(kinds))]


def check(name: str, seed: int) -> bool:
    """Compares answers before and after passes; returns whether there were any."""
    program, f = drawn(name, seed)
    rng = np.random.default_rng(seed)
    passes = ON_HOST
    if rng.random() < 0.4:
        some = set(rng.permutation(passes)[: rng.integers(1, 3)])
        passes = tuple(p for p in passes if p in some)
    (x,) = program.arguments()
    traced = fxflow.make_graph(f)(x)
    graph = traced.graph
    new = optimized(graph, passes, native=True)
    if new is graph:
        return False
    new.check()
    assert new.out_avals == graph.out_avals

    def answer(graph: Any, x: Any) -> list[Any]:
        with np.errstate(all="ignore"):
            return run_host(graph, [*map(np.asarray, traced.consts), x])

    want = answer(graph, x)
    tolerance = precision(program, want)
    sizes = (tolerance / 5, -tolerance / 7)
    found = differences(
        answer(new, x),
        want,
        tolerance,
        lambda: [answer(graph, x * (1 + size)) for size in sizes],
    )
    assert not found, f"{found} by {passes} in\n{graph.name} of {program}"
    return True


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", NAMES)
def test_answers_stay(name: str, seed: int) -> None:
    with fxflow.config.override(x64=True):
        check(name, seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("name", NAMES)
def test_answers_of_many_programs_stay(name: str, part: int) -> None:
    with fxflow.config.override(x64=True):
        rewritten = sum(
            check(name, seed) for seed in range(part * 100, part * 100 + 100)
        )
    assert rewritten > 10
