"""Connected elements, and sums, means and extremes of labelled ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.kernels.gallery.labels import connected_parts
from fxflow.lax.axes import integer, natural
from fxflow.numpy._operands import ArrayLike, array_of, promote_inexact
from fxflow.scipy.ndimage._neighbourhoods import (
    Footprint,
    footprint_of,
    host,
    real_operand,
    views,
)
from fxflow.scipy.ndimage.filters import _result
from fxflow.scipy.ndimage.morphology import _structure

#: Elements for which a kernel is worth compiling.
_LEAST = 1 << 12

# -- labels ----------------------------------------------------------------------------


@library("footprint")
def _hooked(input: Any, footprint: Footprint) -> tuple[Array, Array]:
    """Labels by hooking trees of elements onto one another and flattening them.

    Each element points to an earlier one that is connected with it. In a round the
    roots of neighbours are compared, and the greater one hangs on the smaller one; then
    all point to what their goals point to. The number of rounds grows as the logarithm
    of the longest path. Y. Shiloach and U. Vishkin, An O(log n) Parallel Connectivity
    Algorithm, 1982.
    """
    x = array_of(input, "label") != 0
    n, ndim = x.aval.size, x.aval.ndim
    if not n:
        return fnp.zeros(x.aval.shape, dtypes.int32), fnp.zeros((), dtypes.int32)
    index = fnp.arange(n, dtype=dtypes.int32)
    inside = fnp.reshape(x, -1)
    # Elements of the background point to a place behind the last one.
    parent = fnp.where(inside, index, n)

    def least(parent: Array) -> Array:
        """Returns the least of what an element and its neighbours point to."""
        field = fnp.reshape(parent[:n], x.aval.shape)
        rows = views("label", field, footprint, (0,) * ndim, ("constant",) * ndim, n)
        found = functools.reduce(fnp.minimum, [*rows, field])
        return fnp.where(inside, fnp.reshape(found, -1), n)

    def round_(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        parent, _ = carry
        found = least(parent)
        # The root of an element learns what the element has found.
        whole = fnp.concatenate([found, fnp.asarray([n], dtypes.int32)])
        hooked = whole.at[parent].min(found, mode="promise_in_bounds")
        for _ in range(3):
            hooked = hooked.at[hooked].get(mode="promise_in_bounds")
        new = hooked[:n]
        return new, fnp.any(new != parent)

    start = least(parent)
    parent = lax.while_loop(lambda c: c[1], round_, (start, fnp.asarray(True)))[0]
    root = inside & (parent == index)
    order = fnp.cumsum(root.astype(dtypes.int32))
    labels = fnp.where(inside, order[fnp.minimum(parent, n - 1)], 0)
    return fnp.reshape(labels, x.aval.shape), order[-1]


@library("bits")
def _by_kernel(x: Any, bits: tuple[bool, ...]) -> tuple[Array, Array]:
    """Labels by a kernel.

    Args:
      x: bool[...], of n axes.
      bits: whether each of the 3ⁿ elements of the structure is connected.
    """
    ndim = x.aval.ndim
    structure = np.reshape(bits, (3,) * ndim)
    before = np.argwhere(structure)[
        : np.count_nonzero(structure.ravel()[: 3**ndim // 2])
    ]
    footprint = footprint_of("label", "structure", structure, range(ndim), ndim)
    shape = [n + 2 for n in x.aval.shape]
    middle = (slice(1, -1),) * ndim

    def plain(inside: Any) -> tuple[Array, Array]:
        field = fnp.reshape(inside, shape)[middle]
        labels, count = _hooked(field, footprint)
        return fnp.reshape(fnp.pad(labels, 1), -1), count

    strides = np.cumprod([1, *shape[:0:-1]])[::-1]
    back = [int(step) for step in (1 - before) @ strides]
    inside = fnp.reshape(fnp.pad(x.astype(dtypes.int32), 1), -1)
    labels, count = connected_parts(inside, back, reference=plain)
    return fnp.reshape(labels, shape)[middle], count


def label(
    input: ArrayLike, structure: Any = None, output: Any = None
) -> tuple[Array, Array]:
    """Numbers the connected parts of a shape.

    Args:
      input: array-like[...]; what is not 0 belongs to the shape.
      structure: bool array-like[3, …, 3], symmetric about its middle: which neighbours
        are connected with an element; None is those that share a side.
      output: dtype of the numbers; None is int32.

    Returns:
      The numbers, an array of the shape of `input`, 0 outside of the shape, in the
      order of the first elements of the parts; and how many there are, int32[].

    Raises:
      ArgumentError: the structure is traced or not symmetric.
      ShapeError: it has the wrong shape.

    Example:
      >>> label(np.array([1, 1, 0, 1, 0, 1]))
      (Array([1, 1, 0, 2, 0, 3], dtype=int32), Array(3, dtype=int32))

    Source: `scipy.ndimage.label`.
    """
    x = array_of(input, "label")
    bits = _structure(x.ndim, 1)
    if structure is not None:
        bits = host("label", "structure", structure).astype(bool)
        if bits.shape != (3,) * x.ndim:
            raise ShapeError(
                f"label: structure must have shape {(3,) * x.ndim} for {x.aval}, got "
                f"{bits.shape}"
            )
        if (bits != bits[(slice(None, None, -1),) * x.ndim]).any():
            raise ArgumentError("label: structure must be symmetric about its middle")
    # What is traced may be many arrays.
    compiled = isinstance(x, Tracer) or x.size >= _LEAST
    if compiled and x.size and x.ndim:
        labels, count = _by_kernel(x != 0, tuple(bits.ravel().tolist()))
    else:
        footprint = footprint_of("label", "structure", bits, range(x.ndim), x.ndim)
        labels, count = _hooked(x, footprint)
    return _result("label", labels, output), count


def find_objects(input: ArrayLike, max_label: int = 0) -> list[Any]:
    """Returns the box around the elements of each label.

    Args:
      input: int array-like[...]: labels, known (not traced).
      max_label: the greatest label to look for; 0 is the greatest of all.

    Returns:
      For each label 1, 2, … a tuple of slices, or None if no element has it.

    Raises:
      ArgumentError: `input` is traced or has no integers.

    Example:
      >>> find_objects(np.array([0, 1, 1, 0, 2]))
      [(slice(1, 3, None),), (slice(4, 5, None),)]

    Source: `scipy.ndimage.find_objects`.
    """
    labels = host("find_objects", "input", input)
    if labels.dtype.kind not in "iu":
        raise ArgumentError(
            f"find_objects: labels must be integers, got {labels.dtype}"
        )
    greatest = integer("find_objects", "max_label", max_label)
    if greatest < 1:
        greatest = int(labels.max(initial=0))
    places = np.argwhere(labels > 0)
    values = labels[labels > 0]
    low = np.full((greatest + 1, labels.ndim), np.iinfo(np.int64).max)
    high = np.full((greatest + 1, labels.ndim), -1)
    kept = values <= greatest
    np.minimum.at(low, values[kept], places[kept])
    np.maximum.at(high, values[kept], places[kept])
    return [
        tuple(slice(int(a), int(b) + 1) for a, b in zip(low[k], high[k], strict=True))
        if (high[k] >= 0).all() and labels.ndim
        else None
        for k in range(1, greatest + 1)
    ]


def value_indices(
    arr: ArrayLike, *, ignore_value: int | None = None
) -> dict[int, tuple[Array, ...]]:
    """Returns where each value of an array is.

    Args:
      arr: int array-like[...], known (not traced).
      ignore_value: a value to leave out.

    Returns:
      For each value, ascending, a tuple of int arrays, one for each axis: the indices
      of its elements, in the order of the array.

    Raises:
      ArgumentError: `arr` is traced or has no integers.

    Example:
      >>> value_indices(np.array([0, 2, 2, 0]), ignore_value=0)
      {2: (Array([1, 2], dtype=int32),)}

    Source: `scipy.ndimage.value_indices`.
    """
    x = host("value_indices", "arr", arr)
    if x.dtype.kind not in "iu":
        raise ArgumentError(f"value_indices: arr must have integers, got {x.dtype}")
    values, counts = np.unique(x, return_counts=True)
    order = np.argsort(x, axis=None, kind="stable")
    places = np.unravel_index(order, x.shape) if x.ndim else ()
    ends = np.cumsum(counts)
    return {
        int(value): tuple(fnp.asarray(p[end - count : end]) for p in places)
        for value, count, end in zip(values, counts, ends, strict=True)
        if ignore_value is None or value != ignore_value
    }


# -- statistics of labels --------------------------------------------------------------

_docs = shared("""
    Args:
      input: array-like[...]: the values.
      labels: int array-like that broadcasts to the shape of `input`; None is one label
        for all elements.
      index: the labels to select: an integer or int array-like[*s]; None treats all
        nonzero labels as one.

    Returns:
      Array[*s].

    Raises:
      ArgumentError: `index` is given without `labels`.
      ShapeError: `labels` does not broadcast to the shape of `input`.

    Source: `scipy.ndimage.{name}`; lists of numbers are arrays here.
