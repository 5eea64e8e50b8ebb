"""The specification of a table: values for a message, optimizer and initializer."""

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
    """The specification of a table, whose rows are created on first use.

    The initial value of a row depends only on the seed, the table's name and the row's
    id: it is the same wherever and whenever the row is created.

    Args:
      name: name of the table, different from all others.
      shape: shape of a row: an int (a vector's length), or a tuple of lengths.
      optimizer: an optimizer of `fxflow.optim`. It treats each row separately: each row
        has its own state and step count, and a norm is that of one row. None if the
        programs come from elsewhere (see `RowPrograms`).
      initializer: an initializer of `fxflow.nn.initializers`; None: `normal(0.01)`.
      dtype: dtype of a row: real floating.
      seed: seed of the initial values.
      rows_in_memory: maximum number of rows, with their optimizer's state, in memory;
        the others are on disk. None: as many as fit.
      folder: folder of the rows on disk; required with `rows_in_memory`.
      evict: which rows go to disk: the least recently used ("lru"), or the least
        frequently used ("lfu").
      non_finite: what to do with a gradient that has inf or nan: "reject" the whole
        push with an error, "skip" the row, or "apply" the gradient.

    Raises:
      ArgumentError: an argument is not one of these.
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
                    "the other rows: give folder="
                )

    def __str__(self) -> str:
        return f"table {self.name!r}"

    @property
    def width(self) -> int:
        """Number of elements of a row."""
        return math.prod(self.shape)

    def describe(self) -> dict[str, Any]:
        """Returns the spec as a JSON object, without optimizer and initializer."""
        found = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name not in ("optimizer", "initializer")
        }
        return {**found, "shape": list(self.shape), "dtype": self.dtype.name}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> TableSpec:
        """Returns the spec that `describe` described, without its functions.

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
