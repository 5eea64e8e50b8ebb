"""Type checkers see the methods that `fxflow.numpy` puts on arrays, and no others."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import fxflow.numpy  # noqa: F401 (puts the methods on arrays)
from fxflow.core.arrays import array
from fxflow.numpy import array_methods

# Python never imports the stub, but can: its bodies are `...`.
STUB = Path(array.__file__).with_name("array_interface.pyi")
namespace: dict[str, Any] = {}
source = "from __future__ import annotations\n" + STUB.read_text(encoding="utf-8")
exec(compile(source, STUB, "exec"), namespace)
DECLARED = {
    name: value
    for name, value in vars(namespace["ArrayInterface"]).items()
    if callable(value) or isinstance(value, property)
}

REFUSED = {"__setitem__", "__delitem__"}


def shape_of(function: Any) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults of what a method takes beside the array."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [(p.name, p.kind, p.default) for p in parameters]


def test_all_is_declared() -> None:
    methods, single = array_methods, set(array_methods._UNARY)
    both = {*methods._BINARY, *methods._COMPARISONS}
    names = {f"__{n}__" for n in both | single}
    names |= {f"__r{n}__" for n in methods._BINARY}
    names |= {*methods.METHODS, *methods.PROPERTIES}
    assert set(DECLARED) - {"__hash__"} == names - REFUSED


@pytest.mark.parametrize("name", sorted({*DECLARED} & {*array_methods.METHODS}))
def test_methods_take_what_is_declared(name: str) -> None:
    want, given = array_methods.METHODS[name], DECLARED[name]
    if name.startswith("__"):  # Python passes these by position
        assert len(shape_of(given)) == len(shape_of(want))
    else:
        assert shape_of(given) == shape_of(want)


def test_nothing_of_it_exists_at_run_time() -> None:
    assert array.ArrayInterface is object
