"""Values of every dtype and layout through all that stores, sends, exports or refers.

A *door* takes an array and gives it back (`doors.py`). `config.x64` is off. What was
given at an explicit dtype comes back with this dtype and the same bits, by every door,
64-bit ones included.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.errors import DtypeError, FxflowError
from tests.sweeps.doors import (
    ARRAY_DOORS,
    DEFAULT_DOORS,
    DTYPES,
    HOST_DOORS,
    LAYOUTS,
    SERVED,
    SHORT,
    as_iree,
    check,
    check_host,
    values,
)
from tests.sweeps.sampling import sample

ARRAYS = [(name, dtype) for name in ARRAY_DOORS for dtype in DTYPES]
REQUESTS = [(name, np.dtype(dtype)) for name in SERVED for dtype in SHORT]
HOST = [
    (name, layout, dtype)
    for name in HOST_DOORS
    for layout in LAYOUTS
    for dtype in ("float64", "int64", "complex128", "float32", "int16")
    if name != "served" or dtype != "complex128"  # which no request has
]
DEFAULT = [
    (name, layout, dtype)
    for name in DEFAULT_DOORS
    for layout in LAYOUTS
    for dtype in ("float32", "int16", "complex64")
]
#: Doors that have no place for some dtypes, and have to say so.
_OF_ML_DTYPES = {d for d in DTYPES if d.isbuiltin == 2}
_OF_ONNX = {
    dtypes.bfloat16,
    dtypes.float8_e4m3fn,
    dtypes.float8_e4m3fnuz,
    dtypes.float8_e5m2,
    dtypes.float8_e5m2fnuz,
}
REFUSED = {
    "save": _OF_ML_DTYPES - {dtypes.bfloat16},
    "savez": _OF_ML_DTYPES - {dtypes.bfloat16},
    "export": {dtypes.int2, dtypes.uint2},
    "export.constant": {dtypes.int2, dtypes.uint2},
    "export.params": {dtypes.int2, dtypes.uint2},
    "onnx": _OF_ML_DTYPES - _OF_ONNX | {dtypes.complex64, dtypes.complex128},
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [pytest.param(*c, id=f"{c[0]}-{c[1]}") for c in sample(ARRAYS, 600, "doors")],
)
def test_arrays_come_back_as_they_were(name: str, dtype: Any) -> None:
    host = values(dtype)
    if dtype in REFUSED.get(name, ()):
        with pytest.raises(FxflowError, match=r"float8|float4|u?int[24]|[iu]2|complex"):
            ARRAY_DOORS[name](fnp.asarray(host, dtype))
        return
    check(ARRAY_DOORS[name](fnp.asarray(host, dtype)), host)


@pytest.mark.parametrize("dtype", sample(["float64", "int64", "bfloat16"], 1, "iree"))
def test_arrays_come_back_from_iree(dtype: str) -> None:
    host = values(np.dtype(dtype))
    check(as_iree(fnp.asarray(host, dtype)), host)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [pytest.param(*c, id=f"{c[0]}-{c[1]}") for c in sample(REQUESTS, 50, "requests")],
)
def test_requests_come_as_they_were_sent(name: str, dtype: Any) -> None:
    host = values(dtype)
    check(SERVED[name](fnp.asarray(host, dtype)), host)


@pytest.mark.parametrize(
    ("name", "layout", "dtype"),
    [pytest.param(*c, id="-".join(c)) for c in sample(HOST, 600, "layouts")],
)
def test_numpy_arrays_of_any_layout(name: str, layout: str, dtype: str) -> None:
    given = LAYOUTS[layout](values(np.dtype(dtype)))
    check_host(HOST_DOORS[name](given), given)


@pytest.mark.parametrize(
    ("name", "layout", "dtype"),
    [pytest.param(*c, id="-".join(c)) for c in sample(DEFAULT, 200, "defaults")],
)
def test_numpy_arrays_that_become_arrays(name: str, layout: str, dtype: str) -> None:
    given = LAYOUTS[layout](values(np.dtype(dtype)))
    check_host(DEFAULT_DOORS[name](given), given)


@pytest.mark.parametrize("dtype", [">i2", ">f4", ">f8", ">c16"])
def test_bytes_are_read_in_their_order(dtype: str, tmp_path: Path) -> None:
    host = values(np.dtype(dtype).newbyteorder("=")).ravel()
    stored = host.astype(dtype)
    check(fnp.frombuffer(stored.tobytes(), dtype), host)
    check(fnp.frombuffer(stored.tobytes(), np.dtype(dtype)), host)
    stored.tofile(tmp_path / "raw")
    check(fnp.fromfile(tmp_path / "raw", dtype), host)
    with pytest.raises(BufferError, match="another byte order"):
        fnp.from_dlpack(stored, copy=False)
    for read in (lambda x: x.view(dtype), lambda x: lax.bitcast_convert_type(x, dtype)):
        with pytest.raises(DtypeError, match="bits cannot be read as >"):
            read(fnp.asarray(host, host.dtype))
