"""Writes pages of the reference, notebooks and benchmarks, before Sphinx reads them.

Each public module has a page with a table of its names by subject, and each function
and class has a page: `docs/reference/fxflow.numpy/dot.rst`. An object that is
public under several names has one page with all its names. The pages of notebooks
contain the stored outputs.
"""

import ast
import base64
import functools
import importlib
import inspect
import json
import re
import sys
import typing
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import related
import spellings
from sphinx.ext.napoleon import Config, GoogleDocstring

import fxflow

ROOT = Path(fxflow.__file__).parent.parent
SECTIONS = Config(
    napoleon_use_ivar=True,
    napoleon_custom_sections=["Special cases"],
)
# The page of an object with several public names is in the first module that has it.
FIRST = ("fxflow.errors", "fxflow.typing", "fxflow.stages", "fxflow.dtypes", "fxflow")


# -- what is public --------------------------------------------------------------------


@dataclass
class Entry:
    """A public object and its names; the first is the name of its page."""

    value: Any
    names: list[str] = field(default_factory=list)

    @property
    def page(self) -> str:
        """The path of its page, relative to `reference`: `fxflow.numpy/dot`."""
        module, _, name = self.names[0].rpartition(".")
        return f"{module}/{name}"

    @property
    def has_page(self) -> bool:
        """Whether it is a function or class of fxflow; constants are only in tables."""
        home = str(getattr(self.value, "__module__", "") or type(self.value).__module__)
        return is_called(self.value) and home.partition(".")[0] == "fxflow"


def is_called(value: Any) -> bool:
    """Returns whether it is a function or a class: distributions are modules first."""
    return callable(value) and not inspect.ismodule(value)


def modules(name: str = "fxflow") -> list[str]:
    """Returns a public module and, recursively, the modules that it lists."""
    found = [name]
    for child in submodules(importlib.import_module(name)):
        found += modules(child)
    return sorted(found, key=lambda name: (name not in FIRST, name))


def submodules(module: ModuleType) -> list[str]:
    """Returns the modules that a module lists, and packages in it with public names."""
    listed = "__dir__" in vars(module)  # lists public names only
    prefix, found = module.__name__ + ".", []
    for name in dir(module):
        value = None if name.startswith("_") else getattr(module, name)
        if isinstance(value, ModuleType) and value.__name__.startswith(prefix):
            named = listed or name in getattr(module, "__all__", ())
            if named or (hasattr(value, "__path__") and hasattr(value, "__all__")):
                found.append(value.__name__)
    return [name for name in found if name != "fxflow.compat"]


def names_of(module: ModuleType) -> list[str]:
    """Returns the public names of a module, without its submodules."""
    listed = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
    ]
    public = (name for name in listed if not name.startswith("_"))
    return [
        name for name in public if not isinstance(getattr(module, name), ModuleType)
    ]


def entries(modules: list[str]) -> dict[str, Entry]:
    """Returns each public name, such as `fxflow.numpy.dot`, with its entry."""
    by_identity: dict[int, Entry] = {}
    found: dict[str, Entry] = {}
    for module in map(importlib.import_module, modules):
        for name in names_of(module):
            value = getattr(module, name)
            entry = Entry(value)
            if is_called(value):
                entry = by_identity.setdefault(id(value), entry)
            full = f"{module.__name__}.{name}"
            entry.names.append(full)
            if getattr(value, "__name__", None) == name:  # not an alias of another
                same = [n for n in entry.names if n.rpartition(".")[2] == name]
                entry.names.sort(key=lambda n, same=same: n not in same)
            found[full] = entry
    return found


# -- by subject ------------------------------------------------------------------------


