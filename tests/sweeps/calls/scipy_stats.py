"""Calls of `fxflow.scipy.stats` and of its distributions."""

from __future__ import annotations

import importlib
from typing import Any

from tests.sweeps.catalogue import (
    Call,
    call,
    each,
    floating,
    made,
    positive_definite,
    real,
    whole,
)

S = "scipy.stats"
SHAPE = (3, 4)
UNIT = real(*SHAPE, low=0.1, high=0.9)
POSITIVE = real(*SHAPE, low=0.5, high=4.0)
COUNT = whole(*SHAPE, high=5)

#: The first operand of each distribution's functions, and its own parameters.
DISTRIBUTIONS: dict[str, tuple[Any, ...]] = {
    "bernoulli": (whole(*SHAPE, high=1), UNIT),
    "beta": (UNIT, POSITIVE, POSITIVE),
    "betabinom": (COUNT, whole(*SHAPE, low=5, high=9), POSITIVE, POSITIVE),
    "binom": (COUNT, whole(*SHAPE, low=5, high=9), UNIT),
    "cauchy": (real(*SHAPE),),
    "chi2": (POSITIVE, POSITIVE),
    "expon": (POSITIVE,),
    "gamma": (POSITIVE, POSITIVE),
    "gennorm": (real(*SHAPE, low=0.2), POSITIVE),
    "geom": (whole(*SHAPE, low=1), UNIT),
    "gumbel_l": (real(*SHAPE),),
    "gumbel_r": (real(*SHAPE),),
    "laplace": (real(*SHAPE),),
    "logistic": (real(*SHAPE),),
    "nbinom": (COUNT, POSITIVE, UNIT),
    "norm": (real(*SHAPE),),
    "pareto": (real(*SHAPE, low=1.1, high=4), POSITIVE),
    "poisson": (COUNT, POSITIVE),
    "t": (real(*SHAPE), POSITIVE),
    "truncnorm": (UNIT, real(*SHAPE, low=-3, high=-1), real(*SHAPE, low=1, high=3)),
    "uniform": (UNIT,),
    "vonmises": (real(*SHAPE), POSITIVE),
    "wrapcauchy": (real(*SHAPE, low=0.1, high=3), UNIT),
}


