"""The search for the operation that made a NaN or infinity of a result.

The graph is run on the host, one operation after the other, by the NumPy rules that the
tests compare programs with (`run_host`), also inside loops, branches and the programs
of devices. Each NaN and infinity is followed from the operation that made it, its
birth, to the results: one that a selection drops on the way is not blamed.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from fxflow.core import source
from fxflow.core.arrays import Aval, dtypes
from fxflow.core.interpreters.double_where import DOUBLE_WHERE
from fxflow.core.ir.graph import Graph, Node, Var, last_uses
from fxflow.core.ir.graph import Literal as Constant
from fxflow.core.ir.higher_order import watch
from fxflow.core.ir.primitive import DEBUG
from fxflow.core.source import Backward

Kind = Literal["nan", "inf"]

#: Bytes of intermediate values that a search keeps to say where operands come from.
KEPT_BYTES = 2**30
#: How many operations back an operand is followed, and on the way to the result.
DEPTH = 5
# Operations that only pass values on.
_MOVES = {
    "broadcast_in_dim", "convert_element_type", "copy", "device_put", "name",
    "reduce_precision", "reshape", "squeeze", "transpose",
}  # fmt: skip
_FIND: dict[Kind, Callable[[Any], Any]] = {"nan": np.isnan, "inf": np.isinf}


@dataclass(frozen=True)
class Finding:
    """The operation that made the first NaN or infinity of a result.

    Attributes:
      kind: `"nan"` or `"inf"`.
      operation: name of the primitive.
      line: of the user's program, as `train.py:12 (loss)` with the whole path.
      backward: whether it is part of the backward pass of that line.
      operands: what it was computed from, a description for each.
      history: for each operand, the operations that it comes from, the last one first.
      context: the loops that it is in and their iterations, the outermost first.
      double_where: the lines of the operation whose slope is not finite and of the
        selection that hid it, or None.
      text: all of it, as the message of the error has it.
    """

    kind: Kind
    operation: str
    line: str
    backward: bool
    operands: tuple[str, ...]
    history: tuple[tuple[str, ...], ...]
    context: tuple[str, ...]
    double_where: tuple[str, str] | None
    text: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(eq=False)
class _Birth:
    """A finding, and whether it is a constant of the program that was infinite."""

    order: int
    finding: Finding
    is_constant: bool = False


@dataclass(eq=False)
class _Frame:
    """A graph that is being run.

    Attributes:
      graph: the graph.
      outer: that of the operation that runs it; None: of the program.
      values: of its variables, as far as they are kept.
      made: the node that made each.
      node: the operation that runs now.
      operands: of it.
      runs: how many graphs it has run.
      leaving: births among the results of those.
    """

    graph: Graph
    outer: _Frame | None
    values: dict[Any, Any]
    made: dict[Any, Node] = field(default_factory=dict)
    node: Any = None
    operands: list[Any] = field(default_factory=list)
    runs: int = 0
    leaving: list[_Birth] = field(default_factory=list)

    def value(self, atom: Any) -> Any:
        """Returns what a variable or a constant is, or None if it was dropped."""
        return atom.value if type(atom) is Constant else self.values.get(atom)

    def origin(self, atom: Any) -> tuple[_Frame, Any]:
        """Returns the same value where it was made: further out, if it was passed in.

        What a loop carries from one iteration to the next ends there.
        """
        frame = self
        while type(atom) is Var and atom not in frame.made and frame.outer is not None:
            outer_atom = frame.passed_in(atom)
            if outer_atom is None:
                break
            frame, atom = frame.outer, outer_atom
        return frame, atom

    def passed_in(self, var: Var) -> Any:
        """Returns what an input is outside, or None for what a loop carries."""
        value, outer = self.values.get(var), self.outer
        assert outer is not None
        atoms, params = outer.node.inputs, outer.node.params
        for atom, operand in zip(atoms, outer.operands, strict=True):
            if value is operand or getattr(value, "base", 0) is operand:
                return atom
        if outer.node.primitive.name == "scan":
            # A number is a copy of the element that it was.
            index, fixed = self.graph.inputs.index(var), params["num_consts"]
            if not fixed <= index < fixed + params["num_carry"]:
                return atoms[index]
        return None


class Search:
    """Runs a graph and finds what made its results not finite.

    Args:
      kinds: what is looked for.
      everywhere: whether the first one counts that is met, wherever it goes.
      labels: names of the graph's inputs.
    """

    def __init__(
        self, kinds: Sequence[Kind], everywhere: bool, labels: Sequence[str]
    ) -> None:
        self.kinds: Sequence[Kind] = kinds
        self.everywhere: bool = everywhere
        self.labels: Sequence[str] = labels
        self._births: list[_Birth] = []
        # By the identity of an array, which is kept so that it stays its own.
        self._known: dict[int, tuple[Any, dict[Kind, _Birth]]] = {}
        self._frame: _Frame | None = None
        self._top: _Frame | None = None
        self._kept = 0

    def find(self, graph: Graph, values: Sequence[Any]) -> Finding | None:
        """Runs a graph.

        Args:
          graph: of the program.
          values: NumPy arrays, one for each input.

        Returns:
          What made a result not finite (or any value, if `everywhere`), or None.
        """
        before, watch.run = watch.run, self._run
        try:
            with np.errstate(all="ignore"):
                outs = self._run(graph, values)
        except _Found as found:
            return found.finding
        finally:
            watch.run = before
        if self.everywhere:
            return None
        births = [b for out in outs for b in self._births_of(out).values()]
        births = [b for b in births if b.finding.kind in self.kinds]
        if not births:
            return self._constant(graph)
        return min(births, key=lambda b: (b.is_constant, b.order)).finding

    def _constant(self, graph: Graph) -> Finding | None:
        """Returns the finding for a result that depends on no argument."""
        constants = [atom for atom in graph.outputs if isinstance(atom, Constant)]
        for atom in constants:
            for kind in self.kinds:
                if not _is_finite(atom.value) and _FIND[kind](atom.value).any():
                    empty: tuple[str, ...] = ()
                    text = (
                        f"a result is the constant {summary(atom.value)}: no operation "
                        "of the program makes it. NumPy or Python may have computed it "
                        "while the function was traced"
                    )
                    line = "a constant"
                    return Finding(
                        kind, "constant", line, False, empty, (), empty, None, text
                    )
        return None

    # -- running -----------------------------------------------------------------------

    def _run(self, graph: Graph, given: Any) -> list[Any]:
        """Stands in for `run_host` in this thread."""
        outer, values = self._frame, list(given)
        frame = _Frame(graph, outer, dict(zip(graph.inputs, values, strict=True)))
        if outer is None:
            self._top = frame
            self._enter_arguments(frame)
        else:
            self._enter(frame, outer)
        self._frame = frame
        try:
            for node, dying in zip(graph.nodes, last_uses(graph), strict=True):
                self._step(frame, node)
                if self._kept > KEPT_BYTES:
                    for var in dying:
                        frame.values.pop(var, None)
            outs = [frame.value(atom) for atom in graph.outputs]
        finally:
            self._frame = outer
        if outer is not None:
            outer.runs += 1
            outer.leaving += [b for o in outs for b in self._births_of(o).values()]
        return outs

    def _step(self, frame: _Frame, node: Node) -> None:
        operands = [frame.value(atom) for atom in node.inputs]
        frame.node, frame.operands = node, operands
        frame.runs, frame.leaving = 0, []
        if not node.outputs and node.effects <= {DEBUG}:
            return  # it has seen these values
        out = node.primitive.evaluate(*operands, **node.params)
        outs = out if node.primitive.multi else (out,)
        for var, value in zip(node.outputs, outs, strict=True):
            frame.values[var] = value
            frame.made[var] = node
            self._kept += getattr(value, "nbytes", 0)
            if _is_finite(value):
                continue
            found: dict[Kind, _Birth] = {}
            for kind in _FIND:
                if _FIND[kind](value).any():
                    found[kind] = self._birth(frame, node, value, kind)
            self._known[id(value)] = value, found

    def _enter_arguments(self, frame: _Frame) -> None:
        for var, label in zip(frame.graph.inputs, self.labels, strict=True):
            value = frame.values[var]
            found: dict[Kind, _Birth] = {}
            for kind in () if _is_finite(value) else _FIND:
                if _FIND[kind](value).any():
                    text = f"{label} holds {kind} already: {summary(value)}"
                    empty: tuple[str, ...] = ()
                    made = Finding(
                        kind, "argument", label, False, empty, (), empty, None, text
                    )
                    found[kind] = self._new(made)
            self._known[id(value)] = value, found

    def _enter(self, frame: _Frame, outer: _Frame) -> None:
        """Knows inputs that are parts of an operand outside, or changed in its form."""
        for var in frame.graph.inputs:
            value = frame.values[var]
            if _is_finite(value) or self._births_of(value):
                continue
            atom = frame.passed_in(var)
            operands = outer.operands if atom is None else [outer.value(atom)]
            found = dict(b for x in operands for b in self._births_of(x).items())
            self._known[id(value)] = value, found

    def _new(self, finding: Finding, is_constant: bool = False) -> _Birth:
        birth = _Birth(len(self._births), finding, is_constant)
        self._births.append(birth)
        if self.everywhere and not is_constant and finding.kind in self.kinds:
            raise _Found(finding)
        return birth

    def _births_of(self, value: Any) -> dict[Kind, _Birth]:
        """Returns the births of a value, or of what it is a part of."""
        part = value
        while part is not None:
            known = self._known.get(id(part))
            if known is not None:
                return known[1]
            part = getattr(part, "base", None)
        return {}

    def _birth(self, frame: _Frame, node: Node, value: Any, kind: Kind) -> _Birth:
        """Returns where the NaN (or infinity) of a result is from; it may be new."""
        before = self._births_of(value)
        if kind in before:
            return before[kind]
        # Graphs that the operation ran know better than the operation.
        older = [b for b in frame.leaving if b.finding.kind == kind]
        older = older or [b for b in frame.leaving if b.finding.kind == "nan"]
        for operand in () if older else frame.operands:
            if not _is_finite(operand):
                found = self._births_of(operand)
                held = [k for k in found if k == kind or k == "nan"]
                older += [found[k] for k in held]
        if older:
            birth = min(older, key=lambda b: (b.is_constant, b.order))
            self._pass_on(frame, node, value, birth)
            return birth
        constant = kind == "inf" and any(
            not _is_finite(x) and np.isinf(x).any() for x in frame.operands
        )
        return self._new(self._finding(frame, node, value, kind), constant)

    def _pass_on(self, frame: _Frame, node: Node, value: Any, birth: _Birth) -> None:
        """Notes a double where if that is how a NaN got into a backward pass."""
        finding = birth.finding
        if finding.double_where or finding.kind != "nan" or finding.backward:
            return
        pair = self._double_where(frame, node, value)
        if pair is not None:
            pair = finding.line, pair[1]
            words = DOUBLE_WHERE.replace("infinite", "nan").replace("infinity", "nan")
            text = f"{finding.text}\n{words.format(*pair)}"
            birth.finding = replace(finding, double_where=pair, text=text)

    # -- words -------------------------------------------------------------------------

    def _finding(self, frame: _Frame, node: Node, value: Any, kind: Kind) -> Finding:
        line, backward = source.describe(node.source), type(node.source) is Backward
        pair = self._double_where(frame, node, value) if kind == "nan" else None
        bad = _FIND[kind](value)
        operands, history, shown = [], [], []
        for i, (atom, operand) in enumerate(
            zip(node.inputs, frame.operands, strict=True)
        ):
            at = bad if np.shape(operand) == bad.shape else None
            text = summary(operand, at)
            steps = tuple(self._history(frame, atom))
            operands.append(text)
            history.append(steps)
            shown.append(f"  operand {i}: {text}")
            shown += [f"    from {step}" for step in steps]
        context = tuple(self._context(frame))
        where = "in the backward pass of " if backward else "at "
        first = ", ".join(map(str, np.argwhere(bad)[0]))
        place = f", first at [{first}]" if bad.ndim else ""
        lines = [
            f"{node.primitive.name} {where}{line} is the first operation that gives "
            f"{kind}",
            *(f"  {text}" for text in _code(node.source)),
            *(f"  {text}" for text in context),
            f"  result: {_type(value)}, {bad.sum()} of {bad.size} {kind}{place}",
            *shown,
        ]
        if pair:
            lines.append(DOUBLE_WHERE.format(*pair))
        return Finding(
            kind, node.primitive.name, line, backward,
            tuple(operands), tuple(history), context, pair, "\n".join(lines),
        )  # fmt: skip

    def _history(self, frame: _Frame, atom: Any) -> Iterator[str]:
        """Yields the operations that a value comes from, the last one first."""
        for _ in range(DEPTH):
            frame, atom = frame.origin(atom)
            if type(atom) is not Var:
                return
            node = frame.made.get(atom)
            if node is None:
                yield self._input(frame, atom)
                return
            value = frame.value(atom)
            if node.primitive.name not in _MOVES or not node.inputs:
                back = type(node.source) is Backward
                where = "in the backward pass of" if back else "at"
                code = "".join(f": {text}" for text in _code(node.source))
                held = "" if value is None else f" = {summary(value)}"
                line = source.describe(node.source)
                yield f"{node.primitive.name} {where} {line}{code}{held}"
            if not node.inputs:
                return
            # What is not finite or zero explains more than the rest.
            atom = max(node.inputs, key=lambda a: _interest(frame.value(a), a))

    def _input(self, frame: _Frame, var: Any) -> str:
        index = frame.graph.inputs.index(var)
        text = summary(frame.values.get(var))
        if frame is self._top:
            return f"{self.labels[index]} = {text}"
        assert frame.outer is not None
        node = frame.outer.node
        name = node.primitive.name
        if name in ("scan", "while"):
            line = source.describe(node.source)
            return f"what the {name} at {line} carries or reads = {text}"
        return f"an input of {name} = {text}"

    def _context(self, frame: _Frame) -> Iterator[str]:
        lines = []
        outer = frame.outer
        while outer is not None:
            node = outer.node
            name, line = node.primitive.name, source.describe(node.source)
            if name == "scan":
                length, runs = node.params["length"], outer.runs
                step = length - 1 - runs if node.params["reverse"] else runs
                lines.append(f"in iteration {step} of {length} of the scan at {line}")
            elif name == "while":
                # The condition runs before each iteration.
                step = outer.runs // 2
                lines.append(f"in iteration {step} of the loop at {line}")
            elif name == "shard_map":
                axes = ", ".join(map(str, node.params["axes"]))
                lines.append(
                    f"in the program of each device at {line}: the first axes of "
                    f"arrays are the devices along {axes}"
                )
            outer = outer.outer
        return reversed(lines)

    # -- double where ------------------------------------------------------------------

    def _double_where(
        self, frame: _Frame, node: Node, value: Any
    ) -> tuple[str, str] | None:
        """Returns the lines of an operation and of the selection that hides it."""
        if type(node.source) is not Backward:
            return None
        lost = np.isnan(value)
        for atom, operand in zip(node.inputs, frame.operands, strict=True):
            if np.shape(operand) != lost.shape:
                continue
            if np.any((np.asarray(operand) == 0) & lost):
                where = _selection_before(frame, atom)
                if where is not None:
                    return source.describe(node.source), source.describe(where.source)
        return None


class _Found(Exception):
    """The first value that is not finite, where every one counts."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding


