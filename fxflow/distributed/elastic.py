"""`elastic`: a training loop that continues when workers join, leave or die.

This is the worker's side. `membership` is the launcher's side, and describes how an
epoch forms. Besides the main thread, a worker has three threads: one reads the
launcher's messages, one sends the state to other workers, one waits for SIGTERM.

Guarantees: a member has *finished* a step when it has the step's result, and it keeps
the results of its last two steps. If steps communicate, members are never more than one
step apart. So the newest state that the survivors hold together includes every step
that all members had finished, and each step is applied once, to the state before it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow.core import tree as trees
from fxflow.core.arrays import Array, as_array
from fxflow.devices import clients
from fxflow.devices.cluster import RuntimeFailure, set_failure
from fxflow.devices.meshes import Mesh, make_mesh
from fxflow.distributed import protocol, session
from fxflow.distributed.checkpointed import CheckpointedLoop, Checkpoints, Outcome
from fxflow.distributed.clusters import ClusterMembership, detect
from fxflow.distributed.coordination import Connection, Coordination
from fxflow.distributed.messages.channel import Message, dial
from fxflow.distributed.multihost import gathered, is_global
from fxflow.distributed.preemption import Agreement, noticing
from fxflow.distributed.serialization import HostLeaf, to_host
from fxflow.distributed.snapshots import StateServer, StateSnapshot, assemble, fetch
from fxflow.errors import DistributedError

Step = Callable[["World", Any, int], Any]

#: Seconds for the launcher to answer.
_CONNECT = 60.0
#: Seconds for a worker to end after the launcher is lost.
_LAST_SECONDS = 10.0


class World(NamedTuple):
    """The members of an epoch.

    Attributes:
      rank: this process's number, 0 to `size` - 1; it may change with the epoch.
      size: the number of processes.
      epoch: a number that grows by one whenever the members change.
      members: the workers' numbers, which never change, by rank.
    """

    rank: int
    size: int
    epoch: int
    members: tuple[int, ...]

    def mesh(self, axis_name: str = "data") -> Mesh:
        """Returns a mesh of one axis over all devices of all members.

        Args:
          axis_name: the axis's name.

        Returns:
          The mesh, with each process's devices next to each other.
        """
        found = clients.devices()
        return make_mesh((len(found),), (axis_name,), devices=found)


def run_address() -> str:
    """Returns the address of the launcher of this process's elastic run.

    Returns:
      ``host:port``; empty outside an elastic run.
    """
    return os.environ.get("FXFLOW_ELASTIC_ADDRESS", "")


def elastic(
    step: Step,
    state: Any,
    num_steps: int,
    *,
    place: Callable[[World, Any], Any] | None = None,
    checkpointer: Checkpoints | None = None,
) -> Outcome:
    """Applies `step` `num_steps` times while workers join and leave.

    Start the program with ``fxflow launch --elastic MIN:MAX``. When a worker dies or
    stops, or a new one joins, the live workers form a new *epoch* (in well under a
    second) and continue from the newest state that they hold together. Without the
    launcher, the loop runs in this process alone.

    Args:
      step: ``step(world, state, index)`` returns the next state. It is called for
        each index, starting at 0, by all members of the `World`, and may use all
        devices (`fxflow.devices()`, `World.mesh`) and `multihost`. Its result must not
        depend on the epoch: let the batch be a function of the index, and let each
        member take its part by `World.rank` and `World.size`. A jitted function in
        `step` is compiled again for each number of members.
      state: the initial state: a pytree of arrays, the same in all workers. `step`
        cannot use other arrays made before this call: each epoch has its own devices.
      num_steps: the number of steps.
      place: ``place(world, state)`` moves a state from host memory to where `step`
        needs it, at the start of each epoch: with `device_put` onto a sharding, for
        instance. If None, the state is on the default device.
      checkpointer: a `train.checkpoint.Checkpointer` of a folder or store that all
        workers can access. It decides how often the state is saved; a SIGTERM also
        saves it. The run continues from the newest checkpoint when the program starts,
        and when all workers with a part of the state are lost. The checkpointer is
        closed at the end.

    Returns:
      The last state, in all workers. After a SIGTERM to any of them, all stop at one
      step, and the state is saved.

    Raises:
      DistributedError: too few workers are left, or the launcher is lost.
      CheckpointError: the checkpoint has another structure or other types; the message
        names the leaves, with both types.
      Exception: the error that `step` raised, unless the loss of other workers may
        explain it. All workers end.

    Example:
      >>> from fxflow.distributed import elastic
      >>> elastic(lambda world, total, index: total + index, fnp.zeros(()), 5)
      Outcome(state=array(10., dtype=float32), step=5, preempted=False)
    """
    program = _Program(step, place, state, num_steps, checkpointer)
    address = run_address()
    if not address:
        return _run_alone(program)
    if session.is_initialized():
        raise RuntimeError(
            "elastic initializes fxflow.distributed itself, once for each epoch: "
            "remove the call of fxflow.distributed.initialize"
        )
    # Before the first client, which reads XLA's flags: creating arrays may start it.
    clients.bound_collectives()
    # The devices of an epoch are not those on which the state was created.
    host = program.initial_leaves()
    clients.clear_backends()
    worker = _Worker(program, host, address)
    try:
        return worker.run()
    finally:
        worker.close()


# -- the program -----------------------------------------------------------------------


class _Program(CheckpointedLoop):
    """The arguments of `elastic`."""

    def __init__(
        self,
        step: Step,
        place: Callable[[World, Any], Any] | None,
        state: Any,
        num_steps: int,
        checkpointer: Checkpoints | None,
    ) -> None:
        super().__init__("elastic", state, num_steps, checkpointer)
        self.step, self.place = step, place

    def placed(self, world: World, state: Any) -> Any:
        """Moves a state from host memory to where `step` needs it."""
        # Arrays of fxflow: `device_put` would narrow NumPy's 64-bit arrays.
        arrays = trees.map(lambda leaf: as_array(leaf, leaf.dtype), state)
        return arrays if self.place is None else self.place(world, arrays)


def _wait(leaves: Sequence[Any]) -> None:
    """Waits until arrays are computed; raises the error if that failed."""
    for leaf in leaves:
        if isinstance(leaf, Array):
            leaf.block_until_ready()


def _gathered(leaves: Sequence[Any]) -> list[HostLeaf]:
    """Returns leaves in host memory, gathered from all processes."""
    return [to_host(gathered(leaf) if is_global(leaf) else leaf) for leaf in leaves]


def _run_alone(program: _Program) -> Outcome:
    """Runs the loop in one process."""
    world = World(0, 1, 1, (0,))
    initial = program.initial_leaves()
    newest = program.newest()
    if newest is None:
        index, state = 0, program.tree(initial)
    else:
        index, state = program.restored(newest, initial)
    state = program.placed(world, state)
    leaves = program.leaves(state)
    with noticing() as notice:
        while index < program.num_steps and not notice.is_set():
            state = program.step(world, state, index)
            leaves = program.leaves(state)
            _wait(leaves)
            index += 1
            if program.is_due(index):
                program.save(index, leaves)
        preempted = index < program.num_steps
    if preempted:
        program.save(index, leaves)
    program.close()
    return Outcome(program.tree([to_host(leaf) for leaf in leaves]), index, preempted)


# -- a worker --------------------------------------------------------------------------


class _Over(Exception):
    """Ends an epoch; the worker then takes part in forming the next one."""


class _Epoch:
    """A worker's state in an epoch."""

    def __init__(self, world: World, names: Sequence[str], start: int) -> None:
        self.world, self.names = world, list(names)
        self.agreement = Agreement(start)
        self.go = False
        self.over = ""
        self.session: session.Session | None = None


