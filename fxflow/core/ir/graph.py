"""The dataflow graph: nodes are operations, edges are typed arrays.

A `Graph` is a straight list of nodes in an order that can be run, with typed inputs and
outputs; the graphs of loops and branches are parameters of their nodes. It can be
printed, checked (each node's types are derived again), evaluated and pruned. It never
refers to tracers: a value captured from outside is one of the first inputs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from fxflow.core import source
from fxflow.core.arrays import AbstractRef, Aval, put_host
from fxflow.core.ir.trace import state
from fxflow.core.source import Source
from fxflow.devices.meshes import Mesh, current_mesh
from fxflow.errors import GraphError

if TYPE_CHECKING:
    from fxflow.core.ir.primitive import Primitive

T = TypeVar("T")


#: The effect of a write to a reference; a graph's, if the reference was given to it.
STATE = "state"


#: Entries that a graph remembers (it is vectorized once for each size, say).
MAX_MEMO = 512


class Var:
    """An edge: a typed value that one node (or the caller) makes."""

    __slots__ = ("aval",)

    aval: Aval

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval})"


class Literal:
    """A 0-d constant written into the graph.

    Attributes:
      value: a NumPy 0-d array.
      aval: its type.
    """

    __slots__ = ("_array", "aval", "value")

    _array: Any
    aval: Aval
    value: Any

    def __init__(self, value: Any, aval: Aval) -> None:
        self.value, self.aval = value, aval

    @property
    def array(self) -> Any:
        """The value as an operation's argument: of exactly the literal's type."""
        try:
            return self._array
        except AttributeError:
            self._array = put_host(np.asarray(self.value), self.aval)
            return self._array

    def __repr__(self) -> str:
        return f"{self.value}:{self.aval}"


Atom = Var | Literal


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """One operation of a graph.

    Attributes:
      primitive: what is done.
      inputs: variables and literals (on a tape also residuals, see `linearize`).
      outputs: the variables it defines.
      params: the static parameters.
      source: the user's line, as `source.here()` gives it.
      scope: names of the enclosing `named_scope`s.
    """

    primitive: Primitive
    inputs: Sequence[Any]
    outputs: Sequence[Var]
    params: dict[str, Any]
    source: Source | None = None
    scope: tuple[str, ...] = ()

    @property
    def effects(self) -> frozenset[Any]:
        """Side effects of running the node."""
        return self.primitive.effects(**self.params)

    def replace(
        self,
        *,
        primitive: Primitive | None = None,
        inputs: Sequence[Any] | None = None,
        outputs: Sequence[Var] | None = None,
        params: dict[str, Any] | None = None,
        source: Source | None = None,
        scope: tuple[str, ...] | None = None,
    ) -> Node:
        """Returns a copy with those attributes replaced that are given."""
        # `dataclasses.replace` takes four times as long; passes copy every node.
        return Node(
            self.primitive if primitive is None else primitive,
            self.inputs if inputs is None else inputs,
            self.outputs if outputs is None else outputs,
            self.params if params is None else params,
            self.source if source is None else source,
            self.scope if scope is None else scope,
        )


class Memo(dict[Any, Any]):
    """What a graph remembers: all can be derived again, so the older half may go."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        if len(self) >= MAX_MEMO:
            for old in list(self)[: MAX_MEMO // 2]:
                self.pop(old, None)
        super().__setitem__(key, value)


def graph_name(name: str) -> str:
    """Returns what graphs and programs call a function, where its line is left out.

    So a program does not change with what stands above it.
    """
    return re.sub(_LAMBDA, "lambda_", name) if "<lambda>" in name else name


_LAMBDA = r"<lambda>( at .*?:\d+)?"


class Facts(NamedTuple):
    """What holds for all operations of a graph, those of graphs inside included.

    Attributes:
      names: of the operations.
      effects: their effects, but for writes to references made inside.
      mesh: the first mesh that an operation names.
      has_refs: whether references are given to the graph or made in it.
      names_memory: whether an operation names a memory other than the device's own.
      size: elements of all values, but for types whose sizes are symbols.
    """

    names: frozenset[str]
    effects: frozenset[Any]
    mesh: Mesh | None
    has_refs: bool
    names_memory: bool
    size: int


class Graph:
    """A dataflow graph.

    Attributes:
      inputs: variables; the first `num_consts` are values captured from outside.
      nodes: in an order that can be run.
      outputs: variables and literals.
      name: of the function it came from.
      num_consts: how many inputs are captured values.
      memo: graphs derived from this one (its derivative, its vectorized form, …), which
        live as long as it does.
    """

    __slots__ = (
        "__weakref__",
        "inputs",
        "memo",
        "name",
        "nodes",
        "num_consts",
        "outputs",
    )

    inputs: list[Var]
    nodes: list[Node]
    outputs: list[Atom]
    name: str
    num_consts: int

    def __init__(
        self,
        inputs: Sequence[Var],
        nodes: Sequence[Node],
        outputs: Sequence[Atom],
        name: str = "graph",
        num_consts: int = 0,
    ) -> None:
        self.inputs = list(inputs)
        self.nodes = list(nodes)
        self.outputs = list(outputs)
        self.name = graph_name(name)
        self.num_consts = num_consts
        self.memo: dict[Any, Any] = Memo()

    @property
    def in_avals(self) -> list[Aval]:
        """Types of the inputs."""
        return [var.aval for var in self.inputs]

    @property
    def out_avals(self) -> list[Aval]:
        """Types of the outputs."""
        return [atom.aval for atom in self.outputs]

    @property
    def facts(self) -> Facts:
        """What holds for all its operations, found in one walk."""
        return self.remembered("facts", lambda: _facts(self))

    @property
    def effects(self) -> frozenset[Any]:
        """Union of the nodes' effects, but for writes to references made inside."""
        return self.facts.effects

    @property
    def mesh(self) -> Mesh | None:
        """The first mesh of several devices that it names, or None.

        The current one, of meshes that differ in the types of their axes: within
        `auto_axes` and `explicit_axes` these are others.
        """
        found = self.facts.mesh
        if found is None:
            return None
        current = current_mesh()
        return found if current is None or not found.same_grid(current) else current

    def replace(
        self,
        *,
        inputs: Sequence[Var] | None = None,
        nodes: Sequence[Node] | None = None,
        outputs: Sequence[Any] | None = None,
    ) -> Graph:
        """Returns a graph with other inputs, nodes or outputs.

        Args:
          inputs: variables, in another order or with some added (None: the same).
          nodes: operations (None: the same, which are shared).
          outputs: variables and literals (None: the same).
        """
        return Graph(
            self.inputs if inputs is None else inputs,
            self.nodes if nodes is None else nodes,
            self.outputs if outputs is None else outputs,
            self.name,
            self.num_consts if inputs is None else 0,
        )

    def remembered(self, key: Any, make: Callable[[], T]) -> T:
        """Returns what was derived from this graph under a key, or derives it."""
        found: Any = self.memo.get(key, make)
        # Nothing is derived while an error is handled, which would be shown with it.
        if found is make:
            found = self.memo[key] = make()
        return cast(T, found)

    def evaluate(self, *args: Any) -> list[Any]:
        """Runs the graph under the current interpreter.

        Args:
          *args: one value for each input.

        Returns:
          The list of outputs.
        """
        return interpret(self, args, bound)

    def check(self) -> None:
        """Derives every type again.

        Raises:
          GraphError: a node uses an undefined variable or its types are not what the
            operation gives.
        """
        defined = set(self.inputs)

        def require(atom: Any, where: str) -> None:
            if isinstance(atom, Var) and atom not in defined:
                raise GraphError(f"{self.name}: {where} uses an undefined variable")
            if not isinstance(atom, Var | Literal):
                raise GraphError(f"{self.name}: {where} holds {type(atom).__name__}")

        for node in self.nodes:
            where = f"{node.primitive.name} ({source.describe(node.source)})"
            for atom in node.inputs:
                require(atom, where)
            with node.primitive.inside(node.params):
                for _, inner in subgraphs(node.params):
                    inner.check()
            derived = node.primitive.out_avals(
                [a.aval for a in node.inputs], node.params
            )
            stated = [var.aval for var in node.outputs]
            if [a.strong() for a in derived] != [a.strong() for a in stated]:
                raise GraphError(f"{self.name}: {where} gives {derived}, not {stated}")
            for var in node.outputs:
                if var in defined:
                    raise GraphError(f"{self.name}: {where} defines a variable again")
                defined.add(var)
        for atom in self.outputs:
            require(atom, "return")

    def __call__(self, *args: Any) -> list[Any]:
        """See `evaluate`."""
        return interpret(self, args, bound)

    def __str__(self) -> str:
        return format_graph(self)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, a)) for a in (self.in_avals, self.out_avals))
        return f"<Graph {self.name}({ins}) -> ({outs}), {len(self.nodes)} nodes>"


