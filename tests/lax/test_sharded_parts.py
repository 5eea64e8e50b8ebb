"""Parts of arrays, against what the devices of a sharding hold."""

import numpy as np
import pytest

from fxflow import NamedSharding, P, make_mesh
from fxflow.lax.sharded_parts import cut, global_shape, joined, local_shape

MESH = make_mesh((2, 4), ("x", "y"))
X = np.arange(8 * 16 * 3).reshape(8, 16, 3)


@pytest.mark.parametrize(
    "spec", [P(), P("x"), P(None, "y"), P("y", "x"), P(("x", "y")), P(("y", "x"), None)]
)
def test_parts_are_those_of_the_devices(spec):
    where = NamedSharding(MESH, spec).devices_indices_map(X.shape)
    parts = cut(X, spec, MESH, MESH.axis_names)
    assert parts.shape == (2, 4, *local_shape(X.shape, spec, MESH))
    for place, device in np.ndenumerate(MESH.devices):
        np.testing.assert_array_equal(parts[place], X[where[device]])
    np.testing.assert_array_equal(joined(parts, spec, MESH, MESH.axis_names), X)
    assert global_shape(parts.shape[2:], spec, MESH) == X.shape
