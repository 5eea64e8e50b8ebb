"""Special functions: `fxflow.scipy.special`.

All of them act on each element of their arguments, which are broadcast and converted to
one float dtype, but for `logsumexp`, `softmax` and `log_softmax`.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.special.bessel import i0, i0e, i1, i1e
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
    "beta", "betainc", "betaln", "digamma", "entr", "erf", "erfc", "erfinv", "expit",
    "factorial", "gamma", "gammainc", "gammaincc", "gammaln", "gammasgn", "i0", "i0e",
    "i1", "i1e", "kl_div", "log_expit", "log_ndtr", "log_softmax", "logit", "logsumexp",
    "multigammaln", "ndtr", "ndtri", "poch", "polygamma", "psi", "rel_entr", "softmax",
    "xlog1py", "xlogy", "zeta",
]
# fmt: on

_public(globals(), __all__)
