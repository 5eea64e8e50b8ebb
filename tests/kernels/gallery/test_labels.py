"""Numbers of connected parts by one pass: against SciPy's, and the checker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.kernels.gallery.labels import connected_parts

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("density", "diagonal"), [(0.5, False), (0.4, True)])
def test_parts_of_fields(density: float, diagonal: bool) -> None:
    field = np.zeros((9, 11), "int32")
    field[1:-1, 1:-1] = RNG.random((7, 9)) < density
    want, number = scipy.ndimage.label(field, np.ones((3, 3)) if diagonal else None)
    # Elements before one: to the left, and in the row above.
    back = [1, 11, 10, 12] if diagonal else [1, 11]

    def run(inside: Any) -> Any:
        plain = lambda _: (fnp.asarray(want.ravel()), fnp.int32(number))
        return connected_parts(inside, back, reference=plain)

    labels, count = kernels.check(run, field.ravel())
    np.testing.assert_array_equal(labels.reshape(9, 11), want)
    assert int(count) == number


def test_nothing_is_connected_without_neighbours() -> None:
    def plain(inside: Any) -> Any:
        return fnp.cumsum(inside) * inside, fnp.sum(inside)

    run = lambda inside: connected_parts(inside, [], reference=plain)
    inside = np.array([[1, 1, 0, 1], [0, 0, 0, 0]], "int32")
    labels, counts = fxflow.jit(fxflow.vmap(run))(inside)
    assert labels.tolist() == [[1, 2, 0, 3], [0, 0, 0, 0]]
    assert counts.tolist() == [3, 0]
