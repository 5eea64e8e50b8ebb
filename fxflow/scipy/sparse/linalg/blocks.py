"""LOBPCG and Arnoldi: eigenpairs by blocks, and of maps that are not symmetric."""

from __future__ import annotations

from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.sparse.linalg.eigen import (
    docs_of_eigenpairs,
    equation_roots,
    inverse_of,
    refined,
)
from fxflow.scipy.sparse.linalg.interface import (
    LinearOperator,
    Map,
    aslinearoperator,
    function_of,
    without_derivative,
)
from fxflow.scipy.sparse.linalg.iterative import gmres
from fxflow.scipy.sparse.linalg.vectors import orthonormal
from fxflow.transforms.vmap import vmap


def _wide(name: str, what: str, given: Any) -> Map | None:
    """Returns the product of a map and a matrix (n, k); functions take those too."""
    if given is None:
        return None
    if callable(given) and not isinstance(given, LinearOperator):
        function: Map = given
        return function
    function_of(name, what, given)  # checks it
    return aslinearoperator(given).matmat


def lobpcg(
    A: Any,
    X: Any,
    B: Any = None,
    M: Any = None,
    Y: Any = None,
    tol: float | None = None,
    maxiter: int | None = None,
    largest: bool = True,
    verbosityLevel: int = 0,
    retLambdaHistory: bool = False,
    retResidualNormsHistory: bool = False,
    restartControl: int = 20,
) -> Any:
    """Returns extreme eigenpairs of a symmetric map, by blocks of vectors.

    Locally optimal block preconditioned conjugate gradients. The derivatives, with
    respect to what the maps depend on, are those of the equations that eigenpairs
    fulfil.

    Args:
      A: symmetric or Hermitian matrix, dense or sparse, `LinearOperator`, or function
        of matrices (n, k).
      X: (n, k): the initial guess. 3 k must not be more than n.
      B: positive definite, of A x = λ B x; given as `A` is; None is 1.
      M: preconditioner, nearly the inverse of `A`, given as `A` is; None is 1.
      Y: (n, q): the eigenvectors are sought in the space B-orthogonal to its columns.
      tol: how small the norms of residuals are to get; None is n √ε.
      maxiter: how many iterations are made at most; None is 20.
      largest: whether the largest eigenvalues are sought, else the smallest.
      verbosityLevel: has no effect.
      retLambdaHistory: whether the eigenvalues of each iteration are returned.
      retResidualNormsHistory: whether the residuals' norms of each are returned.
      restartControl: has no effect: each iteration removes what depends linearly.

    Returns:
      The eigenvalues (k,), descending if `largest`, else ascending; vectors (n, k),
      B-orthonormal; then the histories that are asked for, (maxiter + 1, k), nan behind
      the last iteration.

    Raises:
      ArgumentError: a map is neither a matrix nor a function.
      ShapeError: `X` or `Y` does not fit.

    Example:
      >>> from fxflow.sparse import diags_array
      >>> A = diags_array(fnp.arange(1.0, 31.0), format="csr")
      >>> X = fnp.eye(30)[:, :2] + 0.1
      >>> lobpcg(A, X, maxiter=40)[0].round(3)
      Array([30., 29.], dtype=float32)

    Source: `scipy.sparse.linalg.lobpcg`; Knyazev 2001; Duersch et al. 2018.
    """
    (X,) = promote_inexact("lobpcg", X)
    if typeof(X).ndim != 2 or not 0 < 3 * typeof(X).shape[1] <= typeof(X).shape[0]:
        raise ShapeError(
            "lobpcg: X must be (n, k) with 0 < 3 k <= n: use eigh of a dense matrix, "
            f"got {typeof(X)}"
        )
    n, k = typeof(X).shape
    image, weigh = _wide("lobpcg", "A", A), _wide("lobpcg", "B", B)
    better = _wide("lobpcg", "M", M)
    assert image is not None
    found = image(X)
    if typeof(found).shape != (n, k):
        raise ShapeError(f"lobpcg: A does not fit X, {typeof(X)}")
    dtype = fnp.result_type(X, found)
    X = lax.stop_gradient(X).astype(dtype)
    if Y is not None:
        Y = lax.stop_gradient(fnp.asarray(Y)).astype(dtype)
        if typeof(Y).ndim != 2 or typeof(Y).shape[0] != n:
            raise ShapeError(f"lobpcg: Y must be ({n}, q), got {typeof(Y)}")
    real = dtypes.to_real(dtype)
    eps = float(fnp.finfo(real).eps)

    def fixed(f: Map | None) -> Map | None:
        return None if f is None else without_derivative(f, X)

    steps = 20 if maxiter is None else maxiter
    bound = n * eps**0.5 if tol is None else tol
    values, vectors, seen, rests = _lobpcg(
        fixed(image), fixed(weigh), fixed(better), X, Y, bound, steps, largest
    )

    def one(f: Map | None) -> Map | None:
        return None if f is None else lambda v: f(v[:, None])[:, 0]

    forward = one(image)
    assert forward is not None
    values, vectors = refined(forward, one(weigh), values, vectors)
    out = [values, vectors]
    out += [seen] if retLambdaHistory else []
    out += [rests] if retResidualNormsHistory else []
    return tuple(out)


