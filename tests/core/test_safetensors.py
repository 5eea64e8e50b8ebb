"""Arrays in the safetensors format, beside the package of that name."""

import numpy as np
import pytest

from fxflow.core import safetensors
from fxflow.core.arrays import dtypes


def written(arrays):
    return b"".join(map(bytes, safetensors.encode(arrays)))


ARRAYS = {
    "a.w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "empty": np.zeros((0, 3), np.int16),
    "scalar": np.array(True),
    "wide": np.arange(32, dtype=np.uint16),
}


def test_round_trip_of_every_dtype():
    arrays = {d.name: np.ones((2, 3), d) for d in dtypes.ALL} | ARRAYS
    found = safetensors.decode(memoryview(written(arrays)))
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes()


def test_the_package_reads_it_and_is_read():
    package = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")
    found = package.load(written(ARRAYS))
    again = safetensors.decode(memoryview(package.save(ARRAYS)))
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        np.testing.assert_array_equal(again[name], array)


def test_what_is_read_is_not_copied():
    data = written(ARRAYS)
    array = safetensors.decode(memoryview(data))["wide"]
    whole = np.frombuffer(data, np.uint8)
    assert np.shares_memory(array, whole)
    # Its size is a multiple of the alignment, so it lies in front, aligned.
    assert (array.ctypes.data - whole.ctypes.data) % safetensors.ALIGNMENT == 0


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,9]}}', "does not lie"),
        (b'{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}', "the size"),
        (b'{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', "does not lie"),
        (b'{"a":{"dtype":"F32","shape":[true],"data_offsets":[0,4]}}', "does not lie"),
        (b'{"a":{"dtype":"X9","shape":[2],"data_offsets":[0,8]}}', "unknown 'X9'"),
        (b'{"a":{"shape":[2]}}', "damaged"),
        (b"[]", "damaged"),
        (b"{", "damaged"),
        (b"[" * 100_000, "damaged"),
    ],
)
def test_damage(header, message):
    data = len(header).to_bytes(8, "little") + header + bytes(8)
    with pytest.raises(ValueError, match=message):
        safetensors.decode(memoryview(data))
    for cut in (4, 20):
        with pytest.raises(ValueError, match="cut off"):
            safetensors.decode(memoryview(data)[: min(cut, len(header))])


def test_the_digest_of_the_arrays():
    parts = safetensors.encode(ARRAYS, digest=True)
    data = b"".join(map(bytes, parts))
    assert safetensors.decode(data, verify=True).keys() == ARRAYS.keys()
    changed = data[:-1] + bytes([data[-1] ^ 1])
    assert safetensors.decode(changed).keys() == ARRAYS.keys()
    with pytest.raises(ValueError, match="the digest of the arrays differs"):
        safetensors.decode(changed, verify=True)
    # The layout is that of the arrays, whatever is in them.
    zeros = {name: np.zeros_like(array) for name, array in ARRAYS.items()}
    other = bytes(safetensors.encode(zeros, digest=True)[0])
    digest = safetensors.layout_digest(other)
    assert digest == safetensors.layout_digest(bytes(parts[0])) and other != parts[0]
    (start, size), _ = safetensors.places(bytes(parts[0]), ["a.w", "scalar"])
    assert data[start : start + size] == ARRAYS["a.w"].tobytes()
