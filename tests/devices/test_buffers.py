"""Buffers: transfers, deletion, and donation of visible memory."""

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from fxflow.devices import buffers, clients, dlpack
from fxflow.devices.buffers import BufferType, Placement
from fxflow.devices.compile import compile as compile_text
from fxflow.errors import DeletedBufferError

from . import programs

Put = Callable[..., buffers.Buffer]

DTYPES = [
    *("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"),
    *("f2", "f4", "f8", "c8", "c16"),
    ml_dtypes.bfloat16,
    ml_dtypes.int2,
    ml_dtypes.int4,
    ml_dtypes.uint4,
    ml_dtypes.float4_e2m1fn,
    ml_dtypes.float8_e3m4,
    ml_dtypes.float8_e4m3,
    ml_dtypes.float8_e4m3b11fnuz,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e4m3fnuz,
    ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
    ml_dtypes.float8_e8m0fnu,
]


# -- placements ------------------------------------------------------------------------


def test_placements_are_interned(place: Placement) -> None:
    assert buffers.placement(place.device) is place
    assert place.devices == (place.device,)
    assert (place.platform, place.is_host) == ("cpu", True)
    assert repr(place) == "cpu:0"
    assert place.table == buffers.default_placement().table


def test_only_devices_have_placements() -> None:
    with pytest.raises(TypeError, match="expected a Device, got str"):
        buffers.placement("cpu")


def test_placements_are_not_pickled(place: Placement) -> None:
    import pickle

    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(place)


# -- in and out ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("into", [buffers.put, buffers.put_copy])
def test_values_survive_a_round_trip(
    place: Placement, dtype: object, into: Put
) -> None:
    if dtype in (ml_dtypes.int2, ml_dtypes.float4_e2m1fn):
        host = np.array([[0, 1, 0], [1, 1, 0]]).astype(dtype)
    else:
        host = np.arange(1, 7).reshape(2, 3).astype(dtype)
    back = buffers.to_host(into(BufferType(host.shape, host.dtype), host, place))
    assert back.dtype == host.dtype
    assert back.tobytes() == host.tobytes()
    assert not back.flags.writeable


@pytest.mark.parametrize("into", [buffers.put, buffers.put_copy])
def test_put_takes_any_strides(place: Placement, into: Put) -> None:
    base = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for host in (
        base.T,
        base[:, ::2],
        base[::-1],
        np.broadcast_to(np.float32(1), (3, 4)),
        np.zeros((0, 3), "f4"),
        np.array(3.0, "f4"),
        np.asfortranarray(base),
    ):
        buffer = into(BufferType(host.shape, host.dtype), host, place)
        np.testing.assert_array_equal(buffers.to_host(buffer), host)


def test_put_aliases_aligned_memory_and_put_copy_does_not(place: Placement) -> None:
    host = buffers.aligned_empty((4, 4), "f4")
    host[:] = 1
    kind = BufferType(host.shape, host.dtype)
    assert buffers.unsafe_pointer(buffers.put(kind, host, place)) == host.ctypes.data
    copied = buffers.put_copy(kind, host, place)
    assert buffers.unsafe_pointer(copied) != host.ctypes.data
    host[:] = 2
    assert buffers.to_host(copied).max() == 1


def test_aliased_memory_outlives_its_array(place: Placement) -> None:
    host = buffers.aligned_empty((1000,), "f4")
    host[:] = 3
    buffer = buffers.put(BufferType(host.shape, host.dtype), host, place)
    del host
    gc.collect()
    filler = [np.full(1000, 7, "f4") for _ in range(50)]
    assert buffers.to_host(buffer).tolist() == [3.0] * 1000
    del filler


@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
def test_aligned_empty(shape: tuple[int, ...]) -> None:
    array = buffers.aligned_empty(shape, "f8")
    assert array.shape == shape
    assert array.ctypes.data % 64 == 0 or array.size == 0
    array[...] = 1


def test_to_host_is_a_view_that_outlives_the_buffer(put: Put) -> None:
    buffer = put(np.full(1000, 3, "f4"))
    view = buffers.to_host(buffer)
    assert view.ctypes.data == buffers.unsafe_pointer(buffer)
    buffers.start_copy_to_host(buffer)
    buffers.delete(buffer)
    del buffer
    filler = [put(np.full(1000, 7, "f4")) for _ in range(20)]
    assert view.tolist() == [3.0] * 1000
    del filler


def test_copies_have_separate_memory(place: Placement, put: Put) -> None:
    buffer = put(np.arange(4, dtype="f4"))
    kind = BufferType((4,), np.dtype("f4"))
    for other in (buffers.copy(kind, buffer), buffers.copy_to(kind, buffer, place)):
        assert buffers.unsafe_pointer(other) != buffers.unsafe_pointer(buffer)
        np.testing.assert_array_equal(buffers.to_host(other), np.arange(4))
        assert buffers.placement_of(other) is place


def test_sizes_and_readiness(put: Put) -> None:
    buffer = put(np.zeros((3, 4), "f4"))
    buffers.block_until_ready([buffer])
    assert buffers.is_ready(buffer)
    assert buffers.on_device_nbytes(buffer) == 48


