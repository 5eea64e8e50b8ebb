"""A dataflow graph in the languages of Graphviz and Mermaid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from fxflow.viz.walk import ARGUMENT, CONSTANT, RECV, RESULT, SEND, Item, colors

Writer = Callable[[int, Item], str]


def caption(items: Sequence[Item], item: Item) -> str:
    """Returns what a node is called in a picture, with its constant operands."""
    if item.operation in (ARGUMENT, RESULT):
        return item.label or item.path[-1]
    if item.operation in (SEND, RECV):
        to_or_from = "to" if item.operation == SEND else "from"
        return f"{item.operation} {to_or_from} {item.label}"
    given = [items[i].label for i, _ in item.inputs if items[i].operation == CONSTANT]
    return " ".join([item.operation, *given])


def edges(items: Sequence[Item], item: Item) -> Iterator[tuple[int, str]]:
    """Yields what an item reads, constants left out, with types."""
    for source, output in item.inputs:
        if items[source].operation != CONSTANT:
            yield source, items[source].types[output]


def _nested(
    items: Sequence[Item],
    node: Writer,
    begin: Callable[[int, str], str],
    end: str,
    indent: str = "  ",
) -> Iterator[str]:
    """Yields the lines of nodes within their scopes.

    Args:
      items: of the graph.
      node: writes one.
      begin: writes the head of a scope, from its number and name.
      end: of a scope.
      indent: of the outermost.
    """
    inside: dict[tuple[str, ...], list[int]] = {}
    scopes: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
    for index, item in enumerate(items):
        if item.operation != CONSTANT:
            inside.setdefault(item.path[:-1], []).append(index)
        for depth in range(1, len(item.path)):
            around, scope = item.path[: depth - 1], item.path[:depth]
            scopes.setdefault(around, {}).setdefault(scope)
    numbers = iter(range(len(items)))

    def lines(scope: tuple[str, ...], indent: str) -> Iterator[str]:
        for index in inside.get(scope, ()):
            yield indent + node(index, items[index])
        for inner in scopes.get(scope, ()):
            yield indent + begin(next(numbers), inner[-1])
            yield from lines(inner, indent + "  ")
            yield indent + end

    yield from lines((), indent)


def dot(name: str, items: Sequence[Item]) -> str:
    """Returns a graph in the language of Graphviz.

    Args:
      name: of the graph.
      items: of it, as `walk` lists them.
    """

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    paint = colors(items)

    def node(index: int, item: Item) -> str:
        shape = "ellipse" if item.operation in (ARGUMENT, RESULT) else "box"
        types = " ".join(item.types)
        label = quoted(f"{caption(items, item)}\n{types}").replace("\n", "\\n")
        fill = f', style=filled, fillcolor="{paint[item.place]}"' if item.place else ""
        return f"n{index} [label={label}, shape={shape}{fill}];"

    def begin(number: int, scope: str) -> str:
        return f"subgraph cluster_{number} {{ label={quoted(scope)};"

    lines = [f"digraph {quoted(name)} {{", "  node [fontname=sans, fontsize=11];"]
    lines += _nested(items, node, begin, "}")
    lines += [
        f"  n{source} -> n{index} [label={quoted(label)}, fontsize=9];"
        for index, item in enumerate(items)
        if item.operation != CONSTANT
        for source, label in edges(items, item)
    ]
    return "\n".join([*lines, "}"])


def mermaid(items: Sequence[Item]) -> str:
    """Returns a graph as a flowchart of Mermaid.

    Args:
      items: of the graph, as `walk` lists them.
    """

    def quoted(text: str) -> str:
        return '"' + text.replace('"', "#quot;") + '"'

    def node(index: int, item: Item) -> str:
        text = quoted(caption(items, item))
        ends = item.operation in (ARGUMENT, RESULT)
        return f"n{index}([{text}])" if ends else f"n{index}[{text}]"

    def begin(number: int, scope: str) -> str:
        return f"subgraph s{number} [{quoted(scope)}]"

    lines = ["flowchart TD", *_nested(items, node, begin, "end")]
    lines += [
        f"  n{source} -- {quoted(label)} --> n{index}"
        for index, item in enumerate(items)
        if item.operation != CONSTANT
        for source, label in edges(items, item)
    ]
    for place, color in colors(items).items():
        here = [i for i, item in enumerate(items) if item.place == place]
        shown = [f"n{i}" for i in here if items[i].operation != CONSTANT]
        lines += [f"  classDef {_class(place)} fill:{color}"]
        lines += [f"  class {','.join(shown)} {_class(place)}"]
    return "\n".join(lines)


def _class(place: str) -> str:
    """Returns the name of a class of Mermaid."""
    return "on_" + re.sub(r"\W+", "_", place)
