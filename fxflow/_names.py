"""The names of public modules: what there is, and what an absent one is called here.

`fxflow.random.PRNGKey` raises an AttributeError that names `fxflow.random.key`, and
`from fxflow.random import PRNGKey` an ImportError with that text. A name that another
public module has (`fxflow.PRNGKey`, `fxflow.optim.l2_loss`) leads there; a misspelling
leads to the closest name. The table below lists the names of NumPy, JAX and optax that
fxflow spells differently.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable
from importlib.machinery import ModuleSpec
from types import FrameType
from typing import Any

_FUNCTIONS = "nn has functions only"
_NO_STATE = "train has no state class: keep parameters and optimizer states in a pytree"
_NO_GRAD = "fxflow has no such switch: use lax.stop_gradient"
_SERVED = "serve.Model, which the command `fxflow serve` runs"

# Module -> absent name -> what to write instead, relative to fxflow; a text with "has"
# is said as it is.
_CALLED_HERE: dict[str, dict[str, str]] = {
    "fxflow": {
        "Shard": "Array.addressable_shards",
        "ad_checkpoint": "fxflow itself has checkpoint, checkpoint_name and "
        "checkpoint_policies, fxflow.debug has print_saved_residuals",
        "check_tracer_leaks": "checking_leaks",
        "custom_derivatives": "custom_jvp, custom_vjp and custom_gradient",
        "default_matmul_precision": "config.override(default_matmul_precision=...)",
        "default_prng_impl": "random.key(seed, impl=...)",
        "device_put_replicated": "device_put(x, sharding.NamedSharding(mesh, "
        "sharding.PartitionSpec()))",
        "device_put_sharded": "device_put(numpy.stack(xs), "
        "sharding.NamedSharding(mesh, sharding.PartitionSpec(axis)))",
        "dlpack": "numpy.from_dlpack",
        "ds": "lax.dynamic_slice",
        "enable_checks": "fxflow has no internal checks to switch on",
        "enable_custom_prng": "random.key",
        "enable_x64": "config.override(x64=True)",
        "experimental": "fxflow has no experimental package: shard_map, export, "
        "checkify, io_callback, make_mesh and their like are in fxflow itself, and "
        "fxflow.compat.jax has the rest",
        "equinox": _FUNCTIONS,
        "explain_cache_misses": "config.override(explain_retraces=True)",
        "compile": "jit",
        "copy_to_host_async": "Array.copy_to_host_async",
        "empty_ref": "new_ref(numpy.empty(shape, dtype))",
        "example_libraries": "optim",
        "filter_grad": "grad",
        "filter_jit": "jit",
        "filter_pmap": "pmap",
        "filter_value_and_grad": "value_and_grad",
        "filter_vmap": "vmap",
        "flax": _FUNCTIONS,
        "free_ref": "freeze",
        "host_count": "process_count",
        "host_id": "process_index",
        "host_ids": "process_count",
        "interpreters": "extend",
        "is_array": "Array, for isinstance(x, fxflow.Array)",
        "jnp": "numpy",
        "legacy_prng_key": "random.key",
        "linear_util": "jvp, vjp and linearize",
        "linen": _FUNCTIONS,
        "load": "numpy.load for an array, fxflow.train.checkpoint.restore for a pytree",
        "local_devices_count": "local_device_count",
        "make_jaxpr": "make_graph",
        "nnx": _FUNCTIONS,
        "no_grad": _NO_GRAD,
        "numpy_dtype_promotion": "config.override(numpy_dtype_promotion=...)",
        "numpy_rank_promotion": "config.override(numpy_rank_promotion=...)",
        "odeint": "scipy.integrate.odeint",
        "optax": "optim",
        "pjit": "jit",
        "print_environment_info": "devices.doctor",
        "process_indices": "process_count",
        "remat": "checkpoint",
        "reshard": "sharding.reshard",
        "save": "numpy.save for an array, fxflow.train.checkpoint.save for a pytree",
        "smap": "shard_map",
        "soft_pmap": "pmap or vmap",
        "test_util": "compat.jax.test_util",
        "threefry_partitionable": "random.key",
        "tree_all": "tree.all",
        "tree_at": "tree.map_with_path",
        "tree_deserialise_leaves": "train.checkpoint.restore",
        "tree_flatten": "tree.flatten",
        "tree_leaves": "tree.leaves",
        "tree_map": "tree.map",
        "tree_multimap": "tree.map",
        "tree_reduce": "tree.reduce",
        "tree_serialise_leaves": "train.checkpoint.save",
        "tree_structure": "tree.structure",
        "tree_transpose": "tree.transpose",
        "tree_unflatten": "tree.unflatten",
        "tree_util": "tree",
        "version": "__version__",
        "xla_computation": "jit(f).lower(...).as_text()",
        "xmap": "shard_map",
    },
    "fxflow.debug": {
        "inspect_array_sharding": "debug.visualize_array_sharding",
        "log": "debug.callback with a function that logs",
    },
    "fxflow.errors": {
        "ConcretizationTypeError": "errors.ConcretizationError",
        "NonConcreteBooleanIndexError": "errors.ConcretizationError",
        "UnexpectedTracerError": "errors.LeakedTracerError",
    },
    "fxflow.experimental": {
        "array_serialization": "train.checkpoint",
        "checkify": "checkify",
        "compilation_cache": "config.cache_dir",
        "custom_partitioning": "compat.jax.experimental.custom_partitioning",
        "enable_x64": "config.override(x64=True)",
        "host_callback": "io_callback",
        "io_callback": "io_callback",
        "jax2tf": "export",
        "jet": "jet",
        "maps": "shard_map",
        "mesh_utils": "make_mesh",
        "multihost_utils": "distributed.multihost",
        "ode": "compat.jax.experimental.ode",
        "optimizers": "optim",
        "pjit": "jit",
        "shard_map": "shard_map",
        "sparse": "compat.jax.experimental.sparse",
        "stax": "compat.jax.example_libraries.stax",
    },
    "fxflow.export": {
        "save_model": "export.save",
        "serialize": "export.Exported.serialize",
    },
    "fxflow.lax": {
        "PRNGKey": "random.key",
        "axis_size_in_dim": "lax.axis_size",
        "dtype": "numpy.dtype",
        "PrecisionLike": "lax.Precision",
        "after_all": "debug.callback(ordered=True)",
        "create_token": "debug.callback(ordered=True)",
        "pvary": "lax.pcast(x, axis_name, to='varying')",
        "rng_uniform": "random.uniform",
        "sum": "lax.reduce_sum",
    },
    "fxflow.lax.linalg": {
        "EigImplementation": "lax.linalg has one implementation for each platform",
        "EighImplementation": "lax.linalg has one implementation for each platform",
        "SvdAlgorithm": "lax.linalg has one algorithm for each platform",
        "qdwh": "scipy.linalg.polar",
    },
    "fxflow.nn": {
        "BCEWithLogitsLoss": "optim.losses.sigmoid_binary_cross_entropy",
        "ConvTranspose": "lax.conv_transpose",
        "CrossEntropyLoss": "optim.losses.softmax_cross_entropy_with_integer_labels",
        "Dense": f"{_FUNCTIONS}: nn.linear_init, nn.linear",
        "Embed": f"{_FUNCTIONS}: nn.embedding_init, nn.embedding",
        "MLP": f"{_FUNCTIONS}: nn.linear_init, nn.linear",
        "MSELoss": "optim.losses.squared_error",
        "Module": f"{_FUNCTIONS}: keep parameters in a pytree",
        "MultiHeadAttention": f"{_FUNCTIONS}: nn.linear, nn.dot_product_attention",
        "MultiHeadDotProductAttention": f"{_FUNCTIONS}: nn.linear, "
        "nn.dot_product_attention",
        "OptimizedLSTMCell": f"{_FUNCTIONS}: nn.lstm_cell_init, nn.lstm_cell",
        "PReLU": "nn.leaky_relu",
        "RNN": f"{_FUNCTIONS}: nn.lstm_init, nn.lstm",
        "SelfAttention": f"{_FUNCTIONS}: nn.linear, nn.dot_product_attention",
        "Sequential": f"{_FUNCTIONS}: call one after the other",
        "State": f"{_FUNCTIONS}: nn.batch_norm takes its state and returns the new one",
        "compact": f"{_FUNCTIONS}: keep parameters in a pytree",
        "cross_entropy": "optim.losses.softmax_cross_entropy_with_integer_labels",
        "functional": "nn",
        "hard_swish": "nn.hard_silu",
        "make_causal_mask": "nn.dot_product_attention(..., is_causal=True)",
        "make_with_state": "nn.batch_norm_state",
        "mse_loss": "optim.losses.squared_error",
        "normalize": "nn.standardize",
        "swish": "nn.silu",
    },
    "fxflow.nn.initializers": {
        "kaiming_normal": "nn.initializers.he_normal",
        "kaiming_uniform": "nn.initializers.he_uniform",
        "xavier_normal": "nn.initializers.glorot_normal",
        "xavier_uniform": "nn.initializers.glorot_uniform",
    },
    "fxflow.numpy": {
        "cat": "numpy.concatenate(arrays, axis)",
        "clamp": "numpy.clip",
        "device": "devices(), and device_put(x, device)",
        "from_numpy": "numpy.asarray",
        "mm": "numpy.matmul",
        "bmm": "numpy.matmul",
        "no_grad": _NO_GRAD,
        "rand": "random.uniform(key, shape)",
        "randn": "random.normal(key, shape)",
        "tensor": "numpy.array",
        "Tensor": "Array",
        "unsqueeze": "numpy.expand_dims",
        "Inf": "numpy.inf",
        "NaN": "numpy.nan",
        "alltrue": "numpy.all",
        "asfarray": "numpy.asarray(x, dtype=float)",
        "bool8": "numpy.bool_",
        "cumproduct": "numpy.cumprod",
        "float": "numpy has fixed widths only: float32, float64",
        "float6_e2m3fn": "numpy has no dtypes of 6 bits: XLA's CPU refuses them",
        "float6_e3m2fn": "numpy has no dtypes of 6 bits: XLA's CPU refuses them",
        "in1d": "numpy.isin",
        "int": "numpy has fixed widths only: int32, int64",
        "int1": "numpy has no dtypes of 1 bit: use bool_",
        "msort": "numpy.sort(x, axis=0)",
        "product": "numpy.prod",
        "random": "random",
        "row_stack": "numpy.vstack",
        "sometrue": "numpy.any",
        "trapz": "numpy.trapezoid",
        "uint1": "numpy has no dtypes of 1 bit: use bool_",
    },
    "fxflow.optim": {
        "Adam": "optim.adam",
        "AdamW": "optim.adamw",
        "SGD": "optim.sgd",
        "warmup_cosine": "optim.warmup_cosine_decay_schedule",
        "bias_correction": "optim.tree.bias_correction",
        "cosine_decay": "optim.cosine_decay_schedule",
        "cosine_onecycle": "optim.cosine_onecycle_schedule",
        "init_empty_state": "optim.EmptyState",
        "inject_stateful_hyperparams": "optim.inject_hyperparams",
        "partition": "optim.multi_transform",
        "safe_int32_increment": "optim.safe_increment",
        "tree_utils": "optim.tree",
        "update_infinity_moment": "optim.tree.update_infinity_moment",
        "update_moment": "optim.tree.update_moment",
        "update_moment_per_elem_norm": "optim.tree.update_moment_per_elem_norm",
    },
    "fxflow.profiler": {
        "annotate": "profiler.TraceAnnotation, or annotate_function as a decorator",
        "profile": "profiler.trace",
    },
    "fxflow.random": {
        "PRNGKey": "random.key",
        "default_rng": "random.key",
        "key_impl_name": "random.key_impl",
        "manual_seed": "random.key",
        "rand": "random.uniform(key, shape)",
        "randn": "random.normal(key, shape)",
        "seed": "random.key",
        "shuffle": "random.permutation",
        "threefry_2x32": "random.bits",
    },
    "fxflow.scipy.integrate": {
        "cumtrapz": "scipy.integrate.cumulative_trapezoid",
        "simps": "scipy.integrate.simpson",
        "trapz": "scipy.integrate.trapezoid",
    },
    "fxflow.scipy.sparse": {
        "bmat": "scipy.sparse.block_array",
        "bsr_matrix": "scipy.sparse.bsr_array",
        "coo_matrix": "scipy.sparse.coo_array",
        "csc_matrix": "scipy.sparse.csc_array",
        "csr_matrix": "scipy.sparse.csr_array",
        "dia_matrix": "scipy.sparse.dia_array",
        "diags": "scipy.sparse.diags_array",
        "dok_array": "scipy.sparse.coo_array",
        "eye": "scipy.sparse.eye_array",
        "identity": "scipy.sparse.eye_array",
        "isspmatrix": "scipy.sparse.issparse",
        "lil_array": "scipy.sparse.coo_array",
        "lil_matrix": "scipy.sparse.coo_array",
        "rand": "scipy.sparse.random_array",
        "random": "scipy.sparse.random_array",
        "spdiags": "scipy.sparse.diags_array",
    },
    "fxflow.scipy.special": {
        "c_roots": "scipy.special.roots_chebyc",
        "cg_roots": "scipy.special.roots_gegenbauer",
        "chebyc": "scipy.special.eval_chebyc",
        "chebys": "scipy.special.eval_chebys",
        "chebyt": "scipy.special.eval_chebyt",
        "chebyu": "scipy.special.eval_chebyu",
        "gegenbauer": "scipy.special.eval_gegenbauer",
        "genlaguerre": "scipy.special.eval_genlaguerre",
        "h_roots": "scipy.special.roots_hermite",
        "he_roots": "scipy.special.roots_hermitenorm",
        "hermite": "scipy.special.eval_hermite",
        "hermitenorm": "scipy.special.eval_hermitenorm",
        "j_roots": "scipy.special.roots_jacobi",
        "jacobi": "scipy.special.eval_jacobi",
        "js_roots": "scipy.special.roots_sh_jacobi",
        "l_roots": "scipy.special.roots_laguerre",
        "la_roots": "scipy.special.roots_genlaguerre",
        "laguerre": "scipy.special.eval_laguerre",
        "legendre": "scipy.special.eval_legendre",
        "p_roots": "scipy.special.roots_legendre",
        "ps_roots": "scipy.special.roots_sh_legendre",
        "s_roots": "scipy.special.roots_chebys",
        "sh_chebyt": "scipy.special.eval_sh_chebyt",
        "sh_chebyu": "scipy.special.eval_sh_chebyu",
        "sh_jacobi": "scipy.special.eval_sh_jacobi",
        "sh_legendre": "scipy.special.eval_sh_legendre",
        "t_roots": "scipy.special.roots_chebyt",
        "ts_roots": "scipy.special.roots_sh_chebyt",
        "u_roots": "scipy.special.roots_chebyu",
        "us_roots": "scipy.special.roots_sh_chebyu",
    },
    "fxflow.serve": {
        "Server": _SERVED,
        "load": "serve.load_model",
        "run": _SERVED,
        "serve": _SERVED,
        "start": _SERVED,
    },
    "fxflow.sharding": {
        "PositionalSharding": "sharding.NamedSharding",
        "make_single_device_sharding": "sharding.SingleDeviceSharding",
        "use_abstract_mesh": "set_mesh",
    },
    "fxflow.train": {
        "AsyncCheckpointer": "train.checkpoint.Checkpointer",
        "CheckpointManager": "train.checkpoint.Checkpointer",
        "DataLoader": "train.data.arrays((x, y)).shuffle(seed=0).batch(32)",
        "MetricWriter": "train.logs.Logger(train.logs.tensorboard(folder))",
        "PyTreeCheckpointer": "train.checkpoint.Checkpointer",
        "StandardCheckpointer": "train.checkpoint.Checkpointer",
        "SummaryWriter": "train.logs.Logger(train.logs.tensorboard(folder))",
        "TrainState": _NO_STATE,
        "Trainer": "train.loop.run",
        "create_train_state": _NO_STATE,
        "latest_checkpoint": "train.checkpoint.Checkpointer.latest",
        "latest_step": "train.checkpoint.Checkpointer.latest",
        "load": "train.checkpoint.restore",
        "load_checkpoint": "train.checkpoint.restore",
        "log": "train.logs.Logger",
        "prefetch": "train.data.Dataset.to_devices",
        "restore_checkpoint": "train.checkpoint.restore",
        "save_checkpoint": "train.checkpoint.save",
    },
    "fxflow.train.checkpoint": {
        "load": "train.checkpoint.restore",
        "latest": "train.checkpoint.Checkpointer.latest",
    },
    "fxflow.tree": {
        "build_tree": "tree.unflatten",
        "register_dataclass_node": "tree.register_dataclass",
        "tree_map": "tree.map",
        "tree_multimap": "tree.map",
    },
}


# Class -> absent attribute -> what to write instead.
_ATTRIBUTES: dict[str, dict[str, str]] = {
    "Bundle": dict.fromkeys(("apply", "predict", "run"), "call(*args)"),
    "Checkpointer": {
        "all_steps": "steps()",
        "latest_step": "latest()",
        "should_save": "is_due(step)",
        "wait_until_finished": "wait()",
    },
    "Logger": dict.fromkeys(
        ("add_scalar", "log", "log_metrics", "scalar", "write", "write_scalars"),
        "a call: log(step, {name: value})",
    ),
    "Traced": {"jaxpr": "graph"},
    # The methods of PyTorch's optimizers.
    "GradientTransformation": {
        "param_groups": "optim.multi_transform(optimizers, labels)",
        "state_dict": "state, which init and update return",
        "step": "updates, state = tx.update(gradients, state, params); "
        "params = optim.apply_updates(params, updates)",
        "zero_grad": "not needed: fxflow.grad returns new gradients",
    },
}

# Method of PyTorch's tensors or of NumPy's arrays -> what to write instead.
_METHODS = {
    "append": "fxflow.numpy.append(x, values)",
    "backward": "fxflow.grad(loss)(params)",
    "bmm": "x @ y",
    "bool": "x.astype(bool)",
    "cpu": "fxflow.device_put(x, device)",
    "cuda": "fxflow.device_put(x, device)",
    "detach": "fxflow.lax.stop_gradient(x)",
    "double": "x.astype('float64')",
    "exp": "fxflow.numpy.exp(x)",
    "expand": "fxflow.numpy.broadcast_to(x, shape)",
    "fill": "fxflow.numpy.full_like(x, value)",
    "float": "x.astype(float)",
    "grad": "fxflow.grad(loss)(params)",
    "half": "x.astype('float16')",
    "int": "x.astype(int)",
    "itemset": "x.at[i].set(v)",
    "log": "fxflow.numpy.log(x)",
    "long": "x.astype(int)",
    "masked_fill": "fxflow.numpy.where(mask, value, x)",
    "mm": "x @ y",
    "norm": "fxflow.numpy.linalg.norm(x)",
    "numpy": "numpy.asarray(x)",
    "permute": "x.transpose(axes)",
    "put": "x.at[i].set(v)",
    "requires_grad_": "fxflow.grad(loss)(params)",
    "resize": "fxflow.numpy.resize(x, shape)",
    "set": "x.at[i].set(v)",
    "sqrt": "fxflow.numpy.sqrt(x)",
    "step": "updates, state = tx.update(gradients, state, params), of an optimizer tx",
    "to": "fxflow.device_put(x, device) or x.astype(dtype)",
    "unsqueeze": "fxflow.numpy.expand_dims(x, axis)",
    "zero_grad": "not needed: fxflow.grad returns new gradients",
}

# Keyword of PyTorch, NumPy or SciPy -> what the parameter is called here.
_KEYWORDS: dict[str, tuple[str, ...]] = {
    "device": ("devices",),
    "dim": ("axis", "dimension"),
    "dims": ("axes", "axis"),
    "in_channels": ("inputs",),
    "in_features": ("inputs",),
    "kernel_size": ("window",),
    "lr": ("learning_rate",),
    "max_to_keep": ("keep",),
    "n": ("num", "length", "size"),
    "num_embeddings": ("vocabulary",),
    "out_channels": ("units",),
    "out_features": ("units",),
    "out_shape": ("out",),
    "p": ("rate",),
    "random_state": ("key",),
    "rng": ("key",),
    "save_interval_steps": ("every",),
    "seed": ("key",),
    "size": ("shape",),
    "stride": ("strides", "window_strides"),
    "train": ("training",),
}

# Public modules in the order in which an absent name is looked for.
_PUBLIC = (
    *("", "numpy", "lax", "nn", "random", "optim", "optim.losses", "tree", "sharding"),
    *("numpy.linalg", "numpy.fft", "nn.initializers", "optim.contrib", "optim.tree"),
    *("optim.projections", "optim.assignment", "optim.perturbations", "ops", "ref"),
    *("scipy.special", "scipy.linalg", "scipy.stats", "scipy.signal", "scipy.fft"),
    *("scipy.ndimage", "scipy.optimize", "scipy.spatial.transform", "lax.linalg"),
    *("train", "train.data", "train.logs", "train.checkpoint", "export", "profiler"),
    *("viz", "debug", "checkify", "custom_batching", "dtypes", "errors", "ffi"),
    *("flatten_util", "image", "stages", "extend", "distributed", "devices", "serve"),
)

# Where Python's own code for `import` says it is.
_IMPORTING = "<frozen importlib._bootstrap>"


def answer(
    namespace: dict[str, Any],
    names: Iterable[str],
    lazy: Iterable[str] = (),
    take: Callable[[str], Any] | None = None,
) -> None:
    """Makes a public module list its names, and say what an absent one is called.

    Args:
      namespace: the module's `globals()`, which gets `__getattr__` and `__dir__`.
      names: its public names.
      lazy: names that are looked up when first used.
      take: returns what such a name stands for; None: the submodule of that name.
    """
    module = namespace["__name__"]
    lazy = frozenset(lazy)
    listed = lazy.union(names)

    def __getattr__(name: str) -> Any:
        if name in lazy:
            return take(name) if take else importlib.import_module(f"{module}.{name}")
        caller = sys._getframe(1)
        if caller.f_code.co_filename == _IMPORTING:
            # `from module import name` asks before it looks for a submodule, and drops
            # the message.
            raise AttributeError(_absent(module, name), name=name)
        text = message(module, name, listed)
        try:
            if _imports_from(caller):  # Python would replace an AttributeError
                given = text.removeprefix(_absent(module, name))
                raise ImportError(
                    f"cannot import name {name!r} from {module!r}{given}",
                    name=module,
                    path=namespace.get("__file__"),
                )
            raise AttributeError(text, name=name)
        except (AttributeError, ImportError) as error:
            error.__traceback__ = None  # a bare `raise` leaves the user's line alone
            raise

    def __dir__() -> list[str]:
        # Tools look for __all__, __path__ and their like here.
        own = {name for name in namespace if name.startswith("__")}
        return sorted(listed | own)

    namespace["__getattr__"], namespace["__dir__"] = __getattr__, __dir__


def _imports_from(frame: FrameType) -> bool:
    """Returns whether a frame is in the middle of `from module import name`."""
    import opcode  # only a name that is not there needs it

    return frame.f_code.co_code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]


def message(module: str, name: str, names: Collection[str]) -> str:
    """Says what an absent name is called here, as far as that is known.

    Args:
      module: that was asked for it.
      name: the absent one.
      names: the public names of the module.
    """
    text = _absent(module, name)
    if name.startswith("_"):  # Python and its tools ask for these
        return text
    called = _CALLED_HERE.get(module, {}).get(name)
    if called is None and module == "fxflow.tree":
        called = _without_prefix(name, names)
    if called is None and module == "fxflow.nn":
        called = _functions_of(name, names)
    if called is None:
        called = _elsewhere(name, module.removeprefix("fxflow").lstrip("."))
    if called is None:
        import difflib  # a millisecond that only a misspelling costs

        near = difflib.get_close_matches(name, names, 1, 0.75)
        return f"{text}: did you mean {module}.{near[0]}?" if near else text
    if " has " in called:
        return f"{text}: {called}"
    return f"{text}: here it is fxflow.{called}"


def called_here(given: Iterable[str], names: Collection[str]) -> str:
    """Says what keyword arguments are called here that a function does not have.

    Args:
      given: the names with which it was called.
      names: those of its parameters.

    Example:
      >>> called_here({"dim": 1}, ["a", "axis"])
      ": 'dim' is axis here"
      >>> called_here({"keepdim": True}, ["a", "keepdims"])
      ": 'keepdim' is keepdims here"
    """
    import difflib  # only a wrong call needs it

    for name in given:
        if name in names:
            continue
        near = [word for word in _KEYWORDS.get(name, ()) if word in names]
        near += difflib.get_close_matches(name, names, 1, 0.75)
        if near:
            return f": {name!r} is {near[0]} here"
    return ""


def answer_attributes(kind: type) -> None:
    """Makes the objects of a class say what an absent attribute is called here.

    Args:
      kind: the class; one that the table of attributes does not name stays as it is.
    """
    if kind.__name__ not in _ATTRIBUTES:
        return
    called = _ATTRIBUTES[kind.__name__]

    def __getattr__(self: Any, name: str) -> Any:
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        here = f": here it is {called[name]}" if name in called else ""
        try:
            raise AttributeError(text + here, name=name, obj=self)
        except AttributeError as error:
            error.__traceback__ = None
            raise

    kind.__getattr__ = __getattr__  # type: ignore[attr-defined]


class _Absent:
    """An attribute that is not there, and says what it is called here.

    `__getattr__` would slow down each look-up of an empty slot.
    """

    def __init__(self, name: str, called: str) -> None:
        self.name, self.called = name, called

    def __get__(self, instance: Any, owner: type) -> Any:
        kind = f"{owner.__name__!r} object"
        if instance is None:
            kind = f"type object {owner.__name__!r}"
        text = f"{kind} has no attribute {self.name!r}: here it is {self.called}"
        try:
            raise AttributeError(text, name=self.name, obj=instance)
        except AttributeError as error:
            error.__traceback__ = None
            raise


def answer_methods(kind: type) -> None:
    """Makes arrays say what a method of other libraries' arrays is called here.

    Args:
      kind: the class of arrays.
    """
    absent = [name for name in _METHODS if not hasattr(kind, name)]
    for name in absent:
        setattr(kind, name, _Absent(name, _METHODS[name]))

    def __dir__(self: Any) -> list[str]:
        return [name for name in object.__dir__(self) if name not in absent]

    kind.__dir__ = __dir__  # type: ignore[method-assign, assignment]


def _absent(module: str, name: str) -> str:
    return f"module {module!r} has no attribute {name!r}"


def _without_prefix(name: str, names: Collection[str]) -> str | None:
    """Returns the name of `tree_map` and its like without the prefix."""
    short = name.removeprefix("tree_")
    return f"tree.{short}" if short != name and short in names else None


def _functions_of(name: str, names: Collection[str]) -> str | None:
    """Returns the functions in place of `BatchNorm2d` and other classes of layers."""
    if not name[0].isupper():
        return None
    joined = re.sub(r"\dd$", "", name.lower())
    for found in names:
        if found.replace("_", "") == joined:
            made = (f"{found}_init", f"{found}_state", found)
            return f"{_FUNCTIONS}: " + ", ".join(f"nn.{n}" for n in made if n in names)
    return None


@functools.lru_cache(maxsize=256)  # programs that ask whether a name is there ask again
def _elsewhere(name: str, module: str) -> str | None:
    """Returns where another public module has a name, or what it is called there.

    Args:
      name: the absent one.
      module: that was asked for it, whose submodules are looked at first.
    """
    word = re.escape(name)
    stated = re.compile(rf"""["']{word}["']|^class {word}\b""", re.MULTILINE)
    inside = f"{module}." if module else "fxflow"
    for place in sorted(_PUBLIC, key=lambda place: not place.startswith(inside)):
        # Only a module that names it is imported: tools try names that are absent.
        if not stated.search(_source(place)):
            continue
        found = importlib.import_module(f"fxflow.{place}".rstrip("."))
        if name in dir(found):
            return f"{place}.{name}".lstrip(".")
    for table in _CALLED_HERE.values():
        if name in table:
            return table[name]
    return None


def _source(place: str) -> str:
    """Returns the text of a public module, which states its names."""
    path = os.path.join(os.path.dirname(__file__), *place.split("."))
    for file in (f"{path}.py", os.path.join(path, "__init__.py")):
        if os.path.isfile(file):
            with open(file, encoding="utf-8") as opened:
                return opened.read()
    return ""


class _Hints:
    """The last finder of modules: says what JAX's modules are called here.

    `import fxflow.tree_util` and `from fxflow.tree_util import tree_map` never ask the
    package for an attribute.
    """

    @staticmethod
    def find_spec(
        name: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """Raises the error for a submodule that the table names; never finds one."""
        package, _, last = name.rpartition(".")
        called = _CALLED_HERE.get(package, {}).get(last)
        # `from fxflow import tree_util` tries the submodule last, and drops the error.
        if called is None:
            return None
        # A package is looked for before its module: `fxflow.experimental.ode`.
        inner = _being_imported(name)
        called = _CALLED_HERE.get(name, {}).get(inner, called)
        if " has " not in called:
            called = f"here it is fxflow.{called}"
        raise ModuleNotFoundError(f"No module named {name!r}: {called}", name=name)


def _being_imported(package: str) -> str:
    """Returns which submodule of a package Python's import is on its way to."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == _IMPORTING:
        name = frame.f_locals.get("name")
        if isinstance(name, str) and name.startswith(f"{package}."):
            return name[len(package) + 1 :].partition(".")[0]
        frame = frame.f_back
    return ""


sys.meta_path.append(_Hints)
