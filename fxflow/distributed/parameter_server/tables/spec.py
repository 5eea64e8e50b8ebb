"""The specification of a table, and its two programs.

A specification has values for a message, the optimizer and the initializer. The
programs, the initial values of rows and their update, are pure functions of arrays, for
blocks of a few sizes, so that few programs are compiled. A process without the user's
Python code makes a `RowPrograms` from the same programs, compiled from text.
"""

from __future__ import annotations

import dataclasses
import math
import operator
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core import tree
from fxflow.core.arrays import Array, ShapeDtypeStruct, dtypes
from fxflow.distributed.parameter_server.tables import quantization
from fxflow.errors import ArgumentError, DtypeError, OutOfRangeError
from fxflow.nn import initializers
from fxflow.nn.initializers import Initializer
from fxflow.optim.base import GradientTransformation
from fxflow.optim.rows import strong, sum_dtype, updated_row
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jit import jit
from fxflow.transforms.stages import Lowered
from fxflow.transforms.vmap import vmap

Eviction = Literal["lru", "lfu"]
NonFinite = Literal["reject", "skip", "apply"]
Stored = Literal["exact", "int8"]

#: The largest `admit_after`, a count in 8 bits.
MOST = 255
# Positions of rows are int32.
_MOST = 2**31 - 1


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
      rows: number of rows, so that ids are below it; None: ids are below 2**63. A table
        without servers (`train.table_trainer`) needs it.
      rows_in_memory: maximum number of rows, with their optimizer's state, in memory;
        the others are on disk. None: as many as fit.
      folder: folder of the rows on disk; required with `rows_in_memory`.
      evict: which rows go to disk: the least recently used ("lru"), or the least
        frequently used ("lfu").
      non_finite: what to do with a gradient that has inf or nan: "reject" the whole
        push with an error, "skip" the row, or "apply" the gradient.
      expire_after: number of pushes to a row's shard of the table, of all workers,
        after which a row that none of them named is forgotten: it begins again with
        its initial value, and its memory is reused. None: never.
      admit_after: number of pushes that must name an id before its row is created and
        trained, from 1 to 255. Gradients of other ids are dropped and counted, and
        their rows have the initial value. Servers count in 4 MiB for each shard
        (`FrequencySketch`): an id may be admitted too early, if it shares its counters
        with others; counts are halved after each million of such ids.
      stored: how rows are stored: "exact" in `dtype`; "int8" as 8-bit integers, with a
        scale and a count of updates for each row, 8 bytes. Updates round
        stochastically, by less than 1/127 of the row's largest absolute value, and
        correctly on average. The optimizer's state stays as it is.

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
    rows: int | None = None
    rows_in_memory: int | None = None
    folder: str | None = None
    evict: Eviction = "lru"
    non_finite: NonFinite = "reject"
    expire_after: int | None = None
    admit_after: int = 1
    stored: Stored = "exact"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ArgumentError(f"TableSpec: name must be a string, got {self.name!r}")
        set_ = object.__setattr__  # the dataclass is frozen
        set_(self, "shape", self._lengths())
        dtype = dtypes.dtype(self.dtype)
        if not dtypes.is_floating(dtype):
            raise DtypeError(f"{self}: rows must be real floating, got {dtype}")
        set_(self, "dtype", dtype)
        choices = ("evict", Eviction), ("non_finite", NonFinite), ("stored", Stored)
        for name, kind in choices:
            if getattr(self, name) not in get_args(kind):
                raise ArgumentError(
                    f"{self}: {name} must be one of {list(get_args(kind))}, got "
                    f"{getattr(self, name)!r}"
                )
        if self.rows is not None and not 1 <= operator.index(self.rows) <= _MOST:
            raise ArgumentError(
                f"{self}: rows must be from 1 to 2**31 - 1, got {self.rows}"
            )
        if self.expire_after is not None and operator.index(self.expire_after) < 1:
            raise ArgumentError(
                f"{self}: expire_after must be at least 1, got {self.expire_after}"
            )
        if not 1 <= operator.index(self.admit_after) <= MOST:
            raise ArgumentError(
                f"{self}: admit_after must be from 1 to {MOST}, got {self.admit_after}"
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

    def check_ids(self, least: Any, largest: Any, caller: str) -> None:
        """Raises an error unless all ids are those of rows.

        Args:
          least: the smallest id.
          largest: the largest id.
          caller: name of the caller, for the message.

        Raises:
          OutOfRangeError: an id is negative, or not below `rows`.
        """
        most = 2**63 if self.rows is None else self.rows
        for found in (least, largest):
            if not 0 <= int(found) < most:
                last = "2**63 - 1" if self.rows is None else most - 1
                raise OutOfRangeError(
                    f"{caller}: {self}: ids must be from 0 to {last}, got {found}"
                )

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


# -- programs --------------------------------------------------------------------------

# Multiples of any vector length: all rows of a block are computed alike, so a row has
# the same bits in any block.
BLOCKS = (32, 128, 512, 2048, 8192)


class Field(NamedTuple):
    """A field of a row: its value, or an array of its optimizer's state.

    Attributes:
      shape: shape for one row.
      dtype: NumPy dtype.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class RowPrograms(NamedTuple):
    """The programs of a table, for blocks of `n` rows, `n` one of `blocks`.

    Attributes:
      fields: fields of a row; the first is its value, or, stored as int8, the first
        three are its codes, their unit, and the number of updates.
      init: `u32[n, 2]` (high and low halves of ids) to the fields, each `[n, ...]`.
      update: `(fields, gradients f32[n, ...], scale f32[])` to the new fields. `scale`
        multiplies the change of the rows.
      blocks: sizes of blocks, in increasing order.
    """

    fields: tuple[Field, ...]
    init: Callable[[npt.NDArray[np.uint32]], Sequence[Any]]
    update: Callable[[Sequence[Any], Any, Any], Sequence[Any]]
    blocks: tuple[int, ...] = BLOCKS


class RowFunctions(NamedTuple):
    """The programs of a table as pure functions to trace, for blocks of any size.

    Attributes:
      fields: see `RowPrograms.fields`.
      init: see `RowPrograms.init`.
      update: see `RowPrograms.update`.
      row: shape and dtype of a row, of which gradients are.
    """

    fields: tuple[Field, ...]
    init: Callable[[Any], tuple[Array, ...]]
    update: Callable[[tuple[Any, ...], Any, Any], tuple[Array, ...]]
    row: Field

    def lower(self, block: int) -> tuple[Lowered, Lowered]:
        """Returns both functions, lowered for blocks of one size.

        Args:
          block: number of rows in a block.
        """
        fields = tuple(
            ShapeDtypeStruct((block, *f.shape), f.dtype) for f in self.fields
        )
        ids = ShapeDtypeStruct((block, 2), dtypes.uint32)
        row = self.row
        gradients = ShapeDtypeStruct((block, *row.shape), sum_dtype(row.dtype))
        scale = ShapeDtypeStruct((), dtypes.float32)
        return (
            jit(self.init).lower(ids),
            jit(self.update).lower(fields, gradients, scale),
        )


def row_functions(spec: TableSpec) -> RowFunctions:
    """Makes the functions of a table from its optimizer and initializer.

    Args:
      spec: specification of the table, with its optimizer.

    Returns:
      Functions to trace.

    Raises:
      ArgumentError: there is no optimizer.
      DtypeError: the optimizer's state has keys, or the initializer returns another
        shape or dtype.
    """
    optimizer = spec.optimizer
    if optimizer is None:
        raise ArgumentError(f"{spec}: give it an optimizer, such as optim.adagrad(0.1)")
    initializer = spec.initializer or initializers.normal(1e-2)
    name = zlib.crc32(spec.name.encode())

    coded = spec.stored == "int8"
    row_type = eval_shape(
        lambda: initializer(random.key(0), spec.shape, spec.dtype),
    )
    if _field(spec, row_type) != Field(spec.shape, spec.dtype):
        raise DtypeError(
            f"{spec}: the initializer must make {spec.dtype}{list(spec.shape)}, it "
            f"made {row_type}"
        )

    def first(halves: Any) -> tuple[Array, ...]:
        key = random.fold_in(random.key(spec.seed), name)
        key = random.fold_in(random.fold_in(key, halves[0]), halves[1])
        row = initializer(key, spec.shape, spec.dtype)
        # With weak types, the state of the next step would need another program.
        state = tree.map(strong, optimizer.init(row))
        values: tuple[Array, ...] = (row,)
        if coded:
            values = (*quantization.encode(row), fnp.zeros((), dtypes.uint32))
        return (*values, *tree.leaves(state))

    types = eval_shape(first, ShapeDtypeStruct((2,), dtypes.uint32))
    fields = tuple(_field(spec, t) for t in types)
    structure = tree.structure(
        eval_shape(optimizer.init, ShapeDtypeStruct(spec.shape, spec.dtype))
    )
    update = _update(optimizer, structure, spec)
    return RowFunctions(fields, vmap(first), update, Field(spec.shape, spec.dtype))


def row_programs(spec: TableSpec, blocks: Sequence[int] = BLOCKS) -> RowPrograms:
    """Compiles the programs of a table on this process's default device.

    Args:
      spec: specification of the table, with its optimizer.
      blocks: sizes of blocks, in increasing order; programs are compiled on first use.

    Returns:
      Programs for a `RowTable`.

    Raises:
      ArgumentError: there is no optimizer.
      DtypeError: the optimizer's state has keys, or the initializer returns another
        shape or dtype.
    """
    functions = row_functions(spec)
    programs: dict[int, tuple[Any, Any]] = {}

    def of(block: int) -> tuple[Any, Any]:
        if block not in programs:
            init, update = functions.lower(block)
            programs[block] = init.compile(), update.compile()
        return programs[block]

    def init(halves: npt.NDArray[np.uint32]) -> Sequence[Any]:
        found: Sequence[Any] = of(len(halves))[0](halves)
        return found

    def update(fields: Sequence[Any], gradients: Any, scale: Any) -> Sequence[Any]:
        run = of(len(gradients))[1]
        found: Sequence[Any] = run(tuple(fields), gradients, np.float32(scale))
        return found

    return RowPrograms(functions.fields, init, update, tuple(blocks))


def _update(
    optimizer: GradientTransformation, structure: Any, spec: TableSpec
) -> Callable[[tuple[Any, ...], Any, Any], tuple[Array, ...]]:
    def one(fields: tuple[Any, ...], gradient: Any, scale: Any) -> tuple[Array, ...]:
        row, *leaves = fields
        state = tree.unflatten(structure, leaves)
        row, new = updated_row(optimizer, row, state, gradient, scale)
        return (row, *tree.leaves(new))

    def coded(fields: tuple[Any, ...], gradient: Any, scale: Any) -> tuple[Array, ...]:
        codes, unit, count, *leaves = fields
        before = quantization.decode(codes, unit, spec.dtype)
        after, *new = one((before, *leaves), gradient, scale)
        old = codes, unit
        kept = quantization.encode_update(old, before, after, count, spec.seed)
        return (*kept, count + fnp.ones_like(count), *new)

    return vmap(one if spec.stored == "exact" else coded, in_axes=(0, 0, None))


def _field(spec: TableSpec, aval: Any) -> Field:
    if dtypes.is_key(aval.dtype):
        raise DtypeError(f"{spec}: the optimizer's state has a key: rows have numbers")
    return Field(tuple(aval.shape), np.dtype(aval.dtype))
