"""Pole placement beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.signal import place_poles

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 2))
REAL = np.array([-1.0, -2.5, -0.3, -4.0])
PAIRS = np.array([-1 + 1j, -3.0, -1 - 1j, -0.5])


@pytest.mark.filterwarnings("ignore:Convergence was not reached")
@pytest.mark.parametrize("poles", [REAL, PAIRS], ids=["real", "pairs"])
def test_gains_agree_with_scipy(poles: np.ndarray) -> None:
    with fxflow.config.override(x64=True):
        for b in (B, B[:, :1], np.eye(4)):
            ours, theirs = place_poles(A, b, poles), want.place_poles(A, b, poles)
            np.testing.assert_allclose(ours.gain_matrix, theirs.gain_matrix)
            np.testing.assert_allclose(ours.computed_poles, theirs.computed_poles)
            np.testing.assert_allclose(ours.requested_poles, theirs.requested_poles)
            closed = A - b @ ours.gain_matrix
            np.testing.assert_allclose(closed @ ours.X, ours.X * ours.requested_poles)
        ours = place_poles(A, B[:, :1], poles)
        got = fxflow.jit(place_poles)(A, B[:, :1], poles)
        np.testing.assert_allclose(got.gain_matrix, ours.gain_matrix, 1e-7)
        knv = want.place_poles(A, B, REAL, "KNV0", maxiter=5)
        np.testing.assert_allclose(
            place_poles(A, B, REAL, "KNV0", maxiter=5).gain_matrix, knv.gain_matrix
        )


def test_poles_stay_where_they_are_asked_for() -> None:
    with fxflow.config.override(x64=True):
        way = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 2)), RNG.normal(size=4)
        for b in (B, B[:, :1]):
            m = b.shape[1]
            gain = lambda a, b, p: place_poles(a, b, p).gain_matrix
            ways = (way[0], way[1][:, :m], way[2])
            k, dk = fxflow.jvp(gain, (A, b, REAL), ways)
            for e in (1e-5, -1e-5):
                moved = A + e * way[0] - (b + e * ways[1]) @ (k + e * dk)
                got = np.sort(np.linalg.eigvals(np.asarray(moved)).real)
                np.testing.assert_allclose(got, np.sort(REAL + e * way[2]), 1e-7)
        run = lambda p: (place_poles(A, B[:, :1], p).gain_matrix ** 2).sum()
        slope = fxflow.jit(fxflow.grad(run))(REAL)
        ends = [float(run(REAL + e * way[2])) for e in (1e-6, -1e-6)]
        rise = (ends[0] - ends[1]) / 2e-6
        assert float((slope * way[2]).sum()) == pytest.approx(rise, 1e-4)


def test_bad_arguments_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: place_poles(A, B, REAL, "no"), "method"),
        (ArgumentError, lambda: place_poles(A, B, REAL, maxiter=0), "maxiter"),
        (ArgumentError, lambda: place_poles(A, B, REAL + [1j, 0, 0, 0]), "conj"),
        (ArgumentError, lambda: place_poles(A, B, np.ones(4)), "repeated"),
        (ShapeError, lambda: place_poles(A, B, REAL[:3]), "n poles"),
        (ShapeError, lambda: place_poles(A, B[:3], REAL), "n poles"),
        (TypeError, lambda: place_poles(A * 1j, B, REAL), "real"),
        (ConcretizationError, lambda: fxflow.jit(place_poles)(A, B, REAL), "one input"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
