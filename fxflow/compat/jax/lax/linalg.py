"""`jax.lax.linalg`."""

from __future__ import annotations

import enum
from typing import Any

from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import mirror
from fxflow.compat.jax._primitives import by_name
from fxflow.lax import linalg

__all__ = mirror(globals(), "fxflow.lax.linalg")
_absent: Any = globals()["__getattr__"]


class SvdAlgorithm(enum.Enum):
    """Algorithms of `svd`; the backend's own is taken in any case."""

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class EighImplementation(enum.Enum):
    """Algorithms of `eigh`; the backend's own is taken in any case."""

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class EigImplementation(enum.Enum):
    """Libraries for `eig`; the backend's own is taken in any case."""

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


def svd(x: Any, *, algorithm: SvdAlgorithm | None = None, **options: Any) -> Any:
    """Decomposes matrices; see `fxflow.lax.linalg.svd`.

    Args:
      x: the matrices.
      algorithm: has no effect.
      **options: of `fxflow.lax.linalg.svd`.
    """
    return linalg.svd(x, **options)


def eigh(
    x: Any, *, implementation: EighImplementation | None = None, **options: Any
) -> Any:
    """Returns eigenvectors and eigenvalues; see `fxflow.lax.linalg.eigh`.

    Args:
      x: symmetric or Hermitian matrices.
      implementation: has no effect.
      **options: of `fxflow.lax.linalg.eigh`.
    """
    return linalg.eigh(x, **options)


def eig(
    x: Any,
    *,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
    enable_eigvec_derivs: bool = False,
    **options: Any,
) -> Any:
    """Returns eigenvalues and eigenvectors; see `fxflow.lax.linalg.eig`.

    Args:
      x: square matrices.
      implementation: has no effect.
      use_magma: has no effect.
      enable_eigvec_derivs: has no effect: there are always derivatives.
      **options: of `fxflow.lax.linalg.eig`.
    """
    return linalg.eig(x, **options)


def qdwh(
    x: Any,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Any, Any, Any, Any]:
    """Decomposes a matrix into a unitary and a positive one: x = U H.

    Args:
      x: the matrix, with at least as many rows as columns.
      is_hermitian: has no effect.
      max_iterations: has no effect: the decomposition uses singular values.
      eps: has no effect.
      dynamic_shape: must be None.

    Returns:
      U, H, the number of iterations, 0, and whether they converged, True.

    Raises:
      NotImplementedError: `dynamic_shape` is given.
    """
    if dynamic_shape is not None:
        raise NotImplementedError(
            "fxflow.compat.jax: qdwh of a part of an array: slice the array"
        )
    u, _, vh = linalg.svd(x, full_matrices=False)
    unitary = u @ vh
    positive = vh.conj().T @ u.conj().T @ x
    return (
        unitary,
        (positive + positive.conj().T) / 2,
        fnp.zeros((), int),
        fnp.all(fnp.isfinite(unitary)),
    )


def __getattr__(name: str) -> Any:
    found = by_name(name)
    return _absent(name) if found is None else found
