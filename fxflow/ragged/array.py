"""The type of ragged arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import (
    ArgumentError,
    AxisError,
    DtypeError,
    OutOfRangeError,
    ShapeError,
)
from fxflow.lax.checking import debug_check
from fxflow.ragged.operators import Operators


@register_pytree_node_class
class RaggedArray(Operators):
    """Rows of different lengths, whose values stand one after the other.

    A pytree of two arrays: `jit`, `grad`, `vmap`, `scan` and checkpoints take it as
    they take arrays. The capacity and the number of rows are static; the lengths are
    data. Values behind those of the last row may be anything, and no result depends on
    them.

    Operators act elementwise, with numbers, with ragged arrays of the same lengths, and
    with arrays that broadcast against (rows, 1, ...): one value for each row, or one
    for all. `map` applies any other elementwise function.

    Args:
      values: array-like[capacity, ...]: the values of row 0, then those of row 1, …
      lengths: integer array-like[rows]: how many belong to each row.

    Attributes:
      values: as given.
      lengths: int32[rows].

    Raises:
      ArgumentError: lengths, where they are known, are negative or exceed the capacity
        together.
      DtypeError: lengths are not integers.
      ShapeError: `values` is 0-d, or `lengths` is not 1-d.

    Example:
      >>> x = RaggedArray(fnp.arange(6.0), [2, 0, 3])
      >>> x
      RaggedArray(f32[3,(2, 0, 3)], capacity=6)
      >>> x.sum().tolist()
      [1.0, 0.0, 9.0]
    """

    __array_priority__: float = 200.0
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    values: Any
    lengths: Any

    def __init__(self, values: Any, lengths: Any) -> None:
        values, lengths = fnp.asarray(values), fnp.asarray(lengths)
        if not typeof(values).ndim:
            raise ShapeError(
                f"RaggedArray: values must have an axis of values, got {typeof(values)}"
            )
        if typeof(lengths).ndim != 1:
            raise ShapeError(
                "RaggedArray: lengths must be one integer for each row, got "
                f"{typeof(lengths)}"
            )
        if not lengths.size:
            lengths = lengths.astype(np.int32)
        if not dtypes.is_integer(typeof(lengths).dtype):
            raise DtypeError(
                f"RaggedArray: lengths must be integers, got {typeof(lengths)}"
            )
        self.values, self.lengths = values, lengths.astype(np.int32)
        require_room("RaggedArray", self.lengths, self.capacity)

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        """Returns values and lengths."""
        return (self.values, self.lengths), None

    @classmethod
    def tree_unflatten(cls, static: None, children: Any) -> RaggedArray:
        """Rebuilds an array from the output of `tree_flatten`."""
        return made(*children)

    # -- facts -------------------------------------------------------------------------

    @property
    def capacity(self) -> int:
        """The number of values that there is room for."""
        return int(self.values.shape[0])

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.lengths.shape[0])

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The number of rows, None for their lengths, and the axes of a value."""
        return (self.rows, None, *self.values.shape[1:])

    @property
    def ndim(self) -> int:
        """The number of axes, that of the lengths included."""
        return int(self.values.ndim) + 1

    @property
    def dtype(self) -> Any:
        """That of the values."""
        return self.values.dtype

    @property
    def offsets(self) -> Array:
        """Where each row begins, and where the last one ends: int32[rows + 1]."""
        return fnp.pad(fnp.cumsum(self.lengths, dtype=np.int32), (1, 0))

    @property
    def row_ids(self) -> Array:
        """The row of each value: int32[capacity]; `rows` for what is in none."""
        ends = fnp.zeros(self.capacity, np.int32).at[self.offsets[1:]]
        return fnp.cumsum(ends.add(1, mode="drop"), dtype=np.int32)

    @property
    def positions(self) -> Array:
        """The place of each value in its row: int32[capacity]."""
        starts = self.offsets[fnp.minimum(self.row_ids, self.rows)]
        return fnp.arange(self.capacity, dtype=np.int32) - starts

    @property
    def mask(self) -> Array:
        """Which values are in a row: bool[capacity]."""
        return fnp.arange(self.capacity, dtype=np.int32) < self._total

    @property
    def _total(self) -> Array:
        return fnp.sum(self.lengths, dtype=np.int32)

    @property
    def _settled(self) -> Array:
        """The values, with the last one in place of those that are in no row.

        So a function is finite there if it is finite elsewhere, and their cotangents,
        which are 0, stay 0: 0 · inf would be nan.
        """
        if not self.capacity:
            return fnp.asarray(self.values)
        place = fnp.where(self._total > 0, self._total - 1, self.capacity)
        last = self.values.at[place].get(mode="fill", fill_value=1)
        inside = self.mask.reshape(-1, *[1] * (self.values.ndim - 1))
        settled: Array = fnp.where(inside, self.values, last)
        return settled

    def __len__(self) -> int:
        """The number of rows."""
        return self.rows

    def __bool__(self) -> NoReturn:
        """Raises: it is not one truth value."""
        raise ArgumentError("a ragged array is not true or false: use .any() or .all()")

    def __repr__(self) -> str:
        """Its type, with the lengths if they are known."""
        name = dtypes.short_name(self.dtype)
        lengths = "?"
        if is_concrete(self.lengths):
            known = np.asarray(self.lengths).tolist()
            shown = (
                [*map(str, known)] if self.rows <= 8 else [*map(str, known[:7]), "…"]
            )
            lengths = f"({', '.join(shown)})"
        inner = "".join(f",{n}" for n in self.values.shape[1:])
        aval = f"{name}[{self.rows},{lengths}{inner}]"
        return f"RaggedArray({aval}, capacity={self.capacity})"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Raises: rows differ in length."""
        raise ArgumentError(
            f"{self!r} is not rectangular: use .to_padded(length), .values or .tolist()"
        )

    def __fxflow_array__(self) -> NoReturn:
        """Raises; see `__array__`."""
        self.__array__()

    # -- other forms -------------------------------------------------------------------

    def tolist(self) -> list[Any]:
        """Returns the rows as lists of Python numbers; the lengths must be known."""
        values, ends = np.asarray(self.values), np.cumsum(np.asarray(self.lengths))
        return [part.tolist() for part in np.split(values, ends)[: self.rows]]

    def to_padded(self, length: int | None = None, fill_value: Any = 0) -> Array:
        """Returns the rows padded at their ends: array[rows, length, ...].

        Args:
          length: length of the rows; longer ones are cut where their lengths are not
            known. None: that of the longest, which must be known.
          fill_value: what to pad with.

        Raises:
          ArgumentError: a row is known to be longer; the lengths are not known and
            `length` is None.

        Example:
          >>> RaggedArray(fnp.arange(3), [2, 1]).to_padded(3, -1).tolist()
          [[0, 1, -1], [2, -1, -1]]
        """
        length = row_length("to_padded", self, length)
        if not self.capacity:
            shape = (self.rows, length, *self.values.shape[1:])
            return fnp.full(shape, fill_value, self.dtype)
        places = fnp.arange(length, dtype=np.int32)
        inside = places < self.lengths[:, None]
        found = self.values.at[self.offsets[:-1, None] + places].get(mode="clip")
        wide = inside.reshape(*inside.shape, *[1] * (self.values.ndim - 1))
        return fnp.where(wide, found, fnp.asarray(fill_value, self.dtype))

    def with_capacity(self, capacity: int) -> RaggedArray:
        """Returns the same rows with room for another number of values.

        Raises:
          ArgumentError: the rows are known to have more.
        """
        require_room("with_capacity", self.lengths, capacity)
        more = capacity - self.capacity
        if more <= 0:
            return made(self.values[:capacity], self.lengths)
        pads = [(0, more), *[(0, 0)] * (self.values.ndim - 1)]
        return made(fnp.pad(self.values, pads), self.lengths)

    def astype(self, dtype: Any) -> RaggedArray:
        """Returns the array with values of another dtype."""
        return made(self.values.astype(dtype), self.lengths)

    # -- elementwise -------------------------------------------------------------------

    def map(self, function: Callable[..., Any], *others: Any) -> RaggedArray:
        """Applies a function to the values of all rows at once.

        Args:
          function: takes values[capacity, ...] of this array and of the others, and
            returns an array[capacity, ...]; it may not mix values.
          *others: numbers, ragged arrays of the same lengths, or arrays that broadcast
            against (rows, 1, ...).

        Returns:
          A ragged array of the same lengths.

        Raises:
          ArgumentError: another array has other lengths.
          ShapeError: an array does not broadcast, or the result has another capacity.

        Example:
          >>> RaggedArray(fnp.array([1.0, 4.0, 9.0]), [1, 2]).map(fnp.sqrt).tolist()
          [[1.0], [2.0, 3.0]]
        """
        out = function(self._settled, *(self.aligned(x) for x in others))
        if typeof(out).ndim < 1 or typeof(out).shape[0] != self.capacity:
            raise ShapeError(
                f"RaggedArray.map: the function must return an array of "
                f"{self.capacity} values, got {typeof(out)}"
            )
        return made(fnp.asarray(out), self.lengths)

    def aligned(self, other: Any) -> Any:
        """Returns what of another operand stands beside each value.

        Args:
          other: see `map`.

        Returns:
          A number, or an array that broadcasts against the values.
        """
        if isinstance(other, RaggedArray):
            if other.rows != self.rows or not same_lengths(self, other):
                raise ArgumentError(
                    f"ragged arrays must have the same lengths, got {self!r} and "
                    f"{other!r}"
                )
            if other.capacity != self.capacity:
                other = other.with_capacity(self.capacity)
            return other._settled
        aval = typeof(fnp.asarray(other))
        if aval.ndim < self.ndim - 1:
            return other
        row, at = (1, 0) if aval.ndim == self.ndim - 1 else (aval.shape[0], 1)
        if aval.ndim > self.ndim or aval.shape[at] != 1 or row not in (1, self.rows):
            raise ShapeError(
                f"an array beside {self!r} must broadcast against shape ({self.rows}, "
                f"1{''.join(f', {n}' for n in self.values.shape[1:])}), got {aval}"
            )
        if aval.ndim < self.ndim:
            return other
        return self.broadcast(fnp.squeeze(fnp.asarray(other), 1))

    def broadcast(self, per_row: Any) -> Array:
        """Returns for each value what there is for its row: array[capacity, ...].

        Args:
          per_row: array-like[rows, ...] or [1, ...].
        """
        per_row = fnp.asarray(per_row)
        if per_row.shape[0] == 1 or not self.rows or not self.capacity:
            shape = (self.capacity, *per_row.shape[1:])
            first = per_row[:1] if per_row.shape[0] else fnp.zeros((1, *shape[1:]))
            return fnp.broadcast_to(first, shape)
        ids = self.row_ids
        # What is in no row takes what the last value takes; see `_settled`.
        ids = fnp.where(self.mask, ids, ids.at[self._total - 1].get(mode="clip"))
        found: Array = per_row.at[ids].get(mode="clip", indices_are_sorted=True)
        return found

    def __matmul__(self, other: Any) -> RaggedArray:
        """Multiplies each value, a vector, with a matrix [k, n], or one for each row.

        `other` is an array[k, n] or [rows, k, n]; `lax.ragged_dot` serves the latter.
        """
        matrix = fnp.asarray(other)
        if self.values.ndim != 2 or matrix.ndim not in (2, 3):
            raise ShapeError(
                f"ragged @: values must be vectors, and the operand [k, n] or "
                f"[{self.rows}, k, n], got {self!r} and {typeof(matrix)}"
            )
        if matrix.ndim == 2:
            return made(self._settled @ matrix, self.lengths)
        if matrix.shape[0] != self.rows:
            raise ShapeError(
                f"ragged @: there must be a matrix for each of {self.rows} rows, got "
                f"{typeof(matrix)}"
            )
        dtype = fnp.result_type(self.values, matrix)
        values, matrix = self._settled.astype(dtype), matrix.astype(dtype)
        return made(lax.ragged_dot(values, matrix, self.lengths), self.lengths)

    # -- rows --------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """Returns row `index`, or a ragged array of the rows that it selects.

        An integer needs known lengths (else use `row`). A slice, a sequence or an array
        of integers or flags selects rows; the capacity stays.
        """
        if isinstance(index, int | np.integer):
            number = operator.index(index)
            if not -self.rows <= number < self.rows:
                raise OutOfRangeError(f"row {number} of {self!r} does not exist")
            if not is_concrete(self.lengths):
                raise ArgumentError(
                    f"row {number} of {self!r} has a length that is not known here: "
                    "use .row(i, length), which pads it"
                )
            ends = np.cumsum(np.asarray(self.lengths))
            end = int(ends[number])
            return self.values[end - int(self.lengths[number]) : end]
        if isinstance(index, tuple):
            raise AxisError(
                f"index one axis of {self!r}, that of the rows; .values has the others"
            )
        if not isinstance(index, slice):
            index = self._require_rows(fnp.asarray(index))
        lengths = self.lengths[index]
        return gathered(self.values, self.offsets[:-1][index], lengths, self.capacity)

    def _require_rows(self, index: Any) -> Any:
        """Returns an index array with which rows that are known exist.

        Raises:
          OutOfRangeError: one does not.
        """
        if dtypes.is_integer(index.dtype) and is_concrete(index):
            known = np.asarray(index)
            wrong = known[(known < -self.rows) | (known >= self.rows)]
            if wrong.size:
                raise OutOfRangeError(f"row {wrong.flat[0]} of {self!r} does not exist")
        return index

    def row(self, index: Any, length: int, fill_value: Any = 0) -> Array:
        """Returns one row, padded or cut: array[length, ...].

        Args:
          index: integer, which may be traced; negative ones count from the end.
          length: length of the result.
          fill_value: what to pad with.

        Raises:
          AxisError: the row is known not to exist.
        """
        index = self._require_rows(fnp.asarray(index))
        index = fnp.where(index < 0, index + self.rows, index)
        lengths = fnp.minimum(self.lengths[index], length)[None]
        one = gathered(self.values, self.offsets[index][None], lengths, length)
        return one.to_padded(length, fill_value)[0]

    # -- reductions --------------------------------------------------------------------

    def _pooled(self, kind: str, start: Any, values: Any = None) -> Array:
        values = self.values if values is None else values
        out = fnp.full((self.rows, *values.shape[1:]), start, values.dtype)
        combine: Any = getattr(out.at[self.row_ids], kind)
        pooled: Array = combine(values, mode="drop", indices_are_sorted=True)
        return pooled

    def _per_row(self, out: Array, keepdims: bool) -> Array:
        return out[:, None] if keepdims else out

    def count(self, keepdims: bool = False, dtype: Any = np.int32) -> Array:
        """Returns the lengths, shaped as a reduction of the values."""
        shape = (self.rows, *[1] * (self.values.ndim - 1))
        return self._per_row(self.lengths.reshape(shape).astype(dtype), keepdims)

    def sum(self, keepdims: bool = False) -> Array:
        """Returns the sum of each row, 0 for an empty one: array[rows, ...]."""
        values = self.values
        if dtypes.is_bool(typeof(values).dtype):
            values = values.astype(np.int32)
        return self._per_row(self._pooled("add", 0, values), keepdims)

    def prod(self, keepdims: bool = False) -> Array:
        """Returns the product of each row, 1 for an empty one: array[rows, ...]."""
        return self._per_row(self._pooled("multiply", 1), keepdims)

    def max(self, keepdims: bool = False) -> Array:
        """Returns the greatest values; -inf or the least one for an empty row."""
        return self._per_row(self._pooled("max", lowest(self.dtype)), keepdims)

    def min(self, keepdims: bool = False) -> Array:
        """Returns the least values; inf or the greatest one for an empty row."""
        return self._per_row(self._pooled("min", highest(self.dtype)), keepdims)

    def any(self, keepdims: bool = False) -> Array:
        """Returns whether a value of each row is not 0: bool[rows, ...]."""
        return self._per_row(self._pooled("max", False, self.values != 0), keepdims)

    def all(self, keepdims: bool = False) -> Array:
        """Returns whether no value of each row is 0: bool[rows, ...]."""
        return self._per_row(self._pooled("min", True, self.values != 0), keepdims)

    def mean(self, keepdims: bool = False) -> Array:
        """Returns the mean of each row; nan for an empty one."""
        values = self.values
        if not dtypes.is_inexact(typeof(values).dtype):
            values = values.astype(np.float32)
        total = self._pooled("add", 0, values)
        return self._per_row(_over(total, self._degrees(total)), keepdims)

    def var(self, ddof: float = 0, keepdims: bool = False) -> Array:
        """Returns the variance of each row: the divisor is the length less `ddof`.

        It is nan for a row whose length is not more than `ddof`.
        """
        mean = self.mean(keepdims=True)
        far = self.map(lambda x, m: fnp.abs(x - m) ** 2, mean)
        total = far.sum()
        return self._per_row(_over(total, self._degrees(total, ddof)), keepdims)

    def std(self, ddof: float = 0, keepdims: bool = False) -> Array:
        """Returns the standard deviation of each row; see `var`.

        Its derivative is 0 where it is 0. Squares do not over- or underflow.
        """
        mean = self.mean(keepdims=True)
        far = self.map(lambda x, m: fnp.abs(x - m), mean)
        scale = lax.stop_gradient(far.max(keepdims=True))
        scale = fnp.where((scale > 0) & fnp.isfinite(scale), scale, 1)
        total = far.map(lambda x, s: (x / s) ** 2, scale).sum()
        flat = total == 0
        root = fnp.where(flat, 0, fnp.sqrt(fnp.where(flat, 1, total)))
        degrees = self._degrees(root, ddof)
        root = _over(root, fnp.sqrt(fnp.maximum(degrees, 0)))
        return self._per_row(root * scale[:, 0], keepdims)

    def _degrees(self, total: Array, less: float = 0) -> Array:
        return self.count(dtype=total.real.dtype) - less

    def argmax(self) -> Array:
        """Returns the position of the first greatest value of each row: int32[rows].

        It is 0 for an empty row, and for more axes one for each element of a value.
        """
        return self._arg(self.max(keepdims=True))

    def argmin(self) -> Array:
        """Returns the position of the first least value of each row; see `argmax`."""
        return self._arg(self.min(keepdims=True))

    def _arg(self, best: Array) -> Array:
        is_best = self.map(lambda x, b: (x == b) | (x != x), best).values
        places = self.positions.reshape(-1, *[1] * (self.values.ndim - 1))
        none = np.iinfo(np.int32).max
        first = self._pooled("min", none, fnp.where(is_best, places, none))
        return fnp.where(first == none, 0, first)

    def logsumexp(self, keepdims: bool = False) -> Array:
        """Returns the logarithm of the sum of exponentials of each row."""
        top = lax.stop_gradient(self.max(keepdims=True))
        top = fnp.where(fnp.isfinite(top), top, 0)
        total = self.map(lambda x, t: fnp.exp(x - t), top).sum()
        none = total == 0
        log = fnp.where(none, -np.inf, fnp.log(fnp.where(none, 1, total)))
        return self._per_row(log + top[:, 0], keepdims)

    def softmax(self) -> RaggedArray:
        """Returns the softmax of each row."""
        top = lax.stop_gradient(self.max(keepdims=True))
        powers = self.map(lambda x, t: fnp.exp(x - t), top)
        return powers / powers.sum(keepdims=True)

    def cumsum(self) -> RaggedArray:
        """Returns the running sum of each row."""
        first = (self.positions == 0).reshape(-1, *[1] * (self.values.ndim - 1))
        first = fnp.broadcast_to(first, self.values.shape)

        def combine(a: Any, b: Any) -> Any:
            return a[0] | b[0], fnp.where(b[0], b[1], a[1] + b[1])

        _, sums = lax.associative_scan(combine, (first, self.values))
        return made(sums, self.lengths)

    def sort(self, descending: bool = False) -> RaggedArray:
        """Returns each row sorted; values must be numbers."""
        if self.values.ndim != 1:
            raise ShapeError(f"RaggedArray.sort: values must be numbers, got {self!r}")
        values = fnp.flip(self.values) if descending else self.values
        ids = fnp.flip(self.row_ids) if descending else self.row_ids
        _, ordered = lax.sort((-ids if descending else ids, values), num_keys=2)
        return made(fnp.flip(ordered) if descending else ordered, self.lengths)

    def flip(self) -> RaggedArray:
        """Returns each row from its end to its beginning."""
        if not self.rows or not self.capacity:
            return self
        ends = self.broadcast(self.offsets[:-1] + self.offsets[1:] - 1)
        places = ends - fnp.arange(self.capacity, dtype=np.int32)
        places = fnp.where(self.mask, places, self.capacity)
        flipped = self.values.at[places].get(mode="fill", fill_value=0)
        return made(flipped, self.lengths)


# -- helpers ---------------------------------------------------------------------------


def _over(total: Array, divisor: Array) -> Array:
    """Returns quotients; nan, of derivative 0, where a divisor is not positive."""
    valid = divisor > 0
    return fnp.where(valid, total / fnp.where(valid, divisor, 1), np.nan)


def made(values: Any, lengths: Any) -> RaggedArray:
    """Returns a ragged array of what is known to fit, or of no arrays at all."""
    out = object.__new__(RaggedArray)
    out.values, out.lengths = values, lengths
    return out


def is_concrete(value: Any) -> bool:
    """Returns whether a value is an array whose elements are known."""
    return isinstance(value, Array | np.ndarray) and not isinstance(value, Tracer)


def require_room(name: str, lengths: Any, capacity: int) -> None:
    """Checks that lengths, where they are known, fit in a capacity.

    Raises:
      ArgumentError: they do not; under `checkify`, where they are not known.
    """
    if not is_concrete(lengths):
        total = fnp.sum(lengths, dtype=np.int32)
        text = name + ": rows have {} values, more than the capacity of {}"
        debug_check(total <= capacity, text, total, np.int32(capacity))
        return
    known = np.asarray(lengths)
    if (known < 0).any():
        raise ArgumentError(f"{name}: lengths must not be negative, got {known.min()}")
    if known.sum() > capacity:
        raise ArgumentError(
            f"{name}: rows have {known.sum()} values, more than the capacity of "
            f"{capacity}"
        )


def row_length(name: str, array: RaggedArray, length: int | None) -> int:
    """Returns the length of padded rows, which must hold those that are known.

    Raises:
      ArgumentError: see `RaggedArray.to_padded`.
    """
    if not is_concrete(array.lengths):
        if length is None:
            raise ArgumentError(
                f"{name}: the longest row of {array!r} is not known here: pass length="
            )
        return operator.index(length)
    longest = int(np.asarray(array.lengths).max(initial=0))
    if length is None:
        return longest
    if longest > operator.index(length):
        raise ArgumentError(
            f"{name}: a row of {array!r} has {longest} values, more than "
            f"length={length}"
        )
    return operator.index(length)


def gathered(values: Any, starts: Any, lengths: Any, capacity: int) -> RaggedArray:
    """Returns a ragged array of stretches of an array.

    Args:
      values: array[n, ...].
      starts: int32[rows]: where each stretch begins.
      lengths: int32[rows].
      capacity: of the result.
    """
    require_room("RaggedArray", lengths, capacity)
    shape = (capacity, *values.shape[1:])
    out = made(fnp.zeros(shape, values.dtype), lengths)
    if not out.rows or not values.shape[0]:
        return out
    ids = fnp.minimum(out.row_ids, out.rows - 1)
    places = fnp.where(out.mask, starts[ids] + out.positions, values.shape[0])
    return made(values.at[places].get(mode="fill", fill_value=0), lengths)


def same_lengths(a: RaggedArray, b: RaggedArray) -> bool:
    """Returns whether two arrays have the same lengths, as far as that is known."""
    if a.lengths is b.lengths or not (
        is_concrete(a.lengths) and is_concrete(b.lengths)
    ):
        return True
    return np.array_equal(np.asarray(a.lengths), np.asarray(b.lengths))


def lowest(dtype: Any) -> Any:
    """Returns what is not greater than any value of a dtype."""
    if dtypes.is_bool(dtype):
        return False
    return -np.inf if dtypes.is_inexact(dtype) else dtypes.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """Returns what is not less than any value of a dtype."""
    if dtypes.is_bool(dtype):
        return True
    return np.inf if dtypes.is_inexact(dtype) else dtypes.iinfo(dtype).max
