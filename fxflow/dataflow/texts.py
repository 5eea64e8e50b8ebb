"""The graph of a plan as text: fragments, and what they send and receive."""

from __future__ import annotations

from dataclasses import dataclass

from fxflow.core.ir.graph import Graph, format_graph
from fxflow.dataflow.cutting import Edge
from fxflow.dataflow.placing import place_name
from fxflow.dataflow.plan import Plan
from fxflow.transforms.inspection import FunctionGraph


@dataclass(eq=False, repr=False)
class CutGraph(FunctionGraph):
    """The graph of a dataflow function, which shows how it is cut.

    Attributes:
      plan: of the function.
    """

    plan: Plan

    def to_text(self, *, lines: bool = False) -> str:
        """Returns the fragments as text, one node a line.

        Args:
          lines: whether to add the user's line to each node.
        """
        return graph_text(self.plan, lines=lines)


def graph_text(plan: Plan, *, lines: bool = False) -> str:
    """Returns the graph of a plan as text, one node a line.

    Each fragment begins with what it receives from other devices and ends with what it
    sends.

    Args:
      plan: of a dataflow function.
      lines: whether to add the user's line to each node.
    """
    nodes = [node for f in plan.fragments for node in f.graph.nodes]
    whole = Graph(
        plan.graph.inputs,
        nodes,
        plan.graph.outputs,
        plan.graph.name,
        plan.graph.num_consts,
    )
    head, *rest = format_graph(whole, lines=lines).splitlines()
    chunks: list[list[str]] = []  # the lines of each node; then the results
    for line in rest:
        if line.startswith("   "):  # of a graph inside the node
            chunks[-1].append(line)
        else:
            chunks.append([line])
    arguments = head.partition("(")[2].rpartition(")")[0]
    names = dict(zip(plan.graph.inputs, _defined(arguments), strict=True))
    for node, (line, *_) in zip(nodes, chunks, strict=False):
        if node.outputs:
            found = _defined(line.partition(" = ")[0])
            names.update(zip(node.outputs, found, strict=True))
    arriving: dict[int, list[Edge]] = {}
    leaving: dict[int, list[Edge]] = {}
    for edge in plan.edges:
        if edge.source is not None:
            arriving.setdefault(edge.users[0], []).append(edge)
            leaving.setdefault(edge.source, []).append(edge)
    place = {f.index: place_name(f.place) for f in plan.fragments}
    text = [head]
    left = iter(chunks)
    for fragment in plan.fragments:
        text.append(f"  {fragment.action} on {place[fragment.index]} {{")
        for edge in arriving.get(fragment.index, ()):
            assert edge.source is not None
            text.append(
                f"    {names[edge.var]}: {edge.var.aval} = recv from "
                f"{place[edge.source]}, {edge.nbytes:,} bytes"
            )
        for _ in fragment.graph.nodes:
            text += [f"  {line}" for line in next(left)]
        for edge in leaving.get(fragment.index, ()):
            text.append(f"    send {names[edge.var]} to {place_name(edge.place)}")
        text.append("  }")
    for chunk in left:
        text += chunk
    return "\n".join(text)


def _defined(text: str) -> list[str]:
    """Returns the names in `a: f32[3], b: f32[4,5]`."""
    return [part.split(":")[0].strip() for part in text.split(", ") if ":" in part]
