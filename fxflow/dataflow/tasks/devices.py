"""The devices of a cluster's tasks: names and places, without a connection to them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from fxflow.dataflow.scopes import DeviceSpec
from fxflow.devices import buffers
from fxflow.devices.remote import RemoteDevice, refusal
from fxflow.devices.shardings import Sharding
from fxflow.errors import ArgumentError, PlacementError, TaskLostError

#: The number that stands for the controller's process.
HERE = -1


class TaskDevice(RemoteDevice):
    """A device of a task, which is another process.

    Attributes:
      cluster: whose task it is.
      job: of the task.
      task: number of the task in its job.
      number: of the task among all tasks of the cluster.
      platform: `cpu`, `gpu` or `tpu`.
      id: index among the task's devices of that platform.
      place: where fragments for this device run.
      memory: its bytes of memory; 0 if unknown.
    """

    __slots__ = (
        "cluster", "id", "job", "memory", "number", "place", "platform", "task",
    )  # fmt: skip

    cluster: ClusterDevices
    job: str
    task: int
    number: int
    platform: str
    id: int
    place: TaskPlace
    memory: int

    def __init__(
        self,
        cluster: ClusterDevices,
        job: str,
        task: int,
        number: int,
        platform: str,
        index: int,
    ) -> None:
        self.cluster, self.job, self.task, self.number = cluster, job, task, number
        self.platform, self.id = platform, index
        self.place, self.memory = TaskPlace((self,)), 0

    @property
    def spec(self) -> DeviceSpec:
        """The device's whole name."""
        return DeviceSpec(self.job, self.task, self.platform, self.id, self.cluster)

    @property
    def process(self) -> tuple[int, int]:
        """What the devices of a task have in common."""
        return id(self.cluster), self.number

    @property
    def process_index(self) -> int:
        """The number of the task among all tasks of the cluster."""
        return self.number

    def placement(self, sharding: Sharding | None = None) -> TaskPlace:
        """Returns the place that is this device, or the devices of a sharding."""
        if sharding is None:
            return self.place
        return self.cluster.place_of(sharding)

    @property
    def task_name(self) -> str:
        """The name of the task, such as `task:1`."""
        return self.cluster.task_name(self.number)

    def __str__(self) -> str:
        return f"{self.task_name} {self.platform}:{self.id}"

    def __repr__(self) -> str:
        return f"TaskDevice({str(self.spec)!r})"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled: it belongs to this process")


class TaskPlace(buffers.Placement):
    """A device or a mesh of a task as the place of fragments and of arrays.

    Args:
      devices: of the task.
      sharding: how arrays are divided over them; None: it is one device.
    """

    __slots__ = ("__weakref__",)

    device: Any

    def __init__(
        self, devices: tuple[TaskDevice, ...], sharding: Sharding | None = None
    ) -> None:
        # What this process's runtime would need is not set: it has no device there.
        self.device = devices[0]
        self.devices = devices  # type: ignore[assignment]
        self.local: list[Any] = []
        self.platform: str = self.device.platform
        self.is_single: bool = sharding is None
        self.is_host: bool = False
        self.offloaded: str | None = None
        self.table: dict[Any, Any] = {}
        self._sharding = sharding

    def runtime(self, ndim: int) -> Any:
        """Raises an error: this process puts no array there.

        Raises:
          PlacementError: always.
        """
        raise refusal(self.devices, "arrays of this process")

    def __repr__(self) -> str:
        if self.is_single:
            return str(self.device)
        return f"{self.device.task_name} mesh of {kinds_of(self.devices)}"


def kinds_of(devices: Sequence[Any]) -> str:
    """Returns platforms and numbers of devices of one process: `cpu:0 cpu:1`."""
    return " ".join(f"{device.platform}:{device.id}" for device in devices)


