"""Direct solvers: SuperLU's factors, kept for the next system with the same matrix.

SciPy's SuperLU runs on the host, called back from compiled programs. A factor is kept
under the pattern and the values of its matrix, so that the transposed system, which
reverse mode solves, does not factor again.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, ShapeDtypeStruct, dtypes, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.callbacks import pure_callback
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.sparse.linalg.interface import matrix_of
from fxflow.sparse.array import SparseArray
from fxflow.sparse.construction import eye_array, fromdense
from fxflow.sparse.interchange import scipy_array, scipy_sparse
from fxflow.sparse.pattern import Pattern
from fxflow.transforms.linear_call import linear_call

#: Factors that are kept, and the numbers that they may have together.
_COUNT, _NUMBERS = 16, 1 << 26

Options = tuple[tuple[str, Any], ...]


class _Factors:
    """Factors of the matrices that were used last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[Any, Any] = OrderedDict()

    def get(self, pattern: Pattern, values: np.ndarray, options: Options) -> Any:
        """Returns SuperLU's object of a matrix; None: it is singular."""
        digest = hashlib.blake2b(values.tobytes(), digest_size=16).digest()
        key = pattern, values.dtype, digest, options
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        made = _factored(pattern, values, options)
        with self._lock:
            self._held[key] = made
            while len(self._held) > _COUNT or self._numbers() > _NUMBERS:
                if len(self._held) == 1:
                    break
                self._held.popitem(last=False)
        return made

    def _numbers(self) -> int:
        return sum(f.nnz for f in self._held.values() if f is not None)

    def __len__(self) -> int:
        return len(self._held)

    def clear(self) -> None:
        """Drops all factors."""
        with self._lock:
            self._held.clear()


factors: _Factors = _Factors()


def _factored(pattern: Pattern, values: np.ndarray, options: Options) -> Any:
    linalg = scipy_sparse("SuperLU").linalg
    given = dict(options)
    make = getattr(linalg, given.pop("kind"))
    matrix = scipy_array(pattern, np.array(values))
    try:
        return make(matrix, **given)
    except RuntimeError as error:
        if "singular" in str(error):
            return None
        raise


def _prepared(name: str, A: Any) -> SparseArray:
    """Returns a square matrix as csc, of a dtype that SuperLU has."""
    A = matrix_of(name, "A", A)
    if not isinstance(A, SparseArray):
        A = fromdense(A)
    A = A.tocsc()
    (values,) = promote_inexact(name, A.values)
    if dtypes.bits(values.dtype) < 32:
        values = values.astype(dtypes.float32)
    return SparseArray(A.pattern, values)


def _solver(A: SparseArray, options: Options, trans: str) -> Callable[[Any], Any]:
    """Returns the function that solves a system with A, its transpose or adjoint."""

    def solve(b: Any) -> Any:
        like = ShapeDtypeStruct(typeof(b).shape, typeof(b).dtype)

        def run(values: Any, b: Any) -> np.ndarray:
            values, b = np.asarray(values), np.asarray(b)
            factor = factors.get(A.pattern, values, options) if b.size else None
            if factor is None:
                return np.full(b.shape, np.nan, b.dtype)
            found: np.ndarray = factor.solve(np.array(b), trans).astype(b.dtype)
            return found

        return pure_callback(run, like, A.values, b, vmap_method="sequential")

    return solve


def _system(A: SparseArray, b: Any, options: Options, name: str) -> Array:
    (b,) = promote_inexact(name, b)
    shape = typeof(b).shape
    if len(shape) not in (1, 2) or shape[0] != A.shape[0]:
        raise ShapeError(
            f"{name}: the right side must be ({A.shape[0]},) or ({A.shape[0]}, k), got "
            f"{typeof(b)}"
        )
    dtype = fnp.result_type(A.values, b)
    A, b = A.astype(dtype), b.astype(dtype)
    found: Array = lax.custom_linear_solve(
        lambda x: A @ x,
        b,
        lambda _, b: _solver(A, options, "N")(b),
        lambda _, b: _solver(A, options, "T")(b),
    )
    return found


