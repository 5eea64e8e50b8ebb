"""Scopes: which device, mesh or stage the operations of a `with` block run on.

A scope is one of the names in `Node.scope` (see `named_scope`) that also says where.
Every interpreter keeps those names, so placements survive derivatives, vectorization,
loops and calls without a rule of their own: a cotangent has the scope of its primal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

from fxflow.core.arrays import Array, is_arraylike
from fxflow.core.arrays.array import not_an_array
from fxflow.core.ir.graph import Var
from fxflow.core.ir.staging import GraphTracer
from fxflow.core.ir.trace import Tracer
from fxflow.devices import Device
from fxflow.devices.clients import default_backend, resolve
from fxflow.devices.meshes import Mesh
from fxflow.errors import ArgumentError, BackendError, PlacementError
from fxflow.transforms.inspection import named_scope

_NAME = re.compile(
    r"(?:/job:(?P<job>\w+))?(?:/replica:\d+)?(?:/task:(?P<task>\d+))?"
    r"(?:/(?:device:)?(?P<kind>[a-z]\w*)(?::(?P<index>\d+|\*))?)?/?"
)


@dataclass(frozen=True, repr=False)
class DeviceSpec:
    """A device's name, parts of which may be left open.

    Attributes:
      job: of the cluster description, None if it is left open.
      task: the number of a process of the job, or None.
      kind: the platform (`"cpu"`, `"gpu"`), or None.
      index: of the device in its process, or None.
      cluster: whose task it is; None: one of those that `dataflow.jit(devices=…)` says.

    Example:
      >>> task = DeviceSpec.parse("/job:worker/task:1")
      >>> task.merge(DeviceSpec.parse("/device:cpu:0"))
      DeviceSpec('/job:worker/task:1/device:cpu:0')
    """

    job: str | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None
    cluster: Any = None

    @classmethod
    def parse(cls, text: str) -> DeviceSpec:
        """Reads ``/job:J/task:T/device:KIND:I``; each part may be missing.

        Raises:
          PlacementError: the text is not of that form.
        """
        found = _NAME.fullmatch(text.lower() if "/job:" not in text else text)
        if not text or found is None or not any(found.groups()):
            raise PlacementError(
                f"{text!r} is not a device name: write "
                "'/job:worker/task:0/device:cpu:1', or parts of it such as "
                "'/device:cpu:1'"
            )
        task, index = found["task"], found["index"]
        return cls(
            found["job"],
            None if task is None else int(task),
            found["kind"],
            None if index in (None, "*") else int(index),
        )

    def merge(self, inner: DeviceSpec) -> DeviceSpec:
        """Returns the spec with the parts that `inner` states in place of its own."""
        named = self if inner.kind is None else inner
        job = self.job if inner.job is None else inner.job
        task = self.task if inner.task is None else inner.task
        cluster = self.cluster if inner.cluster is None else inner.cluster
        return DeviceSpec(job, task, named.kind, named.index, cluster)

    def __str__(self) -> str:
        text = "" if self.job is None else f"/job:{self.job}"
        text += "" if self.task is None else f"/task:{self.task}"
        if self.kind is not None:
            text += f"/device:{self.kind}"
            text += "" if self.index is None else f":{self.index}"
        return text

    def __repr__(self) -> str:
        return f"DeviceSpec({str(self)!r})"

    def device(self) -> Device:
        """Returns the device of this process that the name means.

        Raises:
          PlacementError: there is no such device, or the platform cannot be used.
        """
        kind = self.kind or default_backend()
        task = "" if self.task is None else f"/task:{self.task}"
        try:
            return resolve(f"{task}/device:{kind}:{self.index or 0}")
        except BackendError as error:
            raise PlacementError(f"no device {str(self)!r}: {error}") from None
        except PlacementError as error:
            if self.task is None:
                raise
            raise PlacementError(
                f"{error}. For tasks give dataflow.jit(devices=cluster)"
            ) from None


@dataclass(frozen=True)
class Stage:
    """One of several consecutive parts of a program; a label, not a device.

    Attributes:
      index: from 0.
      count: of all stages.
    """

    index: int
    count: int

    def __str__(self) -> str:
        return f"stage:{self.index}/{self.count}"


class Beside(NamedTuple):
    """Where a traced value is computed.

    Attributes:
      var: the variable of the graph being traced.
    """

    var: Var

    def __str__(self) -> str:
        return "colocate"


Where = DeviceSpec | Device | Mesh | Stage | Beside | str
"""What a scope may say: a device or parts of its name, a mesh, a stage, a label, or
where another value is computed."""


class PlaceScope(str):
    """The name of a scope that says where its operations run."""

    where: Where

    def __new__(cls, where: Where) -> PlaceScope:
        """Returns the scope of a place."""
        name = str(where).replace('"', "'").replace("\\", "/").strip("/")
        made = super().__new__(cls, f"on({name.replace('/', ',')})")
        made.where = where
        return made

    # Scopes are part of the keys of traced functions, and two meshes may have one name.

    def __eq__(self, other: object) -> bool:
        if type(other) is PlaceScope and self.where != other.where:
            return False
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return str.__hash__(self)


class on(named_scope):
    """Says where the operations of a `with` block run, under `dataflow.jit`.

    It changes no value and no type. Eagerly and under `fxflow.jit` it is only a name in
    profiles. Cotangents and tangents are computed where their primal was.

    Scopes nest. Parts of device names are merged, field by field: within
    ``on("/job:worker/task:1")``, ``on("/device:gpu:0")`` is the first GPU of that task.
    Anything else replaces the scope around it.

    Args:
      where: a device, of this process or of a task; a name such as
        ``"/job:worker/task:0/device:cpu:1"`` or parts of it; a mesh, over whose devices
        XLA divides the operations; a `Stage`; or any other string, a label, which
        `dataflow.jit(devices={label: device})` resolves.

    Raises:
      ArgumentError: `where` is something else.
      PlacementError: a string that starts with ``/`` is not a device name.

    Example:
      >>> def f(x):
      ...     with on("/device:cpu:1"):
      ...         y = fnp.sin(x)
      ...     return y * 2
      >>> float(f(0.0))
      0.0
    """

    def __init__(self, where: Any) -> None:
        named = getattr(where, "spec", None)
        if isinstance(where, str) and where.startswith("/"):
            where = DeviceSpec.parse(where)
        elif isinstance(named, DeviceSpec):  # a device of a task
            where = named
        elif where == "" or not isinstance(where, Where):
            raise ArgumentError(
                "on: where to run is a Device, a name such as '/device:cpu:1', a Mesh, "
                f"a stage or a label, got {where!r}"
            )
        scope = PlaceScope(where)
        super().__init__(scope)
        self.name: PlaceScope = scope


def colocate(x: Any, /) -> Any:
    """Runs the operations of a `with` block where `x` is computed.

    A value that no operation computes (an argument, a constant), and a value outside of
    `dataflow.jit`, says nothing.

    Args:
      x: an array.

    Returns:
      A context manager.

    Raises:
      ArgumentError: `x` is not an array.

    Example:
      >>> def f(x):
      ...     with on("/device:cpu:1"):
      ...         y = fnp.sin(x)
      ...     with colocate(y):
      ...         return fnp.cos(x)
      >>> float(f(0.0))
      1.0

    Source: TensorFlow's `colocate_with`.
    """
    if not isinstance(x, Array) and not is_arraylike(x):
        raise not_an_array(x, "colocate: the value is")
    # Below the tracers of derivatives and batches.
    while isinstance(x, Tracer) and not isinstance(x, GraphTracer):
        x = getattr(x, "primal", getattr(x, "value", None))
    if not isinstance(x, GraphTracer):
        return nullcontext()
    for node in reversed(x._trace.nodes):
        if x._var in node.outputs:
            where = where_of(node.scope)
            return on(Beside(x._var) if where is None else where)
    return nullcontext()


def stages(count: int) -> tuple[Stage, ...]:
    """Returns the labels of the consecutive stages of a program.

    `dataflow.jit` runs stage `i` of `count` on device `i * len(devices) // count`.

    Args:
      count: of the stages, at least 1.

    Returns:
      A tuple of `count` stages.

    Raises:
      ArgumentError: the count is not a positive integer.

    Example:
      >>> stages(2)
      (Stage(index=0, count=2), Stage(index=1, count=2))
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ArgumentError(f"stages: the count is a positive integer, got {count!r}")
    return tuple(Stage(i, count) for i in range(count))


def where_of(scope: Sequence[str]) -> Where | None:
    """Returns where the operations of a node's scope run, or None if it does not say.

    Args:
      scope: of the node, outermost first.
    """
    found: Where | None = None
    for name in scope:
        if type(name) is PlaceScope:
            inner = name.where
            if type(found) is DeviceSpec and type(inner) is DeviceSpec:
                inner = found.merge(inner)
            found = inner
    return found
