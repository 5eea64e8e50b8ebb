"""`jax.config`, and the options that JAX also sets by context managers.

Options that fxflow has act on it. The others are kept, read back and have no effect:
they tune what fxflow does in its own way, or ask for checks that it always or never
makes; `config.update` refuses a name that JAX does not have.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from fxflow._config import config as options
from fxflow._config import own_name
from fxflow.devices.clients import default_device, set_default_device

_Convert = Callable[[Any], Any]
_UNBOUNDED = 1 << 62


def _same(value: Any) -> Any:
    return value


# JAX's options that fxflow has: to fxflow's values, and back.
_OURS: dict[str, tuple[_Convert, _Convert]] = {
    **dict.fromkeys(
        (
            "jax_check_tracer_leaks",
            "jax_debug_infs",
            "jax_debug_nans",
            "jax_default_matmul_precision",
            "jax_disable_jit",
            "jax_enable_compilation_cache",
            "jax_enable_x64",
            "jax_explain_cache_misses",
            "jax_log_compiles",
            "jax_numpy_dtype_promotion",
            "jax_numpy_rank_promotion",
            "jax_transfer_guard_device_to_device",
            "jax_transfer_guard_device_to_host",
            "jax_transfer_guard_host_to_device",
        ),
        (_same, _same),
    ),
    "jax_platforms": (lambda v: v or "", lambda v: v or None),
    "jax_platform_name": (lambda v: v or "", _same),
    "jax_num_cpu_devices": (
        lambda v: 0 if v is None or v < 0 else v,
        lambda v: v or -1,
    ),
    "jax_transfer_guard": (
        lambda v: v or "allow",
        lambda v: None if v == "allow" else v,
    ),
    # What JAX warns of or refuses becomes 32 bits here without a word.
    "jax_explicit_x64_dtypes": (
        lambda v: "allow" if v == "allow" else "truncate",
        lambda v: "allow" if v == "allow" else "warn",
    ),
    "jax_compilation_cache_dir": (lambda v: v or "", lambda v: v or None),
    "jax_compilation_cache_max_size": (
        lambda v: _UNBOUNDED if v < 0 else v,
        lambda v: -1 if v == _UNBOUNDED else v,
    ),
    "jax_traceback_filtering": (
        lambda v: v in ("off", "tracebackhide"),
        lambda v: "off" if v else "auto",
    ),
}

# What else JAX 0.10.2 has, and its defaults.
_KEPT: dict[str, Any] = {
    "check_vma": False,
    "eager_constant_folding": False,
    "jax2tf_associative_scan_reductions": False,
    "jax2tf_default_native_serialization": True,
    "jax_allow_f16_reductions": True,
    "jax_array_garbage_collection_guard": None,
    "jax_auto_pcast": True,
    "jax_backend_target": "",
    "jax_bcoo_cusparse_lowering": False,
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2000000000,
    "jax_check_proxy_envs": True,
    "jax_check_static_indices": False,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_expect_pgle": False,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_collectives_implementation": "gloo",
    "jax_cpu_enable_async_dispatch": True,
    "jax_cpu_get_global_topology_timeout_minutes": 5,
    "jax_cpu_get_local_topology_timeout_minutes": 2,
    "jax_cross_host_transfer_socket_address": "",
    "jax_cross_host_transfer_timeout_seconds": None,
    "jax_cross_host_transfer_transfer_size": None,
    "jax_cross_host_transport_addresses": "",
    "jax_cuda_visible_devices": "all",
    "jax_custom_vjp3": False,
    "jax_debug_key_reuse": False,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_debug_log_modules": "",
    "jax_default_prng_impl": "threefry2x32",
    "jax_disable_bwd_checks": False,
    "jax_disable_most_optimizations": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_distributed_debug": False,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_embedded_constants_max_bytes": 32,
    "jax_enable_checks": False,
    "jax_enable_custom_prng": False,
    "jax_enable_pgle": False,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_exec_time_optimization_effort": 0.0,
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_export_calling_convention_version": 10,
    "jax_export_ignore_forward_compatibility": False,
    "jax_force_dcn_cross_host_transfers": False,
    "jax_high_dynamic_range_gumbel": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_legacy_prng_key": "allow",
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": "NOTSET",
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_mock_gpu_topology": "",
    "jax_mosaic_allow_hlo": False,
    "jax_mutable_array_checks": True,
    "jax_no_execution": False,
    "jax_no_tracing": False,
    "jax_oneapi_visible_devices": "all",
    "jax_optimization_level": "UNKNOWN",
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_poison_buffers": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_pallas_verbose_errors": False,
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_pprint_use_color": True,
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_random_seed_offset": 0,
    "jax_refs_to_pins": False,
    "jax_remat3": False,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_rocm_visible_devices": "all",
    "jax_scan3": False,
    "jax_send_traceback_to_runtime": "off",
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_share_binary_between_hosts_timeout_ms": 1200000,
    "jax_softmax_custom_jvp": False,
    "jax_sort_devices_by_process_index": True,
    "jax_source_url_schema": None,
    "jax_thread_guard": False,
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_threefry_partitionable": True,
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_use_direct_linearize": True,
    "jax_use_emit_pipeline_primitive": False,
    "jax_use_magma": "auto",
    "jax_use_shardy_partitioner": True,
    "jax_use_simplified_jaxpr_constants": False,
    "jax_xla_backend": "",
    "jax_xla_profile_version": 0,
    "mock_num_gpu_processes": 0,
}


class _Here(threading.local):
    """What the context managers of this thread set of the options that are kept."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


