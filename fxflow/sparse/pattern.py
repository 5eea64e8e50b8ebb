"""Patterns: where the entries of a sparse array lie.

A pattern is static data, like a shape: it is known when tracing, and a compiled program
is made for one. Equal patterns are one object, so that comparing two of them costs
nothing, and so that what is derived from a pattern (the transposed one, the order of
its entries) is computed once, with NumPy.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes
from fxflow.core.arrays.array import put_host
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.sparse_products import Entries, Layout

T = TypeVar("T")

#: The arrays of each format.
FORMATS: dict[str, tuple[str, ...]] = {
    "coo": ("row", "col"),
    "csr": ("indptr", "indices"),
    "csc": ("indptr", "indices"),
    "bsr": ("indptr", "indices"),
    "dia": ("offsets",),
}

_known: weakref.WeakValueDictionary[bytes, Pattern] = weakref.WeakValueDictionary()
_lock = threading.Lock()


class Coords(NamedTuple):
    """The entries of a pattern, in the order of its values.

    Attributes:
      row: int32[entries].
      col: int32[entries].
      at: int32[entries]: where the value of each lies; None: there is one for each.
    """

    row: np.ndarray
    col: np.ndarray
    at: np.ndarray | None


class Pattern:
    """Where the entries of a sparse array lie: its format, shape and indices.

    Make one with `Pattern.of_coords`, or take that of an array. Equal patterns are the
    same object.

    Attributes:
      format: "coo", "csr", "csc", "bsr" or "dia".
      shape: shape of the array: two numbers.
      arrays: int32 arrays of NumPy, by name: "row" and "col" for coo; "indptr" and
        "indices" for csr, csc and bsr; "offsets" for dia.
      values_shape: shape of the values of an array with this pattern.
    """

    __slots__ = (
        "__weakref__",
        "_digest",
        "_memo",
        "arrays",
        "format",
        "shape",
        "values_shape",
    )

    format: str
    shape: tuple[int, int]
    arrays: dict[str, np.ndarray]
    values_shape: tuple[int, ...]
    _digest: bytes
    _memo: dict[Any, Any]

    def __new__(
        cls,
        format: str,
        shape: Sequence[int],
        arrays: Sequence[Any],
        values_shape: Sequence[int],
    ) -> Pattern:
        """Returns the pattern of a format's arrays, which are checked."""
        shape, values_shape = _shape(shape), tuple(int(n) for n in values_shape)
        names = FORMATS.get(format)
        if names is None:
            raise ArgumentError(
                f"Pattern: format is one of {', '.join(FORMATS)}, got {format!r}"
            )
        found = [_integers(n, a) for n, a in zip(names, arrays, strict=True)]
        _check(format, shape, found, values_shape)
        hasher = hashlib.blake2b(digest_size=16)
        hasher.update(repr((format, shape, values_shape)).encode())
        for array in found:
            hasher.update(len(array).to_bytes(8, "little"))
            hasher.update(array.data)
        digest = hasher.digest()
        with _lock:
            known = _known.get(digest)
            if known is not None:
                return known
            made = super().__new__(cls)
            made.format, made.shape, made.values_shape = format, shape, values_shape
            made.arrays = dict(zip(names, found, strict=True))
            made._digest, made._memo = digest, {}
            for array in found:
                array.flags.writeable = False
            _known[digest] = made
            return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles what it is made of: unpickled, it is the same object again."""
        arrays = tuple(self.arrays.values())
        return Pattern, (self.format, self.shape, arrays, self.values_shape)

    def __copy__(self) -> Pattern:
        """Returns itself."""
        return self

    def __deepcopy__(self, memo: Any) -> Pattern:
        """Returns itself."""
        return self

    def __repr__(self) -> str:
        """The format, the shape and the number of entries."""
        m, n = self.shape
        return f"Pattern({self.format}, [{m},{n}], nnz={self.nnz})"

    @classmethod
    def of_coords(cls, row: Any, col: Any, shape: Sequence[int]) -> Pattern:
        """Returns the csr pattern of entries, each counted once.

        Args:
          row: rows of the entries, int[n].
          col: their columns, int[n].
          shape: shape of the array.

        Raises:
          ArgumentError: the indices are not integers, or there are not as many.
          ShapeError: an index is outside of the array.

        Example:
          >>> Pattern.of_coords([0, 2, 2], [1, 0, 0], (3, 2))
          Pattern(csr, [3,2], nnz=2)
        """
        row, col = np.asarray(row), np.asarray(col)
        pattern = cls("coo", shape, (row, col), np.shape(row))
        return pattern.to_csr().pattern

    # -- facts -------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of values in an array."""
        return int(np.prod(self.values_shape))

    @property
    def nnz(self) -> int:
        """The number of entries, explicit zeros and duplicates included."""
        return len(self.coords.row) if self.format == "dia" else self.size

    def remembered(self, key: Any, make: Callable[[], T]) -> T:
        """Returns what was derived from the pattern under a key, or derives it.

        Args:
          key: hashable.
          make: derives it.
        """
        found: Any = self._memo.get(key, make)
        if found is make:
            found = self._memo[key] = make()
        return found  # type: ignore[no-any-return]

    @property
    def coords(self) -> Coords:
        """The entries, in the order of the values."""
        return self.remembered("coords", lambda: _coords(self))

    @property
    def keys(self) -> np.ndarray:
        """For each entry its row times the number of columns, plus its column."""
        row, col, _ = self.coords
        return self.remembered(
            "keys", lambda: row.astype(np.int64) * self.shape[1] + col
        )

    @property
    def is_canonical(self) -> bool:
        """Whether it is csr, with ascending columns in each row: no duplicates."""
        return self.format == "csr" and self.remembered(
            "canonical", lambda: bool(np.all(self.keys[1:] > self.keys[:-1]))
        )

    @property
    def layout(self) -> Layout:
        """What products need to know when tracing."""
        return self._plan()[0]

    @property
    def operands(self) -> tuple[Array, ...]:
        """The operands of a product that describe the entries."""
        return self._plan()[1]

    def _plan(self) -> tuple[Layout, tuple[Array, ...]]:
        return self.remembered("plan", lambda: _plan(self))

    # -- other patterns ----------------------------------------------------------------

    @property
    def transposed(self) -> Pattern:
        """The pattern of the transposed array, whose values are the same.

        The values of bsr are transposed themselves, and dia becomes coo.
        """
        return self.remembered("transposed", lambda: _transposed(self))

    def to_csr(self) -> Regrouping:
        """Returns the canonical csr pattern and how its values are made."""
        return self.remembered("csr", lambda: _canonical(self))

    def to(self, format: str, blocksize: tuple[int, int] | None = None) -> Regrouping:
        """Returns the pattern in another format, and how its values are made.

        Args:
          format: format of the result.
          blocksize: of the blocks of bsr; None is (1, 1), or that of a bsr pattern.
        """
        key = "to", format, blocksize
        return self.remembered(key, lambda: _converted(self, format, blocksize))


