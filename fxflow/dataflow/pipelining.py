"""Pipelines by cost: the body of a loop cut into stages of about equal time.

The rounds of a loop over microbatches can overlap if its body is cut into stages. The
operations of the forward half have positions, in an order that can be run; a cotangent
has the position of the parameters that it is computed with, so a stage keeps its
weights and their gradients. For each number of stages, dynamic programming over the
order finds the cuts whose slowest stage is fastest (PipeDream, Narayanan et al., 2019;
DAPPLE, Fan et al., 2021). Two orders are tried: that of the program, and depth first.

The stages become scopes of the body's operations: what runs is what a user could have
written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.ir.graph import Graph, Node, Var
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.loops import MAX_ROUNDS
from fxflow.dataflow.placing import Place, Places, scopes_inside
from fxflow.dataflow.rates import kind_of, process_of
from fxflow.dataflow.scopes import PlaceScope, Stage
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.remat import CALLS, inlined

#: Positions above this number are joined with their neighbours.
_MOST = 256
#: A loop that takes less than this part of the whole is not looked at.
_WORTH = 0.3
#: Fragments of a stage in a round: forward, backward, weights.
_FRAGMENTS = 3


class Pipelined(NamedTuple):
    """A graph whose loop is cut into stages.

    Attributes:
      graph: with the scopes of stages.
      stages: the number of stages.
      items: how many positions could have been cut apart.
      bound: seconds below which no stages of these items can end.
    """

    graph: Graph
    stages: int
    items: int
    bound: float


class _Items(NamedTuple):
    """Positions of a loop's body.

    Attributes:
      position: of each node, or -1: where it is used.
      seconds: of the nodes at each position, on each device.
      forward: bytes that pass each border, between a position and the next, forward.
      backward: likewise, backward.
      held: bytes of arguments at each position.
    """

    position: list[int]
    seconds: np.ndarray[Any, Any]
    forward: np.ndarray[Any, Any]
    backward: np.ndarray[Any, Any]
    held: np.ndarray[Any, Any]


def pipelined(graph: Graph, places: Places, costs: Costs) -> Pipelined | None:
    """Returns a graph whose longest loop is cut into stages, if that may be faster.

    Args:
      graph: with its calls written out.
      places: whose devices run the stages.
      costs: of operations and transfers.
    """
    devices = [places.of_device(d) for d in dict.fromkeys(places.devices)]
    if len(devices) < 2:
        return None
    seconds = costs.node_seconds(graph, devices[0].device)
    loops = [i for i, node in enumerate(graph.nodes) if _can_overlap(node)]
    if not loops:
        return None
    number = max(loops, key=seconds.__getitem__)
    if seconds[number] < _WORTH * sum(seconds):
        return None
    node = graph.nodes[number]
    p = ScanParams(**node.params)
    body = inlined(p.graph, CALLS)
    rounds = p.length + 1
    best: tuple[float, list[int], int, _Items] | None = None
    for order in _orders(body):
        items = _items(p, body, order, devices, costs)
        for count in _counts(places, len(devices), items.seconds.shape[1]):
            found = _balanced(items, count, places, devices, costs)
            if found is None:
                continue
            slowest, cuts = found
            used = len({places.place(Stage(i, count)) for i in range(count)})
            total = (rounds * count / used + used - 1) * slowest
            if best is None or total < best[0]:
                best = total, cuts, count, items
    if best is None:
        return None
    _, cuts, count, items = best
    stages = [-1 if at < 0 else bisect_right(cuts, at) for at in items.position]
    scoped = _scoped(body.nodes, stages, count)
    nodes = list(graph.nodes)
    inner = body.replace(nodes=scoped)
    nodes[number] = node.replace(params={**node.params, "graph": inner})
    first, length = _twin(body.nodes, graph.nodes)
    nodes[first : first + length] = _scoped(
        nodes[first : first + length], stages[:length], count
    )
    work = items.seconds.min(axis=0)
    bound = max(
        rounds * float(work.sum()) / len(devices),
        float(work.sum()),
        rounds * float(work.max()),
    )
    return Pipelined(graph.replace(nodes=nodes), count, len(work), bound)


def _counts(places: Places, devices: int, items: int) -> list[int]:
    """Returns numbers of stages to try.

    Schedules with several stages on a device, which are not neighbours, have a shorter
    bubble with more of them.
    """
    most = min(devices, items)
    found = [n for n in range(2, most + 1) if n <= 8 or n == most or n & (n - 1) == 0]
    chunked = 2 * devices
    where = [places.place(Stage(i, chunked)) for i in range(chunked)]
    if chunked <= items and where[0] is not where[1]:
        found.append(chunked)
    return found


def _can_overlap(node: Node) -> bool:
    """Returns whether a node is a loop whose rounds could be written out."""
    if node.primitive.name != "scan" or node.effects:
        return False
    if not 2 <= node.params["length"] <= MAX_ROUNDS:
        return False
    body = inlined(node.params["graph"], CALLS)
    return len(body.nodes) > 2 and not scopes_inside(body)


def _scoped(nodes: Sequence[Node], stages: Sequence[int], count: int) -> list[Node]:
    """Returns nodes with the scopes of their stages; -1: without."""
    scopes = [PlaceScope(Stage(i, count)) for i in range(count)]
    return [
        node if stage < 0 else node.replace(scope=(*node.scope, scopes[stage]))
        for node, stage in zip(nodes, stages, strict=True)
    ]


def _twin(body: Sequence[Node], nodes: Sequence[Node]) -> tuple[int, int]:
    """Returns where the same operations as in the body are, and how many.

    Accumulation computes the first microbatch before the loop.
    """

    def key(node: Node) -> tuple[Any, ...]:
        return node.primitive, *(v.aval for v in node.outputs)

    inside, outside = [*map(key, body)], [*map(key, nodes)]
    best = 0, 0
    for first in range(len(outside)):
        if outside[first] != inside[0] or len(outside) - first <= best[1]:
            continue
        length = 0
        for a, b in zip(inside, outside[first:], strict=False):
            if a != b:
                break
            length += 1
        best = max(best, (first, length), key=lambda found: found[1])
    return best if best[1] > len(inside) / 2 else (0, 0)


# -- positions -------------------------------------------------------------------------


def _orders(body: Graph) -> list[list[int]]:
    """Returns orders of the body's nodes: the program's, and depth first."""
    maker = {v: i for i, node in enumerate(body.nodes) for v in node.outputs}
    users: list[list[int]] = [[] for _ in body.nodes]
    missing = [0] * len(body.nodes)
    for i, node in enumerate(body.nodes):
        for u in {maker[a] for a in node.inputs if type(a) is Var and a in maker}:
            users[u].append(i)
            missing[i] += 1
    program = list(range(len(body.nodes)))
    stack = [i for i in reversed(program) if not missing[i]]
    deep = []
    while stack:
        i = stack.pop()
        deep.append(i)
        for user in reversed(users[i]):
            missing[user] -= 1
            if not missing[user]:
                stack.append(user)
    return [program] if deep == program else [program, deep]


def _items(
    p: ScanParams,
    body: Graph,
    order: Sequence[int],
    devices: Sequence[Place],
    costs: Costs,
) -> _Items:
    """Returns the positions of a body's nodes by an order."""
    nodes = body.nodes
    by_kind = {kind_of(p.device): p.device for p in devices}
    known = {kind: costs.node_seconds(body, d) for kind, d in by_kind.items()}
    mean = np.mean([*known.values()], axis=0)
    raw = _positions(p, body, order)
    # Small positions are joined with their neighbours.
    weight: dict[int, float] = defaultdict(float)
    for i, at in enumerate(raw):
        if at >= 0:
            weight[at] += float(mean[i])
    least = sum(weight.values()) / _MOST
    new: dict[int, int] = {}
    number, filled = 0, 0.0
    for at in sorted(weight):
        if filled and filled + weight[at] > least:
            number, filled = number + 1, 0.0
        new[at] = number
        filled += weight[at]
    position = [-1 if at < 0 else new[at] for at in raw]
    count = number + 1
    seconds = np.zeros((len(devices), count))
    for d, place in enumerate(devices):
        own = known[kind_of(place.device)]
        for i, at in enumerate(position):
            if at >= 0:
                seconds[d, at] += own[i]
    forward, backward = np.zeros(count + 1), np.zeros(count + 1)
    maker = {v: position[i] for i, node in enumerate(nodes) for v in node.outputs}
    reach: dict[Var, tuple[int, int]] = {}
    held, taken = np.zeros(count), set()
    for i, node in enumerate(nodes):
        at = position[i]
        if at < 0:
            continue
        for atom in node.inputs:
            if type(atom) is not Var:
                continue
            if maker.get(atom, -1) >= 0:
                low, high = reach.get(atom, (at, at))
                reach[atom] = min(low, at), max(high, at)
            elif (atom, at) not in taken:
                taken.add((atom, at))
                held[at] += atom.aval.nbytes
    for var, (low, high) in reach.items():
        at, nbytes = maker[var], float(var.aval.nbytes)
        if high > at:
            forward[at:high] += nbytes
        if low < at:
            backward[low:at] += nbytes
    return _Items(position, seconds, forward, backward, held)


