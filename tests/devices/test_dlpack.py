"""DLPack with NumPy, and with PyTorch and JAX if they are installed."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fxflow.devices import buffers, clients, dlpack
from fxflow.devices._jaxlib import raw
from fxflow.devices.buffers import BufferType

Put = Callable[..., buffers.Buffer]


class Exporter:
    """An object with DLPack's two methods, like `Array`."""

    def __init__(self, buffer: buffers.Buffer) -> None:
        self.buffer = buffer

    def __dlpack__(self, **options: Any) -> Any:
        return dlpack.to_dlpack(self.buffer, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.dlpack_device(self.buffer)


class OldExporter(Exporter):
    """A producer that NumPy cannot read, so that the runtime reads it."""

    def __dlpack__(self, stream: Any = None, **options: Any) -> Any:
        if options:
            raise BufferError("only the old protocol")
        return dlpack.to_dlpack(self.buffer)


def aligned(values: Any) -> np.ndarray:
    values = np.asarray(values)
    array = buffers.aligned_empty(values.shape, values.dtype)
    array[...] = values
    return array


# -- out -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c8"])
def test_export_is_a_view(put: Put, dtype: str) -> None:
    buffer = put(np.arange(6).reshape(2, 3), dtype)
    view = np.from_dlpack(Exporter(buffer))
    np.testing.assert_array_equal(view, buffers.to_host(buffer))
    assert view.dtype == dtype
    assert view.ctypes.data == buffers.unsafe_pointer(buffer)
    assert dlpack.dlpack_device(buffer) == (1, 0)


def test_export_of_a_copy(put: Put) -> None:
    buffer = put(np.arange(6, dtype="f4"))
    capsule = dlpack.to_dlpack(buffer, copy=True, max_version=(1, 0), dl_device=(1, 0))

    class Once:
        def __dlpack__(self, **options: Any) -> Any:
            return capsule

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    copy = np.from_dlpack(Once())
    assert copy.ctypes.data != buffers.unsafe_pointer(buffer)
    np.testing.assert_array_equal(copy, np.arange(6))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dl_device": (2, 0)}, r"from DLPack device \(1, 0\) to \(2, 0\)"),
        ({"stream": 3}, "stream must be None"),
    ],
)
def test_impossible_exports_are_refused(put: Put, options: dict, message: str) -> None:
    with pytest.raises(BufferError, match=message):
        dlpack.to_dlpack(put(np.zeros(3), "f4"), **options)


def test_dtypes_without_a_dlpack_form_are_refused(put: Put) -> None:
    with pytest.raises(BufferError, match="no DLPack equivalent"):
        dlpack.to_dlpack(put(np.zeros(3), ml_dtypes.int4))


# -- in --------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["numpy", "dlpack", "old dlpack"])
def test_import_shares_memory(put: Put, source: str) -> None:
    host = aligned(np.arange(6, dtype="f4").reshape(2, 3))
    giver: Any = host
    if source != "numpy":
        where = buffers.default_placement()
        owner = buffers.put(BufferType(host.shape, host.dtype), host, where)
        giver = (Exporter if source == "dlpack" else OldExporter)(owner)
    for copy in (None, False):
        buffer = dlpack.from_dlpack(giver, copy=copy)
        assert buffers.unsafe_pointer(buffer) == host.ctypes.data
        assert buffer.aval == BufferType((2, 3), np.dtype("f4"))
        assert buffers.placement_of(buffer) is buffers.default_placement()
    copied = dlpack.from_dlpack(giver, copy=True)
    assert buffers.unsafe_pointer(copied) != host.ctypes.data
    host[0, 0] = 9
    assert buffers.to_host(buffer)[0, 0] == 9
    assert buffers.to_host(copied)[0, 0] == 0


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: aligned(np.arange(6.0).reshape(2, 3)).T, "not row-major"),
        (lambda: aligned(np.arange(6.0).reshape(2, 3))[:, ::2], "not row-major"),
        (lambda: aligned(np.arange(6.0))[1:], "64 bytes"),
    ],
    ids=["transposed", "strided", "shifted"],
)
def test_import_that_needs_a_copy(make: Callable[[], np.ndarray], why: str) -> None:
    array = make()
    buffer = dlpack.from_dlpack(array)
    np.testing.assert_array_equal(buffers.to_host(buffer), array)
    with pytest.raises(BufferError, match=f"{why}.*copy=False"):
        dlpack.from_dlpack(array, copy=False)


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
)
def test_dtypes_that_numpy_does_not_exchange(put: Put, dtype: Any) -> None:
    owner = put(np.arange(6).reshape(2, 3), dtype)
    buffer = dlpack.from_dlpack(Exporter(owner))
    assert buffer.aval == BufferType((2, 3), np.dtype(dtype))
    assert buffers.unsafe_pointer(buffer) == buffers.unsafe_pointer(owner)
    np.testing.assert_array_equal(buffers.to_host(buffer), buffers.to_host(owner))


