"""What random matrices of a group share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from fxflow.core.docs import shared
from fxflow.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])

_COMMON = """
    Args:
      key: a key of `fxflow.random`.
      dim: how many rows and columns: a positive int.
      shape: shape of the array of matrices.
      dtype: a float dtype; None means the default.

    Returns:
      Float array[*shape, dim, dim].

    Raises:
      ArgumentError: `key` is not a key, or `dim` is not a positive int.

    Source: `scipy.stats.{distribution}.rvs`; F. Mezzadri, "How to generate random
    matrices from the classical compact groups", 2007.
"""


def matrix_docs(function: F) -> F:
    """Completes the docstring of a function that draws matrices."""
    distribution = function.__module__.rpartition(".")[2]
    return shared(_COMMON.replace("{distribution}", distribution))(function)


def require_size(name: str, dim: Any) -> int:
    """Returns a number of rows.

    Raises:
      ArgumentError: it is not a positive int.
    """
    if not isinstance(dim, int | np.integer) or dim < 1:
        raise ArgumentError(f"{name}: dim must be a positive int, got {dim!r}")
    return int(dim)