def _positions(p: ScanParams, body: Graph, order: Sequence[int]) -> list[int]:
    """Returns the position of each node; -1: where it is used.

    The forward half is what the most results depend on. A node of the backward half is
    where its parameter is used in the forward half, or else where its cotangent is.
    """
    nodes = body.nodes
    rank = [0] * len(nodes)
    for position, i in enumerate(order):
        rank[i] = position
    results: dict[Var, int] = defaultdict(int)
    for number, atom in enumerate(body.outputs):
        if type(atom) is Var:
            results[atom] |= 1 << number
    reach = [0] * len(nodes)
    for i in reversed(range(len(nodes))):
        for var in nodes[i].outputs:
            reach[i] |= results.get(var, 0)
        for atom in nodes[i].inputs:
            if type(atom) is Var:
                results[atom] |= reach[i]
    most = max((bits.bit_count() for bits in reach), default=0)
    forward = [bits.bit_count() == most for bits in reach]
    consts = body.inputs[: p.num_consts]
    data = set(body.inputs[p.num_consts :])
    used_at: dict[Var, list[int]] = defaultdict(list)  # forward, of parameters
    depends: set[Var] = set(data)  # on the data of the round
    for i, node in enumerate(nodes):
        if any(type(a) is Var and a in depends for a in node.inputs):
            depends.update(node.outputs)
        if forward[i]:
            for atom in node.inputs:
                if type(atom) is Var:
                    used_at[atom].append(rank[i])
    parameters = set(consts)
    home = _homes(p, body, used_at)
    made: dict[Var, tuple[int, bool]] = {}  # position, whether forward
    found = [-1] * len(nodes)
    for i, node in enumerate(nodes):
        inputs = [a for a in node.inputs if type(a) is Var]
        if not any(a in depends for a in inputs):
            continue  # of parameters alone: where it is used
        if forward[i]:
            found[i] = rank[i]
        else:
            found[i] = _backward(inputs, made, parameters, used_at)
            results_of = reach[i]
            if results_of.bit_count() == 1 and results_of in home:
                found[i] = home[results_of]
        made.update(dict.fromkeys(node.outputs, (found[i], forward[i])))
    return found


