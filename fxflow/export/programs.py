"""Self-contained StableHLO modules, for the compilers of other runtimes.

A lowered program takes the arrays that it captures as its first arguments; an exported
one may take the index of its platform. This module wraps either in a `main` that takes
only the function's own arguments, with the rest as constants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fxflow._frozen import Frozen
from fxflow.core import source, tree
from fxflow.core.arrays import Aval, dtypes
from fxflow.core.arrays.array import as_array, is_arraylike, not_an_array
from fxflow.core.ir.graph import Graph, subgraphs
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.lowering import dense
from fxflow.errors import ArgumentError, FxflowError
from fxflow.export.exported import Exported
from fxflow.lax.random_bits import random_unwrap
from fxflow.transforms.stages import Lowered, Traced

#: Returns the lines that define a captured value (name, value, type), or None to write
#: it as a plain constant.
Writer = Callable[[str, np.ndarray[Any, Any], str], "list[str] | None"]


class Program(Frozen, eq=False):
    """A function as StableHLO, with the arrays that it captures.

    Attributes:
      name: name of the function.
      text: a module whose `main` takes the leaves that `kept` lists.
      in_tree: structure of `(args, kwargs)`.
      in_avals: types of the leaves of the arguments.
      out_tree: structure of the result.
      out_avals: types of its leaves.
      labels: names of the leaves of the arguments, for messages.
      kept: indices of the leaves that `main` takes.
      graph: the function's graph; None if only the program is available.
      consts: values of the graph's first inputs.
    """

    name: str
    text: str
    in_tree: Any
    in_avals: tuple[Aval, ...]
    out_tree: Any
    out_avals: tuple[Aval, ...]
    labels: tuple[str, ...]
    kept: tuple[int, ...]
    graph: Graph | None = None
    consts: tuple[np.ndarray[Any, Any], ...] = ()


def program_of(given: Any, where: str, write: Writer | None = None) -> Program:
    """Returns the program of a lowered, traced or exported function.

    Args:
      given: the result of `jit(f).lower(...)`, `jit(f).trace(...)` or
        `export(jit(f))(...)`.
      where: name of the calling function, for messages.
      write: writes captured values; None: as plain constants.

    Raises:
      ArgumentError: `given` is not one of these, takes references, has effects, is for
        several devices or captures a traced value.
    """
    if isinstance(given, Exported):
        return _of_exported(given, where)
    traced = traced_of(given, where)
    _require_known(traced.name, (*traced.in_avals, *traced.out_avals), where)
    return _of_traced(traced, where, write)


def _require_known(name: str, avals: Sequence[Aval], where: str) -> None:
    for aval in avals:
        if aval.is_symbolic:
            raise ArgumentError(
                f"{where}: {name} has symbolic sizes ({aval}): export it for the sizes "
                "that the device will use"
            )


def traced_of(given: Any, where: str) -> Traced:
    """Returns the trace of a lowered, traced or exported function.

    Args:
      given: as for `program_of`, except a loaded function, which has no graph.
      where: name of the calling function, for messages.

    Raises:
      ArgumentError: as for `program_of`, or the function was loaded.
    """
    traced = given
    if isinstance(given, Lowered):
        traced = given.traced
    elif isinstance(given, Exported):
        traced = given.traced
        if traced is None:
            raise ArgumentError(
                f"{where}: {given.fun_name} was loaded, and has only StableHLO: pass "
                "the result of export(jit(f))(...) or jit(f).lower(...)"
            )
    if not isinstance(traced, Traced):
        raise ArgumentError(
            f"{where}: expected the result of export(jit(f))(...) or "
            f"jit(f).lower(...), got {type(given).__name__}"
        )
    require_portable(traced, traced.name, where)
    return traced


def without_donation(traced: Traced) -> Traced:
    """Returns a program without donation, as exported functions never own arguments.

    Args:
      traced: the program.
    """
    return replace(traced, donated=(False,) * len(traced.donated))


def require_portable(
    traced: Traced,
    name: str,
    where: str,
    error: type[FxflowError] = ArgumentError,
) -> None:
    """Checks that a program does not depend on this process.

    Args:
      traced: the program.
      name: name of the program, for messages.
      where: name of the calling function, for messages.
      error: error class for references and effects.

    Raises:
      FxflowError: `error`: the program takes references, or has effects.
      ArgumentError: the program captures a traced value.
    """
    if traced.call is not None:
        raise error(
            f"{where}: {name} takes or captures references, which stay in the process: "
            "pass their contents and return the new ones"
        )
    if traced.graph.effects:
        which = ", ".join(sorted(map(str, traced.graph.effects)))
        raise error(
            f"{where}: {name} has effects ({which}), which only this process can have: "
            "remove callbacks, prints and checks"
        )
    for const in traced.consts:
        if isinstance(const, Tracer):
            raise ArgumentError(
                f"{where}: {name} captures a traced value {const.aval}. "
                f"{const.origin()} Pass it as an argument."
            )


def _of_traced(traced: Traced, where: str, write: Writer | None) -> Program:
    traced = without_donation(traced)
    lowered = traced.lower(platforms=("cpu",))
    if len(lowered.program.placement.devices) != 1:
        raise ArgumentError(f"{where}: {traced.name} is for several devices")
    return Program(
        name=traced.name,
        text=_closed(
            lowered.program.text,
            [c.aval.physical for c in lowered.constants],
            [traced.in_avals[i].physical for i in lowered.kept],
            [a.physical for a in traced.out_avals],
            list(map(words_of, lowered.constants)),
            write,
        ),
        in_tree=traced.in_tree,
        in_avals=traced.in_avals,
        out_tree=traced.out_tree,
        out_avals=traced.out_avals,
        labels=tuple(traced.labels),
        kept=tuple(lowered.kept),
        graph=traced.graph,
        consts=tuple(map(words_of, traced.consts)),
    )


def _of_exported(exported: Any, where: str) -> Program:
    if exported.ordered_effects or exported.unordered_effects:
        raise ArgumentError(f"{where}: {exported.fun_name} has effects")
    if exported.nr_devices != 1:
        raise ArgumentError(
            f"{where}: {exported.fun_name} is for {exported.nr_devices} devices"
        )
    kept = tuple(exported.module_kept_var_idx)
    avals = (*exported.in_avals, *exported.out_avals)
    _require_known(exported.fun_name, avals, where)
    text = str(exported.mlir_module())
    if len(exported.platforms) > 1:
        # Prefer the CPU's program: all compilers support its operations.
        platforms = list(exported.platforms)
        number = platforms.index("cpu") if "cpu" in platforms else 0
        text = _closed(
            text,
            [Aval((), np.dtype(np.int32))],
            [exported.in_avals[i].physical for i in kept],
            [a.physical for a in exported.out_avals],
            [np.asarray(number, np.int32)],
        )
    labels = [f"argument {i}" for i in range(len(exported.in_avals))]
    return Program(
        name=exported.fun_name,
        text=text,
        in_tree=exported.in_tree,
        in_avals=tuple(exported.in_avals),
        out_tree=exported.out_tree,
        out_avals=tuple(exported.out_avals),
        labels=tuple(labels),
        kept=kept,
    )


def words_of(const: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Returns an array's elements, or the words of an array of keys.

    Args:
      const: array-like.
      dtype: the declared dtype, as for `as_array`.
    """
    array = as_array(const, dtype)
    is_key = dtypes.is_key(array.aval.dtype)
    return np.asarray(random_unwrap(array) if is_key else array)


