"""Vectorized control flow against its rows one by one, for random programs.

Each program is branches and loops inside of each other. A part of it is written for
some inputs only: elsewhere its loops do not end, its slopes are nan, and it reports to
a callback. So a row that takes another branch, or whose loop has ended, must not count:
in values, in rounds of loops, in effects, in derivatives.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit, lax, vmap
from fxflow.lax.callbacks import debug_callback, io_callback
from tests.sweeps.sampling import sample

Function = Callable[[Any], Any]

#: Rounds after which a loop gives up that would not end.
ENDLESS = 300
XS = np.array([1.5, 0.25, 2.5, -1.0, 3.25, 0.5], np.float32)

rounds = 0
reports: Counter[tuple[int, float]] = Counter()


def counted(v: Any) -> Any:
    """Counts a round of a loop, of all rows together; returns 1 for each."""

    def count(v: Any) -> Any:
        global rounds
        rounds += 1
        return np.ones(v.shape, np.int32)

    one = fxflow.ShapeDtypeStruct(v.shape, "int32")
    return fxflow.pure_callback(count, one, v, vmap_method="broadcast_all")


def until(done: Function, step: Function, v: Any) -> Any:
    """A loop that needs its operand to be one for which it ends."""

    def going(carry: Any) -> Any:
        v, n = carry
        return ~done(v) & (n < ENDLESS)

    def body(carry: Any) -> Any:
        v, n = carry
        return step(v), n + counted(v)

    return lax.while_loop(going, body, (v, 0))[0]


# -- parts for inputs over 1, and for the others ---------------------------------------


def squares(x: Any) -> Any:
    return until(lambda v: v > 50, lambda v: v * v, x) * 0.01


def climb(x: Any) -> Any:
    return until(lambda v: v > 3, lambda v: v + (2 - x), x)


@fxflow.custom_vjp
def looped_rule(x: Any) -> Any:
    return squares(x)


looped_rule.defvjp(
    lambda x: (squares(x), squares(x) + x), lambda res, ct: (ct * res * 0.1,)
)

LARGE: list[Function] = [
    lambda x: fnp.sqrt(x - 1),
    lambda x: fnp.log(x - 1) * x,
    lambda x: 1 / (x - fnp.minimum(x, 1)),
    looped_rule,
]
SMALL: list[Function] = [
    lambda x: fnp.sqrt(1.5 - x),
    lambda x: fnp.log(2 - x - fnp.maximum(x, 1)) - x,
    lambda x: fnp.sin(x),
]
#: Those have derivatives forwards only.
LOOPS = {True: [squares], False: [climb]}


class Programs:
    """Makes random programs.

    Args:
      seed: of the program.
      reverse: whether it shall have a gradient.
      effects: whether it shall report to callbacks.
    """

    def __init__(self, seed: int, reverse: bool, effects: bool) -> None:
        self.rng = random.Random(seed)
        self.reverse, self.effects, self.number = reverse, effects, 0

    def program(self, depth: int, large: bool | None = None) -> Function:
        """Returns a function of a scalar.

        Args:
          depth: how many levels of branches and loops it has.
          large: whether it is called with inputs over 1 only; False: with none of them.
        """
        if depth == 0:
            return self.leaf(large)
        makers = [self.branch, self.branch, self.steps, self.call, self.switched]
        if not self.reverse:
            makers.append(self.countdown)
        return self.rng.choice(makers)(depth - 1, large)

    def leaf(self, large: bool | None) -> Function:
        if large is None:
            return lambda x: x * 0.5
        known = LARGE if large else SMALL
        if not self.reverse:
            known = known[:3] + LOOPS[large]
        return self.reporting(self.rng.choice(known))

    def reporting(self, f: Function) -> Function:
        if not self.effects or self.rng.random() < 0.3:
            return f
        self.number += 1
        number = self.number

        def report(x: Any) -> None:
            reports[number, round(float(x), 3)] += 1

        def with_result(x: Any) -> Any:
            report(x)
            return np.int32(0)

        def reported(x: Any) -> Any:
            if number % 2:
                debug_callback(report, x)
                return f(x)
            given = lax.stop_gradient(x)
            zero = io_callback(with_result, fxflow.ShapeDtypeStruct((), "int32"), given)
            return f(x) + zero

        return reported

    def branch(self, depth: int, large: bool | None) -> Function:
        if large is None:
            over, under = self.program(depth, True), self.program(depth, False)
            return lambda x: lax.cond(x > 1, over, under, x)
        one, other = self.program(depth, large), self.program(depth, large)
        return lambda x: lax.cond(fnp.sin(9 * x) > 0, one, other, x)

    def switched(self, depth: int, large: bool | None) -> Function:
        if large is not None:
            return self.branch(depth, large)
        parts = [self.program(depth, part) for part in (False, True, True)]
        return lambda x: lax.switch(
            (x > 1).astype("int32") + (x > 3).astype("int32"), parts, x
        )

    def steps(self, depth: int, large: bool | None) -> Function:
        part = self.program(depth, large)

        def run(x: Any) -> Any:
            step = lambda total, scale: (total + scale * part(x), total)
            total, before = lax.scan(step, 0 * x, fnp.array([0.5, 0.25]))
            return total + before.sum()

        return run

    def call(self, depth: int, large: bool | None) -> Function:
        return self.rng.choice([jit, fxflow.checkpoint])(self.program(depth, large))

    def countdown(self, depth: int, large: bool | None) -> Function:
        """A loop of which rows take different numbers of steps, whose body is picky."""
        part = self.program(depth, True)

        def run(x: Any) -> Any:
            body = lambda c: (c[0] - 1, c[1] + part(c[0]))
            return lax.while_loop(lambda c: c[0] > 1, body, (x, 0 * x))[1]

        return run


def observed(f: Function, *args: Any) -> tuple[Any, Counter[tuple[int, float]], int]:
    """Returns the result of a call, what it reported, and its rounds of loops."""
    global rounds
    rounds = 0
    reports.clear()
    result = np.asarray(f(*args))
    return result, Counter(reports), rounds


CASES = [(seed, depth) for seed in range(60) for depth in (1, 2, 3)]
MODES: dict[str, Callable[[Function], Function]] = {
    "eager": vmap,
    "jit": lambda f: jit(vmap(f)),
    "inner jit": lambda f: vmap(jit(f)),
    "two axes": lambda f: (
        lambda xs: jit(vmap(vmap(f)))(xs.reshape(2, -1)).reshape(xs.shape)
    ),
    "few": lambda f: lambda xs: fnp.concatenate([vmap(f)(xs[:1]), vmap(f)(xs[1:])]),
    "none": lambda f: lambda xs: fnp.concatenate([vmap(f)(xs[:0]), jit(vmap(f))(xs)]),
}


@pytest.mark.parametrize(("seed", "depth"), sample(CASES, 40, of="taking part"))
def test_values_rounds_and_effects(seed: int, depth: int) -> None:
    f = Programs(seed, reverse=False, effects=seed % 3 > 0).program(depth)
    rows = [observed(f, x) for x in XS]
    values = [value for value, _, _ in rows]
    reported = sum((found for _, found, _ in rows), Counter[tuple[int, float]]())
    most = sum(count for _, _, count in rows)
    for mode in random.Random(seed).sample(sorted(MODES), 2):
        value, found, count = observed(MODES[mode](f), XS)
        np.testing.assert_allclose(value, values, rtol=1e-4, atol=1e-5, err_msg=mode)
        assert found == reported, mode
        assert count <= most, f"{mode}: a row that takes no part keeps a loop alive"
    slopes = [fxflow.jvp(f, (x,), (np.float32(1),))[1] for x in XS]
    ones = np.ones_like(XS)
    _, slope = fxflow.jvp(jit(vmap(f)), (XS,), (ones,))
    np.testing.assert_allclose(slope, slopes, rtol=1e-3, atol=1e-4)
    _, slope = jit(vmap(lambda x: fxflow.jvp(f, (x,), (1.0,))))(XS)
    np.testing.assert_allclose(slope, slopes, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("seed", "depth"), sample(CASES, 25, of="gradients"))
def test_gradients_agree_by_element_vmap_and_jit(seed: int, depth: int) -> None:
    f = Programs(seed, reverse=True, effects=False).program(depth)
    want = [fxflow.grad(f)(x) for x in XS]
    total = lambda xs: vmap(f)(xs).sum()
    shared = lambda w: vmap(lambda x: f(x * w))(XS).sum()
    assert np.isfinite(want).all()
    for got in (fxflow.grad(total)(XS), jit(fxflow.grad(total))(XS)):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(vmap(fxflow.grad(f))(XS), want, rtol=1e-3, atol=1e-4)
    along = float(np.dot(want, XS))
    np.testing.assert_allclose(fxflow.grad(shared)(1.0), along, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("xs", [XS[XS > 1], XS[XS < 1]], ids=["all", "none"])
def test_a_branch_that_all_rows_take_or_none(xs: Any) -> None:
    f = lambda x: lax.cond(x > 1, squares, climb, x)
    rows = [observed(f, x) for x in xs]
    value, _, count = observed(jit(vmap(f)), xs)
    np.testing.assert_allclose(value, [value for value, _, _ in rows], rtol=1e-6)
    assert count == max(count for _, _, count in rows)
