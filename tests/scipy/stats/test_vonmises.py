"""The distribution vonmises beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_vonmises() -> None:
    suite.check("vonmises", np.array([0.1, 1, 30]))
