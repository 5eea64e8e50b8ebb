"""How arrays are divided into the parts of devices, and put together again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.devices.meshes import Mesh, PartitionSpec, names_of

Names = tuple[Any, ...]


def axes_of(spec: PartitionSpec) -> frozenset[Any]:
    """Returns the mesh axes that a spec divides over."""
    return frozenset(name for names in spec.names() for name in names)


def _counts(ndim: int, spec: PartitionSpec, mesh: Mesh) -> list[int]:
    """Returns how many parts each axis has."""
    counts = [mesh.length(names) for names in spec.names()]
    return counts + [1] * (ndim - len(counts))


def local_shape(
    shape: Sequence[int], spec: PartitionSpec, mesh: Mesh
) -> tuple[int, ...]:
    """Returns the shape of a device's part; nothing is checked."""
    counts = _counts(len(shape), spec, mesh)
    return tuple(n // c for n, c in zip(shape, counts, strict=False))


def global_shape(
    shape: Sequence[int], spec: PartitionSpec, mesh: Mesh
) -> tuple[int, ...]:
    """Returns the shape of the whole of which every device has a part."""
    counts = _counts(len(shape), spec, mesh)
    return tuple(n * c for n, c in zip(shape, counts, strict=False))


# -- with NumPy ------------------------------------------------------------------------


def cut(value: Any, spec: PartitionSpec, mesh: Mesh, axes: Names) -> Any:
    """Returns the parts stacked along one leading axis for each manual axis."""
    value = np.asarray(value)
    sizes = mesh.shape
    lengths: list[int] = []
    at: dict[Any, int] = {}
    for axis, length in enumerate(value.shape):
        names = names_of(spec[axis]) if axis < len(spec) else ()
        for name in names:
            at[name] = len(lengths)
            lengths.append(sizes[name])
        lengths.append(length // mesh.length(names))
    out = value.reshape(lengths)
    rest = [i for i in range(out.ndim) if i not in at.values()]
    out = out.transpose([*(at[n] for n in axes if n in at), *rest])
    for i, name in enumerate(axes):
        if name not in at:
            out = np.repeat(np.expand_dims(out, i), sizes[name], i)
    return out


def joined(value: Any, spec: PartitionSpec, mesh: Mesh, axes: Names) -> Any:
    """Returns the whole of the parts that `cut` would give."""
    value = np.asarray(value)
    used = axes_of(spec)
    left = [name for name in axes if name in used]
    for i in reversed(range(len(axes))):
        if axes[i] not in used:
            value = value.take(0, i)
    shape = value.shape[len(left) :]
    order: list[int] = []
    final: list[int] = []
    for axis, length in enumerate(shape):
        names = names_of(spec[axis]) if axis < len(spec) else ()
        order += [left.index(n) for n in names]
        order.append(len(left) + axis)
        final.append(length * mesh.length(names))
    return value.transpose(order).reshape(final)