class Regrouping:
    """How the values of a pattern are made from those of another one.

    Attributes:
      pattern: of the result.
      source: int32[n]: flat positions of values; None: all, in order.
      target: int32[n]: flat positions in the result where values are added; None: one
        value for each position.
    """

    def __init__(
        self,
        pattern: Pattern,
        source: np.ndarray | None,
        target: np.ndarray | None = None,
    ) -> None:
        self.pattern: Pattern = pattern
        self.source: Array | None = _optional(source)
        self.target: Array | None = _optional(target)

    @property
    def is_identity(self) -> bool:
        """Whether the values stay as they are."""
        return self.source is None and self.target is None


class Merge:
    """How an elementwise function of two arrays meets their entries.

    Attributes:
      pattern: of the result.
      left: int32[n]: for each entry where the value of the one array lies, behind the
        last if it has none; None: all are in order.
      right: likewise for the other.
    """

    def __init__(
        self, pattern: Pattern, left: np.ndarray | None, right: np.ndarray | None
    ) -> None:
        self.pattern: Pattern = pattern
        self.left: Array | None = _optional(left)
        self.right: Array | None = _optional(right)


def union(left: Pattern, right: Pattern) -> Merge:
    """Returns the entries that one of two canonical patterns has.

    Args:
      left: a canonical pattern.
      right: another one, of an array of the same shape.
    """
    return _merge(left, right, np.union1d, "union")


