"""`jax.lax.linalg`."""

from __future__ import annotations

import enum
from typing import Any

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


def __getattr__(name: str) -> Any:
    found = by_name(name)
    return _absent(name) if found is None else found
