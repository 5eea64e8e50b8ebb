"""The two programs of a table: the initial values of rows, and their update.

Both are pure functions of arrays, for blocks of a few sizes, so that few programs are
compiled. A process without the user's Python code makes a `RowPrograms` from the same
programs, compiled from text.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core import tree
from fxflow.core.arrays import Array, ShapeDtypeStruct, dtypes
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.errors import ArgumentError, DtypeError
from fxflow.nn import initializers
from fxflow.optim.base import GradientTransformation, apply_updates
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jit import jit
from fxflow.transforms.stages import Lowered
from fxflow.transforms.vmap import vmap

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
      fields: fields of a row; the first is its value.
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
      fields: fields of a row; the first is its value.
      init: see `RowPrograms.init`.
      update: see `RowPrograms.update`.
    """

    fields: tuple[Field, ...]
    init: Callable[[Any], tuple[Array, ...]]
    update: Callable[[tuple[Any, ...], Any, Any], tuple[Array, ...]]

    def lower(self, block: int) -> tuple[Lowered, Lowered]:
        """Returns both functions, lowered for blocks of one size.

        Args:
          block: number of rows in a block.
        """
        fields = tuple(
            ShapeDtypeStruct((block, *f.shape), f.dtype) for f in self.fields
        )
        ids = ShapeDtypeStruct((block, 2), dtypes.uint32)
        row = self.fields[0]
        gradients = ShapeDtypeStruct((block, *row.shape), sum_dtype(row.dtype))
        scale = ShapeDtypeStruct((), dtypes.float32)
        return (
            jit(self.init).lower(ids),
            jit(self.update).lower(fields, gradients, scale),
        )


def sum_dtype(dtype: Any) -> np.dtype[Any]:
    """Returns the dtype in which gradients of rows are added: at least 32 bits.

    Args:
      dtype: dtype of the rows.
    """
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


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

    def first(halves: Any) -> tuple[Array, ...]:
        key = random.fold_in(random.key(spec.seed), name)
        key = random.fold_in(random.fold_in(key, halves[0]), halves[1])
        row = initializer(key, spec.shape, spec.dtype)
        # With weak types, the state of the next step would need another program.
        state = tree.map(_strong, optimizer.init(row))
        return (row, *tree.leaves(state))

    types = eval_shape(first, ShapeDtypeStruct((2,), dtypes.uint32))
    fields = tuple(_field(spec, t) for t in types)
    if fields[0] != Field(spec.shape, spec.dtype):
        raise DtypeError(
            f"{spec}: the initializer must make {spec.dtype}{list(spec.shape)}, it "
            f"made {types[0]}"
        )
    structure = tree.structure(
        eval_shape(optimizer.init, ShapeDtypeStruct(spec.shape, spec.dtype))
    )
    return RowFunctions(fields, vmap(first), _update(optimizer, structure))


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
    optimizer: GradientTransformation, structure: Any
) -> Callable[[tuple[Any, ...], Any, Any], tuple[Array, ...]]:
    def one(fields: tuple[Any, ...], gradient: Any, scale: Any) -> tuple[Array, ...]:
        row, *leaves = fields
        state = tree.unflatten(structure, leaves)
        updates, new = optimizer.update(fnp.astype(gradient, row.dtype), state, row)
        scaled = fnp.multiply(updates, fnp.astype(scale, row.dtype))
        kept = [fnp.astype(n, o.dtype) for n, o in zip(tree.leaves(new), leaves)]
        return (apply_updates(row, scaled), *kept)

    return vmap(one, in_axes=(0, 0, None))


def _strong(x: Any) -> Array:
    return fnp.asarray(x, fnp.asarray(x).dtype)


def _field(spec: TableSpec, aval: Any) -> Field:
    if dtypes.is_key(aval.dtype):
        raise DtypeError(f"{spec}: the optimizer's state has a key: rows have numbers")
    return Field(tuple(aval.shape), np.dtype(aval.dtype))
