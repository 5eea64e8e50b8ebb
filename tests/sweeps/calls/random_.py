"""Calls of `fxflow.random`."""

from __future__ import annotations

from fxflow import random
from tests.sweeps.catalogue import A, call, each, floating, made, positive_definite

R = "random"
KEY = random.key(7)
POSITIVE = {"low": 0.5, "high": 4.0}


def fn(name: str, *args, **options):
    return call(f"random.{name}", KEY, *args, random=True, **options)


CALLS = [
    *each(R, "bits cauchy", KEY, (3, 4), random=True),
    *each(
        R,
        "exponential gumbel laplace logistic maxwell normal rademacher uniform",
        KEY,
        (3, 4),
        random=True,
    ),
    fn("ball", 3, shape=(2,)),
    fn("bernoulli", floating(3, 4, low=0, high=1)),
    fn("beta", floating(3, 4, **POSITIVE), floating(3, 4, **POSITIVE)),
    fn("binomial", A(3, 4, kinds="iuf", low=1, high=9), floating(3, 4, low=0, high=1)),
    fn("categorical", floating(3, 4)),
    fn("chisquare", floating(3, 4, **POSITIVE)),
    fn("choice", A(5), (3,)),
    fn("choice", A(5), (3,), replace=False, p=floating(5, low=0.1, high=1), note="p"),
    fn("dirichlet", floating(3, **POSITIVE)),
    fn("double_sided_maxwell", floating(3), floating(3, **POSITIVE), shape=(3,)),
    fn("f", floating(3, **POSITIVE), floating(3, **POSITIVE)),
    *[fn(n, floating(3, 4, **POSITIVE)) for n in ("gamma", "loggamma", "pareto")],
    fn("generalized_normal", 1.5, (3,)),
    fn("geometric", floating(3, low=0.2, high=0.8)),
    fn(
        "levy_stable",
        floating(3, 4, low=1.1, high=1.9),
        floating(3, 4, low=-0.9, high=0.9),
    ),
    fn("lognormal", floating(3, **POSITIVE)),
    fn("multinomial", floating(low=5, high=9), floating(4, low=0.1, high=0.2)),
    fn("multivariate_normal", floating(3), positive_definite(3, 3, kinds="f")),
    fn("orthogonal", 3),
    fn("permutation", A(5, 2)),
    fn("poisson", floating(3, **POSITIVE)),
    fn("randint", (3, 4), 2, A(4, kinds="iu", low=5, high=9)),
    fn("rayleigh", floating(3, **POSITIVE)),
    fn("t", floating(3, **POSITIVE)),
    fn(
        "triangular",
        floating(3, low=0, high=1),
        floating(3, low=1, high=2),
        floating(3, low=2, high=3),
    ),
    fn("truncated_normal", floating(3, low=-2, high=-1), floating(3, low=1, high=2)),
    fn("wald", floating(3, **POSITIVE)),
    fn("weibull_min", floating(3, **POSITIVE), floating(3, **POSITIVE)),
    fn("split", 3),
    fn("fold_in", A(kinds="iu", low=0, high=9)),
    fn("clone"),
    fn("key_data"),
    fn("key_impl"),
    call("random.key", A(kinds="iu", low=0, high=9)),
    call("random.key_dtype"),
    call(
        "random.wrap_key_data",
        made(lambda rng, s: rng.integers(0, 2**32, s), 3, 2, kinds="u"),
    ),
]
