"""The distribution gamma beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_gamma() -> None:
    # SciPy's density has no value at infinity.
    far = lambda x, *_: x == np.inf
    suite.check("gamma", np.array([0.3, 1, 2.5, 40]), logpdf=far, pdf=far)
