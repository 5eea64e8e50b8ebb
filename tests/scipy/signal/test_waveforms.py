"""Waves beside SciPy's."""

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import signal

T = np.linspace(-1.7, 8.9, 41)


@pytest.mark.parametrize("method", ["linear", "quadratic", "logarithmic", "hyperbolic"])
def test_chirps_agree_with_scipy(method: str) -> None:
    with fxflow.config.override(x64=True):
        for f0, f1 in ((1.0, 3.0), (4.0, 2.0), (2.0, 2.0)):
            for options in ({"vertex_zero": False}, {"phi": 30, "complex": True}):
                got = signal.chirp(abs(T), f0, 10.0, f1, method, **options)
                expected = want.chirp(abs(T), f0, 10.0, f1, method, **options)
                np.testing.assert_allclose(got, expected, 1e-9, 1e-9)
        slope = fxflow.grad(lambda f: signal.chirp(1.0, f, 10.0, 2.0, method))(2.0)
        assert np.isfinite(slope)


def test_waves_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for part in (0.0, 0.3, 1.0, 2.0):
            got = signal.sawtooth(T, part)
            np.testing.assert_allclose(got, want.sawtooth(T, part), 1e-9, 1e-9)
            np.testing.assert_allclose(signal.square(T, part), want.square(T, part))
        assert np.isfinite(fxflow.vmap(fxflow.grad(signal.sawtooth))(T)).all()


def test_pulses_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for options in ({}, {"retquad": True}, {"retquad": True, "retenv": True}):
            got = signal.gausspulse(T / 10, 5.0, 0.4, **options)
            expected = want.gausspulse(T / 10, 5.0, 0.4, **options)
            np.testing.assert_allclose(np.stack(got), np.stack(expected), 1e-9, 1e-12)
        got = signal.gausspulse("cutoff", 5.0)
        np.testing.assert_allclose(got, want.gausspulse("cutoff", 5.0))
    for args in ((4,), (5, "mid"), ((3, 4), "mid"), ((3, 3), 2), ((3, 4), (0, -1))):
        got = signal.unit_impulse(*args)
        np.testing.assert_array_equal(got, want.unit_impulse(*args))


def test_bad_waves_are_refused() -> None:
    with pytest.raises(ArgumentError, match="method"):
        signal.chirp(T, 1.0, 2.0, 3.0, "cubic")
    with pytest.raises(ArgumentError, match="bw must be positive"):
        signal.gausspulse(T, bw=-1.0)
    with pytest.raises(ArgumentError, match="cutoff"):
        signal.gausspulse("never")
    with pytest.raises(ArgumentError, match="idx"):
        signal.unit_impulse(4, "end")
    with pytest.raises(AxisError, match="idx"):
        signal.unit_impulse(4, 4)


def test_sweeps_of_polynomials_agree_with_scipy() -> None:
    t = np.linspace(0, 2, 30)
    with fxflow.config.override(x64=True):
        for poly in ([0.5, -1.0, 2.0], np.poly1d([1.0, 0.0]), [3.0]):
            got = signal.sweep_poly(t, poly, 30.0)
            np.testing.assert_allclose(got, want.sweep_poly(t, poly, 30.0), 1e-9, 1e-9)
        # The phase 2π c t has the slope 2π t.
        slope = fxflow.grad(lambda c: signal.sweep_poly(0.3, c)[()])(np.array([2.0]))
        assert float(slope[0]) == pytest.approx(-np.sin(1.2 * np.pi) * 0.6 * np.pi)
    with pytest.raises(ShapeError, match="poly"):
        signal.sweep_poly(t, np.ones((2, 2)))


def test_shift_registers_agree_with_scipy() -> None:
    rng = np.random.default_rng(23)
    for nbits in (2, 5, 8, 12):
        state = rng.integers(0, 2, nbits)
        state[0] = 1
        for s in (None, state):
            for length in (None, 0, 3, nbits, 100):
                got = signal.max_len_seq(nbits, s, length)
                expected = want.max_len_seq(nbits, s, length)
                for one, other in zip(got, expected, strict=True):
                    assert one.dtype == other.dtype
                    np.testing.assert_array_equal(one, other)
    got, expected = (
        f(5, None, 40, [2, 3, 5]) for f in (signal.max_len_seq, want.max_len_seq)
    )
    np.testing.assert_array_equal(got[0], expected[0])
    for call, words in (
        (lambda: signal.max_len_seq(33), "nbits"),
        (lambda: signal.max_len_seq(3, np.zeros(3)), "not all 0"),
        (lambda: signal.max_len_seq(3, taps=[4]), "taps"),
    ):
        with pytest.raises(ArgumentError, match=words):
            call()
