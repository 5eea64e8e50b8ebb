"""Tables on servers: their serialized form, and the shard of each row.

A worker sends the optimizer and the initializer as program text, for a few block sizes;
a server runs them. Row i is in shard i mod n, which spreads any batch of ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.core.arrays import ShapeDtypeStruct, dtypes
from fxflow.distributed.parameter_server.programs import (
    ProgramText,
    Runner,
    write,
)
from fxflow.distributed.parameter_server.tables.index import Ids
from fxflow.distributed.parameter_server.tables.row_programs import (
    BLOCKS,
    Field,
    RowPrograms,
    row_functions,
    sum_dtype,
)
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.parameter_server.tables.store import RowTable


class TableModel(NamedTuple):
    """The serialized form of a table.

    Attributes:
      description: its spec, as JSON.
      fields: shapes and dtypes of a row: its value, then its optimizer's state.
      programs: `init/32`, `update/32`, …, by block size.
    """

    description: dict[str, Any]
    fields: list[tuple[tuple[int, ...], str]]
    programs: dict[str, ProgramText]


def table_model(spec: TableSpec, platform: str = "cpu") -> TableModel:
    """Returns the serialized form of a table.

    Args:
      spec: specification of the table, with its optimizer.
      platform: platform of the servers.

    Raises:
      ArgumentError: the specification has no optimizer.
      DistributedError: the optimizer or the initializer calls Python.
    """
    functions = row_functions(spec)
    programs = {}
    for block in BLOCKS:
        fields = tuple(
            ShapeDtypeStruct((block, *f.shape), f.dtype) for f in functions.fields
        )
        ids = ShapeDtypeStruct((block, 2), dtypes.uint32)
        shape = (block, *spec.shape)
        gradients = ShapeDtypeStruct(shape, sum_dtype(spec.dtype))
        scale = ShapeDtypeStruct((), dtypes.float32)
        name = f"table.{spec.name}"
        programs[f"init/{block}"], _ = write(
            functions.init, ids, name=f"{name}.init", platform=platform
        )
        programs[f"update/{block}"], _ = write(
            functions.update,
            fields,
            gradients,
            scale,
            name=f"{name}.update",
            platform=platform,
        )
    kept = [(f.shape, f.dtype.name) for f in functions.fields]
    return TableModel(spec.describe(), kept, programs)


def make_table(model: TableModel, place: str) -> RowTable:
    """Returns an empty table on a server.

    Args:
      model: the table that a worker sent.
      place: folder of its files, within the folder of the spec.
    """
    runners: dict[str, Runner] = {}

    def runner(what: str, block: int) -> Runner:
        name = f"{what}/{block}"
        if name not in runners:
            runners[name] = Runner(model.programs[name])
        return runners[name]

    def init(halves: npt.NDArray[np.uint32]) -> Sequence[Any]:
        return runner("init", len(halves))([halves])

    def update(fields: Sequence[Any], gradients: Any, scale: Any) -> Sequence[Any]:
        run = runner("update", len(gradients))
        return run([*fields, gradients, np.float32(scale)])

    spec = TableSpec.from_description(model.description)
    if spec.folder is not None:
        described = {**model.description, "folder": f"{spec.folder}/{place}"}
        spec = TableSpec.from_description(described)
    fields = tuple(Field(tuple(s), np.dtype(dtypes.dtype(d))) for s, d in model.fields)
    return RowTable(spec, RowPrograms(fields, init, update, BLOCKS))


def by_shard(ids: Ids, count: int) -> list[npt.NDArray[np.intp]]:
    """Returns the positions of each shard's ids in `ids`.

    Args:
      ids: int64[n].
      count: number of shards.

    Example:
      >>> [p.tolist() for p in by_shard(np.array([4, 7, 1, 6]), 2)]
      [[0, 3], [1, 2]]
    """
    shard = ids % count
    return [np.flatnonzero(shard == i) for i in range(count)]


def rows_of(arrays: Mapping[str, Any], name: str) -> tuple[Any, Any] | None:
    """Returns the ids and gradients of a push for a table, if any."""
    ids = arrays.get(f"rows/{name}/ids")
    return None if ids is None else (ids, arrays[f"rows/{name}/gradients"])
