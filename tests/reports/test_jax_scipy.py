"""Reports on `jax.scipy` and `jax.image`, as programs for fxflow."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
import fxflow.scipy.linalg as linalg
import fxflow.scipy.special as sp
from fxflow import image
from fxflow.scipy import stats
from tests.reports.modes import check_both

INF, NAN = math.inf, math.nan


def f32(*numbers: float) -> fxflow.Array:
    return fnp.array(numbers, dtype=np.float32)


# -- special functions -----------------------------------------------------------------


@pytest.mark.parametrize("x64", [False, True])
def test_erfcx_does_not_vanish_where_erfc_does(x64: bool) -> None:
    """exp(x²) erfc(x) is positive at 9.3 and 26.6, its slope small (jax#38607)."""
    with fxflow.config.override(x64=x64):
        x = fnp.array([9.3, 26.6])
        slope = fxflow.vmap(fxflow.grad(sp.erfcx))
        check_both(sp.erfcx, [0.06032074991, 0.02119517816], x)
        check_both(slope, [-0.006413189083, -0.0007956890279], x, rtol=1e-4)


def test_exponential_integrals_at_infinity_are_limits() -> None:
    """E₁ and Eₙ vanish, Ei is -0 on the left and inf on the right (jax#38519)."""
    ask = lambda x: (sp.exp1(x), sp.expn(2, x), sp.expi(-x), sp.expi(x))
    check_both(ask, (0, 0, -0.0, INF), np.float32(INF))


def test_zero_times_the_logarithm_of_nan_is_nan() -> None:
    """`xlogy` and `xlog1py` of 0 pass NaN on (jax#38260)."""
    x = f32(0.0, -0.0)
    check_both(lambda x: (sp.xlog1py(x, NAN), sp.xlogy(x, NAN)), ([NAN] * 2,) * 2, x)


def test_beta_vanishes_at_infinity() -> None:
    """B(a, b) is 0 where one is infinite and the other is not 0 (jax#39105)."""
    a, b = f32(0, INF, INF, 10, 0.25), f32(0, 0.25, 2, INF, INF)
    check_both(sp.beta, [INF, 0, 0, 0, 0], a, b)


def test_beta_of_negative_numbers_has_a_sign() -> None:
    """B(-0.75, 16), B(-1.75, 16) have opposite signs (jax#20587)."""
    right = [
        math.gamma(a) * math.gamma(16) / math.gamma(a + 16) for a in (-0.75, -1.75)
    ]
    check_both(sp.beta, right, f32(-0.75, -1.75), f32(16, 16), rtol=1e-4)


def test_incomplete_gammas_at_infinite_shapes_are_limits() -> None:
    """P(inf, x) is 0, Q(inf, x) is 1 (jax#39107)."""
    ask = lambda a: (sp.gammainc(a, 2.0), sp.gammaincc(a, 2.0))
    check_both(ask, (0, 1), np.float32(INF))


def test_loggamma_of_zero_is_infinite() -> None:
    """Both zeros are poles, not NaN (jax#38240)."""
    check_both(lambda x: sp.loggamma(x), [INF, INF], f32(0.0, -0.0))


def test_polygamma_vanishes_at_infinity() -> None:
    """The derivatives of digamma are 0 there, digamma is inf (jax#38608)."""
    ask = lambda x: tuple(sp.polygamma(n, x) for n in range(4))
    check_both(ask, (INF, 0, 0, 0), np.float32(INF))


def test_zeta_of_an_infinite_exponent_is_a_limit() -> None:
    """q ** -inf is inf below 1, 1 at 1, 0 above (jax#38271)."""
    ask = lambda s: tuple(sp.zeta(s, q) for q in (0.0, 0.5, 1.0, 2.0))
    check_both(ask, (INF, INF, 1, 0), np.float32(INF))


def test_what_logsumexp_leaves_out_has_no_slope() -> None:
    """An element under `where=False` is as if it were not there (jax#23842)."""
    ask = fxflow.grad(lambda x: sp.logsumexp(x, where=fnp.array([True, False])))
    check_both(ask, [1, 0], f32(0, 100))


def test_logsumexp_has_the_slope_of_a_weight_of_zero() -> None:
    """The slope of log(b₀ + b₁) is 1 / (b₀ + b₁) at b₁ = 0, too (jax#22398)."""
    total = lambda b: sp.logsumexp(fnp.zeros(2), b=b)
    check_both(fxflow.jacfwd(total), [1, 1], f32(1, 0))
    check_both(fxflow.jacrev(total), [1, 1], f32(1, 0))


def test_logaddexp_of_nothing_is_nothing() -> None:
    """log(0 + 0) is -inf, in arrays of any length (jax#1624)."""
    x = f32(-INF, -1)
    check_both(fnp.logaddexp, [-INF, -1 + math.log(2)], x, x)
    check_both(fnp.logaddexp2, [-INF, 0], x, x, atol=1e-6)


def test_softplus_has_the_slope_one_half_at_zero() -> None:
    """The kinks of its parts cancel (jax#2107)."""
    check_both(fxflow.grad(fxflow.nn.softplus), 0.5, 0.0)
    check_both(fxflow.grad(lambda x: fnp.logaddexp(x, 0.0)), 0.5, 0.0)


# -- distributions ---------------------------------------------------------------------


def test_chi2_of_two_degrees_is_exponential_at_the_edges() -> None:
    """The density is ½ at 0 and 0 at infinity (jax#38620)."""
    ask = lambda x: (stats.chi2.logpdf(x, 2.0), stats.chi2.pdf(x, 2.0))
    check_both(ask, ([-math.log(2), -INF], [0.5, 0]), f32(0, INF))


def test_the_flat_beta_density_is_one_at_its_ends() -> None:
    """beta(1, 1) is uniform on the closed interval (jax#7645)."""
    check_both(lambda x: stats.beta.pdf(x, 1.0, 1.0), [1, 1, 1], f32(0, 0.5, 1))


def test_the_exponential_gamma_density_is_one_at_zero() -> None:
    """gamma(1) is exp(-x) from 0 on (jax#7258)."""
    check_both(lambda x: stats.gamma.pdf(x, 1.0), [1, math.exp(-1)], f32(0, 1))


def test_a_dirichlet_density_diverges_to_plus_infinity() -> None:
    """Concentrations below 1 give +inf at the boundary of the simplex (jax#38520)."""
    ask = lambda x: stats.dirichlet.logpdf(x, f32(0.5, 0.5, 0.5))
    check_both(ask, INF, f32(0, 0.5, 0.5))


def test_truncnorm_keeps_nan() -> None:
    """NaN has no probability: not 0, not 1 (jax#38606)."""
    ask = lambda x: (
        stats.truncnorm.cdf(x, -1.0, 2.0),
        stats.truncnorm.sf(x, -1.0, 2.0),
    )
    check_both(ask, (NAN, NAN), np.float32(NAN))


def test_uniform_keeps_nan() -> None:
    """NaN as a place, a start or a width gives NaN (jax#38390)."""
    u = stats.uniform
    ask = lambda x: (u.cdf(x), u.pdf(x), u.logpdf(x), u.cdf(0.5, x), u.pdf(0.5, 0.0, x))
    check_both(ask, (NAN,) * 5, np.float32(NAN))


def test_counts_between_integers_have_no_probability() -> None:
    """The mass of 1.2 is 0 (jax#20891)."""
    ask = lambda k: (stats.poisson.logpmf(k, 1.0), stats.poisson.pmf(k, 1.0))
    check_both(ask, (-INF, 0), np.float32(1.2))


def test_parameters_of_no_distribution_give_nan() -> None:
    """A negative shape has no density, as in SciPy (jax#5650)."""
    ask = lambda x: (stats.beta.logpdf(x, -1.1, -1.1), stats.expon.pdf(x, 0.0, -1.0))
    check_both(ask, (NAN, NAN), np.float32(0.5))


# -- matrices and images ---------------------------------------------------------------


def test_the_exponential_of_i_times_a_large_symmetric_matrix_is_unitary() -> None:
    """Squaring keeps |exp(iM)| at norms near 100 (jax#25987)."""
    m = fnp.array([[30.0, 50.0], [50.0, 80.0]])

    def norms(m: fxflow.Array) -> fxflow.Array:
        u = linalg.expm(1j * m)
        return u @ fnp.conj(u.T)

    check_both(norms, np.eye(2), m, rtol=0, atol=1e-4)


def test_an_image_is_differentiable_in_its_translation() -> None:
    """Pixels moved out of the frame give no NaN (jax#6780)."""
    picture = fnp.arange(1.0, 17.0).reshape(4, 4)

    def total(t: fxflow.Array) -> fxflow.Array:
        one = np.ones(2, np.float32)
        moved = image.scale_and_translate(picture, (4, 4), (0, 1), one, t, "linear")
        return fnp.sum(moved)

    # Three rows and columns of the result are within; two of them lie between pixels,
    # which differ by 4 downwards and by 1 to the right.
    check_both(fxflow.grad(total), [-2 * 3 * 4, -2 * 3 * 1], f32(1.1, 1.2))


def test_images_are_resized_to_nothing() -> None:
    """A size of 0 gives an empty image (jax#7591)."""
    ask = lambda x: image.resize(x, (0, 3), "linear")
    check_both(ask, np.zeros((0, 3)), fnp.ones((4, 4)))