def test_the_runtime_itself_takes_transposed_memory() -> None:
    # The reason why `_take_device` checks the strides.
    array = aligned(np.arange(6, dtype="f4").reshape(2, 3)).T

    class Old:
        def __dlpack__(self, **options: Any) -> Any:
            if options:
                raise BufferError("only the old protocol")
            return array.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    taken = raw.dlpack_managed_tensor_to_buffer(
        array.__dlpack__(), clients.cpu_device(), None, None, 1
    )
    assert str(taken._pjrt_layout) == "{0,1}"
    buffer = dlpack.from_dlpack(Old())
    assert str(buffer._pjrt_layout) == "{1,0}"
    np.testing.assert_array_equal(buffers.to_host(buffer), array)
    with pytest.raises(BufferError, match="not row-major"):
        dlpack.from_dlpack(Old(), copy=False)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 3, 1)])
def test_arrays_of_every_shape_are_taken(shape: tuple[int, ...], put: Put) -> None:
    host = np.ones(shape, "f4")
    for giver in (host, Exporter(put(host)), OldExporter(put(host))):
        buffer = dlpack.from_dlpack(giver)
        assert buffer.aval.shape == shape
        np.testing.assert_array_equal(buffers.to_host(buffer), host)


def test_read_only_memory_is_imported() -> None:
    host = aligned(np.arange(4.0))
    host.flags.writeable = False
    buffer = dlpack.from_dlpack(host)
    assert buffers.unsafe_pointer(buffer) == host.ctypes.data


def test_from_dlpack_refuses_other_objects() -> None:
    with pytest.raises(TypeError, match="__dlpack__ and __dlpack_device__, got list"):
        dlpack.from_dlpack([1, 2])


@pytest.mark.parametrize(
    ("device", "message"), [((2, 0), "cuda"), ((7, 0), "unknown DLPack device type 7")]
)
def test_unknown_source_devices_are_refused(
    device: tuple[int, int], message: str
) -> None:
    class Elsewhere:
        def __dlpack__(self, **options: Any) -> Any:
            raise AssertionError

        def __dlpack_device__(self) -> tuple[int, int]:
            return device

    with pytest.raises(BufferError, match=message):
        dlpack.from_dlpack(Elsewhere())


def test_import_to_another_device(run_python: Callable[..., str]) -> None:
    code = """
import numpy as np
from fxflow.devices import buffers, clients, dlpack
one, two = clients.devices()
host = np.arange(4, dtype="f4")
buffer = dlpack.from_dlpack(host, device=two)
assert buffers.placement_of(buffer).device is two
assert buffers.to_host(buffer).tolist() == [0, 1, 2, 3]
try:
    dlpack.from_dlpack(host, device=two, copy=False)
except BufferError as error:
    assert "which copy=False forbids" in str(error)
    print("fine")
"""
    assert run_python(code, FXFLOW_NUM_CPU_DEVICES="2") == "fine\n"


# -- other libraries -------------------------------------------------------------------


def test_pytorch(put: Put) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    buffer = dlpack.from_dlpack(tensor)
    assert buffers.unsafe_pointer(buffer) == tensor.data_ptr()
    back = torch.from_dlpack(Exporter(put(np.arange(6.0).reshape(2, 3), "f4")))
    assert torch.equal(back, tensor)
    half = dlpack.from_dlpack(tensor.to(torch.bfloat16).T)
    assert half.aval == BufferType((3, 2), np.dtype(ml_dtypes.bfloat16))
    np.testing.assert_array_equal(buffers.to_host(half).astype("f4"), tensor.numpy().T)


def test_an_array_of_another_runtime(put: Put) -> None:
    # A jax.Array is the same C++ object with other methods on it.
    buffer = put(np.arange(6, dtype="f4"))
    other = dlpack.from_dlpack(OldExporter(buffer))
    assert buffers.unsafe_pointer(other) == buffers.unsafe_pointer(buffer)