""")


def _groups(
    name: str, x: Array, labels: Any, index: Any
) -> tuple[Array, int, Callable[[Array], Array]]:
    """Returns the group of each element, how many there are, and results by index.

    The last group is that of all other elements.
    """
    n = x.aval.size
    if labels is None:
        if index is not None:
            raise ArgumentError(f"{name}: index needs labels")
        return fnp.zeros(n, dtypes.int32), 1, lambda r: r[0]
    marks = array_of(labels, name)
    if marks.aval.shape != x.aval.shape:
        try:
            marks = fnp.broadcast_to(marks, x.aval.shape)
        except ShapeError:
            raise ShapeError(
                f"{name}: labels must broadcast to the shape of input, got "
                f"{marks.aval} for {x.aval}"
            ) from None
    marks = fnp.reshape(marks, -1)
    if index is None:
        return fnp.where(marks > 0, 0, 1).astype(dtypes.int32), 1, lambda r: r[0]
    wanted = fnp.asarray(index)
    shape = wanted.aval.shape
    wanted = fnp.reshape(wanted, -1)
    count = wanted.aval.size
    if not count:
        empty = fnp.zeros(n, dtypes.int32)
        return empty, 0, lambda r: fnp.reshape(r[:0], (*shape, *r.aval.shape[1:]))
    line = fnp.sort(wanted)
    at = fnp.minimum(fnp.searchsorted(line, marks), count - 1)
    group = fnp.where(line[at] == marks, at, count).astype(dtypes.int32)
    places = fnp.searchsorted(line, wanted)

    def results(r: Array) -> Array:
        return fnp.reshape(r[places], (*shape, *r.aval.shape[1:]))

    return group, count, results


def _sums(values: Array, group: Array, count: int) -> Array:
    """Returns sums of the values of each group, [count, ...]."""
    zeros = fnp.zeros((count + 1, *values.aval.shape[1:]), values.aval.dtype)
    return zeros.at[group].add(values, mode="promise_in_bounds")[:count]


def _flat(name: str, x: Any) -> Array:
    (x,) = promote_inexact(name, x)
    return fnp.reshape(x, -1)


def _counted(x: Array, group: Array, count: int) -> Array:
    real = dtypes.to_real(x.aval.dtype)
    return _sums(fnp.ones(group.aval.shape, real), group, count)


@library()
@_docs
def sum_labels(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns the sums of the values of labels; 0 for labels that no element has.

    Example:
      >>> sum_labels(np.arange(5.0), np.array([1, 1, 2, 2, 0]), np.array([1, 2]))
      Array([1., 5.], dtype=float32)
    """
    name = "sum_labels"
    x = array_of(input, name)
    group, count, results = _groups(name, x, labels, index)
    return results(_sums(_flat(name, x), group, count))


