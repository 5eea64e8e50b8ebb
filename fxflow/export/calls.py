"""The call of an exported function: one graph node, lowered to the function's module.

The functions of the module become private functions of the caller's module, under
unique names, so that the compiler optimizes across the call. `vmap` runs the function
for one slice after the other, and its derivative is another exported function.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Aval
from fxflow.core.arrays.array import as_array, is_arraylike, not_an_array
from fxflow.core.ir.primitive import (
    Batched,
    Flags,
    MultipleResults,
    Values,
    register,
)
from fxflow.core.ir.trace import under
from fxflow.core.labels import tree_labels
from fxflow.core.runtime.eager import EVAL
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd.partition import constrained
from fxflow.devices import lapack
from fxflow.devices.meshes import Mesh
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError, ExportError, ShapeError
from fxflow.export.checks import DisabledSafetyCheck, require_known_calls
from fxflow.export.records import LayoutRecord, Record
from fxflow.export.sizes import settled, solve
from fxflow.lax.callbacks import vectorized
from fxflow.transforms.custom_vjp import custom_vjp


@register
class ExportedCall(MultipleResults):
    """A call of an exported function. dtypes: any. Lowered to a call of its program.

    Params:
      exported: the function, an `Exported`.
    """

    name = "exported_call"
    host_kinds = frozenset()
    nondifferentiable = (
        "an exported function has a derivative in reverse mode only: use grad or vjp"
    )

    def abstract(self, *avals: Aval, exported: Record) -> list[Aval]:
        """The types that it was exported with, at the operands' sizes."""
        known = solve(exported.in_avals, [a.shape for a in avals], exported.fun_name)
        return [settled(aval, known) for aval in exported.out_avals]

    def lower(self, ctx: Context, *operands: str, exported: Record) -> list[str]:
        """`func.call`."""
        return _lowered(ctx, operands, exported)

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """Compiles and runs the call."""
        arrays = [as_array(x, x.dtype) for x in values]
        return [np.asarray(x) for x in under(EVAL, self.bind, *arrays, **params)]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """A loop over the slices, as the program has fixed shapes."""
        outs = vectorized(
            "sequential",
            lambda *row: self.bind(*row, **params),
            lambda *whole: [],
            size,
            args,
            mapped,
        )
        return outs, [True] * len(outs)

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """The function's name."""
        return {"exported": params["exported"].fun_name}


# -- calls -----------------------------------------------------------------------------


