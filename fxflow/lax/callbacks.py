"""Calls of Python from within programs.

Eagerly, the function is just called. In a compiled program it is a custom call; such a
program is waited for, so that an exception in the function is raised by the call that
caused it, and effects of one program come before those of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, ShapeDtypeStruct, dtypes, host_of, put_host
from fxflow.core.arrays.array import as_array, is_arraylike, not_an_array
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir.primitive import (
    DEBUG,
    IO,
    ORDERED,
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.lowering import TOKEN, Context
from fxflow.core.source import name_of
from fxflow.core.spmd.partition import by_each_device
from fxflow.core.tree.paths import keys_of
from fxflow.devices import Device
from fxflow.devices.callbacks import HostCallback, custom_call
from fxflow.devices.meshes import Mesh
from fxflow.errors import ArgumentError
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.reshaping import expand_dims, squeeze
from fxflow.lax.slicing import index_in_dim
from fxflow.lax.transfer import as_sharding

EACH = "each device"
VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all")


@register
class PythonCallback(MultipleResults):
    """A call of a Python function of arrays. dtypes: all.

    Params:
      function: takes and returns flat lists of arrays.
      out_avals: types of the results.
      effect: `io`, `ordered io`, `debug`, or None for a pure function.
      vmap_method: how it is vectorized (None: it is not).
      caller: in a program for several devices, the device that calls; None: the first
        one; `EACH`: every device, with its parts of the operands.
    """

    name = "python_callback"
    keeps_plan = False
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    nondifferentiable = (
        "Python code has no derivative: wrap it with fxflow.custom_jvp or "
        "fxflow.custom_vjp"
    )

    def abstract(
        self, *avals: Aval, out_avals: tuple[Aval, ...], **params: Any
    ) -> list[Aval]:
        """What was declared."""
        return list(out_avals)

    def effects(self, *, effect: str | None, **params: Any) -> frozenset[Any]:
        """The declared one."""
        return frozenset() if effect is None else frozenset((effect,))

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """Calls the function."""
        return [
            np.asarray(x) for x in self._call(list(map(as_array, values)), **params)
        ]

    def plan(
        self, arg_types: Values, params: dict[str, Any]
    ) -> Callable[..., list[Array]]:
        """Calls the function at once."""
        return lambda *arrays: self._call(list(arrays), **params)

    def _call(
        self,
        arrays: list[Array],
        *,
        function: Callable[..., Any],
        out_avals: tuple[Aval, ...],
        **params: Any,
    ) -> list[Array]:
        checked = HostCallback(
            lambda *operands: _as_host(function(*arrays), out_avals, function),
            [(a.shape, a.dtype) for a in out_avals],
            name_of(function),
        )
        values = checked.checked_call()
        return [
            put_host(np.array(v), a) for v, a in zip(values, out_avals, strict=True)
        ]

    def lower(
        self,
        ctx: Context,
        *operands: str,
        function: Callable[..., Any],
        out_avals: tuple[Aval, ...],
        effect: str | None,
        caller: Any,
        **params: Any,
    ) -> list[str]:
        """A custom call that jaxlib answers."""
        in_avals = ctx.avals_in

        def on_host(*values: Any) -> Any:
            arrays = [
                # A device may see a part only; keys come with the axes of their data.
                put_host(np.array(v), a.update(shape=v.shape[: a.ndim]))
                for v, a in zip(values, in_avals, strict=False)
            ]
            return _as_host(function(*arrays), out_avals, function)

        index = len(ctx.module.callbacks)
        ctx.module.callbacks.append(
            HostCallback(
                on_host, [(a.shape, a.dtype) for a in out_avals], name_of(function)
            )
        )
        names, given = list(operands), list(in_avals)
        if not names and ctx.module.manual:
            # What has no operand is nowhere, and the partitioner gives it to all.
            given = [Aval((), np.dtype(np.bool_))]
            names = [ctx.constant(np.False_)]
        types = [a.mlir for a in given]
        results = [a.mlir for a in out_avals]
        ordered = effect == ORDERED
        if ordered:
            # Its place among all ordered effects.
            names.append(ctx.token)
            types.append(TOKEN)
            results.append(TOKEN)
        where = _calling(ctx.module, caller, len(results), function)

        def call(names: Sequence[str]) -> str:
            return custom_call(
                index,
                names,
                types,
                results,
                platform=ctx.platform,
                has_side_effect=effect is not None,
                sharding=where,
                partitioned=caller is EACH,
            )

        out: list[str]
        if effect is not None and caller is not EACH:
            out = by_each_device(ctx, names, given, len(results), call)
        else:
            out = ctx.emit_many(len(results), call(names))
        if ordered:
            ctx.token = out.pop()
        if where and out:
            # Results of the program would else be read on devices that did not call.
            types = results[: len(out)]
            out = ctx.emit_many(
                len(out),
                f"stablehlo.optimization_barrier {', '.join(out)} : {', '.join(types)}",
            )
        return out

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """A call for debugging sees the values; any other has no derivative."""
        if params["effect"] == DEBUG:
            return self.bind(*primals, **params), []
        avals = params["out_avals"]
        if all(a.tangent().dtype == dtypes.float0 for a in avals):
            # Results without tangents (integers, or none at all) need no derivative.
            return self.bind(*primals, **params), [Zero(a.tangent()) for a in avals]
        return super().jvp(primals, tangents, **params)

    def batch(
        self,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        function: Callable[..., Any],
        out_avals: tuple[Aval, ...],
        effect: str | None,
        vmap_method: str | None,
        caller: Any,
    ) -> Batched:
        """As `vmap_method` says."""
        if effect == ORDERED:
            raise _no_order(function)
        method = "sequential_unrolled" if effect == DEBUG else vmap_method
        if method is None and effect == IO:
            method = "sequential"
        if hasattr(function, "vectorized"):  # a breakpoint: one call for all slices
            function, method = function.vectorized(size, mapped), "whole"
        params = {
            "function": function,
            "out_avals": out_avals,
            "effect": effect,
            "vmap_method": vmap_method,
            "caller": caller,
        }
        if method is None:
            raise ArgumentError(
                f"vmap of the callback {name_of(function)}: say how with vmap_method=, "
                f"one of {_listed()}"
            )
        if method == "whole":
            return self.bind(*args, **params), []
        wide = tuple(a.update(shape=(size, *a.shape)) for a in out_avals)
        outs = vectorized(
            method,
            lambda *row: self.bind(*row, **params),
            lambda *whole: self.bind(*whole, **{**params, "out_avals": wide}),
            size,
            args,
            mapped,
        )
        return outs, [True] * len(outs)

    def without_tangents(
        self, avals: Sequence[Aval], known: Flags, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        """A breakpoint stops, and shows the types of tangents."""
        function = params["function"]
        if not hasattr(function, "vectorized"):
            return None
        return {**params, "function": function.without_tangents(avals, known)}

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """No rule, but a refusal of ordered calls; a breakpoint has a flag itself."""
        if params["effect"] == ORDERED:
            raise _no_order(params["function"])
        if hasattr(params["function"], "vectorized"):
            return self.bind(bitwise_and(active, args[0]), *args[1:], **params)
        return None

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """The function's name, and the effect."""
        shown = {"function": name_of(params["function"])}
        for key in ("effect", "caller"):
            if params[key]:
                shown[key] = params[key]
        return shown


