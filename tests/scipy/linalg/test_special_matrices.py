"""Special matrices against SciPy."""

import numpy as np
import pytest
import scipy.linalg as want

from fxflow import config
from fxflow.errors import ShapeError
from fxflow.scipy import linalg
from tests.numpy.oracle import same

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)).astype(np.float32)
Z = (A + 1j * RNG.normal(size=A.shape)).astype(np.complex64)
H = (Z @ Z.conj().T + np.eye(4)).astype(np.complex64)
S = (A @ A.T + np.eye(4)).astype(np.float32)
B = RNG.normal(size=(4, 3)).astype(np.float32)


def test_special_matrices() -> None:
    assert same(want.block_diag(A, B, 2.0, B[0]), linalg.block_diag(A, B, 2.0, B[0]))
    assert same(want.toeplitz(B[0], A[0]), linalg.toeplitz(B[0], A[0]))
    assert same(want.toeplitz(Z[0]), linalg.toeplitz(Z[0]))
    with pytest.raises(ShapeError):
        linalg.toeplitz(A)
    with pytest.raises(ShapeError):
        linalg.block_diag(np.ones((2, 2, 2)))


def test_block_diag_of_nothing_is_of_the_default_float() -> None:
    assert linalg.block_diag().dtype == np.float32
    with config.override(x64=True):
        assert linalg.block_diag().dtype == np.float64
        assert linalg.block_diag().shape == (1, 0)


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (2, 2), (0, 2)])
def test_matrices_of_singular_values(shape: tuple[int, int]) -> None:
    s = np.arange(1.0, 1 + min(shape))
    got = linalg.diagsvd(s, *shape)
    np.testing.assert_array_equal(got, want.diagsvd(s, *shape))
    with pytest.raises(ShapeError, match="diagsvd: s must have"):
        linalg.diagsvd(np.ones(4), *shape)
