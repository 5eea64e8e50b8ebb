"""Samplers at extreme parameters: in tails, tiny, huge, zero and infinite.

Each is compared with its distribution function by Kolmogorov's and Smirnov's statistic,
in 32 and 64 bits; what has no distribution there has a value of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import random
from tests.sweeps.sampling import sample

INF = np.inf
COUNT = 3000

#: A sampler, its parameters, and the distribution.
CASES: dict[str, tuple[Callable[..., Any], tuple[float, ...], Any]] = {}


def _add(name: str, law: Callable[..., Any], *parameters: tuple[float, ...]) -> None:
    for given in parameters:
        function = getattr(random, name)
        CASES[f"{name}{given}"] = (function, given, law(*given))


def _stable(alpha: float, beta: float) -> Any:
    """The stable distributions that have other names."""
    if alpha == 2:
        return scipy.stats.norm(scale=2**0.5)
    named = {-1.0: scipy.stats.levy_l, 0.0: scipy.stats.cauchy, 1.0: scipy.stats.levy}
    return named[beta]()


_add(
    "truncated_normal",
    scipy.stats.truncnorm,
    *((-2.0, 2.0), (2.9, 3.5), (8.0, 9.0), (6.0, INF), (-INF, -6.5), (30.0, 30.1)),
    *((-40.0, -39.0), (-1.0, INF), (7.5, 7.6)),
)
_add("gamma", scipy.stats.gamma, (0.2,), (1e4,), (1e8,))
_add("chisquare", scipy.stats.chi2, (0.3,), (1e7,))
_add("beta", scipy.stats.beta, (0.1, 0.2), (1e-2, 2.0), (1e4, 3e4), (1e4, 1.0))
_add("t", scipy.stats.t, (0.5,), (1e8,), (INF,))
_add("pareto", scipy.stats.pareto, (0.3,), (100.0,))
_add("wald", scipy.stats.invgauss, (1e-3,), (1.0,), (1e4,), (1e6,))
_add("f", lambda a, b: scipy.stats.f(a, b), (0.5, 0.5), (1e7, 3.0))
_add("generalized_normal", scipy.stats.gennorm, (0.3,), (50.0,))
_add("rayleigh", lambda s: scipy.stats.rayleigh(scale=s), (1e-30,), (1e30,))
_add("weibull_min", lambda s, c: scipy.stats.weibull_min(c, scale=s), (2.0, 0.05))
_add("levy_stable", _stable, (2.0, 0.3), (1.0, 0.0), (0.5, 1.0), (0.5, -1.0))
_add("lognormal", lambda s: scipy.stats.lognorm(s), (1e-3,), (8.0,))


@pytest.mark.parametrize("case", sample(list(CASES), 40, "sampler_extremes"))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distribution(case: str, dtype: str) -> None:
    function, parameters, law = CASES[case]
    with fxflow.config.override(x64=True):
        draw = lambda key, *p: function(key, *p, (COUNT,), dtype)
        given = [np.asarray(p, dtype) for p in parameters]
        drawn = np.asarray(fxflow.jit(draw)(random.key(7), *given))
        eager = np.asarray(draw(random.key(7), *map(float, parameters)))
    assert drawn.dtype == eager.dtype == dtype
    np.testing.assert_allclose(drawn, eager, 1e-4, np.finfo(dtype).tiny)
    wide = drawn.astype(np.float64)
    # What 32 bits cannot tell apart is spread again.
    spacing = np.spacing(drawn).astype(np.float64)
    wide += np.random.default_rng(0).uniform(-0.5, 0.5, COUNT) * spacing
    # Or is at an end of the range.
    unclear = (drawn == 0) | ((drawn == 1) & (law.support()[1] == 1))
    if unclear.any():
        least, most = law.cdf([np.finfo(dtype).tiny, 1 - np.finfo(dtype).eps])
        share = least + (1 - most if law.support()[1] == 1 else 0)
        assert abs(unclear.mean() - share) < 5 * np.sqrt(share / COUNT) + 5 / COUNT
        kept = (wide >= np.finfo(dtype).tiny) & (wide <= 1 - np.finfo(dtype).eps)
        wide, ends = wide[kept], (least, most)
        found = scipy.stats.kstest(
            wide, lambda x: (law.cdf(x) - ends[0]) / (ends[1] - ends[0])
        )
    else:
        found = scipy.stats.kstest(wide, law.cdf)
    assert found.pvalue > 1e-4, found


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_numbers_are_below_the_upper_bound(dtype: str) -> None:
    with fxflow.config.override(x64=True):
        kind = fxflow.numpy.dtype(dtype)
        info = fxflow.numpy.finfo(kind)
        one = np.asarray(1, kind)
        after = np.nextafter(one, np.asarray(2, kind))
        most = float(info.max)
        bounds = [(1, float(after)), (1, 1.5), (-most, most), (-most / 2, most)]
        for low, high in [*bounds, (0, float(info.tiny)), (0.1, 0.3)]:
            for run in (fxflow.jit, lambda f: f):
                draw = lambda key, low, high: random.uniform(
                    key, (COUNT,), dtype, low, high
                )
                drawn = np.asarray(run(draw)(random.key(1), low, high), np.float64)
                bottom, top = (
                    np.asarray(b, kind).astype(np.float64) for b in (low, high)
                )
                assert np.all((drawn >= bottom) & (drawn < top)), (low, high)


def test_parameters_without_a_spread() -> None:
    key, n = random.key(0), (50,)
    parts = np.asarray(random.dirichlet(key, np.array([0.0, 1.0, 2.0], "f4"), n))
    assert np.all(parts[:, 0] == 0)
    np.testing.assert_allclose(parts.sum(-1), 1, 1e-6)
    parts = np.asarray(random.dirichlet(key, np.array([INF, 1.0, INF], "f4"), n))
    np.testing.assert_array_equal(parts, np.tile(np.float32([0.5, 0, 0.5]), (50, 1)))
    assert np.isnan(random.dirichlet(key, np.zeros(2, "f4"), n)).all()
    for a, b, want in ((0.0, 1.0, 0), (1.0, 0.0, 1), (INF, 1.0, 1), (1.0, INF, 0)):
        assert np.all(np.asarray(random.beta(key, a, b, n)) == want)
    assert np.all(np.asarray(random.gamma(key, 0.0, n)) == 0)
    assert np.all(np.asarray(random.poisson(key, INF, n)) == np.iinfo("i4").max)
    assert np.all(np.asarray(random.poisson(key, 0.0, n)) == 0)
    least = np.asarray(random.truncated_normal(key, 1e10, INF, n))
    assert np.all(least == np.nextafter(np.float32(1e10), np.float32(INF)))
    drawn = np.asarray(random.wald(key, INF, (COUNT,)))
    assert scipy.stats.kstest(drawn, scipy.stats.levy.cdf).pvalue > 1e-4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rayleigh_numbers_are_finite(dtype: str) -> None:
    drawn = random.rayleigh(random.key(0), 1.0, (20_000,), dtype)
    assert np.isfinite(np.asarray(drawn, np.float32)).all()


def test_a_tail_moves_with_its_bounds() -> None:
    keys = random.split(random.key(0), 200)
    draw = lambda key, a, b: random.truncated_normal(key, a, b, (), "float64")
    with fxflow.config.override(x64=True):
        first, last = np.float64(8), np.float64(9)
        h = 1e-6
        for i in (0, 1):
            slope = fxflow.vmap(fxflow.grad(draw, i + 1), (0, None, None))
            move = [h * (i == 0), h * (i == 1)]
            ends = [
                fxflow.vmap(draw, (0, None, None))(
                    keys, first + s * move[0], last + s * move[1]
                )
                for s in (1, -1)
            ]
            rise = (np.asarray(ends[0]) - np.asarray(ends[1])) / (2 * h)
            np.testing.assert_allclose(slope(keys, first, last), rise, 1e-6, 1e-8)