def intersection(left: Pattern, right: Pattern) -> Merge:
    """Returns the entries that both of two canonical patterns have.

    Args:
      left: a canonical pattern.
      right: another one, of an array of the same shape.
    """

    def both(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.intersect1d(a, b, assume_unique=True)

    return _merge(left, right, both, "intersection")


def of_pair(left: Pattern, right: Pattern, key: str, make: Callable[[], T]) -> T:
    """Returns what was derived from two patterns, or derives it.

    Args:
      left: where it is remembered, as long as the other pattern lives.
      right: the other pattern.
      key: what it is.
      make: derives it.
    """
    pairs: Any = left.remembered(("pairs", key), weakref.WeakKeyDictionary)
    found = pairs.get(right)
    if found is None:
        found = pairs[right] = make()
    return found  # type: ignore[no-any-return]


def _merge(left: Pattern, right: Pattern, combine: Any, key: str) -> Merge:
    def made() -> Merge:
        keys = combine(left.keys, right.keys)
        places = []
        for own in (left.keys, right.keys):
            at = np.minimum(np.searchsorted(own, keys), max(len(own) - 1, 0))
            if len(own):
                at = np.where(own[at] == keys, at, len(own))
            same = len(own) == len(keys) and np.array_equal(own, keys)
            places.append(None if same else at.astype(np.int32))
        return Merge(pattern_of_keys(keys, left.shape), *places)

    return of_pair(left, right, key, made)


def _optional(array: np.ndarray | None) -> Array | None:
    return None if array is None else device_array(array)


def device_array(array: np.ndarray) -> Array:
    """Returns integers as an array that programs take as an operand, not a constant."""
    return put_host(array, Aval(array.shape, dtypes.int32))


# -- checks ----------------------------------------------------------------------------


def _shape(shape: Any) -> tuple[int, int]:
    try:
        found = tuple(int(n) for n in shape)
    except TypeError:
        found = ()
    if len(found) != 2 or min(found) < 0:
        raise ShapeError(
            f"sparse arrays have two axes: shape must be two numbers, got {shape!r}"
        )
    return found[0], found[1]


def _integers(name: str, given: Any) -> np.ndarray:
    try:
        array = np.asarray(given)
    except Exception as error:  # a tracer
        raise ArgumentError(
            f"sparse arrays: {name} is part of the pattern, which must be known when "
            f"tracing: make the array outside of jit, and pass it in ({error})"
        ) from None
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ArgumentError(
            f"sparse arrays: {name} must be a vector of integers, got "
            f"{array.dtype.name}{list(array.shape)}"
        )
    if array.size and (array.max() > 2**31 - 1 or array.min() < -(2**31)):
        raise ArgumentError(f"sparse arrays: {name} does not fit 32 bits")
    # A copy: the caller's array may change.
    return np.array(array, np.int32)


def _check(
    format: str,
    shape: tuple[int, int],
    arrays: list[np.ndarray],
    values_shape: tuple[int, ...],
) -> None:
    def require(fits: bool, what: str) -> None:
        if not fits:
            raise ShapeError(f"{format}_array of shape {list(shape)}: {what}")

    def inside(name: str, index: np.ndarray, length: int) -> None:
        wrong = index[(index < 0) | (index >= length)]
        require(not wrong.size, f"{name} must be below {length}, got {wrong[:1]}")

    if format == "dia":
        (offsets,) = arrays
        require(
            len(values_shape) == 2 and len(offsets) == values_shape[0],
            f"{len(offsets)} offsets, but values {list(values_shape)}",
        )
        require(len(np.unique(offsets)) == len(offsets), "an offset is given twice")
        return
    first, second = arrays
    count = values_shape[0] if values_shape else 0
    wanted = 3 if format == "bsr" else 1
    require(len(values_shape) == wanted, f"values {list(values_shape)}")
    require(
        len(second) == count, f"{len(second)} indices, but values {list(values_shape)}"
    )
    if format == "coo":
        require(len(first) == count, f"{len(first)} rows, but {count} columns")
        inside("row", first, shape[0])
        inside("col", second, shape[1])
        return
    m, n = shape if format != "csc" else shape[::-1]
    if format == "bsr":
        r, c = values_shape[1:]
        require(
            r > 0 and c > 0 and m % r == 0 and n % c == 0,
            f"blocks of {r} × {c} do not divide it",
        )
        m, n = m // r, n // c
    require(len(first) == m + 1, f"indptr must have {m + 1} numbers, got {len(first)}")
    rises = first[0] == 0 and first[-1] == count and bool(np.all(np.diff(first) >= 0))
    require(rises, f"indptr must ascend from 0 to {count}")
    inside("indices", second, n)


# -- derivations -----------------------------------------------------------------------


def _coords(p: Pattern) -> Coords:
    if p.format == "coo":
        return Coords(p.arrays["row"], p.arrays["col"], None)
    if p.format == "dia":
        count, length = p.values_shape
        offsets = p.arrays["offsets"][:, None]
        col = np.broadcast_to(np.arange(length, dtype=np.int32), (count, length))
        row = col - offsets
        m, n = p.shape
        kept = np.flatnonzero(((row >= 0) & (row < m) & (col < n)).ravel())
        flat = row.ravel()[kept], col.ravel()[kept]
        at = None if len(kept) == count * length else kept.astype(np.int32)
        return Coords(flat[0].astype(np.int32), flat[1].astype(np.int32), at)
    indptr, indices = p.arrays["indptr"], p.arrays["indices"]
    numbers = np.arange(len(indptr) - 1, dtype=np.int32)
    major = np.repeat(numbers, np.diff(indptr))
    if p.format == "csr":
        return Coords(major, indices, None)
    if p.format == "csc":
        return Coords(indices, major, None)
    r, c = p.values_shape[1:]
    row = major[:, None, None] * r + np.arange(r, dtype=np.int32)[:, None]
    col = indices[:, None, None] * c + np.arange(c, dtype=np.int32)
    row, col = (np.broadcast_to(a, p.values_shape).ravel() for a in (row, col))
    return Coords(row.astype(np.int32), col.astype(np.int32), None)


def _entries(
    row: np.ndarray, col: np.ndarray, at: np.ndarray | None, count: int
) -> Entries:
    """Returns entries by rows, `count` of them."""
    order = at
    if np.any(row[1:] < row[:-1]):
        by_rows = _sorting(row)
        row, col = row[by_rows], col[by_rows]
        order = by_rows if at is None else at[by_rows]
    indptr = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(row, minlength=count), out=indptr[1:])
    return Entries(indptr, col, row, order)


