"""Arrays of random keys from known words, and the words of an array of keys."""

import numpy as np

from fxflow.core.arrays.array import Array
from fxflow.core.arrays.dtypes import key_fry
from fxflow.core.ir.primitive import table


def keys(*shape: int) -> Array:
    words = np.arange(2 * int(np.prod(shape)), dtype="u4").reshape(*shape, 2)
    wrap = table["random_wrap"].bind
    return wrap(words, dtype=key_fry)


def words(array: Array) -> np.ndarray:
    return np.asarray(table["random_unwrap"].bind(array))
