"""Frequency responses beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(3)
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


def test_analog_filters_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        b, a = want.butter(3, [2.0, 5.0], "bandpass", analog=True)
        z, p, k = want.cheby2(4, 30.0, 3.0, analog=True, output="zpk")
        w = RNG.uniform(0.1, 9, 7)
        for worN in (20, None, w):
            close(signal.freqs(b, a, worN), want.freqs(b, a, worN))
            close(signal.freqs_zpk(z, p, k, worN), want.freqs_zpk(z, p, k, worN))
        close([signal.findfreqs(b, a, 9)], [want.findfreqs(b, a, 9)])
        close([signal.findfreqs(z, p, 9, "zp")], [want.findfreqs(z, p, 9, kind="zp")])
        close(fxflow.jit(signal.freqs)(b, a, w), want.freqs(b, a, w))
        for whole, worN in ((False, 16), (True, 9), (False, w / 9)):
            got = signal.freqz_zpk(z / 9, p / 9, k, worN, whole, 5.0)
            close(got, want.freqz_zpk(z / 9, p / 9, k, worN, whole, 5.0))
        # |1 / (1 + s)|² at w = 1 is 1 / (1 + p²), p the pole: slope -2p / (1 + p²)².
        rise = fxflow.grad(
            lambda p: (abs(signal.freqs_zpk([], -p, 1.0, [1.0])[1]) ** 2).sum()
        )(fnp.asarray([2.0]))
        assert float(rise[0]) == pytest.approx(-4 / 25)
    with pytest.raises(ConcretizationError, match="give the frequencies"):
        fxflow.jit(signal.freqs)(b, a)
    with pytest.raises(ArgumentError, match="kind"):
        signal.findfreqs(b, a, 5, "no")
