"""Pools of adjacent violators: against SciPy's, and the checker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize

from fxflow import kernels
from fxflow.kernels.gallery.pools import ascending_blocks
from fxflow.scipy.optimize.isotonic import _blocks

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("kind", ["noise", "descending", "ascending"])
def test_blocks_are_those_of_scipy(kind: str) -> None:
    values = RNG.normal(size=23).astype("float32")
    values = {"noise": values, "descending": -np.sort(values)}.get(
        kind, np.sort(values)
    )
    weights = RNG.uniform(0.5, 2, 23).astype("float32")

    def run(values: Any, weights: Any) -> Any:
        return ascending_blocks(values, weights, reference=_blocks)

    begins, labels, count, x, totals = kernels.check(run, values, weights)
    exact = scipy.optimize.isotonic_regression(values, weights=weights)
    want = exact.blocks
    np.testing.assert_allclose(x, exact.x, 1e-5, 1e-6)
    np.testing.assert_allclose(totals[: len(want) - 1], exact.weights, 1e-5)
    assert begins.tolist() == [*want[:-1], *[23] * (24 - len(want))]
    assert (
        labels.tolist() == (np.searchsorted(want, np.arange(23), "right") - 1).tolist()
    )
    assert int(count) == len(want) - 1
