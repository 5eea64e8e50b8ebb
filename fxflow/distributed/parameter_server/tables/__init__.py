"""Tables of rows that are created on first use."""

from fxflow.distributed.parameter_server.tables.cache import CacheCounts, RowCache
from fxflow.distributed.parameter_server.tables.cuts import RowBlock
from fxflow.distributed.parameter_server.tables.gradients import (
    pad_rows,
    real_ids,
    sum_rows,
    unique_rows,
)
from fxflow.distributed.parameter_server.tables.spec import (
    BLOCKS,
    Field,
    RowFunctions,
    RowPrograms,
    row_functions,
    row_programs,
)
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.parameter_server.tables.store import (
    RowTable,
    TableCounts,
    TableState,
)

__all__ = [
    "BLOCKS",
    "CacheCounts",
    "Field",
    "RowBlock",
    "RowCache",
    "RowFunctions",
    "RowPrograms",
    "RowTable",
    "TableCounts",
    "TableSpec",
    "TableState",
    "pad_rows",
    "real_ids",
    "row_functions",
    "row_programs",
    "sum_rows",
    "unique_rows",
]
