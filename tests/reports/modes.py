"""One program, run eagerly and compiled, against one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow


def check_both(
    function: Callable[..., Any],
    expected: Any,
    *args: Any,
    rtol: float = 1e-5,
    atol: float = 0.0,
) -> None:
    """Asserts that `function(*args)` is `expected`, eagerly and under `jit`.

    NaN equals NaN. Lists and tuples are compared element by element.
    """
    for mode, run in (("eager", function), ("jit", fxflow.jit(function))):
        found = run(*args)
        if not isinstance(expected, tuple):
            found, wanted = (found,), (expected,)
        else:
            wanted = expected
        assert len(found) == len(wanted), mode
        for one, right in zip(found, wanted, strict=True):
            right = np.asarray(right)
            assert np.shape(one) == right.shape, (mode, np.shape(one), right.shape)
            np.testing.assert_allclose(
                np.asarray(one), right, rtol=rtol, atol=atol, err_msg=mode
            )
