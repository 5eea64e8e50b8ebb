"""The distribution t beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_t() -> None:
    suite.check("t", np.array([0.5, 1, 3, 50, 1e6, np.inf]))