def _lobpcg(
    A: Any, B: Any, M: Any, X: Any, Y: Any, tol: float, steps: int, largest: bool
) -> tuple[Any, Any, Any, Any]:
    k = typeof(X).shape[1]
    dtype = X.dtype
    real = dtypes.to_real(dtype)
    eps = float(fnp.finfo(real).eps)

    def weigh(V: Any) -> Any:
        return V if B is None else B(V)

    def norms(V: Any) -> Any:
        return fnp.sqrt(fnp.sum(fnp.abs(V) ** 2, 0))

    def constrained(V: Any) -> Any:
        if Y is None:
            return V
        image = weigh(Y)
        gram = fnp.conj(Y.T) @ image
        return V - Y @ fnp.linalg.solve(gram, fnp.conj(image.T) @ V)

    def ritz(S: Any, image: Any) -> tuple[Any, Any]:
        # Columns of one length; directions that depend on others are left out.
        S_B = weigh(S)
        size = fnp.sqrt(fnp.maximum(fnp.real(fnp.sum(fnp.conj(S) * S_B, 0)), 0))
        scale = fnp.where(size > 0, 1 / fnp.where(size > 0, size, 1), 0)
        gram = fnp.conj(S.T) @ S_B * scale * scale[:, None]
        g, Q = fnp.linalg.eigh((gram + fnp.conj(gram.T)) / 2)
        kept = g > 10 * typeof(g).size * eps * g[-1]
        T = scale[:, None] * Q * fnp.where(kept, fnp.where(kept, g, 1) ** -0.5, 0)
        H = fnp.conj(T.T) @ (fnp.conj(S.T) @ image) @ T
        H = (H + fnp.conj(H.T)) / 2
        far = 2 * fnp.sum(fnp.abs(H)) + 1
        out = fnp.where(kept, 0, -far if largest else far)
        values, Z = fnp.linalg.eigh(H + fnp.diag(out).astype(dtype))
        values, Z = (values[::-1], Z[:, ::-1]) if largest else (values, Z)
        return values[:k], T @ Z[:, :k]

    def active(state: Any) -> Any:
        # Smaller residuals are rounding errors.
        least = 10 * eps * fnp.max(fnp.abs(state["values"]))
        return state["rest"] > fnp.maximum(tol, least)

    def more(state: Any) -> Any:
        return (state["i"] < steps) & active(state).any()

    def step(s: Any) -> Any:
        R = s["R"] if M is None else M(s["R"])
        # What has converged gives no directions: they would be rounding errors.
        R, P, AP = (fnp.where(active(s), V, 0) for V in (R, s["P"], s["AP"]))
        X, AX = s["X"], s["A"]
        adjoint = fnp.conj(weigh(X).T)
        R, part = constrained(R), adjoint @ P
        R = R - X @ (adjoint @ R)
        # Three blocks, so that the search direction has the last one's part.
        S = fnp.concatenate([X, R, P - X @ part], 1)
        image = fnp.concatenate([AX, A(R), AP - AX @ part], 1)
        values, C = ritz(S, image)
        P, AP = S[:, k:] @ C[k:], image[:, k:] @ C[k:]
        X, AX = S @ C, image @ C
        i = s["i"] + 1
        return state_of(X, AX, P, AP, values, i, s["seen"], s["rests"])

    def state_of(*parts: Any) -> dict[str, Any]:
        X, AX, P, AP, values, i, seen, rests = parts
        R = AX - weigh(X) * values
        rest = norms(R)
        seen, rests = seen.at[i].set(values), rests.at[i].set(rest)
        made = {"X": X, "A": AX, "P": P, "AP": AP, "R": R, "rest": rest, "i": i}
        return {**made, "values": values, "seen": seen, "rests": rests}

    X = constrained(X)
    AX = A(X)
    values, C = ritz(X, AX)
    X, AX = X @ C, AX @ C
    none = fnp.zeros_like(X)
    history = fnp.full((steps + 1, k), fnp.nan, real)
    start = state_of(
        X, AX, none, none, values, fnp.zeros((), dtypes.int32), history, history
    )
    end = lax.while_loop(more, step, start)
    return end["values"], end["X"], end["seen"], end["rests"]