def spsolve(
    A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True
) -> Array:
    """Solves A x = b by a sparse LU factorization.

    The factor is kept: the derivative, with respect to `b` and the values of `A`,
    solves the transposed system with it.

    Args:
      A: square sparse array; its values may be traced.
      b: (n,) or (n, k).
      permc_spec: how columns are ordered: "COLAMD" (None), "MMD_AT_PLUS_A", "MMD_ATA"
        or "NATURAL".
      use_umfpack: has no effect.

    Returns:
      x, like `b`.

    Raises:
      ImportError: SciPy, which has SuperLU, is not installed.
      ShapeError: `A` is not square, or `b` does not fit.

    Special cases:
      nan if `A` is exactly singular.

    Example:
      >>> from fxflow.sparse import csr_array
      >>> A = csr_array(fnp.array([[2.0, 1.0], [0.0, 4.0]]))
      >>> spsolve(A, fnp.array([4.0, 8.0]))
      Array([1., 2.], dtype=float32)

    Source: `scipy.sparse.linalg.spsolve`; Li, An Overview of SuperLU, 2005.
    """
    if isinstance(b, SparseArray):
        b = b.todense()
    held = _prepared("spsolve", A)
    return _system(held, b, _options("splu", permc_spec=permc_spec), "spsolve")


def _options(kind: str, **given: Any) -> Options:
    chosen = {k: v for k, v in given.items() if v is not None}
    more = chosen.pop("options", None)
    if more:
        chosen["options"] = _Frozen(more)
    return ("kind", kind), *sorted(chosen.items())


