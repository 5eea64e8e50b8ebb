"""Calls of compiled functions that are registered with the runtime (`devices/ffi`)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, Shape, ShapeDtypeStruct, dtypes
from fxflow.core.arrays.array import as_array, is_arraylike, not_an_array
from fxflow.core.ir.primitive import (
    IO,
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    Zero,
    register,
)
from fxflow.core.ir.trace import under
from fxflow.core.runtime.eager import EVAL
from fxflow.core.runtime.lowering import Context, dense, number
from fxflow.core.spmd.partition import by_each_device
from fxflow.errors import ArgumentError
from fxflow.lax.callbacks import VMAP_METHODS, vectorized

Layout = tuple[int, ...]
#: Calls that XLA itself makes something of, by how their targets begin, and where.
_OF_PLATFORM = {
    "__cudnn$": "gpu",
    "__cublas$": "gpu",
    "__gpu$": "gpu",
    "__onednn$": "cpu",
}


@register
class FfiCall(MultipleResults):
    """A call of a function that is registered with the runtime. dtypes: any.

    Params:
      target: its name.
      out_avals: types of the results.
      has_side_effect: whether it is called even if nothing uses the results.
      vmap_method: how it is vectorized (None: it is not).
      in_layouts: for each operand its axes from major to minor.
      out_layouts: likewise for each result.
      aliases: pairs (operand, result) that share memory.
      config: attributes of the call, as MLIR's text.
      api_version: of XLA's custom calls; 4 is the typed FFI.
    """

    name = "ffi_call"
    host_kinds = frozenset()
    nondifferentiable = (
        "a compiled function has no derivative: wrap it with fxflow.custom_jvp or "
        "fxflow.custom_vjp"
    )

    def abstract(
        self, *avals: Aval, out_avals: tuple[Aval, ...], **params: Any
    ) -> list[Aval]:
        """What was declared."""
        return list(out_avals)

    def effects(self, *, has_side_effect: bool, **params: Any) -> frozenset[Any]:
        """The declared one."""
        return frozenset((IO,)) if has_side_effect else frozenset()

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """Runs a program of this one call."""
        arrays = map(as_array, values)
        return [np.asarray(x) for x in under(EVAL, self.bind, *arrays, **params)]

    def lower(
        self,
        ctx: Context,
        *operands: str,
        target: str,
        out_avals: tuple[Aval, ...],
        has_side_effect: bool,
        in_layouts: tuple[Layout, ...],
        out_layouts: tuple[Layout, ...],
        aliases: tuple[tuple[int, int], ...],
        config: str,
        api_version: int,
        **params: Any,
    ) -> list[str]:
        """A custom call."""
        for prefix, platform in _OF_PLATFORM.items():
            if target.startswith(prefix) and ctx.platform != platform:
                raise ArgumentError(
                    f"{target} runs on the platform {platform} only, and this program "
                    f"is for {ctx.platform}: platform_dependent chooses by platform"
                )
        single = len(out_avals) == 1
        shared = ", ".join(
            "#stablehlo.output_operand_alias<output_tuple_indices = "
            f"[{'' if single else out}], operand_index = {i}, "
            "operand_tuple_indices = []>"
            for i, out in aliases
        )
        ins = ", ".join(a.mlir for a in ctx.avals_in)
        outs = ", ".join(a.mlir for a in out_avals)
        attributes = [
            f"api_version = {api_version} : i32",
            f"has_side_effect = {str(has_side_effect).lower()}",
            f"backend_config = {config}",
            f"operand_layouts = [{', '.join(map(_layout_text, in_layouts))}]",
            f"result_layouts = [{', '.join(map(_layout_text, out_layouts))}]",
            f"output_operand_aliases = [{shared}]",
        ]
        if has_side_effect and ctx.module.devices and not ctx.module.manual:
            # XLA's partitioner fails on it, wherever it is placed.
            raise ArgumentError(
                f"ffi_call({target!r}): a call with side effects has no place in a "
                "program that XLA divides over several devices: call it under "
                "shard_map, where each device does"
            )

        def call(names: Sequence[str]) -> str:
            return (
                f"stablehlo.custom_call @{text_of(target)}({', '.join(names)}) "
                f"{{{', '.join(attributes)}}} : ({ins}) -> "
                f"{outs if single else f'({outs})'}"
            )

        if not has_side_effect:
            return ctx.emit_many(len(out_avals), call(operands))
        return by_each_device(ctx, operands, ctx.avals_in, len(out_avals), call)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """None, where a result has tangents."""
        avals = [a.tangent() for a in params["out_avals"]]
        if all(a.dtype == dtypes.float0 for a in avals):
            return self.bind(*primals, **params), list(map(Zero, avals))
        return super().jvp(primals, tangents, **params)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """As `vmap_method` says; in one call the mapped axis is the slowest."""

        def wide(*operands: Any) -> Any:
            more = {
                "out_avals": tuple(
                    a.update(shape=(size, *a.shape)) for a in params["out_avals"]
                ),
                "in_layouts": _behind(params["in_layouts"]),
                "out_layouts": _behind(params["out_layouts"]),
            }
            return self.bind(*operands, **{**params, **more})

        method = params["vmap_method"]
        if method is None:
            raise ArgumentError(
                f"vmap of ffi_call({params['target']!r}): say how with vmap_method=, "
                f"one of {', '.join(map(repr, VMAP_METHODS))}"
            )
        outs = vectorized(
            method, lambda *row: self.bind(*row, **params), wide, size, args, mapped
        )
        return outs, [True] * len(outs)

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """The target and its attributes."""
        shown = {"target": params["target"]}
        if params["config"] not in ("{}", '""'):
            shown["config"] = params["config"]
        return shown


def _behind(layouts: Sequence[Layout]) -> tuple[Layout, ...]:
    """Returns the layouts of arrays with one more axis in front, the slowest."""
    return tuple((0, *(axis + 1 for axis in layout)) for layout in layouts)


def _layout_text(layout: Layout) -> str:
    # XLA writes the fastest axis first.
    order = ", ".join(map(str, reversed(layout)))
    return f"dense<[{order}]> : tensor<{len(layout)}xindex>"


# -- attributes ------------------------------------------------------------------------


def text_of(value: str) -> str:
    """Returns a string as a literal of MLIR."""
    plain = (
        chr(b) if 32 <= b < 127 and chr(b) not in '"\\' else f"\\{b:02X}"
        for b in value.encode()
    )
    return f'"{"".join(plain)}"'


def attribute_text(name: str, value: Any) -> str:
    """Returns an attribute of a call as MLIR's text.

    Python's integers are i64, its floats f64.

    Args:
      name: for messages.
      value: a bool, number, string, NumPy scalar or array, sequence of numbers, or
        mapping of names to these.

    Raises:
      ArgumentError: it is something else, or an integer of more than 64 bits.
    """
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, str):
        return text_of(value)
    if isinstance(value, Mapping):
        return attributes_text(value)
    # Python's own numbers at their full width; an Array would be a traced operand.
    if isinstance(value, int | float | list | tuple | np.ndarray | np.generic):
        try:
            array = np.asarray(value)
        except ValueError:  # a ragged list
            array = np.asarray(None)
        if array.dtype.kind in "biufV" and array.dtype in dtypes.ALL:
            element = dtypes.mlir_name(array.dtype)
            if not array.ndim:
                return f"{number(array[()], array.dtype)} : {element}"
            dims = "".join(f"{n}x" for n in array.shape)
            return f"{dense(array, array.dtype)} : tensor<{dims}{element}>"
    raise ArgumentError(
        f"ffi_call: the attribute {name} must be a bool, a real number, a string, a "
        "NumPy array, a sequence of numbers, or a dict of these, known when tracing; "
        f"got {value!r} of type {type(value).__name__}"
    )


def attributes_text(attributes: Mapping[str, Any]) -> str:
    """Returns the attributes of a call as a dictionary in MLIR's text.

    Raises:
      ArgumentError: see `attribute_text`; or a name is not a string.
    """
    items = []
    for name, value in sorted(attributes.items()):
        if not isinstance(name, str):
            raise ArgumentError(
                f"ffi_call: names of attributes are strings, got {name!r}"
            )
        items.append(f"{text_of(name)} = {attribute_text(name, value)}")
    return f"{{{', '.join(items)}}}"


# -- the function ----------------------------------------------------------------------


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Sequence[int] | None] | None = None,
    output_layouts: Any = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Makes a function that calls a compiled one, registered as a target.

    It has no derivative of its own; `custom_vjp` and `custom_jvp` give it one. In a
    program for several devices each calls it with the whole operands; under
    `shard_map`, with its part of them, and only there may it have side effects.

    Args:
      target_name: as given to `register_ffi_target`.
      result_shape_dtypes: an object with `shape` and `dtype`, as a `ShapeDtypeStruct`;
        or a sequence of them, for a function of several results.
      has_side_effect: whether it is called even if nothing uses its results.
      vmap_method: what `vmap` makes of it, as for `pure_callback`: `"sequential"` or
        `"sequential_unrolled"`, a call for each slice; `"broadcast_all"`, one call
        with the mapped axis in front of all operands; `"expand_dims"`, the same with
        length 1 for those that are not mapped; None refuses.
      input_layouts: for each operand its axes from major to minor, as the function
        wants them in memory; None is row-major.
      output_layouts: likewise for the result, or for each of them.
      input_output_aliases: operands' positions, and those of the results that take
        their memory: the function finds the operand where it writes the result.
      custom_call_api_version: 4 for the typed FFI; lower ones are XLA's before it.
      legacy_backend_config: what a function of an older version gets.

    Returns:
      A function of the operands, arrays or numbers, and by name the *attributes*:
      bools, numbers, strings, NumPy arrays, known when tracing. Python's integers
      arrive as int64, its floats as float64; `np.float32(2)` as float32. It returns an
      array, or a list of arrays for a sequence of `result_shape_dtypes`.

    Raises:
      ArgumentError: an option does not fit; an operand is not an array; an attribute is
        not a constant.
      CompileError: no function of that name is registered for the platform.

    Example:
      >>> x = fnp.ones(3)
      >>> call = ffi_call("scale", fxflow.ShapeDtypeStruct((3,), "float32"))
      >>> text = fxflow.jit(lambda x: call(x, by=np.float32(2))).lower(x).as_text()
      >>> 'custom_call @"scale"' in text
      True

    Source: XLA's foreign function interface.
    """
    if not isinstance(target_name, str):
        raise ArgumentError(
            f"ffi_call: target_name must be a string, got {target_name!r}"
        )
    several = isinstance(result_shape_dtypes, list | tuple)
    specs = list(result_shape_dtypes) if several else [result_shape_dtypes]
    for spec in specs:
        if not (hasattr(spec, "shape") and hasattr(spec, "dtype")):
            raise ArgumentError(
                "ffi_call: result_shape_dtypes holds arrays or ShapeDtypeStructs, got "
                f"{spec!r}"
            )
    outs = tuple(ShapeDtypeStruct(s.shape, s.dtype).aval for s in specs)
    if vmap_method is not None and vmap_method not in VMAP_METHODS:
        raise ArgumentError(
            f"ffi_call: vmap_method is one of {', '.join(map(repr, VMAP_METHODS))}; "
            f"got {vmap_method!r}"
        )
    typed = custom_call_api_version >= 4
    if typed and legacy_backend_config is not None:
        raise ArgumentError(
            "ffi_call: legacy_backend_config is for custom_call_api_version below 4; "
            "pass attributes by name when calling"
        )
    if output_layouts is not None and not several:
        output_layouts = [output_layouts]
    out_layouts = _layouts("output_layouts", output_layouts, outs)

    def call(*operands: Any, **attributes: Any) -> Any:
        for i, operand in enumerate(operands):
            if not is_arraylike(operand):
                raise not_an_array(
                    operand, f"ffi_call({target_name!r}): operand {i} is"
                )
        if attributes and not typed:
            raise ArgumentError(
                f"ffi_call({target_name!r}): attributes need custom_call_api_version 4;"
                " before it there is legacy_backend_config"
            )
        arrays = list(map(as_array, operands))
        ins = tuple(a.aval for a in arrays)
        results = FfiCall.bind(
            *arrays,
            target=target_name,
            out_avals=outs,
            has_side_effect=bool(has_side_effect),
            vmap_method=vmap_method,
            in_layouts=_layouts("input_layouts", input_layouts, ins),
            out_layouts=out_layouts,
            aliases=_aliases(input_output_aliases or {}, ins, outs),
            config=attributes_text(attributes)
            if typed
            else text_of(legacy_backend_config or ""),
            api_version=custom_call_api_version,
        )
        return list(results) if several else results[0]

    return call


