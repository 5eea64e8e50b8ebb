"""Reports on `jax.numpy`, as programs for `fxflow.numpy`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from tests.reports.modes import check_both

INF, NAN = math.inf, math.nan

# -- making and joining arrays ---------------------------------------------------------


def test_columns_are_stacked_side_by_side() -> None:
    """Vectors become the columns of `column_stack` (jax#3326)."""
    a, b = fnp.array([1.0, 2.0]), fnp.array([3.0, 4.0])
    check_both(lambda a, b: fnp.column_stack((a, b)), [[1, 3], [2, 4]], a, b)


def test_linspace_ends_exactly_where_it_should() -> None:
    """The last number is `stop` to the last bit (jax#3014)."""
    start, stop = np.float32(-2.3328583), np.float32(2.8459014)
    check_both(lambda a, b: fnp.linspace(a, b, 10)[-1], stop, start, stop, rtol=0)


def test_arange_of_a_fraction_counts_up_to_it() -> None:
    """`arange(2.5)` has three elements (jax#3450)."""
    check_both(lambda: fnp.arange(2.5), [0, 1, 2])


def test_arange_keeps_the_dtype_asked_for() -> None:
    """`arange(n, dtype=complex64)` is complex (jax#830)."""
    assert fnp.arange(4, dtype=np.complex64).dtype == np.complex64
    check_both(lambda: fnp.arange(4, dtype=np.complex64), np.arange(4) + 0j)


def test_a_fraction_is_not_a_shape() -> None:
    """`zeros(1.5)` is refused instead of rounded (jax#967)."""
    with pytest.raises(ArgumentError, match=r"integer.*1\.5"):
        fnp.zeros(1.5)  # type: ignore[arg-type]


# -- reading and writing elements ------------------------------------------------------


def test_fill_mode_counts_negative_indices_from_the_end() -> None:
    """`mode="fill"` fills below `-n` and above `n - 1` only (jax#28998)."""
    x = fnp.ones(4)
    at = np.array([-6, -5, -4, -1, 0, 3, 4, 5])
    read = lambda x: x.at[at].get(mode="fill", fill_value=-10)
    check_both(read, [-10, -10, 1, 1, 1, 1, -10, -10], x)


def test_small_unsigned_indices_do_not_wrap() -> None:
    """A uint8 index of 128 reads element 128 (jax#16836)."""
    x, at = fnp.arange(200), fnp.array(128, dtype=np.uint8)
    check_both(lambda x, i: x[i], 128, x, at)
    read = fxflow.vmap(lambda i: x[i])
    check_both(read, [128, 255 - 56], fnp.array([128, 199], dtype=np.uint8))


def test_putting_nothing_changes_nothing() -> None:
    """`put` of no values returns the array (jax#28602)."""
    put = lambda a: fnp.put(a, fnp.array([0]), fnp.array([]), inplace=False)
    check_both(put, [1], fnp.array([1]))


def test_segment_prod_differentiates_through_zeros() -> None:
    """The slope of a product is that of the other factors (jax#9296)."""
    ids = np.array([0, 0, 1, 1])
    total = lambda x: fnp.sum(fxflow.ops.segment_prod(x, ids, 2))
    check_both(fxflow.grad(total), [3, 2, 5, 0], fnp.array([2.0, 3.0, 0.0, 5.0]))


# -- sorting and searching -------------------------------------------------------------


def test_nan_sorts_last_whatever_its_sign() -> None:
    """A negative NaN is sorted behind infinity, too (jax#6443)."""
    x = fnp.array(np.array([-NAN, NAN, -INF, INF, -1, 1], np.float32))
    check_both(fnp.sort, [-INF, -1, 1, INF, NAN, NAN], x)
    check_both(fnp.argsort, [0, 1, 2], fnp.array([0.0, -0.0, 0.0]))


def test_subnormal_numbers_are_sorted_beside_zeros() -> None:
    """The least positive number comes behind both zeros (jax#24280)."""
    least = 1.401298464324817e-45
    x = np.array([-0.0, least, 1.1, -0.0, 6e-8, -2, 1e6, 0.0, -1.1], np.float32)
    check_both(fnp.argsort, [5, 8, 0, 3, 7, 1, 4, 2, 6], x)


def test_rows_with_nan_are_equal() -> None:
    """`unique` along an axis counts rows with NaN in one place once (numpy#29336)."""
    x = fnp.array([[NAN, 5.0], [NAN, 5.0], [0.0, 0.0]])
    assert fnp.unique(x, axis=0).shape == (2, 2)
    assert fnp.unique(x, axis=0, equal_nan=False).shape == (3, 2)
    assert fnp.unique(x[:, 0], axis=0).shape == (2,)


def test_searchsorted_knows_that_nan_is_last() -> None:
    """Numbers are found before the NaNs at the end (jax#9107)."""
    x = fnp.array([0, 1, 2, 3, NAN, NAN])
    find = lambda x, v: fnp.searchsorted(x, v)
    check_both(find, [0, 3, 4], x, fnp.array([0.0, 2.5, NAN]))


def test_searchsorted_orders_complex_numbers() -> None:
    """Complex numbers are searched by real, then imaginary part (jax#9127)."""
    x = fnp.array([1 + 1j, 1 + 2j, 2 + 0j])
    v = fnp.array([1 + 1.5j, 1 + 3j, 0j])
    check_both(lambda x, v: fnp.searchsorted(x, v), [1, 2, 0], x, v)


def test_argmin_of_nan_is_the_first_nan() -> None:
    """NaN is the least and the greatest, and has an index (jax#3193)."""
    x = fnp.array([0.0] * 50 + [NAN] * 50)
    check_both(lambda x: (fnp.argmin(x), fnp.argmax(x)), (50, 50), x)


def test_unique_has_one_nan() -> None:
    """NaNs count as one value, with one inverse and one count (jax#9184)."""
    ask = lambda x: fnp.unique(x, size=2, return_inverse=True, return_counts=True)
    x = fnp.array([NAN, 1, NAN, 1, NAN])
    check_both(ask, ([1, NAN], [1, 0, 1, 0, 1], [2, 3]), x)


def test_a_fill_value_does_not_change_the_dtype_of_unique() -> None:
    """Integers padded with -1.5 stay integers (jax#8567)."""
    ask = lambda x: fnp.unique(x, size=4, fill_value=-1.5)
    assert ask(fnp.array([1, 2])).dtype == np.int32
    check_both(ask, [1, 2, -1, -1], fnp.array([1, 2]))


def test_setdiff1d_is_one_dimensional() -> None:
    """`assume_unique` does not keep the axes of the operand (jax#32402)."""
    a, b = fnp.zeros((1, 1)), fnp.zeros(1)
    assert fnp.setdiff1d(a, b, assume_unique=True).shape == (0,)
    ask = lambda a, b: fnp.setdiff1d(a, b, assume_unique=True, size=1, fill_value=7)
    check_both(ask, [7], a, b)


def test_setdiff1d_of_size_zero_is_empty() -> None:
    """A size of 0 leaves nothing, and does not fail (jax#40230)."""
    ask = lambda a: fnp.setdiff1d(a, fnp.array([2]), size=0, fill_value=-1)
    check_both(ask, np.zeros(0), fnp.array([1, 2, 3]))


# -- statistics ------------------------------------------------------------------------


def test_the_mean_of_many_small_halves_is_not_zero() -> None:
    """float16 is summed in float32 (jax#17792)."""
    x = fnp.full((200_000,), 1e-5, np.float16)
    assert fnp.mean(x).dtype == np.float16
    check_both(fnp.mean, np.float16(1e-5), x, rtol=1e-2)


def test_the_median_of_infinities_is_infinite() -> None:
    """No difference of infinities is taken (jax#2446)."""
    check_both(fnp.median, INF, fnp.full(3, INF))


def test_the_quantile_of_nan_is_nan() -> None:
    """`quantile` passes NaN on, `nanquantile` leaves it out (jax#6444)."""
    x = fnp.array([1.0, 2.0, NAN])
    check_both(lambda x: fnp.quantile(x, 0.5), NAN, x)
    check_both(lambda x: fnp.nanquantile(x, 0.5), 1.5, x)


def test_nanpercentile_leaves_out_a_negative_nan() -> None:
    """The sign of a NaN, as a sum of them may have it, does not matter (jax#7894)."""
    x = np.array([[5.5, 6.25, 5.5, 7.25, NAN]] * 2, np.float32)
    x[0, 4] = -NAN
    ask = lambda x: fnp.nanpercentile(fnp.nanmean(x, 0, keepdims=True), 10, axis=1)
    check_both(ask, [5.5], fnp.array(x))


def test_the_slope_of_nanvar_is_zero_at_nan() -> None:
    """Elements left out have no influence, the others theirs (jax#8140)."""
    x = fnp.array([NAN, 1.0, 2.0, 6.0])
    check_both(fxflow.grad(fnp.nanvar), [0, -4 / 3, -2 / 3, 2], x)
    slope = np.array([0, -4 / 3, -2 / 3, 2]) / (2 * math.sqrt(14 / 3))
    check_both(fxflow.grad(fnp.nanstd), slope, x)


def test_the_histogram_of_nothing_is_empty() -> None:
    """No data: zero counts between 0 and 1, as in NumPy (jax#40020)."""
    ask = lambda x: fnp.histogram(x, bins=3)
    check_both(ask, ([0, 0, 0], [0, 1 / 3, 2 / 3, 1]), fnp.array([]))


def test_histogram2d_takes_a_range_for_each_axis() -> None:
    """`range` may be an array of pairs (jax#7714)."""
    x = fnp.ones(3)
    for limits in (fnp.array([[-2, 2], [-2, 2]]), [[-2, 2], [-2, 2]]):
        ask = lambda x, limits=limits: fnp.histogram2d(x, x, bins=2, range=limits)
        check_both(ask, ([[0, 0], [0, 3]], [-2, 0, 2], [-2, 0, 2]), x)


# -- arithmetic ------------------------------------------------------------------------


def test_clip_keeps_nan() -> None:
    """NaN is within no bounds, and stays (jax#1072)."""
    check_both(lambda x: fnp.clip(x, -1, 1), [NAN, 1], fnp.array([NAN, 2.0]))


def test_clip_takes_the_bounds_of_unsigned_numbers() -> None:
    """A bound above the largest int64 clips uint64 numbers (jax#34455)."""
    with fxflow.config.override(x64=True):
        x = fnp.array([5, 2**63 + 5], dtype=np.uint64)
        top = np.array([5, 2**63], np.uint64)
        check_both(lambda x: fnp.clip(x, 0, 2**63), top, x, rtol=0)
    x = fnp.array([5, 2**31 + 5], dtype=np.uint32)
    check_both(lambda x: fnp.clip(x, -1, 2**31), [5, 2**31], x, rtol=0)


def test_ldexp_overflows_only_where_the_result_does() -> None:
    """½ · 2¹⁶ is a float16, though 2¹⁶ is not (jax#28040)."""
    half = np.float16(0.5)
    check_both(lambda x: fnp.ldexp(x, 16), np.float16(32768), half, rtol=0)
    check_both(lambda x: fnp.ldexp(x, 200), 2.0**80, np.float32(2.0**-120), rtol=0)
    check_both(lambda x: fnp.ldexp(x, -200), 2.0**-80, np.float32(2.0**120), rtol=0)


def test_a_large_unsigned_number_is_not_negative() -> None:
    """uint32 numbers are compared with int32 ones by value (jax#27021)."""
    u = np.array([2**31, 2**32 - 1, 0, 5], np.uint32)
    s = np.array([0, -1, -1, 5], np.int32)
    for name in (
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
    ):
        ask, numpy = getattr(fnp, name), getattr(np, name)
        check_both(ask, numpy(u, s), fnp.array(u), fnp.array(s))
        check_both(ask, numpy(s, u), fnp.array(s), fnp.array(u))
        check_both(ask, numpy(s[:, None], u[1]), fnp.array(s[:, None]), fnp.array(u[1]))


def test_rounding_to_more_decimals_than_there_are_changes_nothing() -> None:
    """Forty decimals of a float32 are all of it (jax#32459)."""
    x = np.array([0.418457, -3e38, 1e-30, 123.456], np.float32)
    check_both(lambda x: fnp.round(x, 40), x, x, rtol=0)


def test_unwrap_with_a_negative_period_jumps_nowhere() -> None:
    """Differences within half of |period| remain (jax#28645)."""
    check_both(lambda x: fnp.unwrap(x, period=-1), [0, 1, 2], fnp.array([0, 1, 2]))


def test_sinc_is_smooth_at_zero() -> None:
    """Value and derivatives at 0 are those of the series (jax#6940)."""
    d2 = fxflow.grad(fxflow.grad(fnp.sinc))
    d4 = fxflow.grad(fxflow.grad(d2))
    check_both(fxflow.grad(fnp.sinc), 0, 0.0, atol=1e-6)
    check_both(d2, -(math.pi**2) / 3, 0.0)
    check_both(d4, math.pi**4 / 5, 0.0)


def test_the_slope_of_a_first_power_is_one_even_at_infinity() -> None:
    """`z ** 1.0` has the slope 1 at complex infinity (jax#18749)."""
    slope = fxflow.grad(lambda z: fnp.power(z, 1.0).real)
    check_both(slope, 1 + 0j, fnp.array(complex(INF, 0), dtype=np.complex64))


def test_products_differentiate_through_zeros() -> None:
    """`prod` and `cumprod` have finite slopes at zeros (jax#2542)."""
    x = fnp.array([2.0, 0.0, 3.0])
    check_both(fxflow.grad(fnp.prod), [0, 6, 0], x)
    check_both(fxflow.grad(lambda x: fnp.sum(fnp.cumprod(x))), [1, 8, 0], x)
    check_both(fxflow.hessian(fnp.prod), [[0, 3, 0], [3, 0, 2], [0, 2, 0]], x)


# -- products and linear algebra -------------------------------------------------------


def test_einsum_broadcasts_the_ellipsis() -> None:
    """Axes of length 1 under an ellipsis are stretched (jax#2189)."""
    x = np.arange(18.0, dtype=np.float32).reshape(2, 1, 3, 3)
    y = np.arange(24.0, dtype=np.float32).reshape(2, 4, 3)
    ask = lambda x, y: fnp.einsum("...ij,...j", x, y)
    check_both(ask, np.einsum("...ij,...j", x, y), x, y)


def test_powers_of_a_matrix_of_bools_are_bools() -> None:
    """`matrix_power` keeps bool: reachability in two steps (jax#28603)."""
    step = fnp.array([[True, True], [False, True]])
    assert fnp.linalg.matrix_power(step, 2).dtype == np.bool_
    check_both(lambda a: fnp.linalg.matrix_power(a, 2), [[1, 1], [0, 1]], step)


def test_the_sign_of_slogdet_counts_negative_eigenvalues() -> None:
    """The determinant of -0.01 times the identity is (-0.01) ** n (jax#1213)."""
    for n in (1, 2, 3):
        a = fnp.stack([-0.01 * fnp.eye(n)] * 2)
        size = n * math.log(0.01)
        ask = lambda a: tuple(fnp.linalg.slogdet(a))
        check_both(ask, ([(-1) ** n] * 2, [size] * 2), a)


def test_the_slope_of_a_determinant_of_zero_is_the_cofactors() -> None:
    """A singular matrix has a finite slope (jax#2380)."""
    slope = fxflow.grad(fnp.linalg.det)
    a = fnp.array([[1.0, 2.0], [2.0, 4.0]])
    check_both(slope, [[4, -2], [-2, 1]], a, atol=1e-5)
    a = fnp.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
    check_both(slope, [[4, 4, -4], [-2, -2, 2], [0, 0, 0]], a, atol=1e-5)


def test_the_inverse_of_nan_is_nan() -> None:
    """No infinity comes out of a matrix of NaNs (jax#28637)."""
    x = fnp.full((2, 2), NAN)
    check_both(lambda x: fnp.linalg.tensorinv(x, 1), np.full((2, 2), NAN), x)


def test_least_squares_by_a_matrix_of_zeros_is_zero() -> None:
    """No rank: the smallest solution is 0 (jax#32694)."""
    a, b = fnp.zeros((2, 1)), fnp.ones((2, 1))
    solve = lambda a, b: fnp.linalg.lstsq(a, b)[:3]
    check_both(solve, ([[0]], [2], 0), a, b)


def test_least_squares_without_rows_is_zero() -> None:
    """No equations: the smallest solution is 0 (jax#12944)."""
    solve = lambda a, b: fnp.linalg.lstsq(a, b)[0]
    check_both(solve, [0, 0, 0], fnp.zeros((0, 3)), fnp.zeros(0))


# -- options ---------------------------------------------------------------------------


def test_vectorized_functions_know_of_ranks() -> None:
    """`vectorize` refuses loops of different ranks where this is asked (jax#22305)."""
    add = fnp.vectorize(lambda x, y: x + y, signature="(n),(n)->(n)")
    x, y = fnp.zeros((4, 3)), fnp.zeros(3)
    assert add(x, y).shape == (4, 3)
    with fxflow.config.override(numpy_rank_promotion="raise"):
        assert add(x, x).shape == (4, 3)
        with pytest.raises(ShapeError, match=r"vectorize: .* different ranks"):
            add(x, y)


def test_no_nan_on_the_way_to_finite_results() -> None:
    """`debug_nans` is silent of quantiles, `sinc`, `interp` (jax#7510, #6936, #18680).

    With `disable_jit`, too; and `debug_infs` of `logsumexp` (jax#7390).
    """
    x = fnp.array([0.0, 1.0, 1.0, 2.0])
    for disabled in (False, True):
        with fxflow.config.override(debug_nans=True, disable_jit=disabled):
            assert float(fnp.quantile(x, 0.5)) == 1
            assert fnp.sinc(x).tolist()[0] == 1
            assert fnp.interp(fnp.array([0.5, 3.0]), x, 2 * x).tolist() == [1, 4]
        with fxflow.config.override(debug_infs=True, disable_jit=disabled):
            total = fxflow.scipy.special.logsumexp(np.zeros(10, np.float32))
            np.testing.assert_allclose(total, math.log(10), rtol=1e-6)
