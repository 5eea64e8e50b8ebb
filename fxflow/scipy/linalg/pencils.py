"""Two matrices brought to triangular form, and unitary matrices cut into four blocks.

SciPy's LAPACK runs on the host, called back from compiled programs: XLA's libraries
have neither gges nor uncsd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, ShapeDtypeStruct, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.lax.callbacks import pure_callback
from fxflow.lax.linalg.library import scipy_linalg
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.numpy.broadcasting import broadcast_arrays
from fxflow.scipy.linalg._matrices import matrix_of

_SORTS = ("lhp", "rhp", "iuc", "ouc")

_docs = shared("""
    Args:
      A: array-like[..., n, n].
      B: array-like[..., n, n].
      output: "complex", or "real": of real matrices the factors are real, and AA has a
        block of two on its diagonal for each pair of complex eigenvalues.
      overwrite_a: has no effect.
      overwrite_b: has no effect.
      check_finite: has no effect.

    Raises:
      ShapeError: the matrices are not square, or their shapes are incompatible.
      ArgumentError: `output` is something else.
      NotDifferentiableError: it is differentiated: signs and the order of eigenvalues
        are free.

    Source: `scipy.linalg.{name}`; LAPACK gges, on the host.
""")


def _on_host(
    function: Callable[..., Any], likes: Any, *operands: Any, core: int = 2
) -> Any:
    """Calls a function of single matrices for each one of a batch."""
    batch = operands[0].aval.ndim - core

    def run(*given: Any) -> list[np.ndarray]:
        given = tuple(np.asarray(x) for x in given)
        # `vmap` adds axes in front.
        lead = given[0].shape[:-core]
        outs = [np.full((*lead, *x.shape[batch:]), np.nan, x.dtype) for x in likes]
        for at in np.ndindex(*lead):
            parts = [x[at] for x in given]
            if not all(np.isfinite(x).all() for x in parts):
                continue
            for out, value in zip(outs, function(*parts), strict=True):
                out[at] = value
        return outs

    return pure_callback(run, likes, *operands, vmap_method="broadcast_all")


def _pair(name: str, A: Any, B: Any, output: Any) -> tuple[Array, Array]:
    """Returns two square matrices of one shape and of the dtype of the result."""
    if output not in ("real", "complex", "r", "c"):
        raise ArgumentError(
            f'{name}: output must be "real" or "complex", got {output!r}'
        )
    a, b = promote_inexact(name, A, B)
    a, b = (matrix_of(name, x, square=True) for x in (a, b))
    if a.aval.shape[-1] != b.aval.shape[-1]:
        raise ShapeError(f"{name}: A, {a.aval}, and B, {b.aval}, do not fit")
    if output.startswith("c"):
        a, b = (convert(x, dtypes.to_complex(x.aval.dtype)) for x in (a, b))
    a, b = broadcast_arrays(a, b)
    return a, b


@_docs
def qz(
    A: ArrayLike,
    B: ArrayLike,
    output: str = "real",
    lwork: int | None = None,
    sort: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array, Array]:
    """Returns the generalized Schur decomposition: A = Q AA Zᴴ, B = Q BB Zᴴ.

    Args:
      lwork: has no effect.
      sort: None; `ordqz` sorts.

    Returns:
      AA, upper triangular (except for these blocks), BB, upper triangular, Q and Z,
      unitary.

    Raises:
      ArgumentError: `sort` is given.

    Special cases:
      nan for matrices with an element that is not finite.

    Example:
      >>> aa, bb, q, z = qz(np.eye(2), np.array([[2.0, 0.0], [0.0, 4.0]]))
      >>> print(np.diag(np.asarray(bb)) / np.diag(np.asarray(aa)))
      [2. 4.]
    """
    if sort is not None:
        raise ArgumentError("qz: sort must be None, as in SciPy: use ordqz")
    a, b = _pair("qz", A, B, output)
    like = ShapeDtypeStruct(a.aval.shape, a.aval.dtype)
    kind = "complex" if dtypes.is_complex(a.aval.dtype) else "real"

    def one(a: Any, b: Any) -> Any:
        if not a.size:
            return a, b, a, b
        return scipy_linalg().qz(a, b, output=kind)

    aa, bb, q, z = _on_host(one, (like,) * 4, a, b)
    return aa, bb, q, z


@_docs
def ordqz(
    A: ArrayLike,
    B: ArrayLike,
    sort: str | Callable[..., Any] = "lhp",
    output: str = "real",
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Returns the generalized Schur decomposition with chosen eigenvalues in front.

    Args:
      sort: which come first: "lhp", those in the left half plane; "rhp", in the right
        one; "iuc", inside of the unit circle; "ouc", outside; or a function of NumPy
        arrays alpha and beta, complex and of the type of B, that returns bools.

    Returns:
      AA, BB, complex alpha[..., n] and beta[..., n], whose quotients are the
      eigenvalues, Q and Z, as `qz`.

    Raises:
      ArgumentError: `sort` is something else.

    Special cases:
      nan for matrices with an element that is not finite.

    Example:
      >>> pair = np.array([[1.0, 2.0], [0.0, -3.0]]), np.eye(2)
      >>> aa, bb, alpha, beta, q, z = ordqz(*pair)
      >>> (alpha / beta).real.round(3)
      Array([-3.,  1.], dtype=float32)
    """
    if not callable(sort) and sort not in _SORTS:
        known = ", ".join(f'"{s}"' for s in _SORTS)
        raise ArgumentError(f"ordqz: sort must be {known} or a function, got {sort!r}")
    a, b = _pair("ordqz", A, B, output)
    shape, dtype = a.aval.shape, a.aval.dtype
    like = ShapeDtypeStruct(shape, dtype)
    alpha_like = ShapeDtypeStruct(shape[:-1], dtypes.to_complex(dtype))
    beta_like = ShapeDtypeStruct(shape[:-1], dtype)
    kind = "complex" if dtypes.is_complex(dtype) else "real"

    def one(a: Any, b: Any) -> Any:
        if not a.size:
            return a, b, a.ravel(), b.ravel(), a, b
        scipy = scipy_linalg()
        return scipy.ordqz(a, b, sort=sort, output=kind)

    aa, bb, alpha, beta, q, z = _on_host(
        one, (like, like, alpha_like, beta_like, like, like), a, b
    )
    return aa, bb, alpha, beta, q, z


