"""`pmap`: one program, mapped over the devices.

The mapped axis of every argument is divided over a row of devices, each of which runs
the function on its slice: a `shard_map` over a mesh of one axis, compiled by `jit`.

Within several processes the mapped axis counts the devices of this process, and the
named axis all of them: every process calls the function with its own slices and gets
its own results.

A `pmap` inside a `pmap` needs a row of devices for each device of the outer one: the
outer one is traced again over a mesh with one axis more.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from fxflow._config import config
from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import ArrayType, ShapeDtypeStruct, type_on, typeof
from fxflow.core.arrays.array import as_array, is_arraylike, not_an_array
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.caches import Cache
from fxflow.core.ir.trace import Tracer
from fxflow.core.labels import leaf_labels
from fxflow.core.runtime.execute import Program, check_finite
from fxflow.core.source import name_of
from fxflow.devices import buffers, clients
from fxflow.devices.meshes import Mesh, PartitionSpec
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError, AxisError, PlacementError, ShapeError
from fxflow.lax.copying import optimization_barrier
from fxflow.lax.reshaping import expand_dims, squeeze
from fxflow.lax.sharded_parts import global_shape
from fxflow.transforms.arguments import (
    as_indices,
    joined,
    require_axes,
    without,
)
from fxflow.transforms.jit import CachedCall, JitFunction, JitOptions, new_caches
from fxflow.transforms.shard_map import run
from fxflow.transforms.stages import Compiled

P = ParamSpec("P")
R = TypeVar("R")


class _Anonymous(Frozen):
    """The named axis of a pmap without a name, by the number of pmaps around it."""

    depth: int

    def __repr__(self) -> str:
        return f"<pmap {self.depth}>"


class _NeedsAxis(Exception):
    """A pmap inside a pmap wants devices: as many for each device of the outer one."""

    def __init__(self, name: Any, size: int) -> None:
        super().__init__(f"a pmap over {size} devices inside a pmap")
        self.row = (name, size)


class _Around(threading.local):
    """The mesh of the pmap being traced, and the axes of it that are not taken yet."""

    mesh: Mesh | None = None
    free: tuple[Any, ...] = ()


_around = _Around()
Rows = tuple[tuple[Any, int], ...]

#: XLA forgets barriers before it merges operations; then the axis of one slice is part
#: of what computes a result, and no result can be written over a donated argument that
#: others read too: it copies arguments first, and results last. An Adam step of a
#: perceptron on 4 devices took 5.8 ms so, and 4.2 ms with barriers that stay.
_KEEP_BARRIERS = {"xla_disable_hlo_passes": "cse_barrier_expander"}


@overload
def pmap(
    fun: Callable[P, R],
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> PmapFunction[P, R]: ...
@overload
def pmap(
    fun: None = None,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable[[Callable[P, R]], PmapFunction[P, R]]: ...
def pmap(
    fun: Callable[..., Any] | None = None,
    axis_name: Any = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """Maps a function over devices: each runs it on its slice of the arguments.

    Args:
      fun: function of arrays or pytrees of them. Left out, a decorator is returned.
      axis_name: name of the mapped axis, for the collectives of `fxflow.lax`.
      in_axes: for each positional argument (or a prefix of its pytree) the axis that is
        mapped, or None: every device gets the whole. Keyword arguments are mapped along
        their axis 0.
      out_axes: where the mapped axis goes in the results, a prefix of their pytree.
        None: the devices' results must be the same, and one is returned.
      static_broadcasted_argnums: positions of arguments that are Python values; they
        must be hashable. Each new value compiles a new program.
      devices: the devices, or their names; None is all of the platform, of which the
        first ones are used if the mapped axis is shorter.
      backend: the platform, if not the default one.
      axis_size: length of the mapped axis over all processes; None: it follows from the
        arguments (or, in several processes, from the devices).
      donate_argnums: positions of arguments whose memory the results may reuse.

    Returns:
      A function of arguments with the mapped axis, as long as this process has devices
      at most. Results stay on their devices, divided along the mapped axis.

    Raises:
      ArgumentError: nothing is mapped, or there are too few devices.
      PlacementError: `devices` is empty, or names one twice.
      ShapeError: the mapped axes of the arguments have different lengths.
      AxisError: an axis is out of range.

    Example:
      >>> f = pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")
      >>> f(fnp.ones((1, 2))).tolist()
      [[1.0, 1.0]]
    """
    if fun is None:
        return functools.partial(
            pmap,
            axis_name=axis_name,
            in_axes=in_axes,
            out_axes=out_axes,
            static_broadcasted_argnums=static_broadcasted_argnums,
            devices=devices,
            backend=backend,
            axis_size=axis_size,
            donate_argnums=donate_argnums,
        )
    require_callable(fun, "pmap")
    if devices is not None and not len(devices):
        raise PlacementError(
            f"pmap({name_of(fun)}): devices is empty; None means all of the platform"
        )
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    require_axes(in_axes, "pmap: in_axes")
    require_axes(out_axes, "pmap: out_axes")
    static = as_indices(static_broadcasted_argnums, "static_broadcasted_argnums")
    donated = as_indices(donate_argnums, "donate_argnums")
    chosen = None if devices is None else tuple(clients.resolve(d) for d in devices)
    return PmapFunction(
        fun, axis_name, in_axes, out_axes, static, chosen, backend, axis_size, donated
    )


class PmapFunction(CachedCall[P, R]):
    """A function mapped over devices. Made by `pmap`.

    What was called before is found in one table for all numbers of slices: types and
    placements say how many there are.
    """

    def __init__(
        self,
        fun: Callable[P, R],
        axis_name: Any,
        in_axes: Any,
        out_axes: Any,
        static: tuple[int, ...],
        devices: tuple[Any, ...] | None,
        backend: str | None,
        axis_size: int | None,
        donated: tuple[int, ...],
    ) -> None:
        functools.update_wrapper(self, fun)
        self._arguments = (fun, axis_name, in_axes, out_axes, static, devices)
        self._arguments += (backend, axis_size, donated)
        self._fun, self._name = fun, name_of(fun)
        self._axis, self._in_axes, self._out_axes = axis_name, in_axes, out_axes
        self._static, self._donated = tuple(sorted(static)), donated
        self._plain = not static
        self._static_argnums, self._static_argnames = static, ()
        self._caches = new_caches()
        self._devices, self._backend = devices, backend
        self._axis_size = axis_size
        # By the number of slices, and the axes of the pmaps inside.
        self._jitted: Cache[tuple[int, Rows], Any]
        self._jitted = Cache("pmap by devices", by_options=True)
        self._rows: dict[int, Rows] = {}

    def __repr__(self) -> str:
        return f"<pmap of {self._name}>"

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        size = self._size(args, kwargs)
        if _around.mesh is not None:
            return self._inside(size, args, kwargs)
        return self._with_rows(lambda jitted: jitted(*args, **kwargs), size)

    @boundary
    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """Traces and lowers for arguments of these types, without running."""
        return self.trace(*args, **kwargs).lower()

    @boundary
    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Traces for arguments of these types."""
        size = self._size(args, kwargs)
        return self._with_rows(lambda jitted: jitted.trace(*args, **kwargs), size)

    @boundary
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """Returns shapes and dtypes of the result."""
        return self.trace(*args, **kwargs).out_info

    # -- the arguments -----------------------------------------------------------------

    def _rebuilt(
        self, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns arguments like the given ones, with other leaves."""
        structure = tree.structure((without(args, self._static), kwargs))
        dynamic, named = structure.unflatten(leaves)
        fixed = [args[i] for i in self._static]
        return tuple(joined(self._static, fixed, dynamic)), named

    def _axes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the leaves that are not static and the mapped axis of each."""
        dynamic = without(args, self._static)
        leaves = tree.leaves((dynamic, kwargs))
        axes = self._in_axes
        # An entry for each argument, static ones included.
        if isinstance(axes, tuple) and len(axes) == len(args):
            axes = without(axes, self._static)
        found = tree.broadcast_prefix(
            axes, dynamic, is_leaf=_is_none, name=f"pmap({self._name}): in_axes"
        )
        return leaves, found + [0] * (len(leaves) - len(found))

    def _donated_leaves(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[bool]:
        """Returns which leaves, of those that are not static, are donated."""
        given = {i % len(args) if i < 0 else i for i in self._donated}
        flags = without([i in given for i in range(len(args))], self._static)
        dynamic = without(args, self._static)
        return tree.broadcast_prefix((flags, False), (dynamic, kwargs))

    def _size(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """Returns the length of the mapped axis in this process."""
        leaves, axes = self._axes(args, kwargs)
        sizes: list[int | None] = []
        for leaf, axis in zip(leaves, axes, strict=True):
            if axis is None:
                sizes.append(None)
                continue
            shape = getattr(leaf, "shape", None)
            if shape is None:
                if not is_arraylike(leaf):
                    raise not_an_array(leaf, f"pmap({self._name}): an argument is")
                shape = typeof(leaf).shape
            if not -len(shape) <= axis < len(shape):
                label = self._labels(args, kwargs)[len(sizes)]
                raise AxisError(
                    f"pmap({self._name}): in_axes is {axis} for argument {label} "
                    f"{typeof(leaf)}, which has {len(shape)} axes"
                )
            sizes.append(shape[axis])
        known = {n for n in sizes if n is not None}
        if len(known) > 1:
            words = ", ".join(
                f"{label} {typeof(leaf)} along axis {axis}"
                for label, leaf, axis in zip(
                    self._labels(args, kwargs), leaves, axes, strict=True
                )
                if axis is not None
            )
            raise ShapeError(
                f"pmap({self._name}): the mapped axes must have one length, got {words}"
            )
        if known:
            (size,) = known
            return size
        if self._axis_size is not None:
            return self._axis_size // len(self._processes())
        if self._devices is not None:
            return len(self._devices) // len(self._processes())
        raise ArgumentError(
            f"pmap({self._name}): no argument is mapped: set axis_size or devices"
        )

    def _labels(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
        positions = [i for i in range(len(args)) if i not in self._static]
        return leaf_labels(self._fun, args, kwargs, positions)

    # -- the devices -------------------------------------------------------------------

    def _all_devices(self) -> list[Any]:
        if self._devices is not None:
            return list(self._devices)
        return clients.devices(self._backend)

    def _processes(self) -> list[int]:
        return sorted({d.process_index for d in self._all_devices()})

    def _mesh(self, size: int, rows: Rows) -> Mesh:
        """Returns the mesh of `size` devices in each process, times those inside."""
        available = self._all_devices()
        processes = self._processes()
        inner = math.prod(n for _, n in rows)
        needed = size * inner
        chosen: list[Any] = []
        for process in processes:
            mine = [d for d in available if d.process_index == process]
            if needed > len(mine):
                inside = f" of {inner} for the pmaps inside" if inner > 1 else ""
                raise ArgumentError(
                    f"pmap({self._name}): the mapped axis has {size} slices{inside}, "
                    f"but process {process} has {len(mine)} devices "
                    f"({', '.join(map(str, mine))}). On a CPU set "
                    f"fxflow.config.num_cpu_devices = {needed} (or "
                    "FXFLOW_NUM_CPU_DEVICES) before the first use."
                )
            chosen += mine[:needed]
        total = size * len(processes)
        if self._axis_size not in (None, total):
            raise ShapeError(
                f"pmap({self._name}): axis_size={self._axis_size}, but the arguments "
                f"have {size} slices in each of {len(processes)} processes"
            )
        first = _Anonymous(0) if self._axis is None else self._axis
        shape = (total, *(n for _, n in rows))
        return Mesh(
            np.array(chosen, object).reshape(shape),
            [first, *(name for name, _ in rows)],
        )

    def _require_all(self, mesh: Mesh) -> None:
        """Makes sure that all devices of each process take part.

        Raises:
          ArgumentError: some do not.
        """
        taking_part = set(mesh.flat)
        size = mesh.axis_sizes[0] // len(self._processes())
        for device in self._all_devices():
            if device not in taking_part:
                process = device.process_index
                mine = [d for d in self._all_devices() if d.process_index == process]
                raise ArgumentError(
                    f"pmap({self._name}): in several processes the mapped axis must be "
                    f"as long as the devices of each: it has {size} slices, process "
                    f"{process} has {len(mine)} devices"
                )

    # -- compiling ---------------------------------------------------------------------

    def _with_rows(self, use: Callable[[Any], Any], size: int) -> Any:
        """Calls `use` with the compiled function, over more devices if need be."""
        while True:
            rows = self._rows.get(size, ())
            jitted = self._jitted.get((size, rows))
            if jitted is None:
                mesh = self._mesh(size, rows)
                jitted = (
                    _AcrossProcesses(self, mesh)
                    if mesh.is_multi_process
                    else self._jit(mesh)
                )
                jitted = self._jitted.setdefault((size, rows), jitted)
            try:
                return use(jitted)
            # Noted, so that the next call begins with the row.
            except _NeedsAxis as needs:
                self._rows[size] = (*rows, needs.row)

    def _jit(self, mesh: Mesh) -> JitFunction[..., Any]:
        # In several processes sums are joined, and beside barriers that stay XLA made
        # the same step 40 times slower (7.6 -> 310 ms).
        alone = mesh.flat[0].platform == "cpu" and not mesh.is_multi_process
        in_place = bool(self._donated) and alone

        # Weak, or only the garbage collector would free what was captured.
        mine: Any = weakref.proxy(self)

        def whole(*args: Any, **kwargs: Any) -> Any:
            given = mine._donated_leaves(args, kwargs) if in_place else None
            with _around_set(mesh, mesh.axis_names[1:]):
                return mine._mapped(mesh, mesh.axis_names[0], args, kwargs, given)

        given = JitOptions(
            static_argnums=self._static,
            donate_argnums=self._donated,
            compiler_options=_KEEP_BARRIERS if in_place else None,
            in_shardings=lambda args, kwargs: mine._shardings(mesh, args, kwargs),
            moves=True,
        )
        # What it runs is found by the pmap's own calls.
        fast = None if mesh.is_multi_process else self._caches.fast
        jitted = JitFunction(functools.update_wrapper(whole, self._fun), given, fast)
        # `jit` has completed them from names; the short path splits arguments by them.
        self._static_argnums = jitted._static_argnums
        self._static_argnames = jitted._static_argnames
        return jitted

    def _shardings(
        self, mesh: Mesh, dynamic: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[NamedSharding]:
        """Returns where each leaf of the arguments, but static ones, is to be."""
        static = self._static
        args = tuple(joined(static, [None] * len(static), dynamic))
        leaves, axes = self._axes(args, kwargs)
        return [
            NamedSharding(mesh, _spec(axis, typeof(leaf).ndim, mesh.axis_names[0]))
            for axis, leaf in zip(axes, leaves, strict=True)
        ]

    def _mapped(
        self,
        mesh: Mesh,
        axis_name: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        donated: Sequence[bool] | None = None,
    ) -> Any:
        """Traces the function of slices; see `shard_map`.

        Args:
          mesh: of the devices.
          axis_name: the axis of the mesh.
          args: all of them.
          kwargs: likewise.
          donated: which leaves are, if results are to be written over them.
        """
        leaves, axes = self._axes(args, kwargs)
        arrays = [as_array(leaf) for leaf in leaves]
        specs = [
            _spec(axis, array.aval.ndim, axis_name)
            for axis, array in zip(axes, arrays, strict=True)
        ]
        structure: list[Any] = []
        out_specs: list[PartitionSpec] = []

        def of_slices(*parts: Any) -> list[Any]:
            slices = [
                part if axis is None else squeeze(part, (axis % part.aval.ndim,))
                for part, axis in zip(parts, axes, strict=True)
            ]
            if donated:
                slices = [
                    optimization_barrier(x) if give and axis is not None else x
                    for x, give, axis in zip(slices, donated, axes, strict=True)
                ]
            full, named = self._rebuilt(slices, args, kwargs)
            out = self._fun(*full, **named)
            outs, out_tree = tree.flatten(out)
            # Set anew: a function that needs a row more is traced twice.
            structure[:] = [out_tree]
            where = tree.broadcast_prefix(
                self._out_axes,
                out,
                is_leaf=_is_none,
                name=f"pmap({self._name}): out_axes",
            )
            pairs = [
                _mapped_out(leaf, axis, self._name, bool(donated))
                for leaf, axis in zip(outs, where, strict=True)
            ]
            out_specs[:] = [
                _spec(axis, array.aval.ndim, axis_name)
                for array, (_, axis) in zip((a for a, _ in pairs), pairs, strict=True)
            ]
            return [array for array, _ in pairs]

        outs = run(
            of_slices,
            mesh,
            arrays,
            tuple(specs),
            lambda: out_specs,
            frozenset({axis_name}),
            False,
            self._name,
            agree=True,
        )
        return structure[0].unflatten(outs)

    def _inside(self, size: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Maps over the devices that the pmap around this one has left for it."""
        mesh = _around.mesh
        assert mesh is not None
        depth = len(mesh.axis_names) - len(_around.free)
        name = _Anonymous(depth) if self._axis is None else self._axis
        if name not in _around.free:
            if _around.free or name in mesh.axis_names:
                raise ArgumentError(
                    f"pmap({self._name}): the axis {name!r} must have another name "
                    "than that of the pmap around it, and the same as other pmaps "
                    "beside it"
                )
            raise _NeedsAxis(name, size)
        if mesh.shape[name] != size:
            raise ArgumentError(
                f"pmap({self._name}): pmaps inside one pmap must map over equally many "
                f"slices, got {mesh.shape[name]} and {size}"
            )
        with _around_set(mesh, tuple(n for n in _around.free if n != name)):
            return self._mapped(mesh, name, args, kwargs)


class _AcrossProcesses:
    """A function over the devices of several processes, called with one's own slices.

    The runtime takes the slices that lie on this process's devices as they are: they
    need not be put together into arrays of all processes, nor results taken apart.
    """

    def __init__(self, mapped: PmapFunction[..., Any], mesh: Mesh) -> None:
        self.jitted = mapped._jit(mesh)
        self.mapped, self.mesh = mapped, mesh
        own = np.array(mesh.local_devices, object)
        self.local = Mesh(own.reshape(-1, *mesh.axis_sizes[1:]), mesh.axis_names)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, _ = self.mapped._axes(args, kwargs)
        if any(isinstance(leaf, Tracer) for leaf in leaves):
            raise ArgumentError(
                f"pmap({self.mapped._name}): in several processes a pmap cannot be "
                "called by a traced function: its arguments are this process's slices. "
                "Call it directly, or use shard_map on arrays of all processes"
            )
        arrays = [as_array(leaf) for leaf in leaves]
        compiled = self._compiled(args, kwargs)
        arg_types = [array._type for array in arrays]
        outs = compiled.run(arrays)
        if config.debug_nans or config.debug_infs:
            check_finite(self.mapped._name, outs)
        elif not compiled.lowered.traced.reads_mesh:
            self.mapped._keep_fast(args, kwargs, compiled, arg_types)
        return compiled.out_tree.unflatten(outs)

    def trace(self, *args: Any, **kwargs: Any) -> Any:
        """Traces for the devices of all processes."""
        leaves, axes = self.mapped._axes(args, kwargs)
        structs = [
            ShapeDtypeStruct(
                self._global(aval.shape, axis), aval.dtype, weak_type=aval.weak_type
            )
            for aval, axis in zip(map(typeof, leaves), axes, strict=True)
        ]
        full, named = self.mapped._rebuilt(structs, args, kwargs)
        traced = self.jitted.trace(*full, **named)
        # Only now is it known that no pmap inside wants the others.
        self.mapped._require_all(self.mesh)
        return traced

    def _global(self, shape: tuple[int, ...], axis: int | None) -> tuple[int, ...]:
        if axis is None:
            return shape
        axis %= len(shape)
        return (*shape[:axis], self.mesh.axis_sizes[0], *shape[axis + 1 :])

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
        """Returns the program of all processes, for this process's slices."""
        traced = self.trace(*args, **kwargs)

        def of_slices() -> Compiled:
            lowered = traced.lower()
            program = lowered.compile().program
            mine = Program(
                program.executable,
                [self._here(where) for where in program.placements],
                [self._own(array_type) for array_type in program.out_types],
                program.text,
                program.calls_python,
            )
            return Compiled(lowered, mine)

        # With the graph, which `jit` keeps or drops.
        compiled: Compiled = traced.graph.remembered("own slices", of_slices)
        return compiled

    def _here(self, where: buffers.Placement) -> buffers.Placement:
        """Returns where this process's slices are of what lies there."""
        far: Any = where.sharding
        return buffers.placement_for(
            NamedSharding(self.local, far.spec, memory_kind=where.offloaded)
        )

    def _own(self, array_type: ArrayType) -> ArrayType:
        """Returns the type of this process's slices."""
        aval = array_type.aval
        far: Any = array_type.placement.sharding
        near = self._here(array_type.placement)
        shape = global_shape(far.shard_shape(aval.shape), far.spec, self.local)
        return type_on(aval.update(shape=shape), near, True)


class _around_set:
    """Makes a mesh the one around; a class for the reason of `named_axes`."""

    __slots__ = ("_before", "_new")

    def __init__(self, mesh: Mesh, free: tuple[Any, ...]) -> None:
        self._new = mesh, free

    def __enter__(self) -> None:
        self._before = _around.mesh, _around.free
        _around.mesh, _around.free = self._new

    def __exit__(self, *exc: object) -> None:
        _around.mesh, _around.free = self._before


def _is_none(value: Any) -> bool:
    return value is None


def _spec(axis: int | None, ndim: int, axis_name: Any) -> PartitionSpec:
    if axis is None:
        return PartitionSpec()
    return PartitionSpec(*[None] * (axis % ndim), axis_name)


def _mapped_out(
    leaf: Any, axis: int | None, name: str, barrier: bool
) -> tuple[Any, int | None]:
    """Returns a device's result with an axis of one where the mapped one goes."""
    if not is_arraylike(leaf):
        raise not_an_array(leaf, f"pmap({name}): the function returned")
    array = as_array(leaf)
    if axis is None:
        return array, None
    ndim = array.aval.ndim + 1
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"pmap({name}): out_axes is {axis} for a result {array.aval} of each device"
        )
    if barrier:
        array = optimization_barrier(array)
    return expand_dims(array, (axis % ndim,)), axis % ndim
