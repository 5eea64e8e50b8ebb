"""Meshes: grids of devices with named axes, and how array axes are split over them."""

from __future__ import annotations

import enum
import math
import operator
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set
from types import TracebackType
from typing import Any

import numpy as np

from fxflow._frozen import Frozen
from fxflow.devices import clients
from fxflow.devices._jaxlib import Device
from fxflow.devices.remote import RemoteDevice, require_one_process
from fxflow.errors import PlacementError, ShardingTypeError

AxisName = Any


class AxisType(enum.Enum):
    """How an axis of a mesh takes part in partitioning.

    `Auto`: the compiler decides, within constraints. `Explicit`: types state how arrays
    are divided, `f32[8@x,2]`. `Manual`: inside `shard_map`.
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class PartitionSpec(tuple[Any, ...]):
    """The mesh axes over which each axis of an array is split.

    An entry is the name of a mesh axis, a tuple of names (the first is the slowest), or
    None: not split. Axes beyond the entries are not split, so specs that differ only in
    trailing None entries are equal; an array keeps the shorter one. In constraints,
    `PartitionSpec.UNCONSTRAINED` leaves an axis to the compiler. The class cannot be
    subclassed, because operations on specs would drop the subclass.

    Attributes:
      unreduced: explicit mesh axes over which the array must still be summed; see
        `core/spmd/layouts`.
      reduced: explicit mesh axes over which the array is summed and its cotangent is
        unreduced.

    Example:
      >>> PartitionSpec("x", None, ("y", "z"))
      PartitionSpec('x', None, ('y', 'z'))
      >>> PartitionSpec(None, unreduced={"x"})
      PartitionSpec(None, unreduced={'x'})
    """

    unreduced: frozenset[AxisName] = frozenset()
    reduced: frozenset[AxisName] = frozenset()

    class _Unconstrained:
        def __repr__(self) -> str:
            return "UNCONSTRAINED"

        def __reduce__(self) -> str:
            return "PartitionSpec.UNCONSTRAINED"

    UNCONSTRAINED: Any = _Unconstrained()

    def __init_subclass__(cls) -> None:
        raise TypeError("PartitionSpec cannot be subclassed")

    def __new__(
        cls,
        *entries: Any,
        unreduced: Set[AxisName] = frozenset(),
        reduced: Set[AxisName] = frozenset(),
    ) -> PartitionSpec:
        """Makes a spec; lists become tuples, and a tuple of one name becomes the name.

        Raises:
          PlacementError: `unreduced` or `reduced` is not a set, or two of the three
            name the same axis.
        """
        fixed: list[Any] = []
        for entry in entries:
            if isinstance(entry, list | tuple):
                entry = tuple(entry)
                if not entry:
                    entry = None
                elif len(entry) == 1:
                    (entry,) = entry
            fixed.append(entry)
        self = super().__new__(cls, fixed)
        if unreduced or reduced:
            self._set_sums(unreduced, reduced)
        return self

    def _set_sums(self, unreduced: Any, reduced: Any) -> None:
        named = {name for names in self.names() for name in names}
        for word, names in (("unreduced", unreduced), ("reduced", reduced)):
            if not isinstance(names, Set):
                raise PlacementError(
                    f"PartitionSpec: {word} must be a set of names of mesh axes, got "
                    f"{names!r}"
                )
            if not named.isdisjoint(names):
                raise PlacementError(
                    f"PartitionSpec: {word}={set(names)} names a mesh axis again: an "
                    "axis divides the array, or the array is unreduced or reduced over "
                    "it"
                )
            named.update(names)
            self.__dict__[word] = frozenset(names)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"PartitionSpec is immutable: {name} cannot be set")

    def __repr__(self) -> str:
        parts = list(map(repr, self))
        for word in ("unreduced", "reduced"):
            names = getattr(self, word)
            if names:
                parts.append(f"{word}={{{', '.join(sorted(map(repr, names)))}}}")
        return f"PartitionSpec({', '.join(parts)})"

    def __reduce__(self) -> Any:
        return _spec_of, (tuple(self), self.unreduced, self.reduced)

    def __hash__(self) -> int:
        return hash(self.canonical())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple):
            return NotImplemented
        if not isinstance(other, PartitionSpec):
            other = PartitionSpec(*other)
        return (
            self.canonical() == other.canonical()
            and self.unreduced == other.unreduced
            and self.reduced == other.reduced
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def canonical(self) -> tuple[Any, ...]:
        """Returns the entries without trailing None."""
        entries = tuple(self)
        while entries and entries[-1] is None:
            entries = entries[:-1]
        return entries

    def names(self) -> tuple[tuple[AxisName, ...], ...]:
        """Returns the mesh axes of each entry, as tuples."""
        return tuple(names_of(entry) for entry in self)

    def with_entries(self, entries: Sequence[Any]) -> PartitionSpec:
        """Returns a spec of other entries with the same `unreduced` and `reduced`."""
        return _spec_of(entries, self.unreduced, self.reduced)


def _spec_of(
    entries: Sequence[Any], unreduced: Set[AxisName], reduced: Set[AxisName]
) -> PartitionSpec:
    return PartitionSpec(*entries, unreduced=unreduced, reduced=reduced)


P = PartitionSpec


def names_of(entry: Any) -> tuple[AxisName, ...]:
    """Returns the mesh axes of an entry of a `PartitionSpec`."""
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


class _Explicit:
    """Whether a mesh with explicit axes was ever made; until then types have none."""

    used = False


explicit: _Explicit = _Explicit()


class AbstractMesh:
    """A mesh's axis names and lengths, without devices.

    Args:
      axis_sizes: the length of each axis.
      axis_names: the name of each axis.
      axis_types: an `AxisType` for each, or one for all; None is `AxisType.Auto`.
    """

    __slots__ = ("axis_names", "axis_sizes", "axis_types")

    axis_names: tuple[AxisName, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[AxisName],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> None:
        try:
            self.axis_sizes = tuple(map(operator.index, axis_sizes))
            self.axis_names = tuple(axis_names)
        except TypeError as error:
            raise PlacementError(
                "AbstractMesh: axis_sizes and axis_names must be sequences, of "
                f"integers and of names, got {axis_sizes!r} and {axis_names!r}"
            ) from error
        _check_names(self.axis_sizes, self.axis_names)
        self.axis_types = _checked_types(axis_types, len(self.axis_names))

    @property
    def explicit_axes(self) -> tuple[AxisName, ...]:
        """Names of the axes of type `AxisType.Explicit`."""
        return self._axes_of(AxisType.Explicit)

    @property
    def auto_axes(self) -> tuple[AxisName, ...]:
        """Names of the axes of type `AxisType.Auto`."""
        return self._axes_of(AxisType.Auto)

    @property
    def manual_axes(self) -> tuple[AxisName, ...]:
        """Names of the axes of type `AxisType.Manual`."""
        return self._axes_of(AxisType.Manual)

    def _axes_of(self, kind: AxisType) -> tuple[AxisName, ...]:
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        return tuple(name for name, is_of in pairs if is_of is kind)

    @property
    def shape(self) -> Mapping[AxisName, int]:
        """Length of each axis by name, in order."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def shape_tuple(self) -> tuple[tuple[AxisName, int], ...]:
        """Name and length of each axis, in order."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Whether the mesh has no axes or no devices."""
        return not self.axis_sizes or self.size == 0

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: Sequence[AxisName] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> AbstractMesh:
        """Returns an abstract mesh with the given attributes replaced.

        Args:
          axis_sizes: the length of each axis.
          axis_names: the name of each axis.
          axis_types: an `AxisType` for each, or one for all.

        Raises:
          PlacementError: their numbers of axes differ.
        """
        return AbstractMesh(
            self.axis_sizes if axis_sizes is None else axis_sizes,
            self.axis_names if axis_names is None else axis_names,
            self.axis_types if axis_types is None else axis_types,
        )

    def length(self, names: Sequence[AxisName]) -> int:
        """Returns the product of the lengths of axes.

        Raises:
          PlacementError: the mesh has no such axis.
        """
        result = 1
        for name in names:
            try:
                result *= self.axis_sizes[self.axis_names.index(name)]
            except ValueError:
                raise PlacementError(
                    f"{self} has no axis {name!r}; its axes are "
                    f"{', '.join(map(repr, self.axis_names)) or 'none'}"
                ) from None
        return result

    def __hash__(self) -> int:
        return hash((self.axis_sizes, self.axis_names, self.axis_types))

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is AbstractMesh
            and self.axis_sizes == other.axis_sizes
            and self.axis_names == other.axis_names
            and self.axis_types == other.axis_types
        )

    def __repr__(self) -> str:
        axes = ", ".join(f"{n!r}: {s}" for n, s in self.shape.items())
        types = ""
        if len(self.auto_axes) < len(self.axis_names):
            types = f", axis_types=({', '.join(t.name for t in self.axis_types)})"
        return f"{type(self).__name__}({axes}{types})"


