"""`fxflow.sharding`: where JAX's users look for these names."""

import fxflow
from fxflow import sharding


def test_the_same_objects():
    for name in ("Mesh", "NamedSharding", "P", "PartitionSpec", "SingleDeviceSharding"):
        assert getattr(sharding, name) is getattr(fxflow, name)
    assert {"AbstractMesh", "GSPMDSharding", "Sharding", *sharding.__all__} <= set(
        dir(sharding)
    )
    mesh = sharding.make_mesh((2,), ("x",), axis_types=(sharding.AxisType.Auto,))
    assert mesh.axis_types == (sharding.AxisType.Auto,)
