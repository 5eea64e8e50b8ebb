"""Making sparse arrays: from indices and values, from dense arrays, from blocks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.sparse import values as on_values
from fxflow.sparse.array import SparseArray, from_scipy
from fxflow.sparse.interchange import is_scipy
from fxflow.sparse.pattern import Pattern
from fxflow.sparse.vector import SparseVector, expanded

# -- one array -------------------------------------------------------------------------


def coo_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False
) -> Any:
    """Makes a sparse array of coordinates.

    Args:
      arg1: `(data, (row, col))`, where the indices are known when tracing; a dense
        array of two axes, which is not traced; a sparse array; or a shape.
        For one axis: a dense vector, `(data, (indices,))`, or `(n,)`.
      shape: shape of the result; None: as small as the indices allow.
      dtype: dtype of the values; None: as they are.
      copy: has no effect: arrays are immutable.

    Returns:
      A `SparseArray`; entries at one place are kept, and count as their sum.

    Example:
      >>> A = coo_array((fnp.array([1.0, 2.0]), ([0, 1], [1, 2])), shape=(2, 3))
      >>> A.todense()
      Array([[0., 1., 0.],
             [0., 0., 2.]], dtype=float32)
    """
    return _made("coo", arg1, shape, dtype)


def csr_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False
) -> Any:
    """Makes a sparse array of compressed rows.

    Args:
      arg1: `(data, indices, indptr)` or `(data, (row, col))`, where the indices are
        known when tracing; a dense array of two axes, which is not traced; a sparse
        array; or a shape.
        For one axis: a dense vector, `(data, (indices,))`, or `(n,)`.
      shape: shape of the result; None: as small as the indices allow.
      dtype: dtype of the values; None: as they are.
      copy: has no effect: arrays are immutable.

    Returns:
      A `SparseArray` of rows.

    Example:
      >>> A = csr_array((fnp.array([1.0, 2.0]), [1, 2], [0, 1, 2]), shape=(2, 3))
      >>> A @ fnp.ones(3)
      Array([1., 2.], dtype=float32)
    """
    return _made("csr", arg1, shape, dtype)


def csc_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False
) -> SparseArray:
    """Makes a sparse array of compressed columns.

    Args:
      arg1: `(data, indices, indptr)` or `(data, (row, col))`, where the indices are
        known when tracing; a dense array of two axes, which is not traced; a sparse
        array; or a shape.
      shape: shape of the result; None: as small as the indices allow.
      dtype: dtype of the values; None: as they are.
      copy: has no effect: arrays are immutable.

    Returns:
      A `SparseArray` of columns.

    Example:
      >>> csc_array(fnp.eye(3))
      csc_array(f32[3,3], nnz=3)
    """
    return _made("csc", arg1, shape, dtype)


def bsr_array(
    arg1: Any,
    shape: Any = None,
    dtype: Any = None,
    copy: bool = False,
    blocksize: tuple[int, int] | None = None,
) -> SparseArray:
    """Makes a sparse array of dense blocks.

    Args:
      arg1: `(data, indices, indptr)` with data of shape (blocks, r, c), or
        `(data, (row, col))`; a dense array, which is not traced; a sparse array; or a
        shape.
      shape: shape of the result; None: as small as the indices allow.
      dtype: dtype of the values; None: as they are.
      copy: has no effect: arrays are immutable.
      blocksize: (r, c); None: (1, 1), or those of the data.

    Returns:
      A `SparseArray` of blocks.

    Example:
      >>> bsr_array(fnp.eye(4), blocksize=(2, 2)).values.shape
      (2, 2, 2)
    """
    return _made("bsr", arg1, shape, dtype, blocksize)


def dia_array(
    arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False
) -> SparseArray:
    """Makes a sparse array of diagonals.

    Args:
      arg1: `(data, offsets)` with data of shape (diagonals, length), whose column j is
        that of the array; a dense array, which is not traced; a sparse array; or a
        shape.
      shape: shape of the result, needed with `(data, offsets)`.
      dtype: dtype of the values; None: as they are.
      copy: has no effect: arrays are immutable.

    Returns:
      A `SparseArray` of diagonals.

    Example:
      >>> dia_array((fnp.ones((2, 3)), [0, 1]), shape=(3, 3)).todense()
      Array([[1., 1., 0.],
             [0., 1., 1.],
             [0., 0., 1.]], dtype=float32)
    """
    return _made("dia", arg1, shape, dtype)


def fromdense(x: Any, *, pattern: Pattern | None = None) -> SparseArray:
    """Returns a dense array as a sparse one.

    Args:
      x: array of two axes. Without a pattern it is not traced: which elements are 0
        would be known only at run time.
      pattern: where the entries lie; other elements of `x` are dropped.

    Returns:
      A sparse array with the pattern, or csr with the elements that are not 0.

    Example:
      >>> A = fromdense(fnp.eye(3))
      >>> fxflow.jit(lambda x: fromdense(x, pattern=A.pattern).sum())(fnp.ones((3, 3)))
      Array(3., dtype=float32)
    """
    if pattern is None:
        return _of_dense("fromdense", x, None)
    x = fnp.asarray(x)
    if typeof(x).shape != pattern.shape:
        raise ShapeError(
            f"fromdense: the pattern is of shape {list(pattern.shape)}, got {typeof(x)}"
        )
    return SparseArray(pattern, on_values.sample_dense(pattern, x))


def _of_dense(name: str, x: Any, dtype: Any) -> SparseArray:
    if isinstance(x, Tracer):
        raise ConcretizationError(
            f"{name}: the pattern of a traced array {typeof(x)} is not known: use "
            "fromdense(x, pattern=...) with a pattern that is"
        )
    x = fnp.asarray(x, dtype)
    if typeof(x).ndim != 2:
        raise ShapeError(f"{name}: sparse arrays have two axes, got {typeof(x)}")
    row, col = np.nonzero(np.asarray(x))
    pattern = Pattern.of_coords(row, col, typeof(x).shape)
    return SparseArray(pattern, on_values.sample_dense(pattern, x))


def _made(
    format: str,
    arg1: Any,
    shape: Any,
    dtype: Any,
    blocksize: tuple[int, int] | None = None,
) -> SparseArray:
    name = f"{format}_array"
    if format in ("coo", "csr"):
        vector = _vector(name, format, arg1, shape, dtype)
        if vector is not None:
            return vector  # type: ignore[no-any-return]
    if is_scipy(arg1):
        arg1 = from_scipy(arg1, dtype)
    if isinstance(arg1, SparseArray):
        made = arg1
    elif isinstance(arg1, tuple) and arg1 and not _is_shape(arg1):
        made = _of_parts(name, format, arg1, shape, dtype)
    elif isinstance(arg1, tuple):
        m, n = arg1 if len(arg1) == 2 else (0, 0)
        if len(arg1) != 2:
            raise ShapeError(f"{name}: sparse arrays have two axes: {arg1!r}")
        kind = dtypes.default_float() if dtype is None else dtype
        pattern = Pattern.of_coords(np.zeros(0, int), np.zeros(0, int), (m, n))
        made = SparseArray(pattern, fnp.zeros((0,), kind))
    elif is_arraylike(arg1) or isinstance(arg1, list):
        made = _of_dense(name, arg1, dtype)
    else:
        raise ArgumentError(
            f"{name}: expected data with indices, a dense or a sparse array, or a "
            f"shape; got {arg1!r}"
        )
    if shape is not None and tuple(shape) != made.shape:
        raise ShapeError(
            f"{name}: shape={tuple(shape)}, but the array has {made.shape}"
        )
    if dtype is not None:
        made = made.astype(dtype)
    if format == "bsr":
        return made.tobsr(blocksize)
    return made.asformat(format)


def _vector(name: str, format: str, arg1: Any, shape: Any, dtype: Any) -> Any:
    """Returns what has one axis as a vector, and None for the rest."""
    if shape is not None and not np.ndim(shape):
        shape = (shape,)
    made: Any = None
    if isinstance(arg1, SparseVector):
        made = arg1
    elif is_scipy(arg1):
        made = from_scipy(arg1) if arg1.ndim == 1 else None
    elif isinstance(arg1, tuple) and len(arg1) == 1 and _is_shape(arg1):
        made = SparseVector(_made(format, (1, arg1[0]), None, dtype))
    elif isinstance(arg1, tuple) and not _is_shape(arg1):
        single = shape is not None and len(shape) == 1
        if len(arg1) == 3 and single:
            made = SparseVector(_made(format, arg1, (1, *shape), dtype))
        elif len(arg1) == 2 and np.ndim(arg1[1]) == 2 and len(arg1[1]) == 1:
            at = np.asarray(arg1[1][0])
            count = int(np.max(at, initial=-1)) + 1 if shape is None else shape[0]
            both = (arg1[0], (np.zeros(at.shape, at.dtype), at))
            made = SparseVector(_made(format, both, (1, count), dtype))
    elif (is_arraylike(arg1) or isinstance(arg1, list)) and np.ndim(arg1) == 1:
        x = fnp.asarray(arg1)
        made = SparseVector(_made(format, x[None], None, dtype))
    if made is None:
        return None
    if shape is not None and tuple(shape) != made.shape:
        raise ShapeError(
            f"{name}: shape={tuple(shape)}, but the array has {made.shape}"
        )
    made = made.asformat(format)
    return made if dtype is None else made.astype(dtype)


def _is_shape(value: tuple[Any, ...]) -> bool:
    return all(hasattr(n, "__index__") and not np.ndim(n) for n in value)


def _of_parts(
    name: str, format: str, parts: tuple[Any, ...], shape: Any, dtype: Any
) -> SparseArray:
    if len(parts) == 2 and format != "dia":
        data, indices = parts
        if not (isinstance(indices, tuple | list | np.ndarray) and len(indices) == 2):
            raise ArgumentError(f"{name}: expected (data, (row, col)), got {indices!r}")
        row, col = indices
        if shape is None:
            shape = tuple(int(np.max(i, initial=-1)) + 1 for i in (row, col))
        data = fnp.asarray(data, dtype)
        return SparseArray(Pattern("coo", shape, (row, col), typeof(data).shape), data)
    if format == "dia" and len(parts) == 2:
        data, offsets = (
            fnp.atleast_2d(fnp.asarray(parts[0], dtype)),
            np.atleast_1d(parts[1]),
        )
        if shape is None:
            raise ArgumentError(f"{name}: (data, offsets) needs shape=")
        return SparseArray(Pattern("dia", shape, (offsets,), typeof(data).shape), data)
    if len(parts) != 3 or format not in ("csr", "csc", "bsr"):
        raise ArgumentError(f"{name}: it is not made of {len(parts)} arrays")
    data, indices, indptr = parts
    data = fnp.asarray(data, dtype)
    if shape is None:
        r, c = typeof(data).shape[1:] if format == "bsr" else (1, 1)
        major = (len(np.asarray(indptr)) - 1) * r
        minor = (int(np.max(indices, initial=-1)) + 1) * c
        shape = (minor, major) if format == "csc" else (major, minor)
    return SparseArray(
        Pattern(format, shape, (indptr, indices), typeof(data).shape), data
    )


def issparse(x: Any) -> bool:
    """Returns whether a value is a sparse array of fxflow.

    Args:
      x: any value.

    Returns:
      A bool.

    Example:
      >>> issparse(eye_array(2)), issparse(fnp.eye(2))
      (True, False)
    """
    return isinstance(x, SparseArray | SparseVector)


# -- special arrays --------------------------------------------------------------------


def eye_array(
    m: int, n: int | None = None, *, k: int = 0, dtype: Any = None, format: Any = None
) -> SparseArray:
    """Returns ones on a diagonal.

    Args:
      m: number of rows.
      n: number of columns; None is `m`.
      k: which diagonal; positive ones are above the main one.
      dtype: dtype of the result; None is the default float dtype.
      format: format of the result; None is "dia".

    Returns:
      A `SparseArray`.

    Example:
      >>> eye_array(2, 3, k=1).todense()
      Array([[0., 1., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    m = operator.index(m)
    n = m if n is None else operator.index(n)
    length = max(0, min(m + k, n))
    kind = dtypes.default_float() if dtype is None else dtype
    data = fnp.ones((1, length), kind)
    pattern = Pattern("dia", (m, n), ([operator.index(k)],), (1, length))
    return SparseArray(pattern, data).asformat(format)


def diags_array(
    diagonals: Any,
    /,
    *,
    offsets: Any = 0,
    shape: Any = None,
    format: Any = None,
    dtype: Any = None,
) -> SparseArray:
    """Returns an array of diagonals.

    Args:
      diagonals: vectors, each as long as its diagonal, or of length 1; for one offset a
        vector will do. They may be traced.
      offsets: of the diagonals, known when tracing; positive ones are above the main.
      shape: shape of the result; None: a square in which the first diagonal fits.
      format: format of the result; None is "dia".
      dtype: dtype of the result; None: as they are.

    Returns:
      A `SparseArray`.

    Example:
      >>> diags_array([fnp.ones(2), [2.0]], offsets=[1, 0], shape=(3, 3)).todense()
      Array([[2., 1., 0.],
             [0., 2., 1.],
             [0., 0., 2.]], dtype=float32)
    """
    found = np.asarray(offsets)
    if not found.ndim:
        single = is_arraylike(diagonals) and typeof(diagonals).ndim == 2
        nested = isinstance(diagonals, list | tuple) and len(diagonals) == 1
        nested = nested and np.ndim(diagonals[0]) == 1
        diagonals = diagonals if single or nested else [diagonals]
        found = found[None]
    lines = [fnp.atleast_1d(fnp.asarray(d)) for d in diagonals]
    if len(lines) != len(found):
        raise ArgumentError(
            f"diags_array: {len(lines)} diagonals, but {len(found)} offsets"
        )
    numbers = [operator.index(k) for k in found.tolist()]
    if shape is None:
        size = typeof(lines[0]).shape[0] + abs(numbers[0]) if lines else 0
        shape = (size, size)
    m, n = shape
    kind = fnp.result_type(*lines) if dtype is None and lines else dtype
    length = max((min(m + k, n) for k in numbers), default=0)
    length = max(length, 0)
    rows = []
    for line, k in zip(lines, numbers, strict=True):
        count = min(m + min(k, 0), n - max(k, 0))
        have = typeof(line).shape[0]
        if count < 0 or (have != count and have != 1):
            raise ShapeError(
                f"diags_array: diagonal {k} of shape {[m, n]} has {max(count, 0)} "
                f"elements, got {typeof(line)}"
            )
        line = fnp.broadcast_to(line.astype(kind), (count,))
        before = max(k, 0)
        rows.append(fnp.pad(line, (before, length - before - count)))
    data = fnp.stack(rows) if rows else fnp.zeros((0, length), kind)
    pattern = Pattern("dia", (m, n), (numbers,), typeof(data).shape)
    return SparseArray(pattern, data).asformat(format)


def random_array(
    shape: Sequence[int],
    *,
    density: float = 0.01,
    format: str = "coo",
    dtype: Any = None,
    rng: Any = None,
    data_sampler: Callable[..., Any] | None = None,
) -> SparseArray:
    """Returns an array with entries at random places.

    Args:
      shape: shape of the result.
      density: which part of the elements are entries.
      format: format of the result.
      dtype: dtype of the values; None is the default float dtype.
      rng: what NumPy's `default_rng` takes: places are static, so keys do not do.
      data_sampler: called with `size=` for the values; None: uniform between 0 and 1.

    Returns:
      A `SparseArray`.

    Example:
      >>> random_array((10, 10), density=0.2, rng=0)
      coo_array(f32[10,10], nnz=20)
    """
    if not 0 <= density <= 1:
        raise ArgumentError(f"random_array: density is between 0 and 1, got {density}")
    m, n = map(operator.index, shape)
    generator = np.random.default_rng(rng)
    count = round(m * n * density)
    keys = np.sort(generator.choice(m * n, count, replace=False)) if m * n else 0
    keys = np.atleast_1d(keys)[:count]
    sampler = data_sampler or (lambda size: generator.random(size))
    kind = dtypes.default_float() if dtype is None else dtype
    data = fnp.asarray(np.asarray(sampler(size=count)), kind)
    arrays = keys // max(n, 1), keys % max(n, 1)
    return SparseArray(Pattern("coo", (m, n), arrays, (count,)), data).asformat(format)


# -- of several arrays -----------------------------------------------------------------


def _sparse(name: str, x: Any) -> SparseArray:
    """Returns an argument as a sparse array."""
    if isinstance(x, SparseArray):
        return x
    if is_scipy(x) and x.ndim == 2:
        return SparseArray.of_scipy(x)
    if isinstance(x, list):
        x = fnp.asarray(x)
    if not is_arraylike(x):
        raise ArgumentError(f"{name}: expected a sparse or dense array, got {x!r}")
    return _of_dense(name, fnp.atleast_2d(x), None)


def kron(A: Any, B: Any, format: Any = None) -> SparseArray:
    """Returns the Kronecker product.

    Args:
      A: sparse array, or a dense one that is not traced.
      B: likewise.
      format: format of the result; None is "coo".

    Returns:
      A `SparseArray`.

    Example:
      >>> kron(eye_array(2), fnp.array([[1.0, 2.0]])).todense()
      Array([[1., 2., 0., 0.],
             [0., 0., 1., 2.]], dtype=float32)
    """
    a, b = _sparse("kron", A).tocoo(), _sparse("kron", B).tocoo()
    (m, n), (p, q) = a.shape, b.shape
    row = (a.row.astype(np.int64)[:, None] * p + b.row).ravel()
    col = (a.col.astype(np.int64)[:, None] * q + b.col).ravel()
    data = fnp.outer(a.values, b.values).ravel()
    pattern = Pattern("coo", (m * p, n * q), (row, col), row.shape)
    return SparseArray(pattern, data).asformat(format)


def kronsum(A: Any, B: Any, format: Any = None) -> SparseArray:
    """Returns the Kronecker sum of square arrays: kron(I, A) + kron(B, I).

    Args:
      A: square sparse array, or a dense one that is not traced.
      B: likewise.
      format: format of the result; None is "csr".

    Returns:
      A `SparseArray`.

    Example:
      >>> kronsum(eye_array(2), eye_array(3)).diagonal()
      Array([2., 2., 2., 2., 2., 2.], dtype=float32)
    """
    a, b = _sparse("kronsum", A), _sparse("kronsum", B)
    for x in (a, b):
        if x.shape[0] != x.shape[1]:
            raise ShapeError(f"kronsum: arrays must be square, got {list(x.shape)}")
    left = kron(eye_array(b.shape[0], dtype=a.dtype), a)
    right = kron(b, eye_array(a.shape[0], dtype=b.dtype))
    found: SparseArray = left + right
    return found.asformat(format)


def block_array(blocks: Any, *, format: Any = None, dtype: Any = None) -> SparseArray:
    """Returns an array of blocks.

    Args:
      blocks: rows of blocks: sparse arrays, dense ones that are not traced, or None for
        zeros.
      format: format of the result; None is "coo".
      dtype: dtype of the result; None: the common one.

    Returns:
      A `SparseArray`.

    Example:
      >>> block_array([[eye_array(1), None], [None, 2 * eye_array(2)]]).diagonal()
      Array([1., 2., 2.], dtype=float32)
    """
    return _blocks("block_array", blocks, format, dtype)


def _blocks(name: str, blocks: Any, format: Any, dtype: Any) -> SparseArray:
    rows = [list(row) for row in blocks]
    if not rows or any(len(row) != len(rows[0]) for row in rows) or not rows[0]:
        raise ShapeError(f"{name}: blocks must be rows of equally many, at least one")
    heights: list[int | None] = [None] * len(rows)
    widths: list[int | None] = [None] * len(rows[0])
    held: list[tuple[int, int, SparseArray]] = []
    for i, row in enumerate(rows):
        for j, block in enumerate(row):
            if block is None:
                continue
            x = _sparse(name, block).tocoo()
            for sizes, at, n in ((heights, i, x.shape[0]), (widths, j, x.shape[1])):
                if sizes[at] not in (None, n):
                    raise ShapeError(
                        f"{name}: block [{i},{j}] is of shape {list(x.shape)}, but "
                        f"others of its {'row' if sizes is heights else 'column'} need "
                        f"{sizes[at]}"
                    )
                sizes[at] = n
            held.append((i, j, x))
    if None in heights or None in widths:
        raise ShapeError(f"{name}: a row or a column of blocks has only None")
    tops = np.cumsum([0, *(h or 0 for h in heights)])
    lefts = np.cumsum([0, *(w or 0 for w in widths)])
    row = [x.row + tops[i] for i, _, x in held]
    col = [x.col + lefts[j] for _, j, x in held]
    kind = fnp.result_type(*(x.values for *_, x in held)) if dtype is None else dtype
    data = fnp.concatenate([x.values.astype(kind) for *_, x in held])
    arrays = np.concatenate(row), np.concatenate(col)
    shape = int(tops[-1]), int(lefts[-1])
    pattern = Pattern("coo", shape, arrays, typeof(data).shape)
    return SparseArray(pattern, data).asformat(format)


def hstack(blocks: Any, format: Any = None, dtype: Any = None) -> SparseArray:
    """Returns arrays side by side.

    Args:
      blocks: sparse arrays, or dense ones that are not traced, of equally many rows.
      format: format of the result; None is "coo".
      dtype: dtype of the result; None: the common one.

    Returns:
      A `SparseArray`.

    Example:
      >>> hstack([eye_array(2), eye_array(2)]).shape
      (2, 4)
    """
    return _blocks("hstack", [list(blocks)], format, dtype)


def vstack(blocks: Any, format: Any = None, dtype: Any = None) -> SparseArray:
    """Returns arrays one below the other.

    Args:
      blocks: sparse arrays, or dense ones that are not traced, of equally many columns.
      format: format of the result; None is "coo".
      dtype: dtype of the result; None: the common one.

    Returns:
      A `SparseArray`.

    Example:
      >>> vstack([eye_array(2), eye_array(2)]).shape
      (4, 2)
    """
    return _blocks("vstack", [[block] for block in blocks], format, dtype)


def block_diag(mats: Any, format: Any = None, dtype: Any = None) -> SparseArray:
    """Returns an array with blocks on its diagonal.

    Args:
      mats: sparse arrays, or dense ones that are not traced.
      format: format of the result; None is "coo".
      dtype: dtype of the result; None: the common one.

    Returns:
      A `SparseArray`.

    Example:
      >>> block_diag([eye_array(1), fnp.ones((2, 2))]).todense()
      Array([[1., 0., 0.],
             [0., 1., 1.],
             [0., 1., 1.]], dtype=float32)
    """
    blocks = list(mats)
    rows = [
        [None] * i + [b] + [None] * (len(blocks) - i - 1) for i, b in enumerate(blocks)
    ]
    return _blocks("block_diag", rows, format, dtype)


# -- parts -----------------------------------------------------------------------------


def permute_dims(A: Any, axes: Any = None, copy: bool = False) -> SparseArray:
    """Returns a sparse array with its axes in another order.

    Args:
      A: sparse array[m, n].
      axes: the axes in their new order, (1, 0) or (0, 1); None means (1, 0).
      copy: has no effect: arrays are immutable.

    Returns:
      A sparse array[n, m], or `A` itself.

    Raises:
      ArgumentError: `axes` has the wrong length, or an axis twice.
      AxisError: an axis is out of range.

    Example:
      >>> permute_dims(fromdense(np.array([[0, 1, 2]]))).shape
      (3, 1)

    Source: `scipy.sparse.permute_dims`.
    """
    name = "permute_dims"
    array = _sparse(name, A)
    order = (1, 0) if axes is None else tuple(axes)
    at = [canonical_axis(name, axis, 2) for axis in order]
    if sorted(at) != [0, 1]:
        raise ArgumentError(
            f"{name}: axes must have each of the two axes once, got {order}"
        )
    return array.transpose() if at == [1, 0] else array


def expand_dims(A: Any, /, *, axis: int = 0) -> SparseArray:
    """Returns a sparse vector as a matrix of one row or one column.

    Args:
      A: a sparse array of one axis.
      axis: where the new axis is: 0 (a row) or 1 (a column); -1 is 1, -2 is 0.

    Returns:
      A `SparseArray`.

    Raises:
      ArgumentError: `A` is not a sparse array of one axis, or there is no such axis.

    Example:
      >>> expand_dims(coo_array(fnp.array([0.0, 2.0])), axis=1)
      coo_array(f32[2,1], nnz=1)
    """
    if is_scipy(A):
        A = from_scipy(A)
    if not isinstance(A, SparseVector):
        raise ArgumentError(
            "expand_dims: A must be a sparse array of one axis, as sparse arrays have "
            f"two at most, got {A!r}"
        )
    at = operator.index(axis)
    if not -2 <= at < 2:
        raise ArgumentError(f"expand_dims: axis must be 0 or 1, got {axis!r}")
    found: SparseArray = expanded(A, at % 2)
    return found


def swapaxes(A: Any, axis1: int, axis2: int) -> SparseArray:
    """Returns a sparse array with two of its axes exchanged.

    Args:
      A: sparse array[m, n].
      axis1: an axis.
      axis2: the other axis.

    Returns:
      A sparse array[n, m], or `A` itself if both axes are the same.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> swapaxes(fromdense(np.array([[0, 1, 2]])), 0, 1).shape
      (3, 1)

    Source: `scipy.sparse.swapaxes`.
    """
    name = "swapaxes"
    array = _sparse(name, A)
    first, second = (canonical_axis(name, axis, 2) for axis in (axis1, axis2))
    return array if first == second else array.transpose()


def tril(A: Any, k: int = 0, format: Any = None) -> SparseArray:
    """Returns the elements on and below a diagonal.

    Args:
      A: sparse array, or a dense one that is not traced.
      k: which diagonal; positive ones are above the main one.
      format: format of the result; None is "coo".

    Returns:
      A `SparseArray`.

    Example:
      >>> tril(fnp.ones((2, 2))).todense()
      Array([[1., 0.],
             [1., 1.]], dtype=float32)
    """
    return _kept("tril", A, lambda row, col: col - row <= operator.index(k), format)


def triu(A: Any, k: int = 0, format: Any = None) -> SparseArray:
    """Returns the elements on and above a diagonal.

    Args:
      A: sparse array, or a dense one that is not traced.
      k: which diagonal; positive ones are above the main one.
      format: format of the result; None is "coo".

    Returns:
      A `SparseArray`.

    Example:
      >>> triu(fnp.ones((2, 2))).todense()
      Array([[1., 1.],
             [0., 1.]], dtype=float32)
    """
    return _kept("triu", A, lambda row, col: col - row >= operator.index(k), format)


def _kept(name: str, A: Any, condition: Any, format: Any) -> SparseArray:
    held = _sparse(name, A).tocoo()
    row, col = held.row, held.col
    kept = np.flatnonzero(condition(row.astype(np.int64), col))
    pattern = Pattern("coo", held.shape, (row[kept], col[kept]), kept.shape)
    return SparseArray(pattern, held.values[kept]).asformat(format)


def find(A: Any) -> tuple[np.ndarray, np.ndarray, Array]:
    """Returns rows, columns and values of the elements that are not 0.

    Args:
      A: sparse or dense array whose values are not traced.

    Returns:
      Rows and columns, NumPy arrays, and values, in order of rows.

    Example:
      >>> row, col, values = find(eye_array(2))
      >>> row, values
      (array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
    """
    held = _sparse("find", A).tocsr().eliminate_zeros()
    row, col = held.coords
    return row, col, held.values
