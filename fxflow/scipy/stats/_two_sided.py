"""The distribution of Kolmogorov's two-sided distance, for each number of elements.

The number n of elements and the distance d decide on the method, as in Simard and
L'Ecuyer (2011). The matrix of Marsaglia, Tsang and Wang has a static size, enough for n
d < 24. Beyond it, Pelz and Good's expansion gives the middle, and the one-sided
distance the upper tail.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.scipy.special._derivatives import by_forward, partial
from fxflow.scipy.special._operands import in_64_bits
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.special.goodness_of_fit import smirnov_of
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._deviations import ELEMENTS, elements
from fxflow.scipy.stats._kolmogorov import one_sided_sf
from fxflow.scipy.stats._protocol import log_of

#: The number of elements up to which the matrix and the upper tail are enough.
_FEW = 144
#: The greatest n d of the matrix, and its size.
_MOST = 24
_SIZE = 2 * _MOST - 1
_ROW, _COLUMN = np.indices((_SIZE, _SIZE))
_STEPS = np.maximum(_ROW - _COLUMN + 1, 0)
_BAND = np.where(
    _ROW - _COLUMN + 1 >= 0, [[1 / math.factorial(k) for k in r] for r in _STEPS], 0.0
)


def _matrix(d: Any, n: Any) -> tuple[Any, Any]:
    """Returns the matrix whose n-th power has the probability, and the row of it."""
    t = n * d
    k = lax.stop_gradient(lax.floor(t) + 1)
    wide: Any = lambda v: v[..., None, None]
    size, h = wide(2 * k - 1), wide(k - t)
    row, column = (fnp.asarray(v, d.dtype) for v in (_ROW, _COLUMN))
    inside = (row < size) & (column < size)
    # Powers of h leave the first column and the last row; h is above 0.
    log = lax.log(h)
    first = fnp.where(column == 0, lax.exp((row + 1) * log), 0)
    last = fnp.where(row == size - 1, lax.exp((size - column) * log), 0)
    over = 2 * h - 1
    both = lax.exp(size * lax.log(fnp.where(over > 0, over, 1)))
    corner = (row == size - 1) & (column == 0) & (over > 0)
    # In the corner both powers are divided by the factorial of the size.
    changes = last + first - fnp.where(corner, both, 0)
    scale = fnp.asarray(_BAND, d.dtype)
    return fnp.where(inside, scale * (1 - changes), 0), k


def _log_inside(d: Any, n: Any) -> Any:
    """Returns the logarithm of the probability of a distance below d, for n d < 24."""
    power, k = _matrix(d, n)
    at = fnp.arange(_SIZE) == k[..., None].astype(dtypes.int32) - 1
    row = at.astype(d.dtype)
    product: Any = lambda a, b: fnp.matmul(a, b, precision="highest")

    def scaled(x: Any, log: Any, axes: Any) -> tuple[Any, Any]:
        most = lax.stop_gradient(fnp.max(x, axes, keepdims=True))
        most = fnp.where(most > 0, most, 1)
        return x / most, log + lax.log(fnp.reshape(most, log.aval.shape))

    def step(state: Any) -> Any:
        rest, row, log, power, size = state
        odd = rest % 2 == 1
        new, sized = scaled(
            product(row[..., None, :], power)[..., 0, :], log + size, -1
        )
        row, log = fnp.where(odd[..., None], new, row), fnp.where(odd, sized, log)
        power, size = scaled(product(power, power), 2 * size, (-2, -1))
        return rest // 2, row, log, power, size

    none = fnp.zeros_like(d)
    state = (n.astype(dtypes.int32), row, none, power, none)
    _, row, log, _, _ = lax.while_loop(lambda s: fnp.any(s[0] > 0), step, state)
    chance = fnp.sum(fnp.where(at, row, 0), -1)
    return lax.log(chance) + log + gammaln(n + 1) - n * lax.log(n)


def _pelz_good(d: Any, n: Any) -> Any:
    """Returns the distribution function of the distance of n elements, for great n."""
    z = (lax.sqrt(n) * d)[..., None]
    z = fnp.maximum(z, 0.05)
    square = z * z
    pi2 = math.pi**2
    odd = fnp.asarray(np.arange(1, 20, 2) ** 2, d.dtype)
    q = lax.exp(-pi2 / 8 / square * odd)
    p2, p4, p6, p8 = square, square**2, square**3, square**4
    first = -p2 + pi2 / 4 * odd
    second = 6 * p6 + 2 * p4 + (2 * p4 - 5 * p2) * pi2 / 4 * odd
    second = second + pi2**2 * (1 - 2 * p2) / 16 * odd**2
    third = -30 * p6 - 90 * p8 + pi2 * (135 * p4 - 96 * p6) / 4 * odd
    third = third + pi2**2 * (-60 * p2 + 212 * p4) / 16 * odd**2
    third = third + pi2**3 * (5 - 30 * p2) / 64 * odd**3
    root = math.sqrt(2 * math.pi)
    over: Any = lambda t: root * fnp.sum(t * q, axis=-1)
    z1 = z[..., 0]
    parts = [
        over(fnp.ones_like(q)) / z1,
        over(first) / (6 * z1**4),
        over(second) / (72 * z1**7),
        over(third) / (6480 * z1**10),
    ]
    k = fnp.asarray(np.arange(1, 11) ** 2, d.dtype)
    r = lax.exp(-pi2 / 2 / square * k)
    parts[2] = parts[2] - pi2 * root / (36 * z1**3) * fnp.sum(k * r, axis=-1)
    more = fnp.sum((3 * square - pi2 * k) * k * r, axis=-1)
    parts[3] = parts[3] + pi2 * root / (216 * z1**6) * more
    rate = 1 / lax.sqrt(n)
    return parts[0] + rate * (parts[1] + rate * (parts[2] + rate * parts[3]))


def _regions(d: Any, n: Any) -> tuple[Any, Any]:
    """Returns where the matrix, and where the one-sided distance decides."""
    square = n * d * d
    counted = (n * d < _MOST) & (square < 4) & (d < 0.5)
    return counted, ~counted & ((d >= 0.5) | (square >= 2.2))


def _log_lower_values(d: Any, n: Any) -> Any:
    """Returns log P(D < d) outside of the upper tail."""
    counted, upper = _regions(d, n)
    few = _log_inside(fnp.where(counted, d, 0.5), fnp.where(counted, n, 1))
    middle = fnp.where(counted | upper, 1 / lax.sqrt(n), d)
    many = _pelz_good(middle, n)
    return fnp.where(counted, few, lax.log(fnp.where(many > 0, many, 1e-300)))


def _flat(d: Any, n: Any) -> Any:
    return 0 * d


_log_lower: Any = by_forward(_log_lower_values, None, _flat)


def _of_both_sides(one: Any, d: Any, n: Any) -> Any:
    """Returns P(D > d) in the upper tail, from that of one side.

    Distances on both sides are counted twice, from d = ½ on there are none: of them
    the limit's second term is taken away.
    """
    both = fnp.where(d >= 0.5, 0, lax.exp(-6 * n * d * d))
    return 2 * one * (1 - both)


def _upper(d: Any, n: Any) -> Any:
    return fnp.minimum(_of_both_sides(smirnov_of(d, n), d, n), 1)


def _survival(d: Any, n: Any) -> Any:
    _, upper = _regions(d, n)
    return fnp.where(upper, _upper(d, n), -lax.expm1(fnp.minimum(_log_lower(d, n), 0)))


_density: Any = by_forward(lambda d, n: -partial(_survival, 0, d, n), None, _flat)


def _logs_of(d: Any, n: Any) -> Any:
    _, upper = _regions(d, n)
    low, high = fnp.minimum(_log_lower(d, n), 0), _upper(d, n)
    rest = fnp.where(upper, lax.log1p(-fnp.where(upper, high, 0.5)), low)
    above = fnp.where(upper, 0.5, -lax.expm1(low))
    return fnp.stack([rest, log_of(fnp.where(upper, high, above))])


def _logs(d: Any, n: Any) -> Any:
    return in_64_bits(_logs_of, "kstwo", d, n)


def two_sided_sf(n: int, x: Any) -> Any:
    """Returns the survival function of the two-sided distance of n elements.

    Args:
      n: the number of elements.
      x: float[...].
    """
    inside = (x > 0.5 / n) & (x < 1)
    d = fnp.where(inside, x, 0.75)
    if n <= _FEW:
        value = in_64_bits(_survival, "two_sided_sf", d, fnp.full_like(d, n))
    else:
        # The matrix is for the last digits of many elements' lower tail.
        sure = (d >= 0.5) | (n * d * d >= 2.2)
        middle = fnp.where(sure, 1 / math.sqrt(n), d)
        other = 1 - _pelz_good(middle, fnp.full_like(d, n))
        value = fnp.where(sure, _of_both_sides(one_sided_sf(n, d), d, n), other)
    return fnp.where(inside, fnp.clip(value, 0, 1), fnp.where(x < 1, 1, 0))


kstwo: Final = Continuous(
    "kstwo",
    "The largest deviation on either side of the empirical distribution of n numbers.",
    elements,
    n=ELEMENTS,
    support=(lambda n: 0.5 / n, 1),
    closed=False,
    logpdf=lambda z, n: log_of(in_64_bits(_density, "logpdf", z, n)),
    sf=lambda z, n: in_64_bits(_survival, "sf", z, n),
    logs=lambda z, n: tuple(_logs(z, n)),
    logcdf=lambda z, n: _logs(z, n)[0],
    logsf=lambda z, n: _logs(z, n)[1],
)
