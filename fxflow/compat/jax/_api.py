"""The functions of `jax` itself that have another name or meaning in fxflow."""

from __future__ import annotations

import functools
import importlib
import platform
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxflow._version import __version__
from fxflow.compat.jax._layout import Format
from fxflow.compat.jax._primitives import wrapped
from fxflow.core import tree
from fxflow.core.arrays import ShapeDtypeStruct, is_arraylike, typeof
from fxflow.core.arrays.array import like_type
from fxflow.core.boundary import require_callable
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, subgraphs
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL
from fxflow.devices import Device, RuntimeFailure, buffers, clients
from fxflow.devices.meshes import PartitionSpec
from fxflow.devices.shardings import SingleDeviceSharding
from fxflow.lax import callbacks, pytree_transfer
from fxflow.transforms import checkpoint as remat
from fxflow.transforms import inspection
from fxflow.transforms import shard_map as _shard_map
from fxflow.transforms.arguments import as_indices, as_names
from fxflow.transforms.jit import JitFunction, JitOptions


class _PlacedJit(JitFunction[..., Any]):
    """A jitted function whose parts run on the devices that it names."""

    def _compiled(self, traced: Any, arg_types: Sequence[Any]) -> Any:
        if not _names_other_devices(traced.arrays.graph, arg_types):
            return super()._compiled(traced, arg_types)
        key = ("parts", traced, *arg_types)

        def compile() -> Any:
            made = _placement().in_parts(traced, arg_types)
            self._caches.compiled.keep(key, made, 0)
            return made

        return self._caches.compiled.once(key, compile, patient=True)


def _placement() -> Any:
    # Loaded by the programs that need it.
    return importlib.import_module("fxflow.compat.jax._placement")


def _names_other_devices(graph: Graph, arg_types: Sequence[Any]) -> bool:
    """Returns whether operations are put on a device that is not the arguments'."""
    places = {t.placement for t in arg_types if t.committed}
    if len(places) > 1 or not all(t.placement.is_single for t in arg_types):
        return False
    named = _named_devices(graph)
    home = places.pop() if places else buffers.default_placement()
    return any(device is not home.device for device in named)


def _named_devices(graph: Graph) -> frozenset[Any]:
    """Returns the devices of `device_put`, and of inner functions with `device=`."""

    def find() -> frozenset[Any]:
        found: set[Any] = set()
        for node in graph.nodes:
            to = node.params.get("to")
            if isinstance(to, SingleDeviceSharding):
                found |= to.device_set
            scopes = (getattr(name, "where", None) for name in node.scope)
            found.update(where for where in scopes if isinstance(where, Device))
            for _, inner in subgraphs(node.params):
                found |= _named_devices(inner)
        return frozenset(found)

    return graph.remembered("named_devices", find)


