"""Balanced matrices and real forms, against LAPACK's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ShapeError
from fxflow.scipy import linalg

RNG = np.random.default_rng(9)
MATRICES = [
    RNG.normal(size=(5, 5)) * 10.0 ** RNG.integers(-5, 5, size=(5, 5)),
    np.triu(RNG.normal(size=(5, 5))),
    np.array([[1, 0, 0], [1e4, 2, 3e-3], [1, 1e3, 1.0]]),
    RNG.normal(size=(4, 4)) * (1 + 1j) * np.array([1e8, 1, 1e-8, 1]),
    np.zeros((2, 2)),
]


@pytest.mark.parametrize("a", MATRICES)
@pytest.mark.parametrize("permute", [True, False])
def test_balanced_matrices(a: np.ndarray, permute: bool) -> None:
    want, turn = scipy.linalg.matrix_balance(a, permute=permute)
    with fxflow.config.override(x64=True):
        got, mine = linalg.matrix_balance(a, permute=permute)
        _, (scales, order) = linalg.matrix_balance(a, permute=permute, separate=True)
        whole = np.diag(scales)[np.argsort(order)]
    np.testing.assert_allclose(got, want, 1e-12)
    np.testing.assert_allclose(mine, turn)
    np.testing.assert_array_equal(whole, mine)


def test_balanced_batches_and_derivatives() -> None:
    a = np.stack([MATRICES[0], MATRICES[1]])
    with fxflow.config.override(x64=True):
        both = fxflow.jit(linalg.matrix_balance)(a)
        one = linalg.matrix_balance(a[0])
        np.testing.assert_array_equal(both[0][0], one[0])
        # A similar matrix has the same trace of its square.
        square = lambda a: fnp.trace((lambda b: b @ b)(linalg.matrix_balance(a)[0]))
        slope = fxflow.grad(square)(MATRICES[2])
        np.testing.assert_allclose(slope, 2 * MATRICES[2].T, 1e-12)
    assert linalg.matrix_balance(np.zeros((0, 0)))[0].shape == (0, 0)


@pytest.mark.parametrize("n", [1, 4, 7])
def test_real_forms(n: int) -> None:
    a = RNG.normal(size=(n, n))
    w, v = np.linalg.eig(a)
    want = scipy.linalg.cdf2rdf(w, v)
    with fxflow.config.override(x64=True):
        got = linalg.cdf2rdf(w, v)
        batch = linalg.cdf2rdf(np.stack([w, w]), np.stack([v, v]))
    np.testing.assert_allclose(got[0], want[0], 1e-12, 1e-14)
    np.testing.assert_allclose(got[1], want[1], 1e-12, 1e-14)
    np.testing.assert_allclose(a @ np.asarray(got[1]), got[1] @ got[0], 1e-9, 1e-10)
    np.testing.assert_array_equal(batch[1][1], got[1])


def test_real_forms_need_fitting_shapes() -> None:
    with pytest.raises(ShapeError, match="cdf2rdf: w must be"):
        linalg.cdf2rdf(np.ones(2), np.eye(3))
