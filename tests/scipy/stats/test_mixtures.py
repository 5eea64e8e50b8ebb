"""Mixtures, truncated distributions and order statistics beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.errors import ArgumentError
from fxflow.scipy import stats

X = np.array([-3.0, -0.5, 0.2, 1.0, 1.7, 2.9, 4.0, np.nan])
Q = np.array([0.0, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-6, 1.0])
#: Ours, and SciPy's newer distributions, whose methods have other names.
NAMES = {
    "pdf": "pdf",
    "logpdf": "logpdf",
    "cdf": "cdf",
    "logcdf": "logcdf",
    "sf": "ccdf",
    "logsf": "logccdf",
}


def _pairs() -> dict[str, tuple[Any, Any]]:
    ours, theirs = stats.norm(0.5, 1.5), scipy.stats.Normal(mu=0.5, sigma=1.5)
    flat, level = stats.uniform(1.0, 2.0), scipy.stats.Uniform(a=1.0, b=3.0)
    weights = [0.3, 0.7]
    return {
        "mixture": (
            stats.Mixture([ours, flat], weights=weights),
            scipy.stats.Mixture([theirs, level], weights=weights),
        ),
        "truncated": (
            stats.truncate(ours, -1.0, 2.5),
            scipy.stats.truncate(theirs, -1.0, 2.5),
        ),
        "order": (
            stats.order_statistic(ours, r=2, n=5),
            scipy.stats.order_statistic(theirs, r=2, n=5),
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mixture", "truncated", "order"])
def test_beside_scipy(kind: str) -> None:
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        ours, theirs = _pairs()[kind]
        found = fxflow.jit(lambda law: {name: getattr(law, name)(X) for name in NAMES})(
            ours
        )
        for name, other in NAMES.items():
            want = getattr(theirs, other)(X)
            np.testing.assert_allclose(found[name], want, 1e-8, 1e-12)
        low, high = fxflow.jit(lambda law: (law.ppf(Q), law.isf(Q)))(ours)
        # At 0 and 1 SciPy's are where it began to search.
        inner = slice(1, -1)
        np.testing.assert_allclose(low[inner], theirs.icdf(Q)[inner], 1e-7, 1e-9)
        np.testing.assert_allclose(high[inner], theirs.iccdf(Q)[inner], 1e-7, 1e-9)
        np.testing.assert_array_equal([low[0], low[-1]], ours.support())
        np.testing.assert_array_equal([high[-1], high[0]], ours.support())
        np.testing.assert_allclose(ours.support(), theirs.support())
        moments, entropy, third = fxflow.jit(
            lambda law: (law.stats("mvsk"), law.entropy(), law.moment(3))
        )(ours)
        want = (
            *(theirs.mean(), theirs.variance(), theirs.skewness()),
            theirs.kurtosis() - 3
            if kind == "mixture"
            else theirs.kurtosis(convention="excess"),
        )
        np.testing.assert_allclose(moments, want, 1e-6, 1e-8)
        # The density of the mixture jumps, which costs either library digits.
        np.testing.assert_allclose(entropy, theirs.entropy(), 2e-4)
        np.testing.assert_allclose(third, theirs.moment(3, kind="raw"), 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mixture", "truncated", "order"])
def test_under_transformations(kind: str) -> None:
    with fxflow.config.override(x64=True):
        law, _ = _pairs()[kind]
        leaves, structure = fxflow.tree.flatten(law)
        theta = fnp.asarray(leaves, "f8")
        of = lambda v: fxflow.tree.unflatten(structure, list(v))
        # Integers have no derivatives; those of weights are taken one by one.
        count = 2 if kind == "order" else len(leaves)

        def value(v: Any) -> Any:
            return fnp.stack([of(v).logcdf(1.2), of(v).ppf(0.3), of(v).mean()])

        run = fxflow.jit(value)
        slopes = fxflow.jit(fxflow.jacrev(value))(theta)
        for i in range(count):
            step = 1e-5 * (np.arange(len(leaves)) == i)
            want = (np.asarray(run(theta + step)) - run(theta - step)) / 2e-5
            np.testing.assert_allclose(slopes[:, i], want, 1e-4, 1e-6)
        both = fxflow.vmap(lambda v: of(v).logcdf(1.2))(fnp.stack([theta, theta]))
        np.testing.assert_allclose(both, [run(theta)[0]] * 2, 1e-9)
        tail = fxflow.jit(law.logcdf)
        second = fxflow.jit(fxflow.grad(fxflow.grad(law.logcdf)))(1.2)
        ends = [float(tail(1.2 + s)) for s in (1e-4, 0, -1e-4)]
        want = (ends[0] - 2 * ends[1] + ends[2]) / 1e-8
        np.testing.assert_allclose(second, want, 1e-4, 1e-5)


@pytest.mark.slow
def test_parameters_broadcast() -> None:
    law = stats.truncate(stats.norm(np.array([0.0, 1.0, 2.0], "f4")), 0.0, 3.0)
    want = [scipy.stats.truncnorm.mean(-m, 3 - m, loc=m) for m in (0.0, 1.0, 2.0)]
    np.testing.assert_allclose(law.mean(), want, 1e-4)
    assert law.cdf(np.ones((2, 1), "f4")).shape == (2, 3)
    assert law.rvs(random.key(0)).shape == (3,)
    least = stats.order_statistic(stats.expon(), r=np.array([1, 2]), n=2)
    np.testing.assert_allclose(least.mean(), [0.5, 1.5], 1e-4)


@pytest.mark.slow
def test_a_tail_of_a_tail_keeps_its_digits() -> None:
    with fxflow.config.override(x64=True):
        for sign in (1, -1):
            ends = sorted((40.0 * sign, 41.0 * sign))
            law = stats.truncate(stats.norm(), *ends)
            want = scipy.stats.truncnorm(*ends)
            at = np.array([40.001, 40.02, 40.3]) * sign
            np.testing.assert_allclose(law.logpdf(at), want.logpdf(at), 1e-9)
            np.testing.assert_allclose(law.logsf(at), want.logsf(at), 1e-7)
            assert np.isnan(law.ppf(0.5))
            law = stats.truncate(stats.norm(), 0.5 * ends[0], 0.5 * ends[1])
            want = scipy.stats.truncnorm(0.5 * ends[0], 0.5 * ends[1])
            np.testing.assert_allclose(law.ppf(0.5), want.ppf(0.5), 1e-9)
        most = stats.order_statistic(stats.norm(), r=1000, n=1000)
        tail = scipy.stats.norm.logsf(12.0) + np.log(1000)
        np.testing.assert_allclose(most.logsf(12.0), tail, 1e-9)


@pytest.mark.slow
def test_made_of_made_ones_and_samples() -> None:
    inner = stats.truncate(stats.gamma(2.0), 0.5)
    law = stats.Mixture([inner, stats.order_statistic(stats.norm(5.0), r=3, n=3)])
    drawn = np.asarray(law.rvs(random.key(0), (1500,)))
    assert scipy.stats.kstest(drawn, lambda x: np.asarray(law.cdf(x))).pvalue > 1e-3
    mean = float(law.expect(lambda x: x))
    np.testing.assert_allclose(mean, law.mean(), 1e-4)
    below, above = (
        float(law.expect(lambda x: x, ub=3)),
        float(law.expect(lambda x: x, 3)),
    )
    np.testing.assert_allclose(below + above, mean, 1e-3)
    low, high = law.interval(0.8)
    np.testing.assert_allclose(law.cdf(high) - law.cdf(low), 0.8, 1e-4)
    assert repr(inner) == "truncate(gamma(a=2.0, loc=0.0, scale=1.0), lb=0.5, ub=inf)"


def test_what_is_refused() -> None:
    norm = stats.norm()
    with pytest.raises(ArgumentError, match=r"components\[1\] must be a continuous"):
        stats.Mixture([norm, stats.poisson(2.0)])
    with pytest.raises(ArgumentError, match="must be a sequence of distributions"):
        stats.Mixture([])
    with pytest.raises(ArgumentError, match="weights must be 2 numbers"):
        stats.Mixture([norm, norm], weights=[1.0])
    with pytest.raises(ArgumentError, match=r"add to 1, got \[0\.5, 0\.6\]"):
        stats.Mixture([norm, norm], weights=[0.5, 0.6])
    with pytest.raises(ArgumentError, match="X must be a continuous distribution"):
        stats.truncate(stats.norm, 0.0, 1.0)
    with pytest.raises(ArgumentError, match="truncate: lb is"):
        stats.truncate(norm, [0.0], 1.0)
    for r, n in ((0, 3), (4, 3), (1.5, 3)):
        with pytest.raises(ArgumentError, match="integers with 1 ≤ r ≤ n"):
            stats.order_statistic(norm, r=r, n=n)
    assert np.isnan(stats.truncate(norm, 1.0, 0.0).cdf(0.5))
