"""Types of arrays ("abstract values"): shape, dtype and weak type, interned.

Two equal types are one object, so that a cache key made of types is compared by
identity: this is what keeps a compiled call cheap. A *weak* type is that of a Python
scalar, which yields to the dtype of what it is combined with.

An `ArrayType` is a type together with its placement: what a compiled program is chosen
by. It is interned likewise, so that the key of a call is a tuple of object identities.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fxflow.core.arrays import dtypes
from fxflow.core.sizes import Size, length_of
from fxflow.core.source import at_fault
from fxflow.devices import OutOfMemoryError, buffers, memory
from fxflow.devices.meshes import (
    AbstractMesh,
    Layout,
    Mesh,
    PartitionSpec,
    current_mesh,
    explicit,
    get_mesh,
)
from fxflow.devices.shardings import NamedSharding, Sharding
from fxflow.errors import ArgumentError, ShapeError

Shape = tuple[int, ...]
Axes = frozenset[Any]
NOWHERE: Axes = frozenset()
MOST_BYTES = 2**63 - 1


class Aval:
    """The type of an array, written `f32[3,4]` (a weak one `f32[]~`).

    Inside `shard_map` a type may end in the mesh axes along which the devices' values
    differ: `f32[3,4]{V:x}`; over explicit axes of a mesh it says how the array is
    divided: `f32[8@x,4]`.

    Attributes:
      shape: lengths of the axes: integers, and sizes that only a call says (`sizes`).
      dtype: a NumPy dtype (`ml_dtypes` included) or a key dtype.
      weak_type: whether the dtype yields to others in promotion.
      vma: "varying manual axes", see `core/spmd/varying`; nearly always none.
      layout: how it is divided, see `core/spmd/layouts`; nearly always None: it is not,
        or the type does not say.
      ndim: number of axes.
      is_symbolic: whether a length is a `Size`, which only a call says.
    """

    __slots__ = (
        "__weakref__",
        "_mlir",
        "dtype",
        "is_symbolic",
        "layout",
        "ndim",
        "shape",
        "vma",
        "weak_type",
    )

    shape: Shape
    dtype: Any
    weak_type: bool
    vma: Axes
    layout: Layout | None
    ndim: int
    is_symbolic: bool
    _mlir: str

    def __new__(
        cls,
        shape: Shape,
        dtype: Any,
        weak_type: bool = False,
        vma: Axes = NOWHERE,
        layout: Layout | None = None,
    ) -> Aval:
        """Returns the one object of this type.

        Args:
          shape: a tuple of Python ints and `Size`s.
          dtype: a canonical dtype (`dtypes.dtype` makes one).
          weak_type: see the class.
          vma: see the class.
          layout: see the class.

        Raises:
          ShapeError: the elements are more than can be addressed.
        """
        key = (shape, dtype, weak_type, vma, layout)
        # Weak references: shapes that a program no longer uses do not stay for ever.
        reference = _table.get(key)
        if reference is not None:
            known = reference()
            if known is not None:
                return known
        # XLA ends the process where the number of bytes does not fit 63 bits, and
        # multiplies the other lengths even if one is 0.
        elements: Any = math.prod([n or 1 for n in shape])
        if type(elements) is int and elements * (dtype.itemsize or 1) > MOST_BYTES:
            dims = ",".join(map(str, shape))
            raise ShapeError(
                f"{at_fault()}an array {dtypes.short_name(dtype)}[{dims}] is larger "
                "than any memory: it has 2^63 bytes or more"
            )
        self = object.__new__(cls)
        self.shape, self.dtype, self.weak_type = shape, dtype, weak_type
        self.vma, self.layout = vma, layout
        self.ndim = len(shape)
        self.is_symbolic = Size in map(type, shape)
        with _lock:
            # Another thread may have been quicker: a type is known by its identity.
            reference = _table.get(key)
            known = None if reference is None else reference()
            if known is not None:
                return known
            _table[key] = weakref.ref(self, lambda dead: _forget(key, dead))
        return self

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take in memory."""
        return self.size * int(self.dtype.itemsize)

    @property
    def sharding(self) -> TypeSharding | None:
        """How the type says that the array is divided; None if it does not."""
        mesh = current_mesh() if self.layout is None else self.layout.mesh
        if mesh is None or not mesh.explicit_axes:
            return None
        layout = self.layout or Layout(mesh, ((),) * self.ndim)
        return TypeSharding(mesh.abstract_mesh, layout.spec, mesh)

    @property
    def physical(self) -> Aval:
        """The type as the compiler sees it: keys are vectors of u32, float0 is bool."""
        if type(self.dtype) is dtypes.KeyDtype:
            shape, layout = self.shape + self.dtype.suffix, self.layout
            if layout is not None:
                more = ((),) * len(self.dtype.suffix)
                layout = layout.replace(entries=(*layout.entries, *more))
            return Aval(shape, self.dtype.base, vma=self.vma, layout=layout)
        if self.dtype == dtypes.float0:
            return Aval(self.shape, dtypes.bool_, vma=self.vma, layout=self.layout)
        return self

    @property
    def mlir(self) -> str:
        """The type in StableHLO's notation: `tensor<3x4xf32>`."""
        try:
            return self._mlir
        except AttributeError:
            body = self.physical
            # `d`: as programs have sizes, where they are not numbers.
            dims = "".join(f"{n:d}x" for n in body.shape)
            self._mlir = f"tensor<{dims}{dtypes.mlir_name(body.dtype)}>"
            return self._mlir

    def update(
        self,
        shape: Shape | None = None,
        dtype: Any = None,
        weak_type: bool | None = None,
        vma: Axes | None = None,
        layout: Layout | Literal["same"] | None = "same",
    ) -> Aval:
        """Returns the type with some of its parts replaced."""
        if layout == "same":
            layout = self.layout
            if layout is not None and shape is not None:
                layout = layout.of_shape(self.shape, shape)
        return Aval(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
            self.vma if vma is None else vma,
            layout,
        )

    def strong(self) -> Aval:
        """Returns the same type, not weak."""
        return self.update(weak_type=False) if self.weak_type else self

    def tangent(self) -> Aval:
        """Returns the type of a derivative with respect to a value of this type."""
        dtype = dtypes.tangent_dtype(self.dtype)
        return Aval(self.shape, dtype, vma=self.vma, layout=self.layout)

    def cotangent(self) -> Aval:
        """Returns the type of a cotangent of a tangent of this type."""
        if self.layout is None or not self.layout.sums:
            return self
        return self.update(layout=self.layout.dual())

    def __reduce__(self) -> tuple[Any, ...]:
        return Aval, (self.shape, self.dtype, self.weak_type, self.vma)

    def __str__(self) -> str:
        dims = ",".join(map(str, self.shape))
        if self.layout is not None:
            dims = ",".join(map(_divided, self.shape, self.layout.entries))
        weak = "~" if self.weak_type else ""
        varying = _named("V", self.vma)
        if self.layout is not None and self.layout.sums:
            varying += _named("U", self.layout.unreduced)
            varying += _named("R", self.layout.reduced)
        return f"{dtypes.short_name(self.dtype)}[{dims}]{weak}{varying}"

    __repr__ = __str__


