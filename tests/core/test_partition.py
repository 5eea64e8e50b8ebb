"""Where programs run, and how that is written."""

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax
from fxflow.core import partition
from fxflow.core.aval import Aval
from fxflow.core.errors import ArgumentError
from fxflow.core.partition import common_place, mesh_in, place_of
from fxflow.core.placed import placed_on
from fxflow.core.staging import trace_flat
from fxflow.devices import buffers
from fxflow.devices.meshes import Mesh

AVAL = Aval((4, 2), fnp.dtype("float32"))
MESH = fxflow.make_mesh((2, 2), ("x", "y"))


def at(sharding):
    return placed_on(AVAL, buffers.placement_for(sharding), True)


def test_one_device():
    free, here = placed_on(AVAL), placed_on(AVAL, None, True)
    there = placed_on(AVAL, buffers.placement(fxflow.devices()[5]), True)
    default = buffers.default_placement()
    assert common_place([], "f") == (default, False)
    assert common_place([free, free], "f") == (default, False)
    assert common_place([free, here], "f") == (default, True)
    assert common_place([free, there], "f") == (there.placement, True)
    with pytest.raises(
        ArgumentError,
        match=r"add: arguments are committed.*f32\[4,2\] to .*cpu:5.*device_put",
    ):
        common_place([here, there], "add")


def test_several_devices():
    free = placed_on(AVAL)
    split, whole = at(NamedSharding(MESH, P("x"))), at(NamedSharding(MESH, P()))
    everywhere = whole.placement
    assert common_place([free, split], "f") == (everywhere, True)
    assert common_place([split, whole, free], "f") == (everywhere, True)
    assert common_place([free], "f", MESH) == (everywhere, True)
    assert place_of(split, everywhere) is split.placement
    assert place_of(free, everywhere) is everywhere
    one = placed_on(AVAL, None, True)
    with pytest.raises(ArgumentError, match="committed to different devices"):
        common_place([one, split], "f")
    with pytest.raises(ArgumentError, match=r"runs on Mesh.*device_put\(x, Named"):
        common_place([one], "f", MESH)


def test_meshes_named_by_graphs():
    def constrained(x):
        return [lax.with_sharding_constraint(x, NamedSharding(MESH, P("x")))]

    graph, _ = trace_flat(constrained, [AVAL])
    assert mesh_in(graph) is MESH
    graph, _ = trace_flat(lambda x: [fxflow.jit(constrained)(x)[0]], [AVAL])
    assert mesh_in(graph) is MESH
    graph, _ = trace_flat(lambda x: [lax.sin(x)], [AVAL])
    assert mesh_in(graph) is None


def test_text():
    spec = P("x", None, ("y", "z"), P.UNCONSTRAINED)
    assert partition.spec_text("@mesh", spec, 5, True) == (
        '<@mesh, [{"x"}, {}, {"y", "z"}, {?}, {}]>'
    )
    assert partition.spec_text("@mesh", P("x"), 2, False) == '<@mesh, [{"x"}, {?}]>'
    assert partition.mesh_text(MESH, MESH.flat) == '<["x"=2, "y"=2]>'
    other = Mesh(MESH.devices.T, ('a"b', 3))
    assert partition.mesh_text(other, MESH.flat) == (
        '<["a\\"b"=2, "3"=2], device_ids=[0, 2, 1, 3]>'
    )
