"""Who may read when, and what becomes of a push: values, and functions of values.

A *clock* is how many pushes a worker has made; a *version* how many updates a server
has made; the *staleness* of a push how many updates were made between the parameters
it was computed from and its own. A `Consistency` says what is wanted, in plain numbers.
What follows from it are functions of a `WorkerGroup`, all that one server knows of the
workers: `may_read` says whether a pull is answered now, `arrive`, `join` and `leave`
give the next group and an `UpdateDecision`. Nothing here waits, sends or computes on
arrays. The server calls these functions, the simulator calls them under a virtual
clock.

There are two ways to wait. In *rounds* (`bsp`, `backup`, `local_sgd`) an update is the
average of one push of each of several workers, and who has pushed reads again after it.
Otherwise pushes are applied as they come (`ssp`, `asynchronous`, `elastic_averaging`)
or whenever enough of them wait (`softsync`), and reads wait for slower workers (`ssp`)
or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from fxflow.errors import ArgumentError

# -- what is wanted --------------------------------------------------------------------


@dataclass(frozen=True)
class Consistency:
    """How far workers may run apart, and how their pushes become updates.

    Made by `bsp`, `ssp`, `asynchronous`, `backup`, `softsync`, `local_sgd` and
    `elastic_averaging`; prints as the call that makes it.

    Attributes:
      kind: the name of the function that made it.
      staleness: by how many clocks a worker may lead the slowest (None: any).
      rate: "fixed", or "staleness": a push counts divided by its staleness.
      compensation: λ of delay compensation (0: none).
      workers: how many pushes make a round (None: one of each worker).
      spares: how many workers there are beyond those.
      splits: into how many updates the pushes of all workers are split.
      steps: how many steps a worker makes by itself between two exchanges.
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
        alone = self.kind in ("local_sgd", "elastic_averaging")
        return "changes" if alone else "gradients"

    def to_json(self) -> dict[str, Any]:
        """Returns it as a dictionary of JSON."""
        names = _ARGUMENTS[self.kind]
        return {"kind": self.kind, **{name: getattr(self, name) for name in names}}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Consistency:
        """Returns what `to_json` was called on; raises ArgumentError on other data."""
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if kind not in _ARGUMENTS:
            raise ArgumentError(
                f"Consistency.from_json: expected a dictionary whose 'kind' is one of "
                f"{', '.join(_ARGUMENTS)}, got {data!r}"
            )
        given = {name: value for name, value in data.items() if name != "kind"}
        if given.keys() != set(_ARGUMENTS[kind]):
            raise ArgumentError(
                f"Consistency.from_json: {kind} has "
                f"{', '.join(_ARGUMENTS[kind]) or 'no arguments'}, got {data!r}"
            )
        return _MAKERS[kind](**given)

    def __repr__(self) -> str:
        given = (f"{name}={getattr(self, name)!r}" for name in _ARGUMENTS[self.kind])
        return f"{self.kind}({', '.join(given)})"


