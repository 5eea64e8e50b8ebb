"""``fxflow launch --ps 2 --workers 4 --ray auto train.py``: a run on a Ray cluster.

Each process of the run has a Ray actor. One placement group holds the servers (or the
tasks of a run of ``--tasks``), another the other processes. If only the process ends,
the launcher restarts it in its actor; Ray restarts an actor that dies, with its
process, or because its machine fails. Servers listen at the addresses of the machines
on which Ray places them. Actors receive the run's keys as arguments of a call: not on a
command line, and not in an actor's description, which Ray shows to all its users.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from fxflow.distributed import processes, ray_leader
from fxflow.distributed.addresses import Address
from fxflow.distributed.children import Child, Output
from fxflow.distributed.clusters.base import job_port
from fxflow.distributed.jobs import Job, JobLauncher, device_variables, jobs_of
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.tasks import task_jobs
from fxflow.errors import DistributedError

#: Seconds without an answer from an actor after which the launcher reports it.
_QUIET = 30.0
#: Seconds without a placement after which the launcher reports that it waits.
_REPORT_AFTER = 3.0
#: Seconds within which Ray's head must accept a connection.
_CONNECT_TIMEOUT = 5.0


def ray_module() -> Any:
    """Returns the module `ray`.

    Raises:
      ImportError: it is missing.
    """
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise ImportError(
            "fxflow launch --ray needs Ray: pip install 'fxflow[ray]'"
        ) from None
    return ray


def resources_of(text: str) -> dict[str, float]:
    """Returns the Ray resources of a process.

    Args:
      text: Ray's names and positive numbers, such as ``CPU=2,GPU=1``.

    Raises:
      ValueError: the text is malformed.

    Example:
      >>> resources_of("CPU=2,GPU=0.5")
      {'CPU': 2.0, 'GPU': 0.5}
    """
    found: dict[str, float] = {}
    for entry in text.split(","):
        name, _, number = (part.strip() for part in entry.partition("="))
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = 0.0
        if not name or not 0 < found[name] < float("inf"):
            raise ValueError(
                f"resources must be NAME=NUMBER,..., such as CPU=1,GPU=1, got {text!r}"
            )
    return found


def _check_reachable(address: str) -> None:
    """Raises if nothing listens at ``host:port``, which Ray reports after minutes."""
    try:
        place = Address.parse(address)
    except ValueError:  # "auto", "local"
        return
    if "/" in place.host:  # "ray://host:port"
        return
    try:
        socket.create_connection(place, _CONNECT_TIMEOUT).close()
    except OSError as error:
        raise DistributedError(
            f"no Ray cluster answers at {address}: {error.strerror or error}"
        ) from None


class _Pieces:
    """A process's output: one thread puts pieces, another reads them as from a pipe."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.put = self._queue.put

    def __enter__(self) -> _Pieces:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read1(self, size: int) -> bytes:
        return self._queue.get()


class ActorChild(Child):
    """A process of the run in a Ray actor.

    Args:
      number: its number.
      run: the number of this start, from 1.
      actor: its actor's handle.
      spec: command, environment and folder.
      output: writes its output.
      label: the prefix of its lines.
      log: writes a line of the launcher itself.
      ended: called on a separate thread after the process has ended.

    Attributes:
      number: its number.
      is_lost: whether the actor has died and Ray does not restart it.
    """

    is_lost: bool

    def __init__(
        self,
        number: int,
        run: int,
        actor: Any,
        spec: Mapping[str, Any],
        output: Output,
        label: str,
        log: Callable[[str], None],
        ended: Callable[[], None],
    ) -> None:
        self.number: int = number
        self.begun: float = time.monotonic()
        self.is_lost = False
        self._ray = ray_module()
        self._run, self._actor, self._spec = run, actor, dict(spec)
        self._label, self._log = label, log
        self.status: Future[int] = Future()
        self.status.add_done_callback(lambda _: ended())
        self._is_ending = False
        self._pipes = {1: _Pieces(), 2: _Pieces()}
        self._follow_pipes(
            self._pipes[1], self._pipes[2], output.mark(number, label), output
        )
        self._leading = threading.Thread(target=self._lead, daemon=True)
        self._leading.start()

    def _lead(self) -> None:
        code = None
        try:
            self._ask(self._actor.begin.remote(self._run, self._spec))
            while code is None:
                answer = self._ask(self._actor.follow.remote(self._run))
                if answer is None and self._is_ending:
                    code = -processes.KILL  # it died while it was being ended
                elif answer is None:
                    self._log(f"{self._label}: its actor died; Ray has started another")
                    self._ask(self._actor.begin.remote(self._run, self._spec))
                else:
                    pieces, code = answer
                    for which, piece in pieces:
                        self._pipes[which].put(piece)
        except self._ray.exceptions.RayError:
            self.is_lost, code = True, -processes.KILL
        for pipe in self._pipes.values():
            pipe.put(b"")
        self.status.set_result(code)

    def _ask(self, answer: Any) -> Any:
        """Waits for an answer of the actor; reports a long wait."""
        try:
            return self._ray.get(answer, timeout=_QUIET)
        except self._ray.exceptions.GetTimeoutError:
            self._log(
                f"{self._label}: its actor has not answered for {_QUIET:g} s; Ray may "
                "lack the resources to restart it (see `ray status`)"
            )
            return self._ray.get(answer)

    @property
    def pid(self) -> int:
        """0: the process may run on another machine."""
        return 0

    def send(self, number: int) -> None:
        """Sends a signal to the process and its descendants."""
        self._is_ending = True
        if self.poll() is None:
            with contextlib.suppress(self._ray.exceptions.RayError):
                self._actor.send.remote(self._run, number)

    def finish(self, timeout: float = 5.0) -> None:
        """Kills the actor, and waits until its output is written."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._actor, no_restart=True)
        for thread in (self._leading, *self._threads):
            thread.join(timeout)


class RayLauncher(JobLauncher):
    """Runs the jobs of a run in Ray actors.

    Args:
      jobs: the processes.
      actors: their actors, in the same order.
      environment: variables for all of them.
      options: the options of the command line.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        actors: Sequence[Any],
        environment: Mapping[str, str],
        options: argparse.Namespace,
    ) -> None:
        super().__init__(jobs, environment, options)
        self._actors = list(actors)
        self._runs = [0] * len(self._jobs)

    def _start(self, number: int) -> Child:
        job = self._jobs[number]
        self._runs[number] += 1
        spec = {
            "command": list(job.command),
            "environment": {**self._environment, **job.environment},
            "folder": os.getcwd(),
        }
        child = self.children[number] = ActorChild(
            number,
            self._runs[number],
            self._actors[number],
            spec,
            self.output,
            str(job),
            self.log,
            self.wake,
        )
        return child

    def _may_start(self, number: int) -> bool:
        child = self.finished[-1]
        assert isinstance(child, ActorChild)
        return not child.is_lost and super()._may_start(number)


