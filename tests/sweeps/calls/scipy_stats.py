"""Calls of `fxflow.scipy.stats` and of its distributions."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

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
    "ksone": (UNIT, whole(*SHAPE, low=2, high=9)),
    "kstwo": (UNIT, whole(*SHAPE, low=2, high=9)),
    "kstwobign": (POSITIVE,),
    "ncf": (POSITIVE, POSITIVE, POSITIVE, POSITIVE),
    "nct": (real(*SHAPE), POSITIVE, real(*SHAPE)),
    "ncx2": (POSITIVE, POSITIVE, POSITIVE),
    "pearson3": (UNIT, real(*SHAPE)),
    "rice": (POSITIVE, POSITIVE),
    "studentized_range": (POSITIVE, real(*SHAPE, low=2, high=5), POSITIVE),
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
    "dpareto_lognorm": (POSITIVE, real(*SHAPE), POSITIVE, POSITIVE, POSITIVE),
    "gausshyper": (UNIT, POSITIVE, POSITIVE, POSITIVE, POSITIVE),
    "genhyperbolic": (
        real(*SHAPE),
        real(*SHAPE),
        real(*SHAPE, low=1, high=2),
        real(*SHAPE, low=-0.5, high=0.5),
    ),
    "geninvgauss": (POSITIVE, real(*SHAPE), POSITIVE),
    "irwinhall": (UNIT, whole(*SHAPE, low=2, high=5)),
    "nchypergeom_fisher": (
        COUNT,
        whole(*SHAPE, low=12, high=15),
        whole(*SHAPE, low=6, high=9),
        whole(*SHAPE, low=4, high=6),
        POSITIVE,
    ),
    "nchypergeom_wallenius": (
        COUNT,
        whole(*SHAPE, low=12, high=15),
        whole(*SHAPE, low=6, high=9),
        whole(*SHAPE, low=4, high=6),
        POSITIVE,
    ),
    "rel_breitwigner": (POSITIVE, POSITIVE),
    "tukeylambda": (UNIT, UNIT),
    "landau": (real(*SHAPE),),
    "levy_stable": (
        real(*SHAPE),
        real(*SHAPE, low=1.2, high=1.9),
        real(*SHAPE, low=-0.9, high=0.9),
    ),
}
#: They take functions, keys or samples: tests/scipy/stats/test_distributions.py.
_OTHERS = ("expect", "fit", "fit_loc_scale", "nnlf", "rvs")


#: Integrals and long sums: tests/scipy/stats/test_distributions.py has their calls.
LONG = (
    *(
        "ksone",
        "kstwo",
        "levy_stable",
        "ncf",
        "nct",
        "ncx2",
        "rice",
        "studentized_range",
    ),
    *("landau", "gausshyper", "genhyperbolic", "geninvgauss", "nchypergeom_wallenius"),
)


def called(name: str) -> list[str]:
    """The functions of a distribution that are in the catalogue."""
    if name in LONG:
        return []
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
EXEMPT |= {
    f"{S}.{name}": "a search, tested with the transformations"
    for name in ("boxcox_normmax", "yeojohnson_normmax")
}
EXEMPT |= {
    f"{S}.{name}": "takes a function"
    for name in (
        *("ks_1samp", "kstest", "cramervonmises", "bootstrap", "monte_carlo_test"),
        *("multiscale_graphcorr", "permutation_test", "power", "sobol_indices"),
    )
}
EXEMPT |= {
    f"{S}.anderson_ksamp": "takes a list of samples",
    f"{S}.poisson_means_test": "takes numbers that are known",
    f"{S}.tukey_hsd": "an integral: tests/scipy/stats/test_comparisons.py",
    f"{S}.dunnett": "an integral: tests/scipy/stats/test_comparisons.py",
    f"{S}.barnard_exact": "takes counts that are known",
    f"{S}.bws_test": "takes a key",
    f"{S}.epps_singleton_2samp": "a pseudoinverse: tests/scipy/stats/test_orders.py",
    f"{S}.contingency.crosstab": "levels that are known",
    f"{S}.contingency.odds_ratio": "solved for: tests/scipy/stats/test_contingency.py",
    f"{S}.ecdf": "returns objects with methods",
    f"{S}.fit": "a search, tested beside SciPy",
    f"{S}.goodness_of_fit": "takes a distribution and a key",
    f"{S}.mvsdist": "returns objects with methods",
    f"{S}.order_statistic": "returns objects with methods",
    f"{S}.truncate": "returns objects with methods",
    f"{S}.multinomial.entropy": "long sums: tests/scipy/stats/test_multinomial.py",
    f"{S}.poisson_binom.expect": "takes a function",
    f"{S}.ppcc_max": "a search, tested beside SciPy",
    f"{S}.ppcc_plot": "quantiles that are solved for, tested beside SciPy",
    f"{S}.boschloo_exact": "takes counts that are known",
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

_ROWS = real(3, 5)
SPREAD = floating(9, low=0.5, high=4.0)
TABLE = made(lambda rng, s: rng.integers(1, 9, s), 2, 3, kinds="i")
RISKS = tuple(
    made(lambda rng, s, low=low: rng.integers(low, low + 5, s), kinds="i")
    for low in (1, 9, 1, 9)
)
_SPREAD = floating(3, 5, low=0.5, high=4.0)
#: Summaries, correlations and tests: of rows, and of pairs of rows.
SAMPLES = [
    *each(
        S,
        "describe moment skew kurtosis kstat kstatvar variation iqr zscore gzscore "
        "median_abs_deviation gmean hmean gstd tmean tvar tstd tsem tmin tmax entropy",
        _SPREAD,
        axis=1,
    ),
    call(f"{S}.differential_entropy", _SPREAD, axis=1),
    call(f"{S}.pmean", _SPREAD, 2.0, axis=1),
    call(f"{S}.zmap", _SPREAD, _SPREAD, axis=1),
    *each(S, "trim_mean trimboth trim1", _ROWS, 0.25, axis=1),
    call(f"{S}.sigmaclip", floating(9), 2.0, 2.0),
    call(f"{S}.bayes_mvs", floating(9)),
    call(f"{S}.percentileofscore", real(9), real(2), differentiable=False),
    call(f"{S}.scoreatpercentile", floating(9), 40.0),
    *each(S, "cumfreq relfreq", floating(9), 4, differentiable=False),
    call(f"{S}.binned_statistic", floating(9), floating(9), "mean", 3, (-2, 2)),
    call(
        f"{S}.binned_statistic_2d",
        *(floating(9), floating(9), floating(9), "sum", 3, ((-2, 2), (-2, 2))),
    ),
    call(
        f"{S}.binned_statistic_dd",
        *(floating(9, 2), floating(9), "mean", (2, 3), ((-2, 2), (-2, 2))),
    ),
    *each(S, "wasserstein_distance energy_distance", floating(7), floating(5)),
    call(f"{S}.wasserstein_distance_nd", floating(4, 2), floating(4, 2)),
    call(f"{S}.boxcox", floating(9, low=0.5, high=4.0), 0.4),
    call(f"{S}.yeojohnson", floating(9), 0.4),
    call(f"{S}.boxcox_llf", 0.4, floating(9, low=0.5, high=4.0)),
    call(f"{S}.yeojohnson_llf", 0.4, floating(9)),
    *each(S, "pearsonr linregress", _ROWS, _ROWS, axis=1),
    call(f"{S}.pointbiserialr", _ROWS, _ROWS, axis=1),
    *each(
        S,
        "kendalltau weightedtau chatterjeexi",
        _ROWS,
        _ROWS,
        axis=1,
        differentiable=False,
    ),
    call(f"{S}.spearmanrho", _ROWS, _ROWS, axis=1, differentiable=False),
    call(f"{S}.tiecorrect", real(9, low=1, high=9), differentiable=False),
    *each(S, "spearmanr somersd", real(9), real(9), differentiable=False),
    *each(S, "ttest_ind ttest_rel f_oneway bartlett levene", _ROWS, _ROWS, axis=1),
    call(f"{S}.alexandergovern", floating(3, 5), floating(3, 6), axis=1),
    call(f"{S}.ttest_1samp", _ROWS, 0.5, axis=1),
    call(f"{S}.ttest_ind_from_stats", real(3), 1.5, 9, real(3), 1.0, 7),
    *each(
        S,
        "mannwhitneyu ranksums kruskal brunnermunzel mood ansari fligner ks_2samp "
        "cramervonmises_2samp",
        *(real(3, 5), real(3, 6)),
        axis=1,
        differentiable=False,
    ),
    call(f"{S}.wilcoxon", _ROWS, _ROWS, axis=1, differentiable=False),
    call(f"{S}.friedmanchisquare", _ROWS, _ROWS, _ROWS, axis=1, differentiable=False),
    *each(
        S,
        "normaltest jarque_bera skewtest kurtosistest shapiro",
        floating(2, 9),
        axis=1,
    ),
    *each(S, "chisquare power_divergence", real(2, 5, low=1, high=9), axis=1),
    call(f"{S}.chi2_contingency", real(2, 3, low=1, high=9)),
    call(
        f"{S}.fisher_exact",
        made(lambda rng, s: rng.integers(1, 9, s), 2, 2),
        differentiable=False,
    ),
    call(f"{S}.median_test", real(7), real(6), differentiable=False),
    call(f"{S}.combine_pvalues", floating(3, 4, low=0.1, high=0.9), axis=1),
    call(f"{S}.false_discovery_control", floating(3, 4, low=0.1, high=0.2), axis=1),
    call(f"{S}.quantile_test", real(9), differentiable=False),
    call(
        f"{S}.binomtest",
        made(lambda rng, s: rng.integers(2, 4, s)),
        9,
        0.5,
        differentiable=False,
    ),
    call(f"{S}.anderson", floating(9)),
    *each(S, "circmean circvar circstd", _ROWS, axis=1),
    call(f"{S}.directional_stats", floating(4, 3)),
    call(f"{S}.lmoment", floating(2, 9), axis=1),
    call(f"{S}.expectile", floating(9), 0.7),
    call(f"{S}.obrientransform", floating(5), floating(5)),
    call(f"{S}.quantile", _ROWS, 0.3, axis=1),
    call(f"{S}.probplot", floating(9)),
    *each(S, "boxcox_normplot yeojohnson_normplot", SPREAD, 0.5, 1.5, N=3),
    call(f"{S}.logrank", real(7), real(5), differentiable=False),
    call(f"{S}.page_trend_test", real(3, 4), differentiable=False),
    *each(f"{S}.contingency", "margins", real(2, 3)),
    call(f"{S}.contingency.chi2_contingency", real(2, 3, low=1, high=9)),
    call(f"{S}.contingency.expected_freq", real(2, 3, low=1, high=9)),
    call(f"{S}.contingency.association", TABLE, differentiable=False),
    *each(f"{S}.contingency", "relative_risk", *RISKS, differentiable=False),
    *each(S, "theilslopes siegelslopes", floating(3, 5), floating(3, 5), axis=1),
]
SQUARE = positive_definite(3, 3, kinds="f")
FREEDOM, ALPHA = floating(low=7, high=9), floating(3, low=0.5, high=3)


def _directions(rng: Any, shape: tuple[int, ...]) -> Any:
    x = rng.normal(size=shape) + 1
    return x / (x * x).sum(-1, keepdims=True) ** 0.5


DIRECTION, DIRECTIONS = made(_directions, 3), made(_directions, 4, 3)
#: They take keys: tests/scipy/stats.
EXEMPT |= {
    f"{S}.{name}.rvs": "draws with a key, as the samplers of random do"
    for name in (
        "dirichlet",
        "invwishart",
        "matrix_normal",
        "matrix_t",
        "multinomial",
        "multivariate_hypergeom",
        "multivariate_normal",
        "multivariate_t",
        "normal_inverse_gamma",
        "ortho_group",
        "poisson_binom",
        "random_correlation",
        "random_table",
        "special_ortho_group",
        "uniform_direction",
        "unitary_group",
        "vonmises_fisher",
        "wishart",
    )
}

CALLS = [
    *each(
        f"{S}.multivariate_hypergeom",
        "logpmf pmf",
        made(lambda rng, s: np.full(s, 2), 3, kinds="i"),
        made(lambda rng, s: rng.integers(3, 9, s), 3, kinds="i"),
        6,
        differentiable=False,
    ),
    *each(
        f"{S}.multivariate_hypergeom",
        "mean var cov",
        made(lambda rng, s: rng.integers(3, 9, s), 3, kinds="i"),
        6,
        differentiable=False,
    ),
    *each(
        f"{S}.normal_inverse_gamma",
        "logpdf pdf",
        *(real(*SHAPE), POSITIVE, real(*SHAPE), POSITIVE, POSITIVE, POSITIVE),
    ),
    *each(
        f"{S}.normal_inverse_gamma",
        "mean var",
        *(real(*SHAPE), POSITIVE, real(*SHAPE, low=2.5, high=4.0), POSITIVE),
    ),
    *each(
        f"{S}.poisson_binom",
        "pmf logpmf cdf logcdf sf logsf",
        whole(3),
        real(3, 4, low=0.1, high=0.9),
    ),
    *each(
        f"{S}.poisson_binom",
        "ppf isf interval",
        real(3, low=0.1, high=0.9),
        real(3, 4, low=0.1, high=0.9),
        differentiable=False,
    ),
    *each(f"{S}.poisson_binom", "mean var std entropy", real(3, 4, low=0.1, high=0.9)),
    call(f"{S}.poisson_binom.moment", 3, real(3, 4, low=0.1, high=0.9)),
    *each(
        f"{S}.poisson_binom",
        "median stats support",
        real(3, 4, low=0.1, high=0.9),
        differentiable=False,
    ),
    *each(
        f"{S}.random_table",
        "logpmf pmf",
        np.array([[1, 2], [2, 0]]),
        np.array([3, 2]),
        np.array([3, 2]),
        differentiable=False,
    ),
    call(
        f"{S}.random_table.mean",
        np.array([3, 2]),
        np.array([3, 2]),
        differentiable=False,
    ),
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
        "logpdf pdf cdf logcdf",
        floating(4, 3),
        floating(3),
        SQUARE,
    ),
    call(f"{S}.multivariate_normal.entropy", floating(3), SQUARE),
    call(f"{S}.multivariate_normal.marginal", (0, 2), floating(3), SQUARE),
    call(f"{S}.multivariate_normal.fit", floating(5, 3)),
    *each(
        f"{S}.multivariate_t",
        "logpdf pdf cdf",
        floating(4, 3),
        floating(3),
        SQUARE,
        floating(low=1, high=5),
    ),
    call(f"{S}.multivariate_t.entropy", floating(3), SQUARE, floating(low=1, high=5)),
    call(f"{S}.multivariate_t.marginal", (0, 2), floating(3), SQUARE),
    *[
        made_call
        for name in ("wishart", "invwishart")
        for made_call in (
            *each(f"{S}.{name}", "logpdf pdf", SQUARE, FREEDOM, SQUARE),
            *each(f"{S}.{name}", "mean mode var entropy", FREEDOM, SQUARE),
        )
    ],
    *each(
        f"{S}.matrix_normal",
        "logpdf pdf",
        floating(4, 2, 3),
        floating(2, 3),
        positive_definite(2, 2, kinds="f"),
        SQUARE,
    ),
    call(
        f"{S}.matrix_normal.entropy",
        floating(2, 3),
        positive_definite(2, 2, kinds="f"),
        SQUARE,
    ),
    *each(
        f"{S}.matrix_t",
        "logpdf pdf",
        floating(4, 2, 3),
        floating(2, 3),
        positive_definite(2, 2, kinds="f"),
        SQUARE,
        floating(low=1, high=5),
    ),
    *each(
        f"{S}.vonmises_fisher",
        "logpdf pdf",
        DIRECTION,
        DIRECTION,
        floating(low=0.5, high=4),
        differentiable=False,
    ),
    call(
        f"{S}.vonmises_fisher.entropy",
        DIRECTION,
        floating(low=0.5, high=4),
        differentiable=False,
    ),
    call(f"{S}.vonmises_fisher.fit", DIRECTIONS, differentiable=False),
    *each(
        f"{S}.dirichlet_multinomial",
        "logpmf pmf",
        COUNTS,
        floating(3, low=0.5, high=3),
        5,
        differentiable=False,
    ),
    *each(
        f"{S}.dirichlet_multinomial", "mean var cov", floating(3, low=0.5, high=3), 5
    ),
    *each(f"{S}.dirichlet", "mean var cov entropy", ALPHA),
    *each(f"{S}.multinomial", "mean cov", 5, floating(3, low=0.1, high=0.3)),
    call(f"{S}.mode", real(3, 4), axis=1, differentiable=False),
    call(f"{S}.rankdata", real(3, 4), axis=1, differentiable=False),
    call(f"{S}.sem", real(3, 4), axis=1),
    *SAMPLES,
]
