"""Matrices that are known by their size. Their numbers are computed exactly."""

from __future__ import annotations

import math

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import DTypeLike

_docs = shared("""
    Args:
      n: how many rows and columns.

    Raises:
      ArgumentError: `n` is negative.
      ...

    Source: `scipy.linalg.{name}`.
""")


def _size(name: str, n: int) -> int:
    n = integer(name, "n", n)
    if n < 0:
        raise ArgumentError(f"{name}: n must not be negative, got {n}")
    return n


def _of_rows(n: int, rows: list[list[float]]) -> Array:
    values = np.array(rows, np.float64).reshape(n, n)
    return fnp.asarray(values, dtypes.default_float())


@_docs
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Returns the matrix of the discrete Fourier transform.

    Args:
      scale: None; "sqrtn", divided by √n, which makes it unitary; "n", divided by n.
      dtype: complex; None is the default one.

    Returns:
      Complex array[n, n].

    Raises:
      ArgumentError: `n` is negative, or there is no such scale.
      DtypeError: `dtype` is not complex.

    Example:
      >>> dft(2)
      Array([[ 1.+0.j,  1.+0.j],
             [ 1.+0.j, -1.+0.j]], dtype=complex64)
    """
    n = _size("dft", n)
    if scale not in (None, "sqrtn", "n"):
        raise ArgumentError(f'dft: scale must be None, "sqrtn" or "n", got {scale!r}')
    to = dtypes.default_complex() if dtype is None else dtypes.dtype(dtype)
    if not dtypes.is_complex(to):
        raise DtypeError(f"dft: dtype must be complex, got {to}")
    # Quarters of a turn are exact.
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    quarters, rest = np.divmod(4 * turns, max(n, 1))
    angle = rest * (np.pi / (2 * max(n, 1)))
    values = (np.cos(angle) - 1j * np.sin(angle)) * np.array([1, -1j, -1, 1j])[quarters]
    size = {None: 1.0, "sqrtn": math.sqrt(n), "n": float(n)}[scale]
    return fnp.asarray(values / (size or 1), to)


@_docs
def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Returns the Sylvester matrix of 1 and -1 with orthogonal rows.

    Args:
      n: a power of 2.
      dtype: dtype of the result.

    Returns:
      Array[n, n].

    Raises:
      ArgumentError: `n` is no power of 2.

    Example:
      >>> hadamard(2)
      Array([[ 1,  1],
             [ 1, -1]], dtype=int32)
    """
    n = integer("hadamard", "n", n)
    if n < 1 or n & (n - 1):
        raise ArgumentError(f"hadamard: n must be a power of 2, got {n}")
    out = np.ones((1, 1))
    while out.shape[0] < n:
        out = np.block([[out, out], [out, -out]])
    return fnp.asarray(out, dtypes.dtype(dtype))


@_docs
def helmert(n: int, full: bool = False) -> Array:
    """Returns Helmert's orthogonal matrix, without its first row of equal elements.

    Args:
      full: whether with that row.

    Returns:
      Float array[n - 1, n], or [n, n].

    Raises:
      ArgumentError: `n` is not positive.

    Example:
      >>> helmert(2).round(3)
      Array([[ 0.707, -0.707]], dtype=float32)
    """
    n = _size("helmert", n)
    if n < 1:
        raise ArgumentError(f"helmert: n must be positive, got {n}")
    rows = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    rows[0] = 1
    k = np.arange(n)
    rows /= np.sqrt(np.where(k == 0, n, k * (k + 1)))[:, None]
    return fnp.asarray(rows if full else rows[1:], dtypes.default_float())


@_docs
def hilbert(n: int) -> Array:
    """Returns the Hilbert matrix: 1 / (i + j + 1).

    Returns:
      Float array[n, n].

    Example:
      >>> hilbert(2)
      Array([[1.        , 0.5       ],
             [0.5       , 0.33333334]], dtype=float32)
    """
    n = _size("hilbert", n)
    return _of_rows(n, [[1 / (i + j + 1) for j in range(n)] for i in range(n)])


@_docs
def invhilbert(n: int, exact: bool = False) -> Array:
    """Returns the inverse of the Hilbert matrix, which is one of integers.

    Args:
      exact: has no effect: numbers are computed exactly, and rounded to floats.

    Returns:
      Float array[n, n].

    Example:
      >>> invhilbert(2)
      Array([[ 4., -6.],
             [-6., 12.]], dtype=float32)
    """
    n = _size("invhilbert", n)
    c = math.comb

    def element(i: int, j: int) -> float:
        size = (
            (i + j + 1) * c(n + i, n - j - 1) * c(n + j, n - i - 1) * c(i + j, i) ** 2
        )
        return float(-size if (i + j) % 2 else size)

    return _of_rows(n, [[element(i, j) for j in range(n)] for i in range(n)])


@_docs
def pascal(n: int, kind: str | None = None, exact: bool = True) -> Array:
    """Returns the Pascal matrix of binomial coefficients.

    Args:
      kind: "symmetric" (or None), "lower" or "upper": a triangle.
      exact: has no effect: numbers are computed exactly, and rounded to floats.

    Returns:
      Float array[n, n].

    Raises:
      ArgumentError: `n` is negative, or the kind is unknown.

    Example:
      >>> pascal(3)
      Array([[1., 1., 1.],
             [1., 2., 3.],
             [1., 3., 6.]], dtype=float32)
    """
    n, kind = _size("pascal", n), _kind("pascal", kind)
    if kind == "symmetric":
        return _of_rows(
            n, [[float(math.comb(i + j, i)) for j in range(n)] for i in range(n)]
        )
    rows = [[float(math.comb(i, j)) for j in range(n)] for i in range(n)]
    out = _of_rows(n, rows)
    return out.T if kind == "upper" else out


@_docs
def invpascal(n: int, kind: str | None = None, exact: bool = True) -> Array:
    """Returns the inverse of the Pascal matrix, which is one of integers.

    Args:
      kind: "symmetric" (or None), "lower" or "upper": a triangle.
      exact: has no effect: numbers are computed exactly, and rounded to floats.

    Returns:
      Float array[n, n].

    Raises:
      ArgumentError: `n` is negative, or the kind is unknown.

    Example:
      >>> invpascal(2)
      Array([[ 2., -1.],
             [-1.,  1.]], dtype=float32)
    """
    n, kind = _size("invpascal", n), _kind("invpascal", kind)
    lower = [[math.comb(i, j) * (-1) ** (i + j) for j in range(n)] for i in range(n)]
    if kind == "symmetric":
        # Lᵀ L in integers, L being the inverse of the lower triangle.
        rows = [
            [float(sum(r[i] * r[j] for r in lower)) for j in range(n)] for i in range(n)
        ]
        return _of_rows(n, rows)
    out = _of_rows(n, [[float(v) for v in row] for row in lower])
    return out.T if kind == "upper" else out


def _kind(name: str, kind: str | None) -> str:
    kind = "symmetric" if kind is None else kind
    if kind not in ("symmetric", "lower", "upper"):
        raise ArgumentError(
            f'{name}: kind must be "symmetric", "lower" or "upper", got {kind!r}'
        )
    return kind
