"""Vector strengths beside SciPy's."""

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(12)


def test_strengths_agree_with_scipy() -> None:
    events = np.arange(20.0) * 1.7 + 0.1 * RNG.normal(size=20)
    with fxflow.config.override(x64=True):
        for period in (1.7, np.array([0.4, 1.7, 3.0]), 2):
            got = signal.vectorstrength(events, period)
            expected = want.vectorstrength(events, period)
            for one, other in zip(got, expected, strict=True):
                assert np.shape(one) == np.shape(other)
                np.testing.assert_allclose(one, other, 1e-9, 1e-12)
        slope = fxflow.grad(lambda p: signal.vectorstrength(events, p)[0])(1.71)
        ends = [want.vectorstrength(events, 1.71 + h)[0] for h in (-1e-6, 1e-6)]
        assert float(slope) == pytest.approx((ends[1] - ends[0]) / 2e-6, 1e-5)


def test_bad_events_are_refused() -> None:
    with pytest.raises(ArgumentError, match="positive"):
        signal.vectorstrength([1.0], 0.0)
    with pytest.raises(ShapeError, match="vectors"):
        signal.vectorstrength(np.ones((2, 2)), 1.0)
