"""The state of an elastic run as its workers hold it and pass it on.

A `Snapshot` is the state after a step. It keeps the arrays themselves, without a copy,
until their elements are requested; a worker may hold all of an array or only the
parts on its own devices. A `StateServer` answers other workers that ask.
"""

from __future__ import annotations

import contextlib
import math
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Array
from fxflow.distributed.addresses import Address
from fxflow.distributed.admission import admitted, require_token
from fxflow.distributed.messages.channel import Channel, Message, dial
from fxflow.distributed.serialization import HostLeaf, decode, encode, to_host
from fxflow.errors import DistributedError

#: Of each axis start and stop.
Index = list[list[int]]


class Parts(NamedTuple):
    """The parts that were here of an array whose devices are gone.

    Attributes:
      shape: of the whole array.
      pieces: index ranges and elements.
    """

    shape: tuple[int, ...]
    pieces: list[tuple[Index, HostLeaf]]


def _is_whole(leaf: Any) -> bool:
    if isinstance(leaf, Array):
        return leaf.is_fully_addressable or leaf.is_fully_replicated
    return not isinstance(leaf, Parts)


def _shape(leaf: Any) -> tuple[int, ...]:
    return tuple(leaf.data.shape if isinstance(leaf, HostLeaf) else np.shape(leaf))


def _pieces(leaf: Any) -> list[tuple[Index, Any]]:
    """Returns the parts of an array that are here, each once."""
    if isinstance(leaf, Parts):
        return list(leaf.pieces)
    found: list[tuple[Index, Any]] = []
    for shard in leaf.addressable_shards:
        index = [
            list(part.indices(length)[:2])
            for part, length in zip(shard.index, leaf.shape, strict=True)
        ]
        if all(index != known for known, _ in found):
            found.append((index, shard.data))
    return found


def _on_host(leaf: Any) -> HostLeaf | Parts:
    if isinstance(leaf, (HostLeaf, Parts)):
        return leaf
    if _is_whole(leaf):
        return to_host(leaf)
    pieces = [(index, to_host(data)) for index, data in _pieces(leaf)]
    return Parts(tuple(leaf.shape), pieces)


class Snapshot:
    """The leaves of the state after a step.

    Attributes:
      leaves: arrays; `HostLeaf` and `Parts` where they are in host memory already.
      kind: ``"held"``, or ``"initial"`` for what the program started with.
    """

    kind: str
    leaves: list[Any]

    def __init__(self, leaves: Sequence[Any], kind: str = "held") -> None:
        self.leaves, self.kind = list(leaves), kind
        self._lock = threading.Lock()

    def holding(self, step: int) -> Message:
        """Returns what there is, as `membership.choose_plan` reads it."""
        if all(map(_is_whole, self.leaves)):
            return {"step": step, "kind": self.kind, "pieces": None, "sizes": []}
        pieces: list[Any] = []
        for number, leaf in enumerate(self.leaves):
            if _is_whole(leaf):
                pieces.append([number, [[0, n] for n in _shape(leaf)]])
            else:
                pieces += [[number, index] for index, _ in _pieces(leaf)]
        sizes = [
            math.prod(x.shape if isinstance(x, Parts) else _shape(x))
            for x in self.leaves
        ]
        return {"step": step, "kind": self.kind, "pieces": pieces, "sizes": sizes}

    def intact(self) -> bool:
        """Returns whether no array was donated since."""
        return not any(isinstance(x, Array) and x.is_deleted() for x in self.leaves)

    def to_host(self) -> None:
        """Lets go of the devices' memory."""
        with self._lock:
            self.leaves = list(map(_on_host, self.leaves))

    def whole(self) -> list[HostLeaf]:
        """Returns all leaves in host memory.

        Raises:
          KeyError: there are but parts of one.
        """
        self.to_host()
        if not all(map(_is_whole, self.leaves)):
            raise KeyError("only parts of the state are here")
        return list(self.leaves)

    def piece(self, number: int, index: Index) -> HostLeaf:
        """Returns a part of a leaf.

        Raises:
          KeyError: it is not here.
        """
        leaf = self.leaves[number]
        if _is_whole(leaf):
            host = _on_host(leaf)
            assert isinstance(host, HostLeaf)
            return HostLeaf(host.data[tuple(slice(*part) for part in index)], host.key)
        for known, data in _pieces(leaf):
            if known == index:
                return data if isinstance(data, HostLeaf) else to_host(data)
        raise KeyError(f"leaf {number} at {index}")


