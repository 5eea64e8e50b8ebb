"""Every module of `fxflow.compat.jax` imports, and JAX's public names are there."""

import importlib
import pkgutil
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

import fxflow.compat.jax as jax
from fxflow.compat.jax._mirror import target

MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(jax.__path__, "fxflow.compat.jax.")
    if not found.name.endswith(("__main__", "pytest_plugin"))
)
ROOT = Path(__file__).parents[3]
LISTED = Path(__file__).parent / "data" / "jax-0.10.2-names.txt"


def names_of_jax():
    """Yields each public module of JAX 0.10.2 and its names."""
    text = re.sub(r"\n    ", " ", LISTED.read_text())
    for line in text.splitlines():
        if not line.startswith("#"):
            module, names = line.split(": ")
            yield module, names.split()


def left_out():
    """Yields the rows of the guide's table: modules, names or None for all."""
    text = (ROOT / "docs" / "compat.md").read_text()
    for row in re.findall(r"^\| (`jax.*`) \| (.+?) \| .+? \|$", text, re.M):
        modules, names = (re.findall(r"`(\S+)`", cell) for cell in row)
        yield modules, names or None


@pytest.mark.parametrize("module", MODULES)
def test_modules_import(module):
    found = importlib.import_module(module)
    assert found.__doc__
    for name in getattr(found, "__all__", ()):
        assert hasattr(found, name), name


def test_each_public_name_of_jax_is_there_or_in_the_guide_s_table():
    rows, used, absent = list(left_out()), set(), []
    for name, names in names_of_jax():
        here = target(f"fxflow.compat.{name}")
        module = importlib.import_module(here) if here else None
        for missing in (n for n in names if not hasattr(module, n)):
            found = {
                (pattern, None if listed is None else missing)
                for modules, listed in rows
                for pattern in modules
                if fnmatch(name, pattern) and (listed is None or missing in listed)
            }
            used |= found
            if not found:
                absent.append(f"{name}.{missing}")
    assert not absent, "add them, or name them in docs/compat.md"
    for modules, listed in rows:
        for entry in listed or [None]:
            known = [pattern for pattern in modules if (pattern, entry) in used]
            assert known, f"{modules} {entry or ''}: not absent any more"


def test_private_names_that_packages_use_are_there():
    from fxflow.compat.jax._src.traceback_util import api_boundary, register_exclusion

    assert api_boundary(abs, repro_api_name="mine") is abs
    assert register_exclusion(__file__) is None


def test_scipy_is_found_where_fxflow_has_it():
    assert jax.scipy.special.gammaln(3.0) == pytest.approx(0.6931, abs=1e-3)
    assert jax.scipy.stats.norm.logpdf(0.0) == pytest.approx(-0.9189, abs=1e-3)