def subjects(module: ModuleType) -> Iterator[tuple[str, list[str]]]:
    """Yields the names of a module under headings.

    The headings are the comments in `__all__` if there are any. The names of a package
    that imports them from its files are grouped by file, under the file's docstring.
    """
    names = names_of(module)
    source = inspect.getsource(module)
    commented = list(commented_groups(source))
    if commented:
        groups = [
            (title, [n for n in names if n in group]) for title, group in commented
        ]
    else:
        groups = list(groups_by_file(module, source, names))
    shown = {name for _, group in groups for name in group}
    rest = [name for name in names if name not in shown]
    if rest:
        groups.append(("Others" if groups else "", rest))
    yield from ((title, group) for title, group in groups if group)


def commented_groups(source: str) -> Iterator[tuple[str, set[str]]]:
    """Yields the comment lines of `__all__` and the names that follow each."""
    listed = re.search(r"^__all__ = \[\n(.*?)^\]", source, re.M | re.S)
    parts = re.split(r"^ +# (.*)\n", listed[1], flags=re.M) if listed else [""]
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        yield title[:1].upper() + title[1:], set(re.findall(r'"(\w+)"', text))


def groups_by_file(
    module: ModuleType, source: str, names: list[str]
) -> Iterator[tuple[str, list[str]]]:
    """Yields the names of a package by the files and folders of it that have them.

    Names that the package imports come first, in its order, then those that it loads on
    first use. There are no groups if there is only one.
    """
    homes = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
            module.__name__ + "."
        ):
            homes |= {alias.asname or alias.name: node.module for alias in node.names}
    for name in names:
        home = home_of(module, name)
        if name not in homes and home:
            homes[name] = home
    groups: dict[str, list[str]] = {}
    for name, home in homes.items():
        inside = str(home).removeprefix(module.__name__ + ".")
        folder = importlib.import_module(
            f"{module.__name__}.{inside.partition('.')[0]}"
        )
        title = str(folder.__doc__).partition("\n")[0].rstrip(".:").partition(": ")[0]
        groups.setdefault(title, []).append(name)
    if len(groups) > 1:
        for title, group in groups.items():
            yield title, [name for name in names if name in group]


def home_of(module: ModuleType, name: str) -> str | None:
    """Returns the module of a package that defines one of its names, or None."""
    value, prefix = getattr(module, name), module.__name__ + "."
    if inspect.isclass(value) or inspect.isfunction(value):
        place = place_of(inspect.unwrap(value))
        home = place[0].removesuffix(".py").replace("/", ".") if place else ""
        return home if home.startswith(prefix) else None
    inside = [key for key in sys.modules if key.startswith(prefix)]
    return next((key for key in inside if is_defined(key, value, name)), None)


def is_defined(home: str, value: Any, name: str) -> bool:
    """Returns whether a module binds a name, or the own name of a value, to it."""
    module = sys.modules.get(home)
    names = {name, getattr(value, "__name__", name)}
    return module is not None and any(
        vars(module).get(n) is value and n in assigned(module) for n in names
    )


@functools.cache
def assigned(module: ModuleType) -> frozenset[str]:
    """Returns the names that a module defines or assigns, not those it imports."""
    if not getattr(module, "__file__", None):
        return frozenset()
    text = inspect.getsource(module)
    return frozenset(re.findall(r"^(?:def |class )?(\w+)(?:\(|\[|:| =)", text, re.M))


# -- text ------------------------------------------------------------------------------


def as_rst(line: str) -> str:
    """Returns a line of a docstring as reStructuredText.

    Docstrings are written for a terminal: `code` is in single backquotes, and stars
    and bars have no special meaning. Formulas are marked with `:math:`.
    """
    parts = re.split(r"(:math:`[^`]+`|``.+?``|`[^`]+`)", line)
    for i, part in enumerate(parts):
        if part.startswith(":math:"):
            continue
        if i % 2:
            parts[i] = f"``{part.strip('`')}``"
            if parts[i + 1][:1].isalnum():  # `Array`s
                parts[i] += "\\ "
        else:
            parts[i] = re.sub(r"([*|])", r"\\\1", part)
    return "".join(parts)


