"""The Landau distribution, a stable one, by Zolotarev's integral."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.scipy.special._operands import in_64_bits
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._flexible import LOWS, RESTS, WEIGHTS, log_sum
from fxflow.scipy.stats._positives import log_rest
from fxflow.scipy.stats._signatures import no_shape


def _height(delta: Any, phi: Any) -> Any:
    """Returns log(φ / sin φ) - φ cot φ, of φ and π - φ."""
    near = delta < phi
    sine = lax.sin(fnp.where(near, delta, phi))
    cosine = fnp.where(near, -lax.cos(delta), lax.cos(phi))
    return lax.log(phi / sine) - phi * cosine / sine


def _nodes(z: Any) -> tuple[Any, Any]:
    """Returns the height less z at nodes on 0 … π, and the logarithms of weights.

    There is an interval on each side of the angle where the height is z, as the rule's
    nodes are dense at ends.
    """
    fixed = lax.stop_gradient(z)

    def halve(_: Any, ends: Any) -> Any:
        low, high = ends
        middle = 0.5 * (low + high)
        delta = lax.exp(middle)
        above = _height(delta, math.pi - delta) > fixed
        return fnp.where(above, middle, low), fnp.where(above, high, middle)

    # Nothing is beyond the angle 0, where the height is -1.
    most = math.log(math.pi)
    ends = (lax.full_like(z, -600), lax.full_like(z, most - 1e-15))
    low, _ = lax.fori_loop(0, 64, halve, ends)
    place = fnp.where(fixed <= -1, math.pi, lax.exp(low))[..., None]
    ends_, rests, weights = (fnp.asarray(v, z.dtype) for v in (LOWS, RESTS, WEIGHTS))
    part, rest = lax.exp(ends_), lax.exp(rests)
    tiny = 1e-300
    width = fnp.maximum(math.pi - place, tiny)
    first = (place * part, width + place * rest)
    second = (place + width * part, fnp.maximum(width * rest, tiny))
    delta, phi = (
        fnp.concatenate([a, b], axis=-1) for a, b in zip(first, second, strict=True)
    )
    log = fnp.concatenate([weights + lax.log(place), weights + lax.log(width)], axis=-1)
    return _height(delta, phi) - z[..., None], log - math.log(math.pi)


def _place(x: Any) -> Any:
    """Returns where Landau's own variable is: SciPy's is the standard stable one."""
    return 0.5 * math.pi * x + math.log(0.5 * math.pi)


#: From here on Laplace's integral has no cancellation.
_FAR = 40.0
_LOGS = np.arange(-42, 4.3, 0.2)


def _far(z: Any, density: bool) -> Any:
    """Returns the logarithm of ∫ exp(-t log t - z t) sin(πt) / π dt, or that over t."""
    far = z > _FAR
    z = fnp.where(far, z, _FAR)[..., None]
    u = fnp.asarray(_LOGS, z.dtype)
    s = lax.exp(u)
    t = s / z
    log = lax.log(lax.sin(fnp.minimum(math.pi * t, 3.0))) - t * lax.log(t) - s
    log = log + (u - lax.log(z) if density else 0)
    return far, log_sum(log, 0.2 / math.pi)


def _logpdf(x: Any) -> Any:
    z = _place(x)
    far, tail = _far(z, density=True)
    g, weights = _nodes(fnp.where(far, _FAR, z))
    log = log_sum(weights + g - lax.exp(fnp.minimum(g, 700)), 1.0)
    return fnp.where(far, tail, log) + math.log(0.5 * math.pi)


def _logcdf(z: Any) -> Any:
    g, weights = _nodes(z)
    return fnp.minimum(log_sum(weights - lax.exp(fnp.minimum(g, 700)), 1.0), 0)


def _logsf(z: Any) -> Any:
    far, tail = _far(z, density=False)
    g, weights = _nodes(fnp.where(far, _FAR, z))
    small = lax.exp(fnp.clip(g, -30, 30))
    log = fnp.where(g < -30, g, lax.log(-lax.expm1(-small)))
    return fnp.where(far, tail, fnp.minimum(log_sum(weights + log, 1.0), 0))


def _logs(x: Any) -> Any:
    z = _place(x)
    below, above = _logcdf(z), _logsf(z)
    small = below < -math.log(2)
    return fnp.stack(
        [
            fnp.where(small, below, log_rest(above)),
            fnp.where(small, log_rest(below), above),
        ]
    )


def _both(x: Any) -> Any:
    return in_64_bits(_logs, "landau", x)


landau: Final = Continuous(
    "landau",
    "The Landau distribution of the energy that a fast particle loses in a thin layer.",
    no_shape,
    logpdf=lambda x: in_64_bits(_logpdf, "landau", x),
    logs=lambda x: tuple(_both(x)),
    logcdf=lambda x: _both(x)[0],
    logsf=lambda x: _both(x)[1],
    mean=lambda: math.nan,
    var=lambda: math.nan,
    skew=lambda: math.nan,
    kurtosis=lambda: math.nan,
    entropy=lambda: 2.37263644000448182,
)
