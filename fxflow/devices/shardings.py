"""Shardings: which device holds which part of an array.

Users write and read `NamedSharding`s, which refer to a mesh. The runtime uses
`HloSharding`s, grids of tiles over the devices in mesh order; `describe` converts the
compiler's choice back to the names of a mesh.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from fxflow.devices import clients, memory_kinds
from fxflow.devices._jaxlib import Device, HloSharding, OpSharding
from fxflow.devices.meshes import (
    AbstractMesh,
    Mesh,
    PartitionSpec,
    coordinates,
    get_mesh,
    names_of,
)
from fxflow.devices.remote import RemoteDevice
from fxflow.errors import PlacementError

#: The runtime's sharding with a copy on each device.
REPLICATED = HloSharding.replicate()

Index = tuple[slice, ...]
Shape = tuple[int, ...]


class Sharding:
    """Base class of all shardings. Immutable and hashable.

    Attributes:
      offloaded: kind of the arrays' memory, such as `"pinned_host"`; None for the
        devices' default memory.
    """

    __slots__ = ("offloaded",)

    offloaded: str | None

    @property
    def memory_kind(self) -> str | None:
        """The kind of memory: `"device"`, `"pinned_host"`, …; None without devices."""
        if self.offloaded is None and self.devices:
            return memory_kinds.default_kind(self.devices[0])
        return self.offloaded

    # -- methods of subclasses ---------------------------------------------------------

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices, in the order of the parts."""
        raise NotImplementedError

    def hlo(self, ndim: int) -> HloSharding:
        """Returns the runtime's sharding for arrays of `ndim` axes."""
        raise NotImplementedError

    def tiles(self, ndim: int) -> tuple[Shape, list[Shape]]:
        """Returns the number of parts of each axis, and the part of each device.

        Args:
          ndim: number of axes.
        """
        raise NotImplementedError

    # -- derived from these ------------------------------------------------------------

    @property
    def device_set(self) -> set[Device]:
        """The devices as a set."""
        return set(self.devices)

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return len(self.devices)

    @property
    def addressable_devices(self) -> set[Device]:
        """The devices of this process."""
        return set(local_part(self.devices))

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices belong to this process."""
        return len(local_part(self.devices)) == len(self.devices)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        raise NotImplementedError

    def shard_shape(self, global_shape: Sequence[int]) -> Shape:
        """Returns the shape of the part that one device holds.

        Args:
          global_shape: shape of the whole array.

        Raises:
          PlacementError: an axis cannot be divided evenly, or there are too few axes.
        """
        shape: tuple[Any, ...] = tuple(global_shape)
        counts, _ = self.tiles(len(shape))
        for axis, (length, count) in enumerate(zip(shape, counts, strict=True)):
            if length % count:
                hint = "pad it"
                if not isinstance(length, int | np.integer):
                    hint = (
                        "if it always can, declare it: symbolic_shape(..., "
                        f"constraints=['mod({length}, {count}) == 0'])"
                    )
                raise PlacementError(
                    f"axis {axis} of an array of shape {list(shape)} cannot be divided "
                    f"into {count} equal parts as {self} requires: {hint}, or leave "
                    "the axis whole (None)"
                )
        return tuple(n // c for n, c in zip(shape, counts, strict=True))

    def require_rank(self, ndim: int) -> None:
        """Checks that arrays may have `ndim` axes.

        Raises:
          PlacementError: the sharding needs more axes.
        """

    def devices_indices_map(
        self, global_shape: Sequence[int]
    ) -> Mapping[Device, Index]:
        """Returns the slices of the whole array that each device holds.

        Args:
          global_shape: shape of the whole array.
        """
        part = self.shard_shape(global_shape)
        counts, positions = self.tiles(len(part))

        def index(position: Shape) -> Index:
            return tuple(
                slice(p * n, (p + 1) * n) if c > 1 else slice(None)
                for p, n, c in zip(position, part, counts, strict=True)
            )

        return {d: index(p) for d, p in zip(self.devices, positions, strict=True)}

    def addressable_devices_indices_map(
        self, global_shape: Sequence[int]
    ) -> Mapping[Device, Index]:
        """Like `devices_indices_map`, for the devices of this process."""
        mine = self.addressable_devices
        every = self.devices_indices_map(global_shape)
        return {d: index for d, index in every.items() if d in mine}

    def is_equivalent_to(self, other: Sharding, ndim: int) -> bool:
        """Returns whether both shardings place arrays of `ndim` axes alike."""
        return self == other or (
            self.devices == other.devices
            and self.offloaded == other.offloaded
            and self.tiles(ndim) == other.tiles(ndim)
        )

    def with_memory_kind(self, kind: str | None) -> Sharding:
        """Returns the same layout in another kind of memory."""
        raise NotImplementedError

    def canonical(self) -> Sharding:
        """Returns the form of this sharding that arrays have."""
        return self


def local_part(devices: Sequence[Device]) -> list[Device]:
    """Returns the devices that belong to this process, in order."""
    if not devices or isinstance(devices[0], RemoteDevice):
        return []
    here = devices[0].client.process_index()
    return [d for d in devices if d.process_index == here]


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
      device: a device, or its name.
      memory_kind: kind of the arrays' memory: `"device"`, `"pinned_host"`, … None is
        the device's default.

    Example:
      >>> where = fxflow.SingleDeviceSharding("cpu:0")
      >>> fxflow.device_put(np.ones(2), where).sharding == where
      True
    """

    __slots__ = ("_device",)

    def __init__(
        self, device: Device | RemoteDevice | str, *, memory_kind: str | None = None
    ) -> None:
        self._device: Any = device
        if not isinstance(device, RemoteDevice):
            self._device = clients.resolve(device)
        self.offloaded: str | None = memory_kinds.check_kind(self._device, memory_kind)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The one device."""
        return (self._device,)

    @property
    def is_fully_replicated(self) -> bool:
        """True."""
        return True

    def hlo(self, ndim: int) -> HloSharding:
        """Replicated."""
        return REPLICATED

    def tiles(self, ndim: int) -> tuple[Shape, list[Shape]]:
        """One part."""
        return (1,) * ndim, [(0,) * ndim]

    def with_memory_kind(self, kind: str | None) -> SingleDeviceSharding:
        """Returns a sharding on the same device in another kind of memory."""
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __hash__(self) -> int:
        return hash((self._device, self.offloaded))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SingleDeviceSharding)
            and self._device == other._device
            and self.offloaded == other.offloaded
        )

    def __repr__(self) -> str:
        kind = f", memory_kind={self.offloaded!r}" if self.offloaded else ""
        return f"SingleDeviceSharding({self._device}{kind})"


class NamedSharding(Sharding):
    """An array on a mesh, with each axis whole or split over mesh axes.

    Args:
      mesh: a `Mesh`; or an `AbstractMesh`, for which functions that place arrays
        substitute the current mesh, which must have the same axes.
      spec: a `PartitionSpec`.
      memory_kind: kind of the arrays' memory: `"device"`, `"pinned_host"`, … None is
        the devices' default.

    Raises:
      PlacementError: the spec names an axis twice, or one that the mesh does not have.

    Example:
      >>> mesh = fxflow.make_mesh((1,), ("data",))
      >>> rows = fxflow.NamedSharding(mesh, fxflow.P("data"))
      >>> fxflow.device_put(np.ones((4, 2)), rows).sharding.spec
      PartitionSpec('data')
    """

    __slots__ = ("_has_devices", "_hash", "_tiles", "mesh", "spec")

    mesh: Mesh
    spec: PartitionSpec

    def __init__(
        self,
        mesh: AbstractMesh,
        spec: PartitionSpec | tuple[Any, ...],
        *,
        memory_kind: str | None = None,
    ) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise PlacementError(
                f"NamedSharding: expected a Mesh, got {type(mesh).__name__}"
            )
        if not isinstance(spec, PartitionSpec):
            if not isinstance(spec, tuple):
                raise PlacementError(
                    "NamedSharding: expected a PartitionSpec, got "
                    f"{type(spec).__name__}"
                )
            spec = PartitionSpec(*spec)
        used: set[Any] = set()
        for name in spec.unreduced | spec.reduced:
            mesh.length((name,))
            if name not in mesh.explicit_axes:
                raise PlacementError(
                    f"{spec}: only explicit axes can be unreduced or reduced, and "
                    f"{name!r} is not an explicit axis of {mesh}: "
                    "make_mesh(..., axis_types=AxisType.Explicit)"
                )
        for names in spec.names():
            mesh.length(names)
            for name in names:
                if name in used:
                    raise PlacementError(
                        f"{spec} splits over the mesh axis {name!r} twice"
                    )
                used.add(name)
        self.mesh, self.spec = cast("Mesh", mesh), spec
        devices = mesh.flat if isinstance(mesh, Mesh) else ()
        self._has_devices = isinstance(mesh, Mesh)
        self.offloaded: str | None = (
            memory_kinds.check_kind(devices[0], memory_kind) if devices else memory_kind
        )
        self._hash = hash((mesh, spec, self.offloaded))
        self._tiles: dict[int, tuple[Shape, list[Shape]]] = {}

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices of the mesh in row-major order.

        Raises:
          PlacementError: the mesh is abstract, and the current mesh is not like it.
        """
        return self.located().mesh.flat

    @property
    def num_devices(self) -> int:
        """Number of devices."""
        return self.mesh.size

    @property
    def memory_kind(self) -> str | None:
        """See `Sharding`; as given for an `AbstractMesh`."""
        return super().memory_kind if self._has_devices else self.offloaded

    def located(self) -> NamedSharding:
        """Returns the sharding on a mesh with devices: its own, or the current mesh.

        Raises:
          PlacementError: it has an `AbstractMesh`, and there is no current mesh, or the
            current mesh has other axes.
        """
        if self._has_devices:
            return self
        mesh = get_mesh()
        if mesh.abstract_mesh != self.mesh:
            raise PlacementError(f"{self} is not for the current mesh, {mesh}")
        return NamedSharding(mesh, self.spec, memory_kind=self.offloaded)

    @property
    def is_fully_replicated(self) -> bool:
        """Whether no axis is split."""
        return all(self.mesh.length(names_of(entry)) == 1 for entry in self.spec)

    def require_rank(self, ndim: int) -> None:
        """See `Sharding`."""
        if len(self.spec) > ndim:
            raise PlacementError(
                f"{self.spec} is for arrays of at least {len(self.spec)} axes, got one "
                f"of {ndim}"
            )

    def padded(self, ndim: int) -> tuple[tuple[Any, ...], ...]:
        """Returns the mesh axes of each of `ndim` axes.

        Raises:
          PlacementError: the spec has more entries.
        """
        self.require_rank(ndim)
        names = self.spec.names()
        return names[:ndim] + ((),) * (ndim - len(names))

    def tiles(self, ndim: int) -> tuple[Shape, list[Shape]]:
        """See `Sharding`."""
        known = self._tiles.get(ndim)
        if known is None:
            entries = self.padded(ndim)
            mesh = self.mesh
            sizes = mesh.shape
            positions = []
            for at in coordinates(mesh):
                tile = []
                for names in entries:
                    position = 0
                    for name in names:
                        position = position * sizes[name] + at[name]
                    tile.append(position)
                positions.append(tuple(tile))
            counts = tuple(mesh.length(names) for names in entries)
            known = self._tiles[ndim] = (counts, positions)
        return known

    def hlo(self, ndim: int) -> HloSharding:
        """See `Sharding`."""
        mesh = self.mesh
        entries = self.padded(ndim)
        if self.is_fully_replicated:
            return REPLICATED
        order = [mesh.axis_names.index(n) for names in entries for n in names]
        rest = [i for i in range(len(mesh.axis_names)) if i not in order]
        dims = [mesh.length(names) for names in entries]
        spare = math.prod(mesh.axis_sizes[i] for i in rest)
        types = []
        if spare > 1:
            dims.append(spare)
            types.append(OpSharding.Type.REPLICATED)
        return HloSharding.iota_tile(
            dims, list(mesh.axis_sizes), [*order, *rest], types
        )

    def canonical(self) -> NamedSharding:
        """Returns the sharding without trailing None entries in its spec."""
        entries = self.spec.canonical()
        if len(entries) == len(self.spec):
            return self
        return self.with_spec(self.spec.with_entries(entries))

    def with_spec(self, spec: PartitionSpec) -> NamedSharding:
        """Returns a sharding on the same mesh with another spec."""
        return NamedSharding(self.mesh, spec, memory_kind=self.offloaded)

    def with_memory_kind(self, kind: str | None) -> NamedSharding:
        """Returns the same layout in another kind of memory."""
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, NamedSharding)
            and self.mesh == other.mesh
            and self.spec == other.spec
            and self.offloaded == other.offloaded
        )

    def __repr__(self) -> str:
        kind = f", memory_kind={self.offloaded!r}" if self.offloaded else ""
        return f"NamedSharding({self.mesh}, {self.spec}{kind})"


