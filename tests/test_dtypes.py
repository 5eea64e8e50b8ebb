"""`fxflow.dtypes`: facts about dtypes."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dtypes
from fxflow.errors import DtypeError

KEY = fxflow.random.key(0).dtype


def test_the_same_objects() -> None:
    for name in ("finfo", "iinfo", "issubdtype", "promote_types", "result_type"):
        assert getattr(dtypes, name) is getattr(fnp, name)
    assert dtypes.float0 is fxflow.float0
    assert np.dtype(fnp.bfloat16) == dtypes.bfloat16
    assert dtypes.issubdtype(KEY, dtypes.prng_key)
    assert dtypes.issubdtype(KEY, dtypes.extended)
    assert isinstance(KEY, dtypes.KeyDtype)
    assert set(dtypes.__all__) <= set(dir(dtypes)) and "dtypes" in dir(fxflow)


def test_canonical_dtypes() -> None:
    assert dtypes.canonicalize_dtype(int) == np.int32
    assert dtypes.canonicalize_dtype("float64") == np.float64
    assert dtypes.canonicalize_dtype(fnp.bfloat16) == dtypes.bfloat16
    with fxflow.config.override(x64=True):
        assert dtypes.canonicalize_dtype(int) == np.int64
    assert dtypes.canonicalize_dtype(KEY, allow_extended_dtype=True) is KEY
    with pytest.raises(DtypeError, match="allow_extended_dtype=True"):
        dtypes.canonicalize_dtype(KEY)
    with pytest.raises(DtypeError, match="not text"):
        dtypes.canonicalize_dtype("U3")


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [("int4", 4), ("uint2", 2), (bool, 8), ("float8_e5m2", 8), ("complex128", 128)],
)
def test_bits(dtype: object, bits: int) -> None:
    assert dtypes.itemsize_bits(dtype) == bits


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (True, bool),
        (3, int),
        (2.5, float),
        (1j, complex),
        (np.uint8(3), int),
        ("int4", int),
        (fnp.bfloat16, float),
        (fnp.ones(2), float),
        (np.ones(2, "c8"), complex),
        (fnp.zeros(2, bool), bool),
    ],
)
def test_scalar_types(x: object, kind: type) -> None:
    assert dtypes.scalar_type_of(x) is kind


def test_no_numbers() -> None:
    for x in (KEY, fxflow.float0, fxflow.random.key(0)):
        with pytest.raises(DtypeError, match="is not a dtype of numbers"):
            dtypes.scalar_type_of(x)
