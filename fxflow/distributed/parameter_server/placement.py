"""Plans which rows of each tensor lie on which server.

A tensor has rows along its first axis. A `PlacementPlan` cuts tensors into *pieces* of
consecutive rows, and assigns each piece to a server, so that bytes and load are
balanced. It consists of plain numbers, and needs only the types of arrays. `replan`
adapts a plan when servers join or leave, and lists the rows that move.
"""

from __future__ import annotations

import bisect
import html
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import dtypes, typeof
from fxflow.devices.memory import bytes_text
from fxflow.errors import ArgumentError

#: Cutting off fewer bytes costs more in messages than it gains in balance.
_LEAST = 2**20
_NOWHERE = -1
#: Ignore an imbalance below this fraction of a fair share.
_SLACK = 0.05

# -- tensors ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Tensor:
    """What a plan knows of a tensor.

    Attributes:
      name: its path in the parameters, such as "layers/0/w".
      shape: shape of the whole tensor; its rows are along the first axis, and a scalar
        is one row.
      dtype: name of its dtype.
      accesses: how often the whole tensor is read and written in a step: 1 for a dense
        parameter, the expected share of used rows for a table.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    accesses: float = 1.0

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.shape[0] if self.shape else 1

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return math.prod(self.shape[1:]) * dtypes.bits(dtypes.dtype(self.dtype)) // 8

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return self.rows * self.row_bytes


def tensors_of(
    params: Any, accesses: Mapping[str, float] | None = None
) -> tuple[Tensor, ...]:
    """Returns the tensors of a pytree of arrays, as a plan needs them.

    Args:
      params: pytree of arrays, or of anything with a shape and a dtype.
      accesses: how often a tensor is read and written in a step, by its name; the
        default is 1.

    Returns:
      A `Tensor` for each leaf, named by its path.

    Raises:
      ArgumentError: a name in `accesses` is not the name of a tensor.

    Example:
      >>> tensors_of({"w": np.zeros((4, 3), np.float32)})
      (Tensor(name='w', shape=(4, 3), dtype='float32', accesses=1.0),)
    """
    found = []
    left = dict(accesses or {})
    for path, leaf in tree.flatten_with_path(params)[0]:
        name = tree.keystr(path, simple=True, separator="/")
        aval = typeof(leaf)
        load = left.pop(name, 1.0)
        found.append(Tensor(name, aval.shape, np.dtype(aval.dtype).name, load))
    if left:
        raise ArgumentError(
            f"tensors_of: accesses names {', '.join(map(repr, left))}; the tensors are "
            f"{', '.join(repr(t.name) for t in found) or 'none'}"
        )
    return tuple(found)


# -- plans -----------------------------------------------------------------------------


class Piece(NamedTuple):
    """Consecutive rows of a tensor on one server.

    Attributes:
      name: name of the tensor.
      start: its first row.
      stop: the row after its last.
      server: number of the server.
    """

    name: str
    start: int
    stop: int
    server: int


class Share(NamedTuple):
    """One server's share of a plan.

    Attributes:
      pieces: number of its pieces.
      nbytes: bytes of all its pieces.
      load: bytes read and written in a step: those of each piece times its accesses.
    """

    pieces: int
    nbytes: int
    load: float


@dataclass(frozen=True)
class PlacementPlan:
    """Which rows of each tensor lie on which server. Made by `place` and `replan`.

    Prints as a table, and draws itself in a notebook.

    Attributes:
      servers: numbers of the servers.
      tensors: all tensors, in the given order.
      pieces: the pieces, in order of tensors and rows; every row is in exactly one.
      noun: what the printed table calls its servers: "shard" if a server may have
        several.
    """

    servers: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    pieces: tuple[Piece, ...]
    noun: str = field(default="server", compare=False)

    def on(self, server: int) -> tuple[Piece, ...]:
        """Returns the pieces of one server."""
        return tuple(piece for piece in self.pieces if piece.server == server)

    def of(self, name: str) -> tuple[Piece, ...]:
        """Returns the pieces of one tensor, in order of rows."""
        return tuple(piece for piece in self.pieces if piece.name == name)

    def shares(self) -> dict[int, Share]:
        """Returns bytes and expected load of each server."""
        by_name = {tensor.name: tensor for tensor in self.tensors}
        found = {server: Share(0, 0, 0.0) for server in self.servers}
        for name, start, stop, server in self.pieces:
            tensor, (pieces, nbytes, load) = by_name[name], found[server]
            size = (stop - start) * tensor.row_bytes
            load += size * tensor.accesses
            found[server] = Share(pieces + 1, nbytes + size, load)
        return found

    def replicas(self, k: int) -> dict[int, tuple[int, ...]]:
        """Returns the servers with copies of each server's pieces: the next in a ring.

        Args:
          k: number of servers that hold each shard, including the one that serves it.

        Returns:
          For each server, itself and the k − 1 servers that follow it in `servers`.

        Raises:
          ArgumentError: k is not between 1 and the number of servers.
        """
        count = len(self.servers)
        if not isinstance(k, int) or not 1 <= k <= count:
            raise ArgumentError(
                f"PlacementPlan.replicas: k must be between 1 and the {count} servers, "
                f"got {k!r}"
            )
        ring = self.servers * 2
        return {server: ring[i : i + k] for i, server in enumerate(self.servers)}

    def to_json(self) -> dict[str, Any]:
        """Returns the plan as a JSON object."""
        index = {tensor.name: i for i, tensor in enumerate(self.tensors)}
        return {
            "servers": list(self.servers),
            "tensors": [
                [t.name, [*t.shape], t.dtype, t.accesses] for t in self.tensors
            ],
            "pieces": [[index[name], *rest] for name, *rest in self.pieces],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> PlacementPlan:
        """Returns what `to_json` was called on; raises ArgumentError on other data."""
        try:
            tensors = tuple(
                Tensor(str(name), tuple(map(int, shape)), str(dtype), float(accesses))
                for name, shape, dtype, accesses in data["tensors"]
            )
            servers = tuple(map(int, data["servers"]))
            pieces = tuple(
                Piece(tensors[index].name, int(start), int(stop), int(server))
                for index, start, stop, server in data["pieces"]
            )
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"PlacementPlan.from_json: not a plan: {error!r}"
            ) from error
        _require_numbers("PlacementPlan.from_json", servers)
        _require_tensors("PlacementPlan.from_json", tensors)
        covered = [(t.name, s, e) for t in tensors for s, e in _spans(pieces, t.name)]
        whole = [(t.name, 0, t.rows) for t in tensors]
        if covered != whole or not {p.server for p in pieces} <= set(servers):
            raise ArgumentError(
                "PlacementPlan.from_json: the pieces must have each row of each tensor "
                "once, on one of the servers"
            )
        return PlacementPlan(servers, tensors, pieces)

    def __str__(self) -> str:
        shares = self.shares()
        total = sum(share.load for share in shares.values()) or 1.0
        lines = [[self.noun, "pieces", "bytes", "load/step", "share", "largest"]]
        for server, (pieces, nbytes, load) in shares.items():
            sizes = [
                str(pieces),
                bytes_text(nbytes),
                bytes_text(load),
                f"{load / total:.1%}",
            ]
            lines.append([str(server), *sizes, self._largest(server)])
        pieces, nbytes, load = map(sum, zip(*shares.values()))
        lines.append(
            ["all", str(pieces), bytes_text(nbytes), bytes_text(load), "100.0%", ""]
        )
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join(
            "  ".join(
                text.ljust(width) if i in (0, 5) else text.rjust(width)
                for i, (text, width) in enumerate(zip(line, widths))
            ).rstrip()
            for line in lines
        )

    def _largest(self, server: int) -> str:
        sizes = {tensor.name: tensor for tensor in self.tensors}
        pieces = sorted(
            self.on(server), key=lambda p: (p.start - p.stop) * sizes[p.name].row_bytes
        )
        named = [_caption(piece, sizes[piece.name]) for piece in pieces[:3]]
        return ", ".join(named) + ", …" * (len(pieces) > 3)

    def svg(self) -> str:
        """Returns a drawing: a bar for each server, with its pieces by bytes."""
        shares, tensors = self.shares(), {t.name: t for t in self.tensors}
        hues = {name: 360 * i * 0.618 % 360 for i, name in enumerate(tensors)}
        scale = 560 / (max(share.nbytes for share in shares.values()) or 1)
        drawn = []
        for row, (server, (_, nbytes, load)) in enumerate(shares.items()):
            x, y = 70.0, 8 + 26 * row
            drawn.append(f'<text x="62" y="{y + 14}" text-anchor="end">{server}</text>')
            for piece in self.on(server):
                tensor = tensors[piece.name]
                size = (piece.stop - piece.start) * tensor.row_bytes
                width, caption = size * scale, html.escape(_caption(piece, tensor))
                drawn.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="20" '
                    f'fill="hsl({hues[piece.name]:.0f},55%,75%)" stroke="#fff">'
                    f"<title>{caption}: {bytes_text(size)}</title></rect>"
                )
                if 7 * len(_caption(piece, tensor)) < width:
                    drawn.append(f'<text x="{x + 4:.1f}" y="{y + 14}">{caption}</text>')
                x += width
            label = f"{bytes_text(nbytes)}, {bytes_text(load)}/step"
            drawn.append(f'<text x="{x + 6:.1f}" y="{y + 14}">{label}</text>')
        height = 16 + 26 * len(shares)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="820" height="{height}" '
            f'viewBox="0 0 820 {height}">'
            "<style>text{font:12px system-ui,sans-serif;fill:#222}</style>"
            f"{''.join(drawn)}</svg>"
        )

    def _repr_svg_(self) -> str:
        return self.svg()


def _caption(piece: Piece, tensor: Tensor) -> str:
    whole = (piece.start, piece.stop) == (0, tensor.rows)
    return piece.name if whole else f"{piece.name}[{piece.start}:{piece.stop}]"


def _spans(pieces: Iterable[Piece], name: str) -> list[tuple[int, int]]:
    """Returns the rows of a tensor's pieces as spans; adjacent pieces are merged."""
    found: list[tuple[int, int]] = []
    for piece in pieces:
        if piece.name == name:
            if found and found[-1][1] == piece.start < piece.stop:
                found[-1] = (found[-1][0], piece.stop)
            else:
                found.append((piece.start, piece.stop))
    return found


