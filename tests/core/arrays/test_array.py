"""`Array`: every protocol, its two representations, immutability, text."""

from __future__ import annotations

import copy
import enum
import operator
import pickle

import ml_dtypes
import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import Array, config, jit
from fxflow.core.arrays import array as array_module
from fxflow.core.arrays.array import (
    as_array,
    buffer_of,
    from_host,
    host_of,
    is_arraylike,
    like_type,
    release,
    typeof,
    unwrapped,
)
from fxflow.core.arrays.aval import Aval, type_on
from fxflow.errors import ArgumentError, DeletedArrayError

double = jit(lambda x: x * 2)


def on_device(value):
    """An array that lives in a runtime buffer."""
    x = jit(lambda x: x + 0)(fnp.asarray(value))
    assert hasattr(x, "_buffer") and not hasattr(x, "_host")
    return x


def on_host(value):
    """An array that lives in host memory."""
    x = fnp.asarray(value)
    assert hasattr(x, "_host") and not hasattr(x, "_buffer")
    return x


BOTH = pytest.mark.parametrize("make", [on_device, on_host])


# -- type and place --------------------------------------------------------------------


@BOTH
def test_type_and_place(make):
    x = make(np.ones((2, 3), np.float32))
    assert isinstance(x, Array)
    assert (x.shape, x.dtype, x.ndim, x.size) == ((2, 3), np.float32, 2, 6)
    assert (x.nbytes, x.itemsize, x.weak_type) == (24, 4, False)
    assert x.platform() == "cpu"
    assert x.devices() == {x.device}
    assert not x.committed
    assert x.block_until_ready() is x
    assert x.is_ready()
    x.copy_to_host_async()
    assert str(x.aval) == "f32[2,3]"


def test_attributes_cannot_be_added_or_set():
    x = fnp.ones(2)
    with pytest.raises(AttributeError):
        x.name = "x"
    with pytest.raises(AttributeError):
        x.shape = (1, 2)


# -- NumPy -----------------------------------------------------------------------------


@BOTH
def test_numpy_conversion(make):
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = make(value)
    view = np.asarray(x)
    np.testing.assert_array_equal(view, value)
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 7
    with pytest.raises(ValueError):
        view.flags.writeable = True
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    copied = np.array(x)
    copied[0, 0] = 7
    assert float(x[0, 0]) == 0.0
    assert not np.shares_memory(x.__array__(copy=True), view)
    assert x.__array__(copy=True).flags.writeable
    assert np.shares_memory(x.__array__(copy=False), view)
    assert np.asarray(x, np.float64).dtype == np.float64
    assert x.__array__(np.int32).tolist() == value.astype(int).tolist()
    assert np.shares_memory(x.__array__(np.float32), view)
    with pytest.raises(ValueError, match=r"f32\[2,3\] as float64 needs a copy"):
        x.__array__(np.float64, copy=False)


def test_numpy_leaves_operators_to_us():
    x = np.ones(2, np.float32) + fnp.ones(2)
    assert isinstance(x, Array)
    assert isinstance(np.float32(2) * fnp.ones(2), Array)


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint64, np.float16, ml_dtypes.bfloat16, np.complex64]
)
def test_every_kind_of_number_comes_back(dtype):
    value = np.array([0, 1, 1], dtype)
    for x in (on_host(value), on_device(value)):
        back = np.asarray(x)
        assert back.dtype == x.dtype
        assert back.tolist() == value.tolist()


def test_host_memory_written_to_later_is_not_seen():
    host = np.zeros(1000, np.float32)
    x = fnp.asarray(host)
    y = x + 0
    buffer_of(x)
    host[:] = 7
    assert float(fnp.asarray(x)[3]) == 0.0
    assert float(double(x)[3]) == 0.0
    assert float(y[3]) == 0.0


# -- DLPack ----------------------------------------------------------------------------


