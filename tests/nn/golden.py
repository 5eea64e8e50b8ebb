"""Values that JAX 0.10.2 gives."""

import json
from pathlib import Path
from typing import Any

import numpy as np

VALUES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "jax-0.10.2.json").read_text()
)


def array(name: str, what: str = "values") -> Any:
    """A list of numbers as float64."""
    return np.array([float(x) for x in VALUES[name][what]])


def near(have: Any, want: Any, tol: float = 2e-6) -> None:
    """Compares flat float32 values."""
    np.testing.assert_allclose(
        np.asarray(have).astype(np.float64).ravel(), want, rtol=tol, atol=tol
    )
