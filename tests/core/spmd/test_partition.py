"""Where programs run, and how that is written."""

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax
from fxflow.core.arrays.aval import Aval, common_placement, type_on
from fxflow.core.spmd import partition
from fxflow.core.spmd.partition import argument_placement
from fxflow.devices import buffers
from fxflow.devices.meshes import Mesh
from fxflow.errors import ArgumentError

AVAL = Aval((4, 2), fnp.dtype("float32"))
MESH = fxflow.make_mesh((2, 2), ("x", "y"))


def at(sharding):
    return type_on(AVAL, buffers.placement_for(sharding), True)


def test_several_devices():
    free = type_on(AVAL)
    split, whole = at(NamedSharding(MESH, P("x"))), at(NamedSharding(MESH, P()))
    everywhere = whole.placement
    assert common_placement([free, split], "f") == (everywhere, True)
    assert common_placement([split, whole, free], "f") == (everywhere, True)
    assert common_placement([free], "f", MESH) == (everywhere, True)
    assert argument_placement(split, everywhere) is split.placement
    assert argument_placement(free, everywhere) is everywhere
    one = type_on(AVAL, None, True)
    with pytest.raises(ArgumentError, match="committed to different devices"):
        common_placement([one, split], "f")
    with pytest.raises(ArgumentError, match=r"runs on Mesh.*device_put\(x, Named"):
        common_placement([one], "f", MESH)


def test_arguments_in_host_memory_stay_there():
    default = buffers.default_placement()
    single = default.sharding.with_memory_kind("pinned_host")
    named = NamedSharding(MESH, P("x"), memory_kind="pinned_host")
    one, split = at(single), at(named)
    free = type_on(AVAL, buffers.placement_for(single))
    assert common_placement([one], "f") == (default, True)
    assert common_placement([free], "f") == (default, False)
    assert (
        argument_placement(one, default)
        is argument_placement(free, default)
        is one.placement
    )
    everywhere = buffers.placement_for(NamedSharding(MESH, P()))
    assert common_placement([split, free], "f") == (everywhere, True)
    assert argument_placement(split, everywhere) is split.placement
    # On several devices it is needed on each, in their own memory.
    assert argument_placement(free, everywhere) is everywhere
    alone = NamedSharding(fxflow.make_mesh((1,), ("x",)), P())
    whole = buffers.placement_for(alone)
    there = alone.with_memory_kind("pinned_host")
    assert argument_placement(one, whole) is buffers.placement_for(there)
    assert partition.attributes(None, AVAL, None, None) == []
    assert partition.attributes(None, AVAL, None, "a") == ['mhlo.memory_kind = "a"']


def test_specs_and_meshes_print_as_mlir():
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


# XLA makes constants of arrays without elements before it partitions a program.
EMPTY = {
    "divided": lambda: (fnp.zeros((0, 4)), P("x")),
    "inside": lambda: (fnp.zeros((4, 0)), P("x")),
    "copied": lambda: (fnp.zeros((0,)), P()),
    "flags": lambda: (fnp.zeros((2, 0), bool), P(None, ("x", "y"))),
}


@pytest.mark.parametrize("name", EMPTY)
def test_arrays_without_elements_beside_others(name):
    value, spec = EMPTY[name]()
    divided = NamedSharding(MESH, spec)
    rows = NamedSharding(MESH, P(("x", "y")))
    empty = fxflow.device_put(value, divided)
    full = fxflow.device_put(fnp.arange(8.0), rows)

    def mixed(e, f):
        total = lax.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + e.sum(), c[2]), (0, f, e)
        )
        return e, f * 2 + e.sum(), f[:0], total[1], total[2]

    outs = fxflow.jit(mixed)(empty, full)
    assert [v.shape for v in outs] == [value.shape, (8,), (0,), (8,), value.shape]
    assert outs[1].tolist() == [2.0 * i for i in range(8)]
    assert outs[3].tolist() == list(range(8))
    assert (empty == empty).shape == value.shape  # eager
    array_type = fxflow.jit(
        lambda e, f: (e, f[:0], f),
        in_shardings=(divided, rows),
        out_shardings=(divided, rows, rows),
        donate_argnums=(0, 1),
    )(empty, full)
    assert [v.sharding.spec for v in array_type] == [divided.spec, rows.spec, rows.spec]
    assert empty.is_deleted()
    assert full.is_deleted()
    # Programs with nothing but such arrays.
    (alone,) = fxflow.jit(lambda e: (e & e,) if e.dtype == bool else (e * 2,))(
        array_type[0]
    )
    assert alone.shape == value.shape
    assert alone.dtype == value.dtype


def test_derivatives_beside_arrays_without_elements():
    rows = NamedSharding(MESH, P(("x", "y")))
    empty = fxflow.device_put(fnp.zeros((0, 3)), rows)
    full = fxflow.device_put(fnp.arange(8.0), rows)

    def loss(e, f):
        return fnp.sum(f**2) + fnp.sum(fnp.sin(e))

    for derive in (fxflow.grad, lambda *a: fxflow.jit(fxflow.grad(*a))):
        de, df = derive(loss, (0, 1))(empty, full)
        assert de.shape == (0, 3)
        assert df.tolist() == [2.0 * i for i in range(8)]
    mapped = fxflow.vmap(lambda f: (fnp.stack([f])[:0], f * 2))(full)
    assert [v.shape for v in mapped] == [(8, 0), (8,)]
    none = fxflow.vmap(lambda e, f: (e.sum(), f), in_axes=(0, None))(empty, full)
    assert [v.shape for v in none] == [(0,), (0, 8)]
