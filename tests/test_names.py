"""Names of public modules: what is listed, and what an absent one is called."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fxflow
from fxflow import _names

MODULES = ["fxflow", *(f"fxflow.{name}" for name in ("lax", "nn", "numpy", "optim"))]
MODULES += [
    f"fxflow.{name}"
    for name in (
        "random",
        "tree",
        "sharding",
        "scipy.special",
        "devices",
        "distributed",
    )
]


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("fxflow", "remat", "here it is fxflow.checkpoint"),
        ("fxflow", "make_jaxpr", "here it is fxflow.make_graph"),
        ("fxflow", "tree_map", "here it is fxflow.tree.map"),
        ("fxflow", "devicez", "did you mean fxflow.devices?"),
        ("fxflow.random", "PRNGKey", "here it is fxflow.random.key"),
        ("fxflow.tree", "tree_leaves_with_path", "fxflow.tree.leaves_with_path"),
        ("fxflow.numpy", "lingspace", "did you mean fxflow.numpy.linspace?"),
        ("fxflow.nn", "Linear", "nn has functions only"),
        ("fxflow.lax", "qqqqq", r"module 'fxflow.lax' has no attribute 'qqqqq'$"),
        # Names of other public modules.
        ("fxflow", "PRNGKey", "here it is fxflow.random.key$"),
        ("fxflow", "jnp", "here it is fxflow.numpy$"),
        ("fxflow", "optax", "here it is fxflow.optim$"),
        (
            "fxflow.nn",
            "LSTM",
            "functions only: nn.lstm_init, nn.lstm_state, nn.lstm$",
        ),
        (
            "fxflow.nn",
            "BatchNorm2d",
            "functions only: nn.batch_norm_init, nn.batch_norm_state, nn.batch_norm$",
        ),
        ("fxflow.nn", "Conv2d", "functions only: nn.conv_init, nn.conv$"),
        ("fxflow.nn", "RMSNorm", "functions only: nn.rms_norm_init, nn.rms_norm$"),
        ("fxflow.nn", "MaxPool2D", "functions only: nn.max_pool$"),
        ("fxflow", "nnx", "nn has functions only$"),
        ("fxflow", "filter_jit", "here it is fxflow.jit$"),
        ("fxflow", "save", "fxflow.train.checkpoint.save for a pytree$"),
        # Submodules come before other modules.
        ("fxflow.train", "save", "here it is fxflow.train.checkpoint.save$"),
        ("fxflow.train", "Logger", "here it is fxflow.train.logs.Logger$"),
        ("fxflow.train.checkpoint", "load", "fxflow.train.checkpoint.restore$"),
        ("fxflow", "odeint", "here it is fxflow.scipy.integrate.odeint$"),
        ("fxflow.scipy.integrate", "trapz", "fxflow.scipy.integrate.trapezoid$"),
        (
            "fxflow.scipy.integrate",
            "simps",
            "here it is fxflow.scipy.integrate.simpson$",
        ),
        ("fxflow.optim", "cosine_decay", "here it is .*.cosine_decay_schedule$"),
        ("fxflow.scipy.special", "h_roots", "here it is .*special.roots_hermite$"),
        ("fxflow.train", "TrainState", "keep parameters and optimizer states"),
        ("fxflow", "adam", "here it is fxflow.optim.adam$"),
        ("fxflow", "relu", "here it is fxflow.nn.relu$"),
        ("fxflow", "array", "here it is fxflow.numpy.array$"),
        ("fxflow", "DtypeError", "here it is fxflow.errors.DtypeError$"),
        ("fxflow.numpy", "grad", "here it is fxflow.grad$"),
        ("fxflow.optim", "l2_loss", "here it is fxflow.optim.losses.l2_loss$"),
        ("fxflow", "experimental", "fxflow has no experimental package"),
        ("fxflow.errors", "ConcretizationTypeError", "errors.ConcretizationError$"),
    ],
)
def test_absent_names(module: str, name: str, words: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(module)) as found:
        getattr(importlib.import_module(module), name)
    assert re.search(words, str(found.value))
    assert found.value.name == name


def test_what_is_named_exists() -> None:
    importlib.import_module("fxflow.compat.jax.experimental")
    for module, called in _names._CALLED_HERE.items():
        absent = module == "fxflow.experimental"
        listed = [] if absent else dir(importlib.import_module(module))
        for absent, here in called.items():
            assert absent not in listed, f"{module}.{absent} is there"
            dotted = re.match(r"[A-Za-z0-9_.]+", here)
            if dotted and " has " not in here:
                value = fxflow
                for part in dotted[0].split("."):
                    value = getattr(value, part)


def test_absent_attributes_of_objects(tmp_path: Path) -> None:
    checkpoints = fxflow.train.checkpoint.Checkpointer(tmp_path)
    with pytest.raises(AttributeError, match=r"here it is latest\(\)$") as found:
        checkpoints.latest_step  # type: ignore[attr-defined]
    assert found.value.name == "latest_step" and found.value.obj is checkpoints
    assert found.traceback[-1].path == Path(__file__)
    with pytest.raises(AttributeError, match=r"no attribute 'qqqqq'$"):
        checkpoints.qqqqq  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", _names._METHODS)
def test_methods_of_other_arrays_are_answered(name: str) -> None:
    x = fxflow.numpy.ones(3)
    assert not hasattr(x, name) and name not in dir(x)
    with pytest.raises(AttributeError, match="'Array' object has no") as got:
        getattr(x, name)
    assert "here it is" in str(got.value)
    assert got.value.name == name and got.value.obj is x
    assert got.traceback[-1].path == Path(__file__)
    with pytest.raises(AttributeError, match="'TracedArray' object has"):
        fxflow.jit(lambda x: getattr(x, name))(x)


def test_keywords_of_other_libraries() -> None:
    assert _names.called_here({"x": 1, "dim": 1}, ["x", "axis"]) == (
        ": 'dim' is axis here"
    )
    assert _names.called_here({"axes": 1}, ["axis", "b"]) == ": 'axes' is axis here"
    assert _names.called_here({"qqqqq": 1}, ["axis"]) == ""
    assert _names.called_here({"axis": 1}, ["axis"]) == ""


def test_packages_of_scipy_answer_absent_names() -> None:
    import pkgutil

    import fxflow.scipy

    for found in pkgutil.walk_packages(fxflow.scipy.__path__, "fxflow.scipy."):
        if "._" in found.name:
            continue
        module = importlib.import_module(found.name)
        if hasattr(module, "__all__"):
            assert "__getattr__" in vars(module), f"{found.name} calls no `public`"


def test_named_attributes_exist() -> None:
    from fxflow.transforms.stages import Traced

    kinds = {k.__name__: k for k in (fxflow.train.checkpoint.Checkpointer, Traced)}
    kinds["Logger"] = fxflow.train.logs.Logger
    kinds["Bundle"] = fxflow.export.Bundle
    kinds["GradientTransformation"] = fxflow.optim.GradientTransformation
    words = (
        "a call: log",
        "graph",
        "optim.multi_transform",
        "updates, state = tx.update",
    )
    words = (*words, "state, which init and update return")
    words = (*words, "not needed: fxflow.grad returns new gradients")
    for name, called in _names._ATTRIBUTES.items():
        for absent, here in called.items():
            assert not hasattr(kinds[name], absent)
            word = here.partition("(")[0]
            # `graph` is set by `__init__`.
            assert hasattr(kinds[name], word) or word in words


@pytest.mark.parametrize("module", MODULES)
def test_only_public_names_are_listed(module: str) -> None:
    found = importlib.import_module(module)
    listed = set(dir(found))
    assert set(found.__all__) <= listed
    odd = {n for n in listed if n.startswith("_") and not n.startswith("__")}
    assert not odd and "Any" not in listed and "annotations" not in listed
    for name in listed:
        getattr(found, name)


def test_hasattr_and_defaults() -> None:
    assert not hasattr(fxflow, "remat")
    assert getattr(fxflow.numpy, "in1d", None) is None


def test_import_of_an_absent_name_says_which() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nnumpy' from 'fxflow'"):
        from fxflow import nnumpy  # type: ignore[attr-defined]  # noqa: F401
    from fxflow import nn, optim

    assert nn is fxflow.nn and optim is fxflow.optim


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("from fxflow import make_jaxpr", "here it is fxflow.make_graph"),
        ("from fxflow import tree_util", "here it is fxflow.tree"),
        ("from fxflow.random import PRNGKey", "here it is fxflow.random.key"),
        ("from fxflow.numpy import lingspace", "did you mean fxflow.numpy.linspace?"),
        ("from fxflow.optim import l2_loss", "here it is fxflow.optim.losses.l2_loss"),
        ("import fxflow.tree_util", "here it is fxflow.tree"),
        ("from fxflow.tree_util import tree_map", "here it is fxflow.tree"),
        ("from fxflow.experimental import mesh_utils", "has no experimental package"),
        ("import fxflow.numpy.random", "here it is fxflow.random"),
        ("from fxflow.experimental.shard_map import f", "here it is fxflow.shard_map"),
        ("import fxflow.experimental.pjit as p", "here it is fxflow.jit"),
        ("import fxflow.experimental.pallas.tpu", "has no experimental package"),
        ("from fxflow.test_util import f", "here it is fxflow.compat.jax.test_util"),
    ],
)
def test_imports_of_absent_names_give_the_same_hint(statement: str, words: str) -> None:
    with pytest.raises(ImportError, match=re.escape(words)) as found:
        exec(statement)
    assert found.traceback[-1].path != _names.__file__


def test_an_absent_name_without_a_hint_is_plain() -> None:
    with pytest.raises(ImportError, match=r"from 'fxflow'$"):
        exec("from fxflow import qqqqq")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'fxflow\.qqqqq'$"):
        exec("import fxflow.qqqqq")
    assert importlib.util.find_spec("fxflow.qqqqq") is None


def elsewhere(module: str) -> tuple[dict[str, str], dict[str, str]]:
    """Where names are that are imported when first used: for checkers, and in fact."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module)))
    seen, lazy = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            for inner in ast.walk(node):
                if isinstance(inner, ast.ImportFrom) and inner.module != module:
                    home = str(inner.module).removeprefix(f"{module}.")
                    seen.update(dict.fromkeys((a.name for a in inner.names), home))
        if isinstance(node, ast.keyword) and node.arg == "elsewhere":
            for home, names in ast.literal_eval(node.value).items():
                lazy.update(dict.fromkeys(names.split(), home))
    seen.pop("devices", None)  # a module for checkers alone
    return seen, lazy


