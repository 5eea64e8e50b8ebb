"""Tables whose programs use NumPy, so that nothing is compiled, and their model."""

from pathlib import Path

import numpy as np
import pytest

from fxflow.distributed.parameter_server.tables import (
    Field,
    RowPrograms,
    RowTable,
    TableSpec,
)

WIDTH = 3


def first_values(halves: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns rows computed from their ids, and their number of updates."""
    mixed = (halves[:, :1] * 31 + halves[:, 1:] * 17 + np.arange(WIDTH)) % 101
    return mixed.astype(np.float32), np.zeros(len(halves), np.int32)


def updated(fields, gradients, scale) -> tuple[np.ndarray, ...]:
    rows, count = fields
    return rows - np.float32(0.5 * scale) * gradients, count + 1


PROGRAMS = RowPrograms(
    (
        Field((WIDTH,), np.dtype(np.float32)),
        Field((), np.dtype(np.int32)),
    ),
    first_values,
    updated,
    (2, 4, 8),
)


def plain(**options) -> RowTable:
    return RowTable(TableSpec("t", WIDTH, **options), PROGRAMS)


def on_disk(folder: Path, rows: int, evict: str = "lru") -> RowTable:
    pytest.importorskip("lmdb")
    return plain(rows_in_memory=rows, folder=str(folder), evict=evict)


class Rows(dict):
    """The model of a table: a dictionary of (row, count)."""

    def __missing__(self, i: int) -> tuple[np.ndarray, int]:
        row, _ = first_values(np.array([[i >> 32, i & 0xFFFFFFFF]], np.uint32))
        self[i] = row[0], 0
        return self[i]

    def push(self, ids, gradients, scale) -> None:
        sums = {}
        for i, g in zip(ids, gradients):
            sums[i] = sums[i] + g if i in sums else g
        for i, g in sums.items():
            row, count = self[i]
            self[i] = row - np.float32(0.5 * scale) * g, count + 1