def sum(input: ArrayLike, labels: ArrayLike | None = None, index: Any = None) -> Array:
    """Returns `sum_labels` of the same arguments: SciPy's older name.

    Args:
      input: array-like[...]: the values.
      labels: int array-like that broadcasts to the shape of `input`.
      index: the labels asked for.

    Returns:
      Array[*s].

    Example:
      >>> sum(np.arange(4.0))
      Array(6., dtype=float32)

    Source: `scipy.ndimage.sum`.
    """
    return sum_labels(input, labels, index)


@library()
@_docs
def mean(input: ArrayLike, labels: ArrayLike | None = None, index: Any = None) -> Array:
    """Returns the means of the values of labels; nan for labels that no element has.

    Example:
      >>> mean(np.arange(5.0), np.array([1, 1, 2, 2, 0]), np.array([1, 2]))
      Array([0.5, 2.5], dtype=float32)
    """
    x = array_of(input, "mean")
    group, count, results = _groups("mean", x, labels, index)
    values = _flat("mean", x)
    return results(_sums(values, group, count) / _counted(values, group, count))


@library()
@_docs
def variance(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns the variances of the values of labels.

    Example:
      >>> variance(np.array([1.0, 3.0, 5.0, 5.0]), np.array([1, 1, 2, 2]), 1)
      Array(1., dtype=float32)
    """
    x = array_of(input, "variance")
    group, count, results = _groups("variance", x, labels, index)
    return results(_variances(_flat("variance", x), group, count))


def _variances(values: Array, group: Array, count: int) -> Array:
    size = _counted(values, group, count)
    means = _sums(values, group, count) / size
    padded = fnp.concatenate([means, fnp.zeros(1, means.aval.dtype)])
    apart = values - padded[group]
    square = fnp.real(apart * fnp.conj(apart))
    return _sums(square, group, count) / size


@library()
@_docs
def standard_deviation(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns the standard deviations of the values of labels.

    Special cases:
      The derivative of a deviation of 0 is 0.

    Example:
      >>> standard_deviation(np.array([1.0, 3.0, 5.0, 5.0]), np.array([1, 1, 2, 2]), 1)
      Array(1., dtype=float32)
    """
    name = "standard_deviation"
    x = array_of(input, name)
    group, count, results = _groups(name, x, labels, index)
    square = _variances(_flat(name, x), group, count)
    away = ~(square == 0)
    root = fnp.where(away, fnp.sqrt(fnp.where(away, square, 1)), square)
    return results(root)


@library("bins")
def _histogram(
    input: Any, low: Any, high: Any, bins: int, labels: Any, index: Any
) -> Array:
    name = "histogram"
    x = array_of(input, name)
    group, count, results = _groups(name, x, labels, index)
    values, low, high = promote_inexact(name, x, low, high)
    values = fnp.reshape(values, -1)
    edges = low + (high - low) * fnp.arange(bins + 1, dtype=values.aval.dtype) / bins
    at = fnp.searchsorted(edges, values, side="right") - 1
    at = fnp.where(values == high, bins - 1, at)
    inside = (at >= 0) & (at < bins)
    cell = fnp.where(inside, group * bins + at, (count + 1) * bins)
    ones = fnp.ones(values.aval.shape, dtypes.int32)
    table = fnp.reshape(_sums(ones, cell, (count + 1) * bins), (count + 1, bins))
    return results(table[:count])


@_docs
def histogram(
    input: ArrayLike,
    min: ArrayLike,
    max: ArrayLike,
    bins: int,
    labels: ArrayLike | None = None,
    index: Any = None,
) -> Array:
    """Counts the values in each of `bins` equal bins, separately for each label.

    Args:
      min: the first edge.
      max: the last edge, which belongs to the last bin.
      bins: the number of bins.

    Returns:
      int32[*s, bins].

    Example:
      >>> histogram(np.array([0.0, 1.0, 1.5, 4.0]), 0, 4, 2)
      Array([3, 1], dtype=int32)
    """
    return _histogram(
        *(input, min, max, natural("histogram", "bins", bins), labels, index)
    )


def labeled_comprehension(
    input: ArrayLike,
    labels: ArrayLike | None,
    index: Any,
    func: Callable[..., Any],
    out_dtype: Any,
    default: Any,
    pass_positions: bool = False,
) -> Array:
    """Returns a function of the values of each label.

    Args:
      input: array-like[...]: the values; they may be traced and differentiated.
      labels: array-like that broadcasts to the shape of `input`, known (not traced):
        the number of values is static. None: the function of all values.
      index: the labels asked for, known: an integer or int array-like[*s]; None is the
        function of the values of all labels that are not 0, together.
      func: of a vector of values; it returns a number.
      out_dtype: of the result.
      default: a number for labels that no element has; None is 0.
      pass_positions: whether the function also gets the positions of the values in the
        flattened array, int[...].

    Returns:
      Array[*s] of `out_dtype`.

    Raises:
      ArgumentError: labels or index are traced, `index` is given without `labels`, or
        `func` is not a function.
      ShapeError: `labels` does not broadcast to the shape of `input`.

    Example:
      >>> x, labels = np.array([1.0, 3.0, 7.0, 5.0]), np.array([1, 1, 2, 0])
      >>> labeled_comprehension(x, labels, [1, 2, 3], fnp.mean, float, -1)
      Array([ 2.,  7., -1.], dtype=float32)

    Source: `scipy.ndimage.labeled_comprehension`.
    """
    name = "labeled_comprehension"
    if not callable(func):
        raise ArgumentError(f"{name}: func must be a function, got {func!r}")
    x = array_of(input, name)
    values = fnp.reshape(x, -1)
    if labels is None:
        if index is not None:
            raise ArgumentError(f"{name}: index needs labels")
        groups: list[Any] = [np.arange(values.size)]
        shape: tuple[int, ...] = ()
    else:
        marks = host(name, "labels", labels)
        try:
            marks = np.broadcast_to(marks, x.shape).ravel()
        except ValueError:
            raise ShapeError(
                f"{name}: labels must broadcast to the shape of input, got shape "
                f"{marks.shape} for {x.aval}"
            ) from None
        if index is None:
            groups, shape = [np.flatnonzero(marks)], ()
        else:
            wanted = host(name, "index", index)
            groups, shape = (
                [np.flatnonzero(marks == k) for k in wanted.flat],
                wanted.shape,
            )
    none = 0 if default is None else default
    found = []
    for places in groups:
        if not places.size:
            found.append(fnp.asarray(none, out_dtype))
            continue
        given = (
            (values[places], fnp.asarray(places))
            if pass_positions
            else (values[places],)
        )
        found.append(fnp.asarray(func(*given)).astype(out_dtype))
    if not found:
        return fnp.zeros(shape, out_dtype)
    return fnp.reshape(fnp.stack(found), shape)


# -- ranks of labels -------------------------------------------------------------------


def _first_of(
    name: str, x: Array, labels: Any, index: Any, greatest: bool
) -> tuple[Array, Array]:
    """Returns the extreme of each label, and where it is first, by index."""
    group, count, results = _groups(name, x, labels, index)
    values = fnp.reshape(x, -1)
    n = values.aval.size
    if not n:
        raise ShapeError(f"{name}: there is no extreme of no values, got {x.aval}")
    fixed = lax.stop_gradient(values)
    # Where a group begins, any of its values will do: the least ones come after it.
    some = fnp.broadcast_to(fixed[0], (count + 1,)).at[group].set(fixed)
    best = some.at[group].max(fixed) if greatest else some.at[group].min(fixed)
    here = fnp.where(fixed == best[group], fnp.arange(n, dtype=dtypes.int32), n)
    first = fnp.full(count + 1, n, dtypes.int32).at[group].min(here)[:count]
    known = first < n
    first = fnp.where(known, first, 0)
    found = values[first]
    return results(fnp.where(known, found, 0)), results(first)


def _unraveled(x: Array, places: Array) -> Array:
    """Returns places of flat arrays as an array of coordinates, [..., axes]."""
    if not x.aval.ndim:
        return fnp.zeros((*places.aval.shape, 0), dtypes.int32)
    return fnp.stack(fnp.unravel_index(places, x.aval.shape), -1).astype(dtypes.int32)


@library()
@_docs
def minimum(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns the least values of labels; 0 for labels that no element has.

    Example:
      >>> minimum(np.array([3, 1, 4, 1]), np.array([1, 1, 2, 2]), np.array([1, 2]))
      Array([1, 1], dtype=int32)
    """
    x = real_operand("minimum", input)
    return _first_of("minimum", x, labels, index, False)[0]


@library()
@_docs
def maximum(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns the greatest values of labels; 0 for labels that no element has.

    Example:
      >>> maximum(np.array([3, 1, 4, 1]), np.array([1, 1, 2, 2]), np.array([1, 2]))
      Array([3, 4], dtype=int32)
    """
    x = real_operand("maximum", input)
    return _first_of("maximum", x, labels, index, True)[0]


@library()
@_docs
def minimum_position(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns where the least values of labels are, the first ones of equal values.

    Returns:
      int32[*s, axes].

    Example:
      >>> minimum_position(np.array([[3, 1], [4, 1]]))
      Array([0, 1], dtype=int32)
    """
    x = real_operand("minimum_position", input)
    places = _first_of("minimum_position", x, labels, index, False)[1]
    return _unraveled(x, places)


@library()
@_docs
def maximum_position(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns where the greatest values of labels are, the first ones of equal values.

    Returns:
      int32[*s, axes].

    Example:
      >>> maximum_position(np.array([[3, 1], [4, 1]]))
      Array([1, 0], dtype=int32)
    """
    x = real_operand("maximum_position", input)
    places = _first_of("maximum_position", x, labels, index, True)[1]
    return _unraveled(x, places)


@library()
@_docs
def extrema(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> tuple[Array, Array, Array, Array]:
    """Returns the least and greatest values of labels, and where they are.

    Returns:
      The least and the greatest values, Array[*s]; where they are, int32[*s, axes].

    Example:
      >>> [x.tolist() for x in extrema(np.array([3, 1, 4]))]
      [1, 4, [1], [2]]
    """
    x = real_operand("extrema", input)
    low, at_low = _first_of("extrema", x, labels, index, False)
    high, at_high = _first_of("extrema", x, labels, index, True)
    return low, high, _unraveled(x, at_low), _unraveled(x, at_high)


@library()
@_docs
def median(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns the medians of the values of labels; nan for labels no element has.

    Example:
      >>> median(np.array([3, 1, 4, 1]), np.array([1, 1, 2, 2]), np.array([1, 2]))
      Array([2. , 2.5], dtype=float32)
    """
    x = real_operand("median", input)
    group, count, results = _groups("median", x, labels, index)
    values = _flat("median", x)
    order = fnp.lexsort((values, group))
    line = values[order]
    sizes = _sums(fnp.ones(group.aval.shape, dtypes.int32), group, count)
    ends = fnp.cumsum(sizes)
    start = ends - sizes
    if not line.aval.size:
        return results(fnp.full(count, fnp.nan, values.aval.dtype))
    last = line.aval.size - 1
    low = line[fnp.clip(start + (sizes - 1) // 2, 0, last)]
    high = line[fnp.clip(start + sizes // 2, 0, last)]
    return results(fnp.where(sizes > 0, low + (high - low) / 2, fnp.nan))


@library()
@_docs
def center_of_mass(
    input: ArrayLike, labels: ArrayLike | None = None, index: Any = None
) -> Array:
    """Returns the centers of the values of labels.

    Returns:
      Float array[*s, axes]: the means of the coordinates, weighed by the values; nan or
      infinite if the sum of the values is 0.

    Example:
      >>> center_of_mass(np.array([[0.0, 1.0], [0.0, 3.0]]))
      Array([0.75, 1.  ], dtype=float32)
    """
    name = "center_of_mass"
    x = array_of(input, name)
    group, count, results = _groups(name, x, labels, index)
    values = _flat(name, x)
    whole = _sums(values, group, count)
    real = dtypes.to_real(values.aval.dtype)
    parts = []
    for axis, n in enumerate(x.aval.shape):
        line = fnp.reshape(
            fnp.arange(n, dtype=real),
            [-1 if k == axis else 1 for k in range(x.aval.ndim)],
        )
        place = fnp.reshape(fnp.broadcast_to(line, x.aval.shape), -1)
        parts.append(_sums(values * place, group, count) / whole)
    if not parts:
        return fnp.zeros((*fnp.shape(results(whole)), 0), values.aval.dtype)
    return results(fnp.stack(parts, -1))
