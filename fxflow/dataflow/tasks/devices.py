"""The devices of a cluster's tasks: names and places, without a connection to them."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from fxflow.dataflow.scopes import DeviceSpec
from fxflow.devices import buffers
from fxflow.errors import ArgumentError, PlacementError, TaskLostError

#: The number that stands for the controller's process.
HERE = -1


class TaskDevice:
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
        self.place, self.memory = TaskPlace(self), 0

    @property
    def spec(self) -> DeviceSpec:
        """The device's whole name."""
        return DeviceSpec(self.job, self.task, self.platform, self.id)

    def __str__(self) -> str:
        job = "" if len(self.cluster.jobs) == 1 else f"job:{self.job} "
        return f"{job}task:{self.task} {self.platform}:{self.id}"

    def __repr__(self) -> str:
        return f"TaskDevice({str(self.spec)!r})"

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} cannot be pickled: it belongs to this process")


class TaskPlace(buffers.Placement):
    """A device of a task as the place of fragments and of arrays.

    This process has no device there: what the runtime would need is not set.
    """

    __slots__ = ()

    device: Any

    def __init__(self, device: TaskDevice) -> None:
        self.device = device
        self.devices = (device,)  # type: ignore[assignment]
        self.local = []
        self.platform = device.platform
        self.is_single, self.is_host, self.offloaded = True, False, None
        self.table = {}
        self._sharding = None

    @property
    def sharding(self) -> Any:
        """The device: there is no sharding over devices of another process."""
        return self.device

    def same_layout(self, other: buffers.Placement, ndim: int) -> bool:
        """Returns whether it is the same place."""
        return self is other

    def __repr__(self) -> str:
        return str(self.device)


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
          PlacementError: there is no such task.
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
            have = " ".join(f"{d.platform}:{d.id}" for d in row)
            raise PlacementError(
                f"no device {str(spec)!r}: {self.task_name(row[0].number)} has {have}"
            )
        return of_kind[index]

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
