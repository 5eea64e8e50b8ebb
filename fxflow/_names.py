"""The names of public modules: what there is, and what an absent one is called here.

`fxflow.random.PRNGKey` raises an AttributeError that names `fxflow.random.key`; a
misspelling, the name that is near. NumPy's and JAX's own names that fxflow spells
another way are listed below; those that are spelled the same need no entry.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any

# Module -> absent name -> what to write instead, relative to fxflow; a text with "has"
# is said as it is.
_CALLED_HERE: dict[str, dict[str, str]] = {
    "fxflow": {
        "check_tracer_leaks": "checking_leaks",
        "default_matmul_precision": "config.override(default_matmul_precision=...)",
        "default_prng_impl": "random.key(seed, impl=...)",
        "enable_custom_prng": "random.key",
        "enable_x64": "config.override(x64=True)",
        "explain_cache_misses": "config.override(explain_retraces=True)",
        "copy_to_host_async": "Array.copy_to_host_async",
        "empty_ref": "new_ref(numpy.empty(shape, dtype))",
        "free_ref": "freeze",
        "host_count": "process_count",
        "host_id": "process_index",
        "jacobian": "jacrev",
        "linear_util": "jvp, vjp and linearize",
        "local_devices_count": "local_device_count",
        "make_jaxpr": "make_graph",
        "pjit": "jit",
        "remat": "checkpoint",
        "reshard": "sharding.reshard",
        "smap": "shard_map",
        "soft_pmap": "pmap or vmap",
        "tree_all": "tree.all",
        "tree_flatten": "tree.flatten",
        "tree_leaves": "tree.leaves",
        "tree_map": "tree.map",
        "tree_multimap": "tree.map",
        "tree_reduce": "tree.reduce",
        "tree_structure": "tree.structure",
        "tree_transpose": "tree.transpose",
        "tree_unflatten": "tree.unflatten",
        "tree_util": "tree",
        "xla_computation": "jit(f).lower(...).as_text()",
        "xmap": "shard_map",
    },
    "fxflow.debug": {"breakpoint": "debug.callback with a function that calls pdb"},
    "fxflow.lax": {
        "PRNGKey": "random.key",
        "axis_size_in_dim": "lax.axis_size",
        "dtype": "numpy.dtype",
        "after_all": "debug.callback(ordered=True)",
        "create_token": "debug.callback(ordered=True)",
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
        "Module": "nn has functions only: keep parameters in a pytree",
        "Linear": "nn has functions only: nn.linear_init, nn.linear",
        "Dense": "nn has functions only: nn.linear_init, nn.linear",
        "hard_swish": "nn.hard_silu",
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
    "fxflow.profiler": {
        "annotate": "profiler.TraceAnnotation, or annotate_function as a decorator",
        "profile": "profiler.trace",
    },
    "fxflow.random": {
        "PRNGKey": "random.key",
        "default_rng": "random.key",
        "key_impl_name": "random.key_impl",
        "rand": "random.uniform(key, shape)",
        "randn": "random.normal(key, shape)",
        "seed": "random.key",
        "shuffle": "random.permutation",
        "threefry_2x32": "random.bits",
    },
    "fxflow.sharding": {
        "PositionalSharding": "sharding.NamedSharding",
        "make_single_device_sharding": "sharding.SingleDeviceSharding",
    },
    "fxflow.tree": {
        "build_tree": "tree.unflatten",
        "register_dataclass_node": "tree.register_dataclass",
        "tree_map": "tree.map",
        "tree_multimap": "tree.map",
    },
}


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
        if sys._getframe(1).f_code.co_filename == _IMPORTING:
            # `from module import name` asks before it looks for a submodule, and shows
            # nobody what it was told.
            raise AttributeError(_absent(module, name), name=name)
        try:
            raise AttributeError(message(module, name, listed), name=name)
        except AttributeError as error:
            error.__traceback__ = None  # a bare `raise` leaves the user's line alone
            raise

    def __dir__() -> list[str]:
        # Tools look for __all__, __path__ and their like here.
        own = {name for name in namespace if name.startswith("__")}
        return sorted(listed | own)

    namespace["__getattr__"], namespace["__dir__"] = __getattr__, __dir__


def message(module: str, name: str, names: Collection[str]) -> str:
    """Says what an absent name is called here, as far as that is known.

    Args:
      module: that was asked for it.
      name: the absent one.
      names: the public names of the module.
    """
    text = _absent(module, name)
    if name.startswith("__"):  # Python and its tools ask for these
        return text
    called = _CALLED_HERE.get(module, {}).get(name)
    if called is None and module == "fxflow.tree":
        called = _without_prefix(name, names)
    if called is None:
        import difflib  # a millisecond that only who misspells needs to wait for

        near = difflib.get_close_matches(name, names, 1)
        return f"{text}: did you mean {module}.{near[0]}?" if near else text
    if " has " in called:
        return f"{text}: {called}"
    return f"{text}: here it is fxflow.{called}"


def _absent(module: str, name: str) -> str:
    return f"module {module!r} has no attribute {name!r}"


def _without_prefix(name: str, names: Collection[str]) -> str | None:
    """Returns the name of `tree_map` and its like without the prefix."""
    short = name.removeprefix("tree_")
    return f"tree.{short}" if short != name and short in names else None
