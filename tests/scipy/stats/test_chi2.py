"""The distribution chi2 beside SciPy's."""

import numpy as np

from tests.scipy.stats import suite


def test_chi2() -> None:
    # SciPy's density has no value at infinity.
    far = lambda x, *_: x == np.inf
    suite.check("chi2", np.array([0.5, 2, 3, 50]), logpdf=far, pdf=far)
