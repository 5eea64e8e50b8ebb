"""Bessel's J and Struve's H as quotients of Neumann series.

Miller's algorithm gives J of the orders μ, μ + 1, … but for a factor, which follows
from (x / 2)^μ = ∑ cₖ J of the order μ + 2 k (DLMF 10.23.15). So J and other sums of
this kind (DLMF 11.4.18) need no gamma function, no sine and no exponential.
"""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp

#: Beyond it there are too many terms.
FARTHEST = 1000.0


def _count(mu: Any, x: Any) -> Any:
    """Returns how many steps of two orders lead to where J does not count."""
    wide = 5 * lax.cbrt(x)
    # Where μ is larger each order has a factor of about x / (2 μ).
    steep = 24 / lax.log(fnp.maximum(2 * mu / x, 1.1))
    more = fnp.where(mu > x, fnp.minimum(wide, steep), wide + 0.5 * (x - mu))
    return lax.stop_gradient(lax.ceil(7 + more))


def neumann_sums(mu: Any, x: Any, factor: Any, quotient: Any = None) -> tuple[Any, Any]:
    """Returns J of the order μ and ∑ fₖ cₖ J, both over ∑ cₖ J, where c₀ is 1.

    Args:
      mu: the order above -1, of 64 bits.
      x: from about 2 √(μ + 1) to `FARTHEST`.
      factor: of k: fₖ.
      quotient: of k: cₖ₊₁ / cₖ of the first sum, where they are not those of the other.
    """
    count = _count(mu, x)
    top = 2 * lax.floor(fnp.max(count, initial=1) / 2) + 1
    twice, zero = 2 / x, 0 * (mu + x)

    def going(state: Any) -> Any:
        return state[0] >= 0

    def step(state: Any) -> Any:
        k, above, here, total, other = state
        # Two at once: the arrays go through memory less often.
        for _ in range(2):
            first, order = k == 0, mu + 2 * k
            above = (order + 2) * twice * here - above
            new = (order + 1) * twice * above - here
            here = fnp.where(k == count, 1e-200, new)
            ratio = (order + 2) * fnp.where(first, 1, mu + k)
            ratio = ratio / ((k + 1) * fnp.where(first, 1, order))
            total = here + ratio * total
            other = factor(k) * here + (quotient(k) if quotient else ratio) * other
            k = k - 1
        return k, above, here, total, other

    *_, here, total, other = lax.while_loop(going, step, (top, *(zero,) * 4))
    return here / total, other / total
