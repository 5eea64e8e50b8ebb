"""The table of a model's arrays."""

from __future__ import annotations

import pytest

import fxflow
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.train import summary

PARAMS = {
    "layers": [{"w": fnp.zeros((2, 3)), "b": fnp.zeros(3)}, {"w": fnp.zeros((3, 400))}],
    "step": fnp.int32(0),
}


def test_elements_and_bytes_are_counted() -> None:
    table = summary(PARAMS)
    assert [(row.path, row.type, row.count, row.bytes) for row in table.rows] == [
        ("layers/0/b", "f32[3]", 3, 12),
        ("layers/0/w", "f32[2,3]", 6, 24),
        ("layers/1/w", "f32[3,400]", 1200, 4800),
        ("step", "i32[]", 1, 4),
    ]
    assert (table.total.count, table.total.bytes) == (1210, 4840)
    assert str(table).splitlines()[-1].split() == ["total", "4", "arrays", "1,210"] + [
        "4.84",
        "kB",
    ]


def test_depth_adds_up_deeper_levels() -> None:
    table = summary(PARAMS, depth=1)
    assert [(row.path, row.type, row.count) for row in table.rows] == [
        ("layers", "3 arrays", 1209),
        ("step", "i32[]", 1),
    ]


def test_structures_of_shapes_are_accepted() -> None:
    shapes = fxflow.eval_shape(lambda: PARAMS)
    assert summary(shapes) == summary(PARAMS)
    assert summary({}).total.count == 0
    with pytest.raises(ArgumentError, match=r"\['a'\]"):
        summary({"a": "text"})