def _sorting(index: np.ndarray) -> np.ndarray:
    """Returns the stable order of indices: NumPy sorts 16 bits in linear time."""
    order = np.argsort((index & 0xFFFF).astype(np.uint16), kind="stable")
    if index.max(initial=0) > 0xFFFF:
        high = (index >> 16).astype(np.uint16)[order]
        order = order[np.argsort(high, kind="stable")]
    return order.astype(np.int32)


def _plan(p: Pattern) -> tuple[Layout, tuple[Array, ...]]:
    row, col, at = p.coords
    own = _entries(row, col, at, p.shape[0])
    other = _entries(col, row, at, p.shape[1])
    layout = Layout(*p.shape, p.size, own.order is not None, other.order is not None)
    return layout, tuple(map(device_array, (*own.arrays, *other.arrays)))


def _transposed(p: Pattern) -> Pattern:
    shape = p.shape[::-1]
    if p.format == "coo":
        arrays = p.arrays["col"], p.arrays["row"]
        return Pattern("coo", shape, arrays, p.values_shape)
    if p.format in ("csr", "csc"):
        arrays = p.arrays["indptr"], p.arrays["indices"]
        other = "csc" if p.format == "csr" else "csr"
        return Pattern(other, shape, arrays, p.values_shape)
    raise AssertionError(p.format)  # these are regrouped first


