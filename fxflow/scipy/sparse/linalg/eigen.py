"""Some eigenvalues of symmetric maps, by Lanczos."""

from __future__ import annotations

from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes, typeof
from fxflow.core.docs import Completes, shared
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.sparse.linalg.direct import splu
from fxflow.scipy.sparse.linalg.interface import (
    LinearOperator,
    Map,
    aslinearoperator,
    function_of,
    matrix_of,
    without_derivative,
)
from fxflow.scipy.sparse.linalg.krylov import minres
from fxflow.sparse.array import SparseArray
from fxflow.sparse.construction import eye_array, fromdense
from fxflow.transforms.vmap import vmap

docs_of_eigenpairs: Completes = shared("""
    Args:
      M: positive definite matrix of A x = λ M x; None is 1.
      sigma: eigenvalues near it are found, by solving with A - sigma M. `which` then
        tells of 1 / (λ - sigma).
      v0: vector to begin with; None is a random one, always the same.
      maxiter: maximum number of restarts; None is 10 n.
      tol: relative error of eigenvalues; 0 is the precision of the dtype.
      return_eigenvectors: whether vectors are returned, too.
      OPinv: with `sigma`, the inverse of A - sigma M: an operator or a function; None:
        by SuperLU.

    Raises:
      ArgumentError: `k`, `which` or `ncv` does not fit.
      ShapeError: a matrix is not square.

    Special cases:
      nan in place of eigenvalues that did not converge.
""")


@docs_of_eigenpairs
def eigsh(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
) -> Any:
    """Returns some eigenvalues and eigenvectors of a symmetric or Hermitian map.

    Lanczos with full reorthogonalization and thick restarts. The derivatives, with
    respect to what the map depends on, are those of the equations that eigenvalues and
    vectors fulfil, of any order; those of vectors need eigenvalues that are apart.

    Args:
      A: symmetric or Hermitian matrix, dense or sparse, or `LinearOperator`.
      k: how many, fewer than rows. Static.
      which: "LM": of largest magnitude; "SM": of smallest; "LA": largest; "SA":
        smallest; "BE": from both ends.
      ncv: dimension of the subspace, above k; None is max(2 k + 1, 20).
      Minv: with `M` and without `sigma`, its inverse: an operator or a function; None:
        by SuperLU.

    Returns:
      The eigenvalues in ascending order, (k,), and vectors as columns, (n, k), normed.

    Example:
      >>> from fxflow.sparse import diags_array
      >>> A = diags_array(fnp.arange(1.0, 31.0), format="csr")
      >>> values, vectors = eigsh(A, k=2)
      >>> values.round(3), vectors.shape
      (Array([29., 30.], dtype=float32), (30, 2))

    Source: `scipy.sparse.linalg.eigsh`; Wu and Simon, Thick-Restart Lanczos, 2000.
    """
    operator = aslinearoperator(A)
    n = operator.shape[0]
    if operator.shape[1] != n:
        raise ShapeError(f"eigsh: A must be square, got {list(operator.shape)}")
    if which not in ("LM", "SM", "LA", "SA", "BE"):
        raise ArgumentError(
            f"eigsh: which must be one of LM, SM, LA, SA, BE, got {which!r}"
        )
    if not 0 < k < n:
        raise ArgumentError(f"eigsh: k must be between 1 and {n - 1}, got {k}")
    ncv = min(n, max(2 * k + 1, 20)) if ncv is None else ncv
    if not k < ncv <= n:
        raise ArgumentError(f"eigsh: ncv must be between {k + 1} and {n}, got {ncv}")
    dtype = fnp.result_type(operator.dtype, dtypes.default_float())
    if dtypes.is_wide(dtypes.dtype(operator.dtype)) or not dtypes.is_inexact(
        dtypes.dtype(operator.dtype)
    ):
        dtype = fnp.result_type(operator.dtype, dtype)
    if M is not None:
        dtype = fnp.result_type(dtype, aslinearoperator(M).dtype)
    like = fnp.zeros(n, dtype)
    matvec = operator.matvec
    metric: Map | None = None if M is None else function_of("eigsh", "M", M)
    inverse = None if sigma is None else inverse_of("eigsh", A, M, sigma, OPinv)
    if sigma is None and M is None:
        step: Map = matvec
    elif sigma is None:
        assert metric is not None
        solve = inverse_of("eigsh", M, None, 0, Minv)

        def step(x: Any) -> Any:
            return solve(matvec(x))
    else:
        assert inverse is not None

        def step(x: Any) -> Any:
            return inverse(x if metric is None else metric(x))

    start = v0
    if start is None:
        start = random.normal(random.key(0), (n,), dtypes.to_real(dtype))
    start = lax.stop_gradient(fnp.asarray(start)).astype(dtype)
    values, vectors = _lanczos(
        without_derivative(step, like),
        None if metric is None else without_derivative(metric, like),
        start,
        k,
        ncv,
        which,
        tol or float(fnp.finfo(dtype).eps),
        10 * n if maxiter is None else maxiter,
    )
    if sigma is not None:
        values = sigma + 1 / values
    values, vectors = refined(matvec, metric, values, vectors)
    order = fnp.argsort(lax.stop_gradient(values))
    values, vectors = values[order], vectors[:, order]
    return (values, vectors) if return_eigenvectors else values


