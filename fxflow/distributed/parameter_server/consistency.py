"""When a worker may read, and what becomes of its push: pure functions of values.

A worker's *clock* is the number of pushes it has made. A server's *version* is the
number of updates it has made. The *staleness* of a push is the number of updates
between the parameters that it was computed from and its own. A `Consistency` is the
policy, in plain numbers. The decisions are functions of a `WorkerGroup`, which is all
that one server knows of the workers: `may_read` returns whether to answer a pull now;
`arrive`, `join` and `leave` return the next group and an `UpdateDecision`. Nothing here
waits, sends or computes on arrays. The server calls these functions; the simulator
calls them under a virtual clock.

Workers wait in one of two ways. In *rounds* (`bsp`, `backup`, `local_sgd`) an update
averages one push from each of several workers, and a worker that has pushed reads again
after the update. Otherwise a server applies pushes as they arrive (`ssp`,
`asynchronous`, `elastic_averaging`) or whenever enough of them wait (`softsync`), and
reads wait for slower workers (`ssp`) or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fxflow.errors import ArgumentError

# -- policies --------------------------------------------------------------------------


@dataclass(frozen=True)
class Consistency:
    """How far apart workers may run, and how their pushes become updates.

    Made by `bsp`, `ssp`, `asynchronous`, `backup`, `softsync`, `local_sgd` and
    `elastic_averaging`; prints as the call that makes it.

    Attributes:
      kind: the name of the function that made it.
      staleness: number of clocks by which a worker may lead the slowest (None: any).
      rate: "fixed", or "staleness": divide a push by its staleness.
      compensation: λ of delay compensation (0: none).
      workers: number of pushes in a round (None: one of each worker).
      spares: number of workers beyond those.
      splits: number of updates into which one push of each worker is split.
      steps: number of local steps between two exchanges.
      alpha: how far worker and server move towards each other in one exchange.
    """

    kind: str
    staleness: int | None = None
    rate: str = "fixed"
    compensation: float = 0.0
    workers: int | None = None
    spares: int = 0
    splits: int | None = None
    steps: int = 1
    alpha: float | None = None

    @property
    def in_rounds(self) -> bool:
        """Whether a worker waits for the update that its push is part of."""
        return self.kind in ("bsp", "backup", "local_sgd")

    @property
    def pushes(self) -> str:
        """What workers push: "gradients", or "changes" of their own parameters."""
        local = self.kind in ("local_sgd", "elastic_averaging")
        return "changes" if local else "gradients"

    def to_json(self) -> dict[str, Any]:
        """Returns the consistency as a JSON object."""
        names = _KINDS[self.kind].attributes
        return {"kind": self.kind, **{name: getattr(self, name) for name in names}}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Consistency:
        """Returns what `to_json` was called on; raises ArgumentError on other data."""
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if kind not in _KINDS:
            raise ArgumentError(
                f"Consistency.from_json: expected a dictionary whose 'kind' is one of "
                f"{', '.join(_KINDS)}, got {data!r}"
            )
        make, names = _KINDS[kind]
        given = {name: value for name, value in data.items() if name != "kind"}
        if given.keys() != set(names):
            raise ArgumentError(
                f"Consistency.from_json: {kind} has "
                f"{', '.join(names) or 'no arguments'}, got {data!r}"
            )
        return make(**given)

    def __repr__(self) -> str:
        names = _KINDS[self.kind].attributes
        given = (f"{name}={getattr(self, name)!r}" for name in names)
        return f"{self.kind}({', '.join(given)})"


def bsp() -> Consistency:
    """Returns bulk-synchronous rounds, which act like one process with all batches.

    All workers compute on the same parameters; an update averages one gradient from
    each live worker. A worker at clock c sees exactly the updates of clocks below c. A
    worker that joins while gradients wait takes part in the next round. A round does
    not wait for a worker that leaves, but uses what it has pushed.

    Returns:
      The `Consistency`.

    Source: Valiant 1990, "A bridging model for parallel computation".

    Example:
      >>> bsp()
      bsp()
    """
    return Consistency("bsp")


def ssp(
    staleness: int, *, rate: str = "fixed", compensation: float = 0.0
) -> Consistency:
    """Returns stale-synchronous reads, which bound a worker's lead over the slowest.

    A worker at clock c reads only if every live worker is at clock c − `staleness` or
    beyond. It sees its own pushes, all pushes of clocks below c − `staleness`, and
    later ones that have arrived; each push is a separate update. With staleness 0
    workers read together, as in `bsp` (which averages their gradients into one update).
    A new worker starts as far ahead of the slowest as it may read at once, but not
    beyond the fastest so far.

    Args:
      staleness: number of clocks by which a worker may lead the slowest.
      rate: as for `asynchronous`.
      compensation: as for `asynchronous`.

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: the staleness is not a natural number, the rate unknown or the
        compensation negative.

    Source: Ho et al. 2013, "More effective distributed ML via a stale synchronous
    parallel parameter server".

    Example:
      >>> ssp(4)
      ssp(staleness=4, rate='fixed', compensation=0.0)
    """
    _require_whole("ssp", "staleness", staleness, 0)
    _require_rate("ssp", rate, compensation)
    return Consistency(
        "ssp", staleness=staleness, rate=rate, compensation=float(compensation)
    )


def asynchronous(*, rate: str = "staleness", compensation: float = 0.0) -> Consistency:
    """Returns asynchronous updates: one for each push as it arrives; no worker waits.

    A worker sees its own pushes and all others that have arrived; nothing bounds how
    old a gradient may be. With n workers of equal speed its staleness is about n − 1.

    Args:
      rate: "staleness" divides a gradient by its staleness (by 1 if that is 0), as
        training with many workers may not converge otherwise; "fixed" applies each
        gradient in full.
      compensation: λ in g + λ·g⊙g⊙(w − w_old), which uses a cheap estimate of the
        Hessian to correct a gradient g of the worker's parameters w_old to the server's
        current w; 0: no correction.

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: the rate is neither of these, or the compensation negative.

    Source: Dean et al. 2012, "Large scale distributed deep networks"; Zhang, Gupta,
    Lian, Liu 2016, "Staleness-aware async-SGD for distributed deep learning" (rate);
    Zheng et al. 2017, "Asynchronous stochastic gradient descent with delay
    compensation".

    Example:
      >>> asynchronous(compensation=0.04)
      asynchronous(rate='staleness', compensation=0.04)
    """
    _require_rate("asynchronous", rate, compensation)
    return Consistency("asynchronous", rate=rate, compensation=float(compensation))


def backup(workers: int, spares: int) -> Consistency:
    """Returns rounds of the first gradients to arrive, without waiting for stragglers.

    An update averages the first `workers` gradients of a version; later ones are
    dropped and counted, and their workers read at once. No gradient is stale. If fewer
    than `workers` are alive, a round has one gradient from each.

    Args:
      workers: number of gradients in an update.
      spares: number of workers beyond those.

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: no workers, or a negative number of spares.

    Source: Chen et al. 2016, "Revisiting distributed synchronous SGD".

    Example:
      >>> backup(50, 3)
      backup(workers=50, spares=3)
    """
    _require_whole("backup", "workers", workers, 1)
    _require_whole("backup", "spares", spares, 0)
    return Consistency("backup", workers=workers, spares=spares)


def softsync(n: int, *, rate: str = "staleness") -> Consistency:
    """Returns updates that average part of the workers' gradients; no worker waits.

    With λ live workers an update averages ⌊λ/n⌋ gradients (at least one) from any
    workers: with n = 1 as many gradients as there are workers; n = λ is `asynchronous`.
    Staleness is about n.

    Args:
      n: number of updates into which one gradient of each worker is split.
      rate: as for `asynchronous`; each gradient of the average has its own factor.

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: n is not a positive integer, or the rate unknown.

    Source: Zhang, Gupta, Lian, Liu 2016, "Staleness-aware async-SGD for distributed
    deep learning".

    Example:
      >>> softsync(4)
      softsync(splits=4, rate='staleness')
    """
    _require_whole("softsync", "n", n, 1)
    _require_rate("softsync", rate, 0.0)
    return Consistency("softsync", splits=n, rate=rate)


def local_sgd(steps: int) -> Consistency:
    """Returns rounds of several local steps, which average the workers' changes.

    A worker makes `steps` local steps from the parameters that it read, and pushes the
    difference. Rounds work as in `bsp`; local_sgd(1) with a stateless optimizer is
    equivalent to it.

    Args:
      steps: number of local steps in a round.

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: steps is not a positive integer.

    Source: Stich 2019, "Local SGD converges fast and communicates little"; McMahan et
    al. 2017, "Communication-efficient learning of deep networks from decentralized
    data".

    Example:
      >>> local_sgd(8)
      local_sgd(steps=8)
    """
    _require_whole("local_sgd", "steps", steps, 1)
    return Consistency("local_sgd", steps=steps)


def elastic_averaging(steps: int, alpha: float) -> Consistency:
    """Returns elastic averaging: springs tie each worker's parameters to the server's.

    After `steps` local steps a worker reads the server's parameters x̃, moves its own
    x by −α·(x − x̃), and pushes α·(x − x̃), which the server adds to x̃ at once. No
    worker waits; workers explore independently, and need few exchanges.

    Args:
      steps: number of local steps between exchanges.
      alpha: α in (0, 1]: the learning rate times the ρ of the spring. α times the
        number of workers should stay below 1 (0.9 in the paper).

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: steps is not a positive integer, or α outside (0, 1].

    Source: Zhang, Choromanska, LeCun 2015, "Deep learning with elastic averaging SGD".

    Example:
      >>> elastic_averaging(10, 0.9 / 4)
      elastic_averaging(steps=10, alpha=0.225)
    """
    _require_whole("elastic_averaging", "steps", steps, 1)
    if not _is_number(alpha) or not 0 < alpha <= 1:
        raise ArgumentError(
            f"elastic_averaging: alpha must be a number in (0, 1], got {alpha!r}"
        )
    return Consistency("elastic_averaging", steps=steps, alpha=float(alpha))


class _Kind(NamedTuple):
    """A kind of `Consistency`: the function that makes it, and what defines it."""

    make: Callable[..., Consistency]
    attributes: tuple[str, ...] = ()


_KINDS = {
    "bsp": _Kind(bsp),
    "ssp": _Kind(ssp, ("staleness", "rate", "compensation")),
    "asynchronous": _Kind(asynchronous, ("rate", "compensation")),
    "backup": _Kind(backup, ("workers", "spares")),
    "softsync": _Kind(
        lambda splits, rate: softsync(splits, rate=rate), ("splits", "rate")
    ),
    "local_sgd": _Kind(local_sgd, ("steps",)),
    "elastic_averaging": _Kind(elastic_averaging, ("steps", "alpha")),
}


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x)


def _require_whole(caller: str, name: str, x: Any, least: int) -> None:
    if not isinstance(x, int) or isinstance(x, bool) or x < least:
        raise ArgumentError(
            f"{caller}: {name} must be a whole number, {least} or more, got {x!r}"
        )


def _require_rate(caller: str, rate: Any, compensation: Any) -> None:
    if rate not in ("fixed", "staleness"):
        raise ArgumentError(
            f"{caller}: rate must be 'fixed' or 'staleness', got {rate!r}"
        )
    if not _is_number(compensation) or compensation < 0:
        raise ArgumentError(
            f"{caller}: compensation must be a number, 0 or more, got {compensation!r}"
        )


# -- what a server knows of the workers ------------------------------------------------

_PARTS = 64


class _Members:
    """An immutable dictionary of `Member`s; a change copies a 64th of it."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[dict[int, Member], ...] = ({},) * _PARTS) -> None:
        self._parts = parts

    def get(self, worker: int) -> Member | None:
        return self._parts[worker % _PARTS].get(worker)

    def set(self, worker: int, member: Member | None) -> _Members:
        """Returns members with a worker's record replaced, or removed (None)."""
        parts, i = list(self._parts), worker % _PARTS
        parts[i] = parts[i].copy()
        if member is None:
            parts[i].pop(worker, None)
        else:
            parts[i][worker] = member
        return _Members(tuple(parts))

    def items(self) -> list[tuple[int, Member]]:
        return sorted(item for part in self._parts for item in part.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Members) and self._parts == other._parts

    __hash__ = None  # type: ignore[assignment]


