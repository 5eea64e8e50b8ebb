"""Calls of a compiled function: the cost of going in and out."""

from collections.abc import Callable

import numpy

from .library import Case, Cases, Library, timed

LIMITS = {1: 1.2, 10: 1.1, 100: 1.1, 1000: 1.05}


def cases(library: Library) -> Cases:
    root = library.root

    def call_with(leaves: int) -> Callable[[], float]:
        arrays = [
            library.np.asarray(numpy.ones(4, numpy.float32)) for _ in range(leaves)
        ]
        function = root.jit(lambda arrays: [x + 1 for x in arrays])
        return timed(lambda: function(arrays), root.block_until_ready)

    def case(leaves: int, limit: float) -> Case:
        return Case("µs", lambda: call_with(leaves), limit, 1.0)

    return {f"jitted call, {n} leaves": case(n, limit) for n, limit in LIMITS.items()}
