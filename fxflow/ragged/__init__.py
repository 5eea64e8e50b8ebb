"""Ragged batches: rows of different lengths in one array of fixed size.

The values of all rows stand one after the other, and `lengths` says how many belong to
each. The number of values that there is room for (the capacity) and how many rows there
are is static, so that a jitted step is compiled once, whatever the lengths are.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.ragged.array import RaggedArray
from fxflow.ragged.construction import (
    array, concatenate, from_mask, from_padded, from_row_ids, pad_and_stack,
)
from fxflow.ragged.rows import dot_product_attention, map_rows

__all__ = [
    "RaggedArray",
    "array", "from_padded", "from_mask", "from_row_ids", "pad_and_stack", "concatenate",
    "map_rows", "dot_product_attention",
]
# fmt: on

_public(globals(), __all__)
