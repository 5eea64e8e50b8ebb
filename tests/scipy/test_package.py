"""The package of SciPy functions, and the list of the names that it lacks."""

import fnmatch
import importlib
import re
import types
from pathlib import Path

import pytest

import fxflow.scipy

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "other-libraries.md"
MODULES = (
    *("linalg", "fft", "signal", "signal.windows", "interpolate", "integrate"),
    *("optimize", "ndimage", "spatial", "spatial.distance", "spatial.transform"),
    *("cluster", "cluster.vq", "cluster.hierarchy", "sparse", "sparse.linalg"),
    *("sparse.csgraph", "constants", "datasets", "differentiate"),
)


def listed() -> dict[str, set[str]]:
    """The patterns of names of each module in the guide's table."""
    out: dict[str, set[str]] = {}
    rows = re.findall(r"^\| `([a-z._]+)` \| (`.*?) \| ", GUIDE.read_text("utf-8"), re.M)
    for module, names in rows:
        out.setdefault(module, set()).update(re.findall(r"`([\w*]+)`", names))
    return out


def lacked(module: str) -> set[str]:
    """The public names of a module of SciPy that ours lacks."""
    theirs = importlib.import_module(f"scipy.{module}")
    try:
        ours = importlib.import_module(f"fxflow.scipy.{module}")
    except ModuleNotFoundError:
        ours = types.ModuleType("none")
    every = getattr(theirs, "__all__", [n for n in dir(theirs) if n[0] != "_"])
    names = {n for n in every if not isinstance(getattr(theirs, n), types.ModuleType)}
    return {name for name in names if not hasattr(ours, name)}


@pytest.mark.parametrize("module", MODULES)
def test_the_guide_lists_the_names_that_are_missing(module: str) -> None:
    if not pytest.importorskip("scipy").__version__.startswith("1.17."):
        pytest.skip("the guide lists the names of SciPy 1.17")
    missing, patterns = lacked(module), listed().get(module, set())
    matches = {p: set(fnmatch.filter(missing, p)) for p in patterns}
    # A name that is written is no longer listed; one that SciPy adds is either.
    assert missing - set().union(*matches.values()) == set()
    assert [p for p, found in matches.items() if not found and p != "interp2d"] == []


def test_the_guide_lists_no_other_modules() -> None:
    assert listed().keys() <= set(MODULES)


def test_modules_are_found() -> None:
    assert callable(fxflow.scipy.special.erf)
    assert callable(fxflow.scipy.linalg.expm)
    assert "special" in dir(fxflow.scipy)
    with pytest.raises(AttributeError, match="nothing"):
        _ = fxflow.scipy.nothing