class GSPMDSharding(Sharding):
    """A compiler's choice that cannot be expressed by a mesh.

    Args:
      devices: the devices, in the order of the parts.
      hlo_sharding: the runtime's sharding.
      memory_kind: kind of the arrays' memory; None is the devices' default.
    """

    __slots__ = ("_devices", "_hlo")

    def __init__(
        self,
        devices: Sequence[Device],
        hlo_sharding: HloSharding,
        *,
        memory_kind: str | None = None,
    ) -> None:
        self._devices, self._hlo = tuple(devices), hlo_sharding
        self.offloaded: str | None = memory_kinds.check_kind(
            self._devices[0], memory_kind
        )

    @property
    def devices(self) -> tuple[Device, ...]:
        """See `Sharding`."""
        return self._devices

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return bool(self._hlo.is_replicated())

    def hlo(self, ndim: int) -> HloSharding:
        """The sharding of the runtime."""
        return self._hlo

    def tiles(self, ndim: int) -> tuple[Shape, list[Shape]]:
        """See `Sharding`."""
        return tiles_of(self._hlo, len(self._devices), ndim)

    def with_memory_kind(self, kind: str | None) -> GSPMDSharding:
        """Returns the same layout in another kind of memory."""
        return GSPMDSharding(self._devices, self._hlo, memory_kind=kind)

    def __hash__(self) -> int:
        return hash((self._devices, str(self._hlo), self.offloaded))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GSPMDSharding)
            and self._devices == other._devices
            and bool(self._hlo == other._hlo)
            and self.offloaded == other.offloaded
        )

    def __repr__(self) -> str:
        kind = f", memory_kind={self.offloaded!r}" if self.offloaded else ""
        return f"GSPMDSharding({self._hlo}{kind})"


