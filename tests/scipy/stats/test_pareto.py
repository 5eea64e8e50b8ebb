"""The distribution pareto beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_pareto() -> None:
    suite.check("pareto", np.array([0.3, 1, 2.5, 40]))