def _own_number() -> int:
    """Returns this worker's number: the cluster manager's, or a random one.

    Without ``FXFLOW_PROCESS_ID`` or a cluster manager, the number is random, so that a
    worker can join a run with only its address and secret.
    """
    known = detect()
    if known is not None and known.process_id is not None:
        return known.process_id
    text = os.environ.get("FXFLOW_PROCESS_ID")
    return int(text) if text else 1_000_000 + secrets.randbelow(1 << 30)


class _Worker:
    """This process as a worker of an elastic run."""

    def __init__(
        self, program: _Program, initial: Sequence[HostLeaf], address: str
    ) -> None:
        self.program = program
        self.address = address
        self.number = _own_number()
        self.token = os.environ.get("FXFLOW_TOKEN", "")
        self._changed = threading.Condition()
        self._form: tuple[protocol.Form, int] | None = None
        self._end = ""
        self._error: DistributedError | None = None
        self._epoch: _Epoch | None = None
        #: step → the state before it.
        self._held: dict[int, StateSnapshot] = {}
        self._initial = StateSnapshot(initial, "initial")
        self._donates = False
        channel = dial(address, _CONNECT, self.token, "launcher")
        self._states = StateServer(channel.own_host, self.token, self._find)
        name = f"{socket.gethostname()}:{os.getpid()}"
        register = protocol.RegisterWorker(self.number, name, self._states.address)
        channel.send(protocol.written(register))
        self._connection = Connection(
            channel,
            heartbeat_timeout=float(os.environ.get("FXFLOW_HEARTBEAT_TIMEOUT", "3")),
            on_event=self._on_event,
            on_lost=self._on_lost,
        )

    def close(self) -> None:
        """Leaves the run."""
        self._connection.close()
        self._states.close()

    def _send(self, message: Any) -> None:
        try:
            self._connection.channel.send(protocol.written(message))
        except OSError:
            raise DistributedError(f"the launcher at {self.address} is lost") from None

    # -- the thread that reads the launcher's messages ---------------------------------

    def _on_event(self, event: Any, number: int) -> None:
        with self._changed:
            epoch = self._epoch
            match event:
                case protocol.Form():
                    self._form = event, number
                case protocol.End():
                    self._end = event.outcome
                case protocol.Fail(why=why) | protocol.Refused(why=why):
                    self._error = DistributedError(f"the run has failed: {why}")
                    self._break(str(self._error))
                case protocol.Expelled():
                    self._die("expelled by the launcher: it did not answer in time")
                case _ if epoch is None or number != epoch.world.epoch:
                    pass  # about an epoch that is over
                case protocol.Go():
                    epoch.go = True
                case protocol.Hold() | protocol.Until():
                    epoch.agreement.handle(event)
                case protocol.Abort():
                    self._break(event.why)
            self._changed.notify_all()

    def _break(self, why: str) -> None:
        """Makes everything that waits for other members fail now."""
        epoch = self._epoch
        if epoch is None or epoch.over:
            return
        epoch.over = why
        error = DistributedError(why)
        if epoch.session is not None:
            epoch.session.fail(error)
        else:
            set_failure(error)
        epoch.agreement.wake()

    def _on_lost(self, reason: str) -> None:
        with self._changed:
            self._error = DistributedError(
                f"the launcher at {self.address} is lost: {reason}"
            )
            self._break(str(self._error))
            self._changed.notify_all()
        timer = threading.Timer(_LAST_SECONDS, self._die, [str(self._error)])
        timer.daemon = True
        timer.start()

    def _die(self, why: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            print(f"fxflow: worker {self.number}: {why}", file=sys.stderr, flush=True)
        os._exit(3)

    def _find(self, step: int, kind: str) -> StateSnapshot:
        """Returns a state that another worker requests."""
        if kind == "initial":
            return self._initial
        return self._held[step]

    # -- the program's thread ----------------------------------------------------------

    def run(self) -> Outcome:
        """Takes part in epochs until the run has ended."""
        with noticing(self._notify):
            try:
                while True:
                    try:
                        return self._one_epoch()
                    except _Over:
                        continue
            finally:
                self._leave()
                clients.configure_cpu()

    def _notify(self) -> None:
        with contextlib.suppress(DistributedError):
            self._send(protocol.Notice())

    def _one_epoch(self) -> Outcome:
        """Forms an epoch and runs its steps.

        Raises:
          _Over: the epoch is over, but the run is not.
        """
        self._leave()
        self._say_ready()
        epoch, plan = self._formed()
        index = int(plan["step"])
        joining = True
        try:
            is_saved = plan["kind"] == "file"
            leaves = [] if is_saved else self._fetch(plan)
            self._held = {} if is_saved else {index: StateSnapshot(leaves)}
            self._send(protocol.Prepared(epoch.world.epoch))
            with self._changed:
                self._changed.wait_for(lambda: epoch.go or epoch.over or self._error)
                self._check(epoch)
            self._join(epoch)
            if is_saved:
                # Each worker restores it now: random keys need devices.
                index, state = self.program.restored(index, self._initial.whole())
                leaves = [to_host(leaf) for leaf in trees.leaves(state)]
                self._held = {index: StateSnapshot(leaves)}
            state = self.program.placed(epoch.world, self.program.tree(leaves))
            joining = False
            return self._steps(epoch, state, index)
        except _Over:
            raise
        except Exception as error:
            if self._error is not None:
                raise self._error from error
            if not epoch.over and not self._is_due_to_loss(error):
                why = traceback.format_exception_only(error)[-1].strip()
                step = max(epoch.agreement.begun, index)
                self._send(protocol.Error(f"in step {step}: {why}"))
                raise
            if not epoch.over:
                step, why = max(epoch.agreement.begun, index), str(error)[-300:]
                number = epoch.world.epoch
                self._send(protocol.Failed(number, step, why, joining))
                self._wait_until_over(epoch)
            # The error's frames keep arrays of the epoch alive, and these its client.
            _forget_frames(error)
            raise _Over from None

    def _wait_until_over(self, epoch: _Epoch) -> None:
        with self._changed:
            self._changed.wait_for(lambda: epoch.over or self._error)

    def _is_due_to_loss(self, error: BaseException | None) -> bool:
        """Returns whether the loss of other workers may explain an error."""
        while error is not None:
            if isinstance(error, (RuntimeFailure, DistributedError)):
                return True
            error = error.__cause__ or error.__context__
        return False

    def _check(self, epoch: _Epoch) -> None:
        if self._error is not None:
            raise self._error
        if epoch.over:
            raise _Over

    def _say_ready(self) -> None:
        holdings = [
            snapshot.holding(step)
            for step, snapshot in self._held.items()
            if snapshot.intact()
        ]
        holdings.append(self._initial.holding(0))
        newest = self.program.newest()
        if newest is not None:
            holdings.append({"step": newest, "kind": "file", "pieces": None})
        self._send(protocol.Ready(holdings))

    def _formed(self) -> tuple[_Epoch, Message]:
        with self._changed:
            self._changed.wait_for(lambda: self._form or self._error or self._end)
            if self._error is not None:
                raise self._error
            if self._end:
                # This is a spare or joined after the end: it has no result.
                raise SystemExit(0)
            assert self._form is not None
            (form, number), self._form = self._form, None
            members = tuple(form.members)
            world = World(form.rank, len(members), number, members)
            self._epoch = _Epoch(world, form.names, int(form.plan["step"]))
            set_failure(None)
            return self._epoch, form.plan

    def _fetch(self, plan: Message) -> list[HostLeaf]:
        """Returns the complete state to continue from, in host memory."""
        step, kind, sources = plan["step"], plan["kind"], plan["sources"]
        mine = self._states.address
        if any(address == mine and pieces is None for address, pieces in sources):
            return self._find(step, kind).whole()
        if sources[0][1] is None:
            # Spread the load: workers fetch from different sources.
            assert self._epoch is not None
            address = sources[self._epoch.world.rank % len(sources)][0]
            return fetch(address, self.token, plan, None)
        parts: list[tuple[Any, HostLeaf]] = []
        for address, pieces in sources:
            found = (
                [self._find(step, kind).piece(n, i) for n, i in pieces]
                if address == mine
                else fetch(address, self.token, plan, pieces)
            )
            parts += zip(pieces, found, strict=True)
        return assemble(parts, trees.structure(self.program.state).num_leaves)

    def _join(self, epoch: _Epoch) -> None:
        """Connects this process's devices to those of the other members."""
        world = epoch.world
        coordination = Coordination(
            self._connection, world.rank, world.size, epoch.names, epoch=world.epoch
        )
        epoch.agreement.attach(coordination)

        def connect() -> socket.socket:
            return self._connection.connect_runtime(
                10, token=self.token, epoch=world.epoch
            )

        membership = ClusterMembership(
            self.address, world.size, world.rank, hosted=True
        )
        epoch.session = session.Session(membership, coordination)
        epoch.session.connect(connect, 300)
        with self._changed:
            # The epoch may have ended before there were collectives to break.
            self._check(epoch)
        session.enter(epoch.session)
        clients.client("cpu")

    def _leave(self) -> None:
        """Releases an epoch's arrays, programs and connections."""
        epoch = self._epoch
        if epoch is None:
            return
        # Members may be lost; the last checkpoint remains valid.
        with contextlib.suppress(RuntimeFailure, DistributedError):
            self.program.close()
        for snapshot in list(self._held.values()):
            snapshot.to_host()
        session.enter(None)
        if epoch.session is not None:
            epoch.session.leave(rejoins=True)
            epoch.session = None

    # -- steps -------------------------------------------------------------------------

    def _steps(self, epoch: _Epoch, state: Any, index: int) -> Outcome:
        program = self.program
        leaves = program.leaves(state)
        agreement = epoch.agreement
        while index < program.num_steps and not agreement.reached(index):
            if self._donates:
                # The step overwrites the state, so keep a copy.
                self._held[index].to_host()
            state = program.step(epoch.world, state, index)
            leaves = program.leaves(state)
            _wait(leaves)
            index += 1
            before = self._held[index - 1]
            self._held = {index - 1: before, index: StateSnapshot(leaves)}
            if not before.intact():
                self._donates = True
                del self._held[index - 1]
            if program.is_due(index):
                program.save(index, leaves)
        preempted = index < program.num_steps
        if preempted and agreement.then != "stop":
            raise _Over  # the members agreed to form the next epoch
        if preempted:
            program.save(index, leaves)
        program.close()
        host = _gathered(leaves)
        self._send(protocol.Done(epoch.world.epoch, preempted))
        with self._changed:
            self._changed.wait_for(lambda: self._end or epoch.over or self._error)
            if not self._end:
                self._check(epoch)
        return Outcome(program.tree(host), index, preempted)


def _forget_frames(error: BaseException | None) -> None:
    while error is not None:
        if error.__traceback__ is not None:
            traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        error = error.__cause__ or error.__context__