def _closed(
    text: str,
    consts: Sequence[Aval],
    ins: Sequence[Aval],
    outs: Sequence[Aval],
    values: Sequence[np.ndarray[Any, Any]],
    write: Writer | None = None,
) -> str:
    """Returns the module with the first arguments of `main` as constants."""
    if not consts:
        return text
    lines = []
    for i, (aval, value) in enumerate(zip(consts, values, strict=True)):
        written = write(f"%c{i}", value, aval.mlir) if write else None
        if written is None:
            number = dense(value, aval.dtype)
            written = [f"%c{i} = stablehlo.constant {number} : {aval.mlir}"]
        lines += written
    names = [f"%c{i}" for i in range(len(consts))] + [f"%x{i}" for i in range(len(ins))]
    types = ", ".join(a.mlir for a in (*consts, *ins))
    results = ", ".join(a.mlir for a in outs)
    arguments = ", ".join(f"%x{i}: {aval.mlir}" for i, aval in enumerate(ins))
    left = f"%r:{len(outs)} = " if outs else ""
    lines.append(
        f"{left}func.call @captured_main({', '.join(names)}) : ({types}) -> ({results})"
    )
    given = ", ".join(f"%r#{i}" for i in range(len(outs)))
    lines.append(f"return {given} : {results}" if outs else "return")
    main = f"func.func public @main({arguments}) -> ({results}) {{\n"
    inner = re.sub(
        r"func\.func public @main\b", "func.func private @captured_main", text
    )
    end = inner.rstrip().rindex("}")
    body = "\n".join(lines)
    return f"{inner[:end]}{main}{body}\n}}\n}}\n"


# -- source lines ----------------------------------------------------------------------


def lines_of(program: Program, path: str) -> list[str]:
    """Returns the user's lines that an operation comes from.

    Args:
      program: the program.
      path: name of the operation in the program, such as `jit_f/scope/sin`.
    """
    found: dict[str, None] = {}

    def visit(graph: Graph) -> None:
        for node in graph.nodes:
            end = "/".join((*node.scope, node.primitive.name))
            if node.source is not None and f"/{path}".endswith(f"/{end}"):
                found[source.describe(node.source)] = None
            for _, inner in subgraphs(node.params):
                visit(inner)

    if program.graph is not None:
        visit(program.graph)
    return list(found)


# -- arguments -------------------------------------------------------------------------


def leaves_of(
    name: str,
    in_tree: Any,
    in_avals: Sequence[Aval],
    labels: Sequence[str],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> list[np.ndarray[Any, Any]]:
    """Returns the leaves of a call's arguments as NumPy arrays.

    Args:
      name: name of the function, for messages.
      in_tree: structure of `(args, kwargs)`.
      in_avals: types of the leaves.
      labels: names of the leaves, for messages.
      args: positional arguments.
      kwargs: keyword arguments.

    Raises:
      ArgumentError: structure or types differ.
    """
    leaves, treedef = tree.flatten((args, kwargs))
    if treedef != in_tree:
        raise ArgumentError(
            f"{name} was compiled for arguments of the structure "
            f"{tree.written(in_tree)}, got {tree.written(treedef)}"
        )
    arrays = []
    for leaf, aval, label in zip(leaves, in_avals, labels, strict=True):
        if not is_arraylike(leaf):
            raise not_an_array(leaf, f"{name}: {label} is")
        array = as_array(leaf, aval.dtype)
        given = array.aval
        fits = given.shape == aval.shape or (
            aval.is_symbolic and given.ndim == aval.ndim
        )
        if not fits or given.dtype != aval.dtype:
            raise ArgumentError(
                f"{name} was compiled for {aval} as {label}, got {given}"
            )
        arrays.append(words_of(array))
    return arrays
