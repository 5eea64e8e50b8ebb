"""Operations called one by one, as in a notebook."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from .library import Case, Cases, Library, once, timed

# Counts up over the whole process, so that no shape is ever seen twice.
NEW_SIZES: Iterator[int] = itertools.count(5_000)


def ten_operations(np: Any, x: Any) -> Any:
    """A scalar function of ten operations."""
    y = np.sin(x) * x + np.cos(x)
    z = np.exp(-y) + y * x
    return np.sum(np.tanh(z) * y)


def new_shape(library: Library) -> Callable[[], float]:
    """Seconds of `x + x` for a shape that was not seen before."""
    arrays = [
        library.np.asarray(numpy.ones(next(NEW_SIZES), numpy.float32)) for _ in range(5)
    ]
    return once(lambda: [(x + x).block_until_ready() for x in arrays]) / len(arrays)


def cases(library: Library) -> Cases:
    np, root = library.np, library.root
    host = numpy.linspace(0, 1, 10, dtype=numpy.float32)
    numbers = host.tolist()
    x, y = np.asarray(host), np.asarray(host[::-1].copy())
    mask, index = x > y, np.asarray(3)
    matrix = np.asarray(numpy.ones((100, 100), numpy.float32))
    gradient = root.grad(lambda x: ten_operations(np, x))

    def case(call: Callable[[], Any], at_most: float, aim: float) -> Case:
        return Case("µs", lambda: timed(call, root.block_until_ready), at_most, aim)

    return {
        "eager x + y": case(lambda: x + y, 0.4, 0.15),
        "eager sum": case(lambda: np.sum(x), 0.4, 0.15),
        "eager where": case(lambda: np.where(mask, x, y), 0.4, 0.15),
        "eager exp": case(lambda: np.exp(x), 0.4, 0.15),
        "eager x[3:7]": case(lambda: x[3:7], 0.15, 0.05),
        "eager x[3]": case(lambda: x[3], 0.15, 0.05),
        "eager x[i]": case(lambda: x[index], 0.15, 0.05),
        "eager reshape": case(lambda: x.reshape(2, 5), 0.15, 0.05),
        "eager asarray(list)": case(lambda: np.asarray(numbers), 0.15, 0.05),
        "eager asarray(ndarray)": case(lambda: np.asarray(host), 0.15, 0.05),
        "eager x + x, new shape": Case(
            "ms", lambda: lambda: new_shape(library), 0.02, 0.001
        ),
        "eager matmul 100×100": case(lambda: matrix @ matrix, 1.0, 0.7),
        "eager grad of 10 operations": case(lambda: gradient(x), 0.10, 0.03),
    }
