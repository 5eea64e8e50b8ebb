"""Dtypes: requests, values, questions and names."""

import copy
import enum
import pickle
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow._config import config
from fxflow.core.arrays import dtypes
from fxflow.errors import DtypeError

FLOATS = [d for d in dtypes.ALL if "float" in d.name]
INTEGERS = [d for d in dtypes.ALL if "int" in d.name]


# -- requests --------------------------------------------------------------------------


@pytest.mark.parametrize("d", dtypes.ALL, ids=str)
def test_a_dtype_is_found_by_name_type_and_itself(d: np.dtype) -> None:
    assert dtypes.dtype(d) is d
    assert dtypes.dtype(d.name) is d
    assert dtypes.dtype(d.type) is d
    assert dtypes.dtype(np.zeros(1, d).dtype) is d


def test_python_types_mean_the_default() -> None:
    kinds = (bool, int, float, complex)
    assert [dtypes.dtype(k).name for k in kinds] == [
        "bool",
        "int32",
        "float32",
        "complex64",
    ]
    assert [dtypes.dtype(k.__name__) for k in kinds] == list(map(dtypes.dtype, kinds))
    with config.override(x64=True):
        wide = [dtypes.dtype(k).name for k in kinds]
        assert wide == ["bool", "int64", "float64", "complex128"]
        assert [dtypes.dtype(k.__name__).name for k in kinds] == wide
        assert [dtypes.default(k).name for k in kinds] == wide
        assert dtypes.default_int() is dtypes.int64
        assert dtypes.default_uint() is dtypes.uint64
        assert dtypes.default_float() is dtypes.float64
        assert dtypes.default_complex() is dtypes.complex128
    assert dtypes.dtype("float") is dtypes.default_float() is dtypes.float32
    assert dtypes.default_int() is dtypes.int32
    assert dtypes.default_uint() is dtypes.uint32
    assert dtypes.default_complex() is dtypes.complex64
    assert dtypes.default(int, wide=True) is dtypes.int64


@pytest.mark.parametrize("x", ["float64", np.float64, np.dtype("f8"), "f8", "double"])
@pytest.mark.parametrize("x64", [False, True])
def test_an_explicit_64_bit_dtype_is_kept(x: object, x64: bool) -> None:
    with config.override(x64=x64):
        assert dtypes.dtype(x) is dtypes.float64


def test_byte_order_becomes_native() -> None:
    assert dtypes.dtype(">f4") is dtypes.float32
    assert dtypes.dtype(np.dtype("<i8")) is dtypes.int64
    assert dtypes.dtype(np.dtype(">c16")) is dtypes.complex128


def test_an_object_that_stands_for_a_dtype() -> None:
    assert dtypes.dtype(SimpleNamespace(dtype=np.dtype("f4"))) is dtypes.float32
    stands_for_key = SimpleNamespace(dtype=dtypes.key_fry)
    assert dtypes.dtype(stands_for_key) is dtypes.key_fry
    assert dtypes.dtype("key<fry>") is dtypes.key_fry
    assert dtypes.dtype(dtypes.key_fry) is dtypes.key_fry


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (object, "dtype object is not supported: arrays hold numbers"),
        ("O", "ragged list"),
        ("U3", "not text"),
        (bytes, "not text"),
        ("datetime64[s]", "convert dates to numbers"),
        ("timedelta64", "convert durations"),
        (np.dtype([("a", int)]), "separate arrays in a pytree"),
        (np.dtype(("f4", (2,))), "separate arrays in a pytree"),
        ("V4", "no such element type"),
        ("int1", "no such element type"),
        ("float6_e2m3fn", "no such element type"),
        ("no such name", "expected a dtype, got 'no such name'"),
        (None, "got None; leave the argument out"),
        (list, "got the class list"),
        ([], "got [] of type list"),
        (3, "got the value 3"),
        (np.float32(1), "pass its .dtype"),
        (np.ones(2), "pass its .dtype"),
        (SimpleNamespace(dtype=np.dtype("f4"), shape=()), "array of f32"),
        (np.floating, "abstract kind floating"),
        (dtypes.prng_key, "abstract kind prng_key"),
    ],
    ids=str,
)
def test_unsupported_dtypes_are_refused(x: object, words: str) -> None:
    with pytest.raises(TypeError) as caught:
        dtypes.dtype(x)
    assert isinstance(caught.value, DtypeError)
    assert words in str(caught.value)


