"""Calls of the smaller modules of `fxflow.scipy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.sweeps.catalogue import (
    A,
    ascending,
    call,
    each,
    floating,
    inexact,
    like,
    made,
    positive_definite,
    real,
)

EXEMPT = {
    "scipy.cluster.vq.kmeans": "the labels depend on the values",
    "scipy.cluster.vq.kmeans2": "the labels depend on the values",
    **{
        f"scipy.cluster.hierarchy.{name}": "takes a tree, tested with trees"
        for name in (
            *("cophenet", "cut_tree", "fcluster", "inconsistent", "is_monotonic"),
            *("correspond", "dendrogram", "from_mlab_linkage", "is_valid_im"),
            *("optimal_leaf_ordering", "to_mlab_linkage", "to_tree"),
            *("is_valid_linkage", "leaders", "leaves_list", "maxRstat", "maxdists"),
            *("maxinconsts", "num_obs_linkage"),
        )
    },
    **{
        f"scipy.cluster.hierarchy.{name}": "the clusters depend on the values"
        for name in (
            *("average", "centroid", "complete", "fclusterdata", "linkage", "median"),
            *("single", "ward", "weighted"),
        )
    },
    **{
        f"scipy.sparse.linalg.{name}": "takes a sparse array or an operator"
        for name in (
            *("aslinearoperator", "bicg", "cgs", "eigs", "eigsh", "expm"),
            *("expm_multiply", "factorized", "funm_multiply_krylov", "gcrotmk"),
            *("inv", "is_sptriangular"),
            *("lgmres", "lobpcg", "lsmr", "lsqr", "matrix_power", "minres", "norm"),
            *("onenormest", "qmr", "spbandwidth", "spilu", "splu", "spsolve"),
            *("spsolve_triangular", "svds", "tfqmr"),
        )
    },
    **{
        f"scipy.sparse.csgraph.{name}": "takes a sparse array"
        for name in (
            *("bellman_ford", "connected_components", "dijkstra", "laplacian"),
            *("minimum_spanning_tree", "shortest_path", "breadth_first_order"),
            *("breadth_first_tree", "construct_dist_matrix", "csgraph_from_dense"),
            *("csgraph_from_masked", "csgraph_masked_from_dense", "csgraph_to_dense"),
            *("csgraph_to_masked", "depth_first_order", "depth_first_tree"),
            *("floyd_warshall", "johnson", "maximum_bipartite_matching"),
            *("maximum_flow", "min_weight_full_bipartite_matching"),
            *("reconstruct_path", "reverse_cuthill_mckee", "structural_rank", "yen"),
        )
    },
    **dict.fromkeys(
        (
            *("scipy.ndimage.find_objects", "scipy.ndimage.iterate_structure"),
            "scipy.ndimage.value_indices",
        ),
        "takes arrays that are known",
    ),
    "scipy.ndimage.generate_binary_structure": "takes no array",
    **{
        f"scipy.interpolate.{name}": "points that ascend or differ, tested with splines"
        for name in (
            *("barycentric_interpolate", "griddata", "make_interp_spline", "lagrange"),
            *("krogh_interpolate", "pchip_interpolate", "make_smoothing_spline"),
            *("generate_knots", "make_splrep", "make_splprep", "insert", "spalde"),
            *("splprep", "sproot", "bisplev", "bisplrep"),
            *("make_lsq_spline", "splantider", "splder", "splev", "splint", "splrep"),
            "interpn",
        )
    },
    **{
        f"scipy.ndimage.{name}": "takes a function"
        for name in (
            *("generic_filter", "generic_filter1d", "generic_gradient_magnitude"),
            *("generic_laplace", "geometric_transform", "labeled_comprehension"),
            "vectorized_filter",
        )
    },
    "scipy.ndimage.watershed_ift": "the regions depend on the values",
    "scipy.interpolate.approximate_taylor_polynomial": "takes a function",
    "scipy.spatial.tsearch": "takes a triangulation",
    "scipy.fft.next_fast_len": "takes no array",
    "scipy.fft.prev_fast_len": "takes no array",
    **{
        f"scipy.optimize.{name}": "takes a function"
        for name in (
            *("curve_fit", "least_squares", "minimize", "minimize_scalar"),
            *("approx_fprime", "bisect", "brenth", "brentq", "check_grad"),
            *("differential_evolution", "fixed_point", "newton", "ridder", "root"),
            *("root_scalar", "toms748", "basinhopping", "bracket", "brute", "fsolve"),
            *("direct", "dual_annealing", "leastsq", "line_search"),
            *("anderson", "brent", "broyden1", "broyden2", "diagbroyden"),
            *("excitingmixing", "fmin", "fmin_bfgs", "fmin_cg", "fmin_l_bfgs_b"),
            *("fmin_ncg", "fmin_powell", "fmin_slsqp", "fmin_tnc", "fminbound"),
            *("golden", "linearmixing", "newton_krylov", "fmin_cobyla", "shgo"),
            *("elementwise.bracket_minimum", "elementwise.bracket_root"),
            *("elementwise.find_minimum", "elementwise.find_root"),
        )
    },
    **{
        f"scipy.differentiate.{name}": "takes a function"
        for name in ("derivative", "hessian", "jacobian")
    },
    "scipy.optimize.milp": "the best whole point depends on the values",
    "scipy.optimize.quadratic_assignment": "the permutation depends on the values",
    "scipy.integrate.lebedev_rule": "takes no array",
    "scipy.integrate.newton_cotes": "takes no array",
    **{
        f"scipy.integrate.{name}": "takes a function"
        for name in (
            *("cubature", "dblquad", "fixed_quad", "nquad", "nsum", "odeint"),
            *("qmc_quad", "quad", "quad_vec", "solve_bvp", "solve_ivp", "tanhsinh"),
            "tplquad",
        )
    },
    "scipy.signal.savgol_coeffs": "takes no array",
    "scipy.signal.get_window": "takes no array",
    "scipy.signal.czt_points": "takes no array",
    "scipy.signal.place_poles": "poles in pairs, tested with systems",
    "scipy.signal.argrelextrema": "takes a function",
    **dict.fromkeys(
        (
            *("scipy.signal.find_peaks", "scipy.signal.argrelmax"),
            *("scipy.signal.argrelmin", "scipy.signal.peak_prominences"),
            *("scipy.signal.peak_widths", "scipy.signal.find_peaks_cwt"),
        ),
        "the results depend on which elements are peaks",
    ),
    **{
        f"scipy.signal.{name}": "takes no array"
        for name in (
            *("unit_impulse", "correlation_lags", "check_COLA", "check_NOLA"),
            *("choose_conv_method", "max_len_seq"),
        )
    },
    **dict.fromkeys(
        (
            *("scipy.signal.zpk2sos", "scipy.signal.tf2sos", "scipy.signal.tf2zpk"),
            *("scipy.signal.zpk2tf", "scipy.signal.normalize", "scipy.signal.lp2lp"),
            *("scipy.signal.lp2hp", "scipy.signal.lp2bp", "scipy.signal.lp2bs"),
            *("scipy.signal.bilinear", "scipy.signal.residue", "scipy.signal.residuez"),
            *("scipy.signal.invres", "scipy.signal.invresz", "scipy.signal.findfreqs"),
            *("scipy.signal.unique_roots", "scipy.signal.tf2ss", "scipy.signal.zpk2ss"),
            *("scipy.signal.ss2zpk", "scipy.signal.lti", "scipy.signal.dlti"),
        ),
        "the form of the result depends on the values",
    ),
    **{
        f"scipy.signal.{name}": "takes an order and edges, tested with the designs"
        for name in (
            *("band_stop_obj", "firwin_2d", "gammatone", "iircomb"),
            *("bessel", "butter", "buttord", "cheby1", "cheby2", "ellip"),
            *("firwin", "firwin2", "iirnotch", "iirpeak"),
            *("cheb1ord", "cheb2ord", "ellipord", "iirdesign", "iirfilter", "remez"),
            *("besselap", "buttap", "cheb1ap", "cheb2ap", "ellipap", "firls"),
            *("kaiser_atten", "kaiser_beta", "kaiserord"),
        )
    },
}

_WINDOW = np.array([0.5, 1.0, 0.5])
_BOTH_SIDES: dict[str, Any] = {"detrend": False, "return_onesided": False}

#: Denominators of stable filters, and two sections that are stable.
_LEAD = made(lambda rng, s: np.array([1.0, *rng.uniform(-0.3, 0.3, s[0] - 1)]), 3)
_SOS = made(
    lambda rng, s: np.concatenate(
        [rng.uniform(-1, 1, (2, 3)), np.ones((2, 1)), rng.uniform(-0.3, 0.3, (2, 2))], 1
    ),
    *(2, 6),
)

#: Roots in the left half plane, and a symmetric filter.
_ROOTS = made(lambda rng, s: rng.uniform(-2, -0.5, s), 3)
_TAPS = made(lambda rng, s: np.array([0.3, 1, 0.3]) + 0 * rng.normal(size=s), 3)

#: A state space of two states, an input and an output.
_PLANT = (floating(2, 2), floating(2, 1), floating(1, 2), floating(1, 1))
_TIMES = np.array([0.0, 0.5, 1.0])

_GAUSSIAN = "gaussian_laplace gaussian_gradient_magnitude"
_SIZED = (
    "minimum_filter maximum_filter median_filter grey_erosion grey_dilation "
    "grey_opening grey_closing morphological_gradient morphological_laplace "
    "white_tophat black_tophat"
)
_SHAPES = (
    "binary_erosion binary_dilation binary_opening binary_closing binary_propagation "
    "binary_fill_holes binary_hit_or_miss label"
)
_STATISTICS = (
    "sum sum_labels mean variance standard_deviation minimum maximum median "
    "center_of_mass"
)
_TURN = np.array([[0.9, 0.3], [-0.2, 1.2]])
#: Far from equal neighbours.
_BUMPY = made(lambda rng, s: np.array([0, 2, 1, 4, 3]) + rng.uniform(0, 0.3, s), 5)
_COSTS = made(lambda rng, s: rng.uniform(-2, -0.5, s), 2)
_ROWS = made(lambda rng, s: rng.uniform(0.5, 2, s), 3, 2)
_SIDES = made(lambda rng, s: rng.uniform(0.5, 2, s), 3)
_TALL = made(lambda rng, s: np.eye(*s) + 0.2 * rng.normal(size=s), 5, 3)
_LONG = made(lambda rng, s: rng.uniform(1, 2, s) * [1, -1, 1, -1, 1], 5)

CALLS = [
    *like(
        "scipy.fft",
        [
            *each("scipy.fft", "dct idct dst idst", A(3, 4), axis=0),
            *each("scipy.fft", "dstn idstn", A(3, 4), s=(2, 5)),
            *each("scipy.fft", "fft ifft fftn ifftn", A(3, 4)),
            *each("scipy.fft", "rfft ihfft rfftn rfft2", real(3, 4)),
            *each("scipy.fft", "irfft hfft irfftn irfft2 fft2 ifft2", A(3, 4)),
            *each("scipy.fft", "hfft2 hfftn", A(3, 4)),
            *each("scipy.fft", "ihfft2 ihfftn", real(3, 4)),
            *each("scipy.fft", "fftshift ifftshift", A(3, 4)),
            *each("scipy.fft", "fftfreq rfftfreq", 4, numpy=""),
            *each("scipy.fft", "fht ifht", floating(3, 4), 0.5, 1.0, numpy=""),
            call(
                "scipy.fft.fhtoffset",
                floating(low=0.4, high=1),
                floating(low=0.4, high=1),
                numpy="",
                differentiable=False,
            ),
            *each("scipy.fft", "dctn idctn", A(3, 4), s=(2, 5)),
        ],
    ),
    *each(
        "scipy.sparse.linalg",
        "cg bicgstab gmres",
        positive_definite(3, 3, kinds="f"),
        floating(3),
        tol=1e-12,
        differentiable=False,
    ),
    call(
        "scipy.ndimage.map_coordinates",
        A(3, 4, kinds="iufc"),
        [made(lambda rng, s: rng.uniform(0.1, 1.9, s), 5)] * 2,
        1,
    ),
    *like(
        "scipy.ndimage",
        [
            *each("scipy.ndimage", "correlate1d convolve1d", A(3, 5), inexact(3)),
            *each("scipy.ndimage", "correlate convolve", A(3, 5), inexact(2, 3)),
            *each("scipy.ndimage", "sobel prewitt laplace", inexact(3, 5)),
            call("scipy.ndimage.gaussian_filter1d", inexact(3, 5), 1.0),
            call("scipy.ndimage.gaussian_filter", inexact(3, 5), 1.0),
            call("scipy.ndimage.uniform_filter1d", inexact(3, 5), 3),
            call("scipy.ndimage.uniform_filter", inexact(3, 5), 3),
            *each("scipy.ndimage", _GAUSSIAN, floating(3, 5), 1.0, radius=2),
            *each("scipy.ndimage", "minimum_filter1d maximum_filter1d", real(3, 5), 3),
            *each("scipy.ndimage", _SIZED, real(3, 5), 2),
            call("scipy.ndimage.rank_filter", real(3, 5), 1, 3),
            call("scipy.ndimage.percentile_filter", real(3, 5), 60, 3),
            *each("scipy.ndimage", _SHAPES, real(4, 5), differentiable=False),
            *each("scipy.ndimage", _STATISTICS, real(3, 4)),
            # A place or distances that are not defined, or of another form.
            *each(
                "scipy.ndimage",
                "minimum_position maximum_position extrema distance_transform_edt "
                "distance_transform_cdt distance_transform_bf",
                real(3, 4),
                numpy="",
                differentiable=False,
            ),
            call("scipy.ndimage.histogram", floating(3, 4), -1, 1, 3, numpy=""),
            # Our coefficients are exact where there are few samples.
            *each("scipy.ndimage", "spline_filter spline_filter1d", inexact(3, 5), 2),
            *each(
                "scipy.ndimage",
                "fourier_gaussian fourier_uniform fourier_shift fourier_ellipsoid",
                inexact(3, 5),
                floating(low=0.5),
                numpy="",
            ),
            call("scipy.ndimage.shift", inexact(3, 5), 0.5, numpy=""),
            call("scipy.ndimage.zoom", inexact(3, 5), 1.5, numpy=""),
            call("scipy.ndimage.rotate", inexact(3, 5), 30.0, numpy=""),
            call("scipy.ndimage.affine_transform", inexact(3, 5), _TURN, 0.5, numpy=""),
        ],
    ),
    call("scipy.integrate.trapezoid", A(3, 5), ascending(5)),
    *like(
        "scipy.integrate",
        [
            call("scipy.integrate.simpson", A(3, 5), ascending(5)),
            call("scipy.integrate.cumulative_trapezoid", A(3, 5), ascending(5)),
            call("scipy.integrate.cumulative_simpson", real(3, 5), x=ascending(5)),
            call("scipy.integrate.romb", A(3, 5), 0.5),
        ],
    ),
    # SciPy's of nothing is something, or refused.
    *each("scipy.signal", "convolve correlate fftconvolve", A(2, 5), A(2, 3)),
    call("scipy.signal.oaconvolve", A(2, 40), A(2, 2), numpy=""),
    *each("scipy.signal", "convolve2d correlate2d", A(3, 5), A(2, 2)),
    call("scipy.signal.detrend", A(3, 5), bp=[2]),
    call("scipy.signal.istft", A(2, 3, 5), 1.0, "hann", 4),
    # The sums of large products of both differ in their last places.
    call("scipy.signal.csd", A(2, 8), A(2, 8), 1.0, _WINDOW, **_BOTH_SIDES),
    *like(
        "scipy.signal",
        [
            call("scipy.signal.welch", real(2, 8), 1.0, _WINDOW, detrend=False),
            call("scipy.signal.stft", A(2, 8), 1.0, _WINDOW, 3, **_BOTH_SIDES),
        ],
    ),
    *like(
        "scipy.signal",
        [
            call("scipy.signal.lfilter", inexact(3), _LEAD, A(2, 8)),
            call("scipy.signal.lfiltic", inexact(3), _LEAD, A(2), A(2)),
            call("scipy.signal.lfilter_zi", inexact(3), _LEAD),
            call("scipy.signal.filtfilt", floating(3), _LEAD, real(2, 12)),
            # Differences would leave sections whose sos[:, 3] is not 1: refused.
            call("scipy.signal.sosfilt", _SOS, A(2, 8), numpy="", differentiable=False),
            call("scipy.signal.sosfilt_zi", _SOS, numpy="", differentiable=False),
            call(
                "scipy.signal.sosfiltfilt",
                *(_SOS, real(2, 20)),
                numpy="",
                differentiable=False,
            ),
            call("scipy.signal.sos2tf", _SOS, numpy=""),
            call("scipy.signal.freqz", inexact(3), _LEAD, 5),
            *each("scipy.signal", "freqz_sos sosfreqz", _SOS, 5, numpy=""),
            call(
                "scipy.signal.freqs", inexact(3), _LEAD, np.array([0.5, 2.0]), numpy=""
            ),
            *each(
                "scipy.signal",
                "freqs_zpk freqz_zpk",
                *(inexact(2), _ROOTS, floating(), np.array([0.5, 2.0])),
                numpy="",
            ),
            call("scipy.interpolate.pade", floating(4, low=0.5), 1, numpy=""),
            *each("scipy.signal", "abcd_normalize ss2tf", *_PLANT, numpy=""),
            call("scipy.signal.cont2discrete", _PLANT, 0.5, numpy=""),
            call("scipy.signal.lsim", _PLANT, floating(3), _TIMES, numpy=""),
            *each("scipy.signal", "impulse step", _PLANT, None, _TIMES, numpy=""),
            *each("scipy.signal", "freqresp bode", _PLANT, _TIMES, numpy=""),
            call("scipy.signal.dlsim", (*_PLANT, 1.0), floating(3), numpy=""),
            *each(
                "scipy.signal",
                "dimpulse dstep",
                (*_PLANT, 1.0),
                None,
                None,
                4,
                numpy="",
            ),
            *each("scipy.signal", "dfreqresp dbode", (*_PLANT, 1.0), _TIMES, numpy=""),
            # A divisor that leads with 0 is refused.
            call("scipy.signal.deconvolve", inexact(5), _LEAD, numpy=""),
            call("scipy.signal.group_delay", (inexact(3), _LEAD), 5),
            call("scipy.signal.hilbert", real(2, 6)),
            *each("scipy.signal", "cspline1d qspline1d", A(5)),
            *each(
                "scipy.signal", "cspline2d qspline2d spline_filter", A(3, 4), numpy=""
            ),
            call("scipy.signal.cspline1d_eval", A(5), real(2, 3), numpy=""),
            call("scipy.signal.qspline1d_eval", A(5), real(2, 3), numpy=""),
            call("scipy.signal.gauss_spline", inexact(2, 3), 3),
            call("scipy.signal.sepfir2d", A(3, 4), inexact(3), inexact(1), numpy=""),
            call("scipy.signal.symiirorder1", A(2, 6), 0.3, 0.4, numpy=""),
            call("scipy.signal.symiirorder2", A(2, 6), 0.4, 1.0, numpy=""),
            call("scipy.signal.savgol_filter", inexact(2, 7), 5, 2, numpy=""),
            call("scipy.signal.sos2zpk", _SOS, differentiable=False, numpy=""),
            call("scipy.signal.chirp", real(5, low=0), 1.0, 3.0, 2.0),
            call("scipy.signal.gausspulse", real(5), 2.0),
            call("scipy.signal.sawtooth", real(5), 0.4),
            call("scipy.signal.square", real(5), 0.4, differentiable=False),
            # Zeros have no spectrum; SciPy refuses what is empty, or gives the input.
            call("scipy.signal.resample", inexact(6, 2), 4, numpy=""),
            call("scipy.signal.resample_poly", inexact(6, 2), 2, 3, numpy=""),
            call("scipy.signal.upfirdn", floating(3), inexact(2, 5), 2, 3, numpy=""),
            call("scipy.signal.decimate", inexact(2, 40), 2, 3, "fir", numpy=""),
            call("scipy.signal.periodogram", real(2, 8), detrend=False, numpy=""),
            call("scipy.signal.coherence", real(2, 8), real(2, 8), nperseg=1, numpy=""),
            call("scipy.signal.spectrogram", real(2, 8), nperseg=1, numpy=""),
            call(
                "scipy.signal.lombscargle",
                ascending(5, kinds="f"),
                floating(5),
                floating(3, low=0.5),
                numpy="",
            ),
            call("scipy.signal.czt", inexact(2, 5), 4, numpy=""),
            call("scipy.signal.zoom_fft", inexact(2, 5), 0.5, 4, numpy=""),
            *each(
                "scipy.signal",
                "lp2lp_zpk lp2hp_zpk",
                *(_ROOTS, _ROOTS, floating(low=0.5), floating(low=0.5)),
                numpy="",
            ),
            *each(
                "scipy.signal",
                "lp2bp_zpk lp2bs_zpk",
                *(_ROOTS, _ROOTS, floating(low=0.5)),
                *(floating(low=3, high=4), floating(low=0.5, high=1)),
                numpy="",
            ),
            call(
                "scipy.signal.bilinear_zpk",
                *(_ROOTS, _ROOTS, floating(low=0.5), floating(low=3, high=4)),
                numpy="",
            ),
            call("scipy.signal.minimum_phase", _TAPS, n_fft=64, numpy=""),
            call("scipy.signal.medfilt", floating(3, 5)),
            call("scipy.signal.order_filter", floating(3, 5), np.ones((3, 1)), 1),
            call("scipy.signal.hilbert2", real(3, 4), numpy=""),
            call("scipy.signal.sweep_poly", real(5), real(3), numpy=""),
            call("scipy.signal.vectorstrength", real(5), floating(low=0.5), numpy=""),
            call(
                "scipy.signal.closest_STFT_dual_window",
                *(floating(6, low=0.5), 2, floating(6, low=0.5)),
                numpy="",
            ),
            call("scipy.signal.medfilt2d", floating(3, 5)),
            call("scipy.signal.wiener", floating(3, 5), 3, 0.5, numpy=""),
            call("scipy.signal.envelope", floating(2, 8), numpy=""),
        ],
    ),
    # SciPy's results are dictionaries; `tests/scipy/optimize` compares them. The
    # problems have one solution each, and no constraint that is active by chance.
    *like(
        "scipy.optimize",
        [
            call("scipy.optimize.linprog", _COSTS, _ROWS, _SIDES, numpy=""),
            call(
                "scipy.optimize.quadratic_program",
                positive_definite(2, 2, kinds="f"),
                _COSTS,
                _ROWS,
                _SIDES,
                numpy="",
            ),
            *each("scipy.optimize", "nnls lsq_linear", _TALL, _LONG, numpy=""),
            call("scipy.optimize.rosen", inexact(3, 2), numpy=""),
            call("scipy.optimize.rosen_der", inexact(3, 2), numpy=""),
            call("scipy.optimize.rosen_hess", inexact(3), numpy=""),
            call("scipy.optimize.rosen_hess_prod", inexact(3), inexact(3), numpy=""),
            call("scipy.optimize.isotonic_regression", _BUMPY, numpy=""),
            call("scipy.optimize.linear_sum_assignment", real(3, 4), numpy=""),
        ],
    ),
    # SciPy refuses what is nan here, and has an axis more between equal points.
    *like(
        "scipy.spatial",
        [
            call("scipy.spatial.procrustes", _TALL, _TALL, numpy=""),
            call(
                "scipy.spatial.geometric_slerp",
                *(made(lambda rng, s: np.abs(rng.normal(size=s)), 3),) * 2,
                floating(2, low=0),
                numpy="",
            ),
            call("scipy.spatial.distance_matrix", inexact(3, 2), inexact(2, 2)),
            *each(
                "scipy.spatial",
                "minkowski_distance minkowski_distance_p",
                *(inexact(3, 2), inexact(2)),
            ),
        ],
    ),
    call("scipy.cluster.vq.vq", real(5, 2), real(3, 2)),
    call("scipy.cluster.vq.whiten", real(5, 2), numpy=""),
    call(
        "scipy.cluster.hierarchy.is_isomorphic",
        *(made(lambda rng, s: rng.integers(0, 3, s), 4, kinds="i"),) * 2,
        differentiable=False,
    ),
]
