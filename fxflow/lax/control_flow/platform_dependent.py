"""`platform_dependent`: the platform that a program is lowered for chooses a branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.bodies import trace_body
from fxflow.core.runtime.lowering import Context
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError, CompileError
from fxflow.lax.control_flow.carry import leaves_of
from fxflow.lax.control_flow.cond import Branching, agreed, typed, with_common_consts
from fxflow.lax.control_flow.cond_rows import Graphs

R = TypeVar("R")

_GPUS = ("gpu", "cuda", "rocm")  # of one platform, as programs know it
#: The branch of programs for CPUs that no partitioner divides over devices.
_ONE_CPU = "one_cpu"


@register
class PlatformDependent(Branching):
    """The branch of the platform that is compiled for. dtypes: any. Lowered in place.

    Branches whose index (the first operand, which is never read) is known when the
    program is lowered; no other branch is.

    Params:
      branches: graphs of equal input and output types.
      platforms: of each branch; None: of all that are not named.
    """

    name = "platform_dependent"

    def lower(
        self,
        ctx: Context,
        *operands: str,
        branches: Graphs,
        platforms: tuple[str | None, ...],
    ) -> list[str]:
        """The graph of the branch, in place."""
        names: list[str | None] = [ctx.platform, None]
        if ctx.platform == "cpu" and not ctx.module.partitioned:
            names.insert(0, _ONE_CPU)
        return ctx.graph(_of(names, branches, platforms), operands[1:])

    def evaluate(
        self, *values: Any, branches: Graphs, platforms: tuple[str | None, ...]
    ) -> list[Any]:
        """NumPy's evaluation of the CPU's branch."""
        branch = _of([_ONE_CPU, "cpu", None], branches, platforms)
        return super().evaluate(np.int32(0), *values[1:], branches=(branch,))


def _of(
    names: Sequence[str | None], branches: Graphs, platforms: tuple[str | None, ...]
) -> Graph:
    """Returns the branch of the first name that has one."""
    for name in names:
        if name in platforms:
            return branches[platforms.index(name)]
    raise CompileError(
        f"platform_dependent: there is no branch for the platform {names[-2]!r}, only "
        f"for {', '.join(map(repr, platforms))}: give one, or default="
    )


@boundary
def platform_dependent(
    *args: Any,
    default: Callable[..., R] | None = None,
    **per_platform: Callable[..., R],
) -> R:
    """Calls the function for the platform that the program is compiled for.

    All functions are traced; only that of the platform is lowered and compiled, for
    derivatives and vectorized too. `jit(f).trace(...).lower(platforms=("tpu",))` takes
    the function for TPUs, wherever it runs.

    Args:
      *args: pytrees of arrays.
      default: called with them on platforms that are not named; None: an error there.
      **per_platform: functions by platform: `cpu`, `gpu` (also `cuda`, `rocm`; where
        both are given, `cuda`), `tpu`, or the name of another plug-in's. All return the
        same structure, shapes and dtypes.

    Returns:
      The function's result.

    Raises:
      ArgumentError: no function is given, or one is not callable.
      CompileError: none is given for the platform.
      ShapeError, DtypeError, TreeError: the results have different types.

    Example:
      >>> float(platform_dependent(0.0, tpu=lax.sin, default=lax.cos))
      1.0
    """
    given: dict[str | None, Callable[..., R]] = {}
    for name, function in per_platform.items():
        require_callable(function, f"platform_dependent: {name}")
        given.setdefault("gpu" if name in _GPUS else name, function)
    if "cuda" in per_platform:
        given["gpu"] = per_platform["cuda"]
    if default is not None:
        require_callable(default, "platform_dependent: default")
        given[None] = default
    if not given:
        raise ArgumentError(
            "platform_dependent: needs a function: default=, or one for a platform"
        )
    return _bound(given, args)


def on_one_cpu(one_cpu: Callable[..., R], default: Callable[..., R], *args: Any) -> R:
    """Calls a function in programs for one CPU device, and another one elsewhere.

    Args:
      one_cpu: for algorithms that read all elements of an array: the partitioner would
        collect them on each device.
      default: of the same result.
      *args: pytrees of arrays. If the type of one says how it is divided over devices,
        only `default` is traced.

    Returns:
      The function's result.
    """
    if any(typeof(x).layout is not None for x in tree.leaves(args)):
        return default(*args)
    return _bound({_ONE_CPU: one_cpu, None: default}, args)


def _bound(given: Mapping[str | None, Callable[..., R]], args: tuple[Any, ...]) -> R:
    leaves, in_tree = leaves_of(args, "platform_dependent: args")
    avals = [typeof(x) for x in leaves]
    bodies = [
        trace_body(f, in_tree, avals, name=f"{name or 'default'}_{name_of(f)}")
        for name, f in given.items()
    ]
    labels = [name or "default" for name in given]
    out_tree, outs = agreed("platform_dependent", labels, bodies)
    consts, graphs = with_common_consts(bodies)
    operands = [*consts, *leaves]
    ins = [typeof(value) for value in operands]
    results = PlatformDependent.bind(
        np.int32(0),
        *operands,
        branches=tuple(typed(graph, ins, outs) for graph in graphs),
        platforms=tuple(given),
    )
    result: R = out_tree.unflatten(results)
    return result
