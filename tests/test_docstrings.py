"""Public names say what they take and what they give."""

import ast
import enum
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fxflow

ROOT = Path(fxflow.__file__).parent
SOURCES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))

# Verbs that a summary would begin with in the imperative. Words that are nouns as well
# ("Name and length of each axis") are left out, as is "See `f`."
IMPERATIVE = """
    Add Allow Apply Ask Assign Begin Bind Bring Build Call Check Choose Clear
    Close Collect Combine Compare Compile Compute Connect Convert Create Decide
    Define Delete Describe Determine Do Drop Emit Ensure Evaluate Execute Fill
    Find Forget Generate Get Give Go Have Hold Ignore Insert Interpret Keep
    Leave Let Load Look Lower Make Mark Merge Move Note Open Pad Parse Pass
    Perform Pick Print Produce Put Raise Read Record Refuse Register Release
    Remember Remove Render Repeat Replace Report Reset Resolve Restore Return
    Run Save Say Send Serve Set Show Skip Solve Sort Split Start Stop Store Swap
    Take Tell Trace Try Turn Undo Update Use Validate Wait Warn Wrap Write Yield
"""
RULE = re.compile(r"^ *# -- .*[^ -] -+$")

SECTION = {name: re.compile(rf"^\s*{name}:\s*$", re.M) for name in ("Args", "Returns")}


def public_modules() -> list[str]:
    """`fxflow` and each package for users: not core, no underscore in its path."""
    found = ["fxflow"]
    for module in pkgutil.walk_packages(fxflow.__path__, "fxflow."):
        parts = module.name.split(".")
        private = parts[1] == "core" or any(part.startswith("_") for part in parts)
        if not private and (module.ispkg or module.name.count(".") == 1):
            found.append(module.name)
    return found


def public_names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Functions and classes of `module` which fxflow itself defines."""
    names = getattr(module, "__all__", None)
    for name in names or [name for name in vars(module) if not name.startswith("_")]:
        value = getattr(module, name)
        home = getattr(value, "__module__", None) or ""
        # Distributions are modules that can be called.
        plain = callable(value) and not inspect.ismodule(value)
        if plain and home.split(".")[0] == "fxflow":
            yield name, value


def said(doc: str) -> set[str]:
    """Names of the arguments that a docstring describes."""
    args = re.search(r"^( *)Args:\n((?:\1  .*\n?|\n(?=\1  ))*)", doc, re.M)
    named = re.findall(r"^ +(\*{0,2}\w[^:\n]*):", args[2], re.M) if args else ()
    return {name.strip(" *`") for names in named for name in names.split(",")}


def missing(value: Any) -> list[str]:
    """What the docstring of a public function or class lacks."""
    doc = inspect.getdoc(value) or ""
    # A class without a docstring of its own would show its base's.
    if not doc or (inspect.isclass(value) and not value.__dict__.get("__doc__")):
        return ["docstring"]
    if inspect.isclass(value) or isinstance(value, enum.Enum):
        return []
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return []
    lacks = []
    if signature.parameters and not SECTION["Args"].search(doc):
        lacks.append("Args")
    elif unsaid := [name for name in signature.parameters if name not in said(doc)]:
        lacks.append(f"Args: {', '.join(unsaid)}")
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

    def partial(x: int, *, y: int, z: int) -> None:
        """Acts.

        Args:
            x, z: numbers: real ones.
        """

    def procedure() -> None:
        """Acts."""

    class Bare: ...

    assert missing(silent) == ["docstring"]
    assert missing(terse) == ["Args", "Returns"]
    assert missing(partial) == ["Args: y"]
    assert missing(full) == missing(procedure) == []
    assert missing(Bare) == ["docstring"]


# -- style -----------------------------------------------------------------------------


def faults(source: str) -> list[str]:
    """Where docstrings, comments and imports differ from the house style."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            found.append(f"{node.lineno}: relative import")
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module
        doc = ast.get_docstring(node) if isinstance(node, kinds) else None
        if not doc:
            continue
        line = getattr(node, "lineno", 1)
        first = re.match(r"\w+", doc)
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if function and first and first[0] in IMPERATIVE.split():
            found.append(f"{line}: {first[0]!r} is not in the third person")
        for header, body in re.findall(r"^([A-Z][\w ]*:)\n( *)(?=\S)", doc, re.M):
            if len(body) not in (0, 2):
                found.append(f"{line}: {header!r} is indented by {len(body)}, not 2")
    for number, text in enumerate(source.splitlines(), 1):
        if text.lstrip().startswith("# --") and not (
            RULE.match(text) and len(text) == 88
        ):
            found.append(f"{number}: a section rule ends in column 88")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_docstrings_have_one_style(path: Path) -> None:
    assert faults((ROOT / path).read_text(encoding="utf-8")) == []


def test_faults_are_seen() -> None:
    rule = "# -- parts " + "-" * 77
    good = """
def f(x):
    '''Returns it.

    Args:
      x: a number.
    '''
"""
    assert faults(rule + good) == []
    assert faults(good.replace("Returns", "Return")) == [
        "2: 'Return' is not in the third person"
    ]
    assert faults(good.replace("      x", "        x")) == [
        "2: 'Args:' is indented by 4, not 2"
    ]
    assert faults(rule[:-1]) == ["1: a section rule ends in column 88"]
    assert faults("# -- parts") == ["1: a section rule ends in column 88"]
    assert faults("from .a import b") == ["1: relative import"]
