"""A state with every kind of leaf, and a comparison of states."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
from fxflow import numpy as fnp
from fxflow import optim, random, tree


def state() -> dict[str, Any]:
    params = {"w": fnp.arange(6.0).reshape(2, 3), "b": fnp.zeros(3, fnp.bfloat16)}
    return {
        "params": params,
        "optimizer": optim.adam(1e-3).init(params),
        "keys": (random.key(3), random.split(random.key(4, impl="rbg"), 2)),
        "position": {"epoch": 1, "index": 2**70},
        "rate": 0.1,
        "odd": [float("-inf"), 1 - 2j, True, "text/ü", b"\x00\xff", None],
        "host": np.arange(3, dtype=np.int64),
        "scalar": np.float64(0.1),
        "empty": fnp.zeros((0, 4)),
        "small": fnp.arange(4).astype(fnp.int4),
        "tiny": fnp.ones((2, 2), fnp.float8_e4m3fn),
        "complex": fnp.array([1 + 2j, 3]),
    }


def plain(leaf: Any) -> Any:
    """Returns the values of a leaf to compare."""
    if isinstance(leaf, fxflow.Array) and fnp.issubdtype(
        leaf.dtype, fxflow.dtypes.prng_key
    ):
        return ("key", random.key_impl(leaf), random.key_data(leaf).tolist())
    if isinstance(leaf, (fxflow.Array, np.ndarray, np.generic)):
        host = np.asarray(leaf)
        return (str(leaf.dtype), host.shape, host.tobytes())
    return (type(leaf), repr(leaf))


def assert_same(found: Any, expected: Any) -> None:
    """Checks that states are bitwise equal and have the same types."""
    assert tree.structure(found) == tree.structure(expected)
    for a, b in zip(tree.leaves(found), tree.leaves(expected), strict=True):
        assert plain(a) == plain(b)
        assert isinstance(a, fxflow.Array) == isinstance(b, fxflow.Array)