class _LenientJit(_PlacedJit):
    """A jitted function that drops donations which no result can use, and warns."""

    def _donations(self, bound: Any, graph: Graph) -> tuple[bool, ...]:
        free: dict[Any, int] = {}
        for aval in graph.out_avals:
            kind = aval.physical.strong()
            free[kind] = free.get(kind, 0) + 1
        kept, dropped = [], []
        avals = graph.in_avals[graph.num_consts :]
        for aval, give in zip(avals, super()._donations(bound, graph), strict=True):
            kind = aval.physical.strong()
            usable = give and free.get(kind, 0) > 0
            if usable:
                free[kind] -= 1
            elif give:
                dropped.append(str(aval))
            kept.append(bool(usable))
        if dropped:
            warnings.warn(
                f"Some donated buffers were not usable: {', '.join(dropped)}.",
                stacklevel=2,
            )
        return tuple(kept)


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    in_shardings: Any = None,
    out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Compiles a function; see `fxflow.jit`.

    Args:
      fun: function of arrays or pytrees of them. Left out, a decorator is returned.
      in_shardings: where the arguments are to be.
      out_shardings: where the results are to be.
      static_argnums: positions of arguments that are Python values.
      static_argnames: names of such arguments.
      donate_argnums: positions of arguments whose memory the results may reuse. What
        no result can use is not donated, with a warning.
      donate_argnames: names of such arguments.
      keep_unused: whether the program takes arguments that it does not need.
      device: where to run what is not committed elsewhere (deprecated in JAX); of a
        function inside another, where its operations run.
      backend: the same by the name of a platform.
      inline: whether a call inside another traced function leaves no call.
      compiler_options: XLA's options.

    Returns:
      A function of the same arguments.
    """
    donates = donate_argnums is not None or donate_argnames is not None
    kind = _LenientJit if donates else _PlacedJit
    options = JitOptions(
        static_argnums=as_indices(static_argnums, "static_argnums"),
        static_argnames=as_names(static_argnames, "static_argnames"),
        donate_argnums=as_indices(donate_argnums, "donate_argnums"),
        donate_argnames=as_names(donate_argnames, "donate_argnames"),
        keep_unused=keep_unused,
        inline=inline,
        compiler_options=compiler_options,
        in_shardings=in_shardings,
        out_shardings=out_shardings,
    )
    where = device or backend

    def decorate(function: Callable[..., Any]) -> Any:
        require_callable(function, "jit")
        jitted = kind(function, options)
        return jitted if where is None else _on(where, jitted)

    return decorate if fun is None else decorate(fun)


def _on(where: Any, jitted: JitFunction[..., Any]) -> Callable[..., Any]:
    @functools.wraps(jitted)
    def call(*args: Any, **kwargs: Any) -> Any:
        if state.trace is not EVAL:
            with _placement().on(clients.resolve(where)):
                return jitted(*args, **kwargs)
        with clients.default_device(where):
            return jitted(*args, **kwargs)

    return call


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    mesh: Any = None,
    in_specs: Any = None,
    out_specs: Any = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
    check_rep: bool | None = None,
    auto: Any = None,
) -> Any:
    """Runs a function on every device of a mesh; see `fxflow.shard_map`.

    Args:
      f: the function. Left out, a decorator is returned.
      mesh: the devices; None is the current mesh.
      in_specs: how each argument is divided.
      out_specs: how the results are put together.
      axis_names: the axes that `f` is written for; empty: all.
      check_vma: whether to check what must not differ between devices.
      check_rep: older name of the argument above.
      auto: an older way to say which axes `f` is not written for.

    Returns:
      A function of whole arrays.
    """
    if auto:
        axis_names = frozenset(mesh.axis_names) - frozenset(auto)
    return _shard_map.shard_map(
        f,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=out_specs,
        axis_names=axis_names,
        check=check_vma if check_rep is None else check_rep,
    )


def host_count(backend: str | None = None) -> int:
    """Returns the number of processes.

    Args:
      backend: a platform; None is the default one.

    Returns:
      A Python integer.
    """
    return clients.process_count(backend)


def host_id(backend: str | None = None) -> int:
    """Returns the number of this process.

    Args:
      backend: a platform; None is the default one.

    Returns:
      A Python integer.
    """
    return clients.process_index(backend)


def host_ids(backend: str | None = None) -> list[int]:
    """Returns the numbers of all processes.

    Args:
      backend: a platform; None is the default one.

    Returns:
      A list of Python integers.
    """
    return list(range(clients.process_count(backend)))


process_indices = host_ids


def copy_to_host_async(x: Any) -> Any:
    """Begins to copy arrays to the host, so that reading them later waits less.

    Args:
      x: a pytree; what is not an array is passed over.

    Returns:
      The pytree.
    """
    for leaf in tree.leaves(x):
        if begin := getattr(leaf, "copy_to_host_async", None):
            begin()
    return x


def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: Any = 0,
    out_axes: Any,
    axis_name: Any,
) -> Any:
    """Runs a function on every device along one axis of the current mesh.

    Args:
      f: the function. Left out, a decorator is returned.
      in_axes: which axis of each argument is divided; an integer, None, or a tuple with
        one of them, or a pytree, for each argument.
      out_axes: which axis of each result is put together.
      axis_name: of the mesh.

    Returns:
      A function of whole arrays.
    """

    def specs(axes: Any) -> Any:
        def spec(axis: int | None) -> PartitionSpec:
            if axis is None:
                return PartitionSpec()
            if axis < 0:
                raise ValueError(
                    f"smap: an axis counted from the end ({axis}) names none here: "
                    "the arrays' ranks are not known yet"
                )
            return PartitionSpec(*[None] * axis, axis_name)

        return tree.map(spec, axes, is_leaf=lambda x: x is None)

    if f is None:
        return functools.partial(
            smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name
        )
    return _shard_map.shard_map(
        f, in_specs=specs(in_axes), out_specs=specs(out_axes), axis_names={axis_name}
    )


def print_environment_info(return_string: bool = False) -> str | None:
    """Prints, or returns, what one wants to know for a report.

    Args:
      return_string: whether to return it.

    Returns:
      The text, or None.
    """
    text = (
        f"fxflow: {__version__} (as jax)\nnumpy: {np.__version__}\n"
        f"python: {platform.python_version()}\ndevices: {clients.devices()}\n"
    )
    if return_string:
        return text
    print(text)
    return None


def device_put(x: Any, device: Any = None, **options: Any) -> Any:
    """Puts arrays on devices; see `fxflow.device_put`.

    Args:
      x: array-like or pytree of them.
      device: where to, or a pytree prefix. The sharding of a `Format` counts, since
        the compiler chooses layouts.
      **options: of `fxflow.device_put`.

    Returns:
      The same structure with arrays there.
    """
    place = tree.map(_sharding_of, device, is_leaf=lambda d: isinstance(d, Format))
    return pytree_transfer.device_put(x, place, **options)


def _sharding_of(device: Any) -> Any:
    return device.sharding if isinstance(device, Format) else device


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns shapes and dtypes of a result; see `fxflow.eval_shape`.

    Args:
      fun: function of arrays or pytrees of them. A `ShapeDtypeStruct` that it returns
        stands for an array, as it does among the arguments.
      *args: arrays, `ShapeDtypeStruct`s or whatever else has a shape and a dtype.
      **kwargs: likewise.

    Returns:
      The result with a `ShapeDtypeStruct` for each array.
    """
    args, kwargs = tree.map(_struct_of, (args, kwargs))

    def with_arrays(*args: Any, **kwargs: Any) -> Any:
        return tree.map(_standing_for, fun(*args, **kwargs))

    return inspection.eval_shape(
        functools.update_wrapper(with_arrays, fun), *args, **kwargs
    )


