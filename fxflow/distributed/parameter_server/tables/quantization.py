"""Rows as 8-bit integers, each row with a scale of its own.

A row is stored as `codes * unit`, where `unit` is its largest absolute value divided by
127. An update decodes the row, updates it exactly, and encodes it with stochastic
rounding: each element goes to one of its two neighbors, with probabilities such that
its expectation is the exact value. So changes that are much smaller than `unit` are not
lost, and errors do not accumulate in one direction. After an update, each element
differs from the exact result by less than the new `unit`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.optim.rows import sum_dtype

#: The largest code: codes are symmetric.
LARGEST = 127


def encode(row: Any, draws: Any = 0.5) -> tuple[Array, Array]:
    """Returns a row as codes and their unit.

    Args:
      row: floating, of any shape.
      draws: in [0, 1), in the shape of the row: an element whose fraction is f is
        rounded up if the draw is at least 1 − f. The default rounds to nearest.

    Returns:
      int8 in the shape of the row, and the unit, in the row's dtype, or float32 if that
      is wider. A row with inf or nan decodes to nan.

    Example:
      >>> codes, unit = encode(fnp.array([1.0, -0.5, 0.0]))
      >>> codes.tolist(), float(unit * 127)
      ([127, -63, 0], 1.0)
    """
    wide = fnp.asarray(row).astype(sum_dtype(row.dtype))
    unit = fnp.max(fnp.abs(wide)) / LARGEST
    divisor = fnp.where(unit > 0, unit, fnp.ones_like(unit))
    codes = fnp.floor(wide / divisor + draws)
    codes = fnp.clip(fnp.nan_to_num(codes), -LARGEST, LARGEST)
    return codes.astype(fnp.int8), fnp.where(fnp.isfinite(unit), unit, fnp.nan)


def encode_update(
    old: tuple[Any, Any], before: Any, after: Any, count: Any, seed: int
) -> tuple[Array, Array]:
    """Returns an updated row as codes and their unit, rounded stochastically.

    A row that an update has not changed keeps its codes.

    Args:
      old: the codes and the unit before the update.
      before: the row before the update, decoded.
      after: the row after the update.
      count: uint32[], number of updates of the row so far.
      seed: seed of the rounding.
    """
    codes, unit = old
    # The draws must differ from row to row, and from update to update.
    bits = lax.bitcast_convert_type(after.astype(fnp.float32), fnp.uint32)
    key = random.fold_in(random.fold_in(random.key(seed), count), fnp.sum(bits))
    draws = random.uniform(key, after.shape, fnp.float32)
    new, new_unit = encode(after, draws.astype(unit.dtype))
    changed = fnp.any(after != before)
    return fnp.where(changed, new, codes), fnp.where(changed, new_unit, unit)


def decode(codes: Any, unit: Any, dtype: Any) -> Array:
    """Returns a row from its codes and their unit.

    Args:
      codes: int8, of any shape.
      unit: floating, `[]`.
      dtype: dtype of the row.
    """
    decoded: Array = (codes.astype(unit.dtype) * unit).astype(dtype)
    return decoded


def decode_rows(
    codes: npt.NDArray[np.int8], units: npt.NDArray[Any], dtype: Any
) -> npt.NDArray[Any]:
    """Returns rows on the host from their codes and units; the same bits as `decode`.

    Args:
      codes: int8[n, ...].
      units: floating, `[n]`.
      dtype: dtype of the rows.
    """
    wide = units.reshape(-1, *[1] * (codes.ndim - 1))
    found: npt.NDArray[Any] = (codes.astype(units.dtype) * wide).astype(dtype)
    return found
