"""Samples of the primitives of `fxflow.lax.sort`."""

import ml_dtypes
import numpy as np

from tests.conformance.harness import Sample, same
from tests.conformance.samples.shape import Samples, values


def distinct(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: object
) -> np.ndarray:
    """Elements far enough apart for finite differences."""
    return (rng.permutation(int(np.prod(shape))).reshape(shape) - 3).astype(dtype)


SPECIAL = np.array([3, -np.nan, np.nan, -0.0, 0.0, -1, np.inf, -np.inf, 0.0, -0.0])


def sort(rng: np.random.Generator) -> list[Sample]:
    def sample(*arrays, axis=0, keys=1, stable=True, diff=True):
        params = {"dimension": axis, "is_stable": stable, "num_keys": keys}
        # NumPy warns where nan is scaled.
        vary = {} if diff else {"vary": same}
        return Sample(arrays, params, diff=diff, **vary)

    equal = rng.integers(0, 3, (9,))
    places = np.arange(9, dtype="i4")
    with np.errstate(all="ignore"):
        return [
            sample(distinct(rng, (7,), "f4")),
            sample(distinct(rng, (3, 5), "f8"), axis=1),
            sample(distinct(rng, (3, 5), "f8"), values(rng, (3, 5), "f8")),
            sample(distinct(rng, (4, 1), "f4"), axis=1),
            sample(SPECIAL.astype("f4"), diff=False),
            sample(SPECIAL.astype("f4"), np.arange(10, dtype="i4"), diff=False),
            sample(SPECIAL.astype(ml_dtypes.bfloat16), diff=False),
            sample(SPECIAL.astype("f2"), np.arange(10, dtype="i4"), diff=False),
            sample(equal.astype("i4"), places),
            sample(equal.astype("u1"), places, stable=True),
            sample(equal.astype("i4"), distinct(rng, (9,), "f4"), places, keys=2),
            sample(equal > 0, places),
            sample(
                (SPECIAL[:7] + 1j * SPECIAL[2:9]).astype("c8"),
                np.arange(7, dtype="i4"),
                diff=False,
            ),
            sample(distinct(rng, (5,), "f8") + 1j * values(rng, (5,), "f8")),
            sample(values(rng, (0,), "f4")),
            sample(values(rng, (2, 0), "f4"), values(rng, (2, 0), "i4"), axis=1),
            sample(equal.astype(ml_dtypes.int4), places, diff=False),
        ]


def top_k(rng: np.random.Generator) -> list[Sample]:
    def sample(x, k, axis=0, diff=True):
        return Sample((x,), {"k": k, "axis": axis}, diff=diff)

    equal = rng.integers(0, 3, (9,))
    with np.errstate(all="ignore"):
        return [
            sample(distinct(rng, (7,), "f4"), 3),
            sample(distinct(rng, (3, 5), "f8"), 5, axis=1),
            sample(distinct(rng, (4, 3), "f8"), 2, axis=0),
            sample(SPECIAL.astype("f4"), 10, diff=False),
            sample(SPECIAL.astype(ml_dtypes.bfloat16), 10, diff=False),
            sample(SPECIAL.astype("f2"), 4, diff=False),
            sample(equal.astype("i4"), 6),
            sample(equal.astype("u1"), 9),
            sample(equal > 0, 4),
            sample(values(rng, (0,), "f4"), 0),
            sample(values(rng, (2, 3), "f4"), 0, axis=1),
        ]


SAMPLES: dict[str, Samples] = {"sort": sort, "top_k": top_k}
