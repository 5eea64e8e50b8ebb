"""The exponential of sparse matrices, its products with vectors, norms, powers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.linalg import expm as dense_expm
from fxflow.scipy.sparse.linalg.interface import aslinearoperator, matrix_of
from fxflow.sparse.array import SparseArray
from fxflow.sparse.construction import eye_array

#: Up to which 1-norm the Taylor polynomial of degree 55 (float64) or 30 (float32) has a
#: backward error below the unit roundoff (Al-Mohy and Higham 2011, table 3.1).
_THETA = {64: (55, 9.9), 32: (30, 5.7)}
#: How many steps a product takes at most: 1-norms up to about 40,000 in float64.
_STEPS = 4096


def expm(A: Any) -> Array:
    """Returns the exponential of a sparse matrix, which is rarely sparse: dense.

    Args:
      A: square sparse array.

    Returns:
      A dense matrix, like `A`. Its products with vectors are cheaper by
      `expm_multiply`.

    Raises:
      ShapeError: `A` is not square.

    Example:
      >>> from fxflow.sparse import csr_array
      >>> expm(csr_array(fnp.array([[0.0, 1.0], [0.0, 0.0]]))).tolist()
      [[1.0, 1.0], [0.0, 1.0]]

    Source: `scipy.sparse.linalg.expm`.
    """
    held = matrix_of("expm", "A", A)
    found: Array = dense_expm(
        held.todense() if isinstance(held, SparseArray) else fnp.asarray(held)
    )
    return found


def expm_multiply(
    A: Any,
    B: Any,
    start: Any = None,
    stop: Any = None,
    num: int | None = None,
    endpoint: bool | None = None,
    traceA: Any = None,
) -> Array:
    """Returns the product of exp(A), or of exp(t A) for some t, and vectors.

    The exponential itself is not computed: scaled steps of a Taylor polynomial are,
    which ends where its terms do not matter. It has derivatives of both modes with
    respect to `A` and `B`, and, without `num`, none by `start` and `stop`.

    Args:
      A: square matrix, dense or sparse, or `LinearOperator`. What the operator's 1-norm
        is, is estimated.
      B: (n,) or (n, k).
      start: the first t; None: the result is exp(A) B.
      stop: the last t; with `start` only.
      num: the number of points `t`, `stop` included: `linspace`'s. None is 50. Static.
      endpoint: whether `stop` is one of them; None is yes.
      traceA: the trace of `A`, by which it is shifted; None: it is computed, and 0 for
        operators.

    Returns:
      Like `B`, of its float dtype; with `start`, (num, *B.shape).

    Raises:
      ArgumentError: `start` or `stop` is given alone, or `num` is not positive.
      ShapeError: the shapes are incompatible.

    Special cases:
      nan if it would need more than 4096 steps: if the 1-norm is more than about 40,000
      in float64, 20,000 in float32.

    Example:
      >>> from fxflow.sparse import csr_array
      >>> A = csr_array(fnp.array([[0.0, 1.0], [0.0, 0.0]]))
      >>> expm_multiply(A, fnp.array([1.0, 2.0]))
      Array([3., 2.], dtype=float32)
      >>> expm_multiply(A, fnp.array([1.0, 2.0]), start=0, stop=1, num=3)[:, 0]
      Array([1., 2., 3.], dtype=float32)

    Source: `scipy.sparse.linalg.expm_multiply`; Al-Mohy and Higham 2011.
    """
    name = "expm_multiply"
    if (start is None) != (stop is None):
        raise ArgumentError(f"{name}: start and stop are given together")
    if start is None and (num is not None or endpoint is not None):
        raise ArgumentError(f"{name}: num and endpoint are for start and stop")
    held = aslinearoperator(A)
    n = held.shape[0]
    if held.shape[1] != n:
        raise ShapeError(f"{name}: A must be square, got {list(held.shape)}")
    (B,) = promote_inexact(name, B)
    if typeof(B).ndim not in (1, 2) or typeof(B).shape[0] != n:
        raise ShapeError(f"{name}: B must be ({n},) or ({n}, k), got {typeof(B)}")
    B = B.astype(fnp.result_type(B, held.dtype))
    shift = 0 if traceA is None else traceA / max(n, 1)
    if traceA is None and not _is_operator(A):
        matrix = matrix_of(name, "A", A)
        diagonal = fnp.diagonal(matrix) if not _is_sparse(matrix) else matrix.diagonal()
        shift = fnp.sum(diagonal) / max(n, 1)
    shift = fnp.asarray(shift).astype(B.dtype)

    def product(x: Any) -> Any:
        image = held.matvec(x) if typeof(x).ndim == 1 else held.matmat(x)
        return image - shift * x

    norm = lax.stop_gradient(_one_norm(A, held, shift))
    if start is None:
        return _stepped(product, B, 1.0, norm, shift)
    count = 50 if num is None else operator.index(num)
    if count < 1:
        raise ArgumentError(f"{name}: num must be positive, got {num}")
    real = dtypes.to_real(B.dtype)
    ends = (fnp.asarray(start, real), fnp.asarray(stop, real))
    times = fnp.linspace(*ends, count, endpoint=endpoint is not False, dtype=real)
    first = _stepped(product, B, times[0], norm, shift)
    if count == 1:
        return first[None]
    gap = times[1] - times[0]

    def step(x: Any, _: Any) -> Any:
        x = _stepped(product, x, gap, norm, shift)
        return x, x

    _, rest = lax.scan(step, first, None, length=count - 1)
    found: Array = fnp.concatenate([first[None], rest])
    return found


def _is_sparse(A: Any) -> bool:
    return isinstance(A, SparseArray)


def _is_operator(A: Any) -> bool:
    from_functions = hasattr(A, "matvec")
    return from_functions and not isinstance(A, SparseArray)


def _one_norm(A: Any, held: Any, shift: Any) -> Any:
    n = held.shape[0]
    if not n:
        return fnp.zeros((), dtypes.to_real(shift.dtype))
    if _is_operator(A):
        return onenormest(held) + abs(shift)
    matrix = matrix_of("expm_multiply", "A", A)
    size = abs(matrix) if _is_sparse(matrix) else fnp.abs(matrix)
    diagonal = matrix.diagonal() if _is_sparse(matrix) else fnp.diagonal(matrix)
    columns = size.sum(0) - abs(diagonal) + abs(diagonal - shift)
    return fnp.max(columns)


def _stepped(product: Any, B: Any, t: Any, norm: Any, shift: Any) -> Array:
    real = dtypes.to_real(B.dtype)
    wide = dtypes.bits(real) == 64
    degree, theta = _THETA[64 if wide else 32]
    eps = float(fnp.finfo(real).eps) / 2
    t = lax.stop_gradient(fnp.asarray(t)).astype(real)
    count = fnp.maximum(fnp.ceil(abs(t) * norm.astype(real) / theta), 1)
    scale = (t / count).astype(B.dtype)
    back = fnp.exp(scale * shift)

    def largest(x: Any) -> Any:
        return fnp.max(fnp.abs(lax.stop_gradient(x)), initial=0)

    def polynomial(F: Any) -> Any:
        def more(state: Any) -> Any:
            _, total, before, now, _ = state
            return before + now > eps * largest(total)

        def term(state: Any) -> Any:
            b, total, _, now, j = state
            b = product(b) * (scale / j.astype(B.dtype))
            return b, total + b, now, largest(b), j + 1

        far = fnp.full((), fnp.inf, real)
        begin = (F, F, far, far, fnp.ones((), real))
        return lax.while_loop(more, term, begin, max_steps=degree)[1]

    def more(state: Any) -> Any:
        return state[1] < count

    def step(state: Any) -> Any:
        F, i = state
        return back * polynomial(F), i + 1

    F, _ = lax.while_loop(more, step, (B, fnp.zeros((), real)), max_steps=_STEPS)
    found: Array = fnp.where(count <= _STEPS, F, fnp.nan)
    return found


def onenormest(
    A: Any,
    t: int = 2,
    itmax: int = 5,
    compute_v: bool = False,
    compute_w: bool = False,
) -> Any:
    """Estimates the 1-norm of a matrix or an operator from below, by a few products.

    Args:
      A: square matrix, dense or sparse, or `LinearOperator`.
      t: how many vectors it uses at once. More are more reliable. Static.
      itmax: how many iterations are made at most, at least 2.
      compute_v: whether a vector v is returned for which ‖A v‖ is the estimate, of
        norm 1.
      compute_w: whether w = A v is.

    Returns:
      The estimate, then v and w if asked for. Its derivative is that of ‖A v‖ for the v
      that is found.

    Raises:
      ArgumentError: `t` or `itmax` is too small.
      ShapeError: `A` is not square.

    Example:
      >>> from fxflow.sparse import csr_array
      >>> onenormest(csr_array(fnp.array([[1.0, -5.0], [2.0, 3.0]])))
      Array(8., dtype=float32)

    Source: `scipy.sparse.linalg.onenormest`; Higham and Tisseur 2000.
    """
    held = aslinearoperator(A)
    n = held.shape[0]
    if held.shape[1] != n or not n:
        raise ShapeError(f"onenormest: A must be square, got {list(held.shape)}")
    if t < 1 or itmax < 2:
        raise ArgumentError(
            f"onenormest: t must be positive and itmax at least 2, got {t}, {itmax}"
        )
    dtype = held.dtype if dtypes.is_inexact(held.dtype) else dtypes.default_float()
    v = _direction(held, n, min(t, n), itmax, dtype)
    w = held.matvec(lax.stop_gradient(v))
    out = [fnp.sum(fnp.abs(w))]
    out += [v] if compute_v else []
    out += [w] if compute_w else []
    return out[0] if len(out) == 1 else tuple(out)


def _direction(held: Any, n: int, t: int, itmax: int, dtype: Any) -> Any:
    """Returns a vector of norm 1 whose image is nearly as long as any."""
    real = dtypes.to_real(dtype)
    if t == n:
        # As many products as columns: exact.
        sums = fnp.sum(fnp.abs(held.matmat(fnp.eye(n, dtype=dtype))), 0)
        return fnp.eye(n, dtype=dtype)[fnp.argmax(sums)]
    signs = random.rademacher(random.key(0), (n, t), real).astype(dtype)
    X = signs.at[:, 0].set(1) / n
    state = {
        "X": X,
        "at": fnp.full(t, -1, dtypes.int32),
        "best": X[:, 0],
        "size": fnp.full((), -1, real),
        "seen": fnp.zeros(n, bool),
        "on": fnp.asarray(True),
        "k": fnp.zeros((), dtypes.int32),
    }

    def step(s: Any) -> Any:
        Y = held.matmat(s["X"])
        sums = fnp.sum(fnp.abs(Y), 0)
        j = fnp.argmax(sums)
        better = sums[j] > s["size"]
        size = fnp.where(better, sums[j], s["size"])
        best = fnp.where(better, s["X"][:, j], s["best"])
        modulus = fnp.abs(Y)
        S = fnp.where(modulus == 0, 1, Y / fnp.where(modulus == 0, 1, modulus))
        h = fnp.max(fnp.abs(held.rmatmat(S.astype(dtype))), 1)
        first = s["k"] == 0
        # A maximum where it was the last time: nothing is gained.
        ended = ~first & (fnp.max(h) == h[fnp.maximum(s["at"][j], 0)])
        order = fnp.lexsort((-h, s["seen"]))
        at = order[:t].astype(dtypes.int32)
        known = s["seen"][fnp.argsort(-h)[:t]].all()
        X = (fnp.arange(n)[:, None] == at).astype(dtype)
        seen = s["seen"].at[at].set(True)
        on = (better | first) & ~ended & ~known
        made = {"X": X, "at": at, "best": best, "size": size, "seen": seen}
        return {**made, "on": on, "k": s["k"] + 1}

    def more(s: Any) -> Any:
        return s["on"] & (s["k"] < itmax)

    return lax.while_loop(more, step, lax.stop_gradient(state))["best"]


def matrix_power(A: Any, power: int) -> SparseArray:
    """Returns a power of a sparse matrix, by repeated squaring.

    Args:
      A: square sparse array.
      power: a non-negative integer. Static.

    Returns:
      A sparse array: its pattern is that of the power.

    Raises:
      ArgumentError: `A` is not sparse, or `power` is negative.
      ShapeError: `A` is not square.

    Example:
      >>> from fxflow.sparse import csr_array
      >>> matrix_power(csr_array(fnp.array([[1.0, 1.0], [0.0, 2.0]])), 3).todense()
      Array([[1., 7.],
             [0., 8.]], dtype=float32)

    Source: `scipy.sparse.linalg.matrix_power`.
    """
    held = matrix_of("matrix_power", "A", A)
    if not isinstance(held, SparseArray):
        raise ArgumentError("matrix_power: A must be a sparse array")
    left = operator.index(power)
    if left < 0:
        raise ArgumentError(f"matrix_power: power must not be negative, got {power}")
    found = None
    square = held
    while left:
        if left & 1:
            found = square if found is None else found @ square
        left >>= 1
        square = square @ square if left else square
    if found is None:
        return eye_array(held.shape[0], dtype=np.dtype(held.dtype), format="csr")
    return found
