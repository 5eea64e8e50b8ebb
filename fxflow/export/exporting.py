"""`export`: traces and lowers a jitted function to a portable program."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import Array, Aval, ShapeDtypeStruct
from fxflow.core.boundary import boundary, shown
from fxflow.core.ir.graph import graph_name
from fxflow.core.labels import dotted_names
from fxflow.core.runtime.lowering import dense
from fxflow.devices import clients
from fxflow.devices.meshes import PartitionSpec
from fxflow.devices.shardings import NamedSharding
from fxflow.errors import ArgumentError, ExportError
from fxflow.export.checks import DisabledSafetyCheck, require_known_calls
from fxflow.export.exported import Exported
from fxflow.export.programs import require_portable, without_donation, words_of
from fxflow.export.records import CALLING_CONVENTION, LayoutRecord
from fxflow.transforms.jit import JitFunction, jit
from fxflow.transforms.stages import Lowered, Traced
from fxflow.transforms.vjp import vjp

#: Platform in artifacts → platform of the lowering.
_PLATFORMS = {"cpu": "cpu", "cuda": "gpu", "gpu": "gpu", "tpu": "tpu"}


def default_export_platform() -> str:
    """Returns the default platform of `export`.

    Returns:
      The platform of the default device: `"cpu"`, `"cuda"` or `"tpu"`.

    Example:
      >>> default_export_platform() in ("cpu", "cuda", "tpu")
      True

    Source: `jax.export.default_export_platform`.
    """
    platform = clients.default_backend()
    return "cuda" if platform == "gpu" else platform


def export(
    fun_jit: Any,
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Makes a function that exports a jitted function for arguments of given types.

    The program is portable StableHLO. It includes the arrays that the function
    captures. Effects and callbacks raise an error. Donation is dropped.

    Args:
      fun_jit: a function that `jit` returned.
      platforms: platforms that the program can run on, of `"cpu"`, `"cuda"` and
        `"tpu"`; a call selects its own. None: the platform of the default device.
      disabled_checks: checks to skip, such as that a custom call is known to be stable
        across versions.

    Returns:
      A function that takes arrays or `ShapeDtypeStruct`s in place of the jitted
      function's arguments, and returns an `Exported`. It raises `ExportError` if the
      program has effects or custom calls that are not known to be stable.

    Raises:
      ArgumentError: `fun_jit` is not a jitted function, or a platform is unknown.

    Example:
      >>> f = fxflow.jit(lambda x, *, scale: fnp.sin(x) * scale)
      >>> exported = export(f, platforms=("cpu", "tpu"))(
      ...     fxflow.ShapeDtypeStruct((3,), "float32"), scale=2.0)
      >>> exported
      <Exported <lambda>(f32[3], f32[]) -> (f32[3])>
      >>> exported.call(fnp.zeros(3), scale=1.0)
      Array([0., 0., 0.], dtype=float32)

    Source: `jax.export.export`.
    """
    if not isinstance(fun_jit, JitFunction):
        raise ArgumentError(
            f"export: expected a jitted function, as in export(jit(f))(...), got "
            f"{shown(fun_jit)}"
        )
    if platforms is None:
        wanted: tuple[str, ...] = (default_export_platform(),)
    elif isinstance(platforms, str) or not len(platforms):
        raise ArgumentError(
            f"export: platforms must be a sequence such as ('cpu', 'tpu'), got "
            f"{platforms!r}"
        )
    else:
        wanted = tuple(platforms)
    for platform in wanted:
        if platform not in _PLATFORMS:
            raise ArgumentError(
                f"export: unknown platform {platform!r}: use 'cpu', 'cuda' or 'tpu'"
            )
    wanted = tuple(dict.fromkeys("cuda" if p == "gpu" else p for p in wanted))
    checks = tuple(disabled_checks)
    for check in checks:
        if not isinstance(check, DisabledSafetyCheck):
            raise ArgumentError(
                f"export: disabled_checks must be DisabledSafetyChecks, got {check!r}"
            )

    @boundary
    def exporter(*args: Any, **kwargs: Any) -> Exported:
        name = getattr(fun_jit, "__name__", "")
        return _exported(fun_jit.trace(*args, **kwargs), name, wanted, checks)

    return exporter