def _named(letter: str, axes: Axes) -> str:
    return f"{{{letter}:{','.join(sorted(map(str, axes)))}}}" if axes else ""


def _divided(length: int, entry: tuple[Any, ...]) -> str:
    if len(entry) > 1:
        return f"{length}@({','.join(map(str, entry))})"
    return f"{length}@{entry[0]}" if entry else str(length)


@dataclass(frozen=True)
class TypeSharding:
    """What `typeof(x).sharding` says: a mesh without devices, and a spec over it.

    Attributes:
      mesh: an `AbstractMesh`.
      spec: a `PartitionSpec` with an entry for each axis.
      devices_mesh: the mesh with its devices, where the sharding stands for one of
        arrays (`reshard(y, typeof(x).sharding)`).
    """

    mesh: AbstractMesh
    spec: PartitionSpec
    devices_mesh: Mesh = field(compare=False, repr=False)


Key = tuple[Shape, Any, bool, Axes, Layout | None]
_table: dict[Key, weakref.ref[Aval]] = {}


# Reentrant: a type may die, and be forgotten, in the thread that is entering another.
_lock = threading.RLock()


def _forget(key: Key, dead: weakref.ref[Aval]) -> None:
    # Another thread may have entered a new type after this one had died.
    with _lock:
        if _table.get(key) is dead:
            del _table[key]


