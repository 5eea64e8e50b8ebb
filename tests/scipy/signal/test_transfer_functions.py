"""Forms of filters beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import signal

B, A = want.ellip(4, 1.0, 40.0, 0.3)
ZPK = want.ellip(5, 1.0, 40.0, [0.3, 0.6], "bandstop", output="zpk")
SOS = want.butter(5, [0.1, 0.4], "bandpass", output="sos")


def close(got: Any, expected: Any) -> None:
    for one, other in zip(got, expected, strict=True):
        one, other = np.atleast_1d(one), np.atleast_1d(other)
        assert one.shape == other.shape
        if np.iscomplexobj(one):
            one, other = np.sort_complex(one), np.sort_complex(other)
        np.testing.assert_allclose(one, other, 1e-6, 1e-9)


def test_forms_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        b, a = np.asarray(B), np.asarray(A)
        close(signal.tf2zpk(b, a), want.tf2zpk(b, a))
        close(signal.tf2zpk([0.0, 2.0, 1.0], [1.0, 0.5]), ([-0.5], [-0.5], 2.0))
        close(signal.zpk2tf(*ZPK), want.zpk2tf(*ZPK))
        close(signal.sos2tf(SOS), want.sos2tf(SOS))
        close(signal.sos2zpk(SOS), want.sos2zpk(SOS))
        for pairing in (None, "nearest", "keep_odd"):
            close(signal.zpk2sos(*ZPK, pairing), want.zpk2sos(*ZPK, pairing))
            close(signal.tf2sos(b, a, pairing), want.tf2sos(b, a, pairing))
        real = signal.zpk2tf([0.5 + 1j], [0.2], 3.0)
        assert real[0].dtype == np.complex128 and real[1].dtype == np.float64


def test_traced_forms() -> None:
    with fxflow.config.override(x64=True):
        close(fxflow.jit(signal.sos2tf)(SOS), want.sos2tf(SOS))
        close(fxflow.jit(signal.sos2zpk)(SOS), want.sos2zpk(SOS))
        close(fxflow.jit(signal.tf2zpk)(B, A), want.tf2zpk(B, A))
        slope = fxflow.grad(lambda p: signal.zpk2tf(p, p, 2.0)[1][2])(
            np.array([0.5, 0.25])
        )
        close([slope], [[0.25, 0.5]])  # of the roots' product
    with pytest.raises(ConcretizationError, match="zpk2sos: which roots"):
        fxflow.jit(signal.zpk2sos)(*ZPK)


def test_bad_forms_are_refused() -> None:
    with pytest.raises(ArgumentError, match="conjugate pairs"):
        signal.zpk2sos([0.5 + 1j], [0.5], 1.0)
    with pytest.raises(ArgumentError, match="pairing"):
        signal.zpk2sos(*ZPK, "far")
    with pytest.raises(ArgumentError, match="minimal"):
        signal.zpk2sos(*ZPK, "minimal")
    with pytest.raises(ArgumentError, match="not 0"):
        signal.tf2zpk([1.0], [0.0])
    with pytest.raises(ShapeError, match="sos must be"):
        signal.sos2tf(np.ones((2, 5)))
    with pytest.raises(ShapeError, match="z must be a vector"):
        signal.zpk2tf(np.ones((2, 2)), [1.0], 1.0)