def vectorized(
    method: str,
    call: Callable[..., Sequence[Any]],
    wide: Callable[..., Sequence[Any]],
    size: int,
    args: Values,
    mapped: Flags,
) -> list[Any]:
    """Vectorizes a call of a function whose inside is unknown.

    Args:
      method: one of `VMAP_METHODS`.
      call: calls it for one slice.
      wide: calls it for all slices at once, with the mapped axis in front.
      size: length of the mapped axis.
      args: values.
      mapped: which of them have the mapped axis, in front.

    Returns:
      The results, all with the mapped axis in front.
    """
    if method == "broadcast_all":
        whole = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return list(wide(*whole))
    if method == "expand_dims":
        return list(
            wide(
                *(
                    a if m else expand_dims(a, (0,))
                    for a, m in zip(args, mapped, strict=True)
                )
            )
        )
    if method == "sequential":

        def step(carry: Any, slices: Any) -> Any:
            given = iter(slices)
            full = [next(given) if m else a for a, m in zip(args, mapped, strict=True)]
            return carry, call(*full)

        stacked = [a for a, m in zip(args, mapped, strict=True) if m]
        return list(scan(step, (), stacked, length=size)[1])
    rows = []
    for i in range(size):
        full = [
            squeeze(index_in_dim(a, i, 0), (0,)) if m else a
            for a, m in zip(args, mapped, strict=True)
        ]
        rows.append(call(*full))
    return [
        concatenate([expand_dims(out, (0,)) for out in column], 0)
        for column in zip(*rows, strict=True)
    ]


def _no_order(function: Any) -> ArgumentError:
    return ArgumentError(
        f"vmap of the ordered callback {name_of(function)}: slices have no order; use "
        "ordered=False"
    )


