"""Results of calls, errors among them, and whether two of them agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import tree
from fxflow.core.arrays import dtypes
from fxflow.errors import FxflowError
from fxflow.scipy.stats.results import Result
from tests.sweeps.catalogue import kind_of


@dataclass(frozen=True)
class Refused:
    """Takes the place of a result when a call raises an error."""

    error: Exception


def attempt(function: Callable[..., Any], *args: Any) -> Any:
    """Returns a result, or `Refused` with our error.

    Raises:
      AssertionError: the call raised an error that is not one of ours.
    """
    try:
        return function(*args)
    except FxflowError as error:
        return Refused(error)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}") from error


def alike(got: Any, want: Any, exact: bool = False) -> bool:
    """Returns whether results agree; `exact`: in dtype too."""
    if isinstance(want, Refused) or isinstance(got, Refused):
        return isinstance(want, Refused) and isinstance(got, Refused)
    if isinstance(want, dict):
        got, want = list(got.values()), list(want.values())
    if isinstance(want, Result) and isinstance(got, Result):
        got, want = tree.leaves(got), tree.leaves(want)
    if isinstance(want, list | tuple):
        return len(got) == len(want) and all(
            alike(g, w, exact) for g, w in zip(got, want, strict=True)
        )
    if hasattr(want, "dtype") and fnp.issubdtype(want.dtype, dtypes.prng_key):
        return got.dtype == want.dtype and bool(fnp.array_equal(got, want))
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape or (exact and got.dtype != want.dtype):
        return False
    if got.dtype.kind in "OUS":
        return bool((got == want).all())
    if (kind_of(got.dtype) == "c") != (kind_of(want.dtype) == "c"):
        return False
    wide = complex if kind_of(got.dtype) == "c" else float
    with np.errstate(all="ignore"):
        return np.allclose(
            got.astype(wide), want.astype(wide), rtol=3e-4, atol=3e-4, equal_nan=True
        )
