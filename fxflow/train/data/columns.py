"""Columns of raw data: their kinds, their missing values, and hashes of their values.

A column comes as a NumPy array, a list, or a pyarrow array; all three give the same. A
hash of a string is computed eight bytes at a time over all rows at once, from the
buffers that pyarrow has anyway.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow.errors import ArgumentError, DtypeError, ShapeError

HostArray = np.ndarray[Any, Any]
Hashes = npt.NDArray[np.uint64]

# From the finalizer of MurmurHash3.
_MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_SHIFT = np.uint64(33)
# 2**64 divided by the golden ratio, as in Fibonacci hashing.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
#: Masks of the first 0 to 8 bytes of a word.
_MASKS = np.array([(1 << 8 * i) - 1 for i in range(9)], np.uint64)
#: Strings of more bytes are hashed by BLAKE2b one by one.
_LONG = 256
#: Fewer strings than this are hashed one by one, which NumPy's calls would slow down.
_FEW = 48


class Column:
    """Values of a column.

    Args:
      kind: "string", "integer", "float", or "" if all are missing.
      missing: which values are.
      values: int64 or float64, of any value where they are missing; None for strings.
      texts: strings, "" where they are missing: a list or a pyarrow array.
    """

    def __init__(
        self,
        kind: str,
        missing: npt.NDArray[np.bool_],
        values: HostArray | None = None,
        texts: Any = None,
    ) -> None:
        self.kind, self.missing = kind, missing
        self._values, self._texts = values, texts

    def __len__(self) -> int:
        return len(self.missing)

    @property
    def values(self) -> HostArray:
        """The numbers."""
        return np.zeros(len(self), np.int64) if self._values is None else self._values

    def of_kind(self, kind: str) -> Column:
        """Returns these numbers or missing values as those of another kind."""
        return Column(kind, self.missing, self._values, self._texts)

    @functools.cached_property
    def hashes(self) -> Hashes:
        """A hash of each string or integer, the same in every process."""
        if self._texts is None:
            return mixed(self.values.astype(np.int64).view(np.uint64))
        if isinstance(self._texts, list):
            return hashes_of(self._texts)
        return _hashes(*_buffers(self._texts))

    def counts(self) -> Mapping[Any, int]:
        """Returns how often each value occurs."""
        if self._texts is not None and not isinstance(self._texts, list):
            found = self._texts.value_counts()
            pairs = found.field(0).to_pylist(), found.field(1).to_pylist()
            return {v: n for v, n in zip(*pairs, strict=True) if v is not None}
        if self._texts is None:
            values, counts = np.unique(self.values[~self.missing], return_counts=True)
            return dict(zip(values.tolist(), counts.tolist(), strict=True))
        found = {}
        for text, is_missing in zip(self._texts, self.missing.tolist(), strict=True):
            if not is_missing:
                found[text] = found.get(text, 0) + 1
        return found


# -- hashes ----------------------------------------------------------------------------


def mixed(bits: Hashes) -> Hashes:
    """Returns the finalizer of MurmurHash3."""
    for factor in _MIX:
        bits = (bits ^ (bits >> _SHIFT)) * factor
    found: Hashes = bits ^ (bits >> _SHIFT)
    return found


def hashes_of(texts: Sequence[str]) -> Hashes:
    """Returns the hashes of strings."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    if len(texts) < _FEW:
        return mixed(np.array([*map(_hash, encoded)], np.uint64))
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([*map(len, encoded)], out=offsets[1:])
    return _hashes(np.frombuffer(b"".join([*encoded, bytes(8)]), np.uint8), offsets)


def _hash(text: bytes) -> int:
    """Returns the hash of a string before `mixed`; `_hashes` does the same at once."""
    if len(text) > _LONG:
        return _digest(text)
    factor, most = int(_FACTOR), 2**64 - 1
    found = len(text) * factor & most
    for i in range(0, len(text), 8):
        word = int.from_bytes(text[i : i + 8], "little")
        found = (found ^ word) * factor & most
        found ^= found >> 32
    return found