def subgraphs(params: dict[str, Any]) -> list[tuple[str, Graph]]:
    """Finds the graphs among a node's parameters.

    Args:
      params: of the node.

    Returns:
      Pairs of a parameter's name and a graph that it is, or has among its items.
    """
    found = []
    for name, value in params.items():
        if isinstance(value, Graph):
            found.append((name, value))
        elif isinstance(value, tuple):
            found += [(name, item) for item in value if isinstance(item, Graph)]
    return found


def with_graphs(
    params: dict[str, Any], change: Callable[[Graph], Graph]
) -> dict[str, Any]:
    """Returns parameters with the graphs among them changed; see `subgraphs`."""

    def changed(value: Any) -> Any:
        if isinstance(value, Graph):
            return change(value)
        if isinstance(value, tuple) and any(isinstance(v, Graph) for v in value):
            return tuple(map(changed, value))
        return value

    return {name: changed(value) for name, value in params.items()}


def _facts(graph: Graph) -> Facts:
    given_refs = has_refs(graph.in_avals)
    names: set[str] = set()
    effects: set[Any] = set()
    mesh: Mesh | None = None
    made_refs = names_memory = False
    values = list(graph.inputs)
    size = 0
    for node in graph.nodes:
        primitive, params = node.primitive, node.params
        values += node.outputs
        names.add(primitive.name)
        effects |= node.effects
        mesh = mesh or primitive.mesh(params)
        names_memory = names_memory or primitive.names_memory(params)
        for _, inner in subgraphs(params):
            facts = inner.facts
            names |= facts.names
            mesh = mesh or facts.mesh
            made_refs = made_refs or (facts.has_refs and not primitive.owns_refs)
            names_memory = names_memory or facts.names_memory
            size += facts.size
    size += sum(math.prod(v.aval.shape) for v in values if not v.aval.is_symbolic)
    # Writes to references made inside are seen by no other operation.
    return Facts(
        frozenset(names),
        frozenset(effects if given_refs else effects - {STATE}),
        mesh,
        given_refs or made_refs or "new_ref" in names,
        names_memory,
        size,
    )


