"""An import may only point left, and only `devices/` knows jaxlib.

The sources are parsed, not imported, so that an import inside a function or under
`TYPE_CHECKING` counts like any other.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "fxflow"

# From left to right. Modules in one row may see each other.
ORDER = (
    ("_version", "_config", "_frozen", "_names", "errors"),
    ("devices",),
    ("core",),
    ("lax",),
    ("transforms",),
    ("numpy",),
    ("random",),
    ("kernels",),
    ("sparse",),
    ("nn",),
    ("ragged",),
    ("optim",),
    ("scipy",),
    ("distributed",),
    ("dataflow",),
    ("viz",),
    ("profiler",),
    ("train",),
    ("export",),
    ("serve",),
)
RANK = {name: rank for rank, row in enumerate(ORDER) for name in row}
# `fxflow` itself and modules beside `__init__` that only collect names for the user
# (`fxflow/tree.py`, …): they may import every layer, and no layer may import them.
SURFACE = len(ORDER)
# Doors for programs of other libraries: on top of all that, and nothing knows of them.
RANK["compat"] = SURFACE + 1
NEVER = {"jax", "jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin"}


class Import(NamedTuple):
    """One imported module, absolute: `fxflow.core.tree`."""

    module: str
    line: int
    in_function: bool


def imports(source: str, package: str) -> Iterator[Import]:
    """Yields what `source`, a module of `package` ("fxflow.core"), imports."""

    def visit(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.Import(names=names):
                    for alias in names:
                        yield Import(alias.name, child.lineno, in_function)
                case ast.ImportFrom(module=module, names=names, level=level):
                    if level:
                        parents = package.split(".")
                        parents = parents[: len(parents) - level + 1]
                        module = ".".join([*parents, module] if module else parents)
                    # `from fxflow import core` names the layer in the second place.
                    for alias in names:
                        full = (
                            f"{module}.{alias.name}" if module == "fxflow" else module
                        )
                        yield Import(full, child.lineno, in_function)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    yield from visit(child, True)
                case _:
                    yield from visit(child, in_function)

    return visit(ast.parse(source), False)


def rank_of(module: str) -> int:
    """The place of an `fxflow` module in ORDER."""
    parts = module.split(".")
    return RANK.get(parts[1], SURFACE) if len(parts) > 1 else SURFACE


def complaints(source: str, module: str, is_package: bool = False) -> list[str]:
    """What `source`, being `module`, imports against the rules."""
    package = module if is_package else module.rpartition(".")[0]
    layer = module.split(".")[1] if "." in module else ""
    own_rank = rank_of(module)
    found = []
    for name, line, in_function in imports(source, package):
        top = name.split(".")[0]
        if top in NEVER:
            found.append(f"{module}:{line} imports {name}: fxflow stands without jax")
        elif top == "jaxlib" and layer != "devices":
            found.append(f"{module}:{line} imports {name}: only devices/ may")
        elif top == "fxflow":
            their_layer = name.split(".")[1] if "." in name else ""
            if in_function:
                found.append(f"{module}:{line} imports {name} inside a function")
            if their_layer == "compat" != layer:
                found.append(f"{module}:{line} imports {name}: nothing knows of compat")
            # Surface modules see everything else, so the rule binds the layers alone.
            if own_rank == SURFACE or their_layer == layer:
                continue
            if rank_of(name) > own_rank:
                found.append(f"{module}:{line} imports {name}, which is to its right")
    return found


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_point_left(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    found = complaints(source, module_name(path), path.name == "__init__.py")
    assert not found, "\n".join(found)


def test_every_folder_has_a_layer() -> None:
    folders = {path.relative_to(PACKAGE).parts[0] for path in FILES}
    unknown = {name for name in folders if not name.endswith(".py")} - RANK.keys()
    assert not unknown, f"folders without a place in ORDER: {sorted(unknown)}"
    names = {name.removesuffix(".py") for name in folders}
    assert RANK.keys() <= names, f"not there: {sorted(RANK.keys() - names)}"


@pytest.mark.parametrize(
    ("source", "module", "complaint"),
    [
        ("import fxflow.lax.slicing", "fxflow.core.tree", "to its right"),
        ("from fxflow import lax", "fxflow.core.tree", "to its right"),
        ("from ..lax import slicing", "fxflow.core.tree", "to its right"),
        ("from .. import lax", "fxflow.core.tree", "to its right"),
        ("import fxflow", "fxflow.core.tree", "to its right"),
        ("from fxflow import tree", "fxflow.core.tree", "to its right"),
        ("from fxflow.viz import show", "fxflow.optim.base", "to its right"),
        ("def f():\n  import fxflow.core", "fxflow.lax.dot", "inside a function"),
        (
            "if TYPE_CHECKING:\n  from fxflow.numpy import sin",
            "fxflow.lax.dot",
            "to its right",
        ),
        ("import jaxlib.mlir", "fxflow.core.tree", "only devices/ may"),
        ("import fxflow.compat.jax", "fxflow.tree", "nothing knows of compat"),
        ("from jaxlib import _jax", "fxflow.core.tree", "only devices/ may"),
        ("import jax.numpy", "fxflow.devices.clients", "without jax"),
        ("from jax import Array", "fxflow.viz.shardings", "without jax"),
    ],
)
def test_wrong_imports_are_seen(source: str, module: str, complaint: str) -> None:
    (found,) = complaints(source, module)
    assert complaint in found


@pytest.mark.parametrize(
    ("source", "module", "is_package"),
    [
        ("from fxflow.core import tree", "fxflow.lax.dot", False),
        ("from . import slicing", "fxflow.lax.dot", False),
        ("from .slicing import slice", "fxflow.lax", True),
        ("from fxflow._config import config", "fxflow.devices.clients", False),
        ("from jaxlib import _jax", "fxflow.devices._jaxlib", False),
        ("import numpy as np", "fxflow.numpy.creation", False),
        ("from . import trees", "fxflow.devices", True),
        ("from fxflow import numpy, tree", "fxflow", True),
        ("from fxflow import tree", "fxflow.compat.jax.tree_util", False),
    ],
)
def test_right_imports_pass(source: str, module: str, is_package: bool) -> None:
    assert complaints(source, module, is_package) == []
