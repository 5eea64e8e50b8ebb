"""Smooth paths of rotations beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.spatial.transform as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.spatial.transform import Rotation, RotationSpline

RNG = np.random.default_rng(0)
TIMES = np.cumsum(RNG.random(8) + 0.3)
VECTORS = RNG.normal(size=(8, 3))


@pytest.mark.parametrize("n", [2, 3, pytest.param(8, marks=pytest.mark.slow)])
def test_paths_agree_with_scipy(n: int) -> None:
    t, v = TIMES[:n], VECTORS[:n]
    at = np.linspace(t[0] - 0.2, t[-1] + 0.2, 15)
    with fxflow.config.override(x64=True):
        ours = RotationSpline(t, Rotation.from_rotvec(v))
        theirs = want.RotationSpline(t, want.Rotation.from_rotvec(v))
        np.testing.assert_allclose(
            ours(at).as_matrix(), theirs(at).as_matrix(), 1e-8, 1e-9
        )
        for order in (1, 2):
            np.testing.assert_allclose(ours(at, order), theirs(at, order), 1e-7, 1e-8)
            got, expected = (f(t[0] + 0.1, order) for f in (ours, theirs))
            np.testing.assert_allclose(got, expected, 1e-7, 1e-8)


def test_still_rotations() -> None:
    still = RotationSpline(TIMES, Rotation.identity(8))
    assert not np.asarray(still(TIMES, 2)).any()
    assert float(abs(still(TIMES).magnitude()).max()) == 0


@pytest.mark.slow
def test_paths_have_derivatives() -> None:
    with fxflow.config.override(x64=True):

        def run(v: Any) -> Any:
            path = RotationSpline(TIMES[:4], Rotation.from_rotvec(v))
            return (path(TIMES[0] + 0.9, 2) ** 2).sum()

        way = RNG.normal(size=(4, 3))
        ends = [float(run(VECTORS[:4] + e * way)) for e in (1e-6, -1e-6)]
        slope = fxflow.jit(fxflow.grad(run))(VECTORS[:4])
        rise = (ends[0] - ends[1]) / 2e-6
        assert float((slope * way).sum()) == pytest.approx(rise, 1e-5)


def test_bad_times_are_refused() -> None:
    turns = Rotation.from_rotvec(VECTORS)
    path = RotationSpline(TIMES[:2], turns[:2])
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: RotationSpline(TIMES[:3], turns), "for 8"),
        (ShapeError, lambda: RotationSpline(TIMES[:1], turns[:1]), "two"),
        (ArgumentError, lambda: RotationSpline(TIMES[::-1], turns), "ascending"),
        (ArgumentError, lambda: path(0.5, 3), "order"),
        (ShapeError, lambda: path(TIMES[None]), "one axis"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
