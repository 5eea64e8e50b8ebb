"""Special functions: `fxflow.scipy.special`.

All of them act on each element of their arguments, which are broadcast and converted to
one float dtype, but for `logsumexp`, `softmax` and `log_softmax`.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.special.bessel import bessel_jn, i0, i0e, i1, i1e
from fxflow.scipy.special.combinatorics import (
    bernoulli, boxcox, boxcox1p, comb, euler, factorial2, factorialk, perm, stirling2,
)
from fxflow.scipy.special.complex_gamma import loggamma
from fxflow.scipy.special.compositions import (
    agm, binom, erfi, exp10, exprel, inv_boxcox, inv_boxcox1p, voigt_profile,
)
from fxflow.scipy.special.cylinder import (
    hankel1, hankel2, iv, ive, jn, jv, jve, kn, kv, kve, yn, yv, yve,
)
from fxflow.scipy.special.order_zero_one import j0, j1, k0, k0e, k1, k1e, y0, y1
from fxflow.scipy.special.elliptic import (
    ellipe, ellipeinc, ellipk, ellipkinc, ellipkm1, elliprc, elliprd, elliprf, elliprg,
    elliprj,
)
from fxflow.scipy.special.error_functions import dawsn, erfcx, wofz
from fxflow.scipy.special.exponential_integrals import exp1, expi, expn, shichi
from fxflow.scipy.special.entropies import (
    entr, expit, kl_div, log_expit, logit, rel_entr, xlog1py, xlogy,
)
from fxflow.scipy.special.exponential_sums import log_softmax, logsumexp, softmax
from fxflow.scipy.special.gammas import (
    beta, betaln, digamma, factorial, gamma, gammainc, gammaincc, gammaln,
    gammasgn, multigammaln, poch, polygamma, psi,
)
from fxflow.scipy.special.elliptic_functions import ellipj
from fxflow.scipy.special.kelvin_functions import (
    bei, beip, ber, berp, kei, keip, kelvin, ker, kerp,
)
from fxflow.scipy.special.zeta_functions import zeta, zetac
from fxflow.scipy.special.hypergeometric import hyp1f1, hyp2f1
from fxflow.scipy.special.incomplete_beta import (
    betainc, betaincc, betainccinv, betaincinv, stdtr, stdtrit,
)
from fxflow.scipy.special.integrals import (
    fresnel, modfresnelm, modfresnelp, owens_t, sici, spence,
)
from fxflow.scipy.special.normal import (
    erf, erfc, erfinv, log_ndtr, ndtr, ndtri, ndtri_exp,
)
from fxflow.scipy.special.orthogonal import (
    eval_legendre, eval_chebyt, eval_chebyu, eval_chebyc, eval_chebys,
    eval_sh_legendre, eval_sh_chebyt, eval_sh_chebyu, eval_hermite,
    eval_hermitenorm, eval_laguerre, eval_genlaguerre, eval_gegenbauer, eval_jacobi,
    eval_sh_jacobi, assoc_laguerre,
)
from fxflow.scipy.special.quadrature_nodes import (
    roots_legendre, roots_sh_legendre, roots_chebyt, roots_chebyu, roots_chebyc,
    roots_chebys, roots_sh_chebyt, roots_sh_chebyu, roots_hermite,
    roots_hermitenorm, roots_laguerre, roots_genlaguerre, roots_gegenbauer,
    roots_jacobi, roots_sh_jacobi,
)
from fxflow.scipy.special.probabilities import (
    bdtr, bdtrc, bdtri, nbdtr, nbdtrc, nbdtri, pdtr, pdtrc, pdtri,
    fdtr, fdtrc, fdtri, gdtr, gdtrc, gdtria, gdtrix,
)
from fxflow.scipy.special.spherical import sph_harm_y
from fxflow.scipy.special.legendre import (
    assoc_legendre_p, assoc_legendre_p_all, legendre_p, legendre_p_all, lpmv,
    sph_harm_y_all, sph_legendre_p, sph_legendre_p_all,
)
from fxflow.scipy.special.airy_functions import airy, airye
from fxflow.scipy.special.confluent import hyp0f1, hyperu
from fxflow.scipy.special.zeros import (
    ai_zeros, bi_zeros, jn_zeros, jnjnp_zeros, jnp_zeros, jnyn_zeros, yn_zeros,
    ynp_zeros,
)
from fxflow.scipy.special.spherical_bessel import (
    riccati_jn, riccati_yn,
    spherical_in, spherical_jn, spherical_kn, spherical_yn,
)
from fxflow.scipy.special.elementary import (
    cbrt, cosm1, erfcinv, exp2, expm1, huber, log1p, powm1, pseudo_huber,
    rgamma, sinc, softplus,
)
from fxflow.scipy.special.rounding import round
from fxflow.scipy.special.lambert import (
    lambertw, wrightomega,
)
from fxflow.scipy.special.inverses import (
    chdtr, chdtrc, chdtri, gammainccinv, gammaincinv,
)
from fxflow.scipy.special.goodness_of_fit import (
    kolmogi, kolmogorov, smirnov, smirnovi,
)
from fxflow.scipy.special.noncentral import (
    chndtr, chndtridf, chndtrinc, chndtrix, ncfdtr, ncfdtri, ncfdtrinc, nctdtr,
    ncfdtridfd, ncfdtridfn, nctdtridf, nctdtrinc, nctdtrit,
)
from fxflow.scipy.special.parameters import (
    bdtrik, bdtrin, btdtria, btdtrib, chdtriv, fdtridfd, gdtrib, nbdtrik, nbdtrin,
    nrdtrimn, nrdtrisd, pdtrik, stdtridf,
    tklmbda,
)
from fxflow.scipy.special.angles import (
    cosdg, cotdg, diric, radian, sindg, tandg,
)
from fxflow.scipy.special.bessel_derivatives import (
    h1vp, h2vp, hankel1e, hankel2e, ivp, jvp, kvp, lmbda, yvp,
)
from fxflow.scipy.special.bessel_integrals import (
    besselpoly, it2i0k0, it2j0y0, it2struve0, itairy, iti0k0, itj0y0, itmodstruve0,
    itstruve0,
)
from fxflow.scipy.special.mathieu import (
    mathieu_a, mathieu_b, mathieu_cem, mathieu_sem,
)
from fxflow.scipy.special.ellipsoidal import (
    ellip_harm, ellip_harm_2, ellip_normal,
)
from fxflow.scipy.special.modified_mathieu import (
    mathieu_modcem1, mathieu_modcem2, mathieu_modsem1, mathieu_modsem2,
)
from fxflow.scipy.special.spheroidal import (
    obl_ang1, obl_ang1_cv, obl_cv, obl_cv_seq, obl_rad1, obl_rad1_cv,
    pro_ang1, pro_ang1_cv, pro_cv, pro_cv_seq, pro_rad1, pro_rad1_cv,
)
from fxflow.scipy.special.error_zeros import (
    erf_zeros, fresnel_zeros, fresnelc_zeros, fresnels_zeros,
)
from fxflow.scipy.special.kelvin_zeros import (
    bei_zeros, beip_zeros, ber_zeros, berp_zeros, kei_zeros, keip_zeros, kelvin_zeros,
    ker_zeros, kerp_zeros,
)
from fxflow.scipy.special.parabolic import pbdv, pbdv_seq, pbvv, pbvv_seq, pbwa
from fxflow.scipy.special.wright import log_wright_bessel, wright_bessel
from fxflow.scipy.special.struve import (
    modstruve, struve,
)

__all__ = [
    "agm",
    "ai_zeros",
    "airy",
    "airye",
    "assoc_laguerre",
    "assoc_legendre_p",
    "assoc_legendre_p_all",
    "bdtr",
    "bdtrc",
    "bdtri",
    "bdtrik",
    "bdtrin",
    "bei",
    "bei_zeros",
    "beip",
    "beip_zeros",
    "ber",
    "ber_zeros",
    "bernoulli",
    "berp",
    "berp_zeros",
    "bessel_jn",
    "besselpoly",
    "beta",
    "betainc",
    "betaincc",
    "betainccinv",
    "betaincinv",
    "betaln",
    "bi_zeros",
    "binom",
    "boxcox",
    "boxcox1p",
    "btdtria",
    "btdtrib",
    "cbrt",
    "chdtr",
    "chdtrc",
    "chdtri",
    "chdtriv",
    "chndtr",
    "chndtridf",
    "chndtrinc",
    "chndtrix",
    "comb",
    "cosdg",
    "cosm1",
    "cotdg",
    "dawsn",
    "digamma",
    "diric",
    "ellip_harm",
    "ellip_harm_2",
    "ellip_normal",
    "ellipe",
    "ellipeinc",
    "ellipj",
    "ellipk",
    "ellipkinc",
    "ellipkm1",
    "elliprc",
    "elliprd",
    "elliprf",
    "elliprg",
    "elliprj",
    "entr",
    "erf",
    "erf_zeros",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfi",
    "erfinv",
    "euler",
    "eval_chebyc",
    "eval_chebys",
    "eval_chebyt",
    "eval_chebyu",
    "eval_gegenbauer",
    "eval_genlaguerre",
    "eval_hermite",
    "eval_hermitenorm",
    "eval_jacobi",
    "eval_laguerre",
    "eval_legendre",
    "eval_sh_chebyt",
    "eval_sh_chebyu",
    "eval_sh_jacobi",
    "eval_sh_legendre",
    "exp1",
    "exp10",
    "exp2",
    "expi",
    "expit",
    "expm1",
    "expn",
    "exprel",
    "factorial",
    "factorial2",
    "factorialk",
    "fdtr",
    "fdtrc",
    "fdtri",
    "fdtridfd",
    "fresnel",
    "fresnel_zeros",
    "fresnelc_zeros",
    "fresnels_zeros",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammainccinv",
    "gammaincinv",
    "gammaln",
    "gammasgn",
    "gdtr",
    "gdtrc",
    "gdtria",
    "gdtrib",
    "gdtrix",
    "h1vp",
    "h2vp",
    "hankel1",
    "hankel1e",
    "hankel2",
    "hankel2e",
    "huber",
    "hyp0f1",
    "hyp1f1",
    "hyp2f1",
    "hyperu",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "inv_boxcox",
    "inv_boxcox1p",
    "it2i0k0",
    "it2j0y0",
    "it2struve0",
    "itairy",
    "iti0k0",
    "itj0y0",
    "itmodstruve0",
    "itstruve0",
    "iv",
    "ive",
    "ivp",
    "j0",
    "j1",
    "jn",
    "jn_zeros",
    "jnjnp_zeros",
    "jnp_zeros",
    "jnyn_zeros",
    "jv",
    "jve",
    "jvp",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kei",
    "kei_zeros",
    "keip",
    "keip_zeros",
    "kelvin",
    "kelvin_zeros",
    "ker",
    "ker_zeros",
    "kerp",
    "kerp_zeros",
    "kl_div",
    "kn",
    "kolmogi",
    "kolmogorov",
    "kv",
    "kve",
    "kvp",
    "lambertw",
    "legendre_p",
    "legendre_p_all",
    "lmbda",
    "log1p",
    "log_expit",
    "log_ndtr",
    "log_softmax",
    "log_wright_bessel",
    "loggamma",
    "logit",
    "logsumexp",
    "lpmv",
    "mathieu_a",
    "mathieu_b",
    "mathieu_cem",
    "mathieu_modcem1",
    "mathieu_modcem2",
    "mathieu_modsem1",
    "mathieu_modsem2",
    "mathieu_sem",
    "modfresnelm",
    "modfresnelp",
    "modstruve",
    "multigammaln",
    "nbdtr",
    "nbdtrc",
    "nbdtri",
    "nbdtrik",
    "nbdtrin",
    "ncfdtr",
    "ncfdtri",
    "ncfdtridfd",
    "ncfdtridfn",
    "ncfdtrinc",
    "nctdtr",
    "nctdtridf",
    "nctdtrinc",
    "nctdtrit",
    "ndtr",
    "ndtri",
    "ndtri_exp",
    "nrdtrimn",
    "nrdtrisd",
    "obl_ang1",
    "obl_ang1_cv",
    "obl_cv",
    "obl_cv_seq",
    "obl_rad1",
    "obl_rad1_cv",
    "owens_t",
    "pbdv",
    "pbdv_seq",
    "pbvv",
    "pbvv_seq",
    "pbwa",
    "pdtr",
    "pdtrc",
    "pdtri",
    "pdtrik",
    "perm",
    "poch",
    "polygamma",
    "powm1",
    "pro_ang1",
    "pro_ang1_cv",
    "pro_cv",
    "pro_cv_seq",
    "pro_rad1",
    "pro_rad1_cv",
    "pseudo_huber",
    "psi",
    "radian",
    "rel_entr",
    "rgamma",
    "riccati_jn",
    "riccati_yn",
    "roots_chebyc",
    "roots_chebys",
    "roots_chebyt",
    "roots_chebyu",
    "roots_gegenbauer",
    "roots_genlaguerre",
    "roots_hermite",
    "roots_hermitenorm",
    "roots_jacobi",
    "roots_laguerre",
    "roots_legendre",
    "roots_sh_chebyt",
    "roots_sh_chebyu",
    "roots_sh_jacobi",
    "roots_sh_legendre",
    "round",
    "shichi",
    "sici",
    "sinc",
    "sindg",
    "smirnov",
    "smirnovi",
    "softmax",
    "softplus",
    "spence",
    "sph_harm_y",
    "sph_harm_y_all",
    "sph_legendre_p",
    "sph_legendre_p_all",
    "spherical_in",
    "spherical_jn",
    "spherical_kn",
    "spherical_yn",
    "stdtr",
    "stdtridf",
    "stdtrit",
    "stirling2",
    "struve",
    "tandg",
    "tklmbda",
    "voigt_profile",
    "wofz",
    "wright_bessel",
    "wrightomega",
    "xlog1py",
    "xlogy",
    "y0",
    "y1",
    "yn",
    "yn_zeros",
    "ynp_zeros",
    "yv",
    "yve",
    "yvp",
    "zeta",
    "zetac",
]
# fmt: on

_public(globals(), __all__)
