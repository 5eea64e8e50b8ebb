"""Operators act on the values of each row."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ragged.arrays import assert_rows, rows, sample

BINARY = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
    operator.mod, operator.pow, operator.lt, operator.le, operator.gt, operator.ge,
    operator.eq, operator.ne,
]  # fmt: skip


@pytest.mark.parametrize("operation", BINARY, ids=lambda f: f.__name__)
def test_operators(operation: Callable[[Any, Any], Any]) -> None:
    x, y = sample(seed=1), sample(seed=2)
    parts = list(zip(rows(x), rows(y), strict=True))
    assert_rows(operation(x, y), [operation(a, b) for a, b in parts])
    assert_rows(operation(x, 2), [operation(a, np.float32(2)) for a, _ in parts])
    assert_rows(operation(2, x), [operation(np.float32(2), a) for a, _ in parts])


def test_operators_of_integers_and_signs() -> None:
    x, y = sample(dtype="i4", seed=1), sample(dtype="i4", seed=2)
    parts = list(zip(rows(x), rows(y), strict=True))
    for operation in (operator.and_, operator.or_, operator.xor):
        assert_rows(operation(x, y), [operation(a, b) for a, b in parts])
        assert_rows(operation(3, x), [operation(3, a) for a, _ in parts])
    assert_rows(-x, [-a for a, _ in parts])
    assert_rows(+x, [a for a, _ in parts])
    assert_rows(abs(-x), [a for a, _ in parts])
    assert_rows(~x, [~a for a, _ in parts])