@BOTH
def test_dlpack_to_numpy_without_a_copy(make):
    x = make(np.arange(4, dtype=np.float32))
    assert x.__dlpack_device__()[0] == 1
    there = np.from_dlpack(x)
    assert there.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert there.__array_interface__["data"][0] == x.unsafe_buffer_pointer()
    assert not there.flags.writeable


def test_dlpack_from_numpy_without_a_copy():
    # The runtime takes over memory that is aligned as it aligns its own.
    raw = np.zeros(1024 + 16, np.float32)
    start = (-raw.ctypes.data % 64) // 4
    host = raw[start : start + 1024]
    x = fnp.from_dlpack(host)
    assert x.unsafe_buffer_pointer() == host.ctypes.data
    assert x.shape == (1024,)


def test_dlpack_both_ways():
    x = fnp.arange(5.0)
    y = fnp.from_dlpack(x)
    assert y.tolist() == x.tolist()


# -- the array API ---------------------------------------------------------------------


def test_array_namespace():
    x = fnp.ones(3)
    namespace = x.__array_namespace__()
    assert namespace is fnp
    assert x.__array_namespace__(api_version="2024.12") is fnp
    with pytest.raises(ValueError, match=r"version '1999.01'.*2024\.12"):
        x.__array_namespace__(api_version="1999.01")


# -- copies ----------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("weak", [False, True])
def test_pickle_and_copies(make, weak):
    x = make(3.0 if weak else np.arange(3, dtype=np.int16))
    assert x.weak_type == weak
    for other in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert other is not x
        assert other.aval is x.aval
        assert other.tolist() == x.tolist()
        assert other.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert copy.copy(x).tolist() == x.tolist()


@BOTH
def test_a_copy_stays_where_its_original_is(make):
    last = fxflow.devices()[-1]
    for shape in ((3,), (0, 3)):
        x = fxflow.device_put(make(np.ones(shape, np.float32)), last)
        other = copy.deepcopy(x)
        assert (other.device, other.committed) == (last, True)
        assert other.tolist() == x.tolist()


def test_keys_are_pickled_and_copied():
    key = fxflow.random.key(3)
    keys = fxflow.random.split(key, 2)
    for k in (key, keys):
        for other in (pickle.loads(pickle.dumps(k)), copy.deepcopy(k)):
            assert other.aval is k.aval
            data = fxflow.random.key_data
            assert data(other).tolist() == data(k).tolist()


# -- Python scalars --------------------------------------------------------------------


@BOTH
def test_arrays_of_one_element_convert_to_python_numbers(make):
    assert float(make(np.float32(2.5))) == 2.5
    assert int(make(np.float32(2.5))) == 2
    assert complex(make(np.float32(2.5))) == 2.5 + 0j
    assert complex(make(np.complex64(1 + 2j))) == 1 + 2j
    assert bool(make(np.int32(3))) is True
    assert bool(make(np.zeros((1, 1), np.float32))) is False
    assert make(np.int32(3)).item() == 3
    assert type(make(np.int32(3)).item()) is int
    assert make(np.arange(4)).item(2) == 2
    assert make(np.eye(2, dtype=np.float32)).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert make(np.arange(2, dtype=np.int8)).tobytes() == b"\x00\x01"


def test_index():
    n = fnp.array(2)
    assert operator.index(n) == 2
    assert [10, 20, 30][n] == 30
    assert list(range(n)) == [0, 1]
    with pytest.raises(TypeError, match=r"an index must be a 0-d integer.*f32\[\]"):
        operator.index(fnp.array(2.0))
    with pytest.raises(TypeError, match=r"i32\[1\]"):
        operator.index(fnp.array([2]))
    with pytest.raises(TypeError, match=r"bool\[\]"):
        operator.index(fnp.array(True))


@pytest.mark.parametrize("kind", [float, int, complex])
def test_numbers_of_arrays_that_are_not_0d(kind):
    with pytest.raises(TypeError, match=rf"{kind.__name__}\(\) takes a 0-d .*f32\[2\]"):
        kind(fnp.ones(2))


