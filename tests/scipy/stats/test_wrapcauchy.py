"""The distribution wrapcauchy beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_wrapcauchy() -> None:
    suite.check("wrapcauchy", np.array([0.05, 0.5, 0.9]))
