"""`jax.ad`, and `with_refs`: gradients that are added to references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from fxflow.core import tree
from fxflow.core.ir.references import Ref, addupdate
from fxflow.transforms.vjp import VJPFunction


@dataclass(frozen=True, slots=True)
class DontWant:
    """Stands for an argument whose gradient is not wanted, in `with_refs`."""


@tree.register_dataclass
@dataclass(frozen=True, slots=True)
class DidntWant:
    """Stands for a gradient that was not wanted, in a result."""


@tree.register_dataclass
@dataclass(frozen=True, slots=True)
class GradRef:
    """Stands for a gradient that was added to a reference, in a result."""


def with_refs(vjp: VJPFunction, *maybe_ct_refs: Any) -> Callable[[Any], Any]:
    """Returns a function like `vjp` that adds gradients to references.

    Args:
      vjp: what `jax.vjp` returned.
      *maybe_ct_refs: for each leaf of the arguments a reference, which its gradient is
        added to; a `jax.ad.DontWant()`; or anything else.

    Returns:
      A function of the cotangents. In its result a `GradRef()` stands for a gradient
      that was added, a `DidntWant()` for one that was not wanted.
    """

    def deliver(wanted: Any, gradient: Any) -> Any:
        if isinstance(wanted, Ref):
            addupdate(wanted, ..., gradient)
            return GradRef()
        return DidntWant() if isinstance(wanted, DontWant) else gradient

    def call(cotangents: Any) -> Any:
        return tree.map(deliver, maybe_ct_refs, vjp(cotangents))

    return tree.Partial(call)


ad: SimpleNamespace = SimpleNamespace(
    DontWant=DontWant, DidntWant=DidntWant, GradRef=GradRef
)
"""`jax.ad`"""