def _backward(
    inputs: Sequence[Var],
    made: dict[Var, tuple[int, bool]],
    parameters: set[Var],
    used_at: dict[Var, list[int]],
) -> int:
    """Returns the position of a node of the backward half, by its operands."""
    cotangents = [made[a][0] for a in inputs if a in made and not made[a][1]]
    residuals = [made[a][0] for a in inputs if a in made and made[a][1]]
    limit = min(cotangents) if cotangents else max(residuals, default=0)
    anchors = [at for a in inputs if a in parameters for at in used_at.get(a, ())]
    before = [at for at in anchors if at <= limit]
    return max(before) if before else limit


def _homes(p: ScanParams, body: Graph, used_at: dict[Var, list[int]]) -> dict[int, int]:
    """Returns the positions of gradients, by the bit of the result that they are.

    A carry is the gradient of the parameter of its type, if as many carries as
    parameters have the type: then they are in one order.
    """
    parameters: dict[Any, list[Var]] = defaultdict(list)
    carries: dict[Any, list[int]] = defaultdict(list)
    for var in body.inputs[: p.num_consts]:
        if var in used_at:
            parameters[var.aval.shape, var.aval.dtype].append(var)
    for number, atom in enumerate(body.outputs[: p.num_carry]):
        carries[atom.aval.shape, atom.aval.dtype].append(number)
    found = {}
    for kind, held in parameters.items():
        numbers = carries.get(kind, [])
        if len(numbers) == len(held):
            for var, number in zip(held, numbers, strict=True):
                found[1 << number] = min(used_at[var])
    return found


# -- cuts ------------------------------------------------------------------------------


def _balanced(
    items: _Items,
    count: int,
    places: Places,
    devices: Sequence[Place],
    costs: Costs,
) -> tuple[float, list[int]] | None:
    """Returns the seconds of the slowest stage in a round, and where to cut.

    None if the parameters of the stages do not fit.
    """
    where = [places.place(Stage(i, count)) for i in range(count)]
    row = {place: d for d, place in enumerate(devices)}
    if any(place not in row for place in where):
        return None
    busy: dict[Any, int] = defaultdict(int)
    for place in where:
        busy[process_of(place.device), place.platform] += 1
    length = items.seconds.shape[1]
    held = np.concatenate([[0.0], np.cumsum(items.held)])
    best = np.full(length + 1, np.inf)
    best[0] = 0.0
    choices = []
    for stage, place in enumerate(where):
        rates = costs.of(place.device)
        slow = rates.slowdown(busy[process_of(place.device), place.platform])
        sums = np.concatenate([[0.0], np.cumsum(items.seconds[row[place]])]) * slow
        # From i (a row) to j (a column).
        took = sums[None, :] - sums[:, None] + _FRAGMENTS * rates.start
        if stage:
            sent = [
                costs.transfer_seconds(max(a, b), where[stage - 1], place)
                for a, b in zip(items.forward, items.backward, strict=True)
            ]
            # The border between positions i - 1 and i. A link works beside the device;
            # of equal stages those that send less are better.
            border = np.concatenate([[np.inf], sent[:length]])
            took = np.maximum(took, border[:, None]) + 1e-3 * border[:, None]
        limit = costs.memory(place.device)
        if limit:  # parameters, and their gradients
            took[2 * (held[None, :] - held[:, None]) > limit] = np.inf
        took[np.tril_indices(length + 1)] = np.inf
        total = np.maximum(best[:, None], took)
        choices.append(total.argmin(axis=0))
        best = total.min(axis=0)
    if not np.isfinite(best[length]):
        return None
    cuts, j = [], length
    for choice in reversed(choices):
        j = int(choice[j])
        cuts.append(j)
    return float(best[length]), sorted(cuts)[1:]