def test_buffers_on_several_cpu_devices(run_python: Callable[..., str]) -> None:
    code = """
import numpy as np
from fxflow.devices import buffers, clients, memory
first, second = map(buffers.placement, clients.devices())
kind = buffers.BufferType((4,), np.dtype("f4"))
one = buffers.put_copy(kind, np.arange(4, dtype="f4"), first)
two = buffers.copy_to(kind, one, second)
assert buffers.placement_of(two) is second, two
assert buffers.to_host(two).tolist() == [0, 1, 2, 3]
assert memory.memory_stats(second.device)["bytes_in_use"] == 16
assert memory.memory_stats(first.device)["bytes_in_use"] == 16
with clients.default_device(second.device):
    assert buffers.default_placement() is second
assert buffers.default_placement() is first
print("fine")
"""
    assert run_python(code, FXFLOW_NUM_CPU_DEVICES="2") == "fine\n"


# -- deletion --------------------------------------------------------------------------


def test_using_a_deleted_buffer_raises(put: Put, place: Placement) -> None:
    buffer = put(np.zeros(4, "f4"))
    buffers.delete(buffer)
    buffers.delete(buffer)
    assert buffers.is_deleted(buffer)
    assert not buffers.can_donate(buffer)
    for use in (
        lambda: buffers.to_host(buffer),
        lambda: buffers.copy_to(BufferType((4,), np.dtype("f4")), buffer, place),
        lambda: buffers.block_until_ready([buffer]),
        lambda: dlpack.to_dlpack(buffer),
    ):
        with pytest.raises(DeletedBufferError, match="deleted or donated"):
            use()


def test_deleting_an_exported_buffer_does_not_affect_its_consumer(put: Put) -> None:
    # Without the check in `delete`, the runtime aborts the process.
    buffer = put(np.full(1000, 3, "f4"))

    view = _export(buffer)
    buffers.delete(buffer)
    assert view.tolist() == [3.0] * 1000
    del view, buffer
    gc.collect()
    gc.collect()
    assert not buffers._exported


# -- donation of memory that is visible elsewhere --------------------------------------


def _view(buffer: buffers.Buffer) -> np.ndarray:
    return buffers.to_host(buffer)


def _export(buffer: buffers.Buffer) -> np.ndarray:
    class Exporter:
        def __dlpack__(self, **options: object) -> object:
            return dlpack.to_dlpack(buffer)

        def __dlpack_device__(self) -> tuple[int, int]:
            return dlpack.dlpack_device(buffer)

    return np.from_dlpack(Exporter())


@pytest.mark.parametrize(
    "attribute", ["tf.aliasing_output = 0 : i32", "jax.buffer_donor = true"]
)
@pytest.mark.parametrize("seen_by", ["nothing", "numpy", "view", "dlpack", "past view"])
def test_donation_preserves_visible_memory(
    place: Placement, put: Put, attribute: str, seen_by: str
) -> None:
    program = compile_text(
        programs.DONATE.replace("ATTRIBUTE", attribute),
        place,
        options={"xla_cpu_enable_fast_math": False},
    )
    handler = buffers.result_handler(BufferType((16,), np.dtype("f4")), place, False)
    host = buffers.aligned_empty((16,), "f4")
    host[:] = np.arange(16)
    visible: np.ndarray | None = None
    if seen_by == "numpy":
        buffer = buffers.put(BufferType((16,), np.dtype("f4")), host, place)
        visible = host
    else:
        buffer = put(host)
    if seen_by == "view":
        visible = _view(buffer)
    elif seen_by == "dlpack":
        visible = _export(buffer)
    elif seen_by == "past view":
        _view(buffer)
    assert buffers.can_donate(buffer)
    address = buffers.unsafe_pointer(buffer)
    (result,) = program.execute([buffer], [handler])
    np.testing.assert_array_equal(buffers.to_host(result), np.arange(16) * 2)
    if visible is None:
        assert buffers.unsafe_pointer(result) == address, "memory was not reused"
        assert buffers.is_deleted(buffer)
    else:
        assert buffers.unsafe_pointer(result) != address
        np.testing.assert_array_equal(visible, np.arange(16))
    buffers.delete(buffer)
    if visible is not None:
        np.testing.assert_array_equal(visible, np.arange(16))


# -- the default -----------------------------------------------------------------------


def test_default_placement_follows_the_default_device(place: Placement) -> None:
    with clients.default_device(place.device):
        assert buffers.default_placement() is place
    seen = []
    thread = threading.Thread(target=lambda: seen.append(buffers.default_placement()))
    thread.start()
    thread.join()
    assert seen == [place]


def test_the_runtime_does_not_import_jax(
    tmp_path: Path, run_python: Callable[..., str]
) -> None:
    """By itself it imports jax, or looks for it, for each part of an array."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("core = None\n")
    code = f"""
import sys
import numpy as np
import fxflow
sys.path.insert(0, {str(tmp_path)!r})
fxflow.config.num_cpu_devices = 2
x = fxflow.pmap(lambda x: x + 1)(np.ones((2, 3), np.float32))
assert [s.data.tolist() for s in x.addressable_shards] == [[[2.0] * 3]] * 2
assert np.asarray(fxflow.jit(lambda x: x * 2)(x[0])).tolist() == [4.0] * 3
assert x.tolist() == [[2.0] * 3] * 2
assert "jax" not in sys.modules
finders = list(sys.meta_path)
import jax  # who wants it gets it
assert jax.core is None
assert (x + 1)[1].tolist() == [3.0] * 3
assert sys.meta_path == finders
print("none")
"""
    assert run_python(code) == "none\n"
