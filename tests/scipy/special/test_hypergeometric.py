"""Hypergeometric functions beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.special as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError
from fxflow.scipy.special import hyp1f1, hyp2f1
from tests.sweeps.sampling import sample

RNG = np.random.default_rng(0)


def of_one_and_one(count: int) -> Any:
    """Parameters and arguments of both signs, some parameters integers."""
    scale = RNG.choice([1.0, 4.0, 12.0], count)
    a, b = RNG.uniform(-1, 1, (2, count)) * scale
    x = RNG.choice([0.5, 5.0, 30.0, 300.0], count) * RNG.uniform(-1, 1, count)
    a = np.where(RNG.random(count) < 0.2, np.round(a), a)
    return a, np.where(RNG.random(count) < 0.7, np.abs(b) + 0.3, b), x


def of_two_and_one(count: int) -> Any:
    """Likewise; with differences of parameters that are integers, too."""
    scale = RNG.choice([1.0, 3.0, 6.0], count)
    a, b, c = RNG.uniform(-1, 1, (3, count)) * scale
    c = np.where(RNG.random(count) < 0.7, np.abs(c) + 0.2, c)
    c = np.where(RNG.random(count) < 0.2, np.abs(a + b) + RNG.integers(0, 2, count), c)
    b = np.where(RNG.random(count) < 0.1, a + RNG.integers(-2, 2, count), b)
    ways = [
        RNG.uniform(0, 1, count),
        1 - 2.0 ** -RNG.integers(3, 20, count),
        -RNG.uniform(0, 20, count),
        -(2.0 ** RNG.integers(5, 20, count)),
    ]
    return a, b, c, np.choose(RNG.integers(0, 4, count), ways)


@pytest.mark.parametrize("of_two", [False, True])
def test_agrees_with_scipy_on_drawn_parameters(of_two: bool) -> None:
    ours, theirs = (hyp2f1, want.hyp2f1) if of_two else (hyp1f1, want.hyp1f1)
    drawn = (of_two_and_one if of_two else of_one_and_one)(300)
    expected = theirs(*drawn)
    with fxflow.config.override(x64=True):
        got = np.asarray(ours(*drawn))
        wrong = ~(np.abs(got - expected) <= 1e-9 * np.abs(expected))
        # Either's digits may be lost where terms of large parameters cancel.
        assert wrong.mean() < 0.02, [(*a,) for a in np.array(drawn).T[wrong]]
        np.testing.assert_allclose(fxflow.jit(ours)(*drawn), got, 1e-9, 1e-300)
    single = [a.astype(np.float32) for a in drawn]
    expected = theirs(*(a.astype(np.float64) for a in single))
    met = (np.abs(expected) < 1e38) & (np.abs(expected) > 1e-36)
    off = np.abs(np.asarray(ours(*single), np.float64) - expected) / np.abs(expected)
    assert (off[met] < 1e-4).mean() > 0.95


def test_known_numbers() -> None:
    x = np.array([-40.0, -0.3, 0.0, 0.7])
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(hyp1f1(2.5, 2.5, x), np.exp(x), 1e-13)
        np.testing.assert_allclose(hyp1f1(-2, 1, x), 1 - 2 * x + x * x / 2, 1e-13)
        np.testing.assert_allclose(hyp2f1(1.5, 2, 2, x), (1 - x) ** -1.5, 1e-13)
        log = np.where(x == 0, 1, -np.log1p(-x) / np.where(x == 0, 1, x))
        np.testing.assert_allclose(hyp2f1(1, 1, 2, x), log, 1e-13)
        # By mpmath.
        np.testing.assert_allclose(hyp1f1(50, 3, x)[0], 1.5508725018781806e-13)
        np.testing.assert_allclose(hyp2f1(1, 2, 3, 20 * x)[1], 0.225227213941371, 1e-12)


def test_special_cases() -> None:
    inf, nan = np.inf, np.nan
    rows = [
        (1.0, -1.0, 1.0, inf),
        (-1.0, -2.0, 1.0, 1.5),
        (1.0, 0.0, 1.0, inf),
        (0.5, 2.0, 0.0, 1),
        (inf, 1.0, 1.0, nan),
        (1.0, 2.0, nan, nan),
        (1.0, 2.0, -inf, 0),
    ]
    *args, expected = np.array(rows, np.float32).T
    np.testing.assert_allclose(hyp1f1(*args), expected, 1e-6, 1e-30)
    rows = [
        (1.0, 2.0, 3.0, 1.0, inf),
        (1.0, 2.0, 4.0, 1.0, 3),
        (1.0, 1.0, 2.0, 1.5, inf),
        (-3.0, 2.0, 5.0, 7.0, -17.2),
        (1.0, 2.0, -1.0, 0.3, inf),
        (-2.0, 2.0, -5.0, 0.3, 1.267),
        (0.0, 1.0, 1.0, 3.0, 1),
        (1.0, 2.0, inf, 0.3, nan),
    ]
    *args, expected = np.array(rows, np.float32).T
    np.testing.assert_allclose(hyp2f1(*args), expected, 1e-5)
    for function, count in ((hyp1f1, 3), (hyp2f1, 4)):
        with pytest.raises(DtypeError, match="real"):
            function(*[1.0] * (count - 1), 1j)
        for x in (fnp.ones((0, 2), np.float16), fnp.ones((0, 2))):
            out = fxflow.eval_shape(function, *[x] * count)
            assert out.shape == (0, 2) and out.dtype == x.dtype


@pytest.mark.parametrize(
    ("args", "count"), [((1.5, 2.5, -3.0), 3), ((1.2, 0.7, 2.3, 0.8), 4)]
)
def test_derivatives_by_all(args: Any, count: int) -> None:
    function, theirs = [(hyp1f1, want.hyp1f1), (hyp2f1, want.hyp2f1)][count - 3]
    with fxflow.config.override(x64=True):
        slopes = fxflow.grad(function, tuple(range(count)))(*args)
        for i, slope in enumerate(slopes):
            h = 1e-5 * np.eye(count)[i]
            rise = theirs(*(args + h)) - theirs(*(args - h))
            assert float(slope) == pytest.approx(rise / 2e-5, 1e-7)


# Where a series ends that of a neighbour does not; a = b; and between two steps.
ENDING = [
    (-2.0, 1.3, 4.5),
    (3.0, 1.0, -0.5),
    (0.0, 0.7, 1.0),
    (-2.0, 1.3, 0.7, -3.0),
    (-1.0, -3.0, -1.5, 3.0),
    (0.5, 0.5, 0.5, -0.9),
]


@pytest.mark.parametrize("args", sample(ENDING, 2, "ends of hypergeometric series"))
def test_derivatives_where_series_end(args: Any) -> None:
    function = (hyp1f1, hyp2f1)[len(args) - 3]
    with fxflow.config.override(x64=True):
        at, way = np.array(args), np.linspace(1.0, 0.7, len(args))
        slope = fxflow.jvp(function, args, tuple(way))[1]
        rise = function(*(at + 1e-5 * way)) - function(*(at - 1e-5 * way))
        assert float(slope) == pytest.approx(float(rise) / 2e-5, 1e-6)
        same = (0.0, 0.0, 1.0) if len(args) == 3 else (0.0, 2.0, 0.0, 0.5)
        assert fxflow.grad(function, len(args) - 1)(*same) == 0
    assert np.allclose(fxflow.grad(fxflow.grad(hyp1f1, 0), 2)(1.5, 2.0, 0.0), 0.5)


SECOND = [
    (args, argnum, way)
    for args in ((1.5, 2.5, -3.0), (1.2, 0.7, 2.3, 0.8))
    for argnum in (0, len(args) - 1)
    for way in ("grad", "jacfwd")
]


@pytest.mark.parametrize(
    ("args", "argnum", "way"), sample(SECOND, 2, "hypergeometric functions")
)
def test_second_derivatives(args: Any, argnum: int, way: str) -> None:
    function = (hyp1f1, hyp2f1)[len(args) - 3]
    with fxflow.config.override(x64=True):
        # In both modes and mixed, under vmap.
        first = lambda *args: fxflow.grad(function, 0)(*args)
        h = 1e-5 * np.eye(len(args))[argnum]
        rise = first(*(args + h)) - first(*(args - h))
        second = getattr(fxflow, way)(first, argnum)
        got = fxflow.vmap(second)(*np.array(args)[:, None])
        assert float(got[0]) == pytest.approx(float(rise) / 2e-5, 1e-6)