class _Frozen(dict[str, Any]):
    """Options of SuperLU as part of a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


@register_pytree_node_class
class SuperLU:
    """A factorization that solves systems with one matrix: of `splu` or `spilu`.

    A pytree of the values of the matrix. The factors themselves are on the host.

    Attributes:
      matrix: the sparse array, in format csc.
      options: of SuperLU.
    """

    matrix: SparseArray
    options: Options

    def __init__(self, matrix: SparseArray, options: Options) -> None:
        """Makes what `splu` returns."""
        self.matrix, self.options = matrix, options

    def tree_flatten(self) -> tuple[tuple[Any], Options]:
        """Returns the matrix, and the options as static data."""
        return (self.matrix,), self.options

    @classmethod
    def tree_unflatten(cls, options: Options, children: Any) -> SuperLU:
        """Rebuilds an array from the output of `tree_flatten`."""
        return cls(children[0], options)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.matrix.shape

    def solve(self, rhs: Any, trans: str = "N") -> Array:
        """Solves a system.

        Args:
          rhs: (n,) or (n, k).
          trans: "N": with the matrix; "T": with the transposed one; "H": with the
            transposed complex conjugate.

        Returns:
          The solution, like `rhs`; nan if the matrix is singular. An incomplete
          factorization has no derivative with respect to the matrix: it is a constant.
        """
        if trans not in ("N", "T", "H"):
            raise ArgumentError(f'solve: trans must be "N", "T" or "H", got {trans!r}')
        if trans == "H":
            return fnp.conj(self.solve(fnp.conj(rhs), "T"))
        if dict(self.options)["kind"] == "spilu":
            return self._incomplete(rhs, trans)
        if trans == "T":
            # The transposed matrix has another factor; this one solves with it, too.
            return self._transposed(rhs)
        return _system(self.matrix, rhs, self.options, "solve")

    def _common(self, rhs: Any) -> tuple[SparseArray, Any]:
        (rhs,) = promote_inexact("solve", rhs)
        if typeof(rhs).ndim not in (1, 2) or typeof(rhs).shape[0] != self.shape[0]:
            raise ShapeError(
                f"solve: a matrix of shape {list(self.shape)} does not fit "
                f"{typeof(rhs)}"
            )
        dtype = fnp.result_type(self.matrix.values, rhs)
        return self.matrix.astype(dtype), rhs.astype(dtype)

    def _transposed(self, rhs: Any) -> Array:
        A, rhs = self._common(rhs)
        turned = A.T
        found: Array = lax.custom_linear_solve(
            lambda x: turned @ x,
            rhs,
            lambda _, b: _solver(A, self.options, "T")(b),
            lambda _, b: _solver(A, self.options, "N")(b),
        )
        return found

    def _incomplete(self, rhs: Any, trans: str) -> Array:
        A, rhs = self._common(rhs)
        values = lax.stop_gradient(A.values)
        other = "T" if trans == "N" else "N"

        def run(trans: str) -> Callable[[Any, Any], Any]:
            return lambda values, b: _solver(
                SparseArray(A.pattern, values), self.options, trans
            )(b)

        found: Array = linear_call(run(trans), run(other), values, rhs)
        return found

    def _factor(self) -> Any:
        values = self.matrix.values
        if isinstance(values, Tracer):
            raise ConcretizationError(
                "SuperLU: the factors of a matrix of traced values are not known when "
                "tracing: use solve"
            )
        found = factors.get(self.matrix.pattern, np.asarray(values), self.options)
        if found is None:
            raise ArgumentError("SuperLU: the matrix is exactly singular")
        return found

    @property
    def L(self) -> SparseArray:
        """The lower factor."""
        return _csc(self._factor().L)

    @property
    def U(self) -> SparseArray:
        """The upper factor."""
        return _csc(self._factor().U)

    @property
    def perm_r(self) -> np.ndarray:
        """The permutation of rows."""
        return np.asarray(self._factor().perm_r)

    @property
    def perm_c(self) -> np.ndarray:
        """The permutation of columns."""
        return np.asarray(self._factor().perm_c)

    @property
    def nnz(self) -> int:
        """The number of stored entries in the factors."""
        return int(self._factor().nnz)


def _csc(array: Any) -> SparseArray:
    arrays = array.indptr, array.indices
    pattern = Pattern("csc", array.shape, arrays, array.data.shape)
    return SparseArray(pattern, fnp.asarray(array.data, array.data.dtype))


def splu(
    A: Any,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: Any = None,
) -> SuperLU:
    """Factors a sparse matrix, to solve systems with it.

    Args:
      A: square sparse array; its values may be traced.
      permc_spec: how columns are ordered: "COLAMD" (None), "MMD_AT_PLUS_A", "MMD_ATA"
        or "NATURAL".
      diag_pivot_thresh: how small a diagonal element may be to be a pivot; see SuperLU.
      relax: see SuperLU.
      panel_size: see SuperLU.
      options: dict of more options of SuperLU.

    Returns:
      A `SuperLU`, whose `solve` takes right sides.

    Raises:
      ImportError: SciPy is not installed.

    Example:
      >>> from fxflow.sparse import csc_array
      >>> lu = splu(csc_array(fnp.array([[2.0, 1.0], [0.0, 4.0]])))
      >>> lu.solve(fnp.array([4.0, 8.0])), lu.solve(fnp.array([4.0, 6.0]), "T")
      (Array([1., 2.], dtype=float32), Array([2., 1.], dtype=float32))

    Source: `scipy.sparse.linalg.splu`.
    """
    scipy_sparse("splu")
    chosen = _options(
        "splu",
        permc_spec=permc_spec,
        diag_pivot_thresh=diag_pivot_thresh,
        relax=relax,
        panel_size=panel_size,
        options=options,
    )
    return SuperLU(_prepared("splu", A), chosen)


def spilu(
    A: Any,
    drop_tol: float | None = None,
    fill_factor: float | None = None,
    drop_rule: str | None = None,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: Any = None,
) -> SuperLU:
    """Factors a sparse matrix incompletely: a preconditioner for iterative solvers.

    Args:
      A: square sparse array; its values may be traced.
      drop_tol: elements below it are dropped, relative to their column; None is 1e-4.
      fill_factor: how many times the entries of `A` the factors may have; None is 10.
      drop_rule: see SuperLU.
      permc_spec: how columns are ordered; see `splu`.
      diag_pivot_thresh: see SuperLU.
      relax: see SuperLU.
      panel_size: see SuperLU.
      options: dict of more options of SuperLU.

    Returns:
      A `SuperLU`: pass its `solve` as `M` to a solver.

    Raises:
      ImportError: SciPy is not installed.

    Example:
      >>> from fxflow.scipy.sparse.linalg import gmres
      >>> from fxflow.sparse import csc_array
      >>> A = csc_array(fnp.array([[2.0, 1.0], [0.0, 4.0]]))
      >>> x, _ = gmres(A, fnp.array([4.0, 8.0]), M=spilu(A).solve)
      >>> x.round(3)
      Array([1., 2.], dtype=float32)

    Source: `scipy.sparse.linalg.spilu`; Li and Shao 2011.
    """
    scipy_sparse("spilu")
    chosen = _options(
        "spilu",
        drop_tol=drop_tol,
        fill_factor=fill_factor,
        drop_rule=drop_rule,
        permc_spec=permc_spec,
        diag_pivot_thresh=diag_pivot_thresh,
        relax=relax,
        panel_size=panel_size,
        options=options,
    )
    return SuperLU(_prepared("spilu", A), chosen)


def factorized(A: Any) -> Callable[[Any], Array]:
    """Returns a function that solves systems with a matrix.

    Args:
      A: square sparse array; its values may be traced.

    Returns:
      The function of the right side.

    Example:
      >>> from fxflow.sparse import csc_array
      >>> solve = factorized(csc_array(fnp.array([[2.0, 1.0], [0.0, 4.0]])))
      >>> solve(fnp.array([4.0, 8.0]))
      Array([1., 2.], dtype=float32)

    Source: `scipy.sparse.linalg.factorized`.
    """
    return splu(A).solve


def inv(A: Any) -> SparseArray:
    """Returns the inverse of a sparse matrix, which is rarely sparse.

    Args:
      A: square sparse array.

    Returns:
      A csc array with all elements.

    Example:
      >>> from fxflow.sparse import csc_array
      >>> inv(csc_array(fnp.array([[2.0, 0.0], [0.0, 4.0]]))).diagonal()
      Array([0.5 , 0.25], dtype=float32)

    Source: `scipy.sparse.linalg.inv`.
    """
    held = _prepared("inv", A)
    n = held.shape[0]
    eye = eye_array(n, dtype=held.dtype).todense()
    full = Pattern("csr", (n, n), _full(n), (n * n,))
    return SparseArray(full, spsolve(held, eye).ravel()).tocsc()


def _full(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(n + 1) * n, np.tile(np.arange(n), n)


def spsolve_triangular(
    A: Any,
    b: Any,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solves A x = b for a triangular matrix, row after row.

    Args:
      A: square sparse array; entries on the other side of the diagonal are refused.
      b: (n,) or (n, k).
      lower: whether the matrix is lower triangular, else upper.
      overwrite_A: has no effect: arrays are immutable.
      overwrite_b: has no effect.
      unit_diagonal: whether the diagonal is taken as ones.

    Returns:
      x, like `b`.

    Special cases:
      inf or nan where the diagonal is 0.

    Example:
      >>> from fxflow.sparse import csr_array
      >>> A = csr_array(fnp.array([[2.0, 0.0], [1.0, 4.0]]))
      >>> spsolve_triangular(A, fnp.array([4.0, 10.0]))
      Array([2., 2.], dtype=float32)

    Source: `scipy.sparse.linalg.spsolve_triangular`.
    """
    name = "spsolve_triangular"
    A = matrix_of(name, "A", A)
    A = (A if isinstance(A, SparseArray) else fromdense(A)).tocsr()
    row, col = A.coords
    wrong = col > row if lower else col < row
    if np.any(wrong):
        at = int(np.flatnonzero(wrong)[0])
        raise ArgumentError(
            f"{name}: the matrix has an entry at [{row[at]},{col[at]}], so it is not "
            f"{'lower' if lower else 'upper'} triangular"
        )
    (values, b) = promote_inexact(name, A.values, b)
    A = SparseArray(A.pattern, values)
    shape = typeof(b).shape
    if len(shape) not in (1, 2) or shape[0] != A.shape[0]:
        raise ShapeError(f"{name}: {typeof(b)} does not fit a matrix {list(A.shape)}")
    off, diagonal = _parts(A, unit_diagonal)

    def matvec(x: Any) -> Any:
        return off @ x + (diagonal * x.T).T

    found: Array = lax.custom_linear_solve(
        matvec,
        b,
        lambda _, b: _substituted(off, diagonal, b, lower),
        lambda _, b: _substituted(off.T.tocsr(), diagonal, b, not lower),
    )
    return found