def has_refs(avals: Iterable[Aval]) -> bool:
    """Returns whether a type among some is that of a reference."""
    return any(type(aval) is AbstractRef for aval in avals)


def any_node(graph: Graph, key: Any, test: Callable[[Node], bool]) -> bool:
    """Returns whether an operation of a graph, or of graphs inside, passes a test.

    Args:
      graph: to look at; it remembers the answer.
      key: under which it does; one for each test.
      test: of a node by itself.
    """
    return graph.remembered(
        key, lambda: any(any_within(n, key, test) for n in graph.nodes)
    )


def any_within(node: Node, key: Any, test: Callable[[Node], bool]) -> bool:
    """Returns whether a node, or one of the graphs in it, passes; see `any_node`."""
    return test(node) or any(
        any_node(inner, key, test) for _, inner in subgraphs(node.params)
    )


# -- evaluation ------------------------------------------------------------------------


def last_uses(graph: Graph) -> list[list[Var]]:
    """Returns for each node the variables that are dead after it."""

    def find() -> list[list[Var]]:
        # From behind: the first time a variable is met, it is the last time it is used.
        seen = {id(atom) for atom in graph.outputs}
        found = []
        for node in reversed(graph.nodes):
            dying = []
            for atom in (*node.inputs, *node.outputs):
                if type(atom) is Var and id(atom) not in seen:
                    seen.add(id(atom))
                    dying.append(atom)
            found.append(dying)
        found.reverse()
        return found

    return graph.remembered("last_uses", find)