def test_truth_of_many():
    with pytest.raises(ValueError, match=r"truth value of f32\[2\] is ambiguous.*any"):
        bool(fnp.ones(2))
    with pytest.raises(ValueError, match=r"f32\[0\] is ambiguous"):
        bool(fnp.ones(0))


def test_len_and_iteration():
    x = fnp.arange(3)
    assert len(x) == 3
    assert [int(v) for v in x] == [0, 1, 2]
    assert [v.shape for v in fnp.ones((2, 3))] == [(3,), (3,)]
    assert len(fnp.zeros((0, 2))) == 0
    with pytest.raises(TypeError, match=r"len\(\) of a 0-d array"):
        len(fnp.array(1.0))
    with pytest.raises(TypeError, match="0-d"):
        iter(fnp.array(1.0))


def test_hash():
    with pytest.raises(TypeError, match=r"not hashable \(this one is f32\[2\]\)"):
        hash(fnp.ones(2))
    with pytest.raises(TypeError, match="not hashable"):
        _ = {fnp.ones(2): 1}


def test_items_cannot_be_assigned():
    x = fnp.ones(2)
    with pytest.raises(TypeError, match=r"\.at\["):
        x[0] = 3
    with pytest.raises(TypeError):
        del x[0]
    y = x
    y += 1  # another array: the old one stays
    assert x.tolist() == [1.0, 1.0] and y.tolist() == [2.0, 2.0]
    assert x.at[0].set(5.0).tolist() == [5.0, 1.0]
    assert x.tolist() == [1.0, 1.0]


# -- text ------------------------------------------------------------------------------


@BOTH
def test_repr(make):
    assert repr(make(np.arange(3, dtype=np.float32))) == (
        "Array([0., 1., 2.], dtype=float32)"
    )
    assert repr(make(np.float32(1.5))) == "Array(1.5, dtype=float32)"
    assert repr(make(1.5)) == "Array(1.5, dtype=float32, weak_type=True)"
    assert repr(make(np.zeros((0, 3), np.int32))) == (
        "Array([], shape=(0, 3), dtype=int32)"
    )
    assert repr(make(np.eye(2, dtype=np.float32))) == (
        "Array([[1., 0.],\n       [0., 1.]], dtype=float32)"
    )
    assert repr(make(np.array([1, 2], ml_dtypes.bfloat16))) == (
        "Array([1, 2], dtype=bfloat16)"
    )
    assert "..." in repr(make(np.zeros(2000, np.float32)))
    assert str(make(np.arange(3))) == "[0 1 2]"


def test_repr_of_keys():
    key = fxflow.random.key(7)
    assert repr(key) == "Array(key<fry>[]) overlaying:\n[0, 7]"
    assert str(key) == repr(key)
    with pytest.raises(TypeError, match=r"key<fry>\[\].*key_data"):
        np.asarray(key)


def test_format():
    x = fnp.array(3.14159)
    assert f"{x:.2f}" == "3.14"
    assert f"{fnp.array(7):04d}" == "0007"
    assert f"{fnp.arange(3)}" == "[0 1 2]"
    assert f"{fnp.arange(2):>8}" == "   [0 1]"


def test_html():
    html = fnp.arange(2)._repr_html_()
    assert "i32[2]" in html and "[0 1]" in html and "<pre>" in html
    assert "<" not in fnp.arange(2)._repr_html_().replace("<code>", "").replace(
        "</code>", ""
    ).replace("<pre>", "").replace("</pre>", "")


# -- deletion --------------------------------------------------------------------------


@BOTH
def test_deleted(make):
    x = make(np.ones(3, np.float32))
    kept = np.array(x)
    x.delete()
    assert x.is_deleted()
    assert repr(x) == str(x) == "Array(<deleted>, f32[3])"
    assert x.shape == (3,)
    for use in (
        np.asarray,
        lambda x: x + 1,
        double,
        lambda x: x[0],
        float,
        pickle.dumps,
        Array.block_until_ready,
        Array.tolist,
        copy.deepcopy,
    ):
        with pytest.raises((DeletedArrayError, TypeError)) as info:
            use(x)
        assert "f32[3]" in str(info.value)
    with pytest.raises(RuntimeError, match=r"f32\[3\] was deleted.*donate"):
        np.asarray(x)
    x.delete()  # once more does nothing
    assert kept.tolist() == [1.0, 1.0, 1.0]


