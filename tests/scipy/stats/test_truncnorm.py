"""The distribution truncnorm beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_truncnorm() -> None:
    suite.check("truncnorm", np.array([-9, -2, 0.5, 8]), np.array([-5, 1, 9, np.inf]))
