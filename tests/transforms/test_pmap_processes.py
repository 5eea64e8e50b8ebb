"""`pmap` over the devices of two processes: own slices in, own slices out."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import distributed, lax, pmap
from fxflow.errors import ArgumentError, DeletedArrayError
from tests.processes import check_two_processes


def shared(x, y, scale):
    total = lax.psum(x, "i")
    return x * scale + y, total.sum(), fnp.asarray(np.ones(3, np.float32)) * 2


def run() -> None:
    """What each process runs."""
    distributed.initialize()
    here, count = fxflow.process_index(), fxflow.local_device_count()
    first = count * here
    own = slice(first, first + count)
    x = np.arange(2.0 * count * 3, dtype=np.float32).reshape(2 * count, 3)

    f = pmap(
        shared,
        "i",
        in_axes=(0, None),
        out_axes=(1, None, None),
        static_broadcasted_argnums=2,
    )
    for given in (x[own], fnp.array(x[own]), pmap(lambda v: v)(x[own])):
        for _ in range(3):  # the first call, and the short path
            out, total, twos = f(given, 1.0, 3)
            np.testing.assert_array_equal(out, (x[own] * 3 + 1).T)
            assert float(total) == x.sum()
            assert twos.tolist() == [2.0, 2.0, 2.0]
        np.testing.assert_array_equal(f(given, 1.0, 4)[0], (x[own] * 4 + 1).T)

    # What comes out is an array of this process.
    y = pmap(lambda v: lax.psum(v, "i"), "i")(x[own])
    want = np.broadcast_to(x.sum(0), (count, 3))
    assert y.is_fully_addressable
    assert y.devices() == set(fxflow.local_devices())
    assert [s.data.shape for s in y.addressable_shards] == [(1, 3)] * count
    np.testing.assert_array_equal(y + 1, want + 1)
    np.testing.assert_array_equal(y[count - 1], want[0])
    alone = fxflow.device_put(y, fxflow.local_devices()[0])
    np.testing.assert_array_equal(alone, want)
    np.testing.assert_array_equal(fxflow.jit(lambda v: v * 2)(alone), want * 2)
    np.testing.assert_array_equal(np.asarray(y.copy()), want)
    if count == 1:
        np.testing.assert_array_equal(np.from_dlpack(alone), want)
    data = y.addressable_shards[0].data
    np.testing.assert_array_equal(np.from_dlpack(data), want[:1])

    # Arrays without elements have this process's shape, too.
    none = pmap(lambda v: (v[:0], lax.psum(v, "i")), "i")(x[own])
    assert none[0].shape == (count, 0) and none[0].is_fully_addressable
    np.testing.assert_array_equal(none[1], want)
    assert pmap(lambda v, w: w * 2, in_axes=(0, 0))(
        x[own], np.zeros((count, 0), np.float32)
    ).shape == (count, 0)

    # A number has no dtype of its own.
    half = pmap(lambda v, w: v * w, in_axes=(0, None))(x[own].astype("float16"), 2.0)
    assert half.dtype == np.float16

    # Donated is what was given.
    step = pmap(lambda v, w: v + w + lax.axis_index("i"), "i", donate_argnums=0)
    value = fnp.array(x[own])
    for _ in range(3):
        before, value = value, step(value, x[own])
        assert before.is_deleted()
    np.testing.assert_array_equal(
        value, 4 * x[own] + 3 * np.arange(2 * count)[own, None]
    )
    with pytest.raises(DeletedArrayError):
        before + 1

    # An argument that is the same on all devices of all processes.
    mesh = fxflow.make_mesh((2 * count,), ("all",))
    everywhere = fxflow.NamedSharding(mesh, fxflow.P())
    whole = fxflow.make_array_from_callback((3,), everywhere, lambda i: x[0][i])
    added = pmap(lambda v, w: v + w, in_axes=(0, None))
    for _ in range(2):
        np.testing.assert_array_equal(added(x[own], whole), x[own] + x[0])

    if count == 2:
        inner = pmap(lambda v: v + lax.psum(v, ("o", "j")), "j")
        z = x.reshape(2, 2, 3)[here : here + 1]
        for _ in range(2):
            np.testing.assert_array_equal(pmap(inner, "o")(z), z + x.sum(0))
        with pytest.raises(ArgumentError, match=r"1 slices, process 0 has 2 devices"):
            pmap(lambda v: v * 2)(x[:1])
    print("done")


@pytest.mark.slow
@pytest.mark.parametrize("devices", [1, 2])
def test_two_processes(devices):
    check_two_processes("tests.transforms.test_pmap_processes", devices)


if __name__ == "__main__":
    run()
