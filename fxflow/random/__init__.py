"""Random numbers from explicit keys.

A sampler is a pure function of a key: the same key gives the same numbers, on every
device and however they are partitioned. Numbers are those of JAX.

    key = random.key(0)
    key, used = random.split(key)
    x = random.normal(used, (3, 4))
"""

# fmt: off
import typing as _typing

from fxflow.core.boundary import public as _public
from fxflow.random.basic import bits, randint, uniform
from fxflow.random.gaussian import (
    double_sided_maxwell, lognormal, maxwell, normal, truncated_normal, wald,
)
from fxflow.random.keys import (
    clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data,
)

if _typing.TYPE_CHECKING:
    from fxflow.random.counts import binomial, multinomial, poisson
    from fxflow.random.discrete import bernoulli, categorical, geometric, rademacher
    from fxflow.random.gammas import (
        ball, beta, chisquare, dirichlet, f, gamma, generalized_normal, loggamma, t,
    )
    from fxflow.random.inverse import (
        cauchy, exponential, gumbel, laplace, logistic, pareto, rayleigh, triangular,
        weibull_min,
    )
    from fxflow.random.matrices import multivariate_normal, orthogonal
    from fxflow.random.shuffling import choice, permutation
    from fxflow.random.stable import levy_stable

__all__ = [
    "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy",
    "chisquare", "choice", "clone", "dirichlet", "double_sided_maxwell", "exponential",
    "f", "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key",
    "key_data", "key_dtype", "key_impl", "laplace", "levy_stable", "loggamma",
    "logistic", "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal",
    "orthogonal", "pareto", "permutation", "poisson", "rademacher", "randint",
    "rayleigh", "split", "t", "triangular", "truncated_normal", "uniform", "wald",
    "weibull_min", "wrap_key_data",
]

_public(
    globals(),
    __all__,
    # What is drawn less often than uniform and normal numbers.
    elsewhere={
        "counts": "binomial multinomial poisson",
        "discrete": "bernoulli categorical geometric rademacher",
        "gammas": "ball beta chisquare dirichlet f gamma generalized_normal loggamma t",
        "inverse": (
            "cauchy exponential gumbel laplace logistic pareto rayleigh triangular "
            "weibull_min"
        ),
        "matrices": "multivariate_normal orthogonal",
        "shuffling": "choice permutation",
        "stable": "levy_stable",
    },
)
# fmt: on
