"""Several p-values together, beside SciPy."""

import numpy as np
import pytest

from fxflow.errors import ArgumentError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import POLICIES

RNG = np.random.default_rng(36)

PS = RNG.uniform(size=(3, 6))


@pytest.mark.parametrize(
    "method", ["fisher", "pearson", "mudholkar_george", "tippett", "stouffer"]
)
def test_combined(method: str) -> None:
    holed = PS.copy()
    holed[0, 1] = np.nan
    for policy in POLICIES:
        same("combine_pvalues", holed, method, axis=1, nan_policy=policy)


def test_weights_and_false_discoveries() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    same("combine_pvalues", PS[0, :3], "stouffer", weights)
    same("false_discovery_control", PS, axis=1)
    same("false_discovery_control", PS, axis=None, method="by")
    assert np.isnan(stats.false_discovery_control(np.array([0.1, 2.0]))).any()
    with pytest.raises(ArgumentError, match="method"):
        stats.combine_pvalues(PS, "mean")
