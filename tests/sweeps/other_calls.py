"""Calls of the public functions that the catalogue leaves out.

They take no arrays, or functions: the sweep of bad arguments puts those in as well.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import optim, random, tree
from fxflow.scipy.spatial import Delaunay
from tests.sweeps.catalogue import Call, call

X = np.linspace(0.1, 0.9, 4, dtype=np.float32)
SHORT = X[:2]
LONG = np.linspace(0.0, 1.0, 8, dtype=np.float32)
MESH = fxflow.make_mesh((1,), ("x",))
DEVICE = fxflow.devices.devices()[0]
TREE = {"w": X, "b": (SHORT, 1.0)}
INNER = optim.sgd(0.1)


def first(*args: Any) -> Any:
    return args[0]


def f(name: str, *args: Any, **kwargs: Any) -> Call:
    return call(name, *args, **kwargs)


def each(module: str, names: str, *args: Any, **kwargs: Any) -> list[Call]:
    return [f(f"{module}.{name}", *args, **kwargs) for name in names.split()]


TOP = [
    f("ShapeDtypeStruct", (2, 3), "float32"),
    f("checkpoint", first, prevent_cse=True, policy=None, static_argnums=()),
    f("checkpoint_name", X, "name"),
    f("closure_convert", first, X),
    f("custom_gradient", first),
    f("custom_jvp", first, nondiff_argnums=(), nondiff_argnames=()),
    f("custom_vjp", first, nondiff_argnums=(), nondiff_argnames=()),
    f("block_until_ready", X),
    f("debug_nans", True),
    f("debug_infs", True),
    f("disable_jit", True),
    f("log_compiles", True),
    f("live_arrays", "cpu"),
    f("linear_call", lambda r, x: x, lambda r, ct: ct, (), X),
    *(
        f(f"transfer_guard{direction}", "allow")
        for direction in (
            "",
            "_host_to_device",
            "_device_to_host",
            "_device_to_device",
        )
    ),
    f("default_device", DEVICE),
    f("device_count", "cpu"),
    f("device_get", X),
    f("device_put", X, DEVICE, src=None, donate=False, may_alias=None),
    f("eval_shape", first, X),
    f("grad", first, 0, has_aux=False, holomorphic=False, allow_int=False),
    f("value_and_grad", first, 0, has_aux=False),
    f("jacfwd", first, 0),
    f("jacrev", first, 0),
    f("jacobian", first, 0, sparse=True),
    f("hessian", first, 0),
    f("io_callback", first, fxflow.ShapeDtypeStruct((4,), "f4"), X, ordered=False),
    f("pure_callback", first, fxflow.ShapeDtypeStruct((4,), "f4"), X),
    f("jit", first, static_argnums=(), static_argnames=(), donate_argnums=()),
    f("jet", first, (X,), ([X, X],), factorial_scaled=True),
    f("jvp", first, (X,), (X,), has_aux=False),
    f("vjp", first, X, has_aux=False),
    f("linearize", first, X),
    f("linear_transpose", first, X),
    f("local_devices", 0, "cpu"),
    f("local_device_count", "cpu"),
    f("process_count", "cpu"),
    f("process_index", "cpu"),
    f(
        "make_array_from_callback",
        (4,),
        fxflow.SingleDeviceSharding(DEVICE),
        lambda i: X[i],
    ),
    f(
        "make_array_from_process_local_data",
        fxflow.SingleDeviceSharding(DEVICE),
        X,
        (4,),
    ),
    f(
        "make_array_from_single_device_arrays",
        (4,),
        fxflow.SingleDeviceSharding(DEVICE),
        [fnp.asarray(X)],
    ),
    f("make_graph", first, static_argnums=()),
    f("make_mesh", (1,), ("x",), devices=None),
    f("named_scope", "name"),
    f("pmap", first, "x", in_axes=0, out_axes=0, axis_size=None),
    f("vmap", first, 0, 0, axis_name="x", axis_size=None),
    f("shard_map", first, mesh=MESH, in_specs=fxflow.P(), out_specs=fxflow.P()),
    f("typeof", X),
    f("NamedSharding", MESH, fxflow.P("x")),
    f("SingleDeviceSharding", DEVICE),
    f("Mesh", [DEVICE], ("x",)),
    f("flatten_util.ravel_pytree", TREE),
    f("debug.print", "{}", X, ordered=False),
    f("debug.callback", first, X, ordered=False),
    f("debug.visualize_array_sharding", fnp.asarray(X)),
    f("debug.visualize_sharding", (4,), fxflow.SingleDeviceSharding(DEVICE)),
    f("viz.sharding_text", (4,), fxflow.SingleDeviceSharding(DEVICE), scale=1.0),
    f("devices.memory_stats", DEVICE),
    f("sharding.AbstractMesh", (2,), ("x",)),
]

LAX = [
    f("lax.axis_index", "i"),
    f("lax.psum", X, "i"),
    f("lax.conv_dimension_numbers", (1, 2, 5), (3, 2, 2), ("NCW", "OIW", "NCW")),
    f("lax.conv_general_permutations", ("NCW", "OIW", "NCW")),
    f("lax.conv_general_shape_tuple", (1, 2, 5), (3, 2, 2), (1,), "SAME", None),
    f("lax.conv_shape_tuple", (1, 2, 5), (3, 2, 2), (1,), "SAME"),
    f("lax.conv_transpose_shape_tuple", (1, 2, 5), (2, 3, 2), (1,), "SAME", None),
    f("lax.padtype_to_pads", (5,), (2,), (1,), "SAME"),
    f("lax.reduce_window_shape_tuple", (5,), (2,), (1,), [(0, 0)]),
    f("lax.rng_bit_generator", np.arange(4, dtype=np.uint32), (3,), "uint32", 0),
    f("lax.with_sharding_constraint", X, fxflow.SingleDeviceSharding(DEVICE)),
]

NUMPY = [
    f("numpy.finfo", "float32"),
    f("numpy.iinfo", "int32"),
    f("numpy.frombuffer", X.tobytes(), "float32", 2, 4),
    f("numpy.fromiter", [1.0, 2.0], "float32", 2),
    f("numpy.fromstring", "1 2", "float32", 2, sep=" "),
    f("numpy.from_dlpack", X),
    f("numpy.save", io.BytesIO(), X),
    f("numpy.frompyfunc", first, 1, 1),
    f("numpy.vectorize", first, signature="(n)->(n)"),
    f("numpy.ndarray", (2,), "float32"),
]

INITIALIZERS = [
    f("nn.initializers.constant", 1.0, "float32"),
    f("nn.initializers.delta_orthogonal", 1.0, -1, "float32"),
    *each(
        "nn.initializers",
        "glorot_normal glorot_uniform he_normal he_uniform lecun_normal lecun_uniform",
        -2,
        -1,
        (),
        "float32",
    ),
    f("nn.initializers.normal", 1.0, "float32"),
    f("nn.initializers.uniform", 1.0, "float32"),
    f("nn.initializers.orthogonal", 1.0, -1, "float32"),
    f("nn.initializers.truncated_normal", 1.0, "float32"),
    f("nn.initializers.variance_scaling", 1.0, "fan_in", "normal", -2, -1),
]

OPTIM = [
    *each(
        "optim",
        "adabelief adagrad adam adamax adamaxw adamw amsgrad lamb lars lion momentum "
        "nadam nadamw nesterov radam rmsprop sgd sign_sgd yogi adadelta adafactor adan "
        "fromage novograd optimistic_adam optimistic_adam_v2 "
        "optimistic_gradient_descent polyak_sgd rprop scale_by_rprop signum sm3",
        0.1,
    ),
    *each(
        "optim.contrib",
        "acprop ademamix adopt cocob dadapt_adamw dog dowg galore madgrad momo "
        "momo_adam muon prodigy schedule_free_adamw schedule_free_sgd "
        "simplified_ademamix sophia",
        0.1,
    ),
    f("optim.nnls", fnp.eye(2), fnp.ones(2), 3),
    f("optim.assignment.hungarian_algorithm", fnp.eye(2)),
    *each(
        "optim",
        "scale_by_adadelta scale_by_adam scale_by_adamax scale_by_amsgrad "
        "scale_by_belief scale_by_lion scale_by_param_block_rms scale_by_radam "
        "scale_by_rms scale_by_rss scale_by_stddev scale_by_trust_ratio scale_by_yogi "
        "normalize_by_update_norm scale_by_adan scale_by_factored_rms scale_by_lbfgs "
        "scale_by_novograd scale_by_optimistic_gradient scale_by_param_block_norm "
        "scale_by_polyak scale_by_sm3",
    ),
    *each(
        "optim",
        "adaptive_grad_clip clip clip_by_block_rms clip_by_global_norm scale "
        "constant_schedule trace ema scale_by_learning_rate add_decayed_weights",
        0.5,
    ),
    f("optim.MultiSteps", INNER, 2),
    f("optim.add_noise", 0.1, 0.5, seed=0),
    f("optim.noisy_sgd", 0.1, seed=0),
    f("optim.apply_if_finite", INNER, 3),
    f("optim.lookahead", INNER, 3, 0.5),
    f("optim.apply_every", 3),
    f("optim.freeze", True),
    f("optim.incremental_update", TREE, TREE, 0.5),
    f("optim.periodic_update", TREE, TREE, 2, 2),
    f("optim.scale_by_backtracking_linesearch", 3),
    f("optim.scale_by_zoom_linesearch", 3),
    *each("optim.tree", "add sub mul div vdot allclose", TREE, TREE),
    *each("optim.tree", "sum max min norm size", TREE),
    f("optim.apply_updates", TREE, TREE),
    f("optim.global_norm", TREE),
    f("optim.chain", INNER, INNER),
    f("optim.named_chain", ("a", INNER)),
    f("optim.masked", INNER, True),
    f("optim.multi_transform", {"a": INNER}, "a"),
    f("optim.inject_hyperparams", optim.sgd),
    f("optim.cosine_decay_schedule", 1.0, 10),
    f("optim.cosine_onecycle_schedule", 10, 1.0),
    f("optim.exponential_decay", 1.0, 10, 0.9),
    f("optim.join_schedules", [first, first], [3]),
    f("optim.linear_onecycle_schedule", 10, 1.0),
    f("optim.linear_schedule", 1.0, 0.1, 10),
    f("optim.piecewise_constant_schedule", 1.0, {3: 0.5}),
    f("optim.piecewise_interpolate_schedule", "linear", 1.0, {3: 0.5}),
    f("optim.polynomial_schedule", 1.0, 0.1, 2.0, 10),
    f("optim.scale_by_schedule", first),
    f(
        "optim.sgdr_schedule",
        [{"init_value": 0.1, "peak_value": 1.0, "warmup_steps": 2, "decay_steps": 5}],
    ),
    f("optim.stateless", first),
    f("optim.warmup_constant_schedule", 0.1, 1.0, 3),
    f("optim.warmup_cosine_decay_schedule", 0.1, 1.0, 3, 10),
    f("optim.warmup_exponential_decay_schedule", 0.1, 1.0, 3, 10, 0.9),
    f("optim.with_extra_args_support", INNER),
    *[
        f(f"optim.{name}", X, X)
        for name in optim.__all__
        if name.endswith(("_loss", "_error", "_entropy", "_similarity", "_distance"))
    ],
]

DEFINITION = tree.structure(TREE)


class Node:
    """A class that may be registered; a new one would be for each call."""


TREES = [
    *each(
        "tree",
        "flatten flatten_one_level leaves structure flatten_with_path "
        "leaves_with_path flatten_one_level_with_keys",
        TREE,
    ),
    f("tree.all", {"a": True}),
    f("tree.all_leaves", [X]),
    f("tree.broadcast", 1, TREE),
    f("tree.broadcast_prefix", 1, TREE),
    f("tree.flatten_up_to", DEFINITION, TREE),
    f("tree.is_tree_node", dict),
    f("tree.keystr", (tree.DictKey("a"),), simple=False, separator=""),
    f("tree.map", first, TREE, TREE),
    f("tree.map_with_path", first, TREE, TREE),
    f("tree.reduce", first, TREE),
    f("tree.reduce_associative", first, TREE, identity=0),
    f("tree.static", default=1),
    f("tree.transpose", tree.structure([0]), tree.structure({"a": 0}), [{"a": 1}]),
    f("tree.treedef_children", DEFINITION),
    f("tree.treedef_is_leaf", DEFINITION),
    f("tree.treedef_tuple", [DEFINITION]),
    f("tree.unflatten", DEFINITION, [X, X, X]),
    f("tree.register_static", Node),
    f("tree.register_dataclass", Node, [], []),
    f("tree.register_pytree_node_class", Node),
    f("tree.register_pytree_with_keys_class", Node),
]


def _apart(x: Any, y: Any) -> Any:
    return fnp.mean(x) - fnp.mean(y)


KEY = random.key(0)
TRIES: dict[str, Any] = {"key": KEY, "n_resamples": 19}
BANDS = (0.2, 0.3, 3.0, 40.0)
RATIO = ([1.0, 0.2], [1.0, 0.1])
ZEROS, POLES = np.array([0.5, -0.5], np.float32), np.array([0.2, 0.3], np.float32)
MESH_OF_POINTS = Delaunay([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
PLACES = np.random.default_rng(0).random((3, 12)).astype(np.float32)
PLANE = [np.array([0.0, 0, 1, 1]), np.array([0.0, 0, 1, 1]), np.ones(4), 1, 1]
SCIPY = [
    f("scipy.spatial.tsearch", MESH_OF_POINTS, [[0.2, 0.3]]),
    f("scipy.linalg.clarkson_woodruff_transform", np.ones((3, 2)), 2, KEY),
    f("scipy.interpolate.bisplev", SHORT, SHORT, PLANE),
    f("scipy.interpolate.bisplrep", *PLACES, kx=1, ky=1, s=9.0),
    f("scipy.interpolate.interpn", (X,), X, SHORT),
    f("scipy.interpolate.lagrange", X, X),
    *each("scipy.interpolate", "make_splrep generate_knots", LONG, LONG),
    f("scipy.interpolate.make_splprep", (LONG, LONG)),
    f("scipy.interpolate.splprep", (LONG, LONG), s=0),
    f("scipy.interpolate.make_smoothing_spline", LONG, LONG, lam=1.0),
    *each("scipy.interpolate", "krogh_interpolate pchip_interpolate", X, X, SHORT),
    f("scipy.interpolate.approximate_taylor_polynomial", fnp.sin, 0.5, 2, 0.5),
    f("scipy.stats.bootstrap", (X,), fnp.mean, **TRIES),
    f("scipy.stats.permutation_test", (SHORT, X), _apart, **TRIES),
    f("scipy.stats.monte_carlo_test", X, random.normal, fnp.max, **TRIES),
    f("scipy.stats.power", fnp.mean, random.normal, 5, **TRIES),
    f("scipy.stats.bws_test", SHORT, X, **TRIES),
    f("scipy.stats.multiscale_graphcorr", np.arange(5.0), np.ones(5), reps=3, key=KEY),
    f("scipy.stats.ecdf", X),
    f("scipy.stats.mvsdist", X),
    f("scipy.stats.fit", fxflow.scipy.stats.norm, X),
    f(
        "scipy.stats.goodness_of_fit",
        fxflow.scipy.stats.expon,
        X,
        key=KEY,
        n_mc_samples=9,
    ),
    f("scipy.stats.epps_singleton_2samp", LONG, LONG**2),
    f("scipy.stats.contingency.crosstab", np.array([1, 2, 1])),
    f("scipy.stats.contingency.odds_ratio", np.array([[7, 5], [3, 4]])),
    f("scipy.stats.sobol_indices", func=lambda x: x[0], n=4, dists=["norm"], key=KEY),
    f("scipy.stats.ppcc_max", X, (0.5, 1.5), "weibull_min"),
    f("scipy.stats.ppcc_plot", X, 0.5, 1.5, "weibull_min", N=2),
    *each("scipy.stats", "kstest ks_1samp cramervonmises", X, "norm"),
    f("scipy.stats.anderson_ksamp", [X, X**2]),
    *each("scipy.stats", "boxcox_normmax yeojohnson_normmax", X),
    f("scipy.signal.place_poles", [[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], SHORT),
    f("scipy.signal.iirfilter", 3, 0.2, btype="lowpass"),
    *each("scipy.signal", "bessel butter", 3, 0.2),
    f("scipy.signal.cheby1", 3, 1.0, 0.2),
    f("scipy.signal.cheby2", 3, 30.0, 0.2),
    f("scipy.signal.ellip", 3, 1.0, 30.0, 0.2),
    *each("scipy.signal", "buttord cheb1ord cheb2ord ellipord iirdesign", *BANDS),
    f("scipy.signal.firwin", 9, 0.3),
    f("scipy.signal.firwin2", 9, [0.0, 0.5, 1.0], [1.0, 0.5, 0.0]),
    f("scipy.signal.firls", 9, [0.0, 0.4, 0.6, 1.0], [1.0, 1.0, 0.0, 0.0]),
    f("scipy.signal.remez", 9, [0.0, 0.2, 0.3, 0.5], [1.0, 0.0]),
    *each("scipy.signal", "iirnotch iirpeak", 0.2, 30.0),
    *each("scipy.signal", "besselap buttap", 3),
    *each("scipy.signal", "cheb1ap cheb2ap", 3, 1.0),
    f("scipy.signal.ellipap", 3, 1.0, 30.0),
    f("scipy.signal.kaiser_atten", 9, 0.3),
    f("scipy.signal.kaiser_beta", 50.0),
    f("scipy.signal.kaiserord", 50.0, 0.1),
    *each("scipy.signal", "zpk2sos zpk2tf", ZEROS, POLES, 1.0),
    *each("scipy.signal", "tf2sos tf2zpk normalize", *RATIO),
    *each("scipy.signal", "residue residuez tf2ss lti dlti", *RATIO),
    f(
        "scipy.signal.band_stop_obj",
        1.0,
        0,
        [1.0, 4.0],
        [2.0, 3.0],
        1.0,
        30.0,
        "butter",
    ),
    f("scipy.signal.firwin_2d", (3, 3), ("hann", "hann"), fc=0.3),
    f("scipy.signal.gammatone", 0.3, "fir"),
    f("scipy.signal.iircomb", 0.5, 8.0),
    f("scipy.signal.max_len_seq", 3),
    f("scipy.signal.correlation_lags", 3, 2),
    f("scipy.signal.choose_conv_method", X, SHORT),
    *each("scipy.signal", "check_COLA check_NOLA", "hann", 4, 2),
    f("scipy.signal.find_peaks_cwt", X, [1.0, 2.0]),
    f("scipy.signal.zpk2ss", SHORT, POLES, 1.0),
    f("scipy.signal.ss2zpk", [[0.5]], [[1.0]], [[1.0]], [[0.0]]),
    *each("scipy.signal", "invres invresz", SHORT, POLES, []),
    f("scipy.signal.findfreqs", *RATIO, 5),
    f("scipy.signal.unique_roots", POLES),
    *each("scipy.signal", "lp2lp lp2hp bilinear", *RATIO, 2.0),
    *each("scipy.signal", "lp2bp lp2bs", *RATIO, 2.0, 1.0),
]

OTHER = [c for c in TOP + LAX + NUMPY + INITIALIZERS + OPTIM + TREES + SCIPY if c.name]
