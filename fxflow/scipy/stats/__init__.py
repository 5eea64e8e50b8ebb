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
from fxflow.scipy.stats._normals import (
    exponnorm, fatiguelife, foldnorm, halfnorm, invgauss, johnsonsb, johnsonsu, lognorm,
    norm, skewnorm, truncnorm,
)
from fxflow.scipy.stats.kde import gaussian_kde
from fxflow.scipy.stats.ranks import ModeResult, mode, rankdata, sem

__all__ = [
    "ModeResult", "arcsine", "bernoulli", "beta", "betabinom", "betaprime", "binom",
    "boltzmann", "burr12", "cauchy", "chi", "chi2", "dirichlet", "dlaplace", "erlang",
    "expon", "exponnorm", "exponpow", "f", "fatiguelife", "fisk", "foldnorm", "gamma",
    "gaussian_kde", "genextreme", "gengamma", "gennorm", "genpareto", "geom",
    "gompertz", "gumbel_l", "gumbel_r", "halfcauchy", "halflogistic", "halfnorm",
    "hypergeom", "hypsecant", "invgamma", "invgauss", "invweibull", "johnsonsb",
    "johnsonsu", "laplace", "levy", "loggamma", "logistic", "lognorm", "logser",
    "loguniform", "lomax", "maxwell", "mode", "moyal", "multinomial",
    "multivariate_normal", "nakagami", "nbinom", "norm", "pareto", "planck", "poisson",
    "powerlaw", "randint", "rankdata", "rayleigh", "sem", "skellam", "skewnorm", "t",
    "triang", "truncexpon", "truncnorm", "uniform", "vonmises", "weibull_max",
    "weibull_min", "wrapcauchy", "zipf", "zipfian",
]
# fmt: on

_public(globals(), __all__)