class Push(NamedTuple):
    """What a decision about a push depends on; the server keeps its arrays.

    Attributes:
      worker: number of the worker.
      clock: number of pushes that the worker made before this one.
      version: version of the parameters that it was computed from.
    """

    worker: int
    clock: int
    version: int


class Weighted(NamedTuple):
    """A push as part of an update.

    Attributes:
      push: the push.
      weight: its factor: its share of an average times the factor for its staleness.
      staleness: number of updates since the parameters that it was computed from.
    """

    push: Push
    weight: float
    staleness: int


class UpdateDecision(NamedTuple):
    """What becomes of pushes after an event.

    Attributes:
      apply: the pushes that make an update now, in order of arrival; empty: no update.
      hold: whether the push that arrived waits.
      drop: why the push that arrived is dropped; empty: it is not dropped.
    """

    apply: tuple[Weighted, ...] = ()
    hold: bool = False
    drop: str = ""


class Member(NamedTuple):
    """What a server knows of a live worker.

    Attributes:
      clock: number of pushes that it has made.
      ready: in rounds, the first version that it may read.
    """

    clock: int
    ready: int


@dataclass(frozen=True)
class WorkerGroup:
    """What one server knows of the workers: immutable, replaced by each event.

    An event costs a few microseconds, even with 10,000 workers.

    Attributes:
      version: number of updates made.
      dropped: number of pushes dropped.
      slowest: the smallest clock of a live worker; `fastest` without live workers.
      fastest: the largest clock of any worker so far, alive or not.
      missing: number of live workers that have yet to push in the current round.
    """

    version: int = 0
    dropped: int = 0
    slowest: int = 0
    fastest: int = 0
    missing: int = 0
    _alive: int = 0
    _members: _Members = field(default_factory=_Members, repr=False)
    # The number of workers at each clock; small, because workers share few clocks.
    _at_clock: dict[int, int] = field(default_factory=dict, repr=False)
    # In blocks of up to _BLOCK pushes, so that adding one copies one block.
    _held: tuple[tuple[Push, ...], ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return self._alive

    def __bool__(self) -> bool:
        return True

    def __contains__(self, worker: int) -> bool:
        return self._members.get(worker) is not None

    def __iter__(self) -> Iterator[int]:
        return (worker for worker, _ in self._members.items())

    def __getitem__(self, worker: int) -> Member:
        """Returns the record of a live worker; raises ArgumentError on others."""
        member = self._members.get(worker)
        if member is None:
            raise ArgumentError(
                f"worker {worker} is not in the group of {self._alive}: it must join"
            )
        return member

    @property
    def waiting(self) -> tuple[Push, ...]:
        """The waiting pushes, in order of arrival."""
        return tuple(push for block in self._held for push in block)

    def to_json(self) -> dict[str, Any]:
        """Returns the group as a JSON object."""
        return {
            "version": self.version,
            "dropped": self.dropped,
            "fastest": self.fastest,
            "workers": [[worker, *member] for worker, member in self._members.items()],
            "waiting": [list(push) for push in self.waiting],
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> WorkerGroup:
        """Returns what `to_json` was called on; raises ArgumentError on other data."""
        try:
            version, fastest = int(data["version"]), int(data["fastest"])
            group = WorkerGroup(version, int(data["dropped"]), fastest, fastest)
            for worker, clock, ready in data["workers"]:
                group = _with_member(group, int(worker), Member(int(clock), int(ready)))
            for push in data["waiting"]:
                held = _appended(group._held, Push(*map(int, push)))
                group = replace(group, _held=held)
        except (KeyError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"WorkerGroup.from_json: not a group: {error!r}"
            ) from error
        return group


def _with_member(group: WorkerGroup, worker: int, member: Member | None) -> WorkerGroup:
    """Returns the group with a worker's record replaced, or removed (None)."""
    before = group._members.get(worker)
    slowest, fastest, at_clock = group.slowest, group.fastest, group._at_clock.copy()
    missing, alive = group.missing, group._alive
    if member is not None:
        clock = member.clock
        at_clock[clock] = at_clock.get(clock, 0) + 1
        missing += member.ready <= group.version
        slowest = min(slowest, clock) if alive else clock
        fastest = max(fastest, clock)
        alive += 1
    if before is not None:
        clock = before.clock
        at_clock[clock] -= 1
        if not at_clock[clock]:
            del at_clock[clock]
            while at_clock and slowest not in at_clock:
                slowest += 1
        missing -= before.ready <= group.version
        alive -= 1
        if not alive:
            slowest = fastest
    members = group._members.set(worker, member)
    return WorkerGroup(
        group.version,
        group.dropped,
        slowest,
        fastest,
        missing,
        alive,
        members,
        at_clock,
        group._held,
    )


_BLOCK = 128


def _appended(
    blocks: tuple[tuple[Push, ...], ...], push: Push
) -> tuple[tuple[Push, ...], ...]:
    if blocks and len(blocks[-1]) < _BLOCK:
        return (*blocks[:-1], (*blocks[-1], push))
    return (*blocks, (push,))


# -- decisions -------------------------------------------------------------------------


def may_read(
    consistency: Consistency, group: WorkerGroup, worker: int, clock: int
) -> bool:
    """Returns whether a pull is answered now; if not, it waits for the next event.

    Args:
      consistency: the policy.
      group: what the server knows of the workers.
      worker: the worker that pulls.
      clock: number of pushes that it has made: a pull does not overtake them.

    Returns:
      Whether the current parameters have the worker's pushes and are fresh enough.

    Raises:
      ArgumentError: the worker is not in the group.
    """
    member = group[worker]
    if member.clock < clock:
        return False
    if consistency.in_rounds:
        return member.ready <= group.version
    return (
        consistency.staleness is None or group.slowest >= clock - consistency.staleness
    )


def late(
    consistency: Consistency, group: WorkerGroup, worker: int, clock: int
) -> tuple[int, ...]:
    """Returns the workers that a pull waits for, to name them.

    Args:
      consistency: the policy.
      group: what the server knows of the workers.
      worker: the worker that pulls.
      clock: number of pushes that it has made.

    Returns:
      Numbers of workers, in order; empty if the worker may read. The worker itself if
      its own push has not arrived.

    Raises:
      ArgumentError: the worker is not in the group.
    """
    if may_read(consistency, group, worker, clock):
        return ()
    if group[worker].clock < clock:
        return (worker,)
    members = group._members.items()
    if consistency.in_rounds:
        return tuple(n for n, member in members if member.ready <= group.version)
    least = clock - (consistency.staleness or 0)
    return tuple(n for n, member in members if member.clock < least)


def arrive(
    consistency: Consistency, group: WorkerGroup, push: Push
) -> tuple[WorkerGroup, UpdateDecision]:
    """Decides on a push: it is part of an update, waits for others, or is dropped.

    The worker's clock advances in each case, unless it differs from the push's or the
    worker is not in the group.

    Args:
      consistency: the policy.
      group: what the server knows of the workers.
      push: the push that arrived.

    Returns:
      The next group, and what becomes of the pushes.
    """
    worker, clock, version = push
    member = group._members.get(worker)
    if member is None:
        return _dropping(group, f"worker {worker} is not in the group")
    if clock != member.clock:
        reason = f"clock {clock} of worker {worker}, which is at {member.clock}"
        return _dropping(group, reason)
    if version > group.version:
        reason = f"computed from version {version}, which does not exist yet"
    elif consistency.in_rounds and version < group.version:
        reason = f"late: computed from version {version} of {group.version}"
    elif consistency.in_rounds and member.ready > group.version:
        reason = f"the second push of worker {worker} in one round"
    else:
        reason = ""
    if reason:
        group = _with_member(group, worker, Member(clock + 1, member.ready))
        return _dropping(group, reason)
    ready = group.version + 1 if consistency.in_rounds else member.ready
    group = _with_member(group, worker, Member(clock + 1, ready))
    group, update = _update(consistency, group, _appended(group._held, push))
    return group, UpdateDecision(apply=update, hold=not update)


def join(
    consistency: Consistency, group: WorkerGroup, worker: int
) -> tuple[WorkerGroup, UpdateDecision]:
    """Adds a worker; one that is already in the group leaves first, as if it had died.

    It starts at the largest clock of any worker so far, or at the largest clock below
    that at which it may read at once; in rounds with waiting pushes, it starts with the
    next round. So neither the current round nor the fastest workers wait for a new
    worker, and no two waiting pushes have the same worker and clock. Its clock is
    `group[worker].clock`.

    Args:
      consistency: the policy.
      group: what the server knows of the workers.
      worker: its number.

    Returns:
      The next group, and the update that waited only for the worker that left, if any.
    """
    group, decision = leave(consistency, group, worker)
    clock = group.fastest
    if consistency.staleness is not None:
        clock = min(clock, group.slowest + consistency.staleness)
    ready = group.version
    if consistency.in_rounds and group._held:
        ready += 1
    return _with_member(group, worker, Member(clock, ready)), decision


def leave(
    consistency: Consistency, group: WorkerGroup, worker: int
) -> tuple[WorkerGroup, UpdateDecision]:
    """Removes a dead or finished worker; does nothing if it is not in the group.

    Its pushes remain. Reads that waited for it may be answered now.

    Args:
      consistency: the policy.
      group: what the server knows of the workers.
      worker: its number.

    Returns:
      The next group, and the update that waited only for this worker, if any.
    """
    if worker not in group:
        return group, UpdateDecision()
    group = _with_member(group, worker, None)
    group, update = _update(consistency, group, group._held)
    return group, UpdateDecision(apply=update)


def _dropping(group: WorkerGroup, reason: str) -> tuple[WorkerGroup, UpdateDecision]:
    return replace(group, dropped=group.dropped + 1), UpdateDecision(drop=reason)


def _update(
    consistency: Consistency, group: WorkerGroup, held: tuple[tuple[Push, ...], ...]
) -> tuple[WorkerGroup, tuple[Weighted, ...]]:
    """Makes an update of the waiting pushes, if there are enough."""
    count = len(held) and _BLOCK * (len(held) - 1) + len(held[-1])
    if consistency.in_rounds:
        needed = count if not group.missing else consistency.workers or math.inf
    elif consistency.splits is not None:
        needed = max(1, group._alive // consistency.splits)
    else:
        needed = 1
    enough = 0 < count >= needed
    update = []
    for push in (push for block in held for push in block) if enough else ():
        staleness = group.version - push.version
        factor = max(1, staleness) if consistency.rate == "staleness" else 1
        update.append(Weighted(push, 1 / (count * factor), staleness))
    group = WorkerGroup(
        group.version + enough,
        group.dropped,
        group.slowest,
        group.fastest,
        # After an update each live worker may read, and has yet to push.
        group._alive if enough else group.missing,
        group._alive,
        group._members,
        group._at_clock,
        () if enough else held,
    )
    return group, tuple(update)