def _layouts(
    name: str, given: Sequence[Any] | None, avals: Sequence[Aval]
) -> tuple[Layout, ...]:
    """Returns the layout of each array, row-major where none is given."""
    shapes: list[Shape] = [a.physical.shape for a in avals]
    if given is None:
        given = [None] * len(shapes)
    if len(given) != len(shapes):
        raise ArgumentError(
            f"ffi_call: {name} has {len(given)} entries for {len(shapes)} arrays"
        )
    found = []
    for layout, shape, aval in zip(given, shapes, avals, strict=True):
        order = tuple(range(len(shape)))
        try:
            axes = order if layout is None else tuple(map(operator.index, layout))
        except TypeError:
            axes = ()
        if sorted(axes) != list(order):
            raise ArgumentError(
                f"ffi_call: {name} gives for {aval} its {len(shape)} axes from major "
                f"to minor, such as {order}; got {layout!r}"
            )
        found.append(axes)
    return tuple(found)


def _aliases(
    given: Mapping[int, int], ins: Sequence[Aval], outs: Sequence[Aval]
) -> tuple[tuple[int, int], ...]:
    for i, out in given.items():
        if not (0 <= i < len(ins) and 0 <= out < len(outs)):
            raise ArgumentError(
                f"ffi_call: input_output_aliases maps operand {i} to result {out}, but "
                f"there are {len(ins)} operands and {len(outs)} results"
            )
        if ins[i].physical.strong() != outs[out].physical.strong():
            raise ArgumentError(
                f"ffi_call: operand {i}, {ins[i]}, cannot share its memory with result "
                f"{out}, {outs[out]}: shapes and dtypes must be the same"
            )
    return tuple(sorted(given.items()))
