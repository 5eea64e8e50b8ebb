"""Graph passes change no answer of programs that are made of what they look for.

Most graphs are run by NumPy, so that many are; `test_search` compiles programs, too.
Infinities and nan have to be in the same elements, and are in half of the arguments.
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
from tests.programs import kernel
from tests.programs.comparing import changed, differences, precision
from tests.programs.drawing import Input, Program, Step
from tests.programs.operations import OPERATIONS, Api, Type
from tests.programs.running import applies, rewriting_small_programs
from tests.sweeps import sampling

API = Api("fxflow")
NAMES = sorted(n for n, o in OPERATIONS.items() if o.family == "passes")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    rewriting_small_programs(monkeypatch.setattr)


def drawn(name: str, seed: int) -> tuple[Program, Callable[[Any], Any]]:
    """A program of one operation, and it or a derivative as a function."""
    rng = np.random.default_rng(seed)
    values = ("ordinary", "ordinary", "special", "odd")[rng.integers(4)]
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

    def forwards(v: Any) -> Any:
        return fxflow.linearize(run, v)[1](fnp.cos(v))

    kinds = [run, slope, slope, rows]
    if applies("forwards", program):
        kinds += [curvature, forwards]
    return program, kinds[rng.integers(len(kinds))]


def check(name: str, seed: int) -> bool:
    """Compares answers before and after passes; returns whether there were any."""
    program, f = drawn(name, seed)
    rng = np.random.default_rng(seed)
    passes = tuple(PASSES)
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


def check_compiled(name: str, seed: int) -> None:
    """Compares answers of programs compiled with passes and without."""
    program, f = drawn(name, seed)
    (x,) = program.arguments()

    def answer(passes: str, x: Any, **options: Any) -> list[Any]:
        # One more result, so that the argument can be donated.
        with fxflow.config.override(passes=passes):
            made = fxflow.jit(lambda v: (f(v), -v), **options)(fnp.array(x))
        return [np.asarray(v) for v in made]

    want = answer("none", x)
    tolerance = precision(program, want)
    sizes = (tolerance / 5, -tolerance / 7)
    found = differences(
        answer("all", x, donate_argnums=0),
        want,
        tolerance,
        lambda: [answer("none", *changed([x], size, 0)) for size in sizes],
    )
    assert not found, f"{found} in {program}"


@pytest.fixture
def kernel_in_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.in_numpy(monkeypatch.setattr)


@pytest.mark.parametrize("seed", sampling.sample(range(400), 100, "passes by NumPy"))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("kernel_in_numpy")
def test_answers_stay(name: str, seed: int) -> None:
    with fxflow.config.override(x64=True):
        check(name, seed)


@pytest.mark.parametrize("seed", sampling.sample(range(60), 12, "passes compiled"))
@pytest.mark.parametrize("name", NAMES)
def test_compiled_answers_stay(name: str, seed: int) -> None:
    with fxflow.config.override(x64=True):
        check_compiled(name, seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("kernel_in_numpy")
def test_answers_of_many_programs_stay(name: str, part: int) -> None:
    with fxflow.config.override(x64=True):
        rewritten = sum(
            check(name, seed) for seed in range(part * 100, part * 100 + 100)
        )
    assert rewritten > 10
