"""Tables of rows that are made when they are first touched."""

from fxflow.distributed.parameter_server.tables.gradients import sum_rows
from fxflow.distributed.parameter_server.tables.row_programs import (
    BLOCKS,
    Field,
    RowFunctions,
    RowPrograms,
    row_functions,
    row_programs,
)
from fxflow.distributed.parameter_server.tables.snapshot import RowBlock
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.parameter_server.tables.store import (
    Table,
    TableCounts,
    TableState,
)

__all__ = [
    "BLOCKS",
    "Field",
    "RowBlock",
    "RowFunctions",
    "RowPrograms",
    "Table",
    "TableCounts",
    "TableSpec",
    "TableState",
    "row_functions",
    "row_programs",
    "sum_rows",
]