def _struct_of(value: Any) -> Any:
    if is_arraylike(value) or not (hasattr(value, "shape") and hasattr(value, "dtype")):
        return value
    aval = like_type(value)
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


def _standing_for(value: Any) -> Any:
    known = isinstance(value, ShapeDtypeStruct)
    return arith.zeros(typeof(value)) if known else value


@dataclass(frozen=True)
class _Policy:
    """A policy of `checkpoint` that is asked about primitives under JAX's names."""

    policy: Callable[..., Any]

    @property
    def excluded(self) -> frozenset[str]:
        """Names of values not to keep."""
        return getattr(self.policy, "excluded", frozenset())

    def __call__(self, primitive: Any, *avals: Any, **params: Any) -> Any:
        return self.policy(wrapped(primitive), *avals, **params)


def checkpoint(
    fun: Callable[..., Any] | None = None, /, *, policy: Any = None, **options: Any
) -> Any:
    """Makes a function whose backward pass computes again; see `fxflow.checkpoint`.

    Args:
      fun: function of arrays or pytrees of them. Left out, a decorator is returned.
      policy: which intermediate values may be kept; it is asked with primitives that
        are those of `jax.lax`.
      **options: of `fxflow.checkpoint`.

    Returns:
      A function of the same arguments.
    """
    return remat.checkpoint(
        fun, policy=_Policy(policy) if callable(policy) else policy, **options
    )


def _telling(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Makes what a callback raises the runtime's error, as it is in JAX."""

    @functools.wraps(callback)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return callback(*args, **kwargs)
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            raise RuntimeFailure(f"INTERNAL: callback failed: {text}") from error

    return call


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any
) -> Any:
    """Calls a Python function of arrays from a program; see `fxflow.pure_callback`.

    Args:
      callback: the function. What it raises becomes a `JaxRuntimeError`.
      result_shape_dtypes: pytree of `ShapeDtypeStruct`s.
      *args: its arguments.
      **kwargs: likewise, and the options of `fxflow.pure_callback`.

    Returns:
      Its result.
    """
    return callbacks.pure_callback(
        _telling(callback), result_shape_dtypes, *args, **kwargs
    )


def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, **kwargs: Any
) -> Any:
    """Calls a Python function that does something; see `fxflow.io_callback`.

    Args:
      callback: the function. What it raises becomes a `JaxRuntimeError`.
      result_shape_dtypes: pytree of `ShapeDtypeStruct`s.
      *args: its arguments.
      **kwargs: likewise, and the options of `fxflow.io_callback`.

    Returns:
      Its result.
    """
    return callbacks.io_callback(
        _telling(callback), result_shape_dtypes, *args, **kwargs
    )