def _calling(module: Any, caller: Any, count: int, function: Any) -> str:
    """Returns the attribute that says which devices call.

    Args:
      module: of the program.
      caller: the parameter of that name.
      count: number of results.
      function: for messages.
    """
    if isinstance(caller, Device) and module.devices and not module.manual:
        if caller not in module.devices:
            raise ArgumentError(
                f"pure_callback({name_of(function)}): sharding says {caller}, which "
                f"the program does not run on: it runs on {list(module.devices)}"
            )
        mesh = module.mesh(Mesh(np.array(caller), ()))
        each = ", ".join([f"<{mesh}, []>"] * max(count, 1))
        return f"sdy.sharding = #sdy.sharding_per_value<[{each}]>"
    return str(module.on_first(count))


def _listed() -> str:
    return ", ".join(map(repr, VMAP_METHODS))


def _as_host(outs: Values, out_avals: Sequence[Aval], function: Any) -> tuple[Any, ...]:
    """Returns what a callback gave, arrays as NumPy arrays, if the number is right."""
    if len(outs) != len(out_avals):
        raise ValueError(
            f"callback {name_of(function)}: expected {len(out_avals)} results, got "
            f"{len(outs)}"
        )
    return tuple(host_of(x) if isinstance(x, Array) else x for x in outs)


def _flatten(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    what: str,
) -> tuple[Callable[..., Any], tuple[Aval, ...], Any, list[Any]]:
    if not callable(callback):
        raise ArgumentError(f"{what} takes a function, got {type(callback).__name__}")
    leaves, in_tree = tree.flatten((args, kwargs))
    for leaf in leaves:
        if not is_arraylike(leaf):
            raise not_an_array(leaf, f"{what}: an argument of {name_of(callback)} is")
    specs, out_tree = tree.flatten(result_shape_dtypes)
    for spec in specs:
        if not (hasattr(spec, "shape") and hasattr(spec, "dtype")):
            raise ArgumentError(
                f"{what}: result_shape_dtypes holds arrays or ShapeDtypeStructs, got "
                f"{spec!r}"
            )
    out_avals = tuple(ShapeDtypeStruct(s.shape, s.dtype).aval for s in specs)

    def flat(*arrays: Any) -> list[Any]:
        call_args, call_kwargs = in_tree.unflatten(arrays)
        out = callback(*call_args, **call_kwargs)
        if not specs:
            return []
        found = _leaves_like(out_tree, out)
        if found is not None:
            return found
        out_leaves, treedef = tree.flatten(out)
        if len(specs) != 1 or out is None or hasattr(out, "aval"):
            raise ValueError(
                f"callback {name_of(callback)} returned the structure "
                f"{tree.written(treedef)}, expected {tree.written(out_tree)}"
            )
        # A list or number in the place of one array is that array, or holds it.
        if isinstance(out, list | tuple) and len(out_leaves) == 1:
            return out_leaves if np.shape(out) != out_avals[0].shape else [out]
        return [out]

    flat.__name__ = name_of(callback)
    flat.__wrapped__ = callback  # type: ignore[attr-defined]
    return flat, out_avals, out_tree, leaves