#: Each function of these is called, and two of others: all are made by one protocol.
FULL = ("beta", "binom", "gamma", "lognorm")
NEW: dict[str, tuple[Any, ...]] = {
    "arcsine": (UNIT,),
    "betaprime": (POSITIVE, POSITIVE, POSITIVE),
    "boltzmann": (COUNT, POSITIVE, whole(*SHAPE, low=6, high=9)),
    "burr12": (POSITIVE, POSITIVE, POSITIVE),
    "chi": (POSITIVE, POSITIVE),
    "dlaplace": (COUNT, POSITIVE),
    "erlang": (POSITIVE, POSITIVE),
    "exponnorm": (real(*SHAPE), POSITIVE),
    "exponpow": (UNIT, POSITIVE),
    "f": (POSITIVE, POSITIVE, POSITIVE),
    "fatiguelife": (POSITIVE, POSITIVE),
    "fisk": (POSITIVE, POSITIVE),
    "foldnorm": (POSITIVE, POSITIVE),
    "gengamma": (POSITIVE, POSITIVE, POSITIVE),
    "genextreme": (real(*SHAPE, low=-1, high=1), UNIT),
    "genpareto": (UNIT, UNIT),
    "gompertz": (POSITIVE, POSITIVE),
    "halfcauchy": (POSITIVE,),
    "halflogistic": (POSITIVE,),
    "halfnorm": (POSITIVE,),
    "hypergeom": (
        COUNT,
        whole(*SHAPE, low=12, high=15),
        whole(*SHAPE, low=6, high=9),
        whole(*SHAPE, low=4, high=6),
    ),
    "hypsecant": (real(*SHAPE),),
    "invgamma": (POSITIVE, POSITIVE),
    "invgauss": (POSITIVE, POSITIVE),
    "invweibull": (POSITIVE, POSITIVE),
    "johnsonsb": (UNIT, real(*SHAPE), POSITIVE),
    "johnsonsu": (real(*SHAPE), real(*SHAPE), POSITIVE),
    "levy": (POSITIVE,),
    "loggamma": (real(*SHAPE), POSITIVE),
    "logser": (whole(*SHAPE, low=1), UNIT),
    "loguniform": (
        real(*SHAPE, low=1.1, high=1.9),
        UNIT,
        real(*SHAPE, low=2, high=4),
    ),
    "lognorm": (POSITIVE, POSITIVE),
    "lomax": (POSITIVE, POSITIVE),
    "maxwell": (POSITIVE,),
    "moyal": (real(*SHAPE),),
    "nakagami": (POSITIVE, POSITIVE),
    "planck": (COUNT, POSITIVE),
    "powerlaw": (UNIT, POSITIVE),
    "randint": (COUNT, whole(*SHAPE, high=0), whole(*SHAPE, low=6, high=9)),
    "rayleigh": (POSITIVE,),
    "skellam": (COUNT, POSITIVE, POSITIVE),
    "skewnorm": (real(*SHAPE), real(*SHAPE)),
    "triang": (UNIT, UNIT),
    "truncexpon": (UNIT, POSITIVE),
    "weibull_max": (real(*SHAPE, low=-3, high=-0.1), POSITIVE),
    "weibull_min": (POSITIVE, POSITIVE),
    "zipf": (whole(*SHAPE, low=1), real(*SHAPE, low=1.5, high=4)),
    "zipfian": (whole(*SHAPE, low=1), POSITIVE, whole(*SHAPE, low=6, high=9)),
    "alpha": (POSITIVE, POSITIVE),
    "anglit": (real(*SHAPE, low=-0.7, high=0.7),),
    "argus": (UNIT, POSITIVE),
    "bradford": (UNIT, POSITIVE),
    "burr": (POSITIVE, POSITIVE, POSITIVE),
    "cosine": (real(*SHAPE),),
    "crystalball": (real(*SHAPE), POSITIVE, real(*SHAPE, low=1.5, high=4)),
    "dgamma": (real(*SHAPE, low=0.2), POSITIVE),
    "dweibull": (real(*SHAPE, low=0.2), POSITIVE),
    "exponweib": (POSITIVE, POSITIVE, POSITIVE),
    "foldcauchy": (POSITIVE, POSITIVE),
    "genexpon": (POSITIVE, POSITIVE, POSITIVE, POSITIVE),
    "genhalflogistic": (UNIT, UNIT),
    "genlogistic": (real(*SHAPE), POSITIVE),
    "gibrat": (POSITIVE,),
    "halfgennorm": (POSITIVE, POSITIVE),
    "jf_skew_t": (real(*SHAPE), POSITIVE, POSITIVE),
    "kappa3": (POSITIVE, POSITIVE),
    "kappa4": (UNIT, UNIT, UNIT),
    "laplace_asymmetric": (real(*SHAPE), POSITIVE),
    "levy_l": (real(*SHAPE, low=-3, high=-0.1),),
    "loglaplace": (POSITIVE, POSITIVE),
    "mielke": (POSITIVE, POSITIVE, POSITIVE),
    "norminvgauss": (
        real(*SHAPE),
        real(*SHAPE, low=1, high=2),
        real(*SHAPE, low=-0.5, high=0.5),
    ),
    "powerlognorm": (POSITIVE, POSITIVE, POSITIVE),
    "powernorm": (real(*SHAPE), POSITIVE),
    "rdist": (real(*SHAPE, low=-0.9, high=0.9), POSITIVE),
    "recipinvgauss": (POSITIVE, POSITIVE),
    "reciprocal": (real(*SHAPE, low=1.1, high=1.9), UNIT, real(*SHAPE, low=2, high=4)),
    "semicircular": (real(*SHAPE, low=-0.9, high=0.9),),
    "skewcauchy": (real(*SHAPE), UNIT),
    "trapezoid": (
        UNIT,
        real(*SHAPE, low=0.1, high=0.4),
        real(*SHAPE, low=0.5, high=0.9),
    ),
    "truncpareto": (
        real(*SHAPE, low=1.1, high=1.9),
        POSITIVE,
        real(*SHAPE, low=2, high=4),
    ),
    "truncweibull_min": (
        real(*SHAPE, low=1.1, high=1.9),
        POSITIVE,
        UNIT,
        real(*SHAPE, low=2, high=4),
    ),
    "vonmises_line": (real(*SHAPE), POSITIVE),
    "wald": (POSITIVE,),
    "betanbinom": (COUNT, whole(*SHAPE, low=2, high=6), POSITIVE, POSITIVE),
    "nhypergeom": (
        COUNT,
        whole(*SHAPE, low=12, high=15),
        whole(*SHAPE, low=5, high=6),
        whole(*SHAPE, low=2, high=5),
    ),
    "yulesimon": (whole(*SHAPE, low=1), POSITIVE),
}
#: They take functions, keys or samples: tests/scipy/stats/test_distributions.py.
_OTHERS = ("expect", "fit", "nnlf", "rvs")


