"""Values that JAX 0.10.2 gives, and how to compare with them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from fxflow import random
from fxflow.core.arrays import dtypes

_VALUES = json.loads((Path(__file__).parent / "data" / "jax-0.10.2.json").read_text())
_SEEDED = random.key(42)


class _Stacking:
    """The one other function that the calls use."""

    @staticmethod
    def stack(arrays: Any) -> Any:
        return np.stack([np.asarray(a) for a in arrays])


def names(*prefixes: str) -> list[str]:
    """Names of the values of some samplers."""
    found = [
        n for n in _VALUES if any(n == p or n.startswith(f"{p}_") for p in prefixes)
    ]
    assert found, prefixes
    return found


def expected(name: str) -> Any:
    """What JAX gives."""
    value = _VALUES[name]
    dtype = dtypes.dtype(value["dtype"])
    data = [float(x) if isinstance(x, str) else x for x in value["data"]]
    if dtypes.is_complex(dtype):
        array = np.array(data).reshape(-1, 2) @ np.array([1, 1j])
        return array.astype(dtype).reshape(value["shape"])
    return np.array(data, dtype).reshape(value["shape"])


def computed(name: str) -> Any:
    """What fxflow gives."""
    scope = {"R": random, "np": np, "jnp": _Stacking, "key": _SEEDED}
    out = eval(_VALUES[name]["call"], scope)
    if dtypes.is_key(getattr(out, "dtype", None)):
        out = random.key_data(out)
    return np.asarray(out)


def check(name: str, ulps: float = 0) -> None:
    """Compares; `ulps` is how many last bits of a float may differ."""
    want, have = expected(name), computed(name)
    assert have.dtype == want.dtype
    assert have.shape == want.shape
    if not ulps or not dtypes.is_inexact(want.dtype):
        np.testing.assert_array_equal(have, want)
        return
    eps = float(dtypes.finfo(want.dtype).eps)
    wide = complex if dtypes.is_complex(want.dtype) else float
    np.testing.assert_allclose(
        have.astype(wide), want.astype(wide), rtol=ulps * eps, atol=ulps * eps / 8
    )
