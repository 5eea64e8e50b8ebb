"""Samples of the primitives of `fxflow.lax.scatter_apply`."""

import numpy as np

from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.staging import trace_flat
from fxflow.lax.elementwise import mul
from tests.conformance.harness import Sample
from tests.conformance.samples.scatter import CLIP, DROP, ELEMENTS, LINES, WINDOWS
from tests.conformance.samples.shape import Samples, values


def doubled(dtype: str) -> Graph:
    graph, _ = trace_flat(lambda e: [mul(e, 2)], [Aval((), np.dtype(dtype))])
    return graph


def scatter_apply(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", (5,), [[1], [4], [1]], (3,), ELEMENTS, DROP),
        ("i4", (5,), [[1], [9]], (2,), ELEMENTS, CLIP),
        ("f8", (4, 5), [[0, 1], [1, 2], [3, 4]], (2, 3, 2), WINDOWS, DROP),
        ("f4", (2, 4), [[[0], [2]], [[3], [3]]], (2, 2), LINES, DROP),
        ("f4", (5,), np.zeros((0, 1)), (0,), ELEMENTS, DROP),
    ]
    return [
        Sample(
            (values(rng, s, t), np.array(at, "i4")),
            {
                "graph": doubled(t),
                "update_shape": shape,
                "dimension_numbers": numbers,
                "indices_are_sorted": False,
                "unique_indices": False,
                "mode": mode,
            },
            diff=False,
        )
        for t, s, at, shape, numbers, mode in cases
    ]


SAMPLES: dict[str, Samples] = {"scatter_apply": scatter_apply}