def _as_sparse(name: str, what: str, matrix: Any) -> SparseArray:
    found = matrix_of(name, what, matrix)
    return found if isinstance(found, SparseArray) else fromdense(found)


def inverse_of(name: str, A: Any, M: Any, sigma: Any, given: Any) -> Map:
    """Returns the inverse of A - sigma M as a function: what is given, or by SuperLU.

    Args:
      name: of the function, for messages.
      A: a matrix, or an operator if the inverse is given.
      M: a matrix; None is 1.
      sigma: a number.
      given: the inverse, or None.

    Raises:
      ArgumentError: `A` is an operator, and the inverse is not given.
    """
    if given is not None:
        return function_of(name, "the inverse", given)
    if isinstance(A, LinearOperator) or isinstance(M, LinearOperator):
        raise ArgumentError(
            f"{name}: with a LinearOperator, give the inverse as a function (OPinv "
            "with sigma, Minv without)"
        )
    held = _as_sparse(name, "A", A)
    if M is None and not isinstance(sigma, Tracer) and sigma == 0:
        return splu(held).solve
    other = eye_array(held.shape[0], dtype=held.dtype) if M is None else M
    return splu(held - _as_sparse(name, "M", other) * sigma).solve


def _wanted(values: Any, k: int, which: str) -> Any:
    """Returns the positions of ascending values in the order in which they count."""
    count = typeof(values).shape[0]
    if which == "BE":
        low = fnp.arange(count)
        both = fnp.stack([low[::-1], low], 1).ravel()
        return both[:count]
    keys = {"LM": -abs(values), "SM": abs(values), "LA": -values, "SA": values}
    return fnp.argsort(keys[which])


