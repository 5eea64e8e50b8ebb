"""`SparseVector`: a sparse array of one axis, as a matrix of one row."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, is_arraylike, typeof
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.sparse.interchange import is_scipy, scipy_sparse
from fxflow.sparse.selecting import positions


@register_pytree_node_class
class SparseVector:
    """A sparse array of one axis: SciPy's of the formats coo and csr.

    It is made by `coo_array` and `csr_array`, of a dense vector, of
    `(data, (indices,))` or of a shape of one number, and by `reshape(-1)` of a matrix.
    As in a `SparseArray`, the indices are static and the values are traced, mapped and
    differentiated. Operators and methods are those of SciPy's.

    Args:
      row: a sparse array of one row, in format coo or csr.

    Example:
      >>> from fxflow import sparse
      >>> v = sparse.coo_array((fnp.array([1.0, 2.0]), ([0, 3],)), shape=(5,))
      >>> v @ fnp.arange(5.0), v.sum(), (v * v).todense()
      (Array(6., dtype=float32), Array(3., dtype=float32),
       Array([1., 0., 0., 4., 0.], dtype=float32))
    """

    __array_priority__: float = 200.0
    __array_ufunc__ = None

    def __init__(self, row: Any) -> None:
        if row.shape[0] != 1:
            raise ShapeError(f"SparseVector: row must have one row, got {row!r}")
        self.row: Any = row if row.format in ("coo", "csr") else row.tocsr()

    def tree_flatten(self) -> tuple[tuple[Any], None]:
        """Returns the matrix of one row."""
        return (self.row,), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: Any) -> SparseVector:
        """Rebuilds a vector from the output of `tree_flatten`."""
        made = object.__new__(cls)
        made.row = children[0]
        return made

    # -- facts -------------------------------------------------------------------------

    @property
    def format(self) -> str:
        """The name of the format: coo or csr."""
        found: str = self.row.format
        return found

    @property
    def shape(self) -> tuple[int]:
        """The number of elements, in a tuple."""
        return (self.row.shape[1],)

    @property
    def ndim(self) -> int:
        """1."""
        return 1

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.row.dtype

    @property
    def nnz(self) -> int:
        """The number of stored entries, explicit zeros included."""
        found: int = self.row.nnz
        return found

    @property
    def size(self) -> int:
        """The number of stored entries, as in SciPy."""
        return self.nnz

    @property
    def values(self) -> Any:
        """The values of the entries."""
        return self.row.values

    @property
    def data(self) -> Any:
        """The values, by SciPy's name."""
        return self.row.values

    @property
    def coords(self) -> tuple[np.ndarray]:
        """The positions of the entries, in a tuple: a NumPy array."""
        return (self.row.coords[1],)

    @property
    def indices(self) -> np.ndarray:
        """The positions of the entries: a NumPy array."""
        found: np.ndarray = self.row.coords[1]
        return found

    @property
    def T(self) -> SparseVector:
        """The vector itself, as in NumPy."""
        return self

    @property
    def real(self) -> SparseVector:
        """The real part."""
        return SparseVector(self.row.real)

    @property
    def imag(self) -> SparseVector:
        """The imaginary part."""
        return SparseVector(self.row.imag)

    def __len__(self) -> NoReturn:
        """Refuses: it is ambiguous."""
        raise TypeError("the length of a sparse array is ambiguous: use .nnz or .shape")

    def __bool__(self) -> NoReturn:
        """Refuses: it is ambiguous."""
        raise ArgumentError("the truth value of a sparse array is ambiguous")

    def __repr__(self) -> str:
        """The format, the type and the number of entries."""
        return repr(self.row).replace("[1,", "[", 1)

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuses to become dense silently."""
        raise TypeError(
            "a sparse array does not become a NumPy array by itself: use todense()"
        )

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        """Refuses: arrays are immutable."""
        raise TypeError("sparse arrays are immutable: make another one by coo_array")

    __hash__ = None  # type: ignore[assignment]

    # -- formats -----------------------------------------------------------------------

    def asformat(self, format: str | None, copy: bool = False) -> SparseVector:
        """Returns the vector in another format; duplicates are added except for coo.

        Args:
          format: "coo" or "csr"; None: as it is.
          copy: has no effect: arrays are immutable.

        Raises:
          ArgumentError: the format is another one: those have two axes.
        """
        if format not in ("coo", "csr", None):
            raise ArgumentError(
                f"asformat: a sparse array of one axis is coo or csr, got {format!r}"
            )
        return SparseVector(self.row.asformat(format))

    def tocoo(self, copy: bool = False) -> SparseVector:
        """Returns the vector in coordinate format."""
        return self.asformat("coo")

    def tocsr(self, copy: bool = False) -> SparseVector:
        """Returns the vector with ascending positions and no duplicates."""
        return self.asformat("csr")

    def todense(self) -> Array:
        """Returns the dense vector."""
        found: Array = self.row.todense()[0]
        return found

    def toarray(self) -> Array:
        """Returns the dense vector."""
        return self.todense()

    def to_scipy(self) -> Any:
        """Returns the vector as one of SciPy's, in the same format.

        Raises:
          ConcretizationError: the values are traced.
          ImportError: SciPy is not installed.
        """
        theirs = self.row.tocoo().to_scipy()
        made = scipy_sparse("to_scipy").coo_array(
            (theirs.data, (theirs.coords[1],)), shape=self.shape
        )
        return made.asformat(self.format)

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """Returns the vector with another dtype.

        Args:
          dtype: dtype of the result.
          casting: has no effect: any cast is made.
          copy: has no effect: arrays are immutable.
        """
        return SparseVector(self.row.astype(dtype))

    def copy(self) -> SparseVector:
        """Returns the vector: it is immutable."""
        return self

    def transpose(self, axes: Any = None, copy: bool = False) -> SparseVector:
        """Returns the vector itself, as in NumPy.

        Args:
          axes: None or (0,).
          copy: has no effect: arrays are immutable.
        """
        if axes is not None and tuple(axes) not in ((0,), (-1,)):
            raise ArgumentError(f"transpose: axes of a sparse vector are (0,): {axes}")
        return self

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """Returns the elements in another shape of one or two axes.

        Args:
          *shape: one or two numbers, or a tuple of them; one may be -1.
          order: "C": the elements row by row; "F": column by column.
          copy: has no effect: arrays are immutable.
        """
        given = shape[0] if len(shape) == 1 else shape
        given = given if isinstance(given, tuple | list) else (given,)
        if len(given) == 1:
            if operator.index(given[0]) not in (-1, *self.shape):
                raise ShapeError(
                    f"reshape: {list(self.shape)} has not as many elements as "
                    f"{list(given)}"
                )
            return self
        return self.row.reshape(*given, order=order)

    def conj(self, copy: bool = True) -> SparseVector:
        """Returns the complex conjugate."""
        return SparseVector(self.row.conj())

    conjugate = conj

    def power(self, n: Any, dtype: Any = None) -> SparseVector:
        """Returns the elements to a positive power.

        Args:
          n: a positive number; where elements are 0, so is the result.
          dtype: dtype of the result; None is that of the values and the power.
        """
        return SparseVector(self.row.power(n, dtype))

    # -- elementwise -------------------------------------------------------------------

    def _with(self, name: str, other: Any) -> Any:
        """Applies a method of matrices to two operands, as for vectors."""
        if is_scipy(other):
            other = of_scipy(type(self.row), other)
        if isinstance(other, SparseVector):
            if other.shape != self.shape:
                raise ShapeError(
                    f"{name.strip('_')}: sparse arrays have the shapes "
                    f"{list(self.shape)} and {list(other.shape)}: they must be the same"
                )
            other = other.row
        flat = not is_arraylike(other) or typeof(other).ndim < 2
        found = getattr(self.row, name)(other)
        if found is NotImplemented or not flat:
            return found
        if isinstance(found, Array):
            return found[0] if found.ndim == 2 else found
        return SparseVector(found) if found.shape[0] == 1 else found

    def multiply(self, other: Any) -> Any:
        """Returns the product of elements.

        Args:
          other: a sparse vector, a number, or a dense vector.
        """
        return self._with("multiply", other)

    def maximum(self, other: Any) -> SparseVector:
        """Returns the larger elements.

        Args:
          other: a sparse vector, or a number that is not positive.
        """
        found: SparseVector = self._with("maximum", other)
        return found

    def minimum(self, other: Any) -> SparseVector:
        """Returns the smaller elements.

        Args:
          other: a sparse vector, or a non-negative number.
        """
        found: SparseVector = self._with("minimum", other)
        return found

    # -- products ----------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        """Returns the product: of two vectors a number, with a matrix a vector."""
        if is_scipy(other):
            other = of_scipy(type(self.row), other)
        if isinstance(other, SparseVector):
            if other.shape != self.shape:
                raise ShapeError(
                    f"matmul: {self!r} and {other!r} have different numbers of elements"
                )
            return self.row.multiply(other.row).sum()
        found = self.row.__matmul__(other)
        if found is NotImplemented:
            return found
        return found[0] if isinstance(found, Array) else SparseVector(found)

    def __rmatmul__(self, other: Any) -> Any:
        """Returns the product of a matrix, sparse or dense, and the vector."""
        if isinstance(other, type(self.row)):
            return SparseVector((other @ self.row.transpose()).reshape(1, -1))
        if not is_arraylike(other):
            return NotImplemented
        return (self.row @ fnp.swapaxes(fnp.atleast_2d(other), -1, -2))[0][
            0 if typeof(other).ndim < 2 else slice(None)
        ]

    def dot(self, other: Any) -> Any:
        """Returns the product with a vector, a matrix or a number.

        Args:
          other: a sparse or dense array, or a number.
        """
        if is_arraylike(other) and not typeof(other).ndim:
            return self._with("multiply", other)
        return self @ other

    # -- reductions --------------------------------------------------------------------

    def _reduced(self, name: str, axis: Any, **options: Any) -> Array:
        if axis not in (None, 0, -1):
            raise ArgumentError(
                f"{name}: axis of a sparse array of one axis is 0 or None: {axis!r}"
            )
        found: Array = getattr(self.row, name)(None, **options)
        return found

    def nonzero(self) -> tuple[np.ndarray]:
        """Returns the positions of elements that are not 0: a NumPy array."""
        return (self.row.nonzero()[1],)

    # -- parts -------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """Returns an element (dense) or some of them (sparse).

        `None` beside the index makes a matrix of one row or column.
        """
        parts = index if isinstance(index, tuple) else (index,)
        parts = tuple(p for p in parts if p is not Ellipsis)
        places = [i for i, p in enumerate(parts) if p is None]
        rest = tuple(p for p in parts if p is not None) or (slice(None),)
        if len(rest) > 1 or len(places) > 1:
            raise IndexError(f"a sparse array of one axis has one index, got {index!r}")
        at = positions(rest[0], self.shape[0])
        if isinstance(at, int):
            if places:
                raise IndexError("an element of a sparse array takes no None beside it")
            return self.row[0, at]
        if np.ndim(at) != 1:
            raise IndexError("a sparse array of one axis is indexed by one axis")
        made = SparseVector(self.row[:, at])
        return expanded(made, places[0]) if places else made

    def __iter__(self) -> Any:
        """Yields the elements."""
        return iter(self.todense())


def expanded(v: SparseVector, axis: int) -> Any:
    """Returns a vector as a matrix of one row (axis 0) or of one column (axis 1)."""
    return v.row if axis == 0 else v.row.reshape(-1, 1)


def of_scipy(matrix: Any, array: Any) -> Any:
    """Returns a sparse array of SciPy, of one or two axes, as one of fxflow.

    Args:
      matrix: the class `SparseArray`.
      array: of SciPy.
    """
    if array.ndim != 1:
        return matrix.of_scipy(array)
    row = matrix.of_scipy(array.reshape(1, -1).asformat(array.format))
    return SparseVector(row)


def _binary(name: str, says: str) -> None:
    def method(self: SparseVector, other: Any) -> Any:
        return self._with(name, other)

    method.__name__, method.__qualname__ = name, f"SparseVector.{name}"
    method.__doc__ = says
    setattr(SparseVector, name, method)


for _name, _says in {
    "__add__": "Returns the sum: sparse, or dense with a dense vector.",
    "__radd__": "Returns the sum.",
    "__sub__": "Returns the difference: sparse, or dense with a dense vector.",
    "__rsub__": "Returns the difference.",
    "__mul__": "Returns the product of elements.",
    "__rmul__": "Returns the product of elements.",
    "__truediv__": "Returns the quotients by a number or by a dense vector.",
    "__rtruediv__": "Refuses: it is infinite where the vector is 0.",
    "__pow__": "Returns the elements to a positive power.",
    "__eq__": "Returns where elements equal a number that is not 0, or a vector's.",
    "__ne__": "Returns where elements differ.",
    "__lt__": "Returns where elements are less.",
    "__le__": "Returns where elements are at most as large.",
    "__gt__": "Returns where elements are greater.",
    "__ge__": "Returns where elements are at least as large.",
}.items():
    _binary(_name, _says)


def _unary(name: str, says: str) -> None:
    def method(self: SparseVector) -> SparseVector:
        return SparseVector(getattr(self.row, name)())

    method.__name__, method.__qualname__ = name, f"SparseVector.{name}"
    method.__doc__ = says
    setattr(SparseVector, name, method)


for _name, _says in {
    "__abs__": "Returns absolute values.",
    "__neg__": "Returns the negative vector.",
    "__pos__": "Returns the vector.",
    "sum_duplicates": "Returns the vector with one entry for each place, in order.",
    "sort_indices": "Returns the vector with its entries in order.",
    "eliminate_zeros": "Returns the vector without entries that are 0.",
}.items():
    _unary(_name, _says)

#: Functions with f(0) = 0, as methods of SciPy's arrays.
ZERO = (
    "sqrt sin tan arcsin arctan sinh tanh arcsinh arctanh expm1 log1p floor ceil rint "
    "trunc sign deg2rad rad2deg"
)
for _name in ZERO.split():
    _unary(_name, f"Returns `{_name}` of the stored elements; zeros stay zeros.")


def _reduction(name: str, what: str, option: str) -> None:
    def method(self: SparseVector, axis: int | None = None, **options: Any) -> Array:
        unknown = sorted(options.keys() - {option})
        if unknown:
            raise TypeError(f"{name}: there is no argument {', '.join(unknown)}")
        return self._reduced(name, axis, **options)

    method.__name__, method.__qualname__ = name, f"SparseVector.{name}"
    said = {
        "dtype": "dtype: in which elements are added.",
        "explicit": "explicit: whether only entries count.",
        "": "**options: none.",
    }[option]
    method.__doc__ = f"Returns {what}.\n\nArgs:\n  axis: None or 0.\n  {said}\n"
    setattr(SparseVector, name, method)


for _name, _what, _option in (
    ("sum", "the sum of elements", "dtype"),
    ("mean", "the mean of elements, zeros included", "dtype"),
    ("max", "the largest element", "explicit"),
    ("min", "the smallest element", "explicit"),
    ("nanmax", "the largest element that is not nan", "explicit"),
    ("nanmin", "the smallest element that is not nan", "explicit"),
    ("argmax", "where the first largest element is", "explicit"),
    ("argmin", "where the first smallest element is", "explicit"),
    ("count_nonzero", "how many elements are not 0", ""),
):
    _reduction(_name, _what, _option)