@pytest.mark.skipif(np.dtype("g").itemsize == 8, reason="long double is double here")
def test_long_double_is_refused() -> None:
    with pytest.raises(DtypeError, match="the widest float is float64"):
        dtypes.dtype(np.longdouble)
    with pytest.raises(DtypeError, match="the widest complex is complex128"):
        dtypes.dtype(np.clongdouble)


# -- values ----------------------------------------------------------------------------


class Color(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("x", "name"),
    [
        (True, "bool"),
        (3, "int32"),
        (-(2**31), "int32"),
        (2.5, "float32"),
        (1j, "complex64"),
        (1e300, "float32"),
        (Color.RED, "int32"),
        (np.float64(1), "float32"),
    ],
)
def test_of_python(x: object, name: str) -> None:
    assert dtypes.of_python(x).name == name


def test_of_python_64() -> None:
    with config.override(x64=True):
        assert dtypes.of_python(2**40) is dtypes.int64
        assert dtypes.of_python(1.0) is dtypes.float64
    assert dtypes.of_python(2**40, dtypes.int64) is dtypes.int64
    assert dtypes.of_python(2**40, dtypes.float32) is dtypes.float32
    assert dtypes.of_python(2**63, dtypes.uint64) is dtypes.uint64


@pytest.mark.parametrize(
    ("x", "dtype", "words"),
    [
        (2**31, None, r"does not fit int32 .*pass dtype=int64 or set .*x64 = True"),
        (-(2**31) - 1, None, "pass dtype=int64"),
        (2**63, None, "pass dtype=uint64$"),
        (2**64, None, "no integer dtype holds it"),
        (-1, dtypes.uint8, r"-1 does not fit uint8 \(0 to 255\)"),
        (8, dtypes.int4, r"8 does not fit int4 \(-8 to 7\)"),
    ],
)
def test_a_python_int_that_does_not_fit(x: int, dtype: object, words: str) -> None:
    with pytest.raises(OverflowError, match=words):
        dtypes.of_python(x, dtype)


def test_of_python_wants_a_scalar() -> None:
    with pytest.raises(DtypeError, match="expected a Python scalar, got 'a'"):
        dtypes.of_python("a")


def test_numpy_data_of_64_bits_becomes_32() -> None:
    names = ["int64", "uint64", "float64", "complex128"]
    arrays = [np.ones(2, name) for name in names]
    narrow = ["int32", "uint32", "float32", "complex64"]
    assert [dtypes.of_host(x).name for x in arrays] == narrow
    assert [dtypes.host_dtype(x.dtype).name for x in arrays] == narrow
    assert [dtypes.of_host(x[0]).name for x in arrays] == narrow
    assert [dtypes.of_host(x, x.dtype).name for x in arrays] == names
    assert [dtypes.narrow(x.dtype).name for x in arrays] == narrow
    with config.override(x64=True):
        assert [dtypes.of_host(x).name for x in arrays] == names
        assert [dtypes.host_dtype(x.dtype).name for x in arrays] == names
    assert dtypes.of_host(np.ones(1, ">i2")) is dtypes.int16
    assert dtypes.of_host(np.zeros(0, "i8")) is dtypes.int32


@pytest.mark.parametrize(
    "x", [np.array([1, 2**40]), np.array([-(2**40)]), np.uint64(2**32)]
)
def test_numpy_integers_that_do_not_fit(x: np.ndarray) -> None:
    words = rf"does not fit \w+32, the default here; pass dtype={x.dtype.name}"
    with pytest.raises(OverflowError, match=words):
        dtypes.of_host(x)
    assert dtypes.of_host(x, x.dtype) == x.dtype


