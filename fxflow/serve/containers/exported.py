"""Exported programs as models: `.fx` files, loaded without the source of the function.

A program is for arrays of one shape, unless its sizes are open. So several files may be
one model: `digits-*.fx`, exported for batches of 1, 8 and 64 rows, to which others are
padded. What lies in several of them is in memory once if it is in a file beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from glob import glob
from typing import Any

from fxflow.core import tree
from fxflow.errors import ServeError
from fxflow.export.files import Bundle, load
from fxflow.serve.containers.models import DATATYPE_OF, Model, declared
from fxflow.serve.signatures import TensorSpec
from fxflow.transforms.jit import jit as _jit


def load_exported(
    pattern: str,
    *,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    batched: bool = True,
    compiled: bool = False,
) -> Model:
    """Returns the model that one or more `.fx` files hold.

    Args:
      pattern: the path, in which `*` stands for any text.
      inputs: names of the inputs, in order, and their types, which have to be the
        program's. Without them an input has the name of the function's parameter, or
        of its place in a parameter that is a dict; ``input`` in files that do not know.
      outputs: names of what comes out; likewise.
      batched: whether the first axis of all inputs and outputs is that of a batch.
      compiled: whether to run the machine code in the files; see `fxflow.export.load`.

    Returns:
      The model.

    Raises:
      ServeError: there is no such file, or their programs are not those of one model.
      ExportError: a file is damaged.
    """
    paths = sorted(glob(pattern))
    if not paths:
        raise ServeError(f"there is no file {pattern!r}")
    bundles = [load(path, compiled=compiled) for path in paths]
    found = [_specs(bundle, path) for bundle, path in zip(bundles, paths, strict=True)]
    if batched:
        rows = [_rows(specs, path) for specs, path in zip(found, paths, strict=True)]
        found = [[_of_any(spec) for spec in specs] for specs in found]
    else:
        rows = [1] * len(paths)
    for k, path in enumerate(paths):
        if found[k] != found[0] or rows[k] in rows[:k] or type(rows[k]) is not int:
            if len(paths) == 1:
                break
            raise ServeError(
                f"{path} and {paths[0]} are not one model: it takes "
                f"{_listed(found[k])} in batches of {rows[k]}, the other "
                f"{_listed(found[0])} in batches of {rows[0]}; they have to differ in "
                "the batch's size, and in nothing else"
            )
    specs = found[0]
    if inputs:
        given = [TensorSpec.parse(*item) for item in inputs.items()]
        if [(g.datatype, _fixed(g)) for g in given] != [
            (s.datatype, _fixed(s)) for s in specs
        ]:
            raise ServeError(
                f"{pattern} takes {_listed(specs)}, and inputs says {_listed(given)}"
            )
        specs = given
    options: dict[str, Any] = {
        "inputs": {spec.name: str(spec) for spec in specs},
        "outputs": outputs,
        "batched": batched,
    }
    runners = dict(zip(rows, map(_runner, bundles), strict=True))
    if not batched or not isinstance(rows[0], int):
        (run,) = runners.values()
        return Model(run, jit=not bundles[0].is_compiled, **options)

    def call(*arrays: Any) -> Any:
        return programs[arrays[0].shape[0]](*declared(arrays))

    # Machine code is called as it is; a program becomes part of a compiled function.
    programs = {
        size: run if bundle.is_compiled else _jit(run)
        for (size, run), bundle in zip(runners.items(), bundles, strict=True)
    }
    sizes = [size for size in rows if isinstance(size, int)]
    return Model(call, jit=False, sizes=sizes, **options)


def _arguments(bundle: Bundle) -> Any:
    """Returns the structure of the arguments that are not in the file."""
    positional, named = bundle.exported.in_tree.children()
    skipped = 0 if bundle.params is None else 1
    return positional.children()[skipped:], named


def _specs(bundle: Bundle, path: str) -> list[TensorSpec]:
    """Returns names and types of the arguments that are not in the file."""
    positional, named = _arguments(bundle)
    count = sum(part.num_leaves for part in positional) + named.num_leaves
    arguments = [*positional, named]
    inside, numbered = [], []
    for k, part in enumerate(arguments):
        for keys, _ in tree.leaves_with_path(part.unflatten(range(part.num_leaves))):
            inside.append(tree.keystr(keys, simple=True, separator="."))
            numbered.append("input" if len(arguments) == 2 else f"input_{k}")
    # Files of an earlier fxflow, and programs of JAX, do not know the parameters.
    known = bundle.exported.in_names[len(bundle.exported.in_avals) - count :]
    whole = list(known) or numbered
    names = [part or name for part, name in zip(inside, whole, strict=True)]
    if len(set(names)) < count:
        names = whole
    if not count or len(set(names)) < count:
        raise ServeError(f"{path}: its arguments have no names of their own: {names}")
    avals = bundle.exported.in_avals[len(bundle.exported.in_avals) - count :]
    specs = []
    for name, aval in zip(names, avals, strict=True):
        if aval.dtype not in DATATYPE_OF:
            raise ServeError(f"{path}: no request can have {aval} for {name!r}")
        shape = [size if isinstance(size, int) else str(size) for size in aval.shape]
        specs.append(TensorSpec(name, DATATYPE_OF[aval.dtype], tuple(shape)))
    return specs


def _rows(specs: Sequence[TensorSpec], path: str) -> int | str:
    """Returns the size of the batch that a program is for."""
    sizes = {spec.shape[0] if spec.shape else None for spec in specs}
    rows = sizes.pop()
    if sizes or rows is None:
        raise ServeError(
            f"{path} takes {_listed(specs)}: the first axis of all inputs has to be "
            "the batch's (or batched=False)"
        )
    return rows


def _runner(bundle: Bundle) -> Callable[..., Any]:
    """Returns a function of the inputs, in order."""
    positional, named = _arguments(bundle)

    def run(*arrays: Any) -> Any:
        left = list(arrays)

        def built(structure: Any) -> Any:
            leaves = [left.pop(0) for _ in range(structure.num_leaves)]
            return structure.unflatten(leaves)

        in_order = [built(structure) for structure in positional]
        return bundle.call(*in_order, **built(named))

    return run


def _of_any(spec: TensorSpec) -> TensorSpec:
    """Returns the type for a batch of any size."""
    return replace(spec, shape=("batch", *spec.shape[1:]))


def _fixed(spec: TensorSpec) -> tuple[int | None, ...]:
    return tuple(size if isinstance(size, int) else None for size in spec.shape)


def _listed(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(f"{spec.name}: {spec}" for spec in specs)
