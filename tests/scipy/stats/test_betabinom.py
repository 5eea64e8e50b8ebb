"""The distribution betabinom beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_betabinom() -> None:
    suite.check(
        "betabinom",
        np.array([1.0, 5, 60]),
        np.array([0.3, 2]),
        np.array([0.5, 3]),
        discrete=True,
    )
