"""Distributions and statistics of SciPy: `fxflow.scipy.stats`.

Each distribution is a module of functions, as in `norm.logpdf(x, loc, scale)`. All of
them broadcast their arguments and convert them to one float dtype.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.stats import (
    dirichlet, dirichlet_multinomial, invwishart, matrix_normal, matrix_t,
    multinomial, multivariate_hypergeom, multivariate_normal, multivariate_t,
    normal_inverse_gamma, ortho_group, poisson_binom, random_correlation,
    random_table, special_ortho_group, uniform_direction, unitary_group,
    vonmises_fisher, wishart,
)
from fxflow.scipy.stats import contingency as contingency, qmc as qmc  # modules
from fxflow.scipy.stats._betas import beta, betaprime, cauchy, f, halfcauchy, t
from fxflow.scipy.stats._biased_urns import nchypergeom_fisher, nchypergeom_wallenius
from fxflow.scipy.stats._bounded import (
    arcsine, hypsecant, laplace, loguniform, powerlaw, triang, truncexpon, uniform,
    vonmises, wrapcauchy,
)
from fxflow.scipy.stats._counts import (
    bernoulli, betabinom, binom, boltzmann, dlaplace, geom, hypergeom, logser, nbinom,
    planck, poisson, randint, skellam,
)
from fxflow.scipy.stats._deviations import ksone, kstwobign, studentized_range
from fxflow.scipy.stats._extremes import (
    burr12, expon, exponpow, fisk, genextreme, genpareto, gompertz, gumbel_l, gumbel_r,
    halflogistic, invweibull, logistic, lomax, pareto, rayleigh, weibull_max,
    weibull_min,
)
from fxflow.scipy.stats._flexible import (
    dpareto_lognorm, gausshyper, genhyperbolic, geninvgauss, irwinhall,
    rel_breitwigner, tukeylambda,
)
from fxflow.scipy.stats._gammas import (
    chi, chi2, erlang, gamma, gengamma, gennorm, invgamma, levy, loggamma, maxwell,
    moyal, nakagami, pearson3,
)
from fxflow.scipy.stats._intervals import (
    anglit, argus, bradford, cosine, genhalflogistic, rdist, reciprocal, semicircular,
    trapezoid, vonmises_line,
)
from fxflow.scipy.stats._levy_stable import levy_stable
from fxflow.scipy.stats._lines import (
    crystalball, dgamma, dweibull, genlogistic, jf_skew_t, kappa4, laplace_asymmetric,
    norminvgauss, powernorm, skewcauchy,
)
from fxflow.scipy.stats._noncentral import ncf, nct, ncx2, rice
from fxflow.scipy.stats._normals import (
    exponnorm, fatiguelife, foldnorm, halfnorm, invgauss, johnsonsb, johnsonsu, lognorm,
    norm, skewnorm, truncnorm,
)
from fxflow.scipy.stats._positives import (
    alpha, burr, exponweib, foldcauchy, genexpon, gibrat, halfgennorm, kappa3, levy_l,
    loglaplace, mielke, powerlognorm, recipinvgauss, truncpareto, truncweibull_min,
    wald,
)
from fxflow.scipy.stats._powers import zipf, zipfian
from fxflow.scipy.stats._stable import landau
from fxflow.scipy.stats._two_sided import kstwo
from fxflow.scipy.stats._urns import betanbinom, nhypergeom, yulesimon
from fxflow.scipy.stats.comparisons import dunnett, tukey_hsd
from fxflow.scipy.stats.correlations import (
    chatterjeexi, kendalltau, linregress, pearsonr, pointbiserialr, siegelslopes,
    somersd, spearmanr, spearmanrho, theilslopes, weightedtau,
)
from fxflow.scipy.stats.counting import (
    binned_statistic, binned_statistic_2d, binned_statistic_dd, cumfreq,
    percentileofscore, relfreq, scoreatpercentile,
)
from fxflow.scipy.stats.covariance import Covariance
from fxflow.scipy.stats.directions import (
    circmean, circstd, circvar, directional_stats,
)
from fxflow.scipy.stats.entropies import (
    differential_entropy, energy_distance, entropy, wasserstein_distance,
    wasserstein_distance_nd,
)
from fxflow.scipy.stats.fitting import fit, goodness_of_fit
from fxflow.scipy.stats.frequencies import (
    chi2_contingency, chisquare, fisher_exact, median_test, power_divergence,
)
from fxflow.scipy.stats.goodness import (
    anderson, anderson_ksamp, cramervonmises, cramervonmises_2samp, ks_1samp, ks_2samp,
    kstest,
)
from fxflow.scipy.stats.histograms import rv_histogram
from fxflow.scipy.stats.intervals import bayes_mvs, mvsdist
from fxflow.scipy.stats.kde import gaussian_kde
from fxflow.scipy.stats.means_tests import (
    alexandergovern, f_oneway, ttest_1samp, ttest_ind, ttest_ind_from_stats, ttest_rel,
)
from fxflow.scipy.stats.mixtures import Mixture, order_statistic, truncate
from fxflow.scipy.stats.moments import (
    describe, expectile, gmean, gstd, gzscore, hmean, kstat, kstatvar, kurtosis,
    lmoment, moment, pmean, skew, variation, zmap, zscore,
)
from fxflow.scipy.stats.multiple import combine_pvalues, false_discovery_control
from fxflow.scipy.stats.multiscale import multiscale_graphcorr
from fxflow.scipy.stats.normality import (
    jarque_bera, kurtosistest, normaltest, shapiro, skewtest,
)
from fxflow.scipy.stats.orders import bws_test, epps_singleton_2samp, page_trend_test
from fxflow.scipy.stats.power_transforms import (
    boxcox, boxcox_llf, boxcox_normmax, yeojohnson, yeojohnson_llf, yeojohnson_normmax,
)
from fxflow.scipy.stats.probability_plots import (
    boxcox_normplot, ppcc_max, ppcc_plot, probplot, yeojohnson_normplot,
)
from fxflow.scipy.stats.proportions import (
    binomtest, poisson_means_test, quantile_test,
)
from fxflow.scipy.stats.quantiles import quantile
from fxflow.scipy.stats.rank_tests import (
    ansari, brunnermunzel, friedmanchisquare, kruskal, mannwhitneyu, mood, ranksums,
    wilcoxon,
)
from fxflow.scipy.stats.ranks import ModeResult, mode, rankdata, sem, tiecorrect
from fxflow.scipy.stats.resampling import (
    bootstrap, monte_carlo_test, permutation_test, power,
)
from fxflow.scipy.stats.sensitivity import sobol_indices
from fxflow.scipy.stats.spread import (
    iqr, median_abs_deviation, sigmaclip, tmax, tmean, tmin, trim1, trim_mean, trimboth,
    tsem, tstd, tvar,
)
from fxflow.scipy.stats.survival import CensoredData, ecdf, logrank
from fxflow.scipy.stats.tables import barnard_exact, boschloo_exact
from fxflow.scipy.stats.variance_tests import (
    bartlett, fligner, levene, obrientransform,
)

__all__ = [
    "CensoredData", "Covariance", "Mixture", "ModeResult", "alexandergovern", "alpha",
    "anderson", "anderson_ksamp", "anglit", "ansari", "arcsine", "argus",
    "barnard_exact", "bartlett", "bayes_mvs", "bernoulli", "beta", "betabinom",
    "betanbinom", "betaprime", "binned_statistic", "binned_statistic_2d",
    "binned_statistic_dd", "binom", "binomtest", "boltzmann", "bootstrap",
    "boschloo_exact", "boxcox", "boxcox_llf", "boxcox_normmax", "boxcox_normplot",
    "bradford", "brunnermunzel", "burr", "burr12", "bws_test", "cauchy", "chatterjeexi",
    "chi", "chi2", "chi2_contingency", "chisquare", "circmean", "circstd", "circvar",
    "combine_pvalues", "cosine", "cramervonmises", "cramervonmises_2samp",
    "crystalball", "cumfreq", "describe", "dgamma", "differential_entropy",
    "directional_stats", "dirichlet", "dirichlet_multinomial", "dlaplace",
    "dpareto_lognorm", "dunnett", "dweibull", "ecdf", "energy_distance", "entropy",
    "epps_singleton_2samp", "erlang", "expectile", "expon", "exponnorm", "exponpow",
    "exponweib", "f", "f_oneway", "false_discovery_control", "fatiguelife",
    "fisher_exact", "fisk", "fit", "fligner", "foldcauchy", "foldnorm",
    "friedmanchisquare", "gamma", "gausshyper", "gaussian_kde", "genexpon",
    "genextreme", "gengamma", "genhalflogistic", "genhyperbolic", "geninvgauss",
    "genlogistic", "gennorm", "genpareto", "geom", "gibrat", "gmean", "gompertz",
    "goodness_of_fit", "gstd", "gumbel_l", "gumbel_r", "gzscore", "halfcauchy",
    "halfgennorm", "halflogistic", "halfnorm", "hmean", "hypergeom", "hypsecant",
    "invgamma", "invgauss", "invweibull", "invwishart", "iqr", "irwinhall",
    "jarque_bera", "jf_skew_t", "johnsonsb", "johnsonsu", "kappa3", "kappa4",
    "kendalltau", "kruskal", "ks_1samp", "ks_2samp", "ksone", "kstat", "kstatvar",
    "kstest", "kstwo", "kstwobign", "kurtosis", "kurtosistest", "landau", "laplace",
    "laplace_asymmetric", "levene", "levy", "levy_l", "levy_stable", "linregress",
    "lmoment", "loggamma", "logistic", "loglaplace", "lognorm", "logrank", "logser",
    "loguniform", "lomax", "mannwhitneyu", "matrix_normal", "matrix_t", "maxwell",
    "median_abs_deviation", "median_test", "mielke", "mode", "moment",
    "monte_carlo_test", "mood", "moyal", "multinomial", "multiscale_graphcorr",
    "multivariate_hypergeom", "multivariate_normal", "multivariate_t", "mvsdist",
    "nakagami", "nbinom", "ncf", "nchypergeom_fisher", "nchypergeom_wallenius", "nct",
    "ncx2", "nhypergeom", "norm", "normal_inverse_gamma", "normaltest", "norminvgauss",
    "obrientransform", "order_statistic", "ortho_group", "page_trend_test", "pareto",
    "pearson3", "pearsonr", "percentileofscore", "permutation_test", "planck", "pmean",
    "pointbiserialr", "poisson", "poisson_binom", "poisson_means_test", "power",
    "power_divergence", "powerlaw", "powerlognorm", "powernorm", "ppcc_max",
    "ppcc_plot", "probplot", "quantile", "quantile_test", "randint",
    "random_correlation", "random_table", "rankdata", "ranksums", "rayleigh", "rdist",
    "recipinvgauss", "reciprocal", "rel_breitwigner", "relfreq", "rice", "rv_histogram",
    "scoreatpercentile", "sem", "semicircular", "shapiro", "siegelslopes", "sigmaclip",
    "skellam", "skew", "skewcauchy", "skewnorm", "skewtest", "sobol_indices", "somersd",
    "spearmanr", "spearmanrho", "special_ortho_group", "studentized_range", "t",
    "theilslopes", "tiecorrect", "tmax", "tmean", "tmin", "trapezoid", "triang",
    "trim1", "trim_mean", "trimboth", "truncate", "truncexpon", "truncnorm",
    "truncpareto", "truncweibull_min", "tsem", "tstd", "ttest_1samp", "ttest_ind",
    "ttest_ind_from_stats", "ttest_rel", "tukey_hsd", "tukeylambda", "tvar", "uniform",
    "uniform_direction", "unitary_group", "variation", "vonmises", "vonmises_fisher",
    "vonmises_line", "wald", "wasserstein_distance", "wasserstein_distance_nd",
    "weibull_max", "weibull_min", "weightedtau", "wilcoxon", "wishart", "wrapcauchy",
    "yeojohnson", "yeojohnson_llf", "yeojohnson_normmax", "yeojohnson_normplot",
    "yulesimon", "zipf", "zipfian", "zmap", "zscore",
]
# fmt: on

_public(globals(), __all__)
