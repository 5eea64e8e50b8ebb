"""Samples and options that tests of statistical tests share."""

import numpy as np

_RNG = np.random.default_rng(35)
X = _RNG.normal(size=(3, 11))
Y = _RNG.normal(size=(3, 9)) + 0.4
W = _RNG.normal(size=(3, 13)) * 1.5
P = _RNG.normal(size=(3, 9))
# With a nan.
HOLED = Y.copy()
HOLED[1, 2] = np.nan
# With equal elements.
TIED = [np.round(2 * v) for v in (X, Y, W, P)]
SIDES = ("two-sided", "less", "greater")
POLICIES = ("propagate", "omit")