def _grouped(
    keys: np.ndarray, at: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Returns the keys in order, each once, and a regrouping's source and target."""
    source = at
    if np.any(keys[1:] < keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        source = order.astype(np.int32) if at is None else at[order]
    fresh = np.ones(len(keys), bool)
    fresh[1:] = keys[1:] != keys[:-1]
    if fresh.all():
        return keys, source, None
    return keys[fresh], source, (np.cumsum(fresh) - 1).astype(np.int32)


def _canonical(p: Pattern) -> Regrouping:
    if p.is_canonical:
        return Regrouping(p, None)
    keys, source, target = _grouped(p.keys, p.coords.at)
    return Regrouping(pattern_of_keys(keys, p.shape), source, target)


def pattern_of_keys(keys: np.ndarray, shape: tuple[int, int]) -> Pattern:
    """Returns the csr pattern of ascending keys (see `Pattern.keys`).

    Args:
      keys: int64.
      shape: shape of the array.
    """
    m, n = shape
    row = keys // max(n, 1)
    indptr = np.zeros(m + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=m), out=indptr[1:])
    made = Pattern("csr", shape, (indptr, keys - row * n), keys.shape)
    made._memo["canonical"] = True
    return made


def _converted(
    p: Pattern, format: str, blocksize: tuple[int, int] | None
) -> Regrouping:
    if format not in FORMATS:
        raise ArgumentError(
            f"sparse arrays: format is one of {', '.join(FORMATS)}, got {format!r}"
        )
    if format == p.format and blocksize in (None, p.values_shape[1:]):
        return Regrouping(p, None)
    m, n = p.shape
    row, col, at = p.coords
    if format == "coo":
        return Regrouping(Pattern("coo", p.shape, (row, col), row.shape), at)
    if format == "csr":
        return p.to_csr()
    if format == "csc":
        keys, source, target = _grouped(col.astype(np.int64) * m + row, at)
        made = pattern_of_keys(keys, (n, m))
        arrays = made.arrays["indptr"], made.arrays["indices"]
        return Regrouping(Pattern("csc", p.shape, arrays, keys.shape), source, target)
    if format == "dia":
        offset = col.astype(np.int64) - row
        offsets, which = np.unique(offset, return_inverse=True)
        length = int(col.max()) + 1 if len(col) else 0
        return _placed(
            Pattern("dia", p.shape, (offsets,), (len(offsets), length)),
            which * length + col,
            at,
        )
    r, c = blocksize or (1, 1)
    if r < 1 or c < 1 or m % r or n % c:
        raise ShapeError(
            f"tobsr: blocks of {r} × {c} do not divide an array of shape [{m},{n}]"
        )
    blocks = (row // r).astype(np.int64) * (n // c) + col // c
    keys, which = np.unique(blocks, return_inverse=True)
    made = pattern_of_keys(keys, (m // r, n // c))
    arrays = made.arrays["indptr"], made.arrays["indices"]
    pattern = Pattern("bsr", p.shape, arrays, (len(keys), r, c))
    return _placed(pattern, (which * r + row % r) * c + col % c, at)


def _placed(pattern: Pattern, place: np.ndarray, at: np.ndarray | None) -> Regrouping:
    """Returns the regrouping that puts the values at places of a pattern."""
    order = np.argsort(place, kind="stable")
    source = order.astype(np.int32) if at is None else at[order]
    return Regrouping(pattern, source, place[order].astype(np.int32))
