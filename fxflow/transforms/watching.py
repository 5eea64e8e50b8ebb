"""`debug.watch`: says where a NaN or infinity in a function's result comes from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import compress
from typing import Any, Literal, TypeVar

import numpy as np

from fxflow._config import config
from fxflow.core import source, tree
from fxflow.core.arrays import Array, as_array, dtypes, host_of
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir.trace import Tracer
from fxflow.core.labels import leaf_labels
from fxflow.errors import (
    ArgumentError,
    ConcretizationError,
    NonFiniteError,
    NonHashableStaticError,
)
from fxflow.transforms.inspection import make_graph
from fxflow.transforms.jit import jit
from fxflow.transforms.searching import Finding, Kind, Search

F = TypeVar("F", bound=Callable[..., Any])
#: How many functions are kept compiled, one for each set of options.
MAX_PROGRAMS = 32
_NUMBERS = (bool, int, float, complex, np.generic)


@boundary
def watch(
    f: F,
    *,
    which: Literal["any", "nan", "inf"] = "any",
    everywhere: bool = False,
    report: Callable[[Finding], Any] | None = None,
) -> F:
    """Returns a function that says where a NaN or infinity in its result comes from.

    The error names the line and the operation that made it, the values of its operands
    and what these come from; in a derivative, the line whose backward pass it is, and
    both lines of a double `where`. It looks into `jit`, `scan`, `cond`, `while_loop`,
    `shard_map`, `pmap` and custom derivatives.

    A finite result costs one look at it: `f` runs compiled. Otherwise `f` runs once
    more on the host, one operation after the other, which takes many times as long.

    Args:
      f: function of arrays or pytrees of them. Other arguments are constants.
      which: what to look for: `"nan"`, `"inf"`, or either.
      everywhere: whether to run every call on the host and to stop at the first value
        that is not finite, also if it does not reach the result.
      report: called with the finding in place of an error; the call then returns what
        `f` returned.

    Returns:
      A function of the same arguments. What `f` donates is not donated.

    Raises:
      ArgumentError: `f` or `report` is not a function, or `which` is something else.
      NonFiniteError: raised by the function returned, when a result is not finite.

    Special cases:
      A function that cannot be traced, because Python's control flow depends on
      values, runs operation by operation under `debug_nans` and `debug_infs`. Within
      `grad`, `jit` or `vmap` nothing is checked, with a warning: write
      `watch(grad(loss))`, not `grad(watch(loss))`. The search calls `io_callback`s
      again, but no callback for debugging. A constant that is infinite, as in a mask,
      counts only if nothing else explains the result.

    Example:
      >>> def f(x):
      ...     return fnp.sum(fnp.where(x > 0, fnp.sqrt(x), 0.0))
      >>> found = []
      >>> gradient = watch(fxflow.grad(f), report=found.append)(fnp.zeros(2))
      >>> found[0].kind, found[0].backward, found[0].double_where is None
      ('nan', True, False)
    """
    require_callable(f, "watch: f")
    if which not in ("any", "nan", "inf"):
        raise ArgumentError(f"watch: which is 'any', 'nan' or 'inf', got {which!r}")
    if report is not None:
        require_callable(report, "watch: report")
    kinds: tuple[Kind, ...] = ("nan", "inf") if which == "any" else (which,)
    known: dict[Any, _Program] = {}

    @source.wraps(f)
    def watched(*args: Any, **kwargs: Any) -> Any:
        # Numbers may be options, such as an axis, which arrays cannot be.
        for numbers in (True, False):
            program = _Program(f, args, kwargs, numbers)
            with contextlib.suppress(TypeError):  # an option may have no hash
                program = known.setdefault(program.key, program)
                while len(known) > MAX_PROGRAMS:
                    known.pop(next(iter(known)))
            given = _arrays(args, kwargs, numbers)
            try:
                out = program.compiled(*given)
                break
            except (ConcretizationError, NonHashableStaticError):
                continue
        else:
            nans, infs = "nan" in kinds, "inf" in kinds
            with config.override(debug_nans=nans, debug_infs=infs):
                return f(*args, **kwargs)
        if any(isinstance(x, Tracer) for x in tree.leaves(out)):
            source.warn(
                f"watch: {source.name_of(f)} is called within grad, jit, vmap or "
                "another transformation, where its values are not known: nothing is "
                "checked. Watch the outermost function, as in watch(grad(loss))"
            )
            return out
        found = [kind for kind in kinds if _holds(out, kind)]
        if not (found or everywhere):
            return out
        finding = program.search(given, kinds if everywhere else found, everywhere)
        if finding is None:
            if everywhere and not found:
                return out
            raise NonFiniteError(
                f"{source.name_of(f)}: the compiled program's result holds {found[0]}, "
                "but no operation gives one when they run one by one on the host: it "
                "comes from the order or precision in which the compiler computes. Try "
                "with the passes switched off (config.passes), or in 64 bits"
            )
        if report is None:
            raise NonFiniteError(f"{source.name_of(f)}: {finding.text}")
        report(finding)
        return out

    return boundary(watched)  # type: ignore[return-value]


class _Program:
    """A function of the arrays among some arguments.

    Args:
      function: the user's.
      args: of a call; all but the arrays are fixed.
      kwargs: likewise.
      numbers: whether numbers are arrays.
    """

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, numbers: bool
    ) -> None:
        leaves, treedef = tree.flatten((args, kwargs))
        traced = [_is_array(leaf, numbers) for leaf in leaves]
        fixed = [None if t else x for t, x in zip(traced, leaves, strict=True)]
        self.key = numbers, treedef, tuple(traced), tuple(fixed)
        labels = leaf_labels(function, args, kwargs)
        self.labels = [f"the argument {x}" for x in compress(labels, traced)]

        def call(*arrays: Any) -> Any:
            given = iter(arrays)
            filled = [
                next(given) if t else x for t, x in zip(traced, fixed, strict=True)
            ]
            args, kwargs = treedef.unflatten(filled)
            return function(*args, **kwargs)

        call.__name__ = source.name_of(function)
        self.function = call
        self.compiled = jit(call)

    def search(self, arrays: Any, kinds: Any, everywhere: bool) -> Finding | None:
        """Runs the function on the host; see `Search.find`."""
        made = make_graph(self.function)(*arrays)
        labels = ["a captured array"] * len(made.consts) + self.labels
        values = [host_of(as_array(x)) for x in (*made.consts, *arrays)]
        return Search(kinds, everywhere, labels).find(made.graph, values)


def _is_array(leaf: Any, numbers: bool) -> bool:
    return isinstance(leaf, Array | np.ndarray) or (
        numbers and isinstance(leaf, _NUMBERS)
    )


def _arrays(args: Any, kwargs: Any, numbers: bool) -> list[Any]:
    leaves = tree.leaves((args, kwargs))
    return [leaf for leaf in leaves if _is_array(leaf, numbers)]


def _holds(value: Any, kind: Kind) -> bool:
    for leaf in tree.leaves(value):
        if isinstance(leaf, Array) and dtypes.is_inexact(leaf.aval.dtype):
            found = np.isnan if kind == "nan" else np.isinf
            if found(host_of(leaf)).any():
                return True
    return False
