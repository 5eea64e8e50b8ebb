"""The distributions and parameters that tests go through."""

from __future__ import annotations

import math
from typing import Any

#: Shape parameters of each continuous distribution.
CONTINUOUS: dict[str, list[tuple[float, ...]]] = {
    "arcsine": [()],
    "beta": [(0.5, 2.0), (3.0, 4.0), (50.0, 20.0)],
    "betaprime": [(2.0, 5.0), (0.7, 9.0)],
    "burr12": [(2.0, 3.0), (1.5, 4.0)],
    "cauchy": [()],
    "chi": [(1.5,), (6.0,)],
    "chi2": [(1.0,), (5.0,)],
    "erlang": [(3.0,)],
    "expon": [()],
    "exponnorm": [(0.4,), (1.5,)],
    "exponpow": [(0.7,), (2.0,)],
    "f": [(3.0, 9.5), (10.0, 5.0)],
    "fatiguelife": [(0.4,), (2.0,)],
    "fisk": [(2.5,), (5.0,)],
    "foldnorm": [(0.7,), (2.5,)],
    "gamma": [(0.3,), (2.5,), (40.0,)],
    "gengamma": [(2.0, 1.5), (3.2, -2.0)],
    "gennorm": [(0.7,), (2.0,), (4.0,)],
    "genextreme": [(0.2,), (-0.15,), (0.0,)],
    "genpareto": [(0.2,), (-0.4,), (0.0,)],
    "gompertz": [(0.3,), (2.0,)],
    "gumbel_l": [()],
    "gumbel_r": [()],
    "halfcauchy": [()],
    "halflogistic": [()],
    "halfnorm": [()],
    "hypsecant": [()],
    "invgamma": [(0.7,), (5.5,)],
    "invgauss": [(0.3,), (2.0,)],
    "invweibull": [(4.5,), (6.0,)],
    "johnsonsb": [(0.5, 1.2), (-1.0, 0.7)],
    "johnsonsu": [(0.5, 1.2), (-1.0, 2.0)],
    "laplace": [()],
    "levy": [()],
    "loggamma": [(0.5,), (4.0,)],
    "logistic": [()],
    "loguniform": [(0.1, 3.0)],
    "lognorm": [(0.5,), (1.3,)],
    "lomax": [(1.5,), (5.5,)],
    "maxwell": [()],
    "moyal": [()],
    "nakagami": [(0.6,), (3.0,)],
    "norm": [()],
    "pareto": [(1.5,), (5.0,)],
    "powerlaw": [(0.6,), (3.0,)],
    "rayleigh": [()],
    "skewnorm": [(2.0,), (-4.0,), (0.0,)],
    "t": [(1.5,), (5.0,), (100.0,), (math.inf,)],
    "triang": [(0.3,), (0.0,), (1.0,)],
    "truncexpon": [(2.0,)],
    "truncnorm": [(-1.0, 2.0), (3.0, 5.0)],
    "uniform": [()],
    "vonmises": [(0.5,), (4.0,)],
    "weibull_max": [(0.7,), (2.5,)],
    "weibull_min": [(0.7,), (2.5,)],
    "wrapcauchy": [(0.4,)],
}
#: Parameters of each discrete distribution.
DISCRETE: dict[str, list[tuple[float, ...]]] = {
    "bernoulli": [(0.3,), (0.0,), (1.0,)],
    "betabinom": [(7.0, 0.6, 2.0), (40.0, 3.0, 1.0)],
    "binom": [(10.0, 0.3), (60.0, 0.9)],
    "boltzmann": [(0.4, 9.0)],
    "dlaplace": [(0.8,)],
    "geom": [(0.3,), (1.0,)],
    "hypergeom": [(20.0, 7.0, 12.0), (70.0, 30.0, 10.0)],
    "logser": [(0.3,), (0.9,)],
    "nbinom": [(3.0, 0.4), (2.5, 0.8)],
    "planck": [(0.5,)],
    "poisson": [(0.7,), (30.0,)],
    "randint": [(-3.0, 6.0)],
    "skellam": [(2.0, 5.0), (20.0, 3.0)],
    "zipf": [(4.5,), (6.0,)],
    "zipfian": [(1.3, 12.0), (0.0, 5.0)],
}
ALL: dict[str, list[tuple[float, ...]]] = {**CONTINUOUS, **DISCRETE}

#: Arguments before the parameters of functions that take no points or probabilities.
BEFORE: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        ("median", "support", "mean", "var", "std", "entropy", "stats"), ()
    ),
    "moment": (3,),
}