def called(name: str) -> list[str]:
    """The functions of a distribution that are in the catalogue."""
    module = importlib.import_module(f"fxflow.{S}.{name}")
    if name in FULL:
        return [own for own in module.__all__ if own not in _OTHERS]
    return ["logpmf" if "logpmf" in module.__all__ else "logpdf", "cdf"]


EXEMPT = {
    f"{S}.{name}.{own}": "made by the protocol, as that of gamma is"
    for name in (*DISTRIBUTIONS, *NEW)
    for own in importlib.import_module(f"fxflow.{S}.{name}").__all__
    if own not in called(name)
}


def calls_of(name: str, first: Any, *parameters: Any) -> list[Call]:
    """Calls of all functions of a distribution."""
    found = []
    for own in called(name):
        at = UNIT if own in ("ppf", "isf", "interval") else first
        operands: tuple[Any, ...] = (at, *parameters)
        if own in ("mean", "median", "var", "std", "entropy", "stats", "support"):
            operands = parameters
        elif own == "moment":
            operands = (3, *parameters)
        # Steps of integers, or of their number.
        flat = first.kinds == "biu" and own != "logpmf"
        flat = flat or own in ("support", "stats", "interval")
        if operands:
            found.append(call(f"{S}.{name}.{own}", *operands, differentiable=not flat))
    return found


SIMPLEX = made(lambda rng, s: rng.dirichlet([1.0] * s[0]), 3)
COUNTS = made(lambda rng, s: rng.multinomial(5, [1 / s[0]] * s[0]), 3, kinds="i")

CALLS = [
    *[c for name, args in (DISTRIBUTIONS | NEW).items() for c in calls_of(name, *args)],
    *each(
        f"{S}.dirichlet",
        "logpdf pdf",
        SIMPLEX,
        floating(3, low=0.5, high=3),
        differentiable=False,
    ),
    *each(
        f"{S}.multinomial",
        "logpmf pmf",
        COUNTS,
        5,
        floating(3, low=0.1, high=0.3),
        differentiable=False,
    ),
    *each(
        f"{S}.multivariate_normal",
        "logpdf pdf",
        floating(4, 3),
        floating(3),
        positive_definite(3, 3, kinds="f"),
    ),
    call(f"{S}.mode", real(3, 4), axis=1, differentiable=False),
    call(f"{S}.rankdata", real(3, 4), axis=1, differentiable=False),
    call(f"{S}.sem", real(3, 4), axis=1),
]
