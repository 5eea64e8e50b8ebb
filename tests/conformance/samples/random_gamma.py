"""Samples of gamma numbers."""

from collections.abc import Callable

import numpy as np

from tests.conformance.harness import Sample


def _gamma(rng: np.random.Generator) -> list[Sample]:
    out = []
    for dtype, shape in (("f4", (5,)), ("f8", (2, 3)), ("f4", ()), ("f4", (0,))):
        words = rng.integers(0, 2**32, (*shape, 2), np.uint32)
        alpha = np.asarray(rng.uniform(0.3, 4.0, shape)).astype(dtype)
        # The derivative is that of the quantile, not of the rejection loop: it is
        # checked against finite differences of the quantile in tests/random.
        out += [
            Sample(
                (words, alpha),
                {"log_space": log_space},
                name=f"{dtype}{shape}{'-log' * log_space}",
                diff=False,
                tol=1e-4,
            )
            for log_space in (False, True)
        ]
    return out


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "random_gamma": _gamma
}