def call(exported: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls an exported function.

    Args:
      exported: an `Exported`.
      args: positional arguments, of the structure and types of the export.
      kwargs: keyword arguments, likewise.

    Returns:
      The result, in the structure of the export.

    Raises:
      ArgumentError: structure or dtypes of the arguments differ.
      ShapeError: shapes differ.
      ExportError: the function has effects.
    """
    name = exported.fun_name
    effects = (*exported.ordered_effects, *exported.unordered_effects)
    if effects:
        raise ExportError(
            f"{name} has effects ({', '.join(sorted(set(effects)))}), which a loaded "
            "program cannot have: remove prints and callbacks before the export"
        )
    leaves, treedef = tree.flatten((args, kwargs))
    if treedef != exported.in_tree:
        raise ArgumentError(
            f"{name} was exported for arguments of the structure "
            f"{tree.written(exported.in_tree)}, got {tree.written(treedef)}"
        )
    arrays: list[Any] = []
    for leaf, aval in zip(leaves, exported.in_avals, strict=True):
        if not is_arraylike(leaf):
            label = _label(exported, len(arrays))
            raise not_an_array(leaf, f"{name}: argument {label} is")
        array = as_array(leaf, aval.dtype)
        given = array.aval
        same = len(given.shape) == len(aval.shape) and all(
            n == m for n, m in zip(given.shape, aval.shape) if isinstance(m, int)
        )
        if not same or given.dtype != aval.dtype:
            kind = ArgumentError if same else ShapeError
            label = _label(exported, len(arrays))
            raise kind(
                f"{name} was exported for {aval} as argument {label}, got {given}"
            )
        arrays.append(array)
    if any(aval.is_symbolic for aval in exported.in_avals):
        # Check again with the arguments' names: `abstract` only knows their numbers.
        labels = [_label(exported, i) for i in range(len(arrays))]
        solve(exported.in_avals, [a.aval.shape for a in arrays], name, labels)
    function = exported.__dict__.get("_function")
    if function is None:
        function = exported.__dict__["_function"] = _differentiable(exported)
    return exported.out_tree.unflatten(function(*arrays))


def _label(exported: Any, index: int) -> str:
    """Returns the name of a leaf of the arguments, such as `args[0]['w']`."""

    def called(*args: Any, **kwargs: Any) -> None:
        pass

    return tree_labels(called, exported.in_tree, keywords=True)[index]


def _differentiable(exported: Any) -> Any:
    """Returns the function on flat arrays, with its derivative."""

    def flat(*arrays: Any) -> Any:
        return ExportedCall.bind(*arrays, exported=exported)

    # The name in messages.
    flat.__name__ = exported.fun_name
    function = custom_vjp(flat)

    def forward(*arrays: Any) -> tuple[Any, Any]:
        return function(*arrays), arrays

    def backward(arrays: tuple[Any, ...], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(exported.vjp().call(*arrays, *cotangents))

    function.defvjp(forward, backward)
    return function


# -- lowering --------------------------------------------------------------------------


def _platform_index(exported: Record, platform: str) -> int:
    """Returns the index of a platform among those of an exported function."""
    # XLA's "gpu" is CUDA or ROCm, whose programs differ in their custom calls.
    names = ("cuda", "gpu", "rocm") if platform == "gpu" else (platform,)
    for name in names:
        if name in exported.platforms:
            return exported.platforms.index(name)
    if DisabledSafetyCheck.platform() in exported.disabled_safety_checks:
        return 0
    raise ExportError(
        f"{exported.fun_name} was exported for {', '.join(exported.platforms)}, but is "
        f"called on {platform}: export it with platforms=[..., {platform!r}]"
    )


def _lowered(ctx: Context, operands: Sequence[str], exported: Record) -> list[str]:
    module, name = ctx.module, exported.fun_name
    avals_in, avals_out = list(ctx.avals_in), list(ctx.avals_out)
    several = exported.nr_devices > 1
    if several and (len(module.devices) != exported.nr_devices or module.manual):
        raise ExportError(
            f"{name} was exported for {exported.nr_devices} devices, but is called on "
            f"{'a part of them' if module.manual else len(module.devices) or 1}: place "
            "its arguments with exported.in_shardings_jax(mesh), over a mesh of that "
            "many devices"
        )
    index = _platform_index(exported, ctx.platform)
    names = list(operands)
    if several:
        names = _constrained(ctx, names, avals_in, exported.in_layouts)
    kept = [names[i] for i in exported.module_kept_var_idx]
    types = [avals_in[i].mlir for i in exported.module_kept_var_idx]
    outs = [a.mlir for a in avals_out]
    if len(exported.platforms) > 1:
        kept.insert(0, ctx.constant(np.int32(index)))
        types.insert(0, "tensor<i32>")
    key = (exported, tuple(types), several)
    function = module.helper(
        key,
        f"call_exported_{name}",
        lambda taken: _spliced(module, taken, exported, types, outs, several),
    )
    results = ctx.emit_many(
        len(outs),
        f"func.call @{function}({', '.join(kept)}) : "
        f"({', '.join(types)}) -> ({', '.join(outs)})",
    )
    if several:
        results = _constrained(ctx, results, avals_out, exported.out_layouts)
    return results


def _constrained(
    ctx: Context,
    names: Sequence[str],
    avals: Sequence[Aval],
    layouts: Sequence[LayoutRecord | None],
) -> list[str]:
    return [
        name
        if layout is None or not layout.mesh.axis_names
        else constrained(ctx, name, aval, _named(ctx, layout))
        for name, aval, layout in zip(names, avals, layouts, strict=True)
    ]


def _named(ctx: Context, layout: LayoutRecord) -> NamedSharding:
    return layout.on(
        _mesh_of(ctx.module, layout.mesh.axis_names, layout.mesh.axis_sizes)
    )


def _mesh_of(module: Any, names: Sequence[Any], sizes: Sequence[int]) -> Mesh:
    grid = np.empty(len(module.devices), object)
    grid[:] = module.devices
    return Mesh(grid.reshape(tuple(sizes)), tuple(names))


def _spliced(
    module: Any,
    taken: str,
    exported: Record,
    types: Sequence[str],
    outs: Sequence[str],
    several: bool,
) -> str:
    """Returns the text of an exported program's `main`, under the name `taken`.

    Adds its other functions to the caller's module.
    """
    portable = importlib.import_module("fxflow.devices.portable")
    name = exported.fun_name
    try:
        inner = portable.read(exported.mlir_module_serialized)
        if not several:
            portable.strip_layouts(inner)
        targets = portable.custom_calls(inner)
        require_known_calls(targets, exported.disabled_safety_checks, name)
        if module.platform == "cpu" and any(t.startswith("lapack_") for t in targets):
            lapack.ensure()
        declared, given, _, _ = portable.signature(inner)
        # If the caller's sizes are symbolic, those of the program stay open.
        stablehlo = importlib.import_module("fxflow.core.sizes.stablehlo")
        open_types = stablehlo.open_types
        types, outs = [*map(open_types, types)], [*map(open_types, outs)]
        if any("?" in text for text in (*declared, *given)):
            whole = _with_sizes(portable, inner, types, outs)
            is_open = any("?" in text for text in types)
            inner = (
                portable.parse(whole) if is_open else portable.refine(whole, several)
            )
            declared, given, _, _ = portable.signature(inner)
    except ValueError as error:
        if isinstance(error, ExportError):
            raise
        raise ExportError(f"{name}: the program in the artifact: {error}") from None
    if list(declared) != list(types) or list(given) != list(outs):
        raise ExportError(
            f"{name}: the artifact's program takes ({', '.join(declared)}) and returns "
            f"({', '.join(given)}), but its types are ({', '.join(types)}) and "
            f"({', '.join(outs)})"
        )
    meshes = portable.meshes(inner)

    def mesh(old: str) -> str:
        axes = meshes[old]
        return str(module.mesh(_mesh_of(module, list(axes), list(axes.values())))[1:])

    portable.rename(
        inner, lambda old: taken if old == "main" else module.unique(old), mesh
    )
    texts = portable.functions(inner)
    module.functions += texts[1:]
    return str(texts[0])


def _with_sizes(
    portable: Any, inner: Any, types: Sequence[str], outs: Sequence[str]
) -> str:
    """Returns a module whose `main` of known sizes calls the one of open sizes."""
    declared, given, _, _ = portable.signature(inner)
    if len(declared) != len(types) or len(given) != len(outs):
        raise ExportError("the artifact's program takes or returns other arrays")
    portable.rename(inner, lambda old: f"open_{old}", lambda old: old)
    lines, names = [], []
    for i, (have, want) in enumerate(zip(types, declared, strict=True)):
        names.append(f"%c{i}" if have != want else f"%a{i}")
        if have != want:
            lines.append(f"%c{i} = stablehlo.convert %a{i} : ({have}) -> {want}")
    results = [f"%r#{i}" for i in range(len(given))] if len(given) > 1 else ["%r"]
    left = f"%r:{len(given)} = " if len(given) > 1 else "%r = " if given else ""
    lines.append(
        f"{left}func.call @open_main({', '.join(names)}) : "
        f"({', '.join(declared)}) -> ({', '.join(given)})"
    )
    last = []
    for i, (have, want) in enumerate(zip(given, outs, strict=True)):
        last.append(f"%o{i}" if have != want else results[i])
        if have != want:
            lines.append(f"%o{i} = stablehlo.convert {results[i]} : ({have}) -> {want}")
    arguments = ", ".join(f"%a{i}: {text}" for i, text in enumerate(types))
    end = f"return {', '.join(last)} : {', '.join(outs)}" if outs else "return"
    body = "\n".join((*lines, end))
    head = f"func.func public @main({arguments}) -> ({', '.join(outs)})"
    return f"module {{\n{head} {{\n{body}\n}}\n{''.join(portable.functions(inner))}}}\n"