def bsp() -> Consistency:
    """Returns bulk-synchronous rounds: as one process with all the batches.

    Every worker computes on the same parameters; the average of one gradient of each
    alive worker is one update. A worker at clock c sees all updates of clocks below c
    and no other. Who joins while gradients wait takes part in the next round; who
    leaves is not waited for, what it had pushed counts.

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
    """Returns stale-synchronous reads: a worker leads the slowest by a bounded lead.

    A worker at clock c reads only if every alive worker is at clock c − `staleness` or
    beyond. It sees its own pushes, all of clocks below c − `staleness`, and any later
    ones that have arrived: each is an update of its own as it comes. With staleness 0
    workers read together, as in `bsp` (where their gradients are averaged into one
    update). A newcomer starts as far ahead of the slowest as it
    may read at once, but not beyond the fastest so far.

    Args:
      staleness: how many clocks a worker may lead the slowest by.
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
    """Returns an update for each push as it arrives: no worker waits.

    A worker sees its own pushes and all others that have arrived; nothing bounds how
    old a gradient may be. With n workers of one speed its staleness is about n − 1.

    Args:
      rate: "staleness" divides a gradient by its staleness (by 1 if it is 0), without
        which many workers may not converge; "fixed" applies each in full.
      compensation: λ of g + λ·g⊙g⊙(w − w_old), the gradient g taken from the
        parameters w_old that the worker had to those w of now, by a cheap guess at the
        Hessian; 0 leaves g alone.

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

    The first `workers` gradients of a version are averaged into one update; a later one
    is dropped and counted, and its worker reads at once. No gradient is stale. If fewer
    than `workers` are alive, a round has one gradient of each.

    Args:
      workers: how many gradients make an update.
      spares: how many workers there are beyond those.

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
    """Returns updates by the average of a share of the workers' gradients; none waits.

    With λ workers alive an update takes ⌊λ/n⌋ gradients (at least one) from any
    workers: n = 1 is an update for as many gradients as there are workers, n = λ is
    `asynchronous`. Staleness is about n.

    Args:
      n: into how many updates one gradient of each worker is split.
      rate: as for `asynchronous`; each gradient of the average has its own factor.

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: n is not a positive whole number, or the rate unknown.

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
    """Returns rounds of several local steps: what changed in them is averaged.

    A worker makes `steps` steps of its own from the parameters that it read, and
    pushes the difference. Rounds are those of `bsp`; so is local_sgd(1) with an
    optimizer without state.

    Args:
      steps: how many steps of its own a worker makes in a round.

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: steps is not a positive whole number.

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
    """Returns workers with parameters of their own, on springs to the server's.

    After `steps` steps of its own a worker reads the server's parameters x̃, moves its
    own x by −α·(x − x̃), and pushes α·(x − x̃), which the server adds to x̃ at once.
    No worker waits; workers explore apart, and need few exchanges.

    Args:
      steps: how many steps of its own a worker makes between exchanges.
      alpha: α, in (0, 1]: learning rate times the spring's ρ. Times the number of
        workers it should stay below 1 (0.9 in the paper).

    Returns:
      The `Consistency`.

    Raises:
      ArgumentError: steps is not a positive whole number, or α outside (0, 1].

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


_MAKERS: dict[str, Callable[..., Consistency]] = {
    "bsp": bsp,
    "ssp": ssp,
    "asynchronous": asynchronous,
    "backup": backup,
    "softsync": lambda splits, rate: softsync(splits, rate=rate),
    "local_sgd": local_sgd,
    "elastic_averaging": elastic_averaging,
}
#: The attributes that say all of a `Consistency` of each kind.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "bsp": (),
    "ssp": ("staleness", "rate", "compensation"),
    "asynchronous": ("rate", "compensation"),
    "backup": ("workers", "spares"),
    "softsync": ("splits", "rate"),
    "local_sgd": ("steps",),
    "elastic_averaging": ("steps", "alpha"),
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
    """An immutable dictionary of `Member`s; a new one costs a 64th of a copy."""

    __slots__ = ("_parts",)

    def __init__(self, parts: tuple[dict[int, Member], ...] = ({},) * _PARTS) -> None:
        self._parts = parts

    def get(self, worker: int) -> Member | None:
        return self._parts[worker % _PARTS].get(worker)

    def set(self, worker: int, member: Member | None) -> _Members:
        """Returns members with another record of a worker, or without it (None)."""
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
    """What decides on a push; its arrays are the server's to keep.

    Attributes:
      worker: its number.
      clock: how many pushes the worker had made before this one.
      version: of the parameters it was computed from.
    """

    worker: int
    clock: int
    version: int


class Weighted(NamedTuple):
    """A push as part of an update.

    Attributes:
      push: which.
      weight: what it is multiplied by: its share of an average times the factor for
        its staleness.
      staleness: how many updates were made since the parameters it was computed from.
    """

    push: Push
    weight: float
    staleness: int


class UpdateDecision(NamedTuple):
    """What becomes of pushes after something happened.

    Attributes:
      apply: the pushes that make an update now, in the order in which they came; empty
        if there is no update.
      hold: whether the push that arrived waits.
      drop: why the push that arrived is dropped; empty if it is not.
    """

    apply: tuple[Weighted, ...] = ()
    hold: bool = False
    drop: str = ""


class Member(NamedTuple):
    """What is known of an alive worker.

    Attributes:
      clock: how many pushes it has made.
      ready: the version from which on it may read, in rounds.
    """

    clock: int
    ready: int


