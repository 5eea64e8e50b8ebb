"""Estimated densities beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.stats import gaussian_kde

RNG = np.random.default_rng(0)
LINE, PLANE = RNG.normal(size=12), RNG.normal(size=(2, 12))
WEIGHTS = RNG.uniform(0.1, 1, 12)


@pytest.mark.parametrize("data", [LINE, PLANE], ids=["line", "plane"])
@pytest.mark.parametrize("method", [None, "silverman", 0.7])
def test_density(data: Any, method: Any) -> None:
    points = RNG.normal(size=(np.atleast_2d(data).shape[0], 5))
    with fxflow.config.override(x64=True):
        for weights in (None, WEIGHTS):
            ours = gaussian_kde(data, method, weights)
            want = scipy.stats.gaussian_kde(data, method, weights)
            np.testing.assert_allclose(ours(points), want(points), 1e-8)
            np.testing.assert_allclose(ours.logpdf(points), want.logpdf(points), 1e-8)
            np.testing.assert_allclose(ours.covariance, want.covariance, 1e-8)
            np.testing.assert_allclose(ours.inv_cov, want.inv_cov, 1e-7)
            assert float(ours.neff) == pytest.approx(want.neff)


def test_integrals() -> None:
    with fxflow.config.override(x64=True):
        ours, want = gaussian_kde(LINE), scipy.stats.gaussian_kde(LINE)
        got = float(ours.integrate_box_1d(-0.5, np.inf))
        assert got == pytest.approx(want.integrate_box_1d(-0.5, np.inf))
        other = gaussian_kde(LINE[:6] + 1), scipy.stats.gaussian_kde(LINE[:6] + 1)
        got = float(ours.integrate_kde(other[0]))
        assert got == pytest.approx(want.integrate_kde(other[1]))
        plane, oracle = gaussian_kde(PLANE), scipy.stats.gaussian_kde(PLANE)
        mean, cov = np.array([0.2, -0.1]), np.array([[1, 0.3], [0.3, 2]])
        got = float(plane.integrate_gaussian(mean, cov))
        assert got == pytest.approx(oracle.integrate_gaussian(mean, cov))
        with pytest.raises(ShapeError):
            plane.integrate_box_1d(0, 1)
        with pytest.raises(ShapeError):
            ours.integrate_kde(plane)
        with pytest.raises(ShapeError):
            plane(np.zeros((3, 4)))


def test_boxes_marginals_and_widths() -> None:
    low, high = np.array([-0.5, -np.inf]), np.array([1.0, 0.4])
    with fxflow.config.override(x64=True):
        ours = gaussian_kde(PLANE, 0.6, WEIGHTS)
        want = scipy.stats.gaussian_kde(PLANE, 0.6, WEIGHTS)
        got = ours.integrate_box(low, high, maxpts=4096)
        oracle = want.integrate_box(low, high, rng=np.random.default_rng(0))
        np.testing.assert_allclose(got, oracle, 2e-3)
        assert float(ours.covariance_factor()) == 0.6
        for part in (1, [1], [1, 0]):
            points = RNG.normal(size=(np.size(part), 4))
            found = ours.marginal(part)(points)
            np.testing.assert_allclose(found, want.marginal(part)(points), 1e-8)
        want.set_bandwidth("silverman")
        other = ours.set_bandwidth("silverman")
        np.testing.assert_allclose(other.covariance, want.covariance, 1e-8)
        assert float(ours.factor) == 0.6
        line = gaussian_kde(LINE)
        got = line.integrate_box(-0.5, np.inf)
        np.testing.assert_allclose(got, line.integrate_box_1d(-0.5, np.inf), 1e-9)
        slope = fxflow.grad(lambda h: ours.integrate_box(low, h))(high)
        step = np.array([0, 1e-5])
        ends = [float(ours.integrate_box(low, high + s * step)) for s in (1, -1)]
        np.testing.assert_allclose(slope[1], (ends[0] - ends[1]) / 2e-5, 1e-5)
    with pytest.raises(ShapeError, match="corners must be"):
        ours.integrate_box(np.zeros(3), np.ones(3))
    with pytest.raises(ArgumentError, match="dimensions must be different"):
        ours.marginal([0, 0])


def test_a_pytree_to_draw_from() -> None:
    kde = gaussian_kde(PLANE.astype(np.float32), weights=WEIGHTS.astype(np.float32))
    drawn = fxflow.jit(lambda kde: kde.resample(random.key(0), (4000,)))(kde)
    assert drawn.shape == (2, 4000)
    mean = (PLANE * WEIGHTS).sum(1) / WEIGHTS.sum()
    np.testing.assert_allclose(np.asarray(drawn).mean(1), mean, atol=0.1)
    assert kde.resample(random.key(0)).shape == (2,)
    slope = fxflow.grad(lambda x: gaussian_kde(x).logpdf(x).sum())(PLANE[0])
    assert np.isfinite(slope).all()


def test_invalid_data_bandwidths_and_weights_are_refused() -> None:
    with pytest.raises(ArgumentError):
        gaussian_kde(np.zeros(1))
    with pytest.raises(ArgumentError):
        gaussian_kde(LINE, "wide")
    with pytest.raises(ShapeError):
        gaussian_kde(LINE, weights=WEIGHTS[:3])
