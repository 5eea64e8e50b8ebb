"""Feedback that gives a linear system chosen poles."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from fxflow.lax.axes import natural, number
from fxflow.numpy._operands import ArrayLike, promote_inexact


class PlacedPoles(NamedTuple):
    """What `place_poles` returns.

    Attributes:
      gain_matrix: K, float array[m, n].
      computed_poles: the eigenvalues of A - B K, complex array[n].
      requested_poles: the poles asked for, complex array[n], sorted if they are known.
      X: eigenvectors of A - B K in columns, complex array[n, n].
      rtol: how much the method's measure changed in the last step; nan without steps.
      nb_iter: how many steps there were.
    """

    gain_matrix: Array
    computed_poles: Array
    requested_poles: Array
    X: Array
    rtol: float
    nb_iter: int


@library()
def _gain(a: Array, b: Array, poles: Array, g: Array) -> tuple[Array, Array]:
    """Returns the gain G X⁻¹ and X, where A X - X diag(poles) = B G.

    Each G gives a gain that places the poles; with one input all give the same.
    """
    kind = poles.aval.dtype
    eye = fnp.eye(a.aval.shape[0], dtype=kind)
    apart = a.astype(kind)[None] - poles[:, None, None] * eye
    right = fnp.matmul(b.astype(kind), g, precision="highest")
    x = fnp.linalg.solve(apart, right.T[..., None])[..., 0].T
    return fnp.real(fnp.linalg.solve(x.T, g.T).T), x


def _matched(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> list[int]:
    """Returns the places of numbers that are nearest to wanted ones, each once."""
    left = list(range(len(found)))
    out = []
    for value in wanted:
        best = min(left, key=lambda i: abs(found[i] - value))
        left.remove(best)
        out.append(best)
    return out


def place_poles(
    A: ArrayLike,
    B: ArrayLike,
    poles: ArrayLike,
    method: str = "YT",
    rtol: float = 1e-3,
    maxiter: int = 30,
) -> PlacedPoles:
    """Returns the feedback u = -K x that gives a system x' = A x + B u chosen poles.

    With one input the gain is determined. With more the eigenvectors are chosen as
    little parallel as they can be, by SciPy on the host, of arrays that are known (also
    within `grad`).

    Args:
      A: real array-like[n, n].
      B: real array-like[n, m].
      poles: real or complex array-like[n], complex ones in conjugate pairs; none more
        often than the rank of `B`.
      method: "YT", or "KNV0" for real poles.
      rtol: where the search of eigenvectors ends.
      maxiter: of its steps.

    Returns:
      PlacedPoles: `gain_matrix`, `computed_poles`, `requested_poles`, `X`, `rtol` and
      `nb_iter`. The gain has derivatives with respect to `A`, `B` and the poles, with
      which the poles stay where they are asked for.

    Raises:
      ArgumentError: poles are not in pairs, or repeated too often, or the method is
        unknown.
      ConcretizationError: arrays of several inputs are traced by `jit` or `vmap`.
      ImportError: SciPy is not installed, and arrays are known.
      ShapeError: the shapes are incompatible.

    Special cases:
      SciPy's UserWarning says that the search did not end.

      Derivatives are nan where a pole of the system is asked for again.

    Example:
      >>> a, b = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
      >>> place_poles(a, b, np.array([-1.0, -2.0])).gain_matrix.round(3)
      Array([[2., 3.]], dtype=float32)

    Source: `scipy.signal.place_poles`; A. L. Tits and Y. Yang, Globally Convergent
    Algorithms for Robust Pole Assignment by State Feedback, 1996.
    """
    name = "place_poles"
    if method not in ("YT", "KNV0"):
        raise ArgumentError(f'{name}: method must be "YT" or "KNV0", got {method!r}')
    steps, near = natural(name, "maxiter", maxiter), number(name, "rtol", rtol)
    a, b = promote_inexact(name, fnp.asarray(A), fnp.asarray(B))
    p = promote_inexact(name, fnp.asarray(poles), a)[0]
    if dtypes.is_complex(a.aval.dtype):
        raise DtypeError(f"{name}: A and B must be real, got {a.aval}")
    n = a.aval.shape[0] if a.aval.ndim == 2 else 0
    fits = a.aval.shape == (n, n) and b.aval.ndim == 2 and b.aval.shape[0] == n
    if not n or not fits or p.aval.shape != (n,) or not b.aval.shape[1]:
        raise ShapeError(
            f"{name}: expected A[n, n], B[n, m] and n poles, got {a.aval}, {b.aval} "
            f"and {p.aval}"
        )
    p = p.astype(dtypes.to_complex(dtypes.to_real(p.aval.dtype)))
    fixed = [lax.stop_gradient(v) for v in (a, b, p)]
    if any(isinstance(v, Tracer) for v in fixed):
        if b.aval.shape[1] > 1:
            raise ConcretizationError(
                f"{name}: the eigenvectors of several inputs are found on the host, "
                "and arrays are traced: give one input, or call it outside of jit and "
                "vmap"
            )
        gain, x = _gain(a, b, p, fnp.ones((1, n), p.dtype))
        reached = fnp.linalg.eigvals(a - fnp.matmul(b, gain, precision="highest"))
        return PlacedPoles(gain, reached, p, x, float("nan"), 0)
    host = [np.asarray(v, np.complex128 if v is fixed[2] else float) for v in fixed]
    try:
        theirs = importlib.import_module("scipy.signal")
    except ImportError as error:
        raise ImportError(
            f"{name} needs SciPy, which is not installed: pip install scipy"
        ) from error
    wanted = host[2].real if not host[2].imag.any() else host[2]
    try:
        found = theirs.place_poles(host[0], host[1], wanted, method, near, steps)
    except ValueError as error:
        raise ArgumentError(f"{name}: {error}") from None
    values, vectors = np.linalg.eig(host[0] - host[1] @ found.gain_matrix)
    at = _matched(values, found.requested_poles)
    own = vectors[:, at]
    order = np.array(_matched(host[2], found.requested_poles))
    asked = p[order]
    g = fnp.asarray(found.gain_matrix @ own, asked.dtype)
    way = _gain(a, b, asked, g)[0]
    gain = fnp.asarray(found.gain_matrix, a.dtype)
    apart = way - lax.stop_gradient(way)
    gain = gain + fnp.where(fnp.isfinite(way), apart, 0)
    return PlacedPoles(
        gain,
        fnp.asarray(np.asarray(found.computed_poles, complex), asked.dtype),
        asked,
        fnp.asarray(own, asked.dtype),
        float(found.rtol),
        int(found.nb_iter) if np.isfinite(found.nb_iter) else 0,
    )