class Config:
    """`jax.config`: options under JAX's names."""

    def __init__(self) -> None:
        self.__dict__["_kept"] = dict(_KEPT)
        self.__dict__["_here"] = _Here()

    def update(self, name: str, value: Any) -> None:
        """Sets an option for the process.

        Args:
          name: JAX's, such as `"jax_enable_x64"`.
          value: what to set it to.

        Raises:
          AttributeError: JAX has no such option.
          ValueError: the value is not allowed.
        """
        if name in _OURS:
            options.update(own_name(name), _OURS[name][0](value))
        elif name == "jax_default_device":
            set_default_device(value)
        elif name in self._kept:
            self._kept[name] = value
        else:
            raise AttributeError(f"Unrecognized config option: {name}")

    def read(self, name: str) -> Any:
        """Returns the value of an option.

        Args:
          name: JAX's.

        Raises:
          AttributeError: JAX has no such option.
        """
        if name in _OURS:
            return _OURS[name][1](getattr(options, own_name(name)))
        if name == "jax_default_device":
            return default_device()
        try:
            return (
                self._here.values[name]
                if name in self._here.values
                else self._kept[name]
            )
        except KeyError:
            raise AttributeError(f"Unrecognized config option: {name}") from None

    @property
    def values(self) -> dict[str, Any]:
        """All options by name."""
        return {name: self.read(name) for name in sorted([*_OURS, *self._kept])}

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit dtypes are the default."""
        return options.x64

    def config_with_absl(self) -> None:
        """Does nothing: options are not absl's flags here."""

    def parse_flags_with_absl(self) -> None:
        """Does nothing: options are not absl's flags here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.update(name, value)


config = Config()


class Option:
    """Sets an option of JAX in a block: `with jax.debug_nans(True):`.

    Args:
      name: JAX's.
      default: the value that it sets when none is passed, where that is allowed.
      value: of the option within the block.

    Returns:
      A context manager, when called.
    """

    _NONE: Any = object()

    def __init__(self, name: str, default: Any = _NONE) -> None:
        self._name, self._default = name, default

    def __call__(self, value: Any = _NONE) -> AbstractContextManager[None]:
        """Sets the option in a block.

        Args:
          value: of the option within.

        Returns:
          A context manager.

        Raises:
          TypeError: there is no value, and none is usual.
        """
        if value is self._NONE:
            value = self._default
        if value is self._NONE:
            raise TypeError(f"{self._name}: say what to set it to")
        return _block(self._name, value)

    @property
    def value(self) -> Any:
        """What holds in this thread."""
        return config.read(self._name)


@contextmanager
def _block(name: str, value: Any) -> Iterator[None]:
    if name in _OURS:
        with options.override(**{own_name(name): _OURS[name][0](value)}):
            yield
        return
    here = config._here.values
    before = here.get(name, Option._NONE)
    here[name] = value
    try:
        yield
    finally:
        if before is Option._NONE:
            del here[name]
        else:
            here[name] = before


CONTEXTS = {
    name.removeprefix("jax_"): Option(name, *default)
    for name, *default in (
        ("jax2tf_associative_scan_reductions",),
        ("jax_allow_f16_reductions",),
        ("jax_array_garbage_collection_guard",),
        ("jax_auto_pcast",),
        ("jax_check_tracer_leaks", True),
        ("jax_debug_infs", True),
        ("jax_debug_key_reuse", True),
        ("jax_debug_nans", True),
        ("jax_default_matmul_precision",),
        ("jax_default_prng_impl",),
        ("jax_enable_checks", True),
        ("jax_enable_custom_prng", True),
        ("jax_enable_x64", True),
        ("jax_explain_cache_misses", True),
        ("jax_legacy_prng_key",),
        ("jax_no_execution", True),
        ("jax_no_tracing", True),
        ("jax_numpy_dtype_promotion",),
        ("jax_numpy_rank_promotion",),
        ("jax_remove_size_one_mesh_axis_from_type", True),
        ("jax_softmax_custom_jvp", True),
        ("jax_thread_guard", True),
        ("jax_threefry_partitionable", True),
    )
}
"""`jax.debug_nans` and its like, by name."""
