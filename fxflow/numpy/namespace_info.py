"""What `fxflow.numpy` can do, as the array API standard asks."""

from __future__ import annotations

from typing import Any

from fxflow import devices
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.dtypes import dtype
from fxflow.numpy.scalars import isdtype

# The standard knows these; smaller floats and integers are fxflow's own.
_STANDARD = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)


class ArrayNamespaceInfo:
    """Answers of `fxflow.numpy.__array_namespace_info__()`.

    Source: the array API standard, 2025.12.
    """

    def capabilities(self) -> dict[str, Any]:
        """Returns what depends on the library.

        Returns:
          Boolean masks as indices and shapes that depend on data do not work when
          traced, so that array-api-extra writes `where` in their place; no limit on
          axes is promised but 64.
        """
        return {
            "boolean indexing": False,
            "data-dependent shapes": False,
            "max dimensions": 64,
        }

    def default_device(self) -> Any:
        """Returns the device that arrays are made on."""
        return devices.devices()[0]

    def devices(self) -> list[Any]:
        """Returns all devices."""
        return list(devices.devices())

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Returns the dtypes that Python's own types mean.

        Args:
          device: without meaning; they are the same everywhere.

        Returns:
          A dict with "real floating", "complex floating", "integral" and "indexing".
        """
        return {
            "real floating": dtypes.default_float(),
            "complex floating": dtypes.default_complex(),
            "integral": dtypes.default_int(),
            "indexing": dtypes.default_int(),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Returns the dtypes of a kind, those of the standard.

        Args:
          device: without meaning; they are the same everywhere.
          kind: see `isdtype`; None for all.

        Returns:
          A dict from names to dtypes.

        Raises:
          DtypeError: unknown kind.
        """
        return {
            name: dtype(name)
            for name in _STANDARD
            if kind is None or isdtype(name, kind)
        }


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Returns what `fxflow.numpy` can do.

    Returns:
      An object with the methods of the array API standard.

    Source: the array API standard, 2025.12.
    """
    return ArrayNamespaceInfo()
