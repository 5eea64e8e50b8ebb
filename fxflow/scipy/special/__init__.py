"""Special functions: `fxflow.scipy.special`.

All of them act on each element of their arguments, which are broadcast and converted to
one float dtype, but for `logsumexp`, `softmax` and `log_softmax`.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.special.bessel import i0, i0e, i1, i1e
from fxflow.scipy.special.combinatorics import bernoulli, boxcox, boxcox1p, comb
from fxflow.scipy.special.error_functions import dawsn, erfcx, wofz
from fxflow.scipy.special.exponential_integrals import exp1, expi, expn
from fxflow.scipy.special.entropies import (
    entr, expit, kl_div, log_expit, logit, rel_entr, xlog1py, xlogy,
)
from fxflow.scipy.special.exponential_sums import log_softmax, logsumexp, softmax
from fxflow.scipy.special.gammas import (
    beta, betainc, betaln, digamma, factorial, gamma, gammainc, gammaincc, gammaln,
    gammasgn, multigammaln, poch, polygamma, psi, zeta,
)
from fxflow.scipy.special.normal import erf, erfc, erfinv, log_ndtr, ndtr, ndtri

__all__ = [
    "bernoulli",
    "beta",
    "betainc",
    "betaln",
    "boxcox",
    "boxcox1p",
    "comb",
    "dawsn",
    "digamma",
    "entr",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expit",
    "expn",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "kl_div",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "logit",
    "logsumexp",
    "multigammaln",
    "ndtr",
    "ndtri",
    "poch",
    "polygamma",
    "psi",
    "rel_entr",
    "softmax",
    "wofz",
    "xlog1py",
    "xlogy",
    "zeta",
]
# fmt: on

_public(globals(), __all__)
