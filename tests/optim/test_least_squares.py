"""Nonnegative least squares, compared with SciPy's."""

import numpy as np
import pytest
from scipy.optimize import nnls as reference

import fxflow
from fxflow.errors import ShapeError
from fxflow.optim import nnls

RNG = np.random.default_rng(0)
A = RNG.normal(size=(6, 4)).astype("f")
B = RNG.normal(size=(6, 3)).astype("f")


def test_solutions_match_scipy() -> None:
    want = np.stack([reference(A, b)[0] for b in B.T], 1)
    np.testing.assert_allclose(nnls(A, B, 300), want, atol=1e-4)
    one = fxflow.jit(lambda b: nnls(A, b, 300, unroll=2, L=np.linalg.norm(A, 2) ** 2))
    np.testing.assert_allclose(fxflow.vmap(one, 1, 1)(B), want, atol=1e-4)


def test_the_gradient_is_that_of_the_free_variables() -> None:
    slope = fxflow.grad(lambda b: nnls(A, b, 300).sum())(B[:, 0])
    some = np.asarray(nnls(A, B[:, 0], 300)) > 0
    want = np.linalg.pinv(A[:, some]).sum(0)  # the others stay 0
    np.testing.assert_allclose(slope, want, atol=1e-3)


def test_zero_matrices_and_zero_steps_give_zeros() -> None:
    assert nnls(np.zeros((2, 3), "f"), np.ones(2, "f"), 5).tolist() == [0, 0, 0]
    assert nnls(A, B[:, 0], 0).tolist() == [0] * 4


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"A must be float\[m, n\], got f32\[4\]"):
        nnls(A[0], B, 3)
    with pytest.raises(ShapeError, match=r"b must be float\[6\] or .*got f32\[2,3\]"):
        nnls(A, B[:2], 3)