def _leaves_like(treedef: Any, value: Any) -> list[Any] | None:
    """Returns the leaves of a value in the order of a structure, or None.

    Its sequences may be others (a list for a tuple), and so may its mappings.
    """
    if tree.structure(value) == treedef:
        return tree.leaves(value)
    data = treedef.node_data()
    if data is None:
        return None
    dummy = treedef.unflatten(range(treedef.num_leaves))
    parts: list[Any]
    if isinstance(dummy, Mapping) and isinstance(value, Mapping):
        keys = [getattr(key, "key", None) for key in keys_of(dummy)]
        if set(keys) != set(value):
            return None
        parts = [value[key] for key in keys]
    elif isinstance(dummy, tuple | list) and isinstance(value, tuple | list):
        parts = list(value)
    else:
        return None
    children = treedef.children()
    if len(children) != len(parts):
        return None
    found = []
    for child, part in zip(children, parts, strict=True):
        leaves = _leaves_like(child, part)
        if leaves is None:
            return None
        found += leaves
    return found


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Calls a pure Python function of arrays, also from compiled programs.

    It may be called any number of times, or never if its results are unused.

    Args:
      callback: takes arrays in the structure of the arguments; returns array-likes of
        the declared structure, shapes and dtypes (a list for a tuple will do, and any
        mapping of the same keys for a dict).
      result_shape_dtypes: pytree of arrays or `ShapeDtypeStruct`s.
      *args: arrays or pytrees of them.
      sharding: of one device (or that device): which one calls, in a program for
        several. None: the first of them. Inside `shard_map` each one does.
      vmap_method: under `vmap`, `"sequential"` (one call after another),
        `"sequential_unrolled"`, `"expand_dims"` (one call; arguments that are not
        mapped get a leading axis of length 1) or `"broadcast_all"` (one call; every
        argument has the mapped axis in front).
      **kwargs: likewise.

    Returns:
      Arrays in the structure of `result_shape_dtypes`.

    Raises:
      ArgumentError: an argument is not an array, `vmap_method` is unknown, or
        `sharding` is not of one device of the program.
      ValueError: the function returned something other than declared.
      NotDifferentiableError: it is differentiated.

    Example:
      >>> double = lambda x: np.asarray(x) * 2
      >>> like = fxflow.ShapeDtypeStruct((2,), "float32")
      >>> fxflow.jit(lambda x: pure_callback(double, like, x))(fnp.ones(2)).tolist()
      [2.0, 2.0]
    """
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ArgumentError(
            f"pure_callback: vmap_method is one of {_listed()}, got {vmap_method!r}"
        )
    caller = None if sharding is None else _one_device(sharding)
    flat, out_avals, out_tree, leaves = _flatten(
        callback, result_shape_dtypes, args, kwargs, "pure_callback"
    )
    outs = PythonCallback.bind(
        *leaves,
        function=flat,
        out_avals=out_avals,
        effect=None,
        vmap_method=vmap_method,
        caller=caller,
    )
    return out_tree.unflatten(outs)


def _one_device(sharding: Any) -> Device:
    where = as_sharding(sharding, "pure_callback: sharding")
    if len(where.devices) != 1:
        raise ArgumentError(
            f"pure_callback: sharding names the device that calls, got {where} over "
            f"{len(where.devices)} devices"
        )
    return where.devices[0]


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Calls a Python function that has effects, also from compiled programs.

    It is called exactly once for each time the program runs over it: under `vmap`, for
    each slice that runs over it.

    Args:
      callback: takes arrays in the structure of the arguments; returns array-likes of
        the declared structure, shapes and dtypes.
      result_shape_dtypes: pytree of arrays or `ShapeDtypeStruct`s; None if it returns
        nothing.
      *args: arrays or pytrees of them.
      ordered: whether calls keep the order of the program.
      **kwargs: likewise.

    Returns:
      Arrays in the structure of `result_shape_dtypes`.

    Raises:
      ArgumentError: an argument is not an array, or an ordered call is vectorized.
      ValueError: the function returned something other than declared.

    Example:
      >>> seen = []
      >>> fxflow.jit(lambda x: io_callback(seen.append, None, x))(1.0)
      >>> seen
      [Array(1., dtype=float32, weak_type=True)]
    """
    flat, out_avals, out_tree, leaves = _flatten(
        callback, result_shape_dtypes, args, kwargs, "io_callback"
    )
    outs = PythonCallback.bind(
        *leaves,
        function=flat,
        out_avals=out_avals,
        effect=ORDERED if ordered else IO,
        vmap_method=None,
        caller=None,
    )
    return out_tree.unflatten(outs)


def debug_callback(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Calls a Python function for its effect; transformations see through it.

    Under `grad` it sees the values; under `vmap` it is called for each slice.

    Args:
      callback: takes arrays in the structure of the arguments; its result is ignored.
      *args: arrays or pytrees of them.
      ordered: whether calls keep the order of the program (not under `vmap`).
      partitioned: whether, in a compiled program for several devices, each of them
        calls with its parts of the arguments, in any order, so that nothing is sent.
        False: the first device calls, with the whole.
      **kwargs: likewise.

    Raises:
      ArgumentError: an argument is not an array, or `ordered` and `partitioned` are
        both asked for.
    """
    if ordered and partitioned:
        raise ArgumentError(
            "debug.callback: the calls of several devices have no order: leave out "
            "ordered or partitioned"
        )
    flat, _, _, leaves = _flatten(callback, None, args, kwargs, "debug.callback")
    PythonCallback.bind(
        *leaves,
        function=flat,
        out_avals=(),
        effect=ORDERED if ordered else DEBUG,
        vmap_method=None,
        caller=EACH if partitioned else None,
    )


def effects_barrier() -> None:
    """Waits until the effects of all programs called so far have happened.

    Programs with effects are waited for when called, so there is never anything left to
    wait for; programs may still call it.

    Example:
      >>> seen = []
      >>> f = fxflow.jit(lambda x: fxflow.debug.callback(seen.append, x))
      >>> f(1.0)
      >>> fxflow.effects_barrier()
      >>> len(seen)
      1
    """