def converted(doc: str) -> list[str]:
    """Returns the reStructuredText of a docstring; keeps examples and directives."""
    lines, verbatim = doc.splitlines(), False
    for i, line in enumerate(lines):
        begins = line.lstrip().startswith((">>> ", ".. "))
        verbatim = bool(line.strip()) and (verbatim or begins)
        if not verbatim:
            lines[i] = as_rst(line)
    return lines


def summary(value: Any) -> str:
    """Returns the first line of a docstring."""
    doc = inspect.getdoc(value) if is_called(value) else None
    return as_rst((doc or "").partition("\n")[0])


class Verbatim:
    """Text that a signature shows without quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def signature(function: Any) -> str:
    """Returns the signature of a function, without quotes and addresses."""
    try:
        given = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"

    def shown(value: Any) -> Any:
        if value is inspect.Parameter.empty or value is None:
            return value
        if isinstance(value, str):
            return Verbatim(value)
        if isinstance(value, typing.ForwardRef):  # fields of a NamedTuple
            return Verbatim(value.__forward_arg__)
        return Verbatim(inspect.formatannotation(value))

    def default(value: Any) -> Any:
        if value is inspect.Parameter.empty:
            return value
        if callable(value) or " at 0x" in repr(value):
            return Verbatim(getattr(value, "__name__", type(value).__name__))
        return value

    parameters = [
        p.replace(annotation=shown(p.annotation), default=default(p.default))
        for p in given.parameters.values()
    ]
    returned = shown(given.return_annotation)
    return str(given.replace(parameters=parameters, return_annotation=returned))


def source(value: Any) -> str | None:
    """Returns a link to the source line on which a function begins, or None."""
    place = place_of(inspect.unwrap(value))
    return f":source:`{place[0]}:{place[1]}`" if place else None


@functools.cache
def place_of(value: Any) -> tuple[str, int] | None:
    """Returns the file and the line on which a function begins, or None."""
    try:
        path = Path(inspect.getsourcefile(value) or "").relative_to(ROOT).as_posix()
        line = inspect.findsource(value)[1] + 1
    except (TypeError, OSError, ValueError):
        return None
    return path, line


def title(text: str, mark: str = "=") -> list[str]:
    """Returns a heading."""
    return [text, mark * len(text), ""]


# -- pages -----------------------------------------------------------------------------


def described(kind: str, names: list[str], given: str, value: Any) -> list[str]:
    """Returns a directive that describes an object under all its names."""
    head = f".. py:{kind}:: "
    lines = [(" " * len(head) if i else head) + n + given for i, n in enumerate(names)]
    doc = "\n".join(converted(inspect.getdoc(value) or ""))
    what = "class" if kind in ("class", "exception") else "function"
    text = str(GoogleDocstring(doc, SECTIONS, what=what)).splitlines()
    # A name with an underscore at its end, such as `lambda_`, would be a reference.
    text = [re.sub(r"^(:(?:param|ivar) \w*)_:", r"\1\_:", line) for line in text]
    return [*lines, "", *(f"   {line}" for line in text), ""]


def members(kind: type) -> Iterator[tuple[str, str, Any]]:
    """Yields the public documented members of a class: directive, name, value.

    Members inherited from a private base class are included.
    """
    private = (vars(base) for base in kind.__bases__ if base.__name__[0] == "_")
    for name, value in ChainMap(vars(kind), *private).items():
        if name.startswith("_") or not inspect.getdoc(value):
            continue
        if isinstance(value, property):
            yield "property", name, value
        elif isinstance(value, classmethod | staticmethod):
            yield type(value).__name__, name, value.__func__
        elif inspect.isfunction(value):
            yield "method", name, value


def object_page(entry: Entry, notes: list[str] | None = None) -> list[str]:
    """Returns the page of a function or class: signature, text, examples, source.

    Args:
      entry: the function or class.
      notes: paragraphs for the end of the page.
    """
    module, _, name = entry.page.partition("/")
    value = entry.value
    lines = [":orphan:", "", *title(name)]
    if inspect.isclass(value):
        error = issubclass(value, BaseException)
        given = "" if error else signature(value).partition(" -> ")[0]
        kind = "exception" if error else "class"
        lines += described(kind, entry.names, given, value)
        for kind, member, what in members(value):
            given = "" if kind == "property" else signature(what)
            text = described(kind, [member], given, what)
            lines += [f"   {line}" for line in text]
    else:
        lines += described("function", entry.names, signature(value), value)
    place = source(value)
    text = f"In :doc:`/reference/{module}`."
    lines += [text + (f" Source: {place}." if place else "")]
    return [*lines, *(line for note in notes or () for line in ("", note))]


def see_also(found: dict[str, Entry], public: list[str]) -> dict[str, list[str]]:
    """Returns paragraphs for the end of each page: other names, guides, neighbours.

    Args:
      found: the entry of each public name.
      public: the names of the public modules.
    """
    other = spellings.spellings(found)
    used = spellings.mentions(
        spellings.texts(ROOT), {name: entry.page for name, entry in found.items()}
    )
    near: dict[str, list[str]] = {}
    for module in public:
        for heading, group in subjects(importlib.import_module(module)):
            pages = [found[f"{module}.{name}"] for name in group]
            # An alias is another name of the same page.
            pages = list({e.page: e for e in pages if e.has_page}.values())
            for entry in pages:
                rest = [p for p in pages if p is not entry]
                if not heading or len(group) > 10:
                    rest = beside(entry, pages)
                if rest:
                    near.setdefault(entry.page, [reference(p) for p in rest])
    lines = related.lines()
    # Each name of a line links to the others; what is first in a line, to those first.
    for names in lines + [[n, *line] for line in lines for n in line]:
        own, *others = [found[name] for name in names]
        rest = [entry for entry in others if entry is not own]
        near.setdefault(own.page, [reference(entry) for entry in rest])
    notes = {}
    for page, entry in {entry.page: entry for entry in found.values()}.items():
        names = [n for own in entry.names for n in other.get(own, ())]
        links = [f":doc:`/{guide}`" for guide in used.get(page, ())]
        links = near.get(page, []) + links
        paragraphs = []
        if links:
            paragraphs.append(f"**See also:** {', '.join(links)}.")
        if names:
            listed = ", ".join(f"``{name}``" for name in dict.fromkeys(names))
            paragraphs.append(f"**Other spellings:** {listed}.")
        notes[page] = paragraphs
    return notes


def beside(entry: Entry, group: list[Entry], count: int = 6) -> list[Entry]:
    """Returns what is next to an object in its file, or else in a small folder.

    Args:
      entry: the object.
      group: where to look, in any order.
      count: how many to return, at most.
    """
    place = lambda other: place_of(inspect.unwrap(other.value))
    own = place(entry)
    if own is None:
        return []
    others = [
        (abs(there[1] - own[1]), there[1], other)
        for other in group
        if other is not entry and (there := place(other)) and there[0] == own[0]
    ]
    if not others:  # such as a function that all distributions share
        home = getattr(entry.value, "__module__", None)
        shared = [e for e in group if getattr(e.value, "__module__", None) == home]
        if len(shared) > 1:
            return [other for other in shared if other is not entry][:count]
        folder = own[0].rpartition("/")[0]
        same = [
            other
            for other in group
            if other is not entry
            and (there := place(other))
            and there[0].rpartition("/")[0] == folder
        ]
        return same if len(same) <= 10 else []
    nearest = sorted(others, key=lambda item: item[:2])[:count]
    return [other for _, _, other in sorted(nearest, key=lambda item: item[1])]


def reference(entry: Entry) -> str:
    """Returns a link to the page of a function or class."""
    name = entry.page.rpartition("/")[2]
    return f":doc:`{name} </reference/{entry.page}>`"


def module_page(module: ModuleType, found: dict[str, Entry]) -> list[str]:
    """Returns the page of a module: its docstring, and a table for each subject."""
    lines = [*title(module.__name__), f".. py:module:: {module.__name__}", ""]
    lines += converted(inspect.getdoc(module) or "")
    children = submodules(module)
    if children:
        lines += ["", "Modules: " + ", ".join(f":doc:`{c}`" for c in children) + "."]
    for heading, names in subjects(module):
        lines += [
            "",
            *(title(as_rst(heading.replace("`", "")), "-") if heading else []),
        ]
        lines += [".. list-table::", "   :widths: 30 70", ""]
        for name in names:
            entry = found[f"{module.__name__}.{name}"]
            link = f":doc:`{name} </reference/{entry.page}>`"
            link = link if entry.has_page else f"``{name}``"
            lines += [f"   * - {link}", f"     - {summary(entry.value)}"]
    return lines


def notebook_page(path: Path, folder: Path) -> str:
    """Returns an executed notebook as Markdown; writes its pictures to the folder."""
    parts = []
    for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text = text.replace("../docs/", "../")  # paths as in the repository
            parts.append(re.sub(r"\]\(([\w-]+)\.ipynb\)", r"](\1.md)", text))
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                picture = folder / f"{path.stem}-{number:02}.png"
                write(picture, base64.b64decode(data["image/png"]))
                parts.append(f"![what the cell above shows]({picture.name})")
            elif "image/svg+xml" in data:
                picture = folder / f"{path.stem}-{number:02}.svg"
                write(picture, "".join(data["image/svg+xml"]).encode())
                parts.append(f"![what the cell above shows]({picture.name})")
            else:
                printed = data.get("text/plain") or output.get("text", "")
                parts.append(f"```text\n{''.join(printed)}\n```")
    return "\n\n".join(parts) + "\n"


def write(path: Path, content: bytes) -> None:
    """Writes a file if it is new or different, so that Sphinx rereads only these."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_benchmarks(folder: Path) -> None:
    """Copies the pages of results, and the pictures that they show, to a folder."""
    measured = ROOT / "benchmarks"
    for path in (measured / "RESULTS.md", *sorted(measured.glob("results/*.md"))):
        text = path.read_text("utf-8").replace("](../docs/", "](../")
        write(folder / path.relative_to(measured), text.encode())
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
            picture = (path.parent / name).resolve()
            write(folder / picture.relative_to(measured), picture.read_bytes())


