"""The type of a mutable reference: `Ref{f32[3]}`."""

from __future__ import annotations

import weakref
from typing import Any, Literal

from fxflow.core.arrays.aval import Aval, Axes, Shape
from fxflow.core.arrays.dtypes import float0
from fxflow.devices.meshes import Layout


class AbstractRef(Aval):
    """The type of a reference to an array.

    It has the shape and dtype of what it refers to, but is not a type of an array: only
    the operations on references take it. Interned, as those are.

    Attributes:
      inner_aval: the type of the contents.
      memory_space: always None: the device's own memory.
      kind: a name that the user gave, or None; means nothing here.
    """

    __slots__ = ("inner_aval", "kind", "memory_space")

    inner_aval: Aval
    memory_space: Any
    kind: str | None

    def __new__(
        cls, inner_aval: Aval, memory_space: Any = None, kind: str | None = None
    ) -> AbstractRef:
        """Returns the one object of this type.

        Args:
          inner_aval: the type of the contents.
          memory_space: see the class.
          kind: see the class.
        """
        key = (inner_aval, memory_space, kind)
        known = _table.get(key)
        if known is not None:
            return known
        self = object.__new__(cls)
        self.inner_aval, self.memory_space, self.kind = key
        self.shape, self.dtype = inner_aval.shape, inner_aval.dtype
        self.weak_type, self.vma = inner_aval.weak_type, inner_aval.vma
        self.ndim, self.layout = inner_aval.ndim, inner_aval.layout
        self.is_symbolic = inner_aval.is_symbolic
        # Another thread's, if it was quicker.
        return _table.setdefault(key, self)

    def update(
        self,
        shape: Shape | None = None,
        dtype: Any = None,
        weak_type: bool | None = None,
        vma: Axes | None = None,
        layout: Layout | Literal["same"] | None = "same",
    ) -> AbstractRef:
        """Returns the type of a reference to a type with some parts replaced."""
        inner = self.inner_aval.update(shape, dtype, weak_type, vma, layout)
        return AbstractRef(inner, self.memory_space, self.kind)

    def tangent(self) -> Aval:
        """Returns the type of no derivative: a reference by itself has none."""
        return Aval(self.shape, float0)

    def __reduce__(self) -> tuple[Any, ...]:
        return AbstractRef, (self.inner_aval, self.memory_space, self.kind)

    def __str__(self) -> str:
        return f"Ref{{{self.inner_aval}}}"

    def __repr__(self) -> str:
        return str(self)


_table: weakref.WeakValueDictionary[tuple[Aval, Any, str | None], AbstractRef] = (
    weakref.WeakValueDictionary()
)
