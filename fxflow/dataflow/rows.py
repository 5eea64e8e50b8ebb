"""Rows: a plan as numbers, for each process what it does in a step.

A process keeps a step's values in slots, one for each value and place. Its part of the
program says which fragments each of its threads starts, which slots they read, write
and free, what arrives from other processes and what is sent to them. It holds no graph
and no object of the user, so it is what another process needs, besides the programs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fxflow.core.ir.graph import Graph, Var
from fxflow.dataflow.cutting import Fragment, is_cheap
from fxflow.dataflow.placing import Place
from fxflow.dataflow.tasks.devices import HERE, TaskPlace

#: Bytes of values that may wait at a receiver, from one process in one step. More wait
#: at the sender until the receiver has taken some.
WINDOW = 256 << 20
#: Results up to this size travel to the controller without being asked for.
SMALL = 1024


class FragmentRow(NamedTuple):
    """A fragment in its process.

    Attributes:
      number: of the fragment.
      place: index among the part's places.
      lane: number of the thread that starts it.
      program: number of its program.
      constants: numbers of the captured values that the program takes first.
      pulls: its other arguments: the place's slot, and the slot of another place of the
        process that it is copied from, or -1.
      results: slots of its results.
      frees: slots that only this place reads, for the last time here.
      drops: slots that several places read, for the last time at this place here.
      needs: numbers of what it waits for: fragments of other lanes, loads, arrivals.
      tells: the lanes that wait for it.
      sends: edge, slot and process of what other processes need.
      keeps: for results of the whole that stay here: position, slot, and whether the
        value is small.
      takes: edges whose value it is the first to use.
      text: what it is, for messages.
    """

    number: int
    place: int
    lane: int
    program: int
    constants: list[int]
    pulls: list[list[int]]
    results: list[int]
    frees: list[int]
    drops: list[int]
    needs: list[int]
    tells: list[int]
    sends: list[list[int]]
    keeps: list[list[int]]
    takes: list[int]
    text: str


class LoadRow(NamedTuple):
    """Arguments that are in a place of the process already.

    Attributes:
      number: by which fragments of other lanes wait for it.
      place: index among the part's places.
      lane: number of the thread.
      loads: position among the part's arguments, and slot.
      frees: as of a fragment.
      drops: as of a fragment.
      tells: as of a fragment.
      sends: as of a fragment.
      keeps: as of a fragment: arguments that are returned as they are.
    """

    number: int
    place: int
    lane: int
    loads: list[list[int]]
    frees: list[int]
    drops: list[int]
    tells: list[int]
    sends: list[list[int]]
    keeps: list[list[int]]


class ArrivalRow(NamedTuple):
    """A value that comes from another process.

    Attributes:
      edge: its number.
      number: by which fragments wait for it.
      slot: where it goes.
      place: index among the part's places: on a mesh, with the parts of this value.
      source: number of the process that sends it.
      dtype: name of the dtype, as programs see it.
      shape: likewise.
      nbytes: of the value.
      user: the fragment that uses it first.
      tells: the lanes that wait for it.
      text: its type, for messages.
    """

    edge: int
    number: int
    slot: int
    place: int
    source: int
    dtype: str
    shape: list[int]
    nbytes: int
    user: int
    tells: list[int]
    text: str


class PlaceRow(NamedTuple):
    """A place of a part: a device, or a mesh with what its devices have of a value.

    Attributes:
      devices: of the process, such as `cpu:0`, in the order of the mesh.
      sizes: lengths of the axes of the mesh; None: it is a device.
      entries: for each axis of a value the numbers of the mesh axes that divide it;
        axes without an entry are whole.
    """

    devices: list[str]
    sizes: list[int] | None
    entries: list[list[int]]

    @classmethod
    def of(cls, place: Place) -> PlaceRow:
        """Returns the row of a place."""
        names = [f"{d.platform}:{d.id}" for d in place.devices]
        if place.is_single:
            return cls(names, None, [])
        sharding: Any = place.sharding
        axes = sharding.mesh.axis_names
        entries = [[axes.index(name) for name in row] for row in sharding.spec.names()]
        return cls(names, list(sharding.mesh.axis_sizes), entries)

    @classmethod
    def read(cls, lists: Any) -> PlaceRow:
        """Returns the row that was sent as lists.

        Raises:
          ValueError: it is something else.
        """
        match lists:
            case [list(names), None | list(), list(entries)]:
                if all(type(name) is str for name in names) and all(
                    type(entry) is list for entry in entries
                ):
                    return cls(*lists)
        raise ValueError(f"not a place: {lists!r:.200}")


class ProgramRow(NamedTuple):
    """A program that fragments of a part run; its text travels beside it.

    Attributes:
      place: index among the part's places.
      options: the compiler's, by name.
      inputs: for each argument its dtype and shape, as programs see them, and the index
        of the place that has it.
      outputs: likewise.
    """

    place: int
    options: dict[str, Any]
    inputs: list[list[Any]]
    outputs: list[list[Any]]


class Part(NamedTuple):
    """What one process does in a step.

    Attributes:
      process: its number.
      slots: the number of them.
      places: its devices and meshes; empty in the caller's own part.
      lanes: how many threads.
      cheap: whether handing fragments to threads would take longer than running them.
      fragments: in the plan's order.
      loads: of arguments.
      arrivals: by edge, in the order in which they are first used.
      shared: slots that several places read, and how many.
      arguments: positions of the arguments that are here.
      donated: whether they are given up.
      sends: of arguments that the caller has: edge, slot, process.
      windows: for each process that this one sends values to: its number, then the
        bytes of each value, the fragment that uses it first, and its edge, in the order
        in which they are used there.
      window: bytes of values that may wait at a receiver.
    """

    process: int
    slots: int
    places: list[PlaceRow]
    lanes: int
    cheap: bool
    fragments: list[FragmentRow]
    loads: list[LoadRow]
    arrivals: list[ArrivalRow]
    shared: list[list[int]]
    arguments: list[int]
    donated: list[bool]
    sends: list[list[int]]
    windows: list[list[Any]]
    window: int

    @property
    def peers(self) -> set[int]:
        """Numbers of the processes that this one exchanges values with."""
        found = {row.source for row in self.arrivals}
        return found | {window[0] for window in self.windows}

    @classmethod
    def of(cls, lists: Sequence[Any]) -> Part:
        """Returns the part that was sent as lists.

        Raises:
          ValueError: it is something else.
        """
        try:
            part = cls(*lists)
            return part._replace(
                places=[PlaceRow.read(row) for row in part.places],
                fragments=[FragmentRow(*row) for row in part.fragments],
                loads=[LoadRow(*row) for row in part.loads],
                arrivals=[ArrivalRow(*row) for row in part.arrivals],
            )
        except TypeError as error:
            raise ValueError(f"not a part of a program: {error}") from None


def granted(sizes: Sequence[int], users: Sequence[int], taken: int, window: int) -> int:
    """Returns how many values may have been sent when some have been taken.

    The next fragment's values are among them, however large they are: it cannot start,
    and take them, before all are there.

    Args:
      sizes: bytes of the values, in the order in which they are taken.
      users: the fragment that takes each first.
      taken: how many of the first ones have been taken.
      window: bytes that may wait.
    """
    count, room = taken, window
    while count < len(sizes) and (users[count] == users[taken] or sizes[count] <= room):
        room -= sizes[count]
        count += 1
    return count


@dataclass
class Draft:
    """A fragment as it is compiled.

    Attributes:
      fragment: the fragment.
      program: number of its program.
      constants: captured values that the program takes first.
      inputs: its other arguments.
      wheres: the place of each argument, on a mesh with the parts of its devices.
      results: the place of each result, likewise.
      text: returns what it is, for messages.
    """

    fragment: Fragment
    program: int
    constants: list[Var]
    inputs: list[Var]
    wheres: Sequence[Place]
    results: Sequence[Place]
    text: Callable[[], str]


@dataclass
class _Process:
    """What is gathered of one process."""

    number: int
    lane_of: Mapping[Place, int]
    lanes: int
    slots: dict[tuple[Var, Place | None], int] = field(default_factory=dict)
    places: dict[Place, int] = field(default_factory=dict)

    def slot(self, var: Var, place: Place | None) -> int:
        return self.slots.setdefault((var, place), len(self.slots))

    def place(self, place: Place) -> int:
        return self.places.setdefault(place, len(self.places))


def process_of(place: Place | None) -> int:
    """Returns the number of the process that a place is in."""
    return place.device.number if type(place) is TaskPlace else HERE


class Rows:
    """A plan as numbers.

    Args:
      graph: the whole.
      drafts: its fragments.
      arg_places: where each argument of the whole is.
      donated: which arguments are donated.

    Attributes:
      parts: of the processes that have something to do; the caller's is always there.
      places: of each process, in the order of its part's.
      slots: of the caller's process: by variable and place.
      edges: what passes from process to process, by number: variable and place.
    """

    slots: dict[tuple[Var, Place | None], int]

    parts: dict[int, Part]
    places: dict[int, list[Place]]

    def __init__(
        self,
        graph: Graph,
        drafts: Sequence[Draft],
        arg_places: Sequence[Place | None],
        donated: Sequence[bool] = (),
    ) -> None:
        self._graph, self._drafts = graph, drafts
        args = graph.inputs[graph.num_consts :]
        self._args = dict(zip(args, range(len(args)), strict=True))
        self._donated = list(donated) or [False] * len(args)
        self._positions: dict[Var, list[int]] = defaultdict(list)
        for i, atom in enumerate(graph.outputs):
            if isinstance(atom, Var):
                self._positions[atom].append(i)
        # None for what the caller has.
        self._arg_place: dict[Var, Place | None] = {
            var: place if type(place) is TaskPlace else None
            for var, place in zip(args, arg_places, strict=True)
        }
        self._maker = {v: d.fragment for d in drafts for v in d.fragment.results}
        # How the arguments and results of fragments lie at their places.
        self._parts: dict[tuple[Var, Place], Place] = {}
        for draft in drafts:
            taken = zip(draft.inputs, draft.wheres[len(draft.constants) :], strict=True)
            given = zip(draft.fragment.results, draft.results, strict=True)
            for var, where in (*taken, *given):
                self._parts[var, draft.fragment.place] = where
        self._find_edges()
        self._loading = self._loads()
        places = [*dict.fromkeys(d.fragment.place for d in drafts), *self._loading]
        self._processes: dict[int, _Process] = {}
        for number in {HERE: None, **dict.fromkeys(map(process_of, places))}:
            own = [p for p in dict.fromkeys(places) if process_of(p) == number]
            lanes = lanes_of(own)
            count = len(set(lanes.values()))
            self._processes[number] = _Process(number, lanes, count)
            for place in own:
                self._processes[number].place(place)
        here = self._processes[HERE]
        for var in args:  # as they are given, they come first
            here.slot(var, None)
        self.parts = {n: self._part(p) for n, p in self._processes.items()}
        self.places = {n: list(p.places) for n, p in self._processes.items()}
        self.slots = here.slots

    def origin(self, var: Var) -> Place | None:
        """Returns where a value is at first; None for what the caller has."""
        made = self._maker.get(var)
        return self._arg_place[var] if made is None else made.place

    def where(self, var: Var) -> Place | None:
        """Returns what `origin` does, on a mesh with the parts of its devices."""
        origin = self.origin(var)
        return origin and self._parts.get((var, origin), origin)

    def source_of(self, edge: int) -> int:
        """Returns the number of the process that sends a value."""
        return process_of(self.origin(self.edges[edge][0]))

    def _find_edges(self) -> None:
        """Numbers what passes from process to process."""
        users: dict[tuple[Var, Place], list[int]] = {}
        for draft in self._drafts:
            place = draft.fragment.place
            for var in draft.inputs:
                origin = self.origin(var)
                if process_of(origin) != process_of(place):
                    users.setdefault((var, place), []).append(draft.fragment.index)
        by_use = sorted(users, key=lambda key: users[key][0])
        self.edges = by_use
        self._edges = {key: number for number, key in enumerate(by_use)}
        self._user = [users[key][0] for key in by_use]
        self._first: dict[int, list[int]] = {}
        for key, number in self._edges.items():
            self._first.setdefault(users[key][0], []).append(number)

    def _loads(self) -> dict[Place, list[Var]]:
        """Returns the arguments that are in places of tasks, if they are used."""
        used = {v for d in self._drafts for v in d.inputs} | self._positions.keys()
        found: dict[Place, list[Var]] = {}
        for var, place in self._arg_place.items():
            if place is not None and var in used:
                found.setdefault(place, []).append(var)
        return found

    # -- one process -------------------------------------------------------------------

    def _part(self, own: _Process) -> Part:
        drafts = [d for d in self._drafts if process_of(d.fragment.place) == own.number]
        count = len(self._drafts)
        load_number = {p: count + i for i, p in enumerate(self._loading)}
        loading = [p for p in self._loading if process_of(p) == own.number]
        arriving = [k for k in self._edges if process_of(k[1]) == own.number]
        arrival_number = {
            k: count + len(self._loading) + self._edges[k] for k in arriving
        }
        pulls = {d.fragment.index: self._pulls(own, d, arrival_number) for d in drafts}
        needs: dict[int, list[int]] = {}
        waited: dict[int, set[int]] = defaultdict(set)  # the lanes
        for draft in drafts:
            fragment, lane = draft.fragment, own.lane_of[draft.fragment.place]
            found: dict[int, None] = {}
            for var in draft.inputs:
                origin, made = self.origin(var), self._maker.get(var)
                if (var, fragment.place) in arrival_number:
                    found[arrival_number[var, fragment.place]] = None
                elif origin is not None and own.lane_of[origin] != lane:
                    found[load_number[origin] if made is None else made.index] = None
            needs[fragment.index] = list(found)
            for number in found:
                waited[number].add(lane)
        frees, drops, shared = self._last_uses(own, drafts, pulls, loading, load_number)
        sends = self._sends(own)
        arguments = [self._args[v] for p in loading for v in self._loading[p]]
        position = {a: i for i, a in enumerate(arguments)}
        fragments = []
        constants: dict[Var, int] = {v: i for i, v in enumerate(self._graph.inputs)}
        for draft in drafts:
            fragment, index = draft.fragment, draft.fragment.index
            results = [own.slot(v, fragment.place) for v in fragment.results]
            row = FragmentRow(
                index,
                own.place(fragment.place),
                own.lane_of[fragment.place],
                draft.program,
                [constants[v] for v in draft.constants],
                pulls[index],
                results,
                sorted(frees[index]),
                sorted(drops[index]),
                needs[index],
                sorted(waited[index]),
                [
                    s
                    for v in fragment.results
                    for s in sends.get((v, fragment.place), ())
                ],
                self._keeps(own, fragment.results, fragment.place),
                self._first.get(index, []),
                draft.text() if own.number != HERE else "",
            )
            fragments.append(row)
        loads = []
        for place in loading:
            number, variables = load_number[place], self._loading[place]
            loads.append(
                LoadRow(
                    number,
                    own.place(place),
                    own.lane_of[place],
                    [[position[self._args[v]], own.slot(v, place)] for v in variables],
                    sorted(frees[number]),
                    sorted(drops[number]),
                    sorted(waited[number] - {own.lane_of[place]}),
                    [s for v in variables for s in sends.get((v, place), ())],
                    self._keeps(own, variables, place),
                )
            )
        arrivals = []
        for var, place in arriving:
            aval, number = var.aval.physical, arrival_number[var, place]
            arrivals.append(
                ArrivalRow(
                    self._edges[var, place],
                    number,
                    own.slot(var, place),
                    own.place(self._parts[var, place]),
                    process_of(self.origin(var)),
                    aval.dtype.name,
                    list(aval.shape),
                    int(aval.nbytes),
                    self._user[self._edges[var, place]],
                    sorted(waited[number]),
                    str(var.aval),
                )
            )
        for draft in drafts:  # of the programs' arguments and results
            for place in (*draft.wheres, *draft.results):
                own.place(place)
        return Part(
            own.number,
            len(own.slots),
            [PlaceRow.of(place) for place in own.places if own.number != HERE],
            own.lanes,
            all(is_cheap(d.fragment.graph) for d in drafts),
            fragments,
            loads,
            arrivals,
            [[slot, n] for slot, n in shared],
            arguments,
            [self._donated[i] for i in arguments],
            [s for v in self._args for s in sends.get((v, None), ())],
            self._windows(own),
            WINDOW,
        )

    def _pulls(
        self, own: _Process, draft: Draft, arrivals: Mapping[Any, int]
    ) -> list[list[int]]:
        """Returns the slots of a fragment's arguments, and those they come from."""
        place, pulls = draft.fragment.place, []
        for var in draft.inputs:
            origin, source = self.origin(var), -1
            if (var, place) not in arrivals and origin is not place:
                source = own.slot(var, origin)
            pulls.append([own.slot(var, place), source])
        return pulls

    def _keeps(
        self, own: _Process, variables: Sequence[Var], place: Place
    ) -> list[list[int]]:
        """Returns what of a place's values stays here as a result of the whole."""
        return [
            [i, own.slot(var, place), int(var.aval.physical.nbytes <= SMALL)]
            for var in (() if own.number == HERE else variables)
            for i in self._positions.get(var, ())
        ]

    def _sends(self, own: _Process) -> dict[tuple[Var, Place | None], list[list[int]]]:
        """Returns what a process sends, by variable and place: edge, slot, process."""
        found: dict[tuple[Var, Place | None], list[list[int]]] = {}
        for (var, place), edge in self._edges.items():
            origin = self.origin(var)
            if process_of(origin) == own.number:
                row = [edge, own.slot(var, origin), process_of(place)]
                found.setdefault((var, origin), []).append(row)
        return found

    def _windows(self, own: _Process) -> list[list[Any]]:
        found: dict[int, list[list[int]]] = {}
        for (var, place), edge in self._edges.items():
            if process_of(self.origin(var)) == own.number:
                sizes, users, edges = found.setdefault(process_of(place), [[], [], []])
                sizes.append(int(var.aval.physical.nbytes))
                users.append(self._user[edge])
                edges.append(edge)
        return [[process, *lists] for process, lists in found.items()]

    def _last_uses(
        self,
        own: _Process,
        drafts: Sequence[Draft],
        pulls: Mapping[int, list[list[int]]],
        loading: Sequence[Place],
        load_number: Mapping[Place, int],
    ) -> tuple[dict[int, list[int]], dict[int, list[int]], list[tuple[int, int]]]:
        """Returns what is freed and dropped where, and the slots that several read."""
        readers: dict[int, dict[Place, int]] = defaultdict(dict)
        for draft in drafts:
            place, index = draft.fragment.place, draft.fragment.index
            for slot, source in pulls[index]:
                readers[slot][place] = index
                if source >= 0:
                    readers[source].setdefault(place, index)
            for var in draft.fragment.results:
                readers[own.slot(var, place)].setdefault(place, index)
        for place in loading:
            for var in self._loading[place]:
                readers[own.slot(var, place)].setdefault(place, load_number[place])
        kept: set[int] = set()
        if own.number == HERE:
            # What the caller gives and gets outlives the step.
            kept = {own.slot(v, None) for v in self._args}
            for atom in self._graph.outputs:
                if not isinstance(atom, Var) or atom not in self._maker:
                    continue
                made = self._maker[atom]
                if process_of(made.place) == HERE:
                    kept.add(own.slot(atom, made.place))
        frees: dict[int, list[int]] = defaultdict(list)
        drops: dict[int, list[int]] = defaultdict(list)
        shared: list[tuple[int, int]] = []
        for slot, last in readers.items():
            if slot in kept:
                continue
            if len(last) == 1:
                frees[next(iter(last.values()))].append(slot)
            else:
                shared.append((slot, len(last)))
                for index in last.values():
                    drops[index].append(slot)
        return frees, drops, shared


def lanes_of(places: Sequence[Place]) -> dict[Place, int]:
    """Returns the number of each place's thread; places that share devices share one.

    Args:
      places: of one process.
    """
    groups: list[dict[Any, None]] = []
    for place in places:
        joined = dict.fromkeys(place.devices)
        for group in [g for g in groups if not joined.keys().isdisjoint(g)]:
            groups.remove(group)
            joined = {**group, **joined}
        groups.append(joined)
    found = {}
    for place in places:
        (number,) = (n for n, g in enumerate(groups) if place.devices[0] in g)
        found[place] = number
    return found
