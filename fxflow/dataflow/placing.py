"""Placing: on which devices each operation of a graph runs.

The order of precedence, which a plan prints:

1. the scope (`on`) of the operation;
2. the device that `device_put` inside the function names, or the mesh of a `shard_map`
   or a sharding;
3. where its operands are: the place of most of their bytes;
4. for an operation of arguments and constants alone, and for one whose results are
   larger than its operands (a broadcast), where its results are used. What is small and
   used in several places is computed in each;
5. the device of the committed arguments, or the default device.

An argument is used where its users are: it is sent there from wherever it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fxflow.core.arrays.aval import ArrayType, everywhere, mesh_of
from fxflow.core.ir.graph import Graph, Node, Var, subgraphs
from fxflow.core.source import describe, name_of
from fxflow.dataflow.scopes import (
    Beside,
    DeviceSpec,
    PlaceScope,
    Stage,
    Where,
    where_of,
)
from fxflow.dataflow.tasks.devices import (
    ClusterDevices,
    TaskDevice,
    TaskPlace,
    cluster_among,
    kinds_of,
)
from fxflow.devices import Device, buffers, local_devices
from fxflow.devices.clients import resolve
from fxflow.devices.meshes import Mesh
from fxflow.devices.shardings import SingleDeviceSharding
from fxflow.errors import ArgumentError, BackendError, PlacementError
from fxflow.lax.callbacks import PythonCallback

#: Results up to this size are computed in each place that uses them, if they depend on
#: arguments and constants alone and cost less than sending them.
CLONED_BYTES = 1024

Place = buffers.Placement
"""Where a fragment runs: a device (of this process or of a task), or a mesh whose
devices share its operations."""


def blocks(stage: int, stages: int, devices: int) -> int:
    """Returns the device of a stage: neighbours share one."""
    return stage * devices // stages


class Places:
    """What labels and stages mean: the argument `devices` of `dataflow.jit`.

    Args:
      devices: a sequence of devices, names or meshes for the stages, or a mapping from
        labels and stages to these; or a cluster, whose tasks scopes may name; None:
        this process's devices.
      device: from a stage and the numbers of stages and devices to the number of the
        stage's device, unless the sequence says it by naming a device twice.

    Raises:
      ArgumentError: it is neither.
    """

    def __init__(
        self, devices: Any = None, device: Callable[[int, int, int], int] = blocks
    ) -> None:
        self._device = device
        self._by_label: dict[Any, Any] = {}
        self._devices: list[Device | TaskDevice | Mesh] | None = None
        self._cluster: ClusterDevices | None = None
        if isinstance(devices, ClusterDevices):
            self._cluster = devices
        elif isinstance(devices, Mapping):
            self._by_label = dict(devices)
            self._find_cluster(devices.values())
        elif isinstance(devices, Mesh):
            self._devices = list(devices.flat)
            self._find_cluster([devices])
        elif isinstance(devices, Sequence) and not isinstance(devices, str):
            self._find_cluster(devices)
            self._devices = [
                d if isinstance(d, Mesh) else self._placed(d).device for d in devices
            ]
        elif devices is not None:
            raise ArgumentError(
                "dataflow.jit: devices is a sequence of devices, a mapping from labels "
                f"to devices, or a cluster, got {devices!r}"
            )
        if self._devices == []:
            raise ArgumentError("dataflow.jit: devices is empty")
        self._given = devices is not None and not self._by_label

    def _find_cluster(self, given: Iterable[Any]) -> None:
        flat = (
            d for one in given for d in (one.flat if isinstance(one, Mesh) else [one])
        )
        places = [device.place for device in flat if isinstance(device, TaskDevice)]
        self._cluster = cluster_among(places)

    @property
    def cluster(self) -> ClusterDevices | None:
        """The cluster whose tasks `devices` names, if it does."""
        return self._cluster

    @property
    def given(self) -> bool:
        """Whether `devices` names those over which stages are spread."""
        return self._given

    def require_known(self, graph: Graph, name: str) -> None:
        """Checks that each label and stage that `devices` names is in a scope.

        Args:
          graph: of the function, before what nothing needs is left out.
          name: of the function.

        Raises:
          PlacementError: one is not.
        """
        if not self._by_label:
            return
        scopes = labels_inside(graph)
        known = {where for where in scopes if isinstance(where, str)}
        unknown = [
            key
            for key in self._by_label
            if key not in scopes and key not in map(str, scopes)
        ]
        if unknown:
            told = ", ".join(map(repr, sorted(known))) or "none"
            counts = sorted({w.count for w in scopes if isinstance(w, Stage)})
            told += "".join(f", and the stages of stages({n})" for n in counts)
            keys = ", ".join(repr(k) if type(k) is str else str(k) for k in unknown)
            raise PlacementError(
                f"dataflow.jit: devices names {keys}, and no operation of {name} is in "
                f"such a scope; labels of its scopes: {told}"
            )

    @property
    def devices(self) -> list[Any]:
        """The devices, or meshes, that stages are spread over."""
        if self._cluster is not None and not self._by_label and self._devices is None:
            return list(self._cluster.devices)
        if self._devices is None:
            found = [d for d in map(self._device_of, self._by_label) if d]
            self._devices = list(dict.fromkeys(found)) or list(local_devices())
        return self._devices

    def place(self, where: Where) -> Place:
        """Returns the place that a scope means.

        Raises:
          PlacementError: there is no such device, or no device for a label.
        """
        if isinstance(where, Stage):
            for label in (where, str(where)):
                if label in self._by_label:
                    return self._labelled(label)
            devices = self.devices
            once = len(set(devices)) == len(devices)
            number = self._device if once else blocks
            named = devices[number(where.index, where.count, len(devices))]
            return self._placed(named)
        if isinstance(where, str):
            if where in self._by_label:
                return self._labelled(where)
            if where.partition(":")[0] in ("cpu", "gpu", "cuda", "tpu"):
                return self._placed(where)
            known = ", ".join(map(repr, self._by_label)) or "none"
            raise PlacementError(
                f"no device for the label {where!r}: name it in dataflow.jit(devices="
                f"{{{where!r}: device}}); labels given: {known}"
            )
        return self._placed(where)

    def of_device(self, device: Any) -> Place:
        """Returns the place of a device or a mesh.

        Args:
          device: one of `devices`.
        """
        return self._placed(device)

    def _device_of(self, label: Any) -> Any:
        mesh = isinstance(self._by_label[label], Mesh)
        return None if mesh else self._labelled(label).device

    def _labelled(self, label: Any) -> Place:
        """Returns the place of a label or stage that `devices` names."""
        try:
            return self._placed(self._by_label[label])
        except PlacementError as error:
            raise PlacementError(f"devices[{str(label)!r}]: {error}") from None

    def _placed(self, named: Any) -> Place:
        if isinstance(named, TaskDevice):
            return named.place
        if isinstance(named, Mesh):
            place: Place = everywhere(named)
            return place
        if isinstance(named, str) and named.startswith("/"):
            named = DeviceSpec.parse(named)
        if isinstance(named, DeviceSpec):
            cluster = self._cluster if named.cluster is None else named.cluster
            if cluster is not None and (named.job, named.task) != (None, None):
                return cluster.device_named(named).place
            named = named.device()
        try:
            return buffers.placement(resolve(named))
        except BackendError as error:
            raise PlacementError(f"no device {named!r}: {error}") from None


@dataclass
class Placed:
    """The nodes of a graph with their places.

    Attributes:
      nodes: in an order that can be run; small ones may be there once for each place.
      places: one for each node.
      rounds: of loops that are written out, one for each node.
      made: the place at which each variable is computed; arguments are not in it.
      notes: what was decided and may surprise.
      origins: the number of each node in the graph that was placed.
      phases: the least level of each node, if placement by cost decided it.
    """

    nodes: list[Node]
    places: list[Place]
    rounds: list[int]
    made: dict[Var, Place]
    notes: list[str]
    origins: list[int]
    phases: list[int] = field(default_factory=list)


class Decisions(NamedTuple):
    """What placement by cost decides about the nodes of a graph.

    Attributes:
      places: of each node; None: as its scope says, or else where it is used.
      phases: the least level of each node: the number of its fragment, from 1.
    """

    places: Sequence[Place | None]
    phases: Sequence[int]


def place_nodes(
    graph: Graph,
    rounds: Sequence[int],
    places: Places,
    arg_types: Sequence[ArrayType],
    *,
    strict: bool,
    decisions: Decisions | None = None,
) -> Placed:
    """Places the nodes of a graph; see the module.

    Args:
      graph: with its calls written out.
      rounds: of its nodes.
      places: what labels mean.
      arg_types: of the inputs.
      strict: whether scopes that cannot be followed are errors.
      decisions: go before all other rules; they honour the scopes.

    Raises:
      PlacementError: a scope names no device; with `strict`, a loop or branch holds
        scopes of several places.
    """
    notes: list[str] = []
    known: dict[Where, Place] = {}

    made: dict[Var, Place] = {}

    def resolved(where: Where, node: Node) -> Place | None:
        if isinstance(where, Beside):
            return made.get(where.var)
        try:
            found = known.get(where)
            if found is None:
                found = known[where] = places.place(where)
        except PlacementError as error:
            raise PlacementError(f"{error} ({describe(node.source)})") from None
        return found

    chosen: list[Place | None] = []
    # Where operations whose place their uses decide run if these do not say, either.
    otherwise: list[Place] = []
    near: dict[Var, Place] = {}
    default = _default(arg_types)
    # Tasks have no Python of the user's.
    has_tasks = places.cluster is not None or type(default) is TaskPlace
    here = default if type(default) is not TaskPlace else here_instead()
    if decisions is None:
        decisions = Decisions([None] * len(graph.nodes), ())
    for node, place in zip(graph.nodes, decisions.places, strict=True):
        if place is None:
            place = own_place(node, resolved, notes, strict)
        fallback = default
        stated = place
        if place is None:
            weights: dict[Place, int] = {}
            for atom in node.inputs:
                if type(atom) is Var and atom in made:
                    weights[made[atom]] = weights.get(made[atom], 0) + atom.aval.nbytes
            if weights:
                fallback = max(weights, key=lambda p: weights[p])
                if not _expands(node, sum(weights.values())):
                    place = fallback
            else:
                sources = [near[a] for a in node.inputs if type(a) is Var and a in near]
                fallback = sources[0] if sources else default
        if has_tasks and stated is None and calls_python(node):
            fallback = here
            if place is None or type(place) is TaskPlace:
                place = here
                if subgraphs(node.params):
                    inner = first_callback(node) or node
                    notes.append(
                        f"{node.primitive.name} ({describe(node.source)}) runs in this "
                        "process as a whole, since it calls Python or has effects "
                        f"({describe(inner.source)})"
                    )
        chosen.append(place)
        otherwise.append(fallback)
        (near if place is None else made).update(
            dict.fromkeys(node.outputs, place or fallback)
        )
    placed = _by_uses(graph, rounds, chosen, otherwise, made, notes)
    if decisions.phases:
        placed.phases = [decisions.phases[origin] for origin in placed.origins]
    return placed


def _expands(node: Node, nbytes: int) -> bool:
    """Returns whether a node's results are larger than the bytes that it is sent."""
    if node.effects or subgraphs(node.params):
        return False
    return sum(int(v.aval.nbytes) for v in node.outputs) > nbytes


