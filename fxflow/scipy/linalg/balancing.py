"""Matrices similar to others: balanced ones, real forms of complex eigenvalues."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.numpy.products import matmul
from fxflow.scipy.linalg._matrices import matrix_of
from fxflow.transforms.vmap import vmap


class _State(NamedTuple):
    a: Any
    order: Any
    low: Any
    high: Any
    going: Any


def _permuted(a: Any) -> _State:
    """Moves rows and columns whose eigenvalue is isolated to the ends."""
    n = a.aval.shape[-1]
    at = lax.iota(dtypes.int32, n)
    off = ~np.eye(n, dtype=bool)

    def moved(s: _State, i: Any, j: Any) -> tuple[Any, Any]:
        order = fnp.where(at == i, j, fnp.where(at == j, i, at))
        a = fnp.take(fnp.take(s.a, order, axis=0), order, axis=1)
        return a, fnp.take(s.order, order)

    def step(s: _State) -> _State:
        inside = (at >= s.low) & (at < s.high)
        full = (s.a != 0) & off & inside[:, None] & inside
        rows = inside & ~fnp.any(full, axis=1)
        columns = inside & ~fnp.any(full, axis=0)
        by_row, by_column = fnp.any(rows), fnp.any(columns)
        row = n - 1 - fnp.argmax(rows[::-1]).astype(dtypes.int32)
        column = fnp.argmax(columns).astype(dtypes.int32)
        place = fnp.where(by_row, s.high - 1, s.low)
        a, order = moved(s, fnp.where(by_row, row, column), place)
        found = by_row | by_column
        return _State(
            fnp.where(found, a, s.a),
            fnp.where(found, order, s.order),
            s.low + (~by_row & by_column),
            s.high - by_row,
            found & (s.high - s.low > 1),
        )

    zero = fnp.int32(0)
    start = _State(a, at, zero, zero + n, fnp.ones((), bool))
    end: _State = lax.while_loop(lambda s: s.going, step, start)
    return end


def _scaled(a: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Scales by powers of 2 until rows and columns have similar norms."""
    n = a.aval.shape[-1]
    real = dtypes.to_real(a.aval.dtype)
    at = lax.iota(dtypes.int32, n)
    inside = (at >= low) & (at < high)

    def norm(x: Any) -> Any:
        size = fnp.where(inside, fnp.abs(x), 0)
        largest = fnp.max(size)
        safe = fnp.where(largest > 0, largest, 1)
        return largest * fnp.sqrt(fnp.sum((size / safe) ** 2))

    def one(i: Any, state: Any) -> Any:
        a, scale, changed = state
        c = norm(lax.dynamic_index_in_dim(a, i, 1, keepdims=False))
        r = norm(lax.dynamic_index_in_dim(a, i, 0, keepdims=False))
        usable = (c > 0) & (r > 0) & fnp.isfinite(c + r) & (i >= low) & (i < high)
        ratio = fnp.log2(fnp.where(usable, r, 1)) - fnp.log2(fnp.where(usable, c, 1))
        # The powers at which LAPACK's loops end.
        up = fnp.maximum(fnp.ceil((ratio - 1) / 2), 0)
        down = fnp.where(-ratio >= 1, fnp.floor((-ratio - 1) / 2) + 1, 0)
        f = fnp.exp2(up - down)
        better = usable & (c * f + r / f < 0.95 * (c + r))
        f = fnp.where(better, f, 1).astype(real)
        a = fnp.where(at == i, a * f, a)
        a = fnp.where(at[:, None] == i, a / f, a)
        return a, fnp.where(at == i, scale * f, scale), changed | better

    def sweep(state: Any) -> Any:
        a, scale, _, count = state
        none = fnp.zeros((), bool)
        a, scale, changed = lax.fori_loop(0, n, one, (a, scale, none))
        return a, scale, changed, count + 1

    start = (a, fnp.ones(n, real), fnp.ones((), bool), fnp.int32(0))
    a, scale, *_ = lax.while_loop(lambda s: s[2] & (s[3] < 100), sweep, start)
    return a, scale


