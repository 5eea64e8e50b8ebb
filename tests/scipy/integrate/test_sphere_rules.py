"""Lebedev's rules beside SciPy's, and the polynomials that they integrate."""

import numpy as np
import pytest
import scipy.integrate

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy.integrate import lebedev_rule
from fxflow.scipy.integrate.sphere_rules import _table


def test_polynomials_are_integrated_exactly() -> None:
    u = np.random.default_rng(0).normal(size=(3, 4))
    u /= np.linalg.norm(u, axis=0)
    with fxflow.config.override(x64=True):
        for n in _table():
            x, w = map(np.asarray, lebedev_rule(n))
            np.testing.assert_allclose(np.sum(x * x, 0), 1, 1e-14)
            np.testing.assert_allclose(np.sum(w), 4 * np.pi, 1e-14)
            # By the addition theorem, these are all polynomials of degree l.
            t = x.T @ u
            before, now = np.ones_like(t), t
            for degree in range(1, n + 1):
                assert np.max(np.abs(w @ now)) < 3e-14
                more = (2 * degree + 1) * t * now - degree * before
                before, now = now, more / (degree + 1)
            # The next even degree is not exact.
            assert np.max(np.abs(w @ now)) > 1e-6


@pytest.mark.parametrize("n", [3, 13, 27, 131])
def test_rules_are_those_of_scipy(n: int) -> None:
    def ordered(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        rows = np.concatenate([x, w[None]]).T
        return rows[np.lexsort(np.round(rows, 9).T)]

    with fxflow.config.override(x64=True):
        got = ordered(*map(np.asarray, lebedev_rule(n)))
    np.testing.assert_allclose(got, ordered(*scipy.integrate.lebedev_rule(n)), 0, 2e-14)


def test_other_degrees_are_refused() -> None:
    for n in (0, 4, 33, 133):
        with pytest.raises(ArgumentError, match="lebedev_rule: n must be"):
            lebedev_rule(n)
    with pytest.raises(TypeError):
        lebedev_rule(3.5)  # type: ignore[arg-type]
