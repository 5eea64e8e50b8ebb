"""Cuts parameters into the pieces of servers, and joins them.

A plan assigns the rows of each tensor to servers. Cutting and joining are pure
functions of arrays, compiled with the gradient: no copies on the host.

`recut` adapts a snapshot to another number of servers. A server has the optimizer's
state of its pieces. State arrays with the rows of a piece, such as moments, are joined
to whole tensors and cut by the new plan. State of a piece as a whole requires that the
piece is cut as before. State that belongs to no piece, such as a step count, is the
same on all servers. Rows of tables are assigned by their ids (`tables.remote`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays.aval import ShapeDtypeStruct
from fxflow.distributed.parameter_server.filters import Filter, coded_types
from fxflow.distributed.parameter_server.placement import Piece, PlacementPlan
from fxflow.errors import ArgumentError
from fxflow.transforms.inspection import eval_shape


class Cutter:
    """Cuts tensors by a plan, and joins them.

    Args:
      plan: a plan for servers 0, 1, …

    Attributes:
      names: names of each server's pieces, sorted like the keys of a pytree.
      pieces: each server's pieces, in that order.
    """

    pieces: list[list[Piece]]
    names: list[list[str]]

    def __init__(self, plan: PlacementPlan) -> None:
        self.plan = plan
        self._rows = {tensor.name: tensor.rows for tensor in plan.tensors}
        self.pieces = [
            sorted(plan.on(server), key=self._name) for server in plan.servers
        ]
        self.names = [[self._name(p) for p in served] for served in self.pieces]

    def _name(self, piece: Piece) -> str:
        rows = f"[{piece.start:012}:{piece.stop:012}]"
        return piece.name if self._is_whole(piece) else f"{piece.name}{rows}"

    def _is_whole(self, piece: Piece) -> bool:
        return piece.stop - piece.start == self._rows[piece.name]

    def cut(self, tensors: Mapping[str, Any]) -> list[list[Any]]:
        """Returns the pieces of each server.

        Args:
          tensors: the tensors, by name.
        """
        return [
            [
                tensors[p.name]
                if self._is_whole(p)
                else tensors[p.name][p.start : p.stop]
                for p in served
            ]
            for served in self.pieces
        ]

    def join(self, parts: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Returns the tensors by name, from the pieces that `cut` returned."""
        found: dict[str, list[tuple[int, Any]]] = {}
        for served, values in zip(self.pieces, parts, strict=True):
            for piece, value in zip(served, values, strict=True):
                found.setdefault(piece.name, []).append((piece.start, value))
        tensors = {}
        for name, rows in found.items():
            values = [value for _, value in sorted(rows, key=lambda row: row[0])]
            tensors[name] = values[0] if len(values) == 1 else fnp.concatenate(values)
        return tensors


class ParameterShape(NamedTuple):
    """The structure of the parameters, and their placement.

    Attributes:
      treedef: structure of the parameters as a pytree.
      cutter: cuts them into pieces.
      types: types of each server's pieces, by name.
      pull: the filter of parameters.
    """

    treedef: Any
    cutter: Cutter
    types: list[dict[str, ShapeDtypeStruct]]
    pull: Filter

    def parts(self, values: Any) -> list[dict[str, Any]]:
        """Returns the pieces of a pytree like the parameters by name, by server."""
        names = [tensor.name for tensor in self.cutter.plan.tensors]
        parts = self.cutter.cut(dict(zip(names, self.treedef.flatten_up_to(values))))
        return [dict(zip(n, p)) for n, p in zip(self.cutter.names, parts, strict=True)]

    def whole(self, pulled: Any) -> Any:
        """Returns the pytree of parameters from their encoded pieces."""
        parts = []
        for sent, like in zip(pulled, self.types, strict=True):
            treedef = coded_types(self.pull, like)[1]
            parts.append(self.pull.decode(treedef.unflatten(sent), like))
        tensors = self.cutter.join([list(part.values()) for part in parts])
        names = [tensor.name for tensor in self.cutter.plan.tensors]
        return self.treedef.unflatten([tensors[name] for name in names])


# -- a snapshot for another number of servers ------------------------------------------

HostArray = np.ndarray[Any, Any]
Types = Mapping[str, ShapeDtypeStruct]


class _StateSlot(NamedTuple):
    """Where one array of an optimizer's state belongs.

    Attributes:
      path: its path in the state, without the name of the piece.
      piece: name of its piece; empty: it belongs to no piece.
      by_rows: whether its first axis is the rows of the piece.
    """

    path: str
    piece: str
    by_rows: bool


class _StatePart(NamedTuple):
    """One state array of one piece, from a snapshot."""

    piece: Piece
    by_rows: bool
    key: str
    values: HostArray


