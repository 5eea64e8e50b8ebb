"""Host-side communication between processes.

Values travel through the coordinator and need no devices: a barrier takes 0.2 ms. Use
these functions for configuration, random seeds and metrics. Keep large arrays on
devices, where programs exchange them.

Before `fxflow.distributed.initialize`, each function treats this process as the only
one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core import tree as trees
from fxflow.core.arrays import Array
from fxflow.devices.compile import on_shared_program
from fxflow.devices.meshes import PartitionSpec
from fxflow.devices.shardings import NamedSharding
from fxflow.distributed import session
from fxflow.distributed.coordination import Coordination
from fxflow.distributed.coordinator import listing
from fxflow.distributed.serialization import (
    HostLeaf,
    decode,
    encode,
    from_host,
    to_host,
)
from fxflow.errors import ArgumentError, DistributedError
from fxflow.lax.pytree_transfer import device_put

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "check_same_program",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]


def _coordination() -> Coordination | None:
    current = session.current()
    return current.coordination if current is not None else None


def _deadline(timeout: float | None) -> float:
    return config.collective_timeout if timeout is None else timeout


def sync_global_devices(name: str, timeout: float | None = None) -> None:
    """Waits until all processes have reached this point.

    Args:
      name: the barrier's name, the same in all processes.
      timeout: seconds; None is `config.collective_timeout`.

    Raises:
      DistributedError: a process did not arrive in time or is lost; the message
        names it.
    """
    coordination = _coordination()
    if coordination is not None:
        coordination.barrier(name, _deadline(timeout))


def broadcast_one_to_all(
    in_tree: Any, is_source: bool | None = None, timeout: float | None = None
) -> Any:
    """Returns one process's tree in all processes.

    Args:
      in_tree: a pytree of arrays, none of which spans processes. Only the structure
        matters in processes other than the source.
      is_source: whether this process is the source; None: process 0 is.
      timeout: seconds; None is `config.collective_timeout`.

    Returns:
      The source's tree, of NumPy arrays (keys stay keys).

    Raises:
      DistributedError: there is not exactly one source, or a process did not
        arrive.
      TreeError: the source's tree has another structure.
    """
    coordination = _coordination()
    leaves, structure = trees.flatten(in_tree)
    if coordination is None:
        return structure.unflatten([from_host(to_host(leaf)) for leaf in leaves])
    if is_source is None:
        is_source = coordination.process_id == 0
    # Structures are compared as text, so that nothing is unpickled.
    payload = b""
    if is_source:
        payload = encode(map(to_host, leaves), structure=str(structure))
    found = coordination.exchange("broadcast_one_to_all", payload, _deadline(timeout))
    sources = [process for process, given in enumerate(found) if given]
    if len(sources) != 1:
        raise DistributedError(
            f"broadcast_one_to_all needs one source, got {listing(sources)}", sources
        )
    given, extra = decode(found[sources[0]])
    if extra["structure"] != str(structure):
        raise ArgumentError(
            f"broadcast_one_to_all: process {sources[0]} gives a tree of structure "
            f"{extra['structure']}, this process expects {structure}"
        )
    return structure.unflatten([from_host(leaf) for leaf in given])


def process_allgather(
    in_tree: Any, tiled: bool = False, timeout: float | None = None
) -> Any:
    """Returns the arrays of all processes in each process.

    Args:
      in_tree: a pytree of arrays. An array that spans processes is gathered. Each
        process contributes its own value of any other array.
      tiled: whether these values are concatenated along axis 0 instead of stacked along
        a new axis.
      timeout: seconds; None is `config.collective_timeout`.

    Returns:
      A tree of NumPy arrays (keys stay keys). With `n` processes, their shape is
      ``(n, *shape)``, or ``(n * shape[0], *shape[1:])`` if tiled; an array that spans
      processes keeps its shape.

    Raises:
      DistributedError: a process did not arrive in time or is lost.
      ArgumentError: shapes or dtypes differ between processes.
    """
    leaves, structure = trees.flatten(in_tree)
    spanning = [is_global(leaf) for leaf in leaves]
    # A program on the devices gathers arrays that span processes; the others travel
    # through the coordinator.
    own = [
        to_host(gathered(leaf) if spans else leaf)
        for leaf, spans in zip(leaves, spanning, strict=True)
    ]
    among = [leaf for leaf, spans in zip(own, spanning, strict=True) if not spans]
    coordination = _coordination()
    every = [among]
    if coordination is not None and among:
        found = coordination.exchange(
            "process_allgather", encode(among), _deadline(timeout)
        )
        every = [decode(given)[0] for given in found]
    joined = iter(_join(column, tiled) for column in _columns(every))
    return structure.unflatten(
        [
            from_host(leaf if spans else next(joined))
            for leaf, spans in zip(own, spanning, strict=True)
        ]
    )


def is_global(leaf: Any) -> bool:
    """Returns whether an array spans several processes."""
    return isinstance(leaf, Array) and not leaf.is_fully_addressable


def gathered(array: Array) -> Array:
    """Replicates an array that spans processes on all of its devices.

    Args:
      array: the array. All of its processes must call this function.
    """
    where: Any = array.sharding
    if where.is_fully_replicated:
        return array
    whole: Array = device_put(array, NamedSharding(where.mesh, PartitionSpec()))
    return whole


def _columns(every: Sequence[Sequence[HostLeaf]]) -> list[list[HostLeaf]]:
    lengths = {len(leaves) for leaves in every}
    if len(lengths) != 1:
        raise ArgumentError(
            "process_allgather: the processes' trees have different numbers of "
            f"leaves: {[len(leaves) for leaves in every]}"
        )
    return [list(column) for column in zip(*every, strict=True)]


def _join(column: Sequence[HostLeaf], tiled: bool) -> HostLeaf:
    kinds = [(leaf.data.dtype, leaf.data.shape[tiled:], leaf.key) for leaf in column]
    if tiled and not column[0].data.ndim:
        raise ArgumentError("process_allgather: tiled=True needs arrays with an axis")
    odd = [process for process, kind in enumerate(kinds) if kind != kinds[0]]
    if odd:
        raise ArgumentError(
            f"process_allgather: process 0 gives {kinds[0][0]}"
            f"{list(column[0].data.shape)}, process {odd[0]} gives {kinds[odd[0]][0]}"
            f"{list(column[odd[0]].data.shape)}"
        )
    data = [leaf.data for leaf in column]
    return HostLeaf(np.concatenate(data) if tiled else np.stack(data), column[0].key)


def assert_equal(in_tree: Any, message: str = "", timeout: float | None = None) -> None:
    """Checks that all processes have the same tree, bit for bit.

    Args:
      in_tree: a pytree of arrays, none of which spans processes.
      message: the beginning of the error's message.
      timeout: seconds; None is `config.collective_timeout`.

    Raises:
      AssertionError: the trees differ. Every process raises it; the message names the
        leaf and the processes that differ from process 0.
      DistributedError: a process did not arrive in time or is lost.
    """
    coordination = _coordination()
    if coordination is None:
        return
    found, structure = trees.flatten_with_path(in_tree)
    marks = {trees.keystr(path): _digest(to_host(leaf)) for path, leaf in found}
    report = json.dumps([str(structure), marks]).encode()
    every = [
        json.loads(given)
        for given in coordination.exchange("assert_equal", report, _deadline(timeout))
    ]
    first = every[0]
    odd = [process for process, other in enumerate(every) if other != first]
    if not odd:
        return
    start = f"{message}: " if message else ""
    where = every[odd[0]]
    if where[0] != first[0]:
        raise AssertionError(
            f"{start}the trees differ: process 0 has {first[0]}, process {odd[0]} has "
            f"{where[0]}"
        )
    name = next(key for key in first[1] if where[1].get(key) != first[1][key])
    raise AssertionError(
        f"{start}leaf {name or 'itself'} differs: process 0 has {first[1][name][0]}, "
        f"{listing(odd)} other values (process {odd[0]}: {where[1][name][0]})"
    )


def _digest(leaf: HostLeaf) -> list[str]:
    data = np.ascontiguousarray(leaf.data)
    shown = f"{data.dtype.name}{list(data.shape)}"
    if data.size:
        shown += f" from {data.ravel()[0]}"
    described = f"{data.dtype.name} {data.shape} {leaf.key} ".encode()
    return [shown, hashlib.sha256(described + data.tobytes()).hexdigest()]


def check_same_program(
    name: str,
    text_hash: str,
    deadline: float | None = None,
    processes: Sequence[int] | None = None,
) -> None:
    """Checks that all processes are about to run the same program.

    It is called before the first run of a program that spans processes: different
    programs would wait for each other's collectives forever.

    Args:
      name: the function's name, for messages.
      text_hash: a hash of the program's text.
      deadline: seconds; None is `config.collective_timeout`.
      processes: the processes that run it; None for all.

    Raises:
      DistributedError: the programs differ, or a process runs no program; the message
        says which process runs which function.
    """
    coordination = _coordination()
    if coordination is None:
        return
    seconds = _deadline(deadline)
    among = sorted(
        range(coordination.num_processes) if processes is None else processes
    )
    try:
        found = coordination.exchange(
            "comparing programs",
            json.dumps([name, text_hash]).encode(),
            seconds,
            processes,
        )
    except DistributedError as error:
        raise DistributedError(
            f"process {coordination.process_id} is about to run {name!r} together "
            f"with others, but {error}",
            error.processes,
            error.seconds,
        ) from None
    every = dict(zip(among, map(json.loads, found), strict=True))
    if len({text for _, text in every.values()}) == 1:
        return
    groups: dict[tuple[str, str], list[int]] = {}
    for process, (function, text) in every.items():
        groups.setdefault((function, text), []).append(process)
    shown = "; ".join(
        f"{listing(ranks)}: {function!r} ({text[:8]})"
        for (function, text), ranks in groups.items()
    )
    names = {function for function, _ in groups}
    hint = (
        "The functions differ: all processes must call the same ones in the same order"
        if len(names) > 1
        else "The function is the same but its program differs: shapes, constants or "
        "branches of Python depend on the process"
    )
    # The majority is assumed to be right: the error lists the other processes.
    most = max(groups.values(), key=len)
    raise DistributedError(
        f"the processes are about to run different programs together: {shown}. {hint}",
        set(every) - set(most),
    )


on_shared_program(
    lambda name, digest, processes: check_same_program(name, digest, None, processes)
)


def reached_preemption_sync_point(step: int) -> bool:
    """Returns whether all processes agreed to stop at this step.

    After a SIGTERM to any process, it returns True at the same step in all of them:
    save the state there. Call it in every step, in all processes, from one thread. The
    first call installs the signal handler if it is in the main thread. Inside
    `elastic`, which saves the state itself, it always returns False.

    Args:
      step: the number of the step about to run; it increases with each call.

    Returns:
      False, except for True once, at the agreed step.

    Raises:
      DistributedError: a process is lost.
    """
    current = session.current()
    if current is None or current.agreement is None:
        return False
    current.agreement.listen()
    return current.agreement.reached(step)
