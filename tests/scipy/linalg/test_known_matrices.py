"""Matrices of a size beside SciPy's."""

import numpy as np
import pytest
import scipy.linalg as want

import fxflow
from fxflow.errors import ArgumentError, DtypeError
from fxflow.scipy import linalg


@pytest.mark.parametrize(
    "name", ["dft", "helmert", "hilbert", "invhilbert", "pascal", "invpascal"]
)
def test_matrices_agree_with_scipy(name: str) -> None:
    with fxflow.config.override(x64=True):
        for n in (1, 2, 3, 6, 11):
            ours, theirs = getattr(linalg, name)(n), getattr(want, name)(n)
            np.testing.assert_allclose(ours, theirs, 1e-12, 1e-13)


def test_kinds_and_scales_agree_with_scipy() -> None:
    for kind in ("lower", "upper", "symmetric"):
        assert (np.asarray(linalg.pascal(5, kind)) == want.pascal(5, kind)).all()
        assert (np.asarray(linalg.invpascal(5, kind)) == want.invpascal(5, kind)).all()
    for scale in ("sqrtn", "n"):
        np.testing.assert_allclose(linalg.dft(6, scale), want.dft(6, scale), atol=1e-6)
    np.testing.assert_allclose(linalg.helmert(4, True), want.helmert(4, True), 1e-6)
    for n in (1, 2, 8):
        assert (np.asarray(linalg.hadamard(n)) == want.hadamard(n)).all()
    assert linalg.hadamard(2, np.float32).dtype == np.float32
    assert linalg.dft(0).shape == linalg.hilbert(0).shape == (0, 0)


def test_invalid_sizes_kinds_and_dtypes_are_refused() -> None:
    for call in [
        lambda: linalg.hadamard(3),
        lambda: linalg.pascal(3, "left"),
        lambda: linalg.dft(3, "m"),
        lambda: linalg.hilbert(-1),
        lambda: linalg.helmert(0),
    ]:
        with pytest.raises(ArgumentError):
            call()
    with pytest.raises(DtypeError):
        linalg.dft(3, dtype=np.float32)
