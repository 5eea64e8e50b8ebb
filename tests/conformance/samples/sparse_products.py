"""Samples of products of sparse matrices: in order and not, empty, in batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.sparse import Pattern
from tests.conformance.harness import Sample, uniform

#: In order; with the values of the transposed matrix in order; unordered, duplicates.
PATTERNS = {
    "csr": Pattern("csr", (3, 4), ([0, 2, 2, 5], [1, 3, 0, 1, 2]), (5,)),
    "csc": Pattern("csc", (3, 2), ([0, 2, 3], [1, 2, 0]), (3,)),
    "coo": Pattern("coo", (2, 3), ([1, 0, 1, 1], [2, 2, 0, 2]), (4,)),
    "dia": Pattern("dia", (3, 3), ([1, -2],), (2, 3)),
}


def operands(pattern: Pattern) -> tuple[np.ndarray, ...]:
    return tuple(np.asarray(a) for a in pattern.operands)


def sample(
    rng: np.random.Generator, name: str, shapes: Any, dtype: str = "f4", **more: Any
) -> Sample:
    pattern = PATTERNS[name]
    arrays = operands(pattern)
    args = (*(uniform(rng, s, dtype) for s in shapes), *arrays)
    entries = tuple(range(2, len(args)))
    return Sample(
        args,
        {"layout": pattern.layout},
        name=f"{name} {dtype}",
        constant=entries,
        **more,
    )


def products(rng: np.random.Generator) -> list[Sample]:
    found = []
    for name, p in PATTERNS.items():
        found.append(sample(rng, name, ((p.size,), (p.shape[1], 2))))
    found += [
        sample(rng, "csr", ((5,), (4,))),
        sample(rng, "csr", ((2, 5), (2, 4, 3))),
        sample(rng, "coo", ((2, 4), (3, 1))),
        sample(rng, "csr", ((5,), (4, 0))),
        *(
            sample(rng, "csc", ((3,), (2, 2)), dtype, diff=False)
            for dtype in ("f8", "bfloat16", "i4", "c8")
        ),
    ]
    return found


def sampled(rng: np.random.Generator) -> list[Sample]:
    found = []
    for name, p in PATTERNS.items():
        found.append(sample(rng, name, ((p.shape[0], 2), (p.shape[1], 2))))
    return [
        *found,
        sample(rng, "csr", ((2, 3, 2), (4, 2))),
        sample(rng, "coo", ((2, 1), (2, 3, 1))),
        sample(rng, "csr", ((3, 2), (4, 2)), "c8", diff=False),
    ]


SAMPLES = {"sparse_product": products, "sampled_product": sampled}
