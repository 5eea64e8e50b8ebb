"""Cosine transforms beside SciPy's."""

import numpy as np
import pytest
import scipy.fft as want

import fxflow
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import fft

X = np.random.default_rng(0).normal(size=(3, 5, 4))


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_transforms_agree_with_scipy(kind: int, norm: str | None) -> None:
    with fxflow.config.override(x64=True):
        for n, axis in [(None, -1), (7, 1), (2, 0), (3, -2)]:
            for name in ("dct", "idct"):
                ours, theirs = getattr(fft, name), getattr(want, name)
                expected = theirs(X, kind, n, axis, norm)
                got = ours(X, kind, n, axis, norm)
                np.testing.assert_allclose(got, expected, 0, 1e-12)
        for s, axes in [(None, None), ((4, 6), None), ((4, 3), (0, 2)), (None, (1,))]:
            for name in ("dctn", "idctn"):
                ours, theirs = getattr(fft, name), getattr(want, name)
                expected = theirs(X, kind, s, axes, norm)
                got = ours(X, kind, s, axes, norm)
                np.testing.assert_allclose(got, expected, 0, 1e-12)


def test_the_jacobian_is_the_matrix_of_the_transform() -> None:
    with fxflow.config.override(x64=True):
        matrix = fxflow.jacrev(fxflow.jit(fft.dct))(X[0, :, 0])
        np.testing.assert_allclose(matrix, want.dct(np.eye(5), axis=0), 0, 1e-12)
        z = X + 1j * X[::-1]
        np.testing.assert_allclose(fft.dct(z), want.dct(z), 0, 1e-12)
    for dtype in ("float16", "bfloat16", "float32"):
        x = fxflow.numpy.asarray(X, dtype)
        assert fft.dct(x).dtype == dtype
    assert fft.dct(np.arange(4)).dtype == np.float32


def test_invalid_types_lengths_and_axes_are_refused() -> None:
    for args in [(X, 5), (X, 2, 0), (X, 1, 1), (X, 2, None, -1, "wide")]:
        with pytest.raises(ArgumentError):
            fft.dct(*args)
    with pytest.raises(AxisError):
        fft.dct(X, axis=3)
    with pytest.raises(ShapeError):
        fft.dctn(X, s=(2, 2), axes=(0,))
