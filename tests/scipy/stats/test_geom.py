"""The distribution geom beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_geom() -> None:
    suite.check("geom", np.array([0.05, 0.5, 0.9]), discrete=True)
