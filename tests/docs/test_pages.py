"""The reference: what has a page, what is on it, how docstrings are converted."""

import importlib.util
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, optim, random, scipy

pytest.importorskip("sphinx", reason="the docs extra is not installed")
PAGES = Path(__file__).parent.parent.parent / "docs" / "pages.py"


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    sys.path.insert(0, str(PAGES.parent))  # as `conf.py` does
    spec = importlib.util.spec_from_file_location("docs_pages", PAGES)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(PAGES.parent))


@pytest.fixture(scope="module")
def found(pages: ModuleType) -> dict[str, object]:
    entries: dict[str, object] = pages.entries(pages.modules())
    return entries


@pytest.mark.parametrize(
    "module", [fxflow, fnp, fnp.linalg, lax, nn, optim, random, scipy.special]
)
def test_every_function_has_a_page(
    module: ModuleType, found: dict[str, object]
) -> None:
    for name in module.__all__:
        value = getattr(module, name)
        ours = str(getattr(value, "__module__", "")).startswith("fxflow")
        if callable(value) and ours and not name.startswith("_"):
            entry = found[f"{module.__name__}.{name}"]
            assert entry.has_page and f"{module.__name__}.{name}" in entry.names


def test_internals_have_none(pages: ModuleType) -> None:
    listed = pages.modules()
    assert "fxflow.numpy.linalg" in listed and "fxflow.distributed.multihost" in listed
    for part in "core", "transforms", "compat", "_config", "buffers", "wire":
        assert not [name for name in listed if part in name.split(".")]


def test_one_object_has_one_page(found: dict[str, object]) -> None:
    assert found["fxflow.numpy.abs"] is found["fxflow.numpy.absolute"]
    page = found["fxflow.numpy.abs"].page
    assert page == "fxflow.numpy/" + fnp.abs.__name__
    assert found["fxflow.sharding.P"].page in ("fxflow/P", "fxflow/PartitionSpec")
    assert found["fxflow.devices.BackendError"].page == "fxflow.errors/BackendError"


def test_the_page_of_a_function(pages: ModuleType, found: dict[str, object]) -> None:
    text = "\n".join(pages.object_page(found["fxflow.numpy.dot"]))
    assert ".. py:function:: fxflow.numpy.dot(a: ArrayLike, b: ArrayLike, *, " in text
    assert ":param precision:" in text and ":raises ShapeError:" in text
    assert ">>> " in text and ":source:`fxflow/numpy/products.py:" in text


def test_the_page_of_a_class(pages: ModuleType, found: dict[str, object]) -> None:
    text = "\n".join(pages.object_page(found["fxflow.Mesh"]))
    assert ".. py:class:: fxflow.Mesh(" in text and ".. py:property:: " in text


def test_a_module_is_grouped_by_subject(
    pages: ModuleType, found: dict[str, object]
) -> None:
    groups = dict(pages.subjects(fxflow))
    assert "grad" in groups["Gradients, Jacobians and Hessians"]
    assert "Array" in groups["Arrays"]
    groups = dict(pages.subjects(fnp))
    assert "Comparisons and logic" in groups
    grouped = [name for names in groups.values() for name in names]
    assert sorted(grouped) == sorted(pages.names_of(fnp))
    assert "copysign" in groups["Floating-point numbers taken apart"]
    assert len(groups["Others"]) < 25
    # Those that a package imports, and those that it loads on first use.
    groups = dict(pages.subjects(lax))
    assert {"scan", "cond", "while_loop"} < {*groups["Branches and loops"]}
    assert "Others" not in groups and "Others" not in dict(pages.subjects(random))
    text = "\n".join(pages.module_page(fnp, found))
    assert ":doc:`dot </reference/fxflow.numpy/dot>`" in text


def test_signatures_have_no_addresses(
    pages: ModuleType, found: dict[str, object]
) -> None:
    for entry in found.values():
        if entry.has_page:
            assert " at 0x" not in pages.signature(entry.value), entry.page


def test_docstrings_have_no_open_places(found: dict[str, object]) -> None:
    texts = {e.page: inspect.getdoc(e.value) or "" for e in found.values()}
    opened = re.compile(r"\{(name|distribution|parameters|words)\}")
    assert [page for page, text in texts.items() if opened.search(text)] == []


def test_docstrings_are_converted(pages: ModuleType) -> None:
    assert pages.as_rst("Two `Array`s and ``b``.") == "Two ``Array``\\ s and ``b``."
    assert pages.converted(".. math:: a * b\n   * c") == [".. math:: a * b", "   * c"]
    assert pages.as_rst(r"Is :math:`|x|` `x`") == r"Is :math:`|x|` ``x``"
    assert pages.as_rst("`a * b`, |a| * b") == "``a * b``, \\|a\\| \\* b"


def test_pages_have_other_spellings_and_guides(
    pages: ModuleType, found: dict[str, object]
) -> None:
    notes = pages.see_also(found, pages.modules())
    key = " ".join(notes["fxflow.random/key"])
    assert "``random.PRNGKey``" in key and ":doc:`/guides/random-keys`" in key
    scan = " ".join(notes["fxflow.lax/scan"])
    assert ":doc:`while_loop </reference/fxflow.lax/while_loop>`" in scan
    # A large group gives only what is near in the file.
    assert 2 <= notes["fxflow.nn/gelu"][0].count("/reference/fxflow.nn/") <= 6
    entries = {entry.page: entry for entry in found.values() if entry.has_page}
    alone = [p for p in entries if not any("See also" in note for note in notes[p])]
    assert len(alone) <= 5, f"docs/related.py lacks {alone}"
    assert "``jnp.where``" in " ".join(notes["fxflow.numpy/where"])
    assert "``optax.adam``" in " ".join(notes["fxflow.optim/adam"])
    assert "jax.make_graph" not in " ".join(notes["fxflow/make_graph"])


def test_a_notebook_keeps_its_pictures(pages: ModuleType, tmp_path: Path) -> None:
    notebook = PAGES.parent.parent / "notebooks" / "01-quickstart.ipynb"
    text = pages.notebook_page(notebook, tmp_path)
    assert text.startswith("# Quickstart") and "```python\n" in text
    pictures = sorted(path.name for path in tmp_path.iterdir())
    assert pictures and all(f"]({name})" in text for name in pictures)


@pytest.mark.parametrize(
    "name",
    ["scan", "cond", "while_loop", "fori_loop", "switch", "map", "associative_scan"],
)
def test_control_flow_is_said_in_python(name: str) -> None:
    text = inspect.getdoc(getattr(fxflow.lax, name)) or ""
    assert re.search(r"In\s+Python.*it\s+would\s+be", text, re.S)
    _, _, examples = text.partition("Example:")
    assert examples.count(">>>") >= 2, "a second example, which is not trivial"