def test_host_data_of_no_dtype_here() -> None:
    with pytest.raises(DtypeError, match="ragged"):
        dtypes.of_host(np.array([[1], [1, 2]], dtype=object))


def test_host_array_converts() -> None:
    same = np.arange(3, dtype=np.float32)
    assert dtypes.host_array(same) is same
    assert dtypes.host_array(np.arange(3.0)).dtype == np.float32
    assert dtypes.host_array(np.float64(1e300)) == np.inf  # and no warning
    assert dtypes.host_array(np.float64(1e300), dtypes.float64) == 1e300
    swapped = dtypes.host_array(np.arange(3, dtype=">i4"))
    assert swapped.dtype.isnative
    np.testing.assert_array_equal(swapped, [0, 1, 2])


# -- questions -------------------------------------------------------------------------


def test_each_dtype_has_one_kind() -> None:
    questions = (
        dtypes.is_bool,
        dtypes.is_signed,
        dtypes.is_unsigned,
        dtypes.is_floating,
        dtypes.is_complex,
        dtypes.is_key,
    )
    for d in (*dtypes.ALL, dtypes.key_fry):
        assert sum(q(d) for q in questions) == 1, d
        inexact = dtypes.is_floating(d) or dtypes.is_complex(d)
        assert dtypes.is_inexact(d) is inexact
        assert dtypes.is_integer(d) is (dtypes.is_signed(d) or dtypes.is_unsigned(d))
    assert not any(q(dtypes.float0) for q in questions)
    assert list(filter(dtypes.is_wide, dtypes.ALL)) == [
        dtypes.int64,
        dtypes.uint64,
        dtypes.float64,
        dtypes.complex128,
    ]


@pytest.mark.parametrize("d", dtypes.ALL, ids=str)
@pytest.mark.parametrize(
    ("kind", "question"),
    [
        (np.floating, dtypes.is_floating),
        (np.integer, dtypes.is_integer),
        (np.signedinteger, dtypes.is_signed),
        (np.unsignedinteger, dtypes.is_unsigned),
        (np.complexfloating, dtypes.is_complex),
        (np.inexact, dtypes.is_inexact),
        (np.number, lambda d: not dtypes.is_bool(d)),
        (np.generic, lambda d: True),
        (np.bool_, dtypes.is_bool),
        (dtypes.prng_key, lambda d: False),
    ],
)
def test_issubdtype_agrees_with_the_questions(d, kind, question) -> None:
    assert dtypes.issubdtype(d, kind) is question(d)


def test_issubdtype_special() -> None:
    key = dtypes.key_fry
    assert dtypes.issubdtype(key, key)
    assert dtypes.issubdtype(key, dtypes.prng_key)
    assert dtypes.issubdtype(key, dtypes.extended)
    assert not dtypes.issubdtype(key, np.number)
    assert not dtypes.issubdtype("float32", key)
    assert dtypes.issubdtype(np.floating, np.inexact)
    assert not dtypes.issubdtype(np.inexact, np.floating)
    assert dtypes.issubdtype("float64", float)
    assert not dtypes.issubdtype("float32", float)
    assert dtypes.issubdtype("float32", "float32")
    assert not dtypes.issubdtype("float16", "bfloat16")
    assert not dtypes.issubdtype(dtypes.float0, np.floating)
    with pytest.raises(DtypeError):
        dtypes.issubdtype("no", np.floating)


@pytest.mark.parametrize("d", FLOATS, ids=str)
def test_finfo(d: np.dtype) -> None:
    info = dtypes.finfo(d)
    assert info.bits == dtypes.bits(d)
    assert float(info.max) > 1


def test_finfo_and_iinfo_special() -> None:
    assert dtypes.finfo("complex64").dtype == np.float32
    assert dtypes.finfo(float).dtype == np.float32
    assert dtypes.iinfo(int).dtype == np.int32
    assert (dtypes.iinfo("int4").min, dtypes.iinfo("uint4").max) == (-8, 15)
    with pytest.raises(DtypeError, match="finfo: expected a float dtype, got i32"):
        dtypes.finfo("int32")
    with pytest.raises(DtypeError, match="iinfo: expected an integer dtype, got bool"):
        dtypes.iinfo(bool)