def test_a_view_outlives_the_array():
    x = on_device(np.arange(1000, dtype=np.float32))
    view = np.asarray(x)
    del x
    fresh = [double(fnp.ones(1000)) for _ in range(8)]
    assert view[999] == 999.0
    assert len(fresh) == 8


# -- the two representations -----------------------------------------------------------


def test_a_host_array_becomes_a_buffer_once():
    x = on_host(np.arange(4, dtype=np.float32))
    buffer = buffer_of(x)
    assert buffer_of(x) is buffer
    assert host_of(x) is host_of(x)


def test_a_device_array_is_read_once():
    x = on_device(np.arange(4, dtype=np.float32))
    value = host_of(x)
    assert host_of(x) is value


def test_from_host_takes_over():
    host = np.ones(2, np.float32)
    x = from_host(host, type_on(Aval((2,), host.dtype)))
    assert host_of(x) is host


def test_release_and_forget():
    x = on_device(np.ones(3, np.float32))
    host_of(x)
    release(x)
    assert not hasattr(x, "_host")
    array_module.forget(x)
    assert x.is_deleted()
    with pytest.raises(DeletedArrayError):
        buffer_of(x)
    with pytest.raises(DeletedArrayError):
        host_of(x)


def test_constructor_errors():
    with pytest.raises(TypeError):
        Array(fnp.ones(2))
    assert issubclass(ArgumentError, TypeError)


def test_arrays_are_not_made_by_the_class():
    with pytest.raises(TypeError, match=r"fxflow\.numpy\.array, or of a shape"):
        fnp.ndarray((2,), 3)


def test_dlpack_takes_a_stream():
    x = fnp.arange(3.0)
    np.testing.assert_array_equal(np.from_dlpack(x), x)
    assert "dltensor" in repr(x.__dlpack__(stream=None, max_version=(1, 0)))


def test_large_arrays_are_not_kept_twice():
    memory = np.zeros(array_module.LARGE + 256, np.uint8)
    start = -memory.ctypes.data % 64
    for offset, kept in ((start + 4, False), (start, True)):
        value = memory[offset : offset + array_module.LARGE].view(np.float32)
        x = from_host(value, type_on(Aval(value.shape, value.dtype)))
        pointer = buffer_of(x).unsafe_buffer_pointer()
        assert hasattr(x, "_host") is kept
        assert (pointer == value.ctypes.data) is kept
        assert host_of(x).ctypes.data == pointer and not host_of(x).any()


# -- from what users pass --------------------------------------------------------------


class Wrapper:
    """What the `__fxflow_array__` protocol is for."""

    def __init__(self, value):
        self.value = value

    def __fxflow_array__(self):
        return self.value


class Level(enum.IntEnum):
    LOW = 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "bool[]"),
        (3, "i32[]~"),
        (3.0, "f32[]~"),
        (1j, "c64[]~"),
        (Level.LOW, "i32[]~"),
        (np.float64(3.0), "f32[]"),
        (np.float16(3.0), "f16[]"),
        (np.bool_(True), "bool[]"),
        (np.ones((2, 3)), "f32[2,3]"),
        (np.arange(3), "i32[3]"),
        (np.ones(2, np.uint8), "u8[2]"),
        (Wrapper(np.ones(2, np.float32)), "f32[2]"),
    ],
)
def test_python_and_numpy_values_have_the_expected_types(value, text):
    assert str(typeof(value)) == text
    assert is_arraylike(value)
    array = as_array(value)
    assert str(array.aval) == text


