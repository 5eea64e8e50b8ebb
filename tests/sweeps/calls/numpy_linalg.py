"""Calls of `fxflow.numpy.linalg` and `fxflow.numpy.fft`."""

from __future__ import annotations

from tests.sweeps.catalogue import (
    A,
    Call,
    call,
    each,
    inexact,
    invertible,
    like,
    positive_definite,
)

L = "numpy.linalg"
F = "numpy.fft"


def fn(name: str, *args, **options) -> Call:
    return call(f"{L}.{name}", *args, **options)


LINALG = [
    *each(L, "det inv slogdet cond pinv matrix_rank", invertible(3, 3)),
    *each(L, "det inv slogdet", invertible(2, 3, 3), note="batch"),
    *each(L, "cholesky", positive_definite(3, 3)),
    *each(L, "eigvalsh", positive_definite(3, 3)),
    *each(L, "eigh", positive_definite(3, 3), numpy=""),
    *each(L, "eigvals eig", invertible(3, 3), numpy="", differentiable=False),
    *each(L, "svd", inexact(3, 4), compute_uv=False),
    *each(L, "svd qr", inexact(3, 4), numpy="", note="factors", differentiable=False),
    *each(L, "svdvals", inexact(3, 4)),
    *each(L, "pinv matrix_rank", inexact(3, 4), note="wide"),
    *each(L, "solve", invertible(3, 3), inexact(3, 2)),
    *each(L, "lstsq", inexact(5, 3), inexact(5), numpy=""),
    *each(L, "matrix_power", A(3, 3), 3),
    *each(L, "matrix_power", invertible(3, 3), -2, note="negative"),
    *each(L, "norm", A(3, 4)),
    *[
        fn("norm", A(4), ord=o, note=f"vector{o}")
        for o in (None, 0, 1, 2, 3, float("inf"), -float("inf"))
    ],
    *[
        fn("norm", inexact(3, 4), ord=o, note=f"matrix{o}")
        for o in (1, -1, 2, -2, "fro", "nuc", float("inf"))
    ],
    *each(L, "vector_norm", A(3, 4), axis=1),
    *each(L, "matrix_norm", A(2, 3, 4)),
    *each(L, "matmul", A(3, 4), A(4, 2)),
    *each(L, "outer", A(3), A(4)),
    *each(L, "cross", A(4, 3), A(4, 3)),
    *each(L, "vecdot", A(3, 4), A(3, 4)),
    *each(L, "tensordot", A(3, 4), A(4, 2), axes=1),
    *each(L, "multi_dot", [A(3, 4), A(4, 2), A(2, 5)]),
    *each(L, "matrix_transpose diagonal trace", A(2, 3, 4)),
    *each(L, "tensorinv", invertible(4, 4), ind=1),
    *each(L, "tensorsolve", invertible(4, 4), inexact(4)),
]

FFT = [
    *each(F, "fft ifft hfft fft2 ifft2 fftn ifftn irfft irfft2 irfftn", A(3, 4)),
    *each(F, "rfft ihfft rfft2 rfftn", A(3, 4, kinds="biuf")),
    *each(F, "fft ifft", A(3, 4), n=6, axis=0, norm="ortho", note="padded"),
    *each(F, "fftn", A(3, 4), s=(2, 5), axes=(0, 1), norm="forward", note="sizes"),
    *each(F, "fftshift ifftshift", A(3, 4)),
    *each(F, "fftfreq rfftfreq", 5, d=0.5),
]

CALLS = like("numpy.linalg", LINALG) + like("numpy.fft", FFT)
