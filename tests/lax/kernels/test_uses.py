"""How bodies use their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.core.source import describe
from fxflow.lax.kernels.uses import Use, uses_of
from tests.lax.kernels.samples import params_of

X = np.ones((4, 3), np.float32)


def use_of(body: Any) -> Use:
    """Returns how a body uses its result."""
    params = params_of(kernels.call(body, X), X)
    uses = uses_of(params.graph)
    assert uses[0].reads and not uses[0].writes
    return uses[1]


def whole(x: Any, o: Any) -> None:
    o[...] = x[...]


def row_by_row(x: Any, o: Any) -> None:
    @kernels.loop(0, 4)
    def _(i: Any) -> None:
        o[i] = x[i]


def by_slices(x: Any, o: Any) -> None:
    o[::-1, 0:3] = x[...]


def a_part(x: Any, o: Any) -> None:
    o[:, 1:] = x[:, 1:]


def added(x: Any, o: Any) -> None:
    o[...] += x[...]


def twice(x: Any, o: Any) -> None:
    o[...] = x[...]
    o[0] = o[1]


def in_a_branch(x: Any, o: Any) -> None:
    lax.cond(fnp.sum(x[...]) > 0, lambda: o.set(x[...]), lambda: None)


def in_a_condition(x: Any, o: Any) -> None:
    o[...] = x[...]
    count = lax.while_loop(lambda i: (i < 4) & (o[0, 0] > 0), lambda i: i + 1, 0)
    o[0, 0] = count.astype(o.dtype)


@pytest.mark.parametrize(
    ("body", "reads", "writes", "covers"),
    [
        (whole, False, 1, True),
        (row_by_row, False, 2, False),
        (by_slices, False, 1, True),
        (a_part, False, 1, False),
        (added, True, 1, False),
        (twice, True, 2, True),
        (in_a_branch, False, 2, False),
        (in_a_condition, True, 2, True),
    ],
)
def test_reads_and_writes(body: Any, reads: bool, writes: int, covers: bool) -> None:
    use = use_of(body)
    assert use[:3] == (reads, writes, covers)
    assert use.first_write is not None
    assert "test_uses.py" in describe(use.first_write.source)