def _lanczos(
    op: Map,
    metric: Map | None,
    start: Any,
    k: int,
    m: int,
    which: str,
    tol: float,
    limit: int,
) -> tuple[Any, Any]:
    n = typeof(start).size
    dtype = start.dtype
    real = dtypes.to_real(dtype)
    kept = min(k + (m - k) // 2, m - 1)
    eps = float(fnp.finfo(real).eps)
    key = random.key(1)

    def weigh(x: Any) -> Any:
        return x if metric is None else metric(x)

    def size(x: Any) -> Any:
        return fnp.sqrt(fnp.maximum(fnp.real(fnp.vdot(x, weigh(x))), 0))

    def orthogonal(V: Any, w: Any) -> tuple[Any, Any]:
        # Twice is enough (Giraud, Langou and Rozložník 2005).
        h = fnp.conj(V) @ weigh(w)
        w = w - h @ V
        again = fnp.conj(V) @ weigh(w)
        return w - again @ V, h + again

    def expand(j: Any, state: Any) -> Any:
        V, T, _ = state
        w, h = orthogonal(V, op(V[j]))
        T = T.at[:, j].set(h[:m]).at[j, :].set(fnp.conj(h[:m]))
        beta = size(w)
        lost = beta <= 10 * eps * fnp.sqrt(fnp.sum(fnp.abs(h) ** 2))
        # An invariant subspace: go on in a direction of which nothing is known.
        other = random.normal(random.fold_in(key, j), (n,), real).astype(dtype)
        other, _ = orthogonal(V, other)
        w = fnp.where(lost, other / fnp.maximum(size(other), eps), w / beta)
        return V.at[j + 1].set(w), T, fnp.where(lost, 0, beta)

    def cycle(state: Any) -> Any:
        V, T, _, first, count, *_ = state
        # The rows behind `first` are those of the cycle before.
        rows = fnp.arange(m + 1)[:, None]
        V = fnp.where(rows <= first, V, 0)
        V, T, beta = lax.fori_loop(first, m, expand, (V, T, fnp.zeros((), real)))
        values, S = fnp.linalg.eigh((T + fnp.conj(T.T)) / 2)
        order = _wanted(values, k, which)
        values, S = values[order], S[:, order]
        error = abs(beta * S[m - 1])
        scale = fnp.maximum(abs(values), eps ** (2 / 3) * fnp.max(abs(values)))
        bound = fnp.maximum(tol * scale, eps * fnp.max(abs(values)))
        fine = error <= bound
        basis = (S[:, :kept].T @ V[:m]).astype(dtype)
        V = fnp.concatenate([basis, V[m:], fnp.zeros((m - kept, n), dtype)])
        chosen = fnp.where(fnp.arange(m) < kept, values, 0)
        T = fnp.diag(chosen).astype(dtype)
        return V, T, beta, fnp.asarray(kept), count + 1, values[:k], fine[:k]

    V = fnp.zeros((m + 1, n), dtype)
    V = V.at[0].set(start / size(start))
    state = (
        *(V, fnp.zeros((m, m), dtype), fnp.zeros((), real), fnp.asarray(0)),
        *(fnp.asarray(0), fnp.zeros(k, real), fnp.zeros(k, bool)),
    )

    def more(state: Any) -> Any:
        return fnp.logical_not(state[-1].all()) & (state[4] < limit)

    V, _, _, _, _, values, fine = lax.while_loop(more, cycle, state)
    return fnp.where(fine, values, fnp.nan), V[:k].T


def equation_roots(
    matvec: Map, metric: Map | None, value: Any, vector: Any, solve: Any
) -> tuple[Any, Any]:
    """Returns an eigenpair with the derivatives of the equations that it fulfils.

    Args:
      matvec: the map.
      metric: M of A x = λ M x; None is 1.
      value: the eigenvalue.
      vector: the eigenvector.
      solve: solves a linear system, given as a function and the right side.
    """
    dtype = vector.dtype
    n = typeof(vector).size

    def weigh(x: Any) -> Any:
        return x if metric is None else metric(x)

    fixed = lax.stop_gradient(fnp.append(vector, value.astype(dtype)))
    dual = lax.stop_gradient(fnp.conj(weigh(vector)))
    norm = lax.stop_gradient(fnp.vdot(fnp.conj(dual), vector))

    def equations(x: Any) -> Any:
        v, value = x[:n], x[n]
        rest = value * weigh(v) - matvec(v)
        return fnp.append(rest, dual @ v - norm)

    x = lax.custom_root(equations, fixed, lambda f, x: x, solve)
    return x[n], x[:n]


def refined(matvec: Map, metric: Map | None, values: Any, vectors: Any) -> Any:
    """Returns eigenpairs of a symmetric map with the derivatives of their equations.

    Args:
      matvec: the map.
      metric: M of A x = λ M x; None is 1.
      values: (k,).
      vectors: (n, k).
    """
    dtype = vectors.dtype
    eps = float(fnp.finfo(dtypes.to_real(dtype)).eps)
    n = typeof(vectors).shape[0]

    def solve(g: Map, y: Any) -> Any:
        return minres(g, y, rtol=eps, maxiter=8 * n + 8)[0]

    def pair(value: Any, vector: Any) -> Any:
        value, v = equation_roots(matvec, metric, value, vector, solve)
        weighed = v if metric is None else metric(v)
        length = fnp.sqrt(fnp.real(fnp.vdot(v, weighed)))
        return fnp.real(value), v / length.astype(dtype)

    return vmap(pair, in_axes=(0, 1), out_axes=(0, 1))(values, vectors)