def _digest(text: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")


def _hashes(data: HostArray, offsets: HostArray) -> Hashes:
    """Returns the hashes of strings.

    Args:
      data: bytes, with 8 more behind those of the last string.
      offsets: where strings begin in `data`, and where the last one ends.
    """
    lengths = np.diff(offsets)
    found = lengths.astype(np.uint64) * _FACTOR
    if not len(lengths):
        return found
    # The word that begins at each byte.
    words = np.ndarray((len(data) - 7,), "<u8", data, strides=(1,))
    starts = offsets[:-1]
    most, least = int(lengths.max()), int(lengths.min())
    for done in range(0, min(most, _LONG), 8):
        if done < least:  # all strings have such a word
            word = words[starts + done] if done else words[starts]
            if done + 8 > least:
                word &= _MASKS[np.minimum(lengths - done, 8)]
            found ^= word
            found *= _FACTOR
            found ^= found >> _HALF
            continue
        rows = np.flatnonzero(lengths > done)
        word = words[starts[rows] + done]
        word &= _MASKS[np.minimum(lengths[rows] - done, 8)]
        part = (found[rows] ^ word) * _FACTOR
        found[rows] = part ^ (part >> _HALF)
    if most > _LONG:
        for row in np.flatnonzero(lengths > _LONG).tolist():
            found[row] = _digest(data[offsets[row] : offsets[row + 1]].tobytes())
    return mixed(found)


class Index:
    """Finds the ids of known values by their hashes.

    Two values with one hash of 64 bits have one id: among a million values with a
    probability of 3e-8.

    Args:
      hashes: of the values with ids 1, 2, ….
    """

    def __init__(self, hashes: Hashes) -> None:
        order = np.argsort(hashes, kind="stable")
        self._hashes, self._ids = hashes[order], (order + 1).astype(np.int32)
        # Hashes are uniform, so their first bits say almost where they are.
        bits = max(len(hashes), 2).bit_length()
        self._shift = np.uint64(64 - bits)
        edges = np.arange(1 << bits, dtype=np.uint64) << self._shift
        starts = np.searchsorted(self._hashes, edges)
        self._starts = np.append(starts, len(hashes))

    def find(self, hashes: Hashes) -> npt.NDArray[np.int32]:
        """Returns the ids of values, 0 for those that are not known."""
        out = np.zeros(len(hashes), np.int32)
        if not len(self._hashes):
            return out
        bucket = (hashes >> self._shift).astype(np.int64)
        at, end = self._starts[bucket], self._starts[bucket + 1]
        rows: Any = None
        while True:
            is_found = (at < end) & (
                self._hashes[np.minimum(at, len(self._hashes) - 1)] == hashes
            )
            hits = np.flatnonzero(is_found)
            out[hits if rows is None else rows[hits]] = self._ids[at[hits]]
            left = np.flatnonzero((at + 1 < end) & ~is_found)
            if not len(left):
                return out
            rows = left if rows is None else rows[left]
            at, end, hashes = at[left] + 1, end[left], hashes[left]


# -- reading ---------------------------------------------------------------------------


def column(name: str, given: Any, before: int) -> Column:
    """Returns a column with the kind of its values, checked.

    Args:
      name: of the column, for messages.
      given: NumPy array, pyarrow array or sequence.
      before: number of rows before, for messages.

    Raises:
      DtypeError: values are neither strings nor numbers, or both.
      ShapeError: an array has not one axis.
    """
    if is_arrow(given):
        return _of_arrow(name, given, before)
    if isinstance(given, np.ndarray) and given.ndim != 1:
        raise ShapeError(
            f"features: column {name!r} must have one axis, got shape {given.shape}"
        )
    if isinstance(given, np.ndarray) and given.dtype.kind in "iuf":
        return _of_numbers(name, given)
    values = given.tolist() if isinstance(given, np.ndarray) else list(given)
    return _of_values(name, values, before)


def lists(name: str, given: Any, before: int) -> tuple[HostArray, Any]:
    """Returns the lengths of the lists of a column, and all their values.

    Raises:
      DtypeError: a value is not a list.
    """
    if is_arrow(given):
        pa = sys.modules["pyarrow"]
        given = _whole(given)
        if pa.types.is_null(given.type):
            return np.zeros(len(given), np.int64), []
        if not (pa.types.is_list(given.type) or pa.types.is_large_list(given.type)):
            row = before + _first_valid(given)
            raise DtypeError(
                f"features: column {name!r}: row {row} is of type {given.type}; "
                "expected a list of values"
            )
        lengths = given.value_lengths().fill_null(0)
        return np.asarray(lengths).astype(np.int64), given.flatten()
    rows: list[Any] = [() if row is None else row for row in given]
    if not {*map(type, rows)} <= {list, tuple}:
        for i, row in enumerate(rows):
            if isinstance(row, str) or not hasattr(row, "__len__"):
                raise wrong(name, before + i, row, "a list of values")
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    return lengths, [*itertools.chain.from_iterable(rows)]


def wrong(name: str, row: int, value: Any, wanted: str) -> DtypeError:
    """Returns the error of a value of the wrong type."""
    return DtypeError(
        f"features: column {name!r}: row {row} is {value!r}, of type "
        f"{type(value).__name__}; expected {wanted}"
    )


def sized(name: str, given: Any) -> int:
    """Returns the number of rows of a column.

    Raises:
      ArgumentError: it is not an array or a sequence.
    """
    if not hasattr(given, "__len__") or isinstance(given, str):
        raise ArgumentError(
            f"features: column {name!r} must be an array or a sequence, got "
            f"{type(given).__name__}"
        )
    return len(given)


def _of_numbers(name: str, given: HostArray) -> Column:
    if given.dtype.kind == "f":
        return Column("float", np.isnan(given), given.astype(np.float64))
    if given.dtype == np.uint64 and len(given) and given.max() >= 2**63:
        raise _too_large(name)
    return Column("integer", np.zeros(len(given), bool), given.astype(np.int64))


def _of_values(name: str, values: list[Any], before: int) -> Column:
    """Returns a column of a list with values that may be missing."""
    found = {*map(type, values)} - {type(None)}
    plain = found <= {str} or found <= {int, float}
    if plain and float not in found:
        absent = [v is None for v in values]
    elif plain:
        absent = [v is None or v != v for v in values]
    else:
        absent = [_is_missing(v) for v in values]
    missing = np.array(absent, bool)
    if missing.all():
        return Column("", missing)
    if found == {str} or any(isinstance(v, str) for v in values):
        for i, v in enumerate(() if plain else values):
            if not (absent[i] or isinstance(v, str)):
                raise wrong(name, before + i, v, "a string, as in other rows")
        texts = ["" if m else v for m, v in zip(absent, values, strict=True)]
        return Column("string", missing, texts=texts)
    for i, v in enumerate(() if plain else values):
        number = isinstance(v, int | float | np.integer | np.floating)
        if not absent[i] and (isinstance(v, bool | np.bool_) or not number):
            raise wrong(name, before + i, v, "a string or a number")
    filled = [0 if m else v for m, v in zip(absent, values, strict=True)]
    if found == {int} or all(isinstance(v, int | np.integer) for v in filled):
        try:
            return Column("integer", missing, np.array(filled, np.int64))
        except OverflowError:
            raise _too_large(name) from None
    return Column("float", missing, np.array(filled, np.float64))


def _is_missing(value: Any) -> bool:
    return value is None or (
        isinstance(value, float | np.floating) and bool(value != value)
    )


def _too_large(name: str) -> DtypeError:
    return DtypeError(
        f"features: column {name!r} has an integer that does not fit 64 bits"
    )


# -- pyarrow's arrays ------------------------------------------------------------------


def is_arrow(given: Any) -> bool:
    """Returns whether a column is a pyarrow array; pyarrow need not be installed."""
    pa = sys.modules.get("pyarrow")
    return pa is not None and isinstance(given, pa.Array | pa.ChunkedArray)


def _whole(given: Any) -> Any:
    """Returns a pyarrow array in one piece and without encoding."""
    pa = sys.modules["pyarrow"]
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
        if isinstance(given, pa.ChunkedArray):  # of no chunks
            given = pa.concat_arrays(given.chunks or [pa.array([], given.type)])
    if pa.types.is_dictionary(given.type):
        given = given.dictionary_decode()
    return given


def _first_valid(given: Any) -> int:
    return int(np.argmax(np.asarray(given.is_valid())))


def _of_arrow(name: str, given: Any, before: int) -> Column:
    types = sys.modules["pyarrow"].types
    given = _whole(given)
    kind = given.type
    missing = np.zeros(len(given), bool)
    if given.null_count:
        missing = np.asarray(given.is_null()).astype(bool)
    if missing.all():
        return Column("", missing)
    if types.is_string(kind) or types.is_large_string(kind):
        return Column("string", missing, texts=given)
    if types.is_string_view(kind):
        return Column("string", missing, texts=given.cast("string"))
    if types.is_integer(kind) or types.is_floating(kind):
        filled = given.fill_null(0) if given.null_count else given
        numbers = _of_numbers(name, np.asarray(filled))
        return Column(numbers.kind, numbers.missing | missing, numbers.values)
    row = _first_valid(given)
    raise wrong(name, before + row, given[row].as_py(), "a string or a number")


def _buffers(texts: Any) -> tuple[HostArray, HostArray]:
    """Returns the bytes of strings, with 8 more, and their offsets."""
    pa = sys.modules["pyarrow"]
    _, ends, data = texts.buffers()
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    offsets = np.frombuffer(ends, width)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(offsets[0]), int(offsets[-1])
    held = np.zeros(last - first + 8, np.uint8)
    if data is not None:
        held[:-8] = np.frombuffer(data, np.uint8)[first:last]
    return held, offsets.astype(np.int64) - first