# -- placing ---------------------------------------------------------------------------


def place(
    tensors: Iterable[Tensor],
    servers: int | Sequence[int],
    *,
    strategy: str = "greedy",
    split_above: int | None = None,
) -> PlacementPlan:
    """Places tensors on servers.

    Strategies:

    - "greedy": the largest tensor first, to the server that has least of what the
      tensor costs (load or bytes). A tensor that would make that server exceed its fair
      share is cut, and the rest goes to other servers. If no tensor is cut and all have
      equal accesses, the largest share is at most 4/3 of that in the best plan.
    - "round_robin": in order, to one server after another; large tensors in pieces.
    - "rows": an equal share of the rows of each tensor to each server; tensors with
      fewer rows than servers as by "greedy".

    Args:
      tensors: the tensors (see `tensors_of`).
      servers: number of servers, or their numbers.
      strategy: one of those above.
      split_above: tensors of at most this many bytes are not cut; None: 1 MiB, or 0
        for "rows".

    Returns:
      The plan.

    Raises:
      ArgumentError: no servers, a number or a name twice, a negative number of
        accesses, or an unknown strategy.

    Source: Graham 1969, "Bounds on multiprocessing timing anomalies" (greedy).

    Example:
      >>> sizes = [Tensor("table", (6_000_000, 16)), Tensor("w", (4096, 4096))]
      >>> print(place([*sizes, Tensor("b", (4096,))], 3))
      server  pieces   bytes  load/step   share  largest
      0            1  150 MB     150 MB   33.3%  table[0:2349610]
      1            1  150 MB     150 MB   33.3%  table[2349610:4699220]
      2            3  150 MB     150 MB   33.3%  table[4699220:6000000], w, b
      all          5  451 MB     451 MB  100.0%
    """
    tensors = tuple(tensors)
    numbers = tuple(range(servers)) if isinstance(servers, int) else tuple(servers)
    _require_numbers("place", numbers)
    _require_tensors("place", tensors)
    if strategy not in ("greedy", "round_robin", "rows"):
        raise ArgumentError(
            "place: strategy must be 'greedy', 'round_robin' or 'rows', "
            f"got {strategy!r}"
        )
    if split_above is None:
        split_above = 0 if strategy == "rows" else _LEAST
    packer, rest = _Packer(tensors, numbers, split_above), []
    for tensor in tensors:
        if strategy == "greedy" or tensor.nbytes <= split_above:
            count = 1
        elif strategy == "rows":
            count = len(numbers) if tensor.rows >= len(numbers) else 1
        else:
            count = min(len(numbers), -(-tensor.nbytes // max(1, split_above)))
        cuts = _cut(tensor, count)
        if strategy == "rows" and count == len(numbers):
            for server, (start, stop) in zip(numbers, cuts):
                packer.put(Piece(tensor.name, start, stop, server))
        else:
            rest += [Piece(tensor.name, start, stop, _NOWHERE) for start, stop in cuts]
    if strategy == "round_robin":
        for i, piece in enumerate(rest):
            packer.put(piece._replace(server=numbers[i % len(numbers)]))
    else:
        packer.settle(rest)
    return packer.plan()


def _cut(tensor: Tensor, count: int) -> list[tuple[int, int]]:
    """Returns the rows of a tensor as up to `count` spans of about the same length."""
    count = max(1, min(count, tensor.rows))
    bounds = [tensor.rows * i // count for i in range(count + 1)]
    return list(itertools.pairwise(bounds))


class RowMove(NamedTuple):
    """Rows that move from one server to another.

    Attributes:
      name: name of the tensor.
      start: the first row.
      stop: the row after the last.
      source: the server that has them; if it has left, its replicas have them.
      target: the server that receives them.
    """

    name: str
    start: int
    stop: int
    source: int
    target: int


class _Packer:
    """A plan under construction, and each server's share of all bytes and load."""

    def __init__(
        self, tensors: tuple[Tensor, ...], servers: tuple[int, ...], split_above: int
    ) -> None:
        self.tensors, self.servers = tensors, servers
        self.pieces: list[Piece] = []
        self.fair = 1 / len(servers)
        nbytes = sum(tensor.nbytes for tensor in tensors) or 1
        load = sum(tensor.nbytes * tensor.accesses for tensor in tensors) or 1.0
        self._of_row = {
            t.name: np.array([t.row_bytes / nbytes, t.row_bytes * t.accesses / load])
            for t in tensors
        }
        least = min(_LEAST, split_above)
        self._least_rows = {
            t.name: max(1, -(-least // max(1, t.row_bytes)))
            for t in tensors
            if t.nbytes > split_above
        }
        self._index = {server: i for i, server in enumerate(servers)}
        self._shares = np.zeros((len(servers), 2))

    def weight(self, piece: Piece) -> float:
        """Returns a piece's share of all bytes or of all load, whichever is larger."""
        return (piece.stop - piece.start) * float(self._of_row[piece.name].max())

    def share(self, server: int) -> float:
        """Returns a server's share of all bytes or of all load, whichever is larger."""
        return float(self._shares[self._index[server]].max())

    def put(self, piece: Piece) -> None:
        rows = piece.stop - piece.start
        self._shares[self._index[piece.server]] += rows * self._of_row[piece.name]
        self.pieces.append(piece)

    def remove(self, piece: Piece) -> None:
        rows = piece.stop - piece.start
        self._shares[self._index[piece.server]] -= rows * self._of_row[piece.name]
        self.pieces.remove(piece)

    def settle(self, given: list[Piece]) -> list[RowMove]:
        """Puts pieces on servers, cut where they do not fit; returns the moves."""
        waiting = [(self.weight(piece), piece) for piece in given]
        waiting.sort()
        moves = []
        while waiting:
            _, piece = waiting.pop()
            of_row = self._of_row[piece.name]
            i = int((self._shares @ of_row).argmin())
            rows = piece.stop - piece.start
            if (self._shares[i] + rows * of_row).max() > self.fair * (1 + _SLACK):
                room = float((self.fair - self._shares[i]).min())
                fit = max(
                    self._rows_in(piece, room), self._least_rows.get(piece.name, 0)
                )
                if fit := self._cut_off(piece, fit):
                    rest = piece._replace(start=piece.start + fit)
                    bisect.insort(waiting, (self.weight(rest), rest))
                    piece = piece._replace(stop=piece.start + fit)
            self.put(piece._replace(server=self.servers[i]))
            if piece.server not in (_NOWHERE, self.servers[i]):
                moves.append(RowMove(*piece, self.servers[i]))
        return moves

    def excess(self, server: int) -> list[Piece]:
        """Removes what a server has above its fair share; returns it, in few pieces."""
        removed = []
        pieces = [piece for piece in self.pieces if piece.server == server]
        for piece in sorted(pieces, key=self.weight, reverse=True):
            excess, weight = self.share(server) - self.fair, self.weight(piece)
            if excess <= _SLACK * self.fair or not weight:
                break
            if weight <= excess * (1 + 1e-9):
                self.remove(piece)
                removed.append(piece)
                continue
            # The rest must not be too small either.
            most = piece.stop - piece.start - self._least_rows.get(piece.name, 0)
            rows = min(self._rows_in(piece, excess), most)
            if rows := self._cut_off(piece, rows):
                self.remove(piece)
                self.put(piece._replace(stop=piece.stop - rows))
                removed.append(piece._replace(start=piece.stop - rows))
        return removed

    def _rows_in(self, piece: Piece, part: float) -> int:
        """Returns how many rows of a piece make up a share of all bytes or load."""
        row = float(self._of_row[piece.name].max())
        return int(part / row * (1 + 1e-9)) if row else 0

    def _cut_off(self, piece: Piece, rows: int) -> int:
        """Returns `rows` if that many may be cut off a piece, else 0."""
        least = self._least_rows.get(piece.name, math.inf)
        return rows if least <= rows <= piece.stop - piece.start - least else 0

    def plan(self) -> PlacementPlan:
        """Returns the plan; adjacent pieces of one server are merged."""
        order = {tensor.name: i for i, tensor in enumerate(self.tensors)}
        found: list[Piece] = []
        for piece in sorted(self.pieces, key=lambda p: (order[p.name], p.start)):
            last = found[-1] if found else None
            if last and (last.name, last.stop, last.server) == (
                piece.name,
                piece.start,
                piece.server,
            ):
                found[-1] = last._replace(stop=piece.stop)
            else:
                found.append(piece)
        return PlacementPlan(self.servers, self.tensors, tuple(found))


def _require_numbers(caller: str, servers: tuple[int, ...]) -> None:
    wrong = not servers or len(set(servers)) < len(servers)
    if wrong or not all(isinstance(n, int) and n >= 0 for n in servers):
        raise ArgumentError(
            f"{caller}: servers must be a number of servers, 1 or more, or their "
            f"distinct numbers, 0 or more, got {servers}"
        )


def _require_tensors(caller: str, tensors: tuple[Tensor, ...]) -> None:
    names = set()
    for tensor in tensors:
        if tensor.name in names:
            raise ArgumentError(f"{caller}: there are two tensors {tensor.name!r}")
        names.add(tensor.name)
        if not 0 <= tensor.accesses < math.inf or min(tensor.shape, default=0) < 0:
            raise ArgumentError(
                f"{caller}: shape and accesses must not be negative, got {tensor}"
            )


# -- servers that join and leave -------------------------------------------------------


class Replan(NamedTuple):
    """A plan for changed servers, and the moves that lead to it.

    Attributes:
      plan: the new plan.
      moves: the rows that move.
      nbytes: bytes of those rows.
    """

    plan: PlacementPlan
    moves: tuple[RowMove, ...]
    nbytes: int


def replan(plan: PlacementPlan, servers: int | Sequence[int]) -> Replan:
    """Adapts a plan when servers join or leave, with as few moves as balance requires.

    The pieces of servers that leave go to others, and servers that join get a fair
    share. A server that stays gives away only what it has above its fair share (of load
    or of bytes), down to a single row cut off a piece, but nothing below 1 MiB and 5 %
    of a share.

    Args:
      plan: the current plan.
      servers: number of servers in the new plan, or their numbers.

    Returns:
      The new plan and the moves.

    Raises:
      ArgumentError: no servers, or a number twice.

    Example:
      >>> before = place([Tensor("w", (4096, 4096))], 2)
      >>> after = replan(before, 3)
      >>> [f"{m.name}[{m.start}:{m.stop}] {m.source}→{m.target}" for m in after.moves]
      ['w[1366:2048] 0→2', 'w[3414:4096] 1→2']
    """
    numbers = tuple(range(servers)) if isinstance(servers, int) else tuple(servers)
    _require_numbers("replan", numbers)
    packer = _Packer(plan.tensors, numbers, _LEAST)
    given: list[Piece] = []
    for piece in plan.pieces:
        if piece.server in numbers:
            packer.put(piece)
        else:
            given.append(piece)
    joined = set(numbers) - set(plan.servers)
    for server in plan.servers if joined else ():
        if server in numbers:
            given += packer.excess(server)
    moves = sorted(packer.settle(given))
    row_bytes = {tensor.name: tensor.row_bytes for tensor in plan.tensors}
    nbytes = sum((move.stop - move.start) * row_bytes[move.name] for move in moves)
    return Replan(packer.plan(), tuple(moves), nbytes)
