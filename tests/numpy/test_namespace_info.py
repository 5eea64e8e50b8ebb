"""What the array API standard asks of a namespace."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError


def test_info() -> None:
    info = fnp.__array_namespace_info__()
    assert not info.capabilities()["boolean indexing"]  # in traced functions
    assert info.default_device() in info.devices() == fxflow.devices()
    assert info.default_dtypes()["real floating"] == np.float32
    assert set(info.dtypes(kind="complex floating")) == {"complex64", "complex128"}
    assert "bool" in info.dtypes() and "bool" not in info.dtypes(kind="numeric")
    with pytest.raises(DtypeError):
        info.dtypes(kind="whole number")
    assert fnp.__array_api_version__ == "2025.12"


@pytest.mark.parametrize("version", ["2021.12", "2023.12", "2025.12", None])
def test_versions(version: str | None) -> None:
    assert fnp.ones(2).__array_namespace__(api_version=version) is fnp
    with pytest.raises(ValueError, match=r"2019\.12.*2025\.12"):
        fnp.ones(2).__array_namespace__(api_version="2019.12")


INDICES = {
    "nonzero": lambda x: fnp.nonzero(x)[0],
    "nonzero of a size": lambda x: fnp.nonzero(x, size=5)[1],
    "argwhere": fnp.argwhere,
    "argwhere of one element": lambda x: fnp.argwhere(x[0, 0]),
    "flatnonzero": fnp.flatnonzero,
    "where": lambda x: fnp.where(x)[0],
    "argmax": fnp.argmax,
    "argsort": fnp.argsort,
    "searchsorted": lambda x: fnp.searchsorted(x[0], x),
    "count_nonzero": fnp.count_nonzero,
    "unique_counts": lambda x: fnp.unique_counts(x).counts,
    "unique_inverse": lambda x: fnp.unique_inverse(x).inverse_indices,
    "unique_all": lambda x: fnp.unique_all(x).indices,
    "unique of rows": lambda x: fnp.unique(x, return_inverse=True, axis=0)[1],
    "unique of a size": lambda x: fnp.unique(x, return_index=True, size=4)[1],
}


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("x64", [False, True])
def test_indices_have_the_dtype_that_the_namespace_names(name: str, x64: bool) -> None:
    x = np.asarray([[0, 2, 1], [0, 0, 3]], "i1")
    with fxflow.config.override(x64=x64):
        dtype = fnp.__array_namespace_info__().default_dtypes()["indexing"]
        assert INDICES[name](fnp.asarray(x)).dtype == dtype


def test_what_2025_added() -> None:
    x = fnp.asarray(np.arange(12.0).reshape(3, 4))
    assert fnp.broadcast_shapes() == ()
    assert fnp.broadcast_shapes((2, 1), (3,)) == (2, 3)
    assert fnp.expand_dims(x, axis=(0, -1)).shape == (1, 3, 4, 1)
    with pytest.raises(ValueError, match="axis"):
        fnp.expand_dims(x, axis=(0, 0))
    assert fnp.permute_dims(x, (-1, 0)).shape == (4, 3)
    assert fnp.searchsorted(x[0], 1.5).shape == ()
    np.testing.assert_array_equal(fnp.isin(x, 3.0, invert=True), np.asarray(x) != 3)
    np.testing.assert_array_equal(fnp.isin(3.0, x), True)
    values, vectors = fnp.linalg.eig(x[:, :3])
    np.testing.assert_allclose(x[:, :3] @ vectors, vectors * values, atol=1e-4)
    assert fnp.linalg.eigvals(x[:, :3]).dtype == "complex64"
    # Python's numbers do not widen the array.
    for dtype in ("int8", "float32"):
        y = fnp.asarray([1, 5], getattr(fnp, dtype))
        assert fnp.clip(y, 2, 3).dtype == dtype
