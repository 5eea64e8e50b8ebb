"""A mesh, and what holds for every function with the argument `out_sharding`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow
from fxflow import NamedSharding, P, make_mesh

MESH = make_mesh((4, 2), ("x", "y"))


def on(*entries: Any) -> NamedSharding:
    """The sharding of a spec over the mesh."""
    return NamedSharding(MESH, P(*entries))


def check_laid_out(function: Callable[..., Any], spec: P) -> None:
    """The same values, laid out as asked; eagerly and compiled.

    Args:
      function: takes `out_sharding` alone.
      spec: of the result.
    """
    expected = function()
    got = function(out_sharding=on(*spec))
    assert got.aval == expected.aval
    assert got.sharding.is_equivalent_to(on(*spec), got.ndim)
    np.testing.assert_array_equal(got, expected)
    with fxflow.set_mesh(MESH):
        inside = fxflow.jit(lambda: function(out_sharding=spec))()
    assert inside.sharding.is_equivalent_to(on(*spec), got.ndim)
    np.testing.assert_allclose(inside, expected, rtol=1e-6)
