"""Models by their names.

A model is named by text, ``module:name``, ``path/to/file.py:name`` or ``model.fx``,
because its process loads it afresh. What the name stands for is a `Model`, a function
that makes one (`factory`), an exported program, or any callable that takes arrays,
whose types the configuration says.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve.containers.exported import load_exported
from fxflow.serve.containers.models import Model


def load_model(
    source: str,
    *,
    factory: bool = False,
    arguments: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    batched: bool = True,
) -> Model:
    """Returns the model that a text names.

    Args:
      source: ``module:name``, ``path/to/file.py:name`` or ``path/to/model.fx``.
      factory: whether the name is a function that is called to get the model.
      arguments: keyword arguments for that function; of a `.fx` file, ``compiled``.
      inputs: types of the inputs, of what is no `Model` but a callable; it is
        called as it is, not compiled. Of a `.fx` file, their names.
      outputs: names of what comes out of such a callable or file.
      batched: whether such a callable or file takes batches.

    Returns:
      The model.

    Raises:
      ServeError: there is no such thing, or it is no model.

    Example:
      >>> load_model("numpy:negative", inputs={"x": "f32[batch]"}).prepare(8).batched
      True
    """
    if source.endswith(".fx"):
        if factory or (unknown := (arguments or {}).keys() - {"compiled"}):
            what = "factory" if factory else f"argument {min(unknown)!r}"
            raise ServeError(f"{source!r} is a program: it has no {what}")
        return load_exported(
            source,
            inputs=inputs,
            outputs=outputs,
            batched=batched,
            **(arguments or {}),
        )
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise ServeError(
            "a model is named as 'module:name', 'file.py:name' or 'model.fx', got "
            f"{source!r}"
        )
    value: Any = _imported(place)
    for part in name.split("."):
        if not hasattr(value, part):
            raise ServeError(f"there is no {name!r} in {place!r}")
        value = getattr(value, part)
    if factory:
        value = value(**(arguments or {}))
    elif arguments:
        raise ServeError(f"arguments are for a factory, and {source!r} is not called")
    if isinstance(value, Model):
        return value
    if not callable(value):
        raise ServeError(f"{source!r} is no model, but a {type(value).__name__}")
    if not inputs:
        raise ServeError(
            f"{source!r} is a {type(value).__name__}: say the types of its inputs, "
            "such as inputs = {x = 'f32[batch,784]'}, or make it a fxflow.serve.Model"
        )
    return Model(value, inputs=inputs, outputs=outputs, batched=batched, jit=False)


def _imported(place: str) -> ModuleType:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).resolve()
    if not path.is_file():
        raise ServeError(f"there is no file {place!r}")
    # Modules beside it are found, as if it were run.
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