def own_place(
    node: Node,
    resolved: Callable[[Where, Node], Place | None],
    notes: list[str],
    strict: bool,
) -> Place | None:
    """Returns the place that a node itself states: by its scope, or a `device_put`.

    Args:
      node: of a graph with its calls written out.
      resolved: returns the place that a scope means, or None.
      notes: what was decided and may surprise; it is added here.
      strict: whether scopes that cannot be followed are errors.

    Raises:
      PlacementError: with `strict`, a loop or branch holds scopes of several places.
    """
    where = where_of(node.scope)
    place = None if where is None else resolved(where, node)
    if type(place) is TaskPlace and is_sink(node):
        # What it is called with is sent here.
        _unfollowed(
            f"{called(node)} ({describe(node.source)}) runs in this process, not on "
            f"{place}: tasks run programs only",
            notes,
            strict,
        )
        return here_instead()
    mesh = _mesh_of(node)
    if mesh is not None:
        own: Place = everywhere(mesh)
        if any(scopes_inside(inner) for _, inner in subgraphs(node.params)):
            _unfollowed(
                f"{node.primitive.name} ({describe(node.source)}) holds scopes: each "
                "device of its mesh runs all of it",
                notes,
                strict,
            )
        if place is not None and set(place.devices) != set(own.devices):
            raise PlacementError(
                f"{node.primitive.name} ({describe(node.source)}) runs on the devices "
                f"of {mesh}, but its scope says {place_name(place)}: put it in a scope "
                "on(mesh), or in none"
            )
        return own
    if place is not None:
        return place
    if node.primitive.name == "device_put":
        to = node.params.get("to")
        if isinstance(to, SingleDeviceSharding):
            (device,) = to.device_set
            return buffers.placement(device)
        if isinstance(to, Device):
            return buffers.placement(to)
    inside = {w for _, inner in subgraphs(node.params) for w in scopes_inside(inner)}
    if node.params.get("length") == 0:
        inside.clear()  # a loop of no rounds
    if len(inside) == 1:
        return resolved(inside.pop(), node)
    if inside:
        _unfollowed(
            f"{node.primitive.name} ({describe(node.source)}) holds scopes of several "
            f"places ({', '.join(sorted(map(str, inside)))}): a loop or branch runs "
            "in one place as a whole",
            notes,
            strict,
        )
    return None


