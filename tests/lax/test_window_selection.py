"""The derivative of a maximum over windows, by positions and axis by axis."""

import numpy as np
import pytest

from fxflow.lax.window_selection import (
    SelectAndGatherAdd,
    SelectAndScatterAdd,
    _transposed_fold,
    give_back,
)
from fxflow.lax.windows import make_window

X = np.random.default_rng(0).normal(size=(6, 7)).astype("f4")


@pytest.mark.parametrize(
    "case",
    [
        ((2, 2), (2, 2), "VALID", None, None),
        ((2, 3), (1, 2), "SAME", None, None),
        ((2, 2), None, ((1, 0), (-1, 2)), (2, 1), (1, 2)),
    ],
)
@pytest.mark.parametrize("greatest", [True, False])
def test_both_ways_agree(case, greatest: bool) -> None:
    window = make_window("test", X.shape, *case)
    params = {"greatest": greatest, "window": window}
    source = SelectAndGatherAdd.evaluate(X, X, **params)
    expected = SelectAndScatterAdd.evaluate(source, X, **params)
    for way in (give_back, _transposed_fold):
        got = way(source, X, greatest, window)
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