# -- passing it on ---------------------------------------------------------------------


class StateServer:
    """Gives this worker's snapshots to other workers of the run.

    Args:
      host: where others reach this machine.
      token: what they must know.
      find: returns the snapshot of a step; raises KeyError if there is none.
    """

    address: str

    def __init__(
        self, host: str, token: str, find: Callable[[int, str], Snapshot]
    ) -> None:
        self._token, self._find = token, find
        require_token(host, token)
        self._listener = Address(host, 0).listen("this worker")
        self.address = str(Address(host, self._listener.getsockname()[1]))
        threading.Thread(target=self._accept, name="fxflow-state", daemon=True).start()

    def _accept(self) -> None:
        for connection in admitted(self._listener, self._token):
            threading.Thread(
                target=self._serve, args=(connection,), name="fxflow-state", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        line = Channel(connection)
        try:
            if not line.readable(10):
                return
            message, _ = line.receive(most=0)
            try:
                snapshot = self._find(int(message["step"]), message["kind"])
                if message["pieces"] is None:
                    payload = encode(snapshot.whole())
                else:
                    payload = encode(snapshot.piece(n, i) for n, i in message["pieces"])
            except Exception as error:  # whatever it is, the other must not wait
                line.send({"error": repr(error)})
                return
            line.send({}, payload)
        except (EOFError, ValueError, KeyError, TypeError, OSError):
            return
        finally:
            line.close()

    def close(self) -> None:
        """Stops answering."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._listener.close()


def fetch(
    address: str, token: str, plan: Message, pieces: Any, timeout: float = 10.0
) -> list[HostLeaf]:
    """Returns leaves, or pieces of them, of another worker.

    Args:
      address: its `StateServer`'s.
      token: the run's secret.
      plan: which step and kind.
      pieces: which; None is everything.
      timeout: seconds for it to answer.

    Raises:
      DistributedError: it is gone, or does not have them.
    """
    line = dial(address, timeout, token, "worker")
    try:
        line.send(
            {
                "step": plan["step"],
                "kind": plan["kind"],
                "pieces": pieces,
            }
        )
        if not line.readable(timeout):
            raise DistributedError(
                f"the worker at {address} did not give the state of step "
                f"{plan['step']} within {timeout:g} s",
                seconds=timeout,
            )
        message, payload = line.receive()
    except (EOFError, OSError) as error:
        raise DistributedError(f"the worker at {address} is gone: {error}") from None
    finally:
        line.close()
    if "error" in message:
        raise DistributedError(
            f"the worker at {address} does not have the state of step "
            f"{plan['step']}: {message['error']}"
        )
    return decode(payload)[0]


def assemble(parts: Sequence[tuple[Any, HostLeaf]], count: int) -> list[HostLeaf]:
    """Returns whole leaves, put together from pieces.

    Args:
      parts: ``([leaf, index], piece)`` that cover all of them.
      count: how many leaves there are.
    """
    shapes: list[list[int]] = [[] for _ in range(count)]
    for (number, index), _ in parts:
        ends = [stop for _, stop in index]
        known = shapes[number] or ends
        shapes[number] = [max(a, b) for a, b in zip(known, ends, strict=True)]
    result: dict[int, HostLeaf] = {}
    for (number, index), piece in parts:
        shape = shapes[number]
        if number not in result:
            bits = piece.data.shape[len(shape) :]  # of keys
            data = np.empty((*shape, *bits), piece.data.dtype)
            result[number] = HostLeaf(data, piece.key)
        result[number].data[tuple(slice(*part) for part in index)] = piece.data
    return [result[number] for number in range(count)]
