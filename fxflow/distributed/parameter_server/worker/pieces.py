"""Parameters as pieces on servers, and back.

A plan says which rows of which tensor lie on which server. Cutting and joining are
pure functions of arrays, compiled with the gradient: no copies on the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fxflow import numpy as fnp
from fxflow.distributed.parameter_server.placement import Piece, PlacementPlan


class Cutter:
    """Cuts tensors as a plan says, and joins them.

    Args:
      plan: of servers 0, 1, …

    Attributes:
      names: of each server's pieces, in the order of the alphabet, in which a pytree
        has them.
      pieces: themselves, in that order.
    """

    names: list[list[str]]
    pieces: list[list[Piece]]

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
          tensors: by name.
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
        """Returns the tensors by name, from the pieces that `cut` gave."""
        found: dict[str, list[tuple[int, Any]]] = {}
        for served, values in zip(self.pieces, parts, strict=True):
            for piece, value in zip(served, values, strict=True):
                found.setdefault(piece.name, []).append((piece.start, value))
        tensors = {}
        for name, rows in found.items():
            values = [value for _, value in sorted(rows, key=lambda row: row[0])]
            tensors[name] = values[0] if len(values) == 1 else fnp.concatenate(values)
        return tensors