@library("permute", "scale", "separate", "overwrite_a")
def matrix_balance(
    A: ArrayLike,
    permute: bool = True,
    scale: bool = True,
    separate: bool = False,
    overwrite_a: bool = False,
) -> Any:
    """Returns similar matrices whose rows and columns have similar norms.

    Args:
      A: array-like[..., n, n].
      permute: whether to exchange rows and columns such that isolated eigenvalues are
        at the ends.
      scale: whether to scale by powers of 2.
      separate: whether to return the scales and the order, not their matrix.
      overwrite_a: has no effect.

    Returns:
      B, float or complex array[..., n, n], and T with B = T⁻¹ A T; or B and a pair of
      the scales, float[..., n], and the order, i32[..., n]. The order and the scales
      count as constants in derivatives.

    Raises:
      ShapeError: the matrices are not square.

    Example:
      >>> matrix_balance(np.array([[1.0, 100.0], [0.01, 1.0]]))[0]
      Array([[1.    , 1.5625],
             [0.64  , 1.    ]], dtype=float32)

    Source: `scipy.linalg.matrix_balance`; B. Parlett and C. Reinsch 1969; LAPACK gebal.
    """
    x = matrix_of("matrix_balance", A, square=True)
    n, lead = x.aval.shape[-1], x.aval.shape[:-2]
    real = dtypes.to_real(x.aval.dtype)

    def found(a: Any) -> tuple[Any, Any]:
        low, high = fnp.int32(0), fnp.int32(n)
        order, scales = lax.iota(dtypes.int32, n), fnp.ones(n, real)
        if permute:
            a, order, low, high, _ = _permuted(a)
        if scale:
            _, scales = _scaled(a, low, high)
        return scales, order

    if not x.aval.size:
        scales = fnp.ones((*lead, n), real)
        order = fnp.broadcast_to(lax.iota(dtypes.int32, n), (*lead, n))
        return (x, (scales, order)) if separate else (x, x)
    flat = fnp.reshape(lax.stop_gradient(x), (-1, n, n))
    scales, order = (fnp.reshape(v, (*lead, n)) for v in vmap(found)(flat))
    moved = fnp.take_along_axis(x, order[..., None], axis=-2)
    moved = fnp.take_along_axis(moved, order[..., None, :], axis=-1)
    out = moved * (scales[..., None, :] / scales[..., None])
    if separate:
        return out, (scales, order)
    back = fnp.argsort(order, axis=-1)
    whole = scales[..., None] * np.eye(n, dtype=real)
    return out, fnp.take_along_axis(whole, back[..., None], axis=-2)


@library()
def cdf2rdf(w: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    """Returns the real form of complex eigenvalues and eigenvectors of real matrices.

    Args:
      w: array-like[..., n]: eigenvalues; conjugate ones stand side by side.
      v: array-like[..., n, n]: eigenvectors in columns.

    Returns:
      Float arrays[..., n, n]: a block-diagonal W with blocks of sizes 1 and 2, and V
      with A V = V W.

    Raises:
      ShapeError: the shapes are incompatible.

    Example:
      >>> w, v = cdf2rdf(np.array([1j, -1j]), np.array([[1, 1], [1j, -1j]]))
      >>> w
      Array([[ 0.,  1.],
             [-1.,  0.]], dtype=float32)

    Source: `scipy.linalg.cdf2rdf`.
    """
    values, vectors = array_of(w, "cdf2rdf"), matrix_of("cdf2rdf", v, square=True)
    n = vectors.aval.shape[-1]
    if values.aval.shape != vectors.aval.shape[:-1]:
        raise ShapeError(
            f"cdf2rdf: w must be [..., {n}] with the batch of v, {vectors.aval}, got "
            f"{values.aval}"
        )
    real = dtypes.to_real(vectors.aval.dtype)
    values = convert(values, dtypes.to_complex(real))
    vectors = convert(vectors, dtypes.to_complex(real))
    re, im = fnp.real(values), fnp.imag(values)
    paired = im != 0
    first = paired & (fnp.cumsum(paired, axis=-1) % 2 == 1)
    second = paired & ~first
    eye = np.eye(n, dtype=real)
    after = np.eye(n, k=1, dtype=real)
    up = fnp.where(first, im, 0)[..., None] * after
    down = fnp.where(second, im, 0)[..., None] * np.eye(n, k=-1, dtype=real)
    # The first column of a pair is -Im v, the second one Re v of the first.
    before = matmul(fnp.real(vectors), after)
    own = fnp.where(first[..., None, :], -fnp.imag(vectors), fnp.real(vectors))
    columns = fnp.where(second[..., None, :], before, own)
    return re[..., None] * eye + up + down, columns
