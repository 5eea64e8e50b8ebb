"""Responses of systems beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

pytestmark = pytest.mark.filterwarnings("ignore::scipy.signal.BadCoefficients")
RNG = np.random.default_rng(8)
A, B = RNG.normal(size=(3, 3)) - 2 * np.eye(3), RNG.normal(size=(3, 2))
C, D = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 2))
TF = ([1.0, 2.0], [1.0, 3.0, 5.0])
ZPK = ([-1.0], [-2.0, -3.0], 2.0)
ONE = (A, B[:, :1], C[:1], np.zeros((1, 1)))


def close(got: Any, expected: Any, tol: float = 1e-9) -> None:
    for one, other in zip(got, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, tol, tol)


def test_continuous_responses_agree_with_scipy() -> None:
    times = np.linspace(0.3, 4, 37)
    u = RNG.normal(size=(37, 2))
    x0 = RNG.normal(size=3)
    with fxflow.config.override(x64=True):
        for interp in (True, False):
            got = signal.lsim((A, B, C, D), u, times, x0, interp)
            close(got, want.lsim((A, B, C, D), u, times, x0, interp))
        got = signal.lsim((A, B, C, D), None, times, x0)
        close(got, want.lsim((A, B, C, D), None, times, x0))
        got = signal.lsim((A, B, C, D), 0, times[:1], x0)
        close(got, want.lsim((A, B, C, D), 0, times[:1], x0))
        for system in (TF, ZPK, ONE):
            close(signal.step(system), want.step(system))
            close(signal.impulse(system, N=30), want.impulse(system, N=30))
            close(signal.step(system, T=times), want.step(system, T=times))
            for w in (None, np.array([0.1, 2.0, 7.0])):
                close(signal.freqresp(system, w, 50), want.freqresp(system, w, 50))
                close(signal.bode(system, w), want.bode(system, w))
        close(signal.impulse(ONE, x0), want.impulse(ONE, x0[:, None]))
        jitted = fxflow.jit(lambda a: signal.freqresp((a, *ONE[1:]), [0.5, 2.0])[1])
        close([jitted(A)], [want.freqresp(ONE, [0.5, 2.0])[1]], 1e-8)


def test_sampled_responses_agree_with_scipy() -> None:
    u = RNG.normal(size=(9, 2))
    fast = (A / 5, B, C, D, 0.5)
    with fxflow.config.override(x64=True):
        x0 = RNG.normal(size=3)
        close(signal.dlsim(fast, u), want.dlsim(fast, u))
        close(signal.dlsim(fast, u, x0=x0), want.dlsim(fast, u, x0=x0))
        t = np.linspace(0, 8, 9)
        close(signal.dlsim(fast, u, t), want.dlsim(fast, u, t))
        for name in ("dimpulse", "dstep"):
            for system in (fast, (*TF, 0.5)):
                got = getattr(signal, name)(system, n=20)
                expected = getattr(want, name)(system, n=20)
                close(got[:1], expected[:1])
                close(got[1], expected[1])
        for system in ((*TF, 0.5), (*ZPK, 0.5), (*ONE, 0.5)):
            for w in (None, np.array([0.1, 2.0])):
                close(signal.dfreqresp(system, w, 30), want.dfreqresp(system, w, 30))
                close(signal.dbode(system, w, 30), want.dbode(system, w, 30), 1e-7)
        close(
            signal.dfreqresp((*TF, 0.5), n=9, whole=True),
            want.dfreqresp((*TF, 0.5), n=9, whole=True),
        )


def test_responses_under_transforms() -> None:
    times = np.linspace(0, 3, 20)
    with fxflow.config.override(x64=True):
        rates = np.array([0.5, 1.0, 2.0])
        rows = fxflow.vmap(
            lambda r: signal.step(
                (-r * np.eye(1), *np.ones((2, 1, 1)), [[0.0]]), T=times
            )[1]
        )(rates)
        expected = (1 - np.exp(-rates[:, None] * times)) / rates[:, None]
        np.testing.assert_allclose(rows, expected, 1e-9, 1e-9)
        slope = fxflow.grad(
            lambda r: signal.impulse(
                (-r * np.eye(1), *np.ones((2, 1, 1)), [[0.0]]), T=times
            )[1].sum()
        )(1.0)
        assert float(slope) == pytest.approx(float(-(times * np.exp(-times)).sum()))


def test_bad_responses_are_refused() -> None:
    uneven = [0.0, 1.0, 3.0]
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: signal.lsim(TF, [1.0] * 3, uneven), "evenly"),
        (ArgumentError, lambda: signal.step(TF, T=[-1.0, 0.0]), "negative"),
        (ShapeError, lambda: signal.lsim(TF, [1.0] * 2, [0.0, 1.0, 2.0]), "U must"),
        (ShapeError, lambda: signal.lsim(ONE, None, [0.0], [1.0]), "X0"),
        (ShapeError, lambda: signal.step((A, B, C, D)), "one input"),
        (ShapeError, lambda: signal.dstep((A, B[:, :0], C, D[:, :0], 1.0)), "no input"),
        (ArgumentError, lambda: signal.step(signal.dlti(*TF)), "continuous"),
        (ArgumentError, lambda: signal.dstep(signal.lti(*TF)), "sampled"),
        (
            ConcretizationError,
            lambda: fxflow.jit(lambda t: signal.dlsim((*TF, 1.0), t, t))(np.ones(2)),
            "times",
        ),
        (
            ConcretizationError,
            lambda: fxflow.jit(lambda a: signal.freqresp((a, *ONE[1:])))(A),
            "give the frequencies",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