def tiles_of(hlo: HloSharding, count: int, ndim: int) -> tuple[Shape, list[Shape]]:
    """Returns `Sharding.tiles` of a sharding of the runtime.

    Args:
      hlo: the runtime's sharding.
      count: number of devices.
      ndim: number of axes.
    """
    if hlo.is_replicated() or hlo.is_maximal():
        return (1,) * ndim, [(0,) * ndim] * count
    dims = list(hlo.tile_assignment_dimensions())
    order = np.array(hlo.tile_assignment_devices()).reshape(dims)
    positions: list[Shape] = [(0,) * ndim] * count
    for index in np.ndindex(*dims):
        positions[int(order[index])] = tuple(int(i) for i in index[:ndim])
    return tuple(dims[:ndim]), positions


def describe(mesh: Mesh, hlo: HloSharding, ndim: int) -> Sharding:
    """Returns a sharding of the runtime as a `NamedSharding`, if possible.

    Args:
      mesh: the mesh whose devices, in row-major order, `hlo` numbers.
      hlo: the runtime's sharding.
      ndim: number of axes of the array.

    Returns:
      A `NamedSharding` on `mesh`; a `GSPMDSharding` if the mesh cannot express it.
    """
    if hlo.is_replicated():
        return NamedSharding(mesh, PartitionSpec())
    counts, positions = tiles_of(hlo, mesh.size, ndim)
    shape = (*mesh.axis_sizes, ndim)
    grid = np.array(positions, np.int64).reshape(shape) if ndim else None
    entries: list[Any] = []
    for axis in range(ndim):
        assert grid is not None
        names = _axes_indexing(mesh, grid[..., axis], counts[axis])
        if names is None:
            return GSPMDSharding(mesh.flat, hlo)
        entries.append(names)
    found = NamedSharding(mesh, PartitionSpec(*entries)).canonical()
    if found.tiles(ndim) != (counts, positions):
        return GSPMDSharding(mesh.flat, hlo)
    return found


def _axes_indexing(
    mesh: Mesh, positions: np.ndarray[Any, Any], count: int
) -> tuple[Any, ...] | None:
    """Returns the mesh axes, slowest first, that index the parts, or None."""
    strides = []
    for i, (name, size) in enumerate(
        zip(mesh.axis_names, mesh.axis_sizes, strict=True)
    ):
        if size == 1:
            continue
        step = int(np.take(positions, 1, i).flat[0] - np.take(positions, 0, i).flat[0])
        if step:
            strides.append((step, name, size))
    strides.sort(key=lambda s: -s[0])
    expected = 1
    for step, _, size in reversed(strides):
        if step != expected:
            return None
        expected *= size
    return tuple(name for _, name, _ in strides) if expected == count else None
