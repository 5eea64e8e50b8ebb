"""Snapshots of an elastic run's state, which workers hold and send to each other.

A `StateSnapshot` is the state after a step. It references the arrays, and copies them
only when their elements are requested. A worker may hold all of an array or only the
parts on its own devices. A `StateServer` sends them to other workers.
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
from fxflow.core.spmd.parts import held_parts, join_parts
from fxflow.distributed.addresses import Address
from fxflow.distributed.admission import admitted, require_token
from fxflow.distributed.messages.channel import Channel, Message, dial
from fxflow.distributed.serialization import HostLeaf, decode, encode, to_host
from fxflow.errors import DistributedError

#: Start and stop of each axis.
Index = list[list[int]]


class Parts(NamedTuple):
    """The parts of an array that were on this process's devices, in host memory.

    Attributes:
      shape: the shape of the whole array.
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
    """Returns the distinct parts of an array that are in this process."""
    if isinstance(leaf, Parts):
        return list(leaf.pieces)
    return [
        (
            [
                list(part.indices(length)[:2])
                for part, length in zip(index, leaf.shape, strict=True)
            ],
            data,
        )
        for index, data in held_parts(leaf)
    ]


def _on_host(leaf: Any) -> HostLeaf | Parts:
    if isinstance(leaf, (HostLeaf, Parts)):
        return leaf
    if _is_whole(leaf):
        return to_host(leaf)
    pieces = [(index, to_host(data)) for index, data in _pieces(leaf)]
    return Parts(tuple(leaf.shape), pieces)


class StateSnapshot:
    """The leaves of the state after a step.

    Attributes:
      leaves: arrays, or `HostLeaf` and `Parts` in host memory.
      kind: ``"held"``, or ``"initial"`` for the state the program started with.
    """

    leaves: list[Any]
    kind: str

    def __init__(self, leaves: Sequence[Any], kind: str = "held") -> None:
        self.leaves, self.kind = list(leaves), kind
        self._lock = threading.Lock()

    def holding(self, step: int) -> Message:
        """Describes the parts held here for `membership.choose_plan`."""
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
        """Returns whether no array has been donated."""
        return not any(isinstance(x, Array) and x.is_deleted() for x in self.leaves)

    def to_host(self) -> None:
        """Copies the arrays to host memory and releases device memory."""
        with self._lock:
            self.leaves = list(map(_on_host, self.leaves))

    def whole(self) -> list[HostLeaf]:
        """Returns all leaves in host memory.

        Raises:
          KeyError: only parts of a leaf are in this process.
        """
        self.to_host()
        if not all(map(_is_whole, self.leaves)):
            raise KeyError("only parts of the state are here")
        return list(self.leaves)

    def piece(self, number: int, index: Index) -> HostLeaf:
        """Returns a part of a leaf.

        Raises:
          KeyError: this process does not hold it.
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


# -- between workers -------------------------------------------------------------------


class StateServer:
    """Sends this worker's snapshots to other workers of the run.

    Args:
      host: the address at which other workers reach this machine.
      token: the run's secret.
      find: returns the snapshot of a step and kind; raises KeyError if there is none.
    """

    address: str

    def __init__(
        self, host: str, token: str, find: Callable[[int, str], StateSnapshot]
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
        channel = Channel(connection)
        try:
            if not channel.readable(10):
                return
            message, _ = channel.receive(most=0)
            try:
                snapshot = self._find(int(message["step"]), message["kind"])
                if message["pieces"] is None:
                    payload = encode(snapshot.whole())
                else:
                    payload = encode(snapshot.piece(n, i) for n, i in message["pieces"])
            except Exception as error:  # any error, lest the client wait for an answer
                channel.send({"error": repr(error)})
                return
            channel.send({}, payload)
        except (EOFError, ValueError, KeyError, TypeError, OSError):
            return
        finally:
            channel.close()

    def close(self) -> None:
        """Stops answering."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._listener.close()


def fetch(
    address: str, token: str, plan: Message, pieces: Any, timeout: float = 10.0
) -> list[HostLeaf]:
    """Returns leaves, or pieces of them, from another worker.

    Args:
      address: the address of its `StateServer`.
      token: the run's secret.
      plan: the step and kind.
      pieces: numbers of leaves and index ranges; None for everything.
      timeout: seconds to wait for the answer.

    Raises:
      DistributedError: the worker has exited, or does not have them.
    """
    channel = dial(address, timeout, token, "worker")
    try:
        channel.send({"step": plan["step"], "kind": plan["kind"], "pieces": pieces})
        if not channel.readable(timeout):
            raise DistributedError(
                f"the worker at {address} did not send the state of step "
                f"{plan['step']} within {timeout:g} s",
                seconds=timeout,
            )
        message, payload = channel.receive()
    except (EOFError, OSError) as error:
        raise DistributedError(f"the worker at {address} has exited: {error}") from None
    finally:
        channel.close()
    if "error" in message:
        raise DistributedError(
            f"the worker at {address} does not have the state of step "
            f"{plan['step']}: {message['error']}"
        )
    return decode(payload)[0]


def assemble(parts: Sequence[tuple[Any, HostLeaf]], count: int) -> list[HostLeaf]:
    """Joins pieces into whole leaves.

    Args:
      parts: pairs ``([leaf, index], piece)`` that cover all leaves.
      count: the number of leaves.
    """
    held: list[list[tuple[tuple[slice, ...], HostLeaf]]] = [[] for _ in range(count)]
    for (number, index), piece in parts:
        held[number].append((tuple(slice(*part) for part in index), piece))
    leaves = []
    for pieces in held:
        axes = zip(*(index for index, _ in pieces), strict=True)
        shape = [max(part.stop for part in axis) for axis in axes]
        _, (first, key) = pieces[0]
        bits = first.shape[len(shape) :]  # the extra axes of random keys
        whole = join_parts([(i, leaf.data) for i, leaf in pieces], (*shape, *bits))
        leaves.append(HostLeaf(whole, key))
    return leaves
