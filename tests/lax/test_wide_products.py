"""Upper halves of products, against Python's integers."""

import numpy as np
import pytest

from fxflow import jit, lax, vmap
from fxflow.errors import DtypeError
from tests.conformance.harness import array


@pytest.mark.parametrize(
    "dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"], ids=str
)
def test_mulhi(dtype: str) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    edges = [info.min, info.min + 1, 0, 1, 2, info.max // 3, info.max - 1, info.max]
    edges += [*rng.integers(info.min, info.max, 20, dtype)]
    values = np.array(edges, dtype)
    x, y = (g.ravel() for g in np.meshgrid(values, values))
    wide = [int(a) * int(b) >> info.bits for a, b in zip(x, y, strict=True)]
    for function in (lax.mulhi, jit(lax.mulhi), vmap(lax.mulhi)):
        got = function(array(x), array(y))
        np.testing.assert_array_equal(got, np.array(wide, dtype))
        assert got.dtype == x.dtype


def test_mulhi_with_a_number() -> None:
    np.testing.assert_array_equal(lax.mulhi(np.array([2**30], "i4"), 8), [2])


def test_mulhi_takes_integers() -> None:
    with pytest.raises(DtypeError, match=r"mulhi: takes .*integer"):
        lax.mulhi(np.ones(2, "f4"), np.ones(2, "f4"))
    with pytest.raises(DtypeError, match="must have one dtype"):
        lax.mulhi(np.ones(2, "i4"), np.ones(2, "u4"))
