"""Shapes, arcs and tables of distances beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.spatial as want

import fxflow
from fxflow import numpy as fnp
from fxflow.compat.jax.test_util import check_grads
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import spatial

RNG = np.random.default_rng(3)
RUNS = pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])


@pytest.fixture(autouse=True)
def wide() -> Any:
    with fxflow.config.override(x64=True):
        yield


@RUNS
def test_procrustes(run: Any) -> None:
    for m, d, k in ((4, 2, 2), (6, 3, 3), (5, 3, 2)):
        a, b = RNG.normal(size=(m, d)), RNG.normal(size=(m, k))
        expected = want.procrustes(a, np.pad(b, [(0, 0), (0, d - k)]))
        for got, theirs in zip(run(spatial.procrustes)(a, b), expected, strict=True):
            np.testing.assert_allclose(got, theirs, 1e-10, 1e-12)
    assert np.isnan(spatial.procrustes(np.ones((3, 2)), a[:3, :2])[2])
    check_grads(lambda a, b: spatial.procrustes(a, b)[2], (a, b), 1)
    with pytest.raises(ShapeError, match=r"got f64\[5,2\] and f64\[5,3\]"):
        spatial.procrustes(b, a)


@RUNS
def test_geometric_slerp(run: Any) -> None:
    for d in (2, 3, 5):
        a, b = RNG.normal(size=(2, d))
        a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
        for t in (0.0, 0.3, np.linspace(0, 1, 5)):
            for end in (b, a):
                got = run(spatial.geometric_slerp)(a, end, t)
                # Between a point and itself SciPy's has an axis more.
                expected = want.geometric_slerp(a, end, t).reshape(got.shape)
                np.testing.assert_allclose(got, expected, 1e-12, 1e-12)
    check_grads(spatial.geometric_slerp, (a, b, np.array([0.2, 0.7])), 2)
    still = fxflow.jacobian(lambda t: spatial.geometric_slerp(a, a, t))(0.4)
    np.testing.assert_allclose(still, np.zeros(5), atol=1e-15)
    slope = fxflow.jacobian(lambda e: spatial.geometric_slerp(a, e, 0.25))(a)
    assert np.isfinite(slope).all()
    assert np.isnan(spatial.geometric_slerp(a, -a, 0.5)).all()
    with pytest.raises(ShapeError, match="vectors of one length"):
        spatial.geometric_slerp(a, b[:3], 0.5)
    with pytest.raises(ArgumentError, match="two coordinates"):
        spatial.geometric_slerp(a[:1], b[:1], 0.5)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
def test_minkowski(p: float) -> None:
    x, y = RNG.normal(size=(4, 3)), RNG.normal(size=(5, 3))
    for name in ("minkowski_distance", "minkowski_distance_p"):
        function, theirs = getattr(spatial, name), getattr(want, name)
        for a, b in ((x, x[::-1]), (x, y[0]), (x[:, None], y)):
            np.testing.assert_allclose(function(a, b, p), theirs(a, b, p), 1e-12)
    got = fxflow.jit(lambda x, y: spatial.distance_matrix(x, y, p))(x, y)
    np.testing.assert_allclose(got, want.distance_matrix(x, y, p), 1e-12)
    check_grads(lambda x, y: spatial.distance_matrix(x, y, p), (x, y), 2)
    flat = fxflow.grad(lambda x: fnp.sum(spatial.distance_matrix(x, x, p)))(x)
    assert np.isfinite(flat).all()
    assert spatial.distance_matrix(x[:0], y, p).shape == (0, 5)


def test_wrong_distances() -> None:
    x = np.ones((2, 3))
    with pytest.raises(ArgumentError, match=r"p must be at least 1, got 0.5"):
        spatial.minkowski_distance(x, x, 0.5)
    with pytest.raises(ShapeError, match=r"got f64\[2,3\] and f64\[2,2\]"):
        spatial.distance_matrix(x, x[:, :2])
    with pytest.raises(ShapeError, match="takes vectors"):
        spatial.minkowski_distance_p(1.0, x)