def here_instead() -> Place:
    """Returns where what a task cannot run does: this process's default device."""
    return buffers.default_placement()


def calls_python(node: Node) -> bool:
    """Returns whether a node, or a graph that it holds, calls Python or has effects."""
    if node.effects:
        return True
    return first_callback(node) is not None


def first_callback(node: Node) -> Node | None:
    """Returns the first host callback of a node and the graphs that it holds."""
    if node.primitive.name == PythonCallback.name:
        return node
    inner = (n for _, graph in subgraphs(node.params) for n in graph.nodes)
    return next(filter(None, map(first_callback, inner)), None)


def called(node: Node) -> str:
    """Returns the name of the function that a host callback calls: `debug.print`."""
    return name_of(node.params["function"])


def is_sink(node: Node) -> bool:
    """Returns whether a node only calls Python, whose results nothing takes."""
    return node.primitive.name == PythonCallback.name and not node.outputs


def _unfollowed(told: str, notes: list[str], strict: bool) -> None:
    """Notes that scopes are not followed, or raises an error."""
    if strict:
        raise PlacementError(f"{told}; put the scopes outside of it")
    notes.append(told)


def _mesh_of(node: Node) -> Mesh | None:
    """Returns the mesh that a node, or the first operation in it, names."""
    meshes = (graph.mesh for _, graph in subgraphs(node.params))
    named = node.primitive.mesh(node.params) or next(filter(None, meshes), None)
    # A `shard_map` over an abstract mesh runs on the current one.
    return named if isinstance(named, Mesh) else None