class _Typed:
    """What has a type: arrays, `ShapeDtypeStruct`s, zeros."""

    __slots__ = ()

    @property
    def aval(self) -> Aval:
        """The type: shape, dtype, weak type."""
        raise NotImplementedError

    @property
    def shape(self) -> Shape:
        """Lengths of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        """Whether the dtype yields in promotion."""
        return self.aval.weak_type


class ShapeDtypeStruct(_Typed):
    """Shape and dtype of an array that does not exist, for `eval_shape` and `lower`.

    Args:
      shape: lengths of the axes.
      dtype: anything `fxflow.numpy.dtype` takes.
      weak_type: whether the dtype yields in promotion.
      sharding: the `Sharding` it would have, or a `PartitionSpec` over the current
        mesh, for `jit(f).lower` and functions such as `zeros_like`; None leaves that
        open.

    Raises:
      ArgumentError: `sharding` is not a sharding.
      PlacementError: an array of that shape cannot be laid out as `out_sharding`
        specifies.

    Example:
      >>> ShapeDtypeStruct((3, 4), "float32")
      ShapeDtypeStruct(f32[3,4])
    """

    __slots__ = ("aval", "sharding")

    sharding: Any
    aval: Aval

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        *,
        weak_type: bool = False,
        sharding: Any = None,
    ) -> None:
        if isinstance(sharding, PartitionSpec):
            sharding = NamedSharding(get_mesh(), sharding)
        self.sharding = sharding
        try:
            lengths = tuple(map(length_of, shape))
        except TypeError:
            raise ArgumentError(
                f"ShapeDtypeStruct: shape must be a sequence of integers, got {shape!r}"
            ) from None
        self.aval = Aval(lengths, dtypes.dtype(dtype), bool(weak_type))
        if sharding is None:
            return
        if not isinstance(sharding, Sharding):
            raise ArgumentError(
                f"ShapeDtypeStruct: sharding must be a Sharding, got {sharding!r}: use "
                "NamedSharding(mesh, spec) or SingleDeviceSharding(device)"
            )
        sharding.shard_shape(self.shape)
        if isinstance(sharding, NamedSharding):
            self.aval = self.aval.update(layout=layout_of(sharding, self.aval))

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Returns the shape, dtype and sharding of an array.

        Args:
          x: array, or anything that has a shape and a dtype.
        """
        if isinstance(x, ShapeDtypeStruct):
            return x
        committed = getattr(x, "committed", False)
        return cls(
            x.shape,
            x.dtype,
            weak_type=getattr(x, "weak_type", False),
            sharding=x.sharding if committed else None,
        )

    def update(self, **parts: Any) -> ShapeDtypeStruct:
        """Returns a copy with `shape`, `dtype`, `weak_type` or `sharding` replaced."""
        return ShapeDtypeStruct(
            parts.get("shape", self.shape),
            parts.get("dtype", self.dtype),
            weak_type=parts.get("weak_type", self.weak_type),
            sharding=parts.get("sharding", self.sharding),
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ShapeDtypeStruct)
            and self.aval is other.aval
            and self.sharding == other.sharding
        )

    def __hash__(self) -> int:
        return hash((ShapeDtypeStruct, self.aval, self.sharding))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an unsized ShapeDtypeStruct")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct({self.aval})"


def struct_of(aval: Aval) -> ShapeDtypeStruct:
    """Returns the type as users see it."""
    layout = aval.layout
    where = None if layout is None else NamedSharding(layout.mesh, layout.spec)
    return ShapeDtypeStruct(
        aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=where
    )


# -- at a placement --------------------------------------------------------------------


class ArrayType:
    """Type, placement and whether the user asked for that placement.

    Attributes:
      aval: the type.
      placement: which device or devices hold it.
      committed: whether operations must stay there.
    """

    __slots__ = ("_handler", "_of_ref", "aval", "committed", "placement")

    aval: Aval
    placement: Any
    committed: bool
    _handler: Any
    _of_ref: RefType

    def __init__(self, aval: Aval, placement: Any, committed: bool) -> None:
        known = type(aval.nbytes) is int
        if known and placement.is_host and 0 < memory.host_memory() < aval.nbytes:
            # The system would lend the memory, and end the process when it is written.
            raise OutOfMemoryError(
                f"{at_fault()}{aval} takes {aval.nbytes:,} bytes, more than the "
                f"{memory.host_memory():,} that this machine has"
            )
        self.aval, self.placement, self.committed = aval, placement, committed

    @property
    def handler(self) -> Any:
        """What the runtime calls to wrap a raw result of this type and placement."""
        try:
            return self._handler
        except AttributeError:
            self._handler = buffers.result_handler(
                self.aval.physical, self.placement, self.committed
            )
            return self._handler

    @property
    def of_ref(self) -> RefType:
        """What stands for a reference to such an array in the key of a call."""
        try:
            return self._of_ref
        except AttributeError:
            self._of_ref = RefType(self)
            return self._of_ref

    def __repr__(self) -> str:
        return f"{self.aval}@{self.placement}"


class RefType:
    """The type and placement of what a reference holds. Made by `ArrayType.of_ref`."""

    __slots__ = ("contents",)

    contents: ArrayType

    def __init__(self, contents: ArrayType) -> None:
        self.contents = contents

    def __repr__(self) -> str:
        return f"Ref{{{self.contents}}}"