_ORDERS = ("LM", "SM", "LR", "SR", "LI", "SI")


@docs_of_eigenpairs
def eigs(
    A: Any,
    k: int = 6,
    M: Any = None,
    sigma: complex | None = None,
    which: str = "LM",
    v0: Any = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    tol: float = 0,
    return_eigenvectors: bool = True,
    Minv: Any = None,
    OPinv: Any = None,
) -> Any:
    """Returns some eigenvalues and eigenvectors of a map that need not be symmetric.

    Arnoldi's method, restarted by the wanted part of the Schur form. The derivatives,
    with respect to what the map depends on, are those of the equations that eigenpairs
    fulfil; the eigenvalues must be simple.

    Args:
      A: square matrix, dense or sparse, or `LinearOperator`.
      k: how many, fewer than rows less one. Static.
      which: "LM": of largest magnitude; "SM": of smallest; "LR", "SR": of largest and
        smallest real part; "LI", "SI": of largest and smallest magnitude of the
        imaginary part.
      ncv: dimension of the subspace, above k + 1; None is max(2 k + 1, 20).
      Minv: with `M` and without `sigma`, its inverse: an operator or a function; None:
        by SuperLU.

    Returns:
      The eigenvalues, complex (k,), in the order of `which`, and vectors as columns,
      (n, k), normed.

    Example:
      >>> A = fnp.diag(fnp.arange(1.0, 31.0)) + fnp.eye(30, k=1)
      >>> values, vectors = eigs(A, k=2)
      >>> values.real.round(3), vectors.shape
      (Array([30., 29.], dtype=float32), (30, 2))

    Source: `scipy.sparse.linalg.eigs`; Stewart, A Krylov–Schur Algorithm, 2001.
    """
    operator = aslinearoperator(A)
    n = operator.shape[0]
    if operator.shape[1] != n:
        raise ShapeError(f"eigs: A must be square, got {list(operator.shape)}")
    if which not in _ORDERS:
        raise ArgumentError(
            f"eigs: which must be one of {', '.join(_ORDERS)}, got {which!r}"
        )
    if not 0 < k < n - 1:
        raise ArgumentError(f"eigs: k must be between 1 and {n - 2}, got {k}")
    ncv = min(n, max(2 * k + 1, 20)) if ncv is None else ncv
    if not k + 1 < ncv <= n:
        raise ArgumentError(f"eigs: ncv must be between {k + 2} and {n}, got {ncv}")
    kinds = [operator.dtype] + ([] if M is None else [aslinearoperator(M).dtype])
    floats = [d if dtypes.is_inexact(d) else dtypes.default_float() for d in kinds]
    dtype = fnp.result_type(*floats, dtypes.complex64)
    metric = None if M is None else function_of("eigs", "M", M)
    if sigma is not None:
        solve = inverse_of("eigs", A, M, sigma, OPinv)

        def step(x: Any) -> Any:
            return solve(x if metric is None else metric(x))
    elif metric is None:
        step = operator.matvec
    else:
        invert = inverse_of("eigs", M, None, 0, Minv)

        def step(x: Any) -> Any:
            return invert(operator.matvec(x))

    like = fnp.zeros(n, dtype)
    start = random.normal(random.key(0), (n,), dtype) if v0 is None else fnp.asarray(v0)
    values, vectors = _arnoldi(
        without_derivative(lambda x: step(x).astype(dtype), like),
        lax.stop_gradient(start).astype(dtype),
        *(k, ncv, which, tol or float(fnp.finfo(dtype).eps)),
        10 * n if maxiter is None else maxiter,
    )
    if sigma is not None:
        values = sigma + 1 / values

    def root(g: Map, y: Any) -> Any:
        restart = min(n + 1, 60)
        eps = 10 * float(fnp.finfo(dtype).eps)
        return gmres(g, y, tol=eps, restart=restart, maxiter=2 * n)[0]

    def pair(value: Any, vector: Any) -> Any:
        value, v = equation_roots(operator.matvec, metric, value, vector, root)
        length = fnp.sqrt(fnp.real(fnp.vdot(v, v)))
        return value, v / length.astype(dtype)

    values, vectors = vmap(pair, in_axes=(0, 1), out_axes=(0, 1))(values, vectors)
    return (values, vectors) if return_eigenvectors else values


