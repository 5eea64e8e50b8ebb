"""Loads models by name: functions, exported programs, folders of models with tables."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve import tables
from fxflow.serve.containers.models import Model, load_exported


def load_model(
    source: str,
    *,
    factory: bool = False,
    arguments: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    batched: bool = True,
) -> Model:
    """Loads a model by name.

    Args:
      source: ``module:name``, ``path/to/file.py:name``, ``path/to/model.fx``, or a
        folder that `save_recommender` wrote.
      factory: whether the name is a function that returns the model.
      arguments: keyword arguments for that function; for a `.fx` file, ``compiled``;
        for a folder, those of `load_recommender`.
      inputs: types of the inputs of a plain callable, which is not compiled; or names
        and types of the inputs of a `.fx` file.
      outputs: names of the outputs of such a callable or file.
      batched: whether such a callable or file takes batches.

    Returns:
      The model.

    Raises:
      ServeError: there is no such object, or it is not a model.

    Example:
      >>> load_model("numpy:negative", inputs={"x": "f32[batch]"}).prepare(8).batched
      True
    """
    if source.endswith(".fx"):
        if factory or (unknown := (arguments or {}).keys() - {"compiled"}):
            what = "factory" if factory else f"argument {min(unknown)!r}"
            raise ServeError(f"{source!r} is a program: it takes no {what}")
        return load_exported(
            source, inputs=inputs, outputs=outputs, batched=batched, **(arguments or {})
        )
    if (Path(source) / "manifest.json").is_file():
        if factory or inputs or outputs or not batched:
            raise ServeError(
                f"{source!r} is a folder with the types of its inputs and outputs: it "
                "takes no factory, inputs, outputs or batched"
            )
        try:
            return tables.load_recommender(source, **(arguments or {}))
        except TypeError as error:
            raise ServeError(f"{source!r}: {error}") from None
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise ServeError(
            "a model must be named as 'module:name', 'file.py:name' or 'model.fx', "
            f"got {source!r}"
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
        raise ServeError(f"{source!r} is not a model, but a {type(value).__name__}")
    if not inputs:
        raise ServeError(
            f"{source!r} is a {type(value).__name__}: give the types of its inputs, "
            "such as inputs = {x = 'f32[batch,784]'}, or make it a fxflow.serve.Model"
        )
    return Model(value, inputs=inputs, outputs=outputs, batched=batched, jit=False)


def _imported(place: str) -> ModuleType:
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).resolve()
    if not path.is_file():
        raise ServeError(f"there is no file {place!r}")
    # Let it import modules next to it, as a script can.
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module
