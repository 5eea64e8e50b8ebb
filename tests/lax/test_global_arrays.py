"""Arrays made of parts."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P
from fxflow.devices import PlacementError
from fxflow.errors import ArgumentError, DtypeError, ShapeError

MESH = fxflow.make_mesh((4, 2), ("x", "y"))
HOST = np.arange(48, dtype=np.int32).reshape(8, 6)


@pytest.mark.parametrize(
    "spec", [P(), P("x"), P("x", "y"), P(("y", "x")), P(None, "y")]
)
def test_three_ways(spec) -> None:
    where = NamedSharding(MESH, spec)
    asked = []

    def part(index):
        asked.append(index)
        return HOST[index]

    made = fxflow.make_array_from_callback(HOST.shape, where, part)
    assert len(asked) == len({str(i) for i in asked})
    parts = [shard.data for shard in made.addressable_shards]
    again = fxflow.make_array_from_single_device_arrays(HOST.shape, where, parts[::-1])
    local = fxflow.make_array_from_process_local_data(where, HOST)
    tree = fxflow.make_array_from_process_local_data(where, {"a": HOST}, {"a": (8, 6)})
    for array in (made, again, local, tree["a"]):
        assert array.sharding == where and array.dtype == np.int32
        np.testing.assert_array_equal(array, HOST)


def test_a_callback_gives_the_dtype_that_is_asked_for() -> None:
    where = NamedSharding(MESH, P("x"))
    made = fxflow.make_array_from_callback((4,), where, lambda i: [1.5], dtype="int32")
    assert made.dtype == np.int32 and made.tolist() == [1, 1, 1, 1]


def on_device(number, shape=(2, 6), dtype=np.int32):
    return fxflow.device_put(np.zeros(shape, dtype), f"cpu:{number}")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (
            lambda w: fxflow.make_array_from_callback((8, 6), w, lambda i: HOST),
            ShapeError,
            r"must have the shape \[2, 6\], got i32\[8,6\]",
        ),
        (
            lambda w: fxflow.make_array_from_callback((7,), w, lambda i: HOST),
            PlacementError,
            "cannot be divided into 4",
        ),
        (
            lambda w: fxflow.make_array_from_process_local_data(w, HOST[:4], (16, 6)),
            ShapeError,
            "axis 0 of the local data",
        ),
        (
            lambda w: fxflow.make_array_from_single_device_arrays(
                (8, 6), w, [on_device(i) for i in range(7)]
            ),
            ArgumentError,
            "missing .*id=7",
        ),
        (
            lambda w: fxflow.make_array_from_single_device_arrays(
                (8, 6), w, [on_device(0), on_device(0)]
            ),
            ArgumentError,
            "two parts lie on",
        ),
        (
            lambda w: fxflow.make_array_from_single_device_arrays(
                (8, 6), w, [on_device(i, (1, 6)) for i in range(8)]
            ),
            ShapeError,
            r"must have the shape \[2, 6\], got i32\[1,6\]",
        ),
        (
            lambda w: fxflow.make_array_from_single_device_arrays((8, 6), w, [HOST]),
            ArgumentError,
            "expected arrays on one device",
        ),
        (
            lambda w: fxflow.make_array_from_callback((8, 6), 3, lambda i: HOST),
            ArgumentError,
            "expected a Sharding",
        ),
    ],
)
def test_missing_or_misshapen_parts_are_refused(make, error, words) -> None:
    with pytest.raises(error, match=words):
        make(NamedSharding(MESH, P("x")))


def test_no_copy() -> None:
    where = NamedSharding(MESH, P("x"))
    parts = [fxflow.device_put(fnp.ones((2, 3)), f"cpu:{i}") for i in range(8)]
    made = fxflow.make_array_from_single_device_arrays((8, 3), where, parts)
    first = made.addressable_shards[0].data
    assert first.unsafe_buffer_pointer() == parts[0].unsafe_buffer_pointer()


def test_parts_in_host_memory() -> None:
    where = NamedSharding(MESH, P("x"), memory_kind="pinned_host")
    host = np.arange(24, dtype=np.float32).reshape(8, 3)
    made = fxflow.make_array_from_callback((8, 3), where, lambda index: host[index])
    assert made.sharding == where
    parts = [shard.data for shard in made.addressable_shards]
    assert {part.sharding.memory_kind for part in parts} == {"pinned_host"}
    assert parts[2].sharding.devices == (fxflow.devices()[2],)
    again = fxflow.make_array_from_single_device_arrays((8, 3), where, parts)
    assert again.sharding == where
    np.testing.assert_array_equal(again, host)
    np.testing.assert_array_equal(again[3], host[3])
    np.testing.assert_array_equal(parts[2] + 1, host[2:4] + 1)


@pytest.mark.parametrize("spec", [P(), P("x"), P(None, "y")])
def test_arrays_of_keys(spec) -> None:
    keys = fxflow.random.split(fxflow.random.key(0), (8, 2))
    where = NamedSharding(MESH, spec)
    made = fxflow.make_array_from_callback((8, 2), where, lambda index: keys[index])
    parts = [shard.data for shard in made.addressable_shards]
    again = fxflow.make_array_from_single_device_arrays((8, 2), where, parts)
    local = fxflow.make_array_from_process_local_data(where, keys)
    for array in (made, again, local):
        assert array.sharding == where and bool((array == keys).all())
    with pytest.raises(DtypeError, match=r"is key<fry>\[.*\], not float32"):
        fxflow.make_array_from_callback(
            (8, 2), where, lambda index: keys[index], dtype="float32"
        )
    filled = fnp.full((8, 2), keys[0, 0], device=where)
    assert filled.sharding == where and bool((filled == keys[0, 0]).all())