def _order(values: Any, which: str) -> Any:
    """Returns the positions of eigenvalues in the order in which they count."""
    keys = {
        "LM": lambda: -abs(values),
        "SM": lambda: abs(values),
        "LR": lambda: -values.real,
        "SR": lambda: values.real,
        "LI": lambda: -abs(values.imag),
        "SI": lambda: abs(values.imag),
    }
    return fnp.argsort(keys[which](), stable=True)


def _arnoldi(
    op: Map, start: Any, k: int, m: int, which: str, tol: float, limit: int
) -> tuple[Any, Any]:
    n, dtype = typeof(start).size, start.dtype
    real = dtypes.to_real(dtype)
    kept = min(k + (m - k) // 2, m - 1)
    eps = float(fnp.finfo(real).eps)
    key = random.key(1)

    def expand(j: Any, state: Any) -> Any:
        V, H = state
        w, h, size = orthonormal(V, op(V[j]))
        # An invariant subspace: go on in a direction of which nothing is known.
        other = random.normal(random.fold_in(key, j), (n,), dtype)
        other, _, _ = orthonormal(V, other)
        w = fnp.where(size == 0, other, w)
        h = h.at[j + 1].set(size.astype(dtype))
        return V.at[j + 1].set(w), H.at[:, j].set(h)

    def cycle(state: Any) -> Any:
        V, H, first, count, *_ = state
        rows = fnp.arange(m + 1)[:, None]
        V = fnp.where(rows <= first, V, 0)
        V, H = lax.fori_loop(first, m, expand, (V, H))
        values, Y = fnp.linalg.eig(H[:m])
        order = _order(values, which)
        values, Y = values[order], Y[:, order]
        error = abs(H[m] @ Y)
        most = fnp.max(abs(values))
        scale = fnp.maximum(abs(values), eps ** (2 / 3) * most)
        fine = error <= fnp.maximum(tol * scale, 10 * eps * most)
        vectors = Y[:, :k].T @ V[:m]
        # A basis of the wanted invariant subspace of H, and H in it.
        Q, _ = fnp.linalg.qr(Y[:, :kept])
        basis = Q.T @ V[:m]
        inner = fnp.conj(Q.T) @ H[:m] @ Q
        tail = H[m] @ Q
        H = fnp.zeros((m + 1, m), dtype)
        H = H.at[:kept, :kept].set(inner).at[kept, :kept].set(tail)
        V = fnp.concatenate([basis, V[m:], fnp.zeros((m - kept, n), dtype)])
        first = fnp.asarray(kept, first.dtype)
        return V, H, first, count + 1, values[:k], vectors, fine[:k]

    V = fnp.zeros((m + 1, n), dtype)
    V = V.at[0].set(start / fnp.linalg.norm(start))
    none = fnp.zeros((), dtypes.int32)
    state = (
        *(V, fnp.zeros((m + 1, m), dtype), none, none),
        *(fnp.zeros(k, dtype), fnp.zeros((k, n), dtype), fnp.zeros(k, bool)),
    )

    def more(state: Any) -> Any:
        return fnp.logical_not(state[-1].all()) & (state[3] < limit)

    *_, values, vectors, fine = lax.while_loop(more, cycle, state)
    return fnp.where(fine, values, fnp.nan), vectors.T