_array_of = attrgetter("array")


def interpret(
    graph: Graph,
    args: Iterable[Any],
    step: Callable[[Node, list[Any]], Sequence[Any]],
    constant: Callable[[Literal], Any] = _array_of,
) -> list[Any]:
    """Interprets a graph with values of any kind.

    Values are dropped after their last use.

    Args:
      graph: to interpret.
      args: one value for each input.
      step: returns the values of a node's results from those of its operands.
      constant: returns the value of a literal.

    Returns:
      The values of the graph's outputs.
    """
    env: dict[Any, Any] = dict(zip(graph.inputs, args, strict=True))
    for node, dying in zip(graph.nodes, last_uses(graph), strict=True):
        values = [constant(a) if type(a) is Literal else env[a] for a in node.inputs]
        env.update(zip(node.outputs, step(node, values), strict=True))
        for var in dying:
            env.pop(var, None)
    return [constant(a) if type(a) is Literal else env[a] for a in graph.outputs]


def bound(
    node: Node, values: list[Any], bind: Callable[..., Any] | None = None
) -> Sequence[Any]:
    """Binds a node's operation to values; returns the list of its results.

    What comes of it has the node's scope and line, so that a derived graph still says
    where it is from.

    Args:
      node: the operation.
      values: its operands.
      bind: what to call in place of the operation's own `bind`.
    """
    previous = state.scope, state.source
    state.scope = node.scope or state.scope
    state.source = node.source or state.source
    try:
        out = (bind or node.primitive.bind)(*values, **node.params)
    finally:
        state.scope, state.source = previous
    return out if node.primitive.multi else (out,)  # type: ignore[return-value]


# -- what is passed through ------------------------------------------------------------


def renamed(atoms: Iterable[Any], names: Mapping[Var, Any]) -> list[Any]:
    """Returns the atoms, with others in place of the variables that `names` has."""
    return [names.get(a, a) if type(a) is Var else a for a in atoms]


def forwarded(graph: Graph) -> list[int | None]:
    """Returns for each output the index of the input that it forwards, or None.

    It is found through the calls, loops and branches of the graph, too.
    """

    def find() -> list[int | None]:
        origin = {var: i for i, var in enumerate(graph.inputs)}
        for node in graph.nodes:
            operands = node.primitive.forwarded(**node.params)
            for var, position in zip(node.outputs, operands, strict=False):
                atom = None if position is None else node.inputs[position]
                if type(atom) is Var and atom in origin:
                    origin[var] = origin[atom]
        return [origin.get(a) if type(a) is Var else None for a in graph.outputs]

    return graph.remembered("forwarded", find)


def ancestors(nodes: Iterable[Node], var: Var) -> list[Var]:
    """Returns the variables that a variable is computed from, itself included."""
    made = {out: node for node in nodes for out in node.outputs}
    found: dict[Var, None] = {}
    waiting = [var]
    while waiting:
        var = waiting.pop()
        if var not in found:
            found[var] = None
            node = made.get(var)
            waiting += [a for a in node.inputs if type(a) is Var] if node else []
    return list(found)


# -- pruning ---------------------------------------------------------------------------


