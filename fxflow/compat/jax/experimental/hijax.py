"""`jax.experimental.hijax`: names only.

Types and primitives of the user's own above those of arrays do not exist here. What
defines some when it is imported can be, which is all that most such modules need.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax._src.state.types import AbstractRef, TransformedRef
from fxflow.compat.jax.core import AbstractValue, ShapedArray
from fxflow.compat.jax.interpreters.ad import (
    Zero,
    instantiate_zeros,
    is_undefined_primal,
)


def _absent(what: str) -> NoReturn:
    raise NotImplementedError(
        f"jax.experimental.hijax: {what} do not exist in fxflow.compat.jax "
        "(docs/compat.md)"
    )


class HiPrimitive:
    """A primitive on types of the user's own."""

    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        """Raises: there are none."""
        _absent(f"primitives such as {self.name}")


class VJPHiPrimitive:
    """A primitive with a reverse derivative."""

    def __call__(self, *args: Any) -> NoReturn:
        """Raises: there are none."""
        _absent(f"primitives such as {type(self).__name__}")


class HiType(AbstractValue):
    """A type of the user's own."""


class MutableHiType(AbstractValue):
    """A type of the user's own of what can be changed."""


class HiPspec:
    """How a value of such a type is divided."""


class AvalQDD(NamedTuple):
    """A type and what it says for now."""

    aval: Any
    qdd: Any


class AvalMutableQDD(NamedTuple):
    """A type and what it says for now, which may change."""

    aval: Any
    mutable_qdd: Any


class aval_method(NamedTuple):
    """A method of values that is one of their type."""

    fun: Callable[..., Any]


class aval_property(NamedTuple):
    """A property of values that is one of their type."""

    fget: Callable[..., Any]


class _EffectTypes:
    def add_type(self, effect: type) -> None:
        """Does nothing: there are no such effects."""


control_flow_allowed_effects: _EffectTypes = _EffectTypes()


def register_hitype(val_cls: type, typeof_fn: Callable[..., Any]) -> None:
    """Does nothing: a value of such a type is refused where it is used.

    Args:
      val_cls: class of the values.
      typeof_fn: gives the type of one.
    """


__all__ = [
    "AbstractRef",
    "AbstractValue",
    "AvalMutableQDD",
    "AvalQDD",
    "HiPrimitive",
    "HiPspec",
    "HiType",
    "MutableHiType",
    "ShapedArray",
    "TransformedRef",
    "VJPHiPrimitive",
    "Zero",
    "aval_method",
    "aval_property",
    "control_flow_allowed_effects",
    "instantiate_zeros",
    "is_undefined_primal",
    "register_hitype",
]

listen(globals())
