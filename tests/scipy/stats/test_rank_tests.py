"""Tests by ranks beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import HOLED, POLICIES, SIDES, TIED, P, W, X, Y


@pytest.mark.parametrize("side", SIDES)
def test_two_samples(side: str) -> None:
    for policy in POLICIES:
        options: Any = {"axis": 1, "alternative": side, "nan_policy": policy}
        for name in ("ranksums", "mood", "brunnermunzel"):
            same(name, X, HOLED, keepdims=True, **options)
        same("mannwhitneyu", TIED[0], HOLED, method="asymptotic", **options)
        same("wilcoxon", P, HOLED, method="asymptotic", **options)
    for x, y in ((X, Y), TIED[:2], (Y, X)):
        for name in ("ranksums", "mood", "brunnermunzel", "ansari"):
            same(name, x[0], y[0], alternative=side)
        for method in ("auto", "exact", "asymptotic"):
            options = {"alternative": side, "method": method}
            same("mannwhitneyu", x[0], y[0], **options)
            same("mannwhitneyu", x[0], y[0][:7], use_continuity=False, **options)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("zeros", ["wilcox", "pratt", "zsplit"])
def test_signed_ranks(zeros: str, side: str) -> None:
    for method in ("auto", "exact", "asymptotic"):
        for correction in (True, False):
            settings = (zeros, correction, side, method)
            same("wilcoxon", P[0], Y[0], *settings)
            same("wilcoxon", TIED[3][0], TIED[1][0], *settings)
            same("wilcoxon", TIED[2][0], None, *settings)


def test_methods_of_ansari() -> None:
    few, more = X[0], W[0]
    auto = stats.ansari(few, more)
    assert stats.ansari(few, more, method="exact").pvalue == auto.pvalue
    rough = stats.ansari(few, more, method="asymptotic")
    assert rough.statistic == auto.statistic and rough.pvalue != auto.pvalue
    tied = scipy.stats.ansari(TIED[0][0], TIED[2][0])
    found = stats.ansari(TIED[0][0], TIED[2][0], method="asymptotic").pvalue
    np.testing.assert_allclose(found, tied.pvalue, rtol=1e-5)
    with pytest.raises(ArgumentError, match="method"):
        stats.ansari(few, more, method="fast")


def test_large_samples() -> None:
    rng = np.random.default_rng(36)
    x, y = rng.normal(size=60), rng.normal(size=50)
    same("ansari", x, y)
    same("wilcoxon", np.round(3 * x[:30]) + 0.5)
    same("mannwhitneyu", x, y, method="exact")


@pytest.mark.parametrize("policy", POLICIES)
def test_several_samples(policy: str) -> None:
    same("kruskal", X, HOLED, W, axis=1, nan_policy=policy, keepdims=True)
    same("kruskal", *(t[0] for t in TIED[:3]))
    same("friedmanchisquare", P, Y, HOLED, axis=1, nan_policy=policy)
    tied = (TIED[3], TIED[1], np.round(HOLED))
    same("friedmanchisquare", *tied, axis=1, nan_policy=policy)


def test_other_distribution_and_bad_arguments() -> None:
    same("brunnermunzel", X[0], Y[0], distribution="normal")
    for name in ("mannwhitneyu", "wilcoxon"):
        with pytest.raises(ArgumentError, match="asymptotic"):
            getattr(stats, name)(P, Y, nan_policy="omit")
    with pytest.raises(ArgumentError, match="nan_policy"):
        stats.ansari(X[0], Y[0], nan_policy="omit")
    many = fxflow.vmap(lambda x, y: stats.mannwhitneyu(x, y).pvalue)(X, Y)
    got = stats.mannwhitneyu(X, Y, axis=1).pvalue
    np.testing.assert_allclose(many, got, 1e-5)
    with pytest.raises(ShapeError, match="pairs"):
        stats.wilcoxon(X[0], Y[0])
    want = scipy.stats.mannwhitneyu(X[0], Y[0]).pvalue
    np.testing.assert_allclose(got[0], want, 1e-5)
