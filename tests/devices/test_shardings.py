"""Shardings: parts, and conversions to and from the runtime's shardings."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
from fxflow.devices import PlacementError, buffers
from fxflow.devices.meshes import Mesh, P, make_mesh, set_mesh
from fxflow.devices.shardings import (
    GSPMDSharding,
    NamedSharding,
    SingleDeviceSharding,
    describe,
    tiles_of,
)

SHAPES = [(8,), (2, 4), (4, 2), (2, 2, 2), (2, 1, 4), (1,), (3,), (2, 3)]


@st.composite
def named(draw: st.DrawFn) -> tuple[NamedSharding, tuple[int, ...]]:
    """A sharding on some mesh, and the shape of an array that it divides evenly."""
    sizes = draw(st.sampled_from(SHAPES))
    names = [f"a{i}" for i in range(len(sizes))]
    devices = draw(st.permutations(fxflow.devices()[: math.prod(sizes)]))
    grid = np.empty(len(devices), object)
    grid[:] = devices
    mesh = Mesh(grid.reshape(sizes), names)
    ndim = draw(st.integers(0, 3))
    left = draw(st.permutations(names))
    entries: list[tuple[str, ...]] = []
    for _ in range(ndim):
        count = draw(st.integers(0, len(left)))
        entries.append(tuple(left[:count]))
        left = left[count:]
    shape = tuple(mesh.length(e) * draw(st.integers(0, 3)) for e in entries)
    return NamedSharding(mesh, P(*entries)), shape


@given(named())
def test_describe_inverts_hlo(case: tuple[NamedSharding, tuple[int, ...]]) -> None:
    sharding, shape = case
    ndim = len(shape)
    hlo = sharding.hlo(ndim)
    assert tiles_of(hlo, sharding.num_devices, ndim) == sharding.tiles(ndim)
    back = describe(sharding.mesh, hlo, ndim)
    assert isinstance(back, NamedSharding)
    assert back.is_equivalent_to(sharding, ndim)
    assert GSPMDSharding(sharding.devices, hlo).is_equivalent_to(sharding, ndim)


@given(named())
def test_parts_make_up_the_whole(case: tuple[NamedSharding, tuple[int, ...]]) -> None:
    sharding, shape = case
    host = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
    array = fxflow.device_put(host, sharding)
    assert array.sharding == sharding
    assert np.array_equal(np.asarray(array), host)
    seen = np.zeros(shape, int)
    firsts = np.zeros(shape, int)
    assert np.array_equal(array.addressable_data(0), array.addressable_shards[0].data)
    for shard in array.addressable_shards:
        assert shard.data.device == shard.device
        assert shard.data.shape == sharding.shard_shape(shape)
        assert np.array_equal(shard.data, host[shard.index])
        seen[shard.index] += 1
        firsts[shard.index] += shard.replica_id == 0
    assert (firsts == 1).all()
    if host.size:
        assert (
            seen.min()
            == seen.max()
            == sharding.num_devices // math.prod(sharding.tiles(len(shape))[0])
        )


@given(named(), st.data())
def test_from_any_layout_to_any(case, data) -> None:
    sharding, shape = case
    target, _ = data.draw(named())
    host = np.arange(math.prod(shape), dtype=np.int32).reshape(shape)
    array = fxflow.device_put(host, sharding)
    spec = P(*[None] * len(shape))
    if len(shape) and shape[0] % target.mesh.axis_sizes[0] == 0:
        spec = P(target.mesh.axis_names[0])
    moved = fxflow.device_put(array, NamedSharding(target.mesh, spec))
    assert moved.sharding.mesh == target.mesh
    assert np.array_equal(moved, host)
    assert np.array_equal(fxflow.device_put(moved, fxflow.devices()[1]), host)


def test_properties() -> None:
    mesh = make_mesh((2, 4), ("x", "y"))
    sharding = NamedSharding(mesh, P("x", ("y",)))
    assert sharding.device_set == set(mesh.flat) == sharding.addressable_devices
    assert sharding.is_fully_addressable and not sharding.is_fully_replicated
    assert NamedSharding(mesh, P(None)).is_fully_replicated
    assert sharding.shard_shape((4, 8)) == (2, 2)
    where = sharding.devices_indices_map((4, 8))
    assert where[mesh.devices[1, 2]] == (slice(2, 4), slice(4, 6))
    assert sharding.addressable_devices_indices_map((4, 8)) == where
    assert sharding == NamedSharding(mesh, P("x", "y", None))
    assert hash(sharding) == hash(NamedSharding(mesh, P("x", "y")))
    assert sharding.with_spec(P("y")).spec == P("y")
    one = SingleDeviceSharding("cpu:2")
    assert one.device_set == {fxflow.devices()[2]} and one.is_fully_replicated
    assert (
        one == SingleDeviceSharding(fxflow.devices()[2]) != SingleDeviceSharding("cpu")
    )
    assert buffers.placement_for(one) is buffers.placement(fxflow.devices()[2])


def test_kinds_of_memory() -> None:
    mesh = make_mesh((2,), ("x",))
    host = np.arange(4.0, dtype=np.float32)
    there = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    array = fxflow.device_put(host, there)
    assert array.sharding == there and np.array_equal(array, host)
    assert "memory_kind='pinned_host'" in repr(there)
    # Operations compute in the devices' default memory.
    own = NamedSharding(mesh, P("x"))
    assert (array + 1).sharding == own
    # The kind's name and None are the same.
    assert own.memory_kind == "device" and "memory_kind" not in repr(own)
    assert NamedSharding(mesh, P("x"), memory_kind="device") == own != there
    assert there.with_memory_kind("device") == there.with_memory_kind(None) == own
    assert hash(there.with_memory_kind("device")) == hash(own)
    assert there.with_spec(P()).memory_kind == "pinned_host"
    assert not there.is_equivalent_to(own, 1)
    found = GSPMDSharding(mesh.flat, there.hlo(1), memory_kind="pinned_host")
    assert found.memory_kind == "pinned_host" != found.with_memory_kind(None)
    assert found.is_equivalent_to(there, 1) and "pinned_host" in repr(found)
    assert fxflow.device_put(1.0).sharding.memory_kind == "device"
    single = SingleDeviceSharding("cpu", memory_kind="pinned_host")
    assert (fxflow.device_put(host, single) * 2).tolist() == [0, 2, 4, 6]
    assert single.memory_kind == "pinned_host" != SingleDeviceSharding("cpu")
    same = SingleDeviceSharding("cpu", memory_kind="device")
    assert buffers.placement_for(same) is buffers.placement(fxflow.devices()[0])
    with pytest.raises(PlacementError, match="no memory of kind 'fast'; it has device"):
        NamedSharding(mesh, P("x"), memory_kind="fast")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: NamedSharding(m, P("x", "x")), "'x' twice"),
        (lambda m: NamedSharding(m, P("z")), "no axis 'z'"),
        (lambda m: NamedSharding(m, "x"), "expected a PartitionSpec, got str"),
        (lambda m: NamedSharding(m.devices, P()), "expected a Mesh, got ndarray"),
        (
            lambda m: fxflow.device_put(np.ones(3), NamedSharding(m, P("x"))),
            r"axis 0 of an array of shape \[3\] cannot be divided into 2",
        ),
        (
            lambda m: fxflow.device_put(1.0, NamedSharding(m, P("x"))),
            "for arrays of at least 1 axes, got one of 0",
        ),
        (
            lambda m: fxflow.device_put(1.0, NamedSharding(m, P(None))),
            "for arrays of at least 1 axes, got one of 0",
        ),
        (
            lambda m: fxflow.device_put(1.0, NamedSharding(Mesh([], "x"), P())),
            "has no devices",
        ),
    ],
)
def test_shardings_that_do_not_fit_are_refused(make, words) -> None:
    with pytest.raises(PlacementError, match=words):
        make(make_mesh((2, 4), ("x", "y")))


def test_equal_shardings_have_one_canonical_form() -> None:
    mesh = make_mesh((2, 4), ("x", "y"))
    long, short = NamedSharding(mesh, P("x", None)), NamedSharding(mesh, P("x"))
    assert long == short and hash(long) == hash(short)
    assert long.canonical().spec == P("x") and len(long.canonical().spec) == 1
    assert short.canonical() is short
    there = long.with_memory_kind("pinned_host")
    assert there.canonical().memory_kind == "pinned_host"
    one = SingleDeviceSharding("cpu")
    assert one.canonical() is one
    assert buffers.placement_for(long) is buffers.placement_for(short)
    assert len(buffers.placement_for(long).sharding.spec) == 1
    with pytest.raises(PlacementError, match="at least 2 axes"):
        long.shard_shape((8,))


def test_shardings_over_meshes_without_devices() -> None:
    mesh = make_mesh((4,), ("x",))
    where = NamedSharding(mesh.abstract_mesh, P("x"))
    assert where.shard_shape((8,)) == (2,) and where.num_devices == 4
    assert where.memory_kind is None and not where.is_fully_replicated
    assert where.is_equivalent_to(where, 1)
    assert pickle.loads(pickle.dumps(where)) == where != NamedSharding(mesh, P("x"))
    struct = fxflow.ShapeDtypeStruct((8,), "float32", sharding=where)
    assert fxflow.eval_shape(lambda x: x * 2, struct).shape == (8,)
    with pytest.raises(ValueError, match="there is no current mesh"):
        fxflow.device_put(np.ones(8), where)
    with (
        set_mesh(make_mesh((2,), ("x",))),
        pytest.raises(ValueError, match="is not for the current mesh"),
    ):
        fxflow.device_put(np.ones(8), where)
    there = NamedSharding(mesh, P("x"))
    with set_mesh(mesh):
        assert where.device_set == there.device_set
        assert fxflow.device_put(np.ones(8), where).sharding == there
        doubled = fxflow.jit(lambda x: x * 2, out_shardings=where)(np.ones(8))
        assert doubled.sharding == there
        compiled = fxflow.jit(lambda x: x * 2).lower(struct).compile()
        assert compiled.input_shardings[0] == (there,)
