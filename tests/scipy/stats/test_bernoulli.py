"""The distribution bernoulli beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_bernoulli() -> None:
    # SciPy has -1 there.
    zero = lambda q, p: q == 0
    suite.check("bernoulli", np.array([0.05, 0.5, 0.9]), discrete=True, ppf=zero)
