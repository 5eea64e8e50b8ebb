"""Linear operators: maps that are given by products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.sparse.array import SparseArray, from_scipy
from fxflow.sparse.interchange import is_scipy
from fxflow.transforms.custom_derivatives import closure_convert
from fxflow.transforms.vjp import linear_transpose
from fxflow.transforms.vmap import vmap

Map = Callable[[Any], Any]


class LinearOperator:
    """A matrix that is given by its product with a vector.

    What is not given follows: the adjoint is the transpose of `matvec` as a program,
    products with matrices are its vectorized form. Operators are functions, not
    pytrees: what they capture is differentiated as for any function.

    Args:
      shape: rows and columns.
      matvec: returns the product with a vector of `shape[1]`.
      rmatvec: returns the product of the adjoint and a vector of `shape[0]`; None: it
        is derived from `matvec`.
      matmat: returns the product with a matrix; None: it is derived.
      dtype: dtype of the vectors; None is the default float dtype.
      rmatmat: returns the product of the adjoint and a matrix; None: it is derived.

    Attributes:
      shape: rows and columns.
      dtype: dtype of the vectors.

    Example:
      >>> A = LinearOperator((2, 2), matvec=lambda x: x * fnp.array([2.0, 3.0]))
      >>> A.matvec(fnp.ones(2)), (A.T @ fnp.ones(2))
      (Array([2., 3.], dtype=float32), Array([2., 3.], dtype=float32))
    """

    shape: tuple[int, int]
    dtype: Any
    ndim: int = 2

    def __init__(
        self,
        shape: Any,
        matvec: Map,
        rmatvec: Map | None = None,
        matmat: Map | None = None,
        dtype: Any = None,
        rmatmat: Map | None = None,
    ) -> None:
        """Makes an operator of functions."""
        if len(tuple(shape)) != 2:
            raise ShapeError(f"LinearOperator: shape must be two numbers, got {shape}")
        if not callable(matvec):
            raise ArgumentError("LinearOperator: matvec must be a function")
        self.shape = int(shape[0]), int(shape[1])
        self.dtype = dtypes.default_float() if dtype is None else dtypes.dtype(dtype)
        self._forward, self._backward = matvec, rmatvec
        self._wide, self._wide_backward = matmat, rmatmat

    def __repr__(self) -> str:
        """The shape and the dtype."""
        return f"LinearOperator({list(self.shape)}, {self.dtype})"

    def _fitting(self, name: str, x: Any, rows: int, ndim: int) -> Any:
        x = fnp.asarray(x)
        shape = typeof(x).shape
        if len(shape) != ndim or shape[0] != rows:
            raise ShapeError(
                f"{name}: an operator of shape {list(self.shape)} does not fit "
                f"{typeof(x)}"
            )
        return x

    def matvec(self, x: Any) -> Array:
        """Returns the product with a vector.

        Args:
          x: of length `shape[1]`, or a matrix of one column.
        """
        if fnp.ndim(x) == 2 and fnp.shape(x)[1] == 1:
            return fnp.expand_dims(self.matvec(fnp.ravel(x)), 1)
        x = self._fitting("matvec", x, self.shape[1], 1)
        found: Array = fnp.reshape(self._forward(x), (self.shape[0],))
        return found

    def rmatvec(self, x: Any) -> Array:
        """Returns the product of the adjoint and a vector.

        Args:
          x: of length `shape[0]`.
        """
        x = self._fitting("rmatvec", x, self.shape[0], 1)
        if self._backward is not None:
            return fnp.reshape(self._backward(x), (self.shape[1],))
        dtype = fnp.result_type(self.dtype, x)
        back = linear_transpose(self._forward, fnp.zeros(self.shape[1], dtype))
        (found,) = back(fnp.conj(x).astype(dtype))
        return fnp.conj(found)

    def matmat(self, X: Any) -> Array:
        """Returns the product with a matrix.

        Args:
          X: of `shape[1]` rows.
        """
        X = self._fitting("matmat", X, self.shape[1], 2)
        if self._wide is not None:
            found: Array = self._wide(X)
            return found
        columns: Array = vmap(self.matvec, in_axes=1, out_axes=1)(X)
        return columns

    def rmatmat(self, X: Any) -> Array:
        """Returns the product of the adjoint and a matrix.

        Args:
          X: of `shape[0]` rows.
        """
        X = self._fitting("rmatmat", X, self.shape[0], 2)
        if self._wide_backward is not None:
            found: Array = self._wide_backward(X)
            return found
        columns: Array = vmap(self.rmatvec, in_axes=1, out_axes=1)(X)
        return columns

    def adjoint(self) -> LinearOperator:
        """Returns the transposed complex conjugate."""
        m, n = self.shape
        return LinearOperator(
            (n, m), self.rmatvec, self.matvec, self.rmatmat, self.dtype, self.matmat
        )

    @property
    def H(self) -> LinearOperator:
        """The transposed complex conjugate."""
        return self.adjoint()

    def transpose(self) -> LinearOperator:
        """Returns the transposed operator."""
        m, n = self.shape

        def forward(x: Any) -> Any:
            return fnp.conj(self.rmatvec(fnp.conj(x)))

        def backward(x: Any) -> Any:
            return fnp.conj(self.matvec(fnp.conj(x)))

        return LinearOperator((n, m), forward, backward, dtype=self.dtype)

    @property
    def T(self) -> LinearOperator:
        """The transposed operator."""
        return self.transpose()

    def dot(self, x: Any) -> Any:
        """Returns the product with a vector, a matrix, an operator or a number.

        Args:
          x: what it is multiplied with.
        """
        if isinstance(x, LinearOperator | SparseArray) or is_scipy(x):
            other = aslinearoperator(x)
            if self.shape[1] != other.shape[0]:
                raise ShapeError(
                    f"LinearOperator: {list(self.shape)} times {list(other.shape)}"
                )
            return LinearOperator(
                (self.shape[0], other.shape[1]),
                lambda v: self.matvec(other.matvec(v)),
                lambda v: other.rmatvec(self.rmatvec(v)),
                dtype=fnp.result_type(self.dtype, other.dtype),
            )
        if not is_arraylike(x):
            raise ArgumentError(f"LinearOperator: it is not multiplied with {x!r}")
        if not typeof(x).ndim:
            return self * x
        return self.matvec(x) if typeof(x).ndim == 1 else self.matmat(x)

    def __matmul__(self, x: Any) -> Any:
        """Returns the product with a vector, a matrix or an operator."""
        if is_arraylike(x) and not typeof(x).ndim:
            raise ArgumentError("LinearOperator: @ with a number: use *")
        return self.dot(x)

    def __call__(self, x: Any) -> Any:
        """Returns the product with a vector, a matrix or an operator."""
        return self.dot(x)

    def __mul__(self, x: Any) -> Any:
        """Returns a multiple, or the product with an operator or an array."""
        if not (is_arraylike(x) and not typeof(x).ndim):
            return self.dot(x)
        return LinearOperator(
            self.shape,
            lambda v: x * self.matvec(v),
            lambda v: fnp.conj(x) * self.rmatvec(v),
            dtype=fnp.result_type(self.dtype, x),
        )

    def __rmul__(self, x: Any) -> Any:
        """Returns a multiple."""
        return self.__mul__(x)

    def __neg__(self) -> LinearOperator:
        """Returns the negative operator."""
        found: LinearOperator = self * -1.0
        return found

    def __add__(self, other: Any) -> LinearOperator:
        """Returns the sum of two operators."""
        other = aslinearoperator(other)
        if other.shape != self.shape:
            raise ShapeError(
                f"LinearOperator: {list(self.shape)} plus {list(other.shape)}"
            )
        return LinearOperator(
            self.shape,
            lambda v: self.matvec(v) + other.matvec(v),
            lambda v: self.rmatvec(v) + other.rmatvec(v),
            dtype=fnp.result_type(self.dtype, other.dtype),
        )

    def __sub__(self, other: Any) -> LinearOperator:
        """Returns the difference of two operators."""
        return self + -aslinearoperator(other)


def aslinearoperator(A: Any) -> LinearOperator:
    """Returns a matrix as a linear operator.

    Args:
      A: a sparse array, a dense matrix, or a linear operator, which is returned.

    Returns:
      A `LinearOperator`.

    Example:
      >>> aslinearoperator(fnp.eye(3)).matvec(fnp.ones(3))
      Array([1., 1., 1.], dtype=float32)
    """
    if isinstance(A, LinearOperator):
        return A
    if is_scipy(A):
        A = from_scipy(A)
    if not isinstance(A, SparseArray):
        if not is_arraylike(A) or typeof(A).ndim != 2:
            raise ArgumentError(
                f"aslinearoperator: expected a matrix or an operator, got {A!r}"
            )
        A = fnp.asarray(A)

    def product(x: Any) -> Any:
        return A @ x

    def back(x: Any) -> Any:
        return fnp.conj(fnp.conj(x) @ A) if fnp.ndim(x) == 1 else A.conj().T @ x

    shape = A.shape
    return LinearOperator(shape, product, back, product, A.dtype, back)


def matrix_of(name: str, what: str, given: Any, square: bool = True) -> Any:
    """Returns a matrix, dense or sparse, that an argument is.

    Args:
      name: of the function, for messages.
      what: the argument's name.
      given: its value.
      square: whether it must be.

    Raises:
      ArgumentError: it is not a matrix.
      ShapeError: it is not square.
    """
    if is_scipy(given):
        given = from_scipy(given)
    if not isinstance(given, SparseArray):
        if not is_arraylike(given):
            raise ArgumentError(f"{name}: {what} must be a matrix or a function")
        if typeof(given).ndim != 2:
            raise ShapeError(f"{name}: {what} must be square, got {typeof(given)}")
    if square and given.shape[0] != given.shape[1]:
        kind = given if isinstance(given, SparseArray) else typeof(given)
        raise ShapeError(f"{name}: {what} must be square, got {kind}")
    return given


def function_of(name: str, what: str, given: Any) -> Map:
    """Returns the linear map that an argument is.

    Args:
      name: of the function, for messages.
      what: the argument's name.
      given: a square matrix, dense or sparse, an operator, or a function.
    """
    if isinstance(given, LinearOperator) and given.shape[0] != given.shape[1]:
        raise ShapeError(f"{name}: {what} must be square, got {given}")
    if callable(given):
        function: Map = given
        return function
    matrix = matrix_of(name, what, given)
    if isinstance(matrix, SparseArray):
        return lambda x: matrix @ x
    return lambda x: fnp.matmul(matrix, x)


def without_derivative(function: Map, *examples: Any) -> Map:
    """Returns a function that takes what it captured as constants.

    Args:
      function: of arrays.
      *examples: arguments, for their types.
    """
    converted, captured = closure_convert(function, *examples)
    fixed = [lax.stop_gradient(c) for c in captured]
    return lambda *args: converted(*args, *fixed)
