"""Frequency responses beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

B, A = want.ellip(4, 1.0, 40.0, 0.3)
SOS = want.butter(5, [0.1, 0.4], "bandpass", output="sos")


def close(got: Any, expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, 1e-8, 1e-10)


def test_responses_agree_with_scipy() -> None:
    settings: list[dict[str, Any]] = [
        {},
        {"worN": 33, "whole": True},
        {"worN": 7, "fs": 10.0},
        {"worN": np.array([0.1, 2.0]), "fs": 10.0},
    ]
    with fxflow.config.override(x64=True):
        b, a = np.asarray(B), np.asarray(A)
        for s in settings:
            close(signal.freqz(b, a, **s), want.freqz(b, a, **s))
            close(signal.freqz_sos(SOS, **s), want.freqz_sos(SOS, **s))
            given = {"w" if k == "worN" else k: v for k, v in s.items()}
            got = signal.group_delay((b, a), **given)
            close(got, want.group_delay((b, a), **given))
        last = {"worN": 8, "include_nyquist": True}
        close(signal.freqz(b, a, **last), want.freqz(b, a, **last))


def test_an_edge_is_moved_to_a_level() -> None:
    """The derivative by the edge finds the Butterworth filter of a given response."""

    def loss(edge: Any) -> Any:
        sos = signal.butter(3, edge, output="sos")
        level = abs(signal.freqz_sos(sos, fnp.asarray([1.0]))[1][0])
        return (level - 0.5**0.5) ** 2

    with fxflow.config.override(x64=True):
        edge = fnp.asarray(0.4)
        step = fxflow.jit(lambda w: w - 0.03 * fxflow.grad(loss)(w))
        for _ in range(150):
            edge = step(edge)
        np.testing.assert_allclose(edge, 1 / np.pi, 1e-4)


def test_bad_responses_are_refused() -> None:
    with pytest.raises(ArgumentError, match="worN must be at least 1"):
        signal.freqz([1.0], worN=0)
    with pytest.raises(ShapeError, match="b must be a vector"):
        signal.freqz(np.ones((2, 2)))
    with pytest.raises(ShapeError, match="sos must be"):
        signal.freqz_sos(np.ones((2, 5)))