@dataclass(frozen=True)
class WorkerGroup:
    """What one server knows of the workers: immutable, made anew by each event.

    An event costs a few microseconds, for 10,000 workers too.

    Attributes:
      version: how many updates were made.
      dropped: how many pushes were dropped.
      slowest: the smallest clock of an alive worker; if there is none, `fastest`.
      fastest: the largest clock of a worker so far, alive or not.
      missing: of how many alive workers the round under way still needs a push.
    """

    version: int = 0
    dropped: int = 0
    slowest: int = 0
    fastest: int = 0
    missing: int = 0
    _alive: int = 0
    _members: _Members = field(default_factory=_Members, repr=False)
    # How many workers are at each clock. Workers share few clocks, so it is small.
    _at_clock: dict[int, int] = field(default_factory=dict, repr=False)
    # In blocks of up to _BLOCK: one more copies one block.
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
        """Returns what is known of an alive worker; raises ArgumentError on others."""
        member = self._members.get(worker)
        if member is None:
            raise ArgumentError(
                f"worker {worker} is not in the group of {self._alive}: it has to join"
            )
        return member

    @property
    def waiting(self) -> tuple[Push, ...]:
        """The pushes that wait, in the order in which they came."""
        return tuple(push for block in self._held for push in block)

    def to_json(self) -> dict[str, Any]:
        """Returns it as a dictionary of JSON."""
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
    """Returns the group with another record of a worker, or without it (None)."""
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
      consistency: what is wanted.
      group: what the server knows of the workers.
      worker: who pulls.
      clock: how many pushes the worker has made: a pull does not overtake them.

    Returns:
      Whether the parameters of now are fresh enough, and it is the worker's turn.

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
    """Returns for whom a pull waits, to name them.

    Args:
      consistency: what is wanted.
      group: what the server knows of the workers.
      worker: who pulls.
      clock: how many pushes the worker has made.

    Returns:
      Numbers of workers, in order; empty if `may_read`. The worker itself if it is its
      own push that has not arrived.

    Raises:
      ArgumentError: the worker is not in the group.
    """
    if may_read(consistency, group, worker, clock):
        return ()
    if group[worker].clock < clock:
        return (worker,)
    members = group._members.items()
    if consistency.in_rounds:
        return tuple(who for who, member in members if member.ready <= group.version)
    least = clock - (consistency.staleness or 0)
    return tuple(who for who, member in members if member.clock < least)


def arrive(
    consistency: Consistency, group: WorkerGroup, push: Push
) -> tuple[WorkerGroup, UpdateDecision]:
    """Decides on a push: it is part of an update, waits for others, or is dropped.

    A worker's clock goes on in each case, except if it is another's than the push says
    or the worker is not in the group.

    Args:
      consistency: what is wanted.
      group: what the server knows of the workers.
      push: who pushes, its clock, and the version it was computed from.

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
        reason = f"computed from version {version}, which is not made yet"
    elif consistency.in_rounds and version < group.version:
        reason = f"late: computed from version {version} of {group.version}"
    elif consistency.in_rounds and member.ready > group.version:
        reason = f"the second of worker {worker} in one round"
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
    """Takes a worker in; one that is in already leaves first, as if it had died.

    It starts at the largest clock of a worker so far, or at the largest below it at
    which it may read at once; in rounds, if pushes wait, with the next round. So a
    round under way and the fastest workers do not wait for a newcomer, and no two
    pushes that wait have the same worker and clock. Its clock is `group[worker].clock`.

    Args:
      consistency: what is wanted.
      group: what the server knows of the workers.
      worker: its number.

    Returns:
      The next group, and the update that was waiting for who was in before.
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
    """Lets a worker go, dead or done; nothing happens if it is not in the group.

    What it has pushed stays. Reads that waited for it may be answered now.

    Args:
      consistency: what is wanted.
      group: what the server knows of the workers.
      worker: its number.

    Returns:
      The next group, and the update that waited for this worker alone, if one did.
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
    """Makes an update of the pushes that wait, if they are enough."""
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
        # After an update each alive worker may read, and is to push again.
        group._alive if enough else group.missing,
        group._alive,
        group._members,
        group._at_clock,
        () if enough else held,
    )
    return group, tuple(update)
