"""Distributions and statistics of SciPy: `fxflow.scipy.stats`.

Each distribution is a module of functions, as in `norm.logpdf(x, loc, scale)`. All of
them broadcast their arguments and convert them to one float dtype.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.stats import dirichlet, multinomial, multivariate_normal
from fxflow.scipy.stats._betas import beta, betaprime, cauchy, f, halfcauchy, t
from fxflow.scipy.stats._bounded import (
    arcsine, hypsecant, laplace, loguniform, powerlaw, triang, truncexpon, uniform,
    vonmises, wrapcauchy,
)
from fxflow.scipy.stats._counts import (
    bernoulli, betabinom, binom, boltzmann, dlaplace, geom, hypergeom, logser, nbinom,
    planck, poisson, randint, skellam, zipf, zipfian,
)
from fxflow.scipy.stats._extremes import (
    burr12, expon, exponpow, fisk, genextreme, genpareto, gompertz, gumbel_l, gumbel_r,
    halflogistic, invweibull, logistic, lomax, pareto, rayleigh, weibull_max,
    weibull_min,
)
from fxflow.scipy.stats._gammas import (
    chi, chi2, erlang, gamma, gengamma, gennorm, invgamma, levy, loggamma, maxwell,
    moyal, nakagami,
)
from fxflow.scipy.stats._intervals import (
    anglit, argus, bradford, cosine, genhalflogistic, rdist, reciprocal, semicircular,
    trapezoid, vonmises_line,
)
from fxflow.scipy.stats._lines import (
    crystalball, dgamma, dweibull, genlogistic, jf_skew_t, kappa4, laplace_asymmetric,
    norminvgauss, powernorm, skewcauchy,
)
from fxflow.scipy.stats._normals import (
    exponnorm, fatiguelife, foldnorm, halfnorm, invgauss, johnsonsb, johnsonsu, lognorm,
    norm, skewnorm, truncnorm,
)
from fxflow.scipy.stats._positives import (
    alpha, burr, exponweib, foldcauchy, genexpon, gibrat, halfgennorm, kappa3, levy_l,
    loglaplace, mielke, powerlognorm, recipinvgauss, truncpareto, truncweibull_min,
    wald,
)
from fxflow.scipy.stats._urns import betanbinom, nhypergeom, yulesimon
from fxflow.scipy.stats.kde import gaussian_kde
from fxflow.scipy.stats.ranks import ModeResult, mode, rankdata, sem

__all__ = [
    "ModeResult", "alpha", "anglit", "arcsine", "argus", "bernoulli", "beta",
    "betabinom", "betanbinom", "betaprime", "binom", "boltzmann", "bradford",
    "burr", "burr12", "cauchy", "chi", "chi2", "cosine", "crystalball", "dgamma",
    "dirichlet", "dlaplace", "dweibull", "erlang", "expon", "exponnorm", "exponpow",
    "exponweib", "f", "fatiguelife", "fisk", "foldcauchy", "foldnorm", "gamma",
    "gaussian_kde", "genexpon", "genextreme", "gengamma", "genhalflogistic",
    "genlogistic", "gennorm", "genpareto", "geom", "gibrat", "gompertz", "gumbel_l",
    "gumbel_r", "halfcauchy", "halfgennorm", "halflogistic", "halfnorm",
    "hypergeom", "hypsecant", "invgamma", "invgauss", "invweibull", "jf_skew_t",
    "johnsonsb", "johnsonsu", "kappa3", "kappa4", "laplace", "laplace_asymmetric",
    "levy", "levy_l", "loggamma", "logistic", "loglaplace", "lognorm", "logser",
    "loguniform", "lomax", "maxwell", "mielke", "mode", "moyal", "multinomial",
    "multivariate_normal", "nakagami", "nbinom", "nhypergeom", "norm",
    "norminvgauss", "pareto", "planck", "poisson", "powerlaw", "powerlognorm",
    "powernorm", "randint", "rankdata", "rayleigh", "rdist", "recipinvgauss",
    "reciprocal", "sem", "semicircular", "skellam", "skewcauchy", "skewnorm", "t",
    "trapezoid", "triang", "truncexpon", "truncnorm", "truncpareto",
    "truncweibull_min", "uniform", "vonmises", "vonmises_line", "wald",
    "weibull_max", "weibull_min", "wrapcauchy", "yulesimon", "zipf", "zipfian",
]
# fmt: on

_public(globals(), __all__)
