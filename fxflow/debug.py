"""`fxflow.debug`: see values while programs run."""

from __future__ import annotations

import builtins
import os
import string
import sys
from collections.abc import Sequence
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import Array, not_an_array
from fxflow.core.boundary import boundary
from fxflow.core.boundary import public as _public
from fxflow.core.ir.graph import Var
from fxflow.core.ir.trace import Tracer
from fxflow.core.labels import leaf_labels
from fxflow.core.source import describe
from fxflow.devices.shardings import Sharding
from fxflow.errors import ArgumentError, ConcretizationError
from fxflow.lax.callbacks import debug_callback as callback
from fxflow.transforms.breakpoints import breakpoint
from fxflow.transforms.inspection import make_graph
from fxflow.transforms.searching import Finding
from fxflow.transforms.vjp import vjp
from fxflow.transforms.watching import watch
from fxflow.viz.shardings import ColorMap, sharding_text

__all__ = [
    "Finding",
    "breakpoint",
    "callback",
    "print",
    "print_saved_residuals",
    "visualize_array_sharding",
    "visualize_sharding",
    "watch",
]


class _Fields(string.Formatter):
    """Checks that a format uses all its arguments."""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        """Raises `ArgumentError` for an argument that the format does not show."""
        unused = [i for i in range(len(args)) if i not in used_args]
        unused += [name for name in kwargs if name not in used_args]
        if unused:
            raise ArgumentError(
                f"debug.print: argument {unused[0]!r} is not used by the format: "
                "write {} or {name} where it is to be printed"
            )


def print(
    fmt: str,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Prints values when the program runs, also from within compiled programs.

    Args:
      fmt: a format as of `str.format`, with a replacement field for each argument.
      *args: arrays.
      ordered: whether prints keep the order of the program (not under `vmap`).
      partitioned: whether, in a compiled program for several devices, each prints its
        parts of the arguments. False: the whole is printed once.
      **kwargs: arrays by name.

    Raises:
      ArgumentError: an argument is not an array, the format does not fit, or `ordered`
        and `partitioned` are both asked for.

    Example:
      >>> fxflow.jit(lambda x: print("x is {x}", x=x))(1.0)
      x is 1.0
    """
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"debug.print takes a format and its arguments, got {type(fmt).__name__}: "
            'write debug.print("{}", x)'
        )
    formatter = _Fields()
    # Checked here, at the user's line; the callback runs later.
    formatter.vformat(fmt, [_Any()] * len(args), dict.fromkeys(kwargs, _Any()))

    def show(*values: Any, **named: Any) -> None:
        builtins.print(fmt.format(*values, **named))

    show.__name__ = "debug.print"
    callback(show, *args, ordered=ordered, partitioned=partitioned, **kwargs)


class _Any:
    """Stands for an argument while the format is checked."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str) -> _Any:
        return self

    def __getitem__(self, index: Any) -> _Any:
        return self


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 0,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Prints which device holds which part of an array of a shape.

    Args:
      shape: a shape of at most 2 axes.
      sharding: how the array lies over devices.
      use_color: whether each device has a colour, on terminals (unless the environment
        variable `NO_COLOR` is set).
      scale: of 1, a part is as wide as the longest name and one line high; of 3, three
        times that.
      min_width: of a part, in characters.
      max_width: of a part, in characters; longer names are cut.
      color_map: from a number between 0 and 1, a device's rank among all, to red,
        green and blue between 0 and 1. None: around the colour wheel.

    Raises:
      ArgumentError: the array has more than 2 axes, or `scale` or `max_width` is not
        positive.
      PlacementError: it cannot be divided as the sharding asks.
    """
    # https://no-color.org
    colored = use_color and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    text = sharding_text(
        shape,
        sharding,
        use_color=colored,
        scale=scale,
        min_width=min_width,
        max_width=max_width,
        color_map=color_map,
    )
    builtins.print(text)


def visualize_array_sharding(arr: Any, **kwargs: Any) -> None:
    """Prints which device holds which part of an array.

    Args:
      arr: an array of at most 2 axes. Inside a compiled function arrays have no
        sharding yet: call it on the function's result.
      **kwargs: options of `visualize_sharding`.

    Raises:
      ArgumentError: it is not an array, or has more than 2 axes.
      ConcretizationError: it is traced.

    Example:
      >>> visualize_array_sharding(fnp.ones(2))
      ┌─────┐
      │CPU 0│
      └─────┘
    """
    if not isinstance(arr, Array):
        raise not_an_array(arr, "visualize_array_sharding: got")
    if isinstance(arr, Tracer):
        raise ConcretizationError(
            f"visualize_array_sharding: {arr.aval} is traced: where it lies is known "
            "when the program is compiled; call this on the result of an eager or "
            "jitted function"
        )
    visualize_sharding(arr.shape, arr.sharding, **kwargs)


@boundary
def print_saved_residuals(f: Any, *args: Any, **kwargs: Any) -> None:
    """Prints what reverse mode keeps of a function until its backward pass.

    A line for each array: its type, the operation that makes it, and the line it stands
    on. `checkpoint` and its policies shorten the list.

    Args:
      f: function of arrays (or pytrees of them).
      *args: of the function; arrays or `ShapeDtypeStruct`s.
      **kwargs: likewise, by name. They are differentiated, too.

    Raises:
      ArgumentError: an argument or result is not an array.

    Example:
      >>> print_saved_residuals(lambda x: x * 3.0, 1.0)
      f32[]~ constant
      >>> print_saved_residuals(lambda x, y: x * y, 1.0, 2.0)
      f32[]~ the argument y
      f32[]~ the argument x
    """

    def residuals(*args: Any, **kwargs: Any) -> list[Any]:
        return tree.leaves(vjp(lambda a, k: f(*a, **k), args, kwargs)[1])

    graph = make_graph(residuals)(*args, **kwargs).graph
    labels = leaf_labels(f, args, kwargs)
    said = [f"the argument {label}" for label in labels]
    where: dict[Any, str] = dict.fromkeys(graph.inputs, "captured")
    where.update(zip(graph.inputs[graph.num_consts :], said, strict=True))
    for node in graph.nodes:
        line = f"{node.primitive.name} at {describe(node.source)}"
        where.update(dict.fromkeys(node.outputs, line))
    for out in dict.fromkeys(graph.outputs):
        kept = where[out] if isinstance(out, Var) else "constant"
        builtins.print(out.aval, kept)


_public(globals(), __all__)