def scopes_inside(graph: Graph) -> set[Where]:
    """Returns the places that the scopes of a graph's operations name."""

    def find() -> set[Where]:
        found = set()
        for node in graph.nodes:
            where = where_of(node.scope)
            if where is not None:
                found.add(where)
            else:
                for _, inner in subgraphs(node.params):
                    found |= scopes_inside(inner)
        return found

    return graph.remembered("scopes_inside", find)


def labels_inside(graph: Graph) -> set[Any]:
    """Returns what all scopes in a graph name, also those around other scopes."""
    found = set()
    for node in graph.nodes:
        found |= {name.where for name in node.scope if type(name) is PlaceScope}
        for _, inner in subgraphs(node.params):
            found |= labels_inside(inner)
    return found


def _default(arg_types: Sequence[ArrayType]) -> Place:
    committed = [t.placement for t in arg_types if t.committed]
    found: Place = committed[0] if committed else buffers.default_placement()
    # The devices, not the parts that they have of that argument.
    return found if found.is_single else everywhere(mesh_of(found))


def _by_uses(
    graph: Graph,
    rounds: Sequence[int],
    chosen: list[Place | None],
    otherwise: list[Place],
    made: dict[Var, Place],
    notes: list[str],
) -> Placed:
    """Places operations that have no place yet where their results are used."""
    uses: dict[Var, dict[Place, None]] = {}
    copies: list[list[Place]] = []
    backward = zip(
        reversed(graph.nodes), reversed(chosen), reversed(otherwise), strict=True
    )
    for node, place, fallback in backward:
        if place is not None:
            where = [place]
        else:
            wanted: dict[Place, None] = {}
            for var in node.outputs:
                wanted.update(uses.get(var, {}))
            where = list(wanted) or [fallback]
            small = sum(v.aval.nbytes for v in node.outputs) <= CLONED_BYTES
            cheap = not node.effects and not subgraphs(node.params)
            if len(where) > 1 and not (small and cheap) and node.inputs:
                where = where[-1:]
        for atom in node.inputs:
            if type(atom) is Var and atom not in made:
                uses.setdefault(atom, {}).update(dict.fromkeys(where))
        copies.append(where)
    copies.reverse()
    return copied_to(graph, rounds, copies, made, notes)