def prune(graph: Graph, keep: Sequence[bool] | None = None) -> Graph:
    """Returns the graph after dead-code elimination.

    Args:
      graph: to prune; its inputs all stay.
      keep: which outputs are wanted (None: all).
    """
    outputs = graph.outputs
    if keep is not None:
        outputs = [a for a, kept in zip(outputs, keep, strict=True) if kept]
    nodes = live_nodes(graph.nodes, outputs)
    if len(nodes) == len(graph.nodes) and keep is None:
        return graph
    return graph.replace(nodes=nodes, outputs=outputs)


def live_nodes(nodes: Sequence[Node], outputs: Iterable[Any]) -> list[Node]:
    """Returns the nodes that `outputs` depend on or that have effects."""
    # By id: the inputs of a tape's nodes may be arrays, which cannot be hashed.
    needed = {id(a) for a in outputs}
    kept: list[Node] = []
    for node in reversed(nodes):
        outputs = node.outputs
        # Most nodes have one output, which is needed.
        if len(outputs) != 1 or id(outputs[0]) not in needed:
            wanted = [id(var) in needed for var in outputs]
            if not any(wanted):
                if not node.effects:
                    continue
            # The rule may drop operands as well, so it comes before those are marked.
            elif not all(wanted):
                node = node.primitive.dce(node, wanted)
        kept.append(node)
        needed.update(map(id, node.inputs))
    kept.reverse()
    return kept


def used_inputs(graph: Graph) -> list[bool]:
    """Returns which inputs any node or output refers to."""
    used = {id(a) for a in graph.outputs}
    for node in graph.nodes:
        used.update(map(id, node.inputs))
    return [id(var) in used for var in graph.inputs]


# -- printing --------------------------------------------------------------------------


def _letters(number: int) -> str:
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(97 + digit) + text
    return text


class _Names(dict[Var, str]):
    def __missing__(self, var: Var) -> str:
        name = self[var] = _letters(len(self))
        return name


def format_graph(graph: Graph, *, lines: bool = False) -> str:
    """Returns the graph as text, one node a line.

    Args:
      graph: to print.
      lines: whether to add the user's line to each node.
    """
    return "\n".join(_format(graph, _Names(), "", lines))


def _format(graph: Graph, names: _Names, indent: str, lines: bool) -> list[str]:
    def show(atom: Any) -> str:
        if isinstance(atom, Var):
            return names[atom]
        if isinstance(atom, Literal):
            return f"{_scalar(atom.value)}:{atom.aval}"
        return repr(atom)

    arguments = ", ".join(f"{names[v]}: {v.aval}" for v in graph.inputs)
    text = [f"{indent}graph {graph.name}({arguments}) {{"]
    inner = indent + "  "
    for node in graph.nodes:
        results = ", ".join(f"{names[v]}: {v.aval}" for v in node.outputs)
        graphs = subgraphs(node.params)
        held = {name for name, _ in graphs}
        shown = ", ".join(
            f"{name}={_param(value)}"
            for name, value in node.primitive.show(node.params).items()
            if name not in held
        )
        line = f"{inner}{results} = " if results else inner
        line += node.primitive.name
        line += f"[{shown}]" if shown else ""
        line += "".join(" " + show(a) for a in node.inputs)
        if lines:
            line += f"  # {source.describe(node.source)}"
        text.append(line)
        for name, sub in graphs:
            body = _format(sub, names, inner + "  ", lines)
            body[0] = f"{inner}  {name} = " + body[0].lstrip()
            text += body
    text.append(f"{inner}return " + ", ".join(map(show, graph.outputs)))
    text.append(f"{indent}}}")
    return text


def _scalar(value: Any) -> str:
    array = np.asarray(value)
    return str(array) if array.ndim == 0 else "…"


def _param(value: Any) -> str:
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, type):
        return str(value.__name__)
    return str(value)


Flat = Callable[..., Sequence[Any]]