def _check_names(sizes: Sequence[int], names: Sequence[AxisName]) -> None:
    if len(sizes) != len(names):
        raise PlacementError(
            f"a mesh of shape {tuple(sizes)} needs {len(sizes)} axis "
            f"name{'s' * (len(sizes) != 1)}, got {tuple(names)}"
        )
    if len(set(names)) != len(names):
        raise PlacementError(f"the axis names of a mesh must differ, got {names}")


def _checked_types(axis_types: Any, count: int) -> tuple[AxisType, ...]:
    if axis_types is None:
        return (AxisType.Auto,) * count
    if isinstance(axis_types, AxisType):
        return (axis_types,) * count
    types = tuple(axis_types) if isinstance(axis_types, list | tuple) else ()
    if len(types) != count or not all(isinstance(t, AxisType) for t in types):
        raise PlacementError(
            f"axis_types must hold an AxisType for each of {count} axes, got "
            f"{axis_types!r}"
        )
    return types


class Mesh(AbstractMesh):
    """A grid of devices with named axes. Immutable; equal meshes hash alike.

    Also a context manager: in a `with mesh:` block it is the current mesh, as after
    `set_mesh`.

    Args:
      devices: array (or nested sequence) of devices or device names such as
        `"/job:worker/task:1/device:cpu:0"`; or of the devices of one task of a
        `dataflow.Cluster`, for `dataflow.on(mesh)`.
      axis_names: one name (any hashable) for each axis of `devices`.
      axis_types: an `AxisType` for each axis, or one for all; None is `AxisType.Auto`.

    Raises:
      PlacementError: names and axes do not match, a device occurs twice, devices belong
        to several tasks, or a type is not an `AxisType`, or is `Manual`.

    Example:
      >>> mesh = fxflow.Mesh(fxflow.devices()[:1], ("data",))
      >>> mesh.axis_names, mesh.size
      (('data',), 1)
    """

    __slots__ = ("_before", "_flat", "_hash", "devices")

    devices: np.ndarray[Any, Any]

    def __init__(
        self,
        devices: Any,
        axis_names: AxisName | Sequence[AxisName],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> None:
        if isinstance(axis_names, str):
            axis_names = (axis_names,)
        grid = np.array(devices, dtype=object)
        flat: list[Any] = [
            d if isinstance(d, RemoteDevice) else clients.resolve(d) for d in grid.flat
        ]
        require_one_process(flat, "the mesh")
        grid = np.empty(grid.shape, object)
        for i, device in enumerate(flat):
            grid.flat[i] = device
        if len(set(flat)) != len(flat):
            raise PlacementError(f"a device occurs twice in the mesh {flat}")
        super().__init__(grid.shape, axis_names, axis_types)
        if self.manual_axes:
            raise PlacementError(
                f"axis_types of a Mesh are Auto or Explicit, got {axis_types!r}: axes "
                "become manual in shard_map"
            )
        if self.explicit_axes:
            explicit.used = True
        grid.flags.writeable = False
        self.devices = grid
        self._flat = tuple(flat)
        self._hash = hash(
            (self._flat, self.axis_sizes, self.axis_names, self.axis_types)
        )
        # A stack: a mesh may be entered again inside its own block.
        self._before: list[Mesh | None] = []

    @property
    def flat(self) -> tuple[Device, ...]:
        """The devices in row-major order."""
        return self._flat

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether all axes are `AxisType.Auto`."""
        return all(kind is AxisType.Auto for kind in self.axis_types)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether all axes are `AxisType.Explicit`."""
        return all(kind is AxisType.Explicit for kind in self.axis_types)

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """The devices' ids, in the shape of the mesh."""
        ids = [d.id for d in self._flat]
        return np.array(ids, np.int64).reshape(self.axis_sizes)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of this process, in row-major order."""
        return [
            d
            for d in self._flat
            if not isinstance(d, RemoteDevice)
            and d.process_index == d.client.process_index()
        ]

    @property
    def local_mesh(self) -> Mesh:
        """The smallest part of the grid that holds all devices of this process.

        Raises:
          PlacementError: this process has none of the devices, or that part includes
            devices of other processes.
        """
        mine = set(self.local_devices)
        here = np.array([d in mine for d in self._flat]).reshape(self.axis_sizes)
        if not mine:
            raise PlacementError(f"{self} has no device of this process")
        ranges = [np.unique(indices) for indices in np.nonzero(here)]
        part = np.ix_(*(np.arange(r[0], r[-1] + 1) for r in ranges))
        if not here[part].all():
            raise PlacementError(
                f"the devices of this process are not a rectangular part of {self}: "
                "order the devices by process"
            )
        return Mesh(self.devices[part], self.axis_names, axis_types=self.axis_types)

    @property
    def is_multi_process(self) -> bool:
        """Whether the devices belong to several processes."""
        return len({d.process_index for d in self._flat}) > 1

    def same_grid(self, other: Mesh) -> bool:
        """Returns whether the meshes differ at most in their `axis_types`."""
        return (
            self._flat == other._flat
            and self.axis_sizes == other.axis_sizes
            and self.axis_names == other.axis_names
        )

    def with_types(self, names: Sequence[AxisName], kind: AxisType) -> Mesh:
        """Returns the mesh with the axes in `names` of type `kind`."""
        pairs = zip(self.axis_names, self.axis_types, strict=True)
        types = [kind if name in names else before for name, before in pairs]
        return Mesh(self.devices, self.axis_names, types)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The same axes without devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Mesh)
            and self.same_grid(other)
            and self.axis_types == other.axis_types
        )

    def __reduce__(self) -> Any:
        raise TypeError(f"{self} cannot be pickled: its devices belong to this process")

    def __enter__(self) -> Mesh:
        self._before.append(current.mesh)
        current.mesh = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        current.mesh = self._before.pop()


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[AxisName],
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Device | str] | None = None,
) -> Mesh:
    """Makes a mesh of the available devices.

    Devices of one process are adjacent along the last axes. On TPUs and GPUs the
    runtime determines the order, which follows the hardware's links.

    Args:
      axis_shapes: the length of each axis; one may be -1: as many as the devices allow.
      axis_names: the name of each axis.
      axis_types: an `AxisType` for each axis, or one for all; None is `AxisType.Auto`.
      devices: the devices to use; None is all devices of the default platform. If there
        are more than needed, the mesh uses the first.

    Returns:
      The mesh.

    Raises:
      PlacementError: there are too few devices, or names and shape do not match.

    Example:
      >>> make_mesh((1,), ("x",)).shape["x"]
      1
    """
    available = clients.devices() if devices is None else list(devices)
    shape = [int(n) for n in axis_shapes]
    if shape.count(-1) > 1 or any(n < 1 and n != -1 for n in shape):
        raise PlacementError(
            f"make_mesh: axis lengths must be positive (one may be -1), got "
            f"{tuple(axis_shapes)}"
        )
    known = math.prod(n for n in shape if n != -1)
    if -1 in shape:
        if len(available) % known:
            raise PlacementError(
                f"make_mesh: {len(available)} devices cannot be divided by {known} "
                f"for the shape {tuple(axis_shapes)}"
            )
        shape[shape.index(-1)] = len(available) // known
    needed = math.prod(shape)
    if needed > len(available):
        raise PlacementError(
            f"make_mesh: a mesh of shape {tuple(shape)} needs {needed} devices, there "
            f"are {len(available)}. On a CPU set fxflow.config.num_cpu_devices = "
            f"{needed} (or FXFLOW_NUM_CPU_DEVICES) before the first use."
        )
    grid = np.array(available[:needed], object).reshape(shape)
    return Mesh(grid, axis_names, axis_types=axis_types)


class Layout(Frozen):
    """How the arrays of a type are divided over the explicit axes of a mesh.

    Attributes:
      mesh: the mesh.
      entries: the mesh axes that divide each axis of an array, () for none.
      unreduced: see `PartitionSpec`.
      reduced: see `PartitionSpec`.
    """

    mesh: Mesh
    entries: tuple[tuple[AxisName, ...], ...]
    unreduced: frozenset[AxisName] = frozenset()
    reduced: frozenset[AxisName] = frozenset()

    @property
    def spec(self) -> PartitionSpec:
        """This layout as a `PartitionSpec`."""
        entries = [entry or None for entry in self.entries]
        return _spec_of(entries, self.unreduced, self.reduced)

    @property
    def sums(self) -> frozenset[AxisName]:
        """The axes over which an array or its cotangent is unreduced."""
        return self.unreduced | self.reduced

    def dual(self) -> Layout:
        """Returns the layout of the cotangent."""
        if not self.sums:
            return self
        return self.replace(unreduced=self.reduced, reduced=self.unreduced)

    def or_none(self) -> Layout | None:
        """Returns itself; None if it divides no axis and has no `sums`."""
        return self if any(self.entries) or self.sums else None

    def checked(self, shape: Sequence[int], what: str) -> Layout | None:
        """Returns itself, checked, or None: see `or_none`.

        Args:
          shape: the array's shape.
          what: the start of the error message.

        Raises:
          ShardingTypeError: a mesh axis divides two axes, or an axis is not divisible.
        """
        if self.or_none() is None:
            return None
        names = [name for entry in self.entries for name in entry]
        if not self.sums.isdisjoint(names):
            raise ShardingTypeError(
                f"{what}: a mesh axis would divide the result, {self._divided()}, over "
                f"which it is unreduced, {set(self.unreduced)}, or reduced, "
                f"{set(self.reduced)}: reshard an operand (fxflow.sharding.reshard)"
            )
        if len(set(names)) < len(names):
            raise ShardingTypeError(
                f"{what}: a mesh axis would divide two axes of the result, "
                f"{self._divided()}: reshard an operand (fxflow.sharding.reshard), or "
                "say how the result is divided with out_sharding=P(...)"
            )
        for axis, (length, entry) in enumerate(zip(shape, self.entries, strict=True)):
            count = self.mesh.length(entry)
            if length % count:
                raise ShardingTypeError(
                    f"{what}: axis {axis} of the result has the length {length}, "
                    f"which the {count} devices along {entry} do not divide evenly: "
                    "reshard the operand (fxflow.sharding.reshard)"
                )
        return self

    def of_shape(self, old: Sequence[int], new: Sequence[int]) -> Layout | None:
        """Returns the layout of a type of another shape, or None if there is none.

        Args:
          old: the shape of this layout's type.
          new: `old` with a first axis added or removed, or with other lengths of axes
            that are not divided.
        """
        entries = self.entries
        if len(new) == len(old) + 1 and tuple(new[1:]) == tuple(old):
            entries = ((), *entries)
        elif len(new) == len(old) - 1 and tuple(new) == tuple(old[1:]):
            entries = entries[1:]
        elif len(new) != len(old) or any(
            e and m != n for e, m, n in zip(entries, old, new, strict=True)
        ):
            return None
        return self.replace(entries=entries).or_none()

    def _divided(self) -> PartitionSpec:
        return PartitionSpec(*(entry or None for entry in self.entries))


class _Current(threading.local):
    """This thread's current mesh, and the number of reads of it."""

    mesh: Mesh | None = None
    reads: int = 0


current: _Current = _Current()


class _MeshContext:
    """The context manager of `set_mesh`: restores the previous mesh on exit."""

    __slots__ = ("_before", "mesh")

    def __init__(self, mesh: Mesh | None, before: Mesh | None) -> None:
        self.mesh, self._before = mesh, before

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        current.mesh = self._before


def set_mesh(mesh: Mesh | None) -> Any:
    """Sets this thread's current mesh, to which specs without a mesh refer.

    Args:
      mesh: a `Mesh`, or None.

    Returns:
      A context manager that restores the previous mesh; without `with` the mesh stays.

    Raises:
      PlacementError: it is not a mesh.

    Example:
      >>> with set_mesh(make_mesh((1,), ("x",))) as mesh:
      ...     get_mesh() is mesh
      True
    """
    if mesh is not None and not isinstance(mesh, Mesh):
        raise PlacementError(f"set_mesh: expected a Mesh, got {type(mesh).__name__}")
    before, current.mesh = current.mesh, mesh
    return _MeshContext(mesh, before)


def current_mesh() -> Mesh | None:
    """Returns this thread's current mesh, or None."""
    return current.mesh


def get_mesh() -> Mesh:
    """Returns the current mesh.

    Returns:
      The `Mesh` that `set_mesh` or a `with mesh:` block set in this thread.

    Raises:
      PlacementError: there is none.

    Example:
      >>> mesh = fxflow.make_mesh((1,), ("data",))
      >>> with fxflow.set_mesh(mesh):
      ...     fxflow.get_mesh() == mesh
      True
    """
    note_mesh_read()
    mesh = current.mesh
    if mesh is None:
        raise PlacementError(
            "there is no current mesh: use `with fxflow.set_mesh(mesh):`, or pass a "
            "NamedSharding(mesh, spec) instead of a bare PartitionSpec"
        )
    return mesh


def note_mesh_read() -> None:
    """Records that the current trace depends on the current mesh."""
    current.reads += 1


def coordinates(mesh: AbstractMesh) -> Iterator[dict[AxisName, int]]:
    """Yields the coordinates of each device on the axes, in row-major order."""
    for index in np.ndindex(*mesh.axis_sizes):
        yield dict(zip(mesh.axis_names, index, strict=True))