LAZY = ["fxflow", *(f"fxflow.{n}" for n in ("export", "lax", "nn", "numpy", "random"))]


@pytest.mark.parametrize("module", LAZY)
def test_what_is_imported_when_first_used(module: str) -> None:
    seen, lazy = elsewhere(module)
    assert lazy and seen == lazy
    found = importlib.import_module(module)
    assert set(lazy) <= set(found.__all__)
    for name in lazy:
        # An import of the submodule would put it in the place of the function.
        assert not importlib.util.find_spec(f"{module}.{name}"), name
        assert getattr(found, name) is vars(found)[name]


def test_primitives_that_are_looked_up_by_name_are_there() -> None:
    """`table["add"]` is for what comes with `import fxflow`, or with the module."""
    code = """
import importlib, pathlib, re, sys
import fxflow
from fxflow.core.ir.primitive import table
for path in sorted(pathlib.Path(fxflow.__path__[0]).rglob("*.py")):
    names = set(re.findall(r'\\btable\\["(\\w+)"', path.read_text()))
    later = "varying.py", "masking.py", "cond_rows.py", "ref_index.py"
    if not names <= set(table) and path.name not in later:
        parts = path.relative_to(fxflow.__path__[0]).with_suffix("").parts
        importlib.import_module(".".join(["fxflow", *parts]))
        assert names <= set(table), (path, names - set(table))
# `varying` is for programs over a mesh, whose operation is there.
import fxflow.lax.shard_map
assert {"psum", "pcast"} <= set(table)
# Masked graphs and vectorized branches come of branches and loops.
import fxflow.lax.control_flow.while_loop
assert {"cond", "cond_in_turn"} <= set(table)
# Only bodies of kernels make slices of references with a computed start.
import fxflow.kernels
assert {"dynamic_slice", "dynamic_update_slice", "min", "pad"} <= set(table)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
