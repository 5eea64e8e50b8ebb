"""`SparseArray`: a static pattern and an array of values."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.sparse_products import take
from fxflow.sparse import values as on_values
from fxflow.sparse.extremes import Extremes, axis_of
from fxflow.sparse.interchange import is_scipy, scipy_array, scipy_parts
from fxflow.sparse.multiplying import product_plan, product_values
from fxflow.sparse.pattern import (
    Pattern,
    Regrouping,
    device_array,
    intersection,
    union,
)
from fxflow.sparse.selecting import lookup, positions, reshaped, resized, selection
from fxflow.sparse.vector import ZERO, SparseVector, of_scipy


@register_pytree_node_class
class SparseArray(Extremes):
    """A matrix of which only some elements, its entries, are stored.

    The pattern (shape, format, indices) is static, as a shape is: `jit` compiles for
    one. The values are an array, which is traced, mapped and differentiated: an array
    is a pytree with this one leaf, and its cotangent is a sparse array of the same
    pattern. Arrays are made by `csr_array`, `coo_array` and others.

    Operators and methods are those of SciPy's sparse arrays: `*` is elementwise, `@`
    the matrix product. Arrays are immutable: methods that change one in SciPy return
    another one.

    Attributes:
      pattern: where the entries lie.
      values: of the entries: (nnz,) for coo, csr and csc, (blocks, r, c) for bsr,
        (diagonals, length) for dia.
    """

    __array_priority__: float = 200.0
    __array_ufunc__ = None

    pattern: Pattern
    values: Any

    def __init__(self, pattern: Pattern, values: Any) -> None:
        """Makes an array of a pattern and values, which are checked.

        Args:
          pattern: where the entries lie.
          values: array-like of the pattern's `values_shape`.
        """
        values = fnp.asarray(values)
        if typeof(values).shape != pattern.values_shape:
            raise ShapeError(
                f"SparseArray: the pattern has values {list(pattern.values_shape)}, "
                f"got {typeof(values)}"
            )
        self.pattern, self.values = pattern, values

    @classmethod
    def of_scipy(cls, array: Any) -> SparseArray:
        """Makes an array of one of SciPy with two axes.

        Args:
          array: a sparse array or matrix; lil and dok become csr.
        """
        pattern, data = scipy_parts(array)
        return cls(pattern, data)

    def tree_flatten(self) -> tuple[tuple[Any], Pattern]:
        """Returns the values, and the pattern as static data."""
        return (self.values,), self.pattern

    @classmethod
    def tree_unflatten(cls, pattern: Pattern, children: Any) -> SparseArray:
        """Rebuilds an array from the output of `tree_flatten`."""
        return _made(pattern, children[0])

    # -- facts -------------------------------------------------------------------------

    @property
    def format(self) -> str:
        """The name of the format: coo, csr, csc, bsr or dia."""
        return self.pattern.format

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.pattern.shape

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype

    @property
    def nnz(self) -> int:
        """The number of stored entries, explicit zeros included."""
        return self.pattern.nnz

    @property
    def size(self) -> int:
        """The number of stored entries, as in SciPy."""
        return self.pattern.nnz

    @property
    def data(self) -> Any:
        """The values, by SciPy's name."""
        return self.values

    def _index(self, name: str, *formats: str) -> np.ndarray:
        if self.format not in formats:
            raise AttributeError(
                f"a sparse array in format {self.format} has no {name}: convert it by "
                f"to{formats[0]}()"
            )
        return self.pattern.arrays[name]

    @property
    def indices(self) -> np.ndarray:
        """Columns of csr, rows of csc, block columns of bsr: a NumPy array."""
        return self._index("indices", "csr", "csc", "bsr")

    @property
    def indptr(self) -> np.ndarray:
        """Where each row (csr, bsr) or column (csc) begins: a NumPy array."""
        return self._index("indptr", "csr", "csc", "bsr")

    @property
    def row(self) -> np.ndarray:
        """The row of each entry of coo: a NumPy array."""
        return self._index("row", "coo")

    @property
    def col(self) -> np.ndarray:
        """The column of each entry of coo: a NumPy array."""
        return self._index("col", "coo")

    @property
    def coords(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the entries: NumPy arrays."""
        found = self.pattern.coords
        return found.row, found.col

    @property
    def offsets(self) -> np.ndarray:
        """The diagonals of dia: a NumPy array."""
        return self._index("offsets", "dia")

    @property
    def blocksize(self) -> tuple[int, int]:
        """Rows and columns of the blocks of bsr."""
        self._index("indices", "bsr")
        return self.pattern.values_shape[1], self.pattern.values_shape[2]

    @property
    def has_canonical_format(self) -> bool:
        """Whether there are no duplicates, and entries are in order."""
        keys = self.pattern.keys
        if self.format == "csc":
            row, col = self.coords
            keys = col.astype(np.int64) * self.shape[0] + row
        return bool(np.all(keys[1:] > keys[:-1])) or self.format in ("dia", "bsr")

    def __len__(self) -> NoReturn:
        """Refuses: it is ambiguous."""
        raise TypeError("the length of a sparse array is ambiguous: use .nnz or .shape")

    def __bool__(self) -> NoReturn:
        """Refuses: it is ambiguous."""
        raise ArgumentError("the truth value of a sparse array is ambiguous")

    def __repr__(self) -> str:
        """The format, the type and the number of entries."""
        m, n = self.shape
        values = self.values
        kind = getattr(values, "dtype", type(values).__name__)
        if isinstance(values, Array):
            short = typeof(fnp.zeros((), kind)).strong()
            kind = str(short).partition("[")[0]
            batch = typeof(values).shape[: -len(self.pattern.values_shape)]
            if batch:
                return (
                    f"{self.format}_array({kind}[{m},{n}], nnz={self.nnz}, "
                    f"batch={list(batch)})"
                )
        return f"{self.format}_array({kind}[{m},{n}], nnz={self.nnz})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuses to become dense silently."""
        raise TypeError(
            "a sparse array does not become a NumPy array by itself: use todense()"
        )

    # -- formats -----------------------------------------------------------------------

    def asformat(self, format: str | None, copy: bool = False) -> SparseArray:
        """Returns the array in another format; duplicates are added except for coo.

        Args:
          format: "coo", "csr", "csc", "bsr" or "dia"; None: as it is.
          copy: has no effect: arrays are immutable.
        """
        if format is None:
            return self
        return self._regrouped(self.pattern.to(format))

    def tocoo(self, copy: bool = False) -> SparseArray:
        """Returns the array in coordinate format."""
        return self.asformat("coo")

    def tocsr(self, copy: bool = False) -> SparseArray:
        """Returns the array by rows, with ascending columns and no duplicates."""
        return self._regrouped(self.pattern.to_csr())

    def tocsc(self, copy: bool = False) -> SparseArray:
        """Returns the array by columns, with ascending rows and no duplicates."""
        return self.asformat("csc")

    def todia(self, copy: bool = False) -> SparseArray:
        """Returns the array by diagonals."""
        return self.asformat("dia")

    def tobsr(
        self, blocksize: tuple[int, int] | None = None, copy: bool = False
    ) -> SparseArray:
        """Returns the array in blocks.

        Args:
          blocksize: rows and columns of a block; None: (1, 1), or as they are.
          copy: has no effect: arrays are immutable.
        """
        size = None if blocksize is None else (int(blocksize[0]), int(blocksize[1]))
        return self._regrouped(self.pattern.to("bsr", size))

    def todense(self) -> Array:
        """Returns the dense array."""
        found: Array = on_values.dense(self.pattern, self.values)
        return found

    def toarray(self) -> Array:
        """Returns the dense array."""
        return self.todense()

    def to_scipy(self) -> Any:
        """Returns the array as one of SciPy's, in the same format.

        Raises:
          ConcretizationError: the values are traced.
          ImportError: SciPy is not installed.
        """
        return scipy_array(self.pattern, self._host("to_scipy"))

    def _regrouped(self, way: Regrouping) -> SparseArray:
        if way.is_identity and way.pattern is self.pattern:
            return self
        return _made(way.pattern, on_values.regroup(self.pattern, self.values, way))

    def _with(self, values: Any) -> SparseArray:
        return _made(self.pattern, values)

    def _host(self, name: str) -> np.ndarray:
        if isinstance(self.values, Tracer):
            raise ConcretizationError(
                f"{name}: the values of a sparse array are traced, and the result "
                "depends on what they are: call it outside of jit, grad and vmap"
            )
        return np.asarray(self.values)

    def sum_duplicates(self) -> SparseArray:
        """Returns the array with one entry for each place, in order."""
        if self.format in ("dia", "bsr"):
            return self
        if self.format == "coo":
            return self.tocsr().tocoo()
        if self.has_canonical_format:
            return self
        return self.tocsr() if self.format == "csr" else self.tocoo().tocsc()

    def sort_indices(self) -> SparseArray:
        """Returns the array with its entries in order; duplicates are added."""
        return self.sum_duplicates()

    @property
    def has_sorted_indices(self) -> bool:
        """Whether entries are in order; without duplicates in this class of arrays."""
        return self.has_canonical_format

    def sorted_indices(self) -> SparseArray:
        """Returns the array with its entries in order; duplicates are added."""
        return self.sum_duplicates()

    def eliminate_zeros(self) -> SparseArray:
        """Returns the array without entries that are 0; its values must be concrete."""
        held = self.tocsr()
        kept = np.flatnonzero(held._host("eliminate_zeros") != 0)
        row, col = held.pattern.coords[:2]
        pattern = Pattern.of_coords(row[kept], col[kept], self.shape)
        found = _made(pattern, held.values[kept])
        return found.asformat(self.format)

    # -- elementwise -------------------------------------------------------------------

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> Any:
        """Returns the array with another dtype.

        Args:
          dtype: dtype of the result.
          casting: has no effect: any cast is made.
          copy: has no effect: arrays are immutable.
        """
        return self._with(self.values.astype(dtype))

    def copy(self) -> SparseArray:
        """Returns the array: it is immutable."""
        return self

    def conj(self, copy: bool = True) -> SparseArray:
        """Returns the complex conjugate."""
        return self._with(fnp.conj(self.values))

    conjugate = conj

    @property
    def real(self) -> SparseArray:
        """The real part."""
        return self._with(fnp.real(self.values))

    @property
    def imag(self) -> SparseArray:
        """The imaginary part."""
        return self._with(fnp.imag(self.values))

    def transpose(self, axes: Any = None, copy: bool = False) -> SparseArray:
        """Returns the transposed array; csr becomes csc, and the reverse.

        Args:
          axes: None or (1, 0).
          copy: has no effect: arrays are immutable.
        """
        if axes is not None and tuple(axes) not in ((1, 0), (-1, -2)):
            raise ArgumentError(f"transpose: axes of a sparse array are (1, 0): {axes}")
        if self.format == "dia":
            return self.tocoo().transpose().todia()
        if self.format == "bsr":
            r, c = self.blocksize
            m, n = self.shape
            arrays = self.indptr, self.indices
            count = (len(self.indices),)
            blocks = Pattern("csr", (m // r, n // c), arrays, count)
            way = blocks.transposed.to_csr()
            values = self.values
            if way.target is not None:
                return self.tocsr().transpose().tobsr((c, r))
            if way.source is not None:
                values = values[way.source]
            made = tuple(way.pattern.arrays.values())
            pattern = Pattern("bsr", (n, m), made, (*count, c, r))
            return _made(pattern, fnp.swapaxes(values, 1, 2))
        return _made(self.pattern.transposed, self.values)

    @property
    def T(self) -> SparseArray:
        """The transposed array."""
        return self.transpose()

    @property
    def mT(self) -> SparseArray:
        """The transposed array."""
        return self.transpose()

    @property
    def H(self) -> SparseArray:
        """The transposed complex conjugate."""
        return self.conj().transpose()

    def _single(self) -> SparseArray:
        """Returns the array without duplicates, which nonlinear functions need."""
        if self.format == "dia" or self.format == "bsr":
            return self
        return self.sum_duplicates()

    def _map(self, function: Any) -> SparseArray:
        held = self._single()
        return held._with(function(held.values))

    def __abs__(self) -> SparseArray:
        """Returns absolute values."""
        return self._map(fnp.abs)

    def __neg__(self) -> SparseArray:
        """Returns the negative array."""
        return self._with(-self.values)

    def __pos__(self) -> SparseArray:
        """Returns the array."""
        return self

    def power(self, n: Any, dtype: Any = None) -> SparseArray:
        """Returns the elements to a positive power.

        Args:
          n: a positive number; where elements are 0, so is the result.
          dtype: dtype of the result; None is that of the values and the power.
        """
        if not isinstance(n, int | float) or n <= 0:
            raise ArgumentError(
                f"power: a sparse array is raised to a positive number, got {n!r}: "
                "other powers of its zeros are not 0"
            )
        held = self if dtype is None else self.astype(dtype)
        return held._map(lambda v: v**n)

    def __pow__(self, n: Any) -> SparseArray:
        """Returns the elements to a positive power."""
        return self.power(n)

    def _merged(self, other: SparseArray, kind: str) -> SparseArray:
        if other.shape != self.shape:
            raise ShapeError(
                f"{kind}: sparse arrays have the shapes {list(self.shape)} and "
                f"{list(other.shape)}: they must be the same"
            )
        if self.pattern is other.pattern:
            linear = kind in ("add", "subtract")
            a, b = (self, other) if linear else (self._single(), other._single())
            return a._with(getattr(fnp, kind)(a.values, b.values))
        a, b = self.tocsr(), other.tocsr()
        combine = intersection if kind == "multiply" else union
        way = combine(a.pattern, b.pattern)
        found = on_values.merged(a.pattern, b.pattern, a.values, b.values, way, kind)
        return _made(way.pattern, found)

    def _plus(self, other: Any, kind: str) -> Any:
        if isinstance(other, SparseArray):
            return self._merged(other, kind)
        if is_scipy(other):
            return self._merged(from_scipy(other), kind)
        if not is_arraylike(other):
            return NotImplemented
        if not typeof(other).ndim:
            if isinstance(other, int | float) and other == 0:
                return self
            raise ArgumentError(
                f"{kind}: the sum of a sparse array and a number is dense: add it to "
                "todense(), or to the values"
            )
        return getattr(fnp, kind)(self.todense(), other)

    def __add__(self, other: Any) -> Any:
        """Returns the sum: sparse, or dense with a dense array."""
        return self._plus(other, "add")

    def __radd__(self, other: Any) -> Any:
        """Returns the sum."""
        return self._plus(other, "add")

    def __sub__(self, other: Any) -> Any:
        """Returns the difference: sparse, or dense with a dense array."""
        return self._plus(other, "subtract")

    def __rsub__(self, other: Any) -> Any:
        """Returns the difference."""
        return (-self).__add__(other)

    def multiply(self, other: Any) -> SparseArray:
        """Returns the product of elements.

        Args:
          other: a sparse array, a number, or a dense array that broadcasts to this one.
        """
        if isinstance(other, SparseArray):
            return self._merged(other, "multiply")
        if is_scipy(other):
            return self._merged(from_scipy(other), "multiply")
        if is_arraylike(other) and not typeof(other).ndim:
            return self._with(self.values * other)
        x = on_values.sample_dense(self.pattern, fnp.asarray(other))
        return self._with(self.values * x)

    def __mul__(self, other: Any) -> Any:
        """Returns the product of elements."""
        known = isinstance(other, SparseArray) or is_arraylike(other) or is_scipy(other)
        return self.multiply(other) if known else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        """Returns the product of elements."""
        return self.__mul__(other)

    def __truediv__(self, other: Any) -> Any:
        """Returns the quotients by a number or by elements of a dense array."""
        if isinstance(other, SparseArray) or is_scipy(other):
            raise ArgumentError(
                "the quotient of two sparse arrays is dense, NaN where both are 0: "
                "divide by other.todense()"
            )
        if not is_arraylike(other):
            return NotImplemented
        if not typeof(other).ndim:
            return self._with(self.values / other)
        values = self.values
        x = on_values.sample_dense(self.pattern, fnp.asarray(other))
        if self.pattern.coords.at is not None:  # dia: elements outside of the array
            held = self.tocoo()
            return held.__truediv__(other)
        return self._with(values / x)

    def __rtruediv__(self, other: Any) -> NoReturn:
        """Refuses: it is infinite where the array is 0."""
        raise ArgumentError("a quotient by a sparse array is infinite: use todense()")

    def maximum(self, other: Any) -> SparseArray:
        """Returns the larger elements.

        Args:
          other: a sparse array, or a number that is not positive.
        """
        return self._extreme_of(other, "maximum")

    def minimum(self, other: Any) -> SparseArray:
        """Returns the smaller elements.

        Args:
          other: a sparse array, or a non-negative number.
        """
        return self._extreme_of(other, "minimum")

    def _extreme_of(self, other: Any, kind: str) -> SparseArray:
        if is_scipy(other):
            other = from_scipy(other)
        if isinstance(other, SparseArray):
            return self._merged(other, kind)
        number = isinstance(other, int | float)
        if not number or (other > 0 if kind == "maximum" else other < 0):
            raise ArgumentError(
                f"{kind}: with {other!r} the result is dense: use todense()"
            )
        return self._map(lambda v: getattr(fnp, kind)(v, other))

    # -- products ----------------------------------------------------------------------

    def __matmul__(self, other: Any) -> Any:
        """Returns the matrix product: with a dense array dense, else sparse."""
        if is_scipy(other):
            other = from_scipy(other)
        if isinstance(other, SparseArray):
            a, b = self.tocsr(), other.tocsr()
            plan = product_plan(a.pattern, b.pattern)
            found = product_values(a.pattern, b.pattern, a.values, b.values, plan)
            return _made(plan.pattern, found)
        if not is_arraylike(other):
            return NotImplemented
        return on_values.product(self.pattern, self.values, other)

    def __rmatmul__(self, other: Any) -> Any:
        """Returns the matrix product of a dense array and this one."""
        if is_scipy(other):
            return from_scipy(other) @ self
        if not is_arraylike(other):
            return NotImplemented
        turned = self.transpose()
        if typeof(other).ndim < 2:
            return turned @ other
        return fnp.swapaxes(turned @ fnp.swapaxes(other, -1, -2), -1, -2)

    def dot(self, other: Any) -> Any:
        """Returns the matrix product, or the product with a number.

        Args:
          other: a sparse or dense array, or a number.
        """
        if is_arraylike(other) and not typeof(other).ndim:
            return self * other
        return self @ other

    # -- reductions --------------------------------------------------------------------

    def sum(self, axis: int | None = None, dtype: Any = None) -> Array:
        """Returns the sum of elements, as a dense array.

        Args:
          axis: 0: of each column; 1: of each row; None: of all.
          dtype: in which they are added; None is as for `fxflow.numpy.sum`.
        """
        held = self if dtype is None else self.astype(dtype)
        found: Array = on_values.total(held.pattern, held.values, axis_of("sum", axis))
        return found

    def mean(self, axis: int | None = None, dtype: Any = None) -> Array:
        """Returns the mean of elements, zeros included.

        Args:
          axis: 0: of each column; 1: of each row; None: of all.
          dtype: in which they are added; None is a float dtype.
        """
        m, n = self.shape
        axis = axis_of("mean", axis)
        count = m * n if axis is None else (m, n)[axis]
        return self.sum(axis, dtype) / count

    def trace(self, offset: int = 0) -> Array:
        """Returns the sum of a diagonal.

        Args:
          offset: which diagonal; positive ones are above the main one.
        """
        return fnp.sum(self.diagonal(offset))

    def diagonal(self, k: int = 0) -> Array:
        """Returns a diagonal, as a dense array.

        Args:
          k: which; positive ones are above the main one.
        """
        m, n = self.shape
        k = operator.index(k)
        count = max(0, min(m + min(k, 0), n - max(k, 0)))
        rows = np.arange(count) + max(-k, 0)
        return self._elements(rows, rows + k)

    def count_nonzero(self, axis: int | None = None) -> Array:
        """Returns how many elements are not 0.

        Args:
          axis: 0: of each column; 1: of each row; None: of all.
        """
        held = self._single()
        return held._with((held.values != 0).astype(dtypes.int32)).sum(axis)

    def nonzero(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns rows and columns of elements that are not 0: NumPy arrays."""
        held = self.tocsr()
        kept = held._host("nonzero") != 0
        row, col, _ = held.pattern.coords
        return row[kept], col[kept]

    # -- parts -------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        """Refuses: arrays are immutable."""
        raise TypeError(
            f"sparse arrays are immutable, {self!r} included: change a "
            "SciPy copy (to_scipy()) and convert it back (sparse.from_scipy)"
        )

    def __getitem__(self, index: Any) -> Any:
        """Returns rows, columns, blocks (sparse) or elements (dense).

        One row, one column and elements at arrays of rows and columns are dense.
        """
        if isinstance(index, SparseArray):
            raise ArgumentError("a sparse array is not indexed by a sparse array")
        if not isinstance(index, tuple):
            index = (index,)
        if any(part is Ellipsis for part in index):
            at = next(i for i, part in enumerate(index) if part is Ellipsis)
            fill = (slice(None),) * (3 - len(index))
            index = (*index[:at], *fill, *index[at + 1 :])
        if len(index) > 2:
            raise IndexError(f"a sparse array has two axes, got {len(index)} indices")
        index = (*index, *(slice(None),) * (2 - len(index)))
        parts = [positions(i, n) for i, n in zip(index, self.shape, strict=True)]
        rows, cols = parts
        if isinstance(rows, int) or isinstance(cols, int):
            both = np.broadcast_arrays(rows, cols)
            return self._elements(*both)
        sliced = any(isinstance(i, slice) for i in index)
        if not sliced:
            fits = rows.ndim == 2 and cols.ndim == 2
            if not (fits and rows.shape[1] == 1 and cols.shape[0] == 1):
                return self._elements(*np.broadcast_arrays(rows, cols))
            rows, cols = rows.ravel(), cols.ravel()
        if rows.ndim != 1 or cols.ndim != 1:
            raise IndexError(
                "a sparse array is indexed by vectors; np.ix_ makes those of a block"
            )
        held = self.tocsr()
        return held._regrouped(selection(held.pattern, rows, cols))

    def _elements(self, rows: np.ndarray, cols: np.ndarray) -> Array:
        held = self.tocsr()
        at = device_array(lookup(held.pattern, rows, cols).ravel())
        zero = fnp.zeros((1,), held.dtype)
        padded = fnp.concatenate([on_values.flat(held.pattern, held.values), zero])
        return fnp.reshape(take(padded, at, 0), rows.shape)

    def __iter__(self) -> Any:
        """Yields the rows, as dense arrays."""
        return (self[i] for i in range(self.shape[0]))

    def reshape(self, *shape: Any, order: str = "C", copy: bool = False) -> Any:
        """Returns the elements in another shape of one or two axes, in format coo.

        Args:
          *shape: one or two numbers, or a tuple of them; one may be -1.
          order: "C": the elements row by row; "F": column by column.
          copy: has no effect: arrays are immutable.
        """
        if order not in ("C", "F"):
            raise ArgumentError(f'reshape: order must be "C" or "F", got {order!r}')
        given = shape[0] if len(shape) == 1 else shape
        flat = not isinstance(given, tuple | list)
        if flat or len(given) == 1:
            number = given if flat else given[0]
            return SparseVector(self.reshape(1, number, order=order))
        if order == "F":
            turned = tuple(reversed(tuple(given)))
            return self.transpose().reshape(turned).transpose()
        held = self.tocoo()
        return _made(reshaped(held.pattern, tuple(given)), held.values)

    def resize(self, *shape: Any) -> SparseArray:
        """Returns the array cut, or with rows and columns of zeros at its ends.

        SciPy's changes the array itself; arrays are immutable here.

        Args:
          *shape: two numbers, or a pair of them.
        """
        given = shape[0] if len(shape) == 1 else shape
        found: SparseArray = resized(self, given)
        return found


def _made(pattern: Pattern, values: Any) -> SparseArray:
    """Returns an array without a check: values may be anything inside of a tree."""
    made = object.__new__(SparseArray)
    made.pattern, made.values = pattern, values
    return made


def _zero_method(name: str) -> Any:
    def method(self: SparseArray) -> SparseArray:
        return self._map(getattr(fnp, name))

    method.__name__ = name
    method.__qualname__ = f"SparseArray.{name}"
    method.__doc__ = f"Returns `{name}` of the stored elements; zeros stay zeros."
    return method


for _name in ZERO.split():
    setattr(SparseArray, _name, _zero_method(_name))


def from_scipy(array: Any, dtype: Any = None) -> Any:
    """Returns a sparse array of SciPy as one of fxflow, in the same format.

    Args:
      array: a sparse array or matrix of one or two axes; lil and dok become csr.
      dtype: dtype of the values; None: what `fxflow.numpy.asarray` makes of them.

    Returns:
      A `SparseArray`, or a `SparseVector` of one axis.

    Example:
      >>> import scipy.sparse
      >>> from_scipy(scipy.sparse.eye_array(3, dtype="float32"))
      dia_array(f32[3,3], nnz=3)
    """
    if not is_scipy(array) or array.ndim != 1:
        pattern, data = scipy_parts(array)
        return SparseArray(pattern, fnp.asarray(data, dtype))
    made = of_scipy(SparseArray, array)
    return made if dtype is None else made.astype(dtype)
