"""Registration with the runtime; `tests/test_ffi.py` tests kernels."""

import ctypes
from pathlib import Path

import pytest

from fxflow.devices import ffi
from fxflow.errors import ArgumentError


def test_capsules() -> None:
    function = ctypes.pythonapi.PyCapsule_New
    capsule = ffi.pycapsule(function)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert ffi._pointer_of(capsule, None) == address
    with pytest.raises(ArgumentError, match="got 'PyCapsule_New'"):
        ffi.pycapsule("PyCapsule_New")


def test_headers() -> None:
    assert (Path(ffi.include_dir()) / "xla" / "ffi" / "api" / "ffi.h").is_file()


def test_platforms_have_the_names_of_xla() -> None:
    names = ["cpu", "gpu", "cuda", "rocm", "tpu"]
    assert list(map(ffi._platform, names)) == ["cpu", "gpu", "CUDA", "ROCM", "TPU"]
