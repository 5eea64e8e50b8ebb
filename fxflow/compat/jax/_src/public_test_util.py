"""`jax._src.public_test_util`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.compat.jax._mirror import mirror
from fxflow.core import tree

_TOLERANCE = {
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "float32": 1e-6,
    "complex64": 1e-6,
    "float64": 1e-15,
    "complex128": 1e-15,
}


def check_close(
    xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = ""
) -> None:
    """Compares two pytrees of arrays.

    Args:
      xs: one.
      ys: the other.
      atol: largest absolute difference, or a dict of it by dtype.
      rtol: likewise relative.
      err_msg: to be added to the message.

    Raises:
      AssertionError: they differ.
    """

    def one(x: Any, y: Any) -> None:
        x, y = np.asarray(x), np.asarray(y)
        a, r = (max(_tolerance(t, x), _tolerance(t, y)) for t in (atol, rtol))
        np.testing.assert_allclose(x, y, atol=a, rtol=r, err_msg=err_msg)

    tree.map(one, xs, ys)


def _tolerance(given: Any, x: Any) -> float:
    name = x.dtype.name
    if given is None:
        return _TOLERANCE.get(name, 0.0)
    if not isinstance(given, dict):
        return float(given)
    named = {np.dtype(k).name: v for k, v in given.items()}
    return float(named.get(name, _TOLERANCE.get(name, 0.0)))


__all__ = mirror(globals(), "fxflow.compat.jax.test_util")
__all__ += ["check_close"]
