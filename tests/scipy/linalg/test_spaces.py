"""Least squares, pseudoinverses, bases and angles against SciPy."""

import numpy as np
import pytest
import scipy.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(27)
TALL = RNG.normal(size=(6, 4))
DEFICIENT = np.concatenate([TALL[:, :2], TALL[:, :2]], axis=1)


def test_least_squares() -> None:
    b = RNG.normal(size=(6, 2))
    with fxflow.config.override(x64=True):
        got = linalg.lstsq(TALL, b)
        for mine, theirs in zip(got, scipy.linalg.lstsq(TALL, b), strict=True):
            np.testing.assert_allclose(mine, theirs, 1e-10)
    with pytest.raises(ArgumentError, match="lapack_driver"):
        linalg.lstsq(TALL, b, lapack_driver="best")


def test_pseudoinverses() -> None:
    square = DEFICIENT.T @ DEFICIENT
    with fxflow.config.override(x64=True):
        for given in ({}, {"atol": 1.5}, {"rtol": 0.1}):
            got, rank = linalg.pinv(DEFICIENT, return_rank=True, **given)
            want = scipy.linalg.pinv(DEFICIENT, return_rank=True, **given)
            np.testing.assert_allclose(got, want[0], atol=1e-12)
            assert int(rank) == want[1]
        for lower in (True, False):
            triangle = np.tril(square) if lower else np.triu(square)
            got = linalg.pinvh(triangle, lower=lower)
            np.testing.assert_allclose(got, scipy.linalg.pinvh(square), atol=1e-11)


def test_bases_of_range_and_kernel() -> None:
    with fxflow.config.override(x64=True):
        basis = np.asarray(linalg.orth(DEFICIENT))
        kernel = np.asarray(linalg.null_space(DEFICIENT))
        assert basis.shape == (6, 2) and kernel.shape == (4, 2)
        np.testing.assert_allclose(DEFICIENT @ kernel, 0, atol=1e-13)
        np.testing.assert_allclose(basis @ (basis.T @ DEFICIENT), DEFICIENT, 1e-12)
        traced = fxflow.jit(lambda a: linalg.null_space(a, rank=2))(DEFICIENT)
        assert traced.shape == (4, 2)
        with pytest.raises(ConcretizationError, match="argument A of orth"):
            fxflow.jit(linalg.orth)(DEFICIENT)


def test_angles() -> None:
    with fxflow.config.override(x64=True):
        near = TALL[:, :2] + 1e-9 * RNG.normal(size=(6, 2))
        for other in (near, RNG.normal(size=(6, 3)), TALL[:, :1]):
            got = linalg.subspace_angles(TALL[:, :2], other)
            want = scipy.linalg.subspace_angles(TALL[:, :2], other)
            np.testing.assert_allclose(got, want, 1e-6, 1e-14)
    with pytest.raises(ShapeError, match="rows"):
        linalg.subspace_angles(TALL, np.ones((5, 1)))


def test_procrustes_and_its_slope_at_equal_values() -> None:
    b = RNG.normal(size=(6, 4))
    with fxflow.config.override(x64=True):
        turn, scale = linalg.orthogonal_procrustes(TALL, b)
        want, size = scipy.linalg.orthogonal_procrustes(TALL, b)
        np.testing.assert_allclose(turn, want, atol=1e-12)
        assert float(scale) == pytest.approx(size)
        of = lambda x: fnp.sum(linalg.orthogonal_procrustes(x, np.eye(3))[0] ** 3)
        assert np.isfinite(fxflow.grad(of)(np.eye(3))).all()


def test_products_of_columns() -> None:
    a, b = np.arange(6).reshape(2, 3), np.arange(9).reshape(3, 3)
    np.testing.assert_array_equal(
        linalg.khatri_rao(a, b), scipy.linalg.khatri_rao(a, b)
    )
    with pytest.raises(ShapeError, match="columns"):
        linalg.khatri_rao(a, b[:, :2])
