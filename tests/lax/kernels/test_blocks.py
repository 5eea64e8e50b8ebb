"""Blocks: which part of an array a program gets."""

from __future__ import annotations

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.ir.staging import trace_closed
from fxflow.lax.kernels.blocks import ID, Block


def test_axes_of_the_grid_count_blocks() -> None:
    block = Block((8, None, 3), (1, 0, None))
    assert block.lengths == (8, 1, 3)
    assert block.seen == (8, 3)
    assert block.squeezed == (1,)
    assert block.starts((2, 5)) == (40, 2, 0)
    assert block.uses(0)
    assert block.uses(1)
    assert not block.uses(2)


def test_a_graph_chooses_blocks() -> None:
    graph = trace_closed(lambda i, j: [i + i, j - j], [ID, ID], name="map")
    block = Block((4, 5), graph)
    assert block.axes is None
    assert block.starts((3, 7)) == (24, 0)
    front = block.with_axis_in_front(uses=True)
    assert front.shape == (None, 4, 5)
    assert front.starts((9, 3, 7)) == (9, 24, 0)
    behind = block.with_axis_in_front(uses=False)
    assert behind.starts((9, 3, 7)) == (24, 0)
    assert not behind.uses(0)


def test_one_more_axis_in_front() -> None:
    block = Block((8, 3), (0, None))
    assert block.with_axis_in_front(uses=True) == Block((None, 8, 3), (0, 1, None))
    assert block.with_axis_in_front(uses=False) == Block((8, 3), (1, None))


def test_ids_are_32_bit_integers() -> None:
    assert Aval((), np.dtype(np.int32)) == ID
