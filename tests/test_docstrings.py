"""Public names say what they take and what they give."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import fxflow

SECTION = {name: re.compile(rf"^\s*{name}:\s*$", re.M) for name in ("Args", "Returns")}


def public_modules() -> list[str]:
    """`fxflow` and each package under it whose path has no underscore."""
    found = ["fxflow"]
    for module in pkgutil.walk_packages(fxflow.__path__, "fxflow."):
        private = any(part.startswith("_") for part in module.name.split("."))
        if not private and (module.ispkg or module.name.count(".") == 1):
            found.append(module.name)
    return found


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Functions and classes of `module` which fxflow itself defines."""
    names = getattr(module, "__all__", None)
    for name in names or [name for name in vars(module) if not name.startswith("_")]:
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""
        if callable(value) and home.split(".")[0] == "fxflow":
            yield name, value


def missing(value: Any) -> list[str]:
    """What the docstring of a public function or class lacks."""
    doc = inspect.getdoc(value) or ""
    # A class without a docstring of its own would show its base's.
    if not doc or (inspect.isclass(value) and not value.__dict__.get("__doc__")):
        return ["docstring"]
    if inspect.isclass(value):
        return []
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    lacks = []
    if signature.parameters and not SECTION["Args"].search(doc):
        lacks.append("Args")
    returns = signature.return_annotation
    if returns not in (None, "None", "NoReturn") and not SECTION["Returns"].search(doc):
        lacks.append("Returns")
    return lacks


@pytest.mark.parametrize("name", public_modules())
def test_public_names_are_described(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    found = {name: lacks for name, v in public_names(module) if (lacks := missing(v))}
    lines = [f"  {name}: {', '.join(lacks)}" for name, lacks in sorted(found.items())]
    assert not found, f"{name}: {len(found)} names lack\n" + "\n".join(lines)


def test_missing_sections_are_seen() -> None:
    def silent(x: int) -> int: ...

    def terse(x: int) -> int:
        """Adds."""

    def full(x: int) -> int:
        """Adds.

        Args:
            x: a number.

        Returns:
            The sum.
        """

    def procedure() -> None:
        """Acts."""

    class Bare: ...

    assert missing(silent) == ["docstring"]
    assert missing(terse) == ["Args", "Returns"]
    assert missing(full) == missing(procedure) == []
    assert missing(Bare) == ["docstring"]
