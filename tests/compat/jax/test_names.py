"""Every module of `fxflow.compat.jax` imports, and has the names that matter most."""

import importlib
import pkgutil

import pytest

import fxflow.compat.jax as jax

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(jax.__path__, "fxflow.compat.jax.")
    if not found.name.endswith(("__main__", "pytest_plugin"))
)
# Names that clients use, by module.
USED = {
    "": "jit grad vmap pmap jvp vjp make_jaxpr eval_shape Array devices config typeof "
    "named_call enable_x64 debug_nans custom_jvp custom_vjp checkpoint remat Shard "
    "numpy_dtype_promotion numpy_rank_promotion default_prng_impl transfer_guard",
    ".core": "Tracer ShapedArray Atom eval_jaxpr AbstractValue",
    ".extend.core": "Primitive Jaxpr ClosedJaxpr JaxprEqn Literal Var find_top_trace "
    "get_opaque_trace_state set_current_trace take_current_trace Effect",
    ".extend.linear_util": "wrap_init transformation transformation_with_aux",
    ".api_util": "flatten_fun flatten_fun_nokwargs debug_info safe_map",
    ".errors": "TracerBoolConversionError UnexpectedTracerError JaxRuntimeError",
    ".interpreters.partial_eval": "trace_to_jaxpr_nounits trace_to_jaxpr_dynamic",
    ".sharding": "Mesh NamedSharding PartitionSpec get_abstract_mesh AxisType",
    ".tree_util": "tree_map tree_leaves Partial register_pytree_node DictKey KeyPath",
    ".dtypes": "canonicalize_dtype issubdtype float0 prng_key extended bfloat16",
    ".stages": "Compiled Lowered Traced Wrapped",
    ".typing": "ArrayLike DTypeLike",
    ".nn.initializers": "kaiming_normal xavier_uniform glorot_normal",
    ".experimental.mesh_utils": "create_device_mesh",
    "._src.traceback_util": "register_exclusion api_boundary",
}


@pytest.mark.parametrize("module", MODULES)
def test_modules_import(module):
    found = importlib.import_module(module)
    assert found.__doc__
    for name in getattr(found, "__all__", ()):
        assert hasattr(found, name), name


@pytest.mark.parametrize("module", USED, ids=str)
def test_names_are_there(module):
    found = importlib.import_module(f"fxflow.compat.jax{module}")
    assert [n for n in USED[module].split() if not hasattr(found, n)] == []


def test_scipy_is_found_where_fxflow_has_it():
    assert jax.scipy.special.gammaln(3.0) == pytest.approx(0.6931, abs=1e-3)
    assert jax.scipy.stats.norm.logpdf(0.0) == pytest.approx(-0.9189, abs=1e-3)