def _parts(A: SparseArray, unit: bool) -> tuple[SparseArray, Any]:
    """Returns the entries beside the diagonal, and the diagonal."""
    row, col = A.coords
    kept = np.flatnonzero(row != col)
    pattern = Pattern.of_coords(row[kept], col[kept], A.shape)
    diagonal = fnp.ones(A.shape[0], A.dtype) if unit else A.diagonal()
    return SparseArray(pattern, A.values[kept]), diagonal


def _substituted(off: SparseArray, diagonal: Any, b: Any, lower: bool) -> Any:
    n = off.shape[0]
    indptr = off.indptr.astype(np.int64)
    width = int(np.diff(indptr).max(initial=0))
    # Rows of one length; what is missing points behind the last value and the last row.
    place = indptr[:-1, None] + np.arange(width)
    inside = place < indptr[1:, None]
    place = np.where(inside, place, off.nnz)
    cols = np.append(off.indices, n)[place]
    values = fnp.append(off.values, fnp.zeros(1, off.dtype))[place]
    columns = fnp.asarray(cols.astype(np.int32))
    wide = fnp.reshape(b, (n, -1))
    x = fnp.zeros((n + 1, wide.shape[1]), wide.dtype)

    def step(i: Any, x: Any) -> Any:
        r = i if lower else n - 1 - i
        total = values[r] @ x[columns[r]] if width else 0
        return x.at[r].set((wide[r] - total) / diagonal[r])

    return fnp.reshape(lax.fori_loop(0, n, step, x)[:n], typeof(b).shape)
