"""The dataflow graph of a function as a page, SVG, DOT and Mermaid."""

from __future__ import annotations

import html
import importlib.resources
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fxflow.core import source
from fxflow.core.ir.graph import Graph
from fxflow.core.labels import leaf_labels
from fxflow.core.source import Source, name_of
from fxflow.dataflow.partitioned import DataflowFunction
from fxflow.dataflow.plan import Plan
from fxflow.errors import ArgumentError
from fxflow.transforms.inspection import FunctionGraph, make_graph
from fxflow.viz.layers import Bridge, ScopeGroup, grouped
from fxflow.viz.plans import plan_items
from fxflow.viz.svg import svg
from fxflow.viz.texts import dot, mermaid
from fxflow.viz.walk import Item, colors, place_of, walk

#: What a picture shows at first: scopes are unfolded until this many nodes are visible.
_SHOWN = 60


class Drawing:
    """A dataflow graph to be looked at; `graph` makes it. Notebooks show the page.

    Attributes:
      name: of the function.
      items: operations, arguments, constants, results.
    """

    name: str
    items: list[Item]

    def __init__(self, name: str, items: Sequence[Item]) -> None:
        self.name, self.items = name, list(items)
        self._root: ScopeGroup | None = None

    @property
    def root(self) -> ScopeGroup:
        """The whole graph as groups that fold."""
        if self._root is None:
            self._root = grouped(self.items, self.name)
        return self._root

    def html(self) -> str:
        """Returns a page that stands alone: scopes fold, what is clicked is described.

        Returns:
          HTML with its script and without links. The wheel zooms, dragging moves, a
          click on a scope folds it, a search unfolds what it finds.
        """
        with (
            importlib.resources.files("fxflow.viz")
            .joinpath("page.html")
            .open(encoding="utf-8") as file
        ):
            page = file.read()
        # "</script>" in a text would end the script.
        data = json.dumps(_data(self.items, self.root), separators=(",", ":"))
        page = page.replace("TITLE", html.escape(self.name), 1)
        return page.replace("DATA", data.replace("<", "\\u003c"), 1)

    def svg(self, *, shown: int = _SHOWN) -> str:
        """Returns a picture that browsers and editors open.

        Args:
          shown: scopes are unfolded, the outer ones first, while no more boxes than
            these are to be seen.

        Returns:
          SVG.
        """
        return svg(self.items, self.root, shown)

    def dot(self) -> str:
        """Returns the graph in the language of Graphviz, scopes as clusters.

        Returns:
          DOT, for `dot -Tpdf`.
        """
        return dot(self.name, self.items)

    def mermaid(self) -> str:
        """Returns the graph as a flowchart of Mermaid, which Markdown can hold.

        Returns:
          Mermaid.
        """
        return mermaid(self.items)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the graph in the form that the suffix names.

        Args:
          path: ends in `.html`, `.svg`, `.dot`, `.gv`, `.mmd` or `.mermaid`.

        Raises:
          ArgumentError: another suffix.
          OSError: the file cannot be written.
        """
        forms: dict[str, Callable[[], str]] = {
            ".html": self.html,
            ".svg": self.svg,
            ".dot": self.dot,
            ".gv": self.dot,
            ".mmd": self.mermaid,
            ".mermaid": self.mermaid,
        }
        form = forms.get(Path(path).suffix.lower())
        if form is None:
            raise ArgumentError(
                f"save: the path ends in one of {', '.join(forms)}, got {str(path)!r}"
            )
        Path(path).write_text(form(), encoding="utf-8")

    def _repr_html_(self) -> str:
        return (
            '<iframe style="width:100%;height:520px;border:1px solid #ddd" '
            f'srcdoc="{html.escape(self.html())}"></iframe>'
        )

    def _repr_svg_(self) -> str:
        """Returns what readers show that run no script."""
        return self.svg()

    def __repr__(self) -> str:
        return f"<Drawing of {self.name}, {len(self.items)} nodes>"


def graph(
    f: Callable[..., Any] | FunctionGraph | Graph | Plan, /, *args: Any, **kwargs: Any
) -> Drawing:
    """Draws the dataflow graph of a function, as it is or transformed.

    Args:
      f: function of arrays, such as `loss`, `fxflow.grad(loss)` or
        `fxflow.vmap(fxflow.jit(f))`; or a graph of `fxflow.make_graph`. A function of
        `dataflow.jit` and a plan are drawn as fragments, in the colours of their
        devices, with what they send and receive.
      *args: its arguments (of a graph or a plan: none): arrays, or their types as
        `ShapeDtypeStruct`s. The function is not run.
      **kwargs: its arguments by name.

    Returns:
      A drawing: notebooks show it as a page in which scopes, jitted functions, loops
      and branches fold, edges have types, and an operation says its cost and its line.
      `save("graph.html")` writes the page, and by other suffixes SVG, DOT, Mermaid.

    Raises:
      ArgumentError: an argument is not an array, or a graph is given arguments.

    Example:
      >>> drawing = viz.graph(fxflow.grad(lambda x: fnp.sum(fnp.sin(x))), fnp.ones(3))
      >>> print(drawing.mermaid())
      flowchart TD
        n0(["x"])
        n1["cos"]
        n3["broadcast_in_dim 1.0"]
        n4["mul"]
        n5(["result_0"])
        n0 -- "f32[3]" --> n1
        n3 -- "f32[3]" --> n4
        n1 -- "f32[3]" --> n4
        n4 -- "f32[3]" --> n5
    """
    labels: Sequence[str] = ()
    if isinstance(f, DataflowFunction):
        labels = leaf_labels(f, args, kwargs)
        f, args, kwargs = f.plan(*args, **kwargs), (), {}
    if isinstance(f, FunctionGraph | Graph | Plan):
        if args or kwargs:
            raise ArgumentError("graph: a ready graph takes no arguments")
        if isinstance(f, Plan):
            return Drawing(f.name, plan_items(f, labels))
        ready = f.graph if isinstance(f, FunctionGraph) else f
        return Drawing(ready.name, walk(ready))
    found = make_graph(f)(*args, **kwargs)
    labels = leaf_labels(f, args, kwargs)
    return Drawing(name_of(f), walk(found.graph, labels))


# -- the page's data -------------------------------------------------------------------


def _line(where: Source) -> str:
    """Returns `examples/mnist.py:12 (loss)`: a page may leave the machine."""
    code, line = where[0], source.line_number(where)
    path = Path(code.co_filename)
    # Notebooks call each cell a file of a name that says nothing.
    file = "cell" if "ipykernel" in str(path) else "/".join(path.parts[-2:])
    return f"{file}:{line} ({code.co_name})"


def _data(items: Sequence[Item], root: ScopeGroup) -> dict[str, Any]:
    """Returns what the page's script reads; texts are kept once."""
    texts: dict[str, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    def group(what: ScopeGroup) -> dict[str, Any]:
        return {
            "n": what.name,
            "c": [child(c) for c in what.children],
            "r": what.rows,
            "e": [[a, b, [text(t) for t in types]] for a, b, types in what.edges],
            "d": what.bends,
            "p": text(place_of(items, what.items)),
        }

    def child(what: Any) -> Any:
        if isinstance(what, ScopeGroup):
            return group(what)
        if isinstance(what, Bridge):
            return {"in": what.incoming, "i": what.item, "l": what.label}
        return what

    listed = [
        [
            text("/".join(item.path)),
            text(item.operation),
            item.label,
            item.inputs,
            [text(name) for name in item.types],
            [[text(name), text(value)] for name, value in item.params],
            -1 if item.source is None else text(_line(item.source)),
            item.flops,
            item.bytes,
            item.runs,
            text(item.place),
        ]
        for item in items
    ]
    data = {"items": listed, "root": group(root), "unfold": _SHOWN}
    data["colors"] = colors(items)
    return data | {"text": list(texts)}
