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


def calls_of(name: str, first: Any, *parameters: Any) -> list[Call]:
    """Calls of all functions of a distribution."""
    found = []
    module = importlib.import_module(f"fxflow.{S}.{name}")
    for own in module.__all__:
        operands = (UNIT if own in ("ppf", "isf") else first, *parameters)
        if own == "entropy":
            operands = parameters
        # Steps, or an incomplete beta function, whose parameters it has no rule for.
        steps = first.kinds == "biu" and own in ("cdf", "ppf")
        flat = steps or (name == "beta" and own.endswith(("cdf", "sf")))
        found.append(call(f"{S}.{name}.{own}", *operands, differentiable=not flat))
    return found


SIMPLEX = made(lambda rng, s: rng.dirichlet([1.0] * s[0]), 3)
COUNTS = made(lambda rng, s: rng.multinomial(5, [1 / s[0]] * s[0]), 3, kinds="i")

CALLS = [
    *[c for name, args in DISTRIBUTIONS.items() for c in calls_of(name, *args)],
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