def lacking(
    taken: Sequence[Mapping[str, float]], machines: Sequence[Mapping[str, float]]
) -> str:
    """Returns which resources are too few for all processes at once; empty if none.

    Args:
      taken: the resources of each process.
      machines: the resources of each machine, free or taken.

    Example:
      >>> lacking([{"CPU": 1}] * 4, [{"CPU": 2}])
      'CPU=4 in total, but there is CPU=2'
      >>> lacking([{"GPU": 2}], [{"GPU": 1}, {"GPU": 1}])
      'GPU=2 on one machine, but no machine has more than GPU=1'
      >>> lacking([{"CPU": 1}] * 2, [{"CPU": 2}])
      ''
    """
    for name in dict.fromkeys(name for one in taken for name in one):
        wanted = [one.get(name, 0.0) for one in taken]
        there = [machine.get(name, 0.0) for machine in machines]
        if sum(wanted) > sum(there):
            return (
                f"{name}={sum(wanted):g} in total, but there is {name}={sum(there):g}"
            )
        if max(wanted) > (most := max(there, default=0.0)):
            return (
                f"{name}={max(wanted):g} on one machine, but no machine has more than "
                f"{name}={most:g}"
            )
    return ""


# -- placement -------------------------------------------------------------------------


class _Places:
    """The actors of a run, in two placement groups."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.ray = ray_module()
        self._options = options
        self._groups: list[Any] = []
        self.actors: list[Any] = []
        # By value, so that the actors' machines do not need fxflow.
        for module in (ray_leader, processes):
            self.ray.cloudpickle.register_pickle_by_value(module)

    @property
    def _flags(self) -> str:
        """The options that set the resources of processes."""
        first = "task" if self._options.tasks else "server"
        return f"--{first}-resources and --worker-resources"

    def check(self, taken: Sequence[Mapping[str, float]]) -> None:
        """Reports early which resources the cluster lacks.

        Args:
          taken: the resources of each process.

        Raises:
          DistributedError: they are missing, and Ray cannot add machines.
        """
        machines = [n["Resources"] for n in self.ray.nodes() if n["Alive"]]
        lacks = lacking(taken, machines)
        if not lacks:
            return
        why = (
            f"the {len(taken)} processes take {lacks} ({self._flags} set what each "
            "takes)"
        )
        if self._options.ray == "local":
            raise DistributedError(f"this machine has too few resources: {why}")
        print(
            f"fxflow launch: {why}; waiting up to "
            f"{self._options.start_timeout:g} s for Ray to add machines",
            file=sys.stderr,
            flush=True,
        )

    def reserve(self, names: Sequence[str], resources: Mapping[str, float]) -> None:
        """Adds an actor for each process, spread over all machines.

        Args:
          names: the processes' names.
          resources: the resources of each process.

        Raises:
          DistributedError: Ray did not place them within the deadline.
        """
        options, ray = self._options, self.ray
        if not names:
            return
        group = ray.util.placement_group([dict(resources)] * len(names), "SPREAD")
        self._groups.append(group)
        if not group.wait(min(_REPORT_AFTER, options.start_timeout)):
            listed = ", ".join(names)
            taken = ",".join(f"{k}={v:g}" for k, v in resources.items())
            left = ray.available_resources()
            free = ", ".join(f"{k}={left.get(k, 0):g}" for k in resources)
            why = (
                f"each takes {taken}; free in total: {free} ({self._flags} set what "
                "each takes)"
            )
            seconds = f"{options.start_timeout:g} s"
            print(
                f"fxflow launch: waiting up to {seconds} for Ray to place "
                f"{listed}: {why}",
                file=sys.stderr,
                flush=True,
            )
            if not group.wait(max(0.0, options.start_timeout - _REPORT_AFTER)):
                raise DistributedError(
                    f"Ray did not place {listed} within {seconds}: {why}"
                )
        others = {k: v for k, v in resources.items() if k not in ("CPU", "GPU")}
        memory = others.pop("memory", None)
        for index, name in enumerate(names):
            keeps = options.ps_folder or options.ps_copies > 1
            lost = name.startswith("ps ") and not keeps
            again = 0 if lost or name == "controller 0" else options.restarts
            place = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
                group, index
            )
            actor = ray.remote(ray_leader.Leader).options(
                num_cpus=resources.get("CPU", 0),
                num_gpus=resources.get("GPU", 0),
                resources=others,
                scheduling_strategy=place,
                # Ray restarts an actor that dies, and retries the calls to it.
                max_restarts=again,
                max_task_retries=-1 if again else 0,
                max_concurrency=4,
                **({} if memory is None else {"memory": memory}),
            )
            self.actors.append(actor.remote())

    def addresses(self, names: Sequence[str], port: int) -> list[str]:
        """Waits for all actors; returns an address on the machine of each.

        Args:
          names: the names of all processes.
          port: the first port that is tried on each machine.

        Raises:
          DistributedError: some have not started within the deadline.
        """
        ray, found, used = self.ray, [], set()
        refs = [actor.place.remote(port) for actor in self.actors]
        seconds = self._options.start_timeout
        _, late = ray.wait(refs, num_returns=len(refs), timeout=seconds)
        if late:
            listed = ", ".join(
                n for n, ref in zip(names, refs, strict=True) if ref in late
            )
            raise DistributedError(f"Ray has not started {listed} within {seconds:g} s")
        try:
            for actor, ref in zip(self.actors, refs, strict=True):
                host, number = ray.get(ref)
                while (host, number) in used:  # another actor will listen there
                    host, number = ray.get(actor.place.remote(number + 1))
                used.add((host, number))
                found.append(str(Address(host, number)))
        except ray.exceptions.RayError as error:
            raise DistributedError(f"an actor cannot be started: {error}") from None
        return found

    def close(self) -> None:
        """Ends all actors and releases their placement groups."""
        for actor in self.actors:
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.kill(actor, no_restart=True)
        for group in self._groups:
            with contextlib.suppress(self.ray.exceptions.RayError):
                self.ray.util.remove_placement_group(group)


def launch_on_ray(
    options: argparse.Namespace,
    command: Sequence[str],
    variables: Mapping[str, str],
    keys: Keys,
) -> int:
    """Runs ``fxflow launch --ps --ray`` or ``fxflow launch --tasks --ray``.

    Args:
      options: the options of the command line.
      command: the command that workers, or the controller, run.
      variables: environment variables for all processes.
      keys: the run's keys.

    Returns:
      The exit status: 1 if Ray is unreachable or does not place the actors.
    """
    ray = ray_module()
    environment = {**variables, **device_variables(options)}
    mine = not ray.is_initialized()
    places = None
    serving = options.tasks or options.ps
    resources = options.task_resources if options.tasks else options.server_resources

    def jobs(addresses: Sequence[str]) -> list[Job]:
        if options.tasks:
            return task_jobs(options, command, ["ray"] * serving, addresses, keys)
        return jobs_of(options, command, ["ray"], addresses, keys)

    try:
        if mine:
            _check_reachable(options.ray)
            ray.init(options.ray, log_to_driver=False, logging_level="WARNING")
        # With placeholder addresses: only the jobs' names and order are used.
        names = [str(job) for job in jobs(["?:0"] * serving)]
        places = _Places(options)
        others = [options.worker_resources] * (len(names) - serving)
        places.check([*[resources] * serving, *others])
        places.reserve(names[:serving], resources)
        places.reserve(names[serving:], options.worker_resources)
        port = options.port or job_port(os.getpid())
        addresses = places.addresses(names, port)[:serving]
        return RayLauncher(jobs(addresses), places.actors, environment, options).run()
    except (ConnectionError, DistributedError, ray.exceptions.RayError) as error:
        print(f"fxflow launch: {error}", file=sys.stderr)
        return 1
    finally:
        if places is not None:
            places.close()
        if mine:
            ray.shutdown()
