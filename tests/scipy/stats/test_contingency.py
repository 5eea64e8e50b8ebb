"""Functions of tables of counts beside SciPy's."""

import numpy as np
import pytest
import scipy.stats.contingency as oracle

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from fxflow.scipy.stats import contingency
from tests.scipy.stats.samples import SIDES

TABLE = np.array([[7, 15], [58, 47]])
A, B = np.array([1, 2, 1, 1, 2, 5]), np.array([5, 5, 6, 6, 6, 9])


def test_margins_and_frequencies() -> None:
    for got, want in zip(
        contingency.margins(TABLE), oracle.margins(TABLE), strict=True
    ):
        np.testing.assert_array_equal(got, want)
    want = oracle.expected_freq(TABLE)
    np.testing.assert_allclose(contingency.expected_freq(TABLE), want, 1e-6)


@pytest.mark.parametrize("method", ["cramer", "tschuprow", "pearson"])
def test_association(method: str) -> None:
    with fxflow.config.override(x64=True):
        for corrected in (False, True):
            want = oracle.association(TABLE, method, corrected)
            got = contingency.association(TABLE, method, corrected)
            np.testing.assert_allclose(got, want, 1e-12)


def test_crosstab() -> None:
    for levels in (None, (None, [6, 5])):
        want = oracle.crosstab(A, B, levels=levels)
        got = contingency.crosstab(A, B, levels=levels)
        np.testing.assert_array_equal(got.count, want.count)
        for ours, theirs in zip(got.elements, want.elements, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    sparse = contingency.crosstab(A, B, sparse=True).count
    np.testing.assert_array_equal(sparse.todense(), oracle.crosstab(A, B).count)
    counted = fxflow.jit(lambda a: contingency.crosstab(a, levels=([1, 2],)).count)(A)
    assert counted.tolist() == [3, 2]
    with pytest.raises(ConcretizationError, match="give `levels`"):
        fxflow.jit(lambda a: contingency.crosstab(a).count)(A)


@pytest.mark.parametrize(
    "counts", [(27, 122, 44, 487), (0, 10, 3, 12), (3, 10, 0, 12), (0, 10, 0, 12)]
)
def test_relative_risk(counts: tuple[int, ...]) -> None:
    want = oracle.relative_risk(*counts)
    with fxflow.config.override(x64=True):
        got = contingency.relative_risk(*counts)
        np.testing.assert_allclose(got.relative_risk, want.relative_risk, 1e-12)
        want = want.confidence_interval(0.9)
        np.testing.assert_allclose(got.confidence_interval(0.9), want, 1e-10)


TABLES = [
    [[7, 15], [58, 472]],
    [[0, 15], [58, 472]],
    [[7, 0], [58, 472]],
    [[3, 0], [0, 5]],
    [[0, 0], [3, 5]],
]


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_odds_ratio(table: list[list[int]]) -> None:
    given = np.array(table)
    for kind in ("conditional", "sample"):
        with fxflow.config.override(x64=True), np.errstate(all="ignore"):
            want = oracle.odds_ratio(given, kind=kind)
            got = contingency.odds_ratio(given, kind=kind)
            np.testing.assert_allclose(got.statistic, want.statistic, 1e-8)
            for side in SIDES:
                np.testing.assert_allclose(
                    got.confidence_interval(0.9, side),
                    want.confidence_interval(0.9, side),
                    1e-7,
                    err_msg=side,
                )


def test_what_is_refused() -> None:
    with pytest.raises(DtypeError, match="observed must be integers"):
        contingency.association(TABLE * 1.0)
    with pytest.raises(ShapeError, match="must have two axes"):
        contingency.association(A)
    with pytest.raises(ShapeError, match="rows of one length"):
        contingency.crosstab(A, B[:3])
    with pytest.raises(ArgumentError, match="levels for each of 2 factors, got 1"):
        contingency.crosstab(A, B, levels=([1],))
    with pytest.raises(ArgumentError, match="sparse takes two factors, got 1"):
        contingency.crosstab(A, sparse=True)
    with pytest.raises(DtypeError, match="takes integers"):
        contingency.relative_risk(1.5, 3, 1, 3)
    with pytest.raises(ShapeError, match="takes a 2 × 2 table"):
        contingency.odds_ratio(np.ones((2, 3), int))
    with pytest.raises(ArgumentError, match="kind must be one of"):
        contingency.odds_ratio(TABLE, kind="other")
