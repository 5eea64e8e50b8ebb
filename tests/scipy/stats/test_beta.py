"""The distribution beta beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_beta() -> None:
    suite.check("beta", np.array([0.5, 1, 2.5, 40]), np.array([0.3, 1, 7]))
