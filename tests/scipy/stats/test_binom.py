"""The distribution binom beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_binom() -> None:
    suite.check(
        "binom", np.array([1.0, 5, 60]), np.array([0.05, 0.5, 0.9]), discrete=True
    )
