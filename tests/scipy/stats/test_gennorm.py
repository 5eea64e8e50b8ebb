"""The distribution gennorm beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_gennorm() -> None:
    suite.check("gennorm", np.array([0.5, 1, 2, 3.5]), x=suite.X[suite.X != 0])