class _States:
    """The states of an optimizer on all servers, by tensor."""

    def __init__(self) -> None:
        self._of_pieces: dict[tuple[str, str], list[_StatePart]] = {}
        self._of_all: dict[str, tuple[str, HostArray]] = {}

    def add(self, slot: _StateSlot, piece: Piece | None, key: str, leaf: Any) -> None:
        """Adds one array."""
        values = np.asarray(leaf)
        if piece is not None:
            part = _StatePart(piece, slot.by_rows, key, values)
            self._of_pieces.setdefault((slot.path, piece.name), []).append(part)
            return
        _, before = self._of_all.get(slot.path, (key, values))
        if values.shape == () and values.dtype.kind in "iu":
            # A step count: servers may be a few steps apart.
            values = np.maximum(values, before)
        else:
            values = before
        self._of_all[slot.path] = key, values

    def cut(self, slot: _StateSlot, piece: Piece | None) -> tuple[str, HostArray]:
        """Returns one state array, cut for a piece.

        Raises:
          ArgumentError: the array is not by rows and the piece was cut differently, or
            the snapshot is of another optimizer.
        """
        if piece is None:
            if slot.path not in self._of_all:
                raise ArgumentError(
                    f"init: the snapshot is of another optimizer: it has no {slot.path}"
                )
            return self._of_all[slot.path]
        found = self._of_pieces.get((slot.path, piece.name), [])
        if not found:
            raise ArgumentError(
                f"init: the snapshot is of another optimizer: it has no {slot.path} of "
                f"{piece.name!r}"
            )
        for part in found:
            if part.piece[:3] == piece[:3]:
                return part.key, part.values
        if not all(part.by_rows for part in found):
            raise ArgumentError(
                f"init: {slot.path} of {piece.name!r} in the optimizer's state is not "
                "by rows and cannot be cut for another number of servers: start as "
                "many as the snapshot has, or begin with only snapshot['params']"
            )
        rows = []
        for part in sorted(found, key=lambda part: part.piece.start):
            first = part.piece.start
            start, stop = max(piece.start, first), min(piece.stop, part.piece.stop)
            if start < stop:
                rows.append(part.values[start - first : stop - first])
        return found[0].key, np.concatenate(rows)


def recut(
    servers: Sequence[Mapping[str, Any]],
    init: Callable[[Any], Any],
    old: Cutter,
    new: Cutter,
    types: Mapping[str, ShapeDtypeStruct],
) -> list[dict[str, Any]]:
    """Returns the optimizer's state of a snapshot, cut for other servers.

    Args:
      servers: for each server of the snapshot, the kinds of ``keys`` and the arrays of
        ``optimizer``.
      init: `init` of the optimizer: from pieces by name to its state.
      old: placement of the tensors on the servers of the snapshot.
      new: placement of the tensors on the current servers.
      types: types of the tensors, by name.

    Raises:
      ArgumentError: the state cannot be cut, or is of another optimizer.
    """
    states = _States()
    for number, server in enumerate(servers):
        slots, pieces = _slots(init, old, number, types)
        given = server["keys"], server["optimizer"]
        if len(slots) != len(given[1]):
            raise ArgumentError(
                f"init: the snapshot is of another optimizer: it has {len(given[1])} "
                f"arrays of server {number}, where {len(slots)} are expected"
            )
        for slot, key, leaf in zip(slots, *given, strict=True):
            states.add(slot, pieces.get(slot.piece), str(key), leaf)
    found: list[dict[str, Any]] = []
    for number in range(len(new.names)):
        slots, pieces = _slots(init, new, number, types)
        cut = [states.cut(slot, pieces.get(slot.piece)) for slot in slots]
        keys, leaves = [key for key, _ in cut], [leaf for _, leaf in cut]
        found.append({"keys": keys, "optimizer": leaves})
    return found


def _slots(
    init: Callable[[Any], Any], cutter: Cutter, server: int, types: Types
) -> tuple[list[_StateSlot], dict[str, Piece]]:
    """Returns the slots of a server's state arrays, and its pieces by name."""
    pieces = dict(zip(cutter.names[server], cutter.pieces[server], strict=True))

    def state(more: int) -> Any:
        given = {}
        for name, piece in pieces.items():
            shape = types[piece.name].shape
            rows = (piece.stop - piece.start + more, *shape[1:]) if shape else ()
            given[name] = ShapeDtypeStruct(rows, types[piece.name].dtype)
        return eval_shape(init, given)

    slots = []
    longer = tree.leaves(state(1))
    for (path, leaf), more in zip(tree.leaves_with_path(state(0)), longer, strict=True):
        names = [getattr(key, "key", None) for key in path]
        name = next((n for n in names if n in pieces), "")
        kept = [k for k, n in zip(path, names, strict=True) if not name or n != name]
        by_rows = bool(leaf.shape) and more.shape[0] == leaf.shape[0] + 1
        text = tree.keystr(tuple(kept), simple=True, separator="/")
        slots.append(_StateSlot(text, name, by_rows))
    return slots, pieces
