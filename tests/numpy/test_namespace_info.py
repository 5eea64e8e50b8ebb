"""What the array API standard asks of a namespace."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError


def test_info() -> None:
    info = fnp.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"]
    assert info.default_device() in info.devices() == fxflow.devices()
    assert info.default_dtypes()["real floating"] == np.float32
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert "bool" in info.dtypes() and "bool" not in info.dtypes(kind="numeric")
    with pytest.raises(DtypeError):
        info.dtypes(kind="whole number")
    assert fnp.__array_api_version__ >= "2023.12"
