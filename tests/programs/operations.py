"""The operations of random programs, by name.

An operation is given the library's modules (`Api`: of fxflow, or of JAX, whose names
are the same), its operands and its parameters. `takes` says for which operands it is
meant; `parameters` draws the rest, as plain data. Whatever passes `takes` has to work.
The table is filled by `of_arrays`, `of_programs` and `of_passes`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np


class Api:
    """The modules and transforms of one library.

    Args:
      name: `"fxflow"` or `"jax"`.
    """

    def __init__(self, name: str) -> None:
        root = importlib.import_module(name)
        self.name = name
        self.root = root
        self.np: ModuleType = importlib.import_module(f"{name}.numpy")
        self.lax: ModuleType = importlib.import_module(f"{name}.lax")
        self.nn: ModuleType = importlib.import_module(f"{name}.nn")
        self.random: ModuleType = importlib.import_module(f"{name}.random")
        self.special: ModuleType = importlib.import_module(f"{name}.scipy.special")
        self.linalg: ModuleType = importlib.import_module(f"{name}.scipy.linalg")
        names = "jit grad vmap jvp vjp checkpoint eval_shape custom_jvp custom_vjp"
        for transform in (*names.split(), "linearize", "jacfwd"):
            setattr(self, transform, getattr(root, transform))


@dataclass(frozen=True)
class Type:
    """The shape and dtype of a value."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    @property
    def kind(self) -> str:
        """The letter of the dtype's kind."""
        return self.dtype.kind


Rng = np.random.Generator
Takes = Callable[..., bool]
Parameters = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Operation:
    """A function of `arity` arrays that makes one array.

    Attributes:
      apply: `apply(api, *operands, **parameters)`.
      arity: the number of operands.
      takes: whether operands of these `Type`s are what it is meant for.
      parameters: draws what else it needs, from a generator and the types.
      family: operations are drawn by family first.
    """

    apply: Callable[..., Any]
    arity: int
    takes: Takes
    parameters: Parameters
    family: str


OPERATIONS: dict[str, Operation] = {}


def add(
    name: str,
    family: str,
    apply: Callable[..., Any],
    takes: Takes = lambda *types: True,
    parameters: Parameters = lambda rng, *types: {},
    arity: int = 1,
) -> None:
    """Enters an operation into the table."""
    assert name not in OPERATIONS, name
    OPERATIONS[name] = Operation(apply, arity, takes, parameters, family)


def of_kind(kinds: str) -> Takes:
    """Operands of these kinds of dtype only."""
    return lambda *types: all(t.kind in kinds for t in types)


def broadcastable(*types: Type) -> bool:
    """Whether the shapes broadcast to one that is not large."""
    try:
        shape = np.broadcast_shapes(*(t.shape for t in types))
    except ValueError:
        return False
    return int(np.prod(shape)) <= 4096


def both(first: Takes, second: Takes) -> Takes:
    """What passes both conditions."""
    return lambda *types: first(*types) and second(*types)


def full_rank(least: int, kinds: str = "biufc") -> Takes:
    """At least `least` axes, none empty."""
    return lambda *types: all(
        t.ndim >= least and t.size and t.kind in kinds for t in types
    )


def an_axis(rng: Rng, x: Type) -> int:
    """One of the axes, counted from the front or from the back."""
    return int(rng.integers(-x.ndim, x.ndim))


def some_axes(rng: Rng, x: Type) -> Any:
    """None, an axis, or several."""
    if x.ndim == 0 or rng.random() < 0.25:
        return None
    if rng.random() < 0.5:
        return an_axis(rng, x)
    count = int(rng.integers(1, x.ndim + 1))
    return [int(a) for a in rng.permutation(x.ndim)[:count]]


def axes(value: Any) -> Any:
    """Axes from plain data: lists become tuples."""
    return tuple(value) if isinstance(value, list) else value