# -- names, related dtypes -------------------------------------------------------------


def test_names_of_dtypes_in_text_and_mlir() -> None:
    expected = {
        "bool": ("bool", "i1", 1),
        "int4": ("i4", "i4", 4),
        "uint8": ("u8", "ui8", 8),
        "int64": ("i64", "i64", 64),
        "bfloat16": ("bf16", "bf16", 16),
        "float8_e4m3fn": ("f8_e4m3fn", "f8E4M3FN", 8),
        "float8_e4m3b11fnuz": ("f8_e4m3b11fnuz", "f8E4M3B11FNUZ", 8),
        "float4_e2m1fn": ("f4_e2m1fn", "f4E2M1FN", 4),
        "complex64": ("c64", "complex<f32>", 64),
        "complex128": ("c128", "complex<f64>", 128),
        "key<fry>": ("key<fry>", "ui32", 64),
    }
    for name, (short, mlir, bits) in expected.items():
        d = dtypes.dtype(name)
        assert dtypes.short_name(d) == short
        assert dtypes.mlir_name(d) == mlir
        assert dtypes.bits(d) == bits
    shorts = list(map(dtypes.short_name, dtypes.ALL))
    assert len(set(shorts)) == len(shorts)
    assert dtypes.short_name(np.dtype("O")) == "object"
    assert dtypes.short_name(dtypes.float0) == "float0"


@pytest.mark.parametrize("d", dtypes.ALL, ids=str)
def test_bits_are_those_of_the_library(d: np.dtype) -> None:
    if d in INTEGERS:
        assert dtypes.bits(d) == ml_dtypes.iinfo(d).bits
    assert dtypes.bits(d) <= 8 * d.itemsize


def test_related() -> None:
    inexact = {"bool": "float32", "int8": "float32", "uint32": "float32"}
    inexact |= {"int64": "float64", "uint64": "float64", "bfloat16": "bfloat16"}
    inexact |= {"float8_e5m2": "float8_e5m2", "complex128": "complex128"}
    for name, result in inexact.items():
        assert dtypes.to_inexact(dtypes.dtype(name)).name == result
    assert dtypes.to_complex(dtypes.bfloat16) is dtypes.complex64
    assert dtypes.to_complex(dtypes.float64) is dtypes.complex128
    assert dtypes.to_complex(dtypes.int64) is dtypes.complex128
    assert dtypes.to_real(dtypes.complex128) is dtypes.float64
    assert dtypes.to_real(dtypes.int8) is dtypes.int8
    for d in dtypes.ALL:
        expected = d if dtypes.is_inexact(d) else dtypes.float0
        assert dtypes.tangent_dtype(d) is expected
    assert dtypes.tangent_dtype(dtypes.key_fry) is dtypes.float0
    assert dtypes.float0.itemsize == dtypes.bits(dtypes.float0) == 0
    with pytest.raises(DtypeError, match="key<fry> has no"):
        dtypes.to_inexact(dtypes.key_fry)


def test_key_dtype_is_interned() -> None:
    key = dtypes.KeyDtype("threefry2x32")
    assert key is dtypes.key_fry
    assert pickle.loads(pickle.dumps(key)) is key
    assert copy.deepcopy(key) is key
    assert (key.kind, key.suffix, key.base) == ("key", (2,), np.dtype("uint32"))
    assert key.itemsize == 8
    assert repr(key) == str(key) == key.name == "key<fry>"
    assert key != np.dtype("uint32")
    with pytest.raises(DtypeError, match="unknown generator 'dice'"):
        dtypes.KeyDtype("dice")


def test_limits_of_what_has_a_dtype():
    assert dtypes.finfo(fnp.zeros(2, "bfloat16")).bits == 16
    assert dtypes.finfo(np.float16(1)).bits == 16
    assert dtypes.iinfo(fnp.zeros(2, "uint8")).max == 255
    assert dtypes.iinfo(fnp.int32).bits == 32
    with pytest.raises(DtypeError, match="got the value 3"):
        dtypes.iinfo(3)
