"""Small matrix helpers and the text of library calls."""

import numpy as np
import pytest

from fxflow.core.arrays.aval import Aval
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.linalg import library

X = np.arange(1, 7, dtype="f4").reshape(2, 3)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: library.lower_part(X), np.tril(X)),
        (lambda: library.lower_part(X, strict=True), np.tril(X, -1)),
        (lambda: library.upper_part(X), np.triu(X)),
        (lambda: library.upper_part(X, strict=True), np.triu(X, 1)),
        (lambda: library.diagonal(X[:, :2].copy()), [1, 5]),
        (lambda: library.corner(X, 1, 2), X[:1, :2]),
        (lambda: library.corner(X, 3, 3), np.pad(X, [(0, 1), (0, 0)])),
        (lambda: library.identity((2, 3), np.float32), np.eye(2, 3)),
        (lambda: library.as_columns(X[0], (2, 3)), X[[0, 0]]),
        (lambda: library.as_rows(X[:, 0].copy(), (2, 3)), X[:, [0, 0, 0]]),
        (lambda: library.adjoint(X * np.complex64(1j)), X.T * -1j),
        (lambda: library.matmul(X, library.swapped(X)), X @ X.T),
    ],
)
def test_helpers_agree_with_numpy(got, expected) -> None:
    np.testing.assert_allclose(got(), expected)


def test_names_of_routines() -> None:
    assert library.real_name("syevd/heevd", np.dtype("f4")) == "syevd"
    assert library.real_name("syevd/heevd", np.dtype("c8")) == "heevd"
    assert library.lapack_target("getrf", np.dtype("f8")) == "lapack_dgetrf_ffi"


@pytest.mark.parametrize(
    ("shape", "dtype", "square", "error", "message"),
    [
        ((3,), "f4", False, ShapeError, r"takes matrices \[..., m, n\], got f32\[3\]"),
        ((2, 3), "f4", True, ShapeError, r"takes square matrices .* got f32\[2,3\]"),
        ((3, 3), "f2", True, DtypeError, r"takes float32, .* got f16\[3,3\]"),
        ((3, 3), "i4", True, DtypeError, r"takes floating point.* got i32\[3,3\]"),
    ],
)
def test_operands_that_are_not_floating_matrices_are_refused(
    shape, dtype, square, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        library.require_matrices("test", Aval(shape, np.dtype(dtype)), square=square)