def write_pages(docs: Path) -> dict[str, str]:
    """Writes all generated pages, and removes outdated ones of the reference.

    Args:
      docs: the folder of the sources that Sphinx reads.

    Returns:
      The name of the page of each public name.
    """
    public = modules()
    found = entries(public)
    notes = see_also(found, public)
    shown = {entry.page: entry for entry in found.values() if entry.has_page}
    texts = {page: object_page(entry, notes[page]) for page, entry in shown.items()}
    for name in public:
        texts[name] = module_page(importlib.import_module(name), found)
    reference, notebooks = docs / "reference", docs / "notebooks"
    for folder in (reference, notebooks):
        folder.mkdir(exist_ok=True)
    for path in reference.rglob("*.rst"):
        if path.relative_to(reference).as_posix().removesuffix(".rst") not in texts:
            path.unlink()
    for name, lines in texts.items():
        write(reference / f"{name}.rst", ("\n".join(lines) + "\n").encode())
    for path in sorted((ROOT / "notebooks").rglob("*.ipynb")):
        folder = notebooks / path.parent.relative_to(ROOT / "notebooks")
        folder.mkdir(exist_ok=True)
        write(folder / f"{path.stem}.md", notebook_page(path, folder).encode())
    write_benchmarks(docs / "benchmarks")
    targets = {name: entry.page for name, entry in found.items() if entry.has_page}
    return targets | {name: name for name in public}