def type_on(aval: Aval, placement: Any = None, committed: bool = False) -> ArrayType:
    """Returns the one `ArrayType` of these parts.

    Args:
      aval: the type.
      placement: None is the default device's.
      committed: whether operations must stay there.

    Raises:
      OutOfMemoryError: the machine does not have the memory for it.
    """
    if placement is None:
        placement = buffers.default_placement()
    # There, not in a table of this module: it goes when the device's client does.
    table = placement.table
    known: ArrayType | None = table.get((aval, committed))
    if known is None:
        as_it_is = aval
        if explicit.used:
            # Where an array lies is what its type says.
            layout = layout_of(placement.sharding, aval)
            as_it_is = aval.update(layout=layout)
        made = (
            ArrayType(aval, placement, committed)
            if as_it_is is aval
            else type_on(as_it_is, placement, committed)
        )
        # Another thread's, if it was quicker: an `ArrayType` is known by its identity.
        known = table.setdefault((aval, committed), made)
    return known


def mesh_of(placement: Any) -> Mesh:
    """Returns the mesh of a placement on several devices."""
    sharding = placement.sharding
    if isinstance(sharding, NamedSharding):
        return sharding.mesh
    return Mesh(list(placement.devices), ("devices",))


def common_placement(
    arg_types: Sequence[ArrayType], name: str, mesh: Mesh | None = None
) -> tuple[Any, bool]:
    """Returns where an operation on arrays of these placements runs.

    Args:
      arg_types: of the arguments.
      name: of the operation, for the message.
      mesh: that the operation itself names.

    Returns:
      The placement of what has none of its own (on several devices: a copy on each),
      and whether anything insists on it.

    Raises:
      ArgumentError: two arguments insist on different devices.
    """
    default = buffers.default_placement()
    # The usual case: there is nothing to choose.
    if mesh is None and all(t.placement is default for t in arg_types):
        return default, any(t.committed for t in arg_types)
    chosen: ArrayType | None = None
    for array_type in arg_types:
        if not array_type.committed:
            continue
        if chosen is None:
            chosen = array_type
        elif array_type.placement is chosen.placement:
            continue
        elif array_type.placement.devices != chosen.placement.devices:
            first, second = str(chosen.placement), str(array_type.placement)
            if first == second:  # meshes of one shape
                first = f"{first} of {_ids(chosen.placement)}"
                second = f"{second} of {_ids(array_type.placement)}"
            raise ArgumentError(
                f"{name}: arguments are committed to different devices: "
                f"{chosen.aval} to {first}, {array_type.aval} to {second}; move one "
                "with fxflow.device_put"
            )
        elif chosen.placement.is_single or (
            isinstance(array_type.placement.sharding, NamedSharding)
            and not isinstance(chosen.placement.sharding, NamedSharding)
        ):
            # The same devices: a mesh gives the results' shardings their axis names.
            chosen = array_type
    if chosen is not None:
        placement = chosen.placement
        if mesh is not None and mesh.flat != placement.devices:
            raise ArgumentError(
                f"{name}: runs on {mesh}, but the argument {chosen.aval} is committed "
                f"to {placement}; move it with fxflow.device_put(x, "
                "NamedSharding(mesh, spec))"
            )
        if len(placement.devices) == 1 and mesh is None:
            if isinstance(placement.sharding, NamedSharding):
                return everywhere(placement.sharding.mesh), True
            return buffers.placement(placement.device), True
        return everywhere(mesh or mesh_of(placement)), True
    if mesh is not None:
        return everywhere(mesh), True
    return default, False


def _ids(placement: Any) -> str:
    """Names the devices of a placement, the first few of many."""
    ids = [device.id for device in placement.devices]
    listed = ", ".join(map(str, ids[:4])) + ", …" * (len(ids) > 4)
    return f"device{'s' * (len(ids) != 1)} {listed}"


def everywhere(mesh: Mesh) -> Any:
    """Returns the placement of a copy on each device of a mesh."""
    return buffers.placement_for(NamedSharding(mesh, PartitionSpec()))


def layout_of(sharding: Any, aval: Aval) -> Layout | None:
    """Returns what the type of an array says, laid out by a sharding.

    Args:
      sharding: any; a `NamedSharding` may name explicit axes.
      aval: type of the array.
    """
    if not isinstance(sharding, NamedSharding) or not sharding.mesh.explicit_axes:
        return None
    sharding = sharding.located()
    known = frozenset(sharding.mesh.explicit_axes)
    rows = sharding.padded(aval.physical.ndim)[: aval.ndim]
    entries = tuple(tuple(name for name in row if name in known) for row in rows)
    spec = sharding.spec
    return Layout(sharding.mesh, entries, spec.unreduced, spec.reduced).or_none()


def require_room(shape: Shape, dtype: Any) -> None:
    """Checks that an array can be made, before NumPy is asked to.

    Args:
      shape: shape of the largest array that there will be.
      dtype: of it.

    Raises:
      ShapeError: it is larger than any memory.
      OutOfMemoryError: the machine does not have the memory for it.
    """
    type_on(Aval(shape, dtype))
