"""Panels, and calls of the kernel."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.devices.contractions import Contraction, LoopAxis
from fxflow.devices.native import kernel_tile
from fxflow.transforms.passes.contracting import contract, packed
from tests.transforms.passes.graphs import values


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 20])
def test_panels(columns):
    matrix = values(5, columns)
    panels = np.asarray(fxflow.jit(lambda m: packed(m, 8))(matrix))
    count = -(-columns // 8)
    assert panels.shape == (5 * count, 8)
    joined = panels.reshape(count, 5, 8).transpose(1, 0, 2).reshape(5, 8 * count)
    np.testing.assert_array_equal(joined[:, :columns], matrix)
    assert not joined[:, columns:].any()


def test_a_product():
    tile = kernel_tile()
    if tile is None:
        pytest.skip("no kernel for this processor")
    a, b = values(10, 6), values(6, 5, seed=1)
    each = tile.columns
    contraction = Contraction(
        (LoopAxis(10, 6),), (LoopAxis(6, 1, each),), 5, panel=6 * each
    )
    f = fxflow.jit(lambda a, b: contract(a, packed(b, each), contraction, tile))
    out = f(fnp.asarray(a), fnp.asarray(b))
    assert out.shape == (1, 10, 5)
    np.testing.assert_allclose(np.asarray(out)[0], a @ b, rtol=1e-5, atol=1e-5)