class ClusterDevices:
    """Which devices the tasks of a cluster have.

    Args:
      jobs: the number of tasks of each job.
      devices: platforms of each task's devices, for all tasks in the order of `jobs`;
        None if they are not known yet.

    Attributes:
      jobs: the number of tasks of each job.
      missing: why tasks are left out, by their number among all tasks; they have no
        devices.
    """

    jobs: dict[str, int]
    missing: dict[int, str]

    def __init__(
        self, jobs: Mapping[str, int], devices: Sequence[Sequence[str]] | None = None
    ) -> None:
        self.jobs, self.missing = dict(jobs), {}
        self._functions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._names = [
            (job, i) for job, count in self.jobs.items() for i in range(count)
        ]
        self._by_task: list[list[TaskDevice]] | None = None
        # Weak: the garbage collector does not see the devices in the array of a mesh.
        self._places: weakref.WeakValueDictionary[Sharding, TaskPlace] = (
            weakref.WeakValueDictionary()
        )
        self._placing = threading.Lock()
        if devices is not None:
            self._learn(devices)

    def _learn(self, devices: Sequence[Sequence[str]]) -> None:
        """Records the platforms of each task's devices."""
        made = []
        for number, platforms in enumerate(devices):
            job, task = self._names[number]
            counts: dict[str, int] = {}
            row = []
            for platform in platforms:
                index = counts[platform] = counts.get(platform, -1) + 1
                row.append(TaskDevice(self, job, task, number, platform, index))
            made.append(row)
        self._by_task = made

    def _known(self) -> list[list[TaskDevice]]:
        """Returns the devices of each task."""
        if self._by_task is None:
            raise PlacementError(
                "the devices of this cluster's tasks are not known: connect first"
            )
        return self._by_task

    @property
    def devices(self) -> list[TaskDevice]:
        """The devices of all tasks, those of the first task first."""
        rows = enumerate(self._known())
        return [device for i, row in rows if i not in self.missing for device in row]

    def devices_of(self, task: int, job: str | None = None) -> list[TaskDevice]:
        """Returns the devices of one task.

        Args:
          task: number of the task in its job.
          job: None: the first job.

        Raises:
          PlacementError: unknown task.
        """
        job = next(iter(self.jobs)) if job is None else job
        if job not in self.jobs or not 0 <= task < self.jobs[job]:
            raise PlacementError(f"no task {task} in job {job!r}: {self._described()}")
        return self._known()[self._names.index((job, task))]

    def task_name(self, number: int) -> str:
        """Returns the name of a task, such as `task:1`.

        Args:
          number: of the task among all tasks.
        """
        job, task = self._names[number]
        return f"task:{task}" if len(self.jobs) == 1 else f"job:{job} task:{task}"

    def device_named(self, spec: DeviceSpec) -> TaskDevice:
        """Returns the device that a name means.

        Args:
          spec: names a job or a task. Without a job it is the first one, without a task
            its task 0, without a platform the platform of the task's first device.

        Raises:
          PlacementError: there is no such job, task or device.
          TaskLostError: the task is left out.
        """
        row = self.devices_of(spec.task or 0, spec.job)
        if row and row[0].number in self.missing:
            raise self.lost_error(row[0].number)
        kind = spec.kind or row[0].platform
        kind = "gpu" if kind in ("cuda", "rocm") else kind
        of_kind = [device for device in row if device.platform == kind]
        index = spec.index or 0
        if index >= len(of_kind):
            have = kinds_of(row)
            raise PlacementError(
                f"no device {str(spec)!r}: {self.task_name(row[0].number)} has {have}"
            )
        return of_kind[index]

    def place_of(self, sharding: Sharding) -> TaskPlace:
        """Returns the one place of a sharding over the devices of a task.

        Args:
          sharding: over several devices, or a mesh of one.
        """
        devices: Any = sharding.devices
        with self._placing:
            found = self._places.get(sharding)
            if found is None:
                found = self._places[sharding] = TaskPlace(devices, sharding)
            return found

    def used_by(self, function: Any) -> None:
        """Notes a function that is planned for the tasks.

        Args:
          function: has a method `clear_cache`, which drops its plans.
        """
        self._functions.add(function)

    def leave_out(self, missing: Mapping[int, str]) -> None:
        """Leaves tasks out; functions are planned again for the others.

        Args:
          missing: why, by their number among all tasks.
        """
        before, self.missing = self.missing, dict(missing)
        if before.keys() != missing.keys():
            for function in list(self._functions):
                function.clear_cache()

    def lost_error(self, number: int, why: str = "") -> TaskLostError:
        """Returns the error for a task that is lost.

        Args:
          number: of the task among all tasks.
          why: it is lost; empty if it is one that is left out.
        """
        why = why or self.missing[number]
        return TaskLostError(f"{self.task_name(number)} is lost: {why}", number)

    def program(self, traced: Any, plan: Any, arg_types: Sequence[Any]) -> Any:
        """Returns a function cut over the tasks, ready to be called.

        Args:
          traced: the function.
          plan: of the function.
          arg_types: of the leaves of its arguments.

        Raises:
          PlacementError: this describes devices, and has no processes.
        """
        raise PlacementError(
            "this cluster has no processes to run in: use dataflow.Cluster, "
            "dataflow.local_cluster or dataflow.connect"
        )

    def _described(self) -> str:
        told = [f"{count} of job {job!r}" for job, count in self.jobs.items()]
        return f"the cluster has {', '.join(told)}, numbered from 0"


def cluster_among(places: Sequence[Any]) -> ClusterDevices | None:
    """Returns the cluster whose tasks are among places; None if there is none.

    Raises:
      ArgumentError: there are tasks of several clusters.
    """
    found = {p.device.cluster: None for p in places if type(p) is TaskPlace}
    if len(found) > 1:
        raise ArgumentError(
            "dataflow.jit: the function uses tasks of several clusters; describe all "
            "tasks in one Cluster"
        )
    return next(iter(found), None)
