"""What a table is: numbers and names that a message can hold, and two programs."""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping
from typing import Any, Literal, get_args

from fxflow.core.arrays import dtypes
from fxflow.errors import ArgumentError, DtypeError
from fxflow.nn.initializers import Initializer
from fxflow.optim.base import GradientTransformation

Eviction = Literal["lru", "lfu"]
NonFinite = Literal["reject", "skip", "apply"]


@dataclasses.dataclass(frozen=True)
class TableSpec:
    """A table of rows that are made when they are first touched.

    A row's first value depends on the seed, the table's name and the row's id alone: it
    is the same wherever and whenever it is made.

    Args:
      name: of the table, unlike that of any other.
      shape: of a row: an int (a vector's length), or a tuple of lengths.
      optimizer: of `fxflow.optim`. It sees each row by itself: a row has a state, and a
        count of steps, of its own, and a norm is a row's. None where the programs come
        from elsewhere (see `RowPrograms`).
      initializer: of `fxflow.nn.initializers`; None means `normal(0.01)`.
      dtype: of a row: real floating.
      seed: of the first values.
      rows_in_memory: how many rows, with their optimizer's state, may be in memory; the
        others are on disk. None: as many as fit.
      folder: of what is on disk; needed with `rows_in_memory`.
      evict: which rows go to disk: the least recently used, or the least frequently.
      non_finite: what becomes of a gradient with inf or nan: the whole push is an error
        (`"reject"`), that row is left as it is (`"skip"`), or it is applied.

    Raises:
      ArgumentError: an argument is not of these.
      DtypeError: the dtype is not real floating.

    Example:
      >>> words = TableSpec("words", 64, optim.adagrad(0.1), seed=1)
      >>> words.shape
      (64,)
    """

    name: str
    shape: tuple[int, ...]
    optimizer: GradientTransformation | None = None
    initializer: Initializer | None = None
    dtype: Any = dtypes.float32
    seed: int = 0
    rows_in_memory: int | None = None
    folder: str | None = None
    evict: Eviction = "lru"
    non_finite: NonFinite = "reject"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"TableSpec: name must be a string, got {self.name!r}")
        set_ = object.__setattr__  # the dataclass is frozen
        set_(self, "shape", self._lengths())
        dtype = dtypes.dtype(self.dtype)
        if not dtypes.is_floating(dtype):
            raise DtypeError(f"{self}: rows must be real floating, got {dtype}")
        set_(self, "dtype", dtype)
        for name, kind in (("evict", Eviction), ("non_finite", NonFinite)):
            if getattr(self, name) not in get_args(kind):
                raise ArgumentError(
                    f"{self}: {name} must be one of {list(get_args(kind))}, got "
                    f"{getattr(self, name)!r}"
                )
        if self.rows_in_memory is not None:
            if operator.index(self.rows_in_memory) < 1:
                raise ArgumentError(
                    f"{self}: rows_in_memory must be at least 1, got "
                    f"{self.rows_in_memory}"
                )
            if self.folder is None:
                raise ArgumentError(
                    f"{self}: rows_in_memory={self.rows_in_memory} needs a folder for "
                    "the others: give folder="
                )

    def __str__(self) -> str:
        return f"table {self.name!r}"

    @property
    def width(self) -> int:
        """Number of elements of a row."""
        return math.prod(self.shape)

    def describe(self) -> dict[str, Any]:
        """Returns what JSON can hold: all but the optimizer and the initializer."""
        found = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("optimizer", "initializer")
        }
        return {**found, "shape": list(self.shape), "dtype": self.dtype.name}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> TableSpec:
        """Returns the spec that `describe` described, without programs.

        Args:
          description: what `describe` returned.

        Raises:
          ArgumentError: a name is missing or unknown.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        known -= {"optimizer", "initializer"}
        unknown = sorted(set(description) - known)
        missing = sorted({"name", "shape"} - set(description))
        if unknown or missing:
            raise ArgumentError(
                f"TableSpec.from_description: unknown {unknown}, missing {missing}"
            )
        return cls(**description)

    def _lengths(self) -> tuple[int, ...]:
        shape: Any = self.shape
        try:
            lengths = tuple(map(operator.index, shape))
        except TypeError:
            try:
                lengths = (operator.index(shape),)
            except TypeError:
                raise ArgumentError(
                    f"{self}: shape must be an int or a tuple of ints, got {shape!r}"
                ) from None
        if any(n < 1 for n in lengths):
            raise ArgumentError(f"{self}: lengths must be at least 1, got {lengths}")
        return lengths