def _four(X: Any, p: Any, q: Any) -> tuple[Array, int, int]:
    """Returns a square matrix and the rows and columns of its first block."""
    if isinstance(X, (tuple, list)) and len(X) == 4 and np.ndim(X[0]) >= 2:
        if p is not None or q is not None:
            raise ArgumentError("cossin: give blocks of X, or X with p and q")
        blocks = [matrix_of("cossin", x) for x in promote_inexact("cossin", *X)]
        (p, q), (_, k) = (x.aval.shape[-2:] for x in blocks[:2])
        m = blocks[2].aval.shape[-2]
        sizes = [(p, q), (p, k), (m, q), (m, k)]
        if [x.aval.shape[-2:] for x in blocks] != sizes:
            given = ", ".join(str(x.aval) for x in blocks)
            raise ShapeError(f"cossin: the four blocks of X do not fit: {given}")
        top, bottom = (
            lax.concatenate(blocks[i : i + 2], blocks[0].aval.ndim - 1) for i in (0, 2)
        )
        x = lax.concatenate([top, bottom], top.aval.ndim - 2)
    else:
        x = matrix_of("cossin", X)
        if p is None or q is None:
            raise ArgumentError("cossin: give p and q, or four blocks as X")
        p, q = integer("cossin", "p", p), integer("cossin", "q", q)
    n = x.aval.shape[-1]
    if x.aval.shape[-2] != n:
        raise ShapeError(f"cossin: takes square matrices, got {x.aval}")
    for what, size in (("p", p), ("q", q)):
        if not 0 < size < n:
            raise ArgumentError(
                f"cossin: {what} must lie in 1 … {n - 1} for {x.aval}, got {size}"
            )
    return x, p, q


def cossin(
    X: Any,
    p: int | None = None,
    q: int | None = None,
    separate: bool = False,
    swap_sign: bool = False,
    compute_u: bool = True,
    compute_vh: bool = True,
) -> Any:
    """Returns the cosine-sine decomposition of unitary matrices: X = U CS Vᴴ.

    U and V have two blocks on their diagonals, CS has cosines and sines of angles.

    Args:
      X: array-like[..., m, m], or a sequence of its four blocks: X11, X12, X21, X22.
      p: the number of rows of X11; not with blocks.
      q: the number of its columns.
      separate: whether to return the blocks and the angles.
      swap_sign: whether the sines with a minus stand in the lower left of CS.
      compute_u: False: U is not computed, and is empty.
      compute_vh: False: Vᴴ is not computed, and is empty.

    Returns:
      U, CS, which is real, and Vᴴ, [..., m, m]; with `separate` (U1, U2), theta and
      (V1ᴴ, V2ᴴ), where theta, float[..., min(p, m - p, q, m - q)], are the angles in
      radians.

    Raises:
      ArgumentError: p or q is missing or does not lie between 1 and m - 1.
      ShapeError: X is not square, or the blocks do not fit.
      NotDifferentiableError: it is differentiated: signs are free.

    Special cases:
      nan for matrices with an element that is not finite.

    Example:
      >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
      >>> (u1, u2), theta, (v1, v2) = cossin(turn, 1, 1, separate=True)
      >>> fnp.cos(theta).round(3)
      Array([0.6], dtype=float32)

    Source: `scipy.linalg.cossin`; LAPACK orcsd and uncsd, on the host.
    """
    x, p, q = _four(X, p, q)
    lead, m, dtype = x.aval.shape[:-2], x.aval.shape[-1], x.aval.dtype
    real = dtypes.to_real(dtype)

    def like(*shape: int, dtype: Any = dtype) -> Any:
        return ShapeDtypeStruct((*lead, *shape), dtype)

    def left(size: int) -> int:
        return size if compute_u else 0

    def right(size: int) -> int:
        return size if compute_vh else 0

    options = {
        "swap_sign": bool(swap_sign),
        "compute_u": bool(compute_u),
        "compute_vh": bool(compute_vh),
    }
    if not separate:
        likes = [
            like(left(m), left(m)),
            like(m, m, dtype=real),
            like(right(m), right(m)),
        ]

        def whole(x: Any) -> Any:
            scipy = scipy_linalg()
            u, cs, vh = scipy.cossin(x, p, q, **options)
            return u if compute_u else 0, cs, vh if compute_vh else 0

        return tuple(_on_host(whole, likes, x))
    angles = min(p, m - p, q, m - q)
    likes = [
        *(like(left(n), left(n)) for n in (p, m - p)),
        like(angles, dtype=real),
        *(like(right(n), right(n)) for n in (q, m - q)),
    ]

    def parts(x: Any) -> Any:
        scipy = scipy_linalg()
        u, theta, v = scipy.cossin(x, p, q, separate=True, **options)
        return *(u if compute_u else (0, 0)), theta, *(v if compute_vh else (0, 0))

    u1, u2, theta, v1, v2 = _on_host(parts, likes, x)
    return (u1, u2), theta, (v1, v2)
