"""The distribution nbinom beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_nbinom() -> None:
    far = lambda k, *_: k == np.inf
    parameters = np.array([1.0, 2.5, 60]), np.array([0.05, 0.5, 0.9])
    suite.check("nbinom", *parameters, discrete=True, logpmf=far, pmf=far)