def copied_to(
    graph: Graph,
    rounds: Sequence[int],
    copies: Sequence[Sequence[Place]],
    made: dict[Var, Place],
    notes: list[str],
) -> Placed:
    """Returns the nodes of a graph, each once for each of its places.

    Args:
      graph: whose nodes to place.
      rounds: of its nodes.
      copies: the places of each node. The results of the first copy are what other
        places take.
      made: gets the place of each variable.
      notes: of the plan.
    """
    nodes: list[Node] = []
    placed: list[Place] = []
    copied_rounds: list[int] = []
    origins: list[int] = []
    # Where a variable is computed more than once, each place has a name for its own.
    names: dict[tuple[Var, Place], Var] = {}
    copied = zip(graph.nodes, copies, rounds, strict=True)
    for origin, (node, where, round_) in enumerate(copied):
        for number, place in enumerate(where):
            inputs = [
                names.get((a, place), a) if type(a) is Var else a for a in node.inputs
            ]
            outputs = list(node.outputs)
            if number:
                outputs = [Var(v.aval) for v in node.outputs]
            for old, new in zip(node.outputs, outputs, strict=True):
                if len(where) > 1:
                    names[old, place] = new
                made[new] = place
            same = number == 0 and inputs == list(node.inputs)
            nodes.append(node if same else node.replace(inputs=inputs, outputs=outputs))
            placed.append(place)
            copied_rounds.append(round_)
            origins.append(origin)
    return Placed(nodes, placed, copied_rounds, made, notes, origins)


def place_order(place: Place) -> tuple[Any, ...]:
    """Returns a sort key: places of this process first, then those of tasks."""
    task = place.device.number if type(place) is TaskPlace else -1
    kinds = [(str(device.platform), device.id) for device in place.devices]
    return task, len(kinds) > 1, kinds


def place_name(place: Place) -> str:
    """Returns a place in a few letters: `cpu:1`, `task:1 cpu:0`."""
    if type(place) is TaskPlace:
        return str(place)
    names = kinds_of(place.devices)
    return names if len(place.devices) == 1 else f"mesh of {names}"
