"""Each module of the package has its test file in the same place under tests/."""

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "fxflow"

# The conformance suite walks the table of primitives, so a file that registers one is
# run by it; more in a file than primitives still deserves a test of its own.
CONFORMANCE = "conformance/test_*.py"


def mirror(path: Path) -> Path:
    """The test file that belongs to a source file."""
    folder = path.relative_to(PACKAGE).parent
    return TESTS / folder / f"test_{path.name}"


def registers_primitives(source: str) -> bool:
    """Whether `source` holds a class under `@register`."""
    return any(
        getattr(decorator, "id", getattr(decorator, "attr", None)) == "register"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        for decorator in node.decorator_list
    )


def needs_mirror(path: Path) -> bool:
    """Private modules are tested through what uses them, packages by their parts.

    So is a package's `errors.py`, which has classes without methods.
    """
    parts = path.relative_to(PACKAGE).parts
    if len(parts) > 1 and path.name == "errors.py":
        return False
    # The modules of fxflow.compat.jax are lists of names, which test_names.py compares.
    listed = parts[:2] == ("compat", "jax")
    return not (listed or any(part.startswith("_") for part in parts))


MODULES = [path for path in sorted(PACKAGE.rglob("*.py")) if needs_mirror(path)]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_module_has_tests(path: Path) -> None:
    if mirror(path).exists():
        return
    if registers_primitives(path.read_text(encoding="utf-8")):
        assert list(TESTS.rglob(CONFORMANCE)), f"{path} waits for {CONFORMANCE}"
        return
    pytest.fail(f"write {mirror(path).relative_to(TESTS.parent)}")


def test_private_modules_need_none() -> None:
    assert mirror(PACKAGE / "lax" / "dot.py") == TESTS / "lax" / "test_dot.py"
    assert needs_mirror(PACKAGE / "lax" / "dot.py")
    assert not needs_mirror(PACKAGE / "_config.py")
    assert not needs_mirror(PACKAGE / "lax" / "__init__.py")


def test_registration_is_seen() -> None:
    assert registers_primitives("@register\nclass Sin(Elementwise): ...")
    assert registers_primitives("@primitive.register\nclass Sin(Elementwise): ...")
    assert not registers_primitives("class Sin(Elementwise): ...")
