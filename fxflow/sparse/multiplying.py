"""Products of two sparse arrays: entries are found on the host, values are computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.lax.sparse_products import take
from fxflow.sparse.pattern import Pattern, device_array, of_pair, pattern_of_keys
from fxflow.sparse.values import flat, product


class ProductPlan:
    """The entries of a product of two sparse arrays.

    Value i of the result is a sum of products of a value of the left array and one of
    the right array: row i of a sparse array, times the left values.

    Attributes:
      pattern: of the result.
      sums: pattern of that sparse array, (values of the result, of the left array).
      right: int32[n]: where its values lie among those of the right array.
    """

    def __init__(self, pattern: Pattern, sums: Pattern, right: Array) -> None:
        self.pattern: Pattern = pattern
        self.sums: Pattern = sums
        self.right: Array = right


def product_plan(left: Pattern, right: Pattern) -> ProductPlan:
    """Returns the plan of the product of two canonical patterns, made once for a pair.

    Args:
      left: pattern of the left array.
      right: pattern of the right array.

    Raises:
      ShapeError: they do not fit, or more than 2³¹ products are to be added.
    """
    if left.shape[1] != right.shape[0]:
        raise ShapeError(
            f"matmul: sparse arrays of shape {list(left.shape)} and "
            f"{list(right.shape)}: the columns of the one meet the rows of the other"
        )
    return of_pair(left, right, "product", lambda: _plan(left, right))


def _plan(left: Pattern, right: Pattern) -> ProductPlan:
    row, col, _ = left.coords
    starts = right.arrays["indptr"].astype(np.int64)
    lengths = np.diff(starts)[col]
    count = int(lengths.sum())
    if count >= 2**31:
        raise ShapeError(f"matmul: {count} products of entries are too many")
    # Entry i of the left array meets all entries of a row of the right one.
    first = np.repeat(np.arange(len(col)), lengths)
    begin = np.cumsum(lengths) - lengths
    second = np.arange(count) - begin[first] + starts[col[first]]
    n = right.shape[1]
    keys = row[first].astype(np.int64) * n + right.arrays["indices"][second]
    order = np.argsort(keys, kind="stable")
    first, second, keys = first[order], second[order], keys[order]
    fresh = np.ones(count, bool)
    fresh[1:] = keys[1:] != keys[:-1]
    pattern = pattern_of_keys(keys[fresh], (left.shape[0], n))
    indptr = np.append(np.flatnonzero(fresh), count)
    sums = Pattern("csr", (pattern.size, left.size), (indptr, first), (count,))
    return ProductPlan(pattern, sums, device_array(second.astype(np.int32)))


@library("left", "right", "plan")
def product_values(
    left: Pattern, right: Pattern, x: Any, y: Any, plan: ProductPlan
) -> Any:
    """Returns the values of a product of two sparse arrays.

    Args:
      left: canonical pattern of the left array.
      right: canonical pattern of the right array.
      x: values of the left one.
      y: values of the right one.
      plan: of the product.
    """
    x, y = flat(left, x), flat(right, y)
    return product(plan.sums, take(y, plan.right, 0), x)