def _selection_before(frame: _Frame, atom: Any) -> Node | None:
    """Returns the last selection that a value depends on, also outside of a graph."""
    front = [frame.origin(atom)]
    seen: set[int] = set()
    while front:
        frame, atom = front.pop(0)
        node = frame.made.get(atom) if type(atom) is Var else None
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if node.primitive.name == "select_n":
            return node
        front.extend(frame.origin(a) for a in node.inputs)
    return None


def _is_finite(value: Any) -> bool:
    """Returns whether a value has no NaN and no infinity."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or not dtypes.is_inexact(dtype):
        return True
    return bool(np.isfinite(value).all())


def _interest(value: Any, atom: Any) -> tuple[bool, bool, bool]:
    if value is None or not dtypes.is_inexact(np.asarray(value).dtype):
        return False, False, type(atom) is Var
    return not _is_finite(value), bool(np.any(value == 0)), type(atom) is Var


def _type(value: Any) -> str:
    array = np.asarray(value)
    return str(Aval(array.shape, array.dtype))


def summary(value: Any, at: Any = None) -> str:
    """Returns type and range of an array, and how much of it is 0 or not finite.

    Args:
      value: a NumPy array, or None if it was not kept.
      at: bool array of the same shape: elements of which one is shown.
    """
    if value is None:
        return "not kept"
    array = np.asarray(value)
    if not array.ndim:
        return f"{_type(array)} {array[()]!s}"
    parts = [_type(array)]
    numeric = dtypes.is_inexact(array.dtype) and array.dtype.kind != "c"
    if array.size and (numeric or array.dtype.kind in "iu"):
        finite = array[np.isfinite(array)]
        if finite.size:
            parts.append(f"{finite.min()!s} to {finite.max()!s}")
        for name, held in (
            ("nan", np.isnan(array)), ("inf", np.isinf(array)), ("zero", array == 0)
        ):  # fmt: skip
            if held.any():
                parts.append(f"{held.sum()} of {array.size} {name}")
    if at is not None and at.any():
        index = tuple(np.argwhere(at)[0])
        parts.append(f"{array[index]!s} there")
    return ", ".join(parts)


def _code(place: Any) -> list[str]:
    """Returns the text of a line, if it is known."""
    if place is None:
        return []
    text = linecache.getline(place[0].co_filename, source.line_number(place)).strip()
    return [text] if text else []