def test_types_with_64_bits():
    with config.override(x64=True):
        assert str(typeof(3)) == "i64[]~"
        assert str(typeof(3.0)) == "f64[]~"
        assert str(typeof(np.ones(2))) == "f64[2]"
        assert str(as_array(np.ones(2)).aval) == "f64[2]"
        assert str(typeof(np.float32(1))) == "f32[]"


def test_arrays_and_tracers_are_what_they_say():
    x = fnp.ones(3)
    assert typeof(x) is x.aval
    assert as_array(x) is x
    seen = []
    fxflow.jit(lambda t: seen.append((typeof(t), as_array(t) is t)))(x)
    assert seen == [(Aval((3,), np.dtype(np.float32)), True)]


@pytest.mark.parametrize(
    "value", ["a", None, object(), {"a": 1}, [1.0], (1, 2), {1}, b"x", len]
)
def test_values_that_are_not_arrays_are_refused(value):
    assert not is_arraylike(value)
    for function in (typeof, as_array):
        with pytest.raises(TypeError, match="not an array") as info:
            function(value)
        assert ("None" if value is None else type(value).__name__) in str(info.value)
    if isinstance(value, list | tuple):
        assert "fnp.asarray" in str(info.value)


def test_long_values_are_cut_in_messages():
    with pytest.raises(TypeError) as info:
        as_array("a" * 1000)
    assert len(str(info.value)) < 200


@pytest.mark.parametrize(
    "value",
    [np.array(["a"]), np.array([object()]), np.array(["2020"], "datetime64[Y]")],
)
def test_dtypes_that_xla_has_not(value):
    with pytest.raises(TypeError):
        as_array(value)


def test_numbers_that_do_not_fit():
    with pytest.raises(OverflowError, match="2147483648"):
        as_array(2**31)
    assert int(as_array(2**31 - 1)) == 2**31 - 1
    with config.override(x64=True):
        assert int(as_array(2**31)) == 2**31


def test_host_memory_is_copied():
    host = np.zeros(3, np.float32)
    x = as_array(host)
    host[:] = 1
    assert x.tolist() == [0.0] * 3


def test_odd_memory_layouts():
    base = np.arange(12, dtype=np.int32).reshape(3, 4)
    for value in (base.T, base[:, ::2], base[::-1], np.asfortranarray(base)):
        assert as_array(value).tolist() == value.tolist()
    swapped = base.astype(">i4")
    assert as_array(swapped).tolist() == base.tolist()


def test_like_type() -> None:
    class Described:
        shape = (2, np.int64(3))
        dtype = "bfloat16"

    assert like_type(Described()) == Aval((2, 3), fnp.bfloat16.dtype)
    assert like_type(np.ones(2)) == typeof(np.ones(2))
    assert like_type(2.0).weak_type
    assert like_type(fxflow.ShapeDtypeStruct((2,), "int8")) == Aval(
        (2,), fnp.int8.dtype
    )
    with pytest.raises(TypeError, match="not an array"):
        like_type("text")


def test_unwrapped() -> None:
    assert unwrapped(Wrapper(3)) == 3 and unwrapped("text") == "text"


@pytest.mark.parametrize(
    "use",
    [
        fnp.array,
        fnp.asarray,
        fnp.sin,
        fxflow.jit(lambda x: x),
        fxflow.device_put,
        lambda x: fnp.asarray([x, x]),
        lambda x: fnp.ones(3) + x,
        lambda x: fnp.add(1, x),
        lambda x: fnp.ones(3, "float64") * x,
    ],
)
def test_masked_arrays_are_refused(use):
    with pytest.raises(ArgumentError, match=r"mask would be lost: pass x.filled"):
        use(np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]))


def test_arrays_of_other_libraries_get_a_hint_to_convert():
    class Foreign:
        __module__ = "elsewhere.arrays"

        def __dlpack__(self):
            """Never called."""

    with pytest.raises(ArgumentError, match=r"elsewhere.arrays.Foreign.*from_dlpack"):
        fnp.sin(Foreign())