def _exported(
    traced: Traced,
    name: str,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    require_portable(traced, name, "export", ExportError)
    traced = without_donation(traced)
    lowered = [traced.lower(platforms=(_PLATFORMS[p],)) for p in platforms]
    devices = len(lowered[0].program.placement.devices)
    payload = _portable(lowered, traced, len(platforms) > 1, checks)
    ins, outs = map(_plain, (traced.in_avals, traced.out_avals))
    return Exported(
        fun_name=name,
        in_tree=traced.in_tree,
        in_avals=ins,
        out_tree=traced.out_tree,
        out_avals=outs,
        in_layouts=_layouts(traced.in_shardings),
        out_layouts=_layouts(traced.out_shardings),
        nr_devices=devices,
        platforms=platforms,
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=checks,
        mlir_module_serialized=payload,
        calling_convention_version=CALLING_CONVENTION,
        module_kept_var_idx=tuple(lowered[0].kept),
        uses_global_constants=len(platforms) > 1
        or any(aval.is_symbolic for aval in ins),
        traced=traced,
        in_names=tuple(dotted_names(traced.in_tree, traced.labels)),
        _get_vjp=lambda _: _exported_vjp(traced, name, platforms, checks),
    )


def _plain(avals: Sequence[Aval]) -> tuple[Aval, ...]:
    """Returns types as in artifacts: neither weak nor over explicit axes."""
    return tuple(Aval(a.shape, a.dtype) for a in avals)


def _layouts(shardings: Sequence[Any]) -> tuple[LayoutRecord | None, ...]:
    found: list[LayoutRecord | None] = []
    for sharding in shardings:
        if not isinstance(sharding, NamedSharding):
            found.append(None)
            continue
        spec = sharding.spec
        if PartitionSpec.UNCONSTRAINED in tuple(spec):
            raise ExportError(f"export: artifacts do not support {spec}")
        mesh = sharding.mesh.abstract_mesh
        found.append(LayoutRecord(mesh, spec, sharding.offloaded))
    return tuple(found)


# -- the derivative --------------------------------------------------------------------


def _exported_vjp(
    traced: Traced,
    name: str,
    platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:
    count = len(traced.in_avals)
    ins, outs = map(_plain, (traced.in_avals, traced.out_avals))

    def function(*given: Any) -> tuple[Any, ...]:
        def primal(*arrays: Any) -> list[Any]:
            return list(traced.graph.evaluate(*traced.consts, *arrays))

        _, pullback = vjp(primal, *given[:count])
        return tuple(pullback(list(given[count:])))

    function.__name__ = f"{name}_vjp"
    wanted = (*traced.in_shardings, *traced.out_shardings)
    specs = [
        ShapeDtypeStruct(aval.shape, aval.dtype, sharding=where)
        for aval, where in zip(
            (*ins, *(a.tangent() for a in outs)), wanted, strict=True
        )
    ]
    # A cotangent has the sharding of its value.
    jitted: Any = jit(function, out_shardings=traced.in_shardings)
    return _exported(jitted.trace(*specs), function.__name__, platforms, checks)


# -- the program -----------------------------------------------------------------------


def _portable(
    lowered: Sequence[Lowered],
    traced: Traced,
    several: bool,
    checks: Sequence[DisabledSafetyCheck],
) -> bytes:
    """Returns the program for all platforms, with its captured arrays, as bytes."""
    portable = importlib.import_module("fxflow.devices.portable")
    texts = [low.program.text for low in lowered]
    text, consts = texts[0], lowered[0].constants
    try:
        if several or consts:
            text = _joined(portable, texts, consts, several, traced.name)
        payload: bytes = portable.write(text)
        calls = portable.custom_calls(portable.read(payload))
    except ValueError as error:
        raise ExportError(
            f"export: {traced.name} has no portable form: {error}"
        ) from None
    require_known_calls(calls, checks, f"export: {traced.name}")
    return payload


def _joined(
    portable: Any,
    texts: Sequence[str],
    consts: Sequence[Array],
    several: bool,
    name: str,
) -> str:
    """Joins the modules for each platform into one.

    Its `main` takes the index of the platform first, if there are several, and has the
    captured arrays as constants.
    """
    modules = [portable.parse(text) for text in dict.fromkeys(texts)]
    numbers = [list(dict.fromkeys(texts)).index(text) for text in texts]
    types, outs, in_attributes, out_attributes = portable.signature(modules[0])
    mains = []
    for i, module in enumerate(modules):
        mains.append(
            portable.rename(module, lambda old, i=i: f"{old}_for_{i}", lambda old: old)
        )
    count = len(consts)
    lines = []
    for i, array in enumerate(consts):
        aval = array.aval.physical
        written = dense(words_of(array), aval.dtype)
        lines.append(f"%a{i} = stablehlo.constant {written} : {aval.mlir}")
    names = [f"%a{i}" for i in range(len(types))]
    signature = f"({', '.join(types)}) -> ({', '.join(outs)})"

    def called(main: str, result: str) -> list[str]:
        left = f"{result}:{len(outs)} = " if outs else ""
        return [f"{left}func.call @{main}({', '.join(names)}) : {signature}"]

    results = [f"%r#{i}" for i in range(len(outs))]
    if len(modules) == 1:
        lines += called(mains[0], "%r")
    elif outs:
        branches = []
        for i, number in enumerate(numbers):
            inner = ", ".join(f"%b{i}#{j}" for j in range(len(outs)))
            body = "\n".join(called(mains[number], f"%b{i}"))
            branches.append(
                f"{{\n{body}\nstablehlo.return {inner} : {', '.join(outs)}\n}}"
            )
        lines.append(
            f'%r:{len(outs)} = "stablehlo.case"(%platform) ({", ".join(branches)}) : '
            f"(tensor<i32>) -> ({', '.join(outs)})"
        )
    arguments = [
        f"{name}: {text} {attributes}" if attributes != "{}" else f"{name}: {text}"
        for name, text, attributes in zip(names, types, in_attributes, strict=True)
    ][count:]
    if several:
        mark = '{jax.global_constant = "_platform_index"}'
        arguments.insert(0, f"%platform: tensor<i32> {mark}")
    given = ", ".join(
        f"{text} {attributes}" if attributes != "{}" else text
        for text, attributes in zip(outs, out_attributes, strict=True)
    )
    end = f"return {', '.join(results)} : {', '.join(outs)}" if outs else "return"
    body = "\n".join((*lines, end))
    rest = [text for module in modules for text in portable.functions(module)]
    meshes = dict.fromkeys(t for module in modules for t in portable.mesh_texts(module))
    return (
        f"module @jit_{graph_name(name)} {{\n{''.join(meshes)}"
        f"func.func public @main({', '.join(arguments)}) -> ({given}) {{\n{body}\n}}\n"
        f"{''.join(rest)}}}\n"
    )
